/* A lock that processes share: what one of them does is a pure function of the words, so turns, order and who is woken
 * are looked at step by step; and processes that fight for it never hold it together, and none sleeps for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/host_lock.h"

#define PLACES 8u

struct scene {
    struct tb_host_lock_words words;
    _Atomic uint64_t waiting[PLACES];
    _Atomic uint32_t woken[PLACES]; /* by who: how often */
    uint64_t sum;                   /* changed by whoever has the lock alone */
    _Atomic uint32_t inside;        /* those who share it now */
};

static struct tb_host_lock view(struct scene *s)
{
    return (struct tb_host_lock){.words = &s->words, .waiting = s->waiting, .mask = PLACES - 1};
}

static void places_are_a_power_of_two(void **state)
{
    assert_int_equal(tb_host_lock_places(0), 1);
    assert_int_equal(tb_host_lock_places(1), 1);
    assert_int_equal(tb_host_lock_places(5), 8);
    assert_int_equal(tb_host_lock_places(8), 8);
    assert_int_equal(tb_host_lock_places(2049), 4096);
}

/* Tickets begin where their numbers start over. */
static struct scene near_the_end(void)
{
    struct scene s = {.sum = 0};
    s.words.next = s.words.serving = UINT32_MAX - 2;
    return s;
}

static void they_come_in_order(void **state)
{
    struct scene s = near_the_end();
    struct tb_host_lock lock = view(&s);
    uint32_t tickets[6], wake;
    for (uint32_t i = 0; i < 6; i++)
        tickets[i] = tb_host_lock_come(&lock);
    /* 0 and 1 share it, 2 wants it alone, 3 and 4 would share, 5 wants it alone. */
    assert_true(tb_host_lock_turn(&lock, tickets[0], false, 10, &wake));
    assert_int_equal(wake, TB_HOST_LOCK_NOBODY); /* nobody has looked yet */
    assert_false(tb_host_lock_turn(&lock, tickets[2], true, 12, &wake));
    assert_false(tb_host_lock_turn(&lock, tickets[3], false, 13, &wake));
    assert_false(tb_host_lock_turn(&lock, tickets[4], false, 14, &wake));
    assert_false(tb_host_lock_turn(&lock, tickets[5], true, 15, &wake));
    assert_true(tb_host_lock_turn(&lock, tickets[1], false, 11, &wake));
    assert_int_equal(wake, 12);
    assert_false(tb_host_lock_turn(&lock, tickets[2], true, 12, &wake));
    assert_int_equal(tb_host_lock_leave(&lock, false), TB_HOST_LOCK_NOBODY); /* one shares it still */
    assert_false(tb_host_lock_turn(&lock, tickets[2], true, 12, &wake));
    assert_int_equal(tb_host_lock_leave(&lock, false), 12);
    assert_false(tb_host_lock_turn(&lock, tickets[3], false, 13, &wake)); /* nobody passes it */
    assert_true(tb_host_lock_turn(&lock, tickets[2], true, 12, &wake));
    assert_int_equal(wake, TB_HOST_LOCK_NOBODY);
    assert_false(tb_host_lock_turn(&lock, tickets[3], false, 13, &wake));
    assert_int_equal(tb_host_lock_leave(&lock, true), 13);
    assert_true(tb_host_lock_turn(&lock, tickets[3], false, 13, &wake));
    assert_int_equal(wake, 14);
    assert_true(tb_host_lock_turn(&lock, tickets[4], false, 14, &wake));
    assert_int_equal(wake, 15);
    assert_int_equal(tb_host_lock_leave(&lock, false), TB_HOST_LOCK_NOBODY);
    assert_int_equal(tb_host_lock_leave(&lock, false), 15);
    assert_true(tb_host_lock_turn(&lock, tickets[5], true, 15, &wake));
    assert_int_equal(tb_host_lock_leave(&lock, true), TB_HOST_LOCK_NOBODY);
    assert_int_equal(s.words.sharers, 0);
    assert_int_equal(s.words.next, s.words.serving);
}

/* One that waited in the same place before is not taken for one that has not looked yet. */
static void nobody_is_woken_for_an_old_ticket(void **state)
{
    struct scene s = {.sum = 0};
    struct tb_host_lock lock = view(&s);
    uint32_t wake;
    for (uint32_t round = 0; round < 3 * PLACES; round++) {
        uint32_t holder = tb_host_lock_come(&lock), next = tb_host_lock_come(&lock);
        assert_true(tb_host_lock_turn(&lock, holder, true, 1, &wake));
        if (round % 2 == 0)
            assert_false(tb_host_lock_turn(&lock, next, true, 2, &wake));
        assert_int_equal(tb_host_lock_leave(&lock, true), round % 2 == 0 ? 2 : TB_HOST_LOCK_NOBODY);
        assert_true(tb_host_lock_turn(&lock, next, true, 2, &wake));
        tb_host_lock_leave(&lock, true);
    }
}

/* One that waits behind another who wants it alone hears that somebody shares it, joins, and lets its ticket pass. */
static void who_joins_passes_those_who_wait(void **state)
{
    struct scene s = near_the_end();
    struct tb_host_lock lock = view(&s);
    uint32_t tickets[5], wake;
    for (uint32_t i = 0; i < 5; i++)
        tickets[i] = tb_host_lock_come(&lock);
    /* 0 has it alone, 1 will share it, 2 wants it alone, 3 joins whoever shares it, 4 waits for its turn. */
    assert_true(tb_host_lock_turn(&lock, tickets[0], true, 10, &wake));
    assert_false(tb_host_lock_join(&lock));
    assert_false(tb_host_lock_turn(&lock, tickets[2], true, 12, &wake));
    assert_false(tb_host_lock_turn(&lock, tickets[3], false, 13 | TB_HOST_LOCK_JOINS, &wake));
    assert_false(tb_host_lock_turn(&lock, tickets[4], false, 14, &wake));
    assert_int_equal(tb_host_lock_leave(&lock, true), TB_HOST_LOCK_NOBODY); /* 1 has not looked yet */
    assert_false(tb_host_lock_join(&lock));
    assert_true(tb_host_lock_turn(&lock, tickets[1], false, 11, &wake));
    assert_int_equal(wake, 12);
    uint32_t from = tickets[1] + 1;
    assert_int_equal(tb_host_lock_joiner(&lock, &from), 13);
    assert_int_equal(tb_host_lock_joiner(&lock, &from), TB_HOST_LOCK_NOBODY);
    assert_true(tb_host_lock_join(&lock));
    assert_int_equal(tb_host_lock_pass(&lock, tickets[3]), TB_HOST_LOCK_NOBODY);
    from = tickets[1] + 1;
    assert_int_equal(tb_host_lock_joiner(&lock, &from), TB_HOST_LOCK_NOBODY);
    assert_int_equal(tb_host_lock_leave(&lock, false), TB_HOST_LOCK_NOBODY);
    assert_false(tb_host_lock_turn(&lock, tickets[2], true, 12, &wake));
    assert_int_equal(tb_host_lock_leave(&lock, false), 12);
    assert_true(tb_host_lock_turn(&lock, tickets[2], true, 12, &wake));
    assert_int_equal(tb_host_lock_leave(&lock, true), 14); /* that of 3 has passed by */
    assert_false(tb_host_lock_return(&lock, tickets[3], 13));
    assert_true(tb_host_lock_turn(&lock, tickets[4], false, 14, &wake));
    tb_host_lock_leave(&lock, false);
    assert_int_equal(s.words.next, s.words.serving);
    assert_int_equal(s.words.sharers, 0);
}

/* It is its turn while it is not needed: whoever is behind it is told; and it may be needed again before that. */
static void a_ticket_that_is_not_needed_passes_by(void **state)
{
    struct scene s = near_the_end();
    struct tb_host_lock lock = view(&s);
    uint32_t tickets[4], wake;
    for (uint32_t i = 0; i < 4; i++)
        tickets[i] = tb_host_lock_come(&lock);
    assert_true(tb_host_lock_turn(&lock, tickets[0], true, 10, &wake));
    for (uint32_t i = 1; i < 4; i++)
        assert_false(tb_host_lock_turn(&lock, tickets[i], true, 10 + i, &wake));
    assert_int_equal(tb_host_lock_pass(&lock, tickets[1]), TB_HOST_LOCK_NOBODY);
    assert_int_equal(tb_host_lock_pass(&lock, tickets[2]), TB_HOST_LOCK_NOBODY);
    assert_true(tb_host_lock_return(&lock, tickets[1], 11));
    assert_int_equal(tb_host_lock_leave(&lock, true), 11);
    assert_int_equal(tb_host_lock_pass(&lock, tickets[1]), 13);
    assert_true(tb_host_lock_turn(&lock, tickets[3], true, 13, &wake));
    tb_host_lock_leave(&lock, true);
    assert_int_equal(s.words.next, s.words.serving);
}

/* ---- processes that fight for it --------------------------------------------------------------------------------- */

#define PROCESSES 4u
#define ROUNDS    300u

static void wake_up(struct scene *s, uint32_t who)
{
    if (who != TB_HOST_LOCK_NOBODY)
        atomic_fetch_add(&s->woken[who], 1);
}

/* Its ticket, and whether that passes by. */
struct fighter {
    uint32_t me, ticket;
    bool passing;
};

static bool try(struct scene *s, const struct tb_host_lock *lock, struct fighter *f, bool exclusive, bool joins)
{
    uint32_t wake, joiner, from = f->ticket + 1;
    if (tb_host_lock_turn(lock, f->ticket, exclusive, f->me | (joins ? TB_HOST_LOCK_JOINS : 0), &wake)) {
        wake_up(s, wake);
        while (!exclusive && (joiner = tb_host_lock_joiner(lock, &from)) != TB_HOST_LOCK_NOBODY)
            wake_up(s, joiner);
        return true;
    }
    f->passing = joins && tb_host_lock_join(lock);
    if (f->passing)
        wake_up(s, tb_host_lock_pass(lock, f->ticket));
    return f->passing;
}

/* Between its looks a process waits until it is woken: it would wait for ever if it were forgotten. */
static void take(struct scene *s, const struct tb_host_lock *lock, struct fighter *f, bool exclusive, bool joins)
{
    uint32_t heard = atomic_load(&s->woken[f->me]);
    if (!f->passing || !tb_host_lock_return(lock, f->ticket, f->me))
        f->ticket = tb_host_lock_come(lock);
    f->passing = false;
    while (!try(s, lock, f, exclusive, joins)) {
        while (atomic_load(&s->woken[f->me]) == heard)
            usleep(20);
        heard = atomic_load(&s->woken[f->me]);
    }
}

static int fight(struct scene *s, uint32_t me)
{
    struct tb_host_lock lock = view(s);
    struct fighter f = {.me = me};
    int wrong = 0;
    alarm(100);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        bool exclusive = (i + me) % 3 != 0;
        take(s, &lock, &f, exclusive, !exclusive && i % 2 == 0);
        if (exclusive) {
            wrong += atomic_load(&s->inside) != 0;
            volatile uint64_t *sum = &s->sum;
            *sum = *sum + 1;
        } else {
            atomic_fetch_add(&s->inside, 1);
            if (i % 16 == 0)
                sched_yield();
            atomic_fetch_sub(&s->inside, 1);
        }
        wake_up(s, tb_host_lock_leave(&lock, exclusive));
    }
    return wrong == 0 ? 0 : 1;
}

static void nobody_is_let_in_beside_another_and_nobody_is_forgotten(void **state)
{
    struct scene *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[PROCESSES];
    uint64_t expected = 0;
    assert_ptr_not_equal(s, MAP_FAILED);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        for (uint32_t k = 0; k < ROUNDS; k++)
            expected += (k + i) % 3 != 0;
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            _exit(fight(s, i));
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(s->sum, expected);
    munmap(s, sizeof *s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_a_power_of_two),
        cmocka_unit_test(they_come_in_order),
        cmocka_unit_test(nobody_is_woken_for_an_old_ticket),
        cmocka_unit_test(who_joins_passes_those_who_wait),
        cmocka_unit_test(a_ticket_that_is_not_needed_passes_by),
        cmocka_unit_test(nobody_is_let_in_beside_another_and_nobody_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What ranks of a host share for a window, by processes that are the ranks: they find each other's memory, nobody
 * else's, and keep each other out while they combine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/window_room.h"

#define RANKS 6u /* of the window; ranks 0 and 3 are on another host */

static const uint32_t here[] = {1, 2, 4, 5};
#define HERE (sizeof here / sizeof here[0])

/* Shared by all processes of a test. */
struct scene {
    pthread_barrier_t barrier;
    struct tb_window_offer offers[RANKS];
};

/* One of the processes. */
struct place {
    struct scene *scene;
    uint32_t rank;
    struct tb_window_host_config config;
    struct tb_window_host *host;
};

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: rank %u: %s\n", __FILE__, __LINE__, p->rank, #condition);                          \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static void meet(struct place *p)
{
    pthread_barrier_wait(&p->scene->barrier);
}

/* Runs it in a process for each rank that is here. */
static void by_all(void (*run)(struct place *p), struct tb_window_host_config config)
{
    pid_t children[HERE];
    struct scene *scene = mmap(NULL, sizeof *scene, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(scene, MAP_FAILED);
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&scene->barrier, &shared, HERE);
    for (uint32_t i = 0; i < HERE; i++) {
        struct place p = {.scene = scene, .rank = here[i], .config = config};
        p.config.size = RANKS;
        p.config.rank = here[i];
        p.config.locals = here;
        p.config.local_count = HERE;
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] > 0)
            continue;
        alarm(60);
        run(&p);
        _exit(0);
    }
    int failed = 0;
    for (uint32_t i = 0; i < HERE; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        failed += status != 0;
    }
    assert_int_equal(failed, 0);
    munmap(scene, sizeof *scene);
}

static int open_files(void)
{
    int count = 0;
    for (int i = 0; i < 256; i++)
        count += fcntl(i, F_GETFD) >= 0;
    return count;
}

/* What a window's making does, up to the last exchange. */
static int go_in(struct place *p, void *base, uint64_t size)
{
    struct tb_window_offer *mine = &p->scene->offers[p->rank];
    *mine = (struct tb_window_offer){.base = (uintptr_t)base, .size = size};
    CHECK(tb_window_host_open(&p->config, mine, &p->host) == TB_OK);
    meet(p);
    int error = tb_window_host_enter(p->host, p->scene->offers);
    meet(p);
    if (error == TB_OK)
        tb_window_host_settle(p->host);
    return error;
}

static void go_out(struct place *p)
{
    meet(p);
    tb_window_host_close(p->host);
}

static char byte_of(uint32_t rank, uint64_t at)
{
    return (char)(rank * 41 + at * 3 + at / 251);
}

/* Odd ones, one of them nothing. */
static uint64_t size_of(uint32_t rank)
{
    static const uint64_t sizes[RANKS] = {9, 100001, 0, 9, 1, 8193};
    return sizes[rank];
}

static void fill(const struct place *p, char *memory)
{
    for (uint64_t i = 0; i < size_of(p->rank); i++)
        memory[i] = byte_of(p->rank, i);
}

/* ---- memory of the library's ------------------------------------------------------------------------------------- */

static void find_all(struct place *p)
{
    const struct tb_window_near *near = &tb_window_host_near;
    int files = open_files();
    CHECK(go_in(p, NULL, size_of(p->rank)) == TB_OK);
    CHECK(open_files() == files);
    fill(p, tb_window_host_memory(p->host, p->rank));
    meet(p);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        const char *memory = tb_window_host_memory(p->host, rank);
        if (rank == 0 || rank == 3) {
            CHECK(memory == NULL && near->map(p->host, rank, 0, 1) == NULL && !near->reaches(p->host, rank));
            continue;
        }
        CHECK(near->reaches(p->host, rank));
        CHECK((memory != NULL) == (size_of(rank) > 0));
        CHECK(near->map(p->host, rank, 0, size_of(rank)) == memory || memory == NULL);
        for (uint64_t i = 0; i < size_of(rank); i++)
            CHECK(memory[i] == byte_of(rank, i));
        CHECK(near->map(p->host, rank, 1, size_of(rank)) == NULL);
        CHECK(near->map(p->host, rank, UINT64_MAX, 2) == NULL);
    }
    go_out(p);
}

static void allocated_memory_is_found_by_all(void **state)
{
    by_all(find_all, (struct tb_window_host_config){.allocates = true});
}

static void find_contiguous(struct place *p)
{
    CHECK(go_in(p, NULL, size_of(p->rank)) == TB_OK);
    const char *end = tb_window_host_memory(p->host, here[0]);
    CHECK((uintptr_t)end % (1u << 20) == 0);
    for (uint32_t i = 0; i < HERE; i++) {
        CHECK(tb_window_host_memory(p->host, here[i]) == end);
        end += size_of(here[i]);
    }
    go_out(p);
}

static void shared_memory_is_contiguous_if_wished(void **state)
{
    by_all(find_contiguous,
           (struct tb_window_host_config){.allocates = true, .contiguous = true, .whole = true, .alignment = 1u << 20});
}

static void find_aligned(struct place *p)
{
    CHECK(go_in(p, NULL, size_of(p->rank)) == TB_OK);
    for (uint32_t i = 0; i < HERE; i++)
        CHECK((uintptr_t)tb_window_host_memory(p->host, here[i]) % (1u << 18) == 0);
    go_out(p);
}

static void memory_of_each_rank_is_aligned_as_wished(void **state)
{
    by_all(find_aligned, (struct tb_window_host_config){.allocates = true, .alignment = 1u << 18});
}

/* One rank asks for more than there can be: it alone learns that, and nothing is left open. */
static void ask_for_too_much(struct place *p)
{
    struct tb_window_offer offer = {.size = p->rank == 2 ? INT64_MAX : 1};
    int files = open_files();
    CHECK(tb_window_host_open(&p->config, &offer, &p->host) == (p->rank == 2 ? TB_ERR_MEMORY : TB_OK));
    CHECK((p->host == NULL) == (p->rank == 2));
    tb_window_host_close(p->host);
    CHECK(open_files() == files);
}

static uint64_t asked_together;

/* Each asks for what there can be, and all together for more: everybody learns that alike. */
static void ask_for_too_much_together(struct place *p)
{
    int files = open_files();
    CHECK(go_in(p, NULL, asked_together) == TB_ERR_MEMORY);
    CHECK(strstr(tb_error_story(), "together") != NULL);
    go_out(p);
    CHECK(open_files() == files);
}

static void too_much_memory_is_refused(void **state)
{
    by_all(ask_for_too_much, (struct tb_window_host_config){.allocates = true});
    for (asked_together = 1ull << 62; !tb_window_room_has(asked_together + asked_together / 2); asked_together /= 2)
        continue;
    by_all(ask_for_too_much_together, (struct tb_window_host_config){.allocates = true});
}

/* ---- others' files ----------------------------------------------------------------------------------------------- */

/* What rank 1 gives is not to be had for rank 4, which finds something else there. */
static int go_in_misled(struct place *p, uint64_t size, int how)
{
    struct tb_window_offer *mine = &p->scene->offers[p->rank];
    *mine = (struct tb_window_offer){.size = size};
    CHECK(tb_window_host_open(&p->config, mine, &p->host) == TB_OK);
    meet(p);
    struct tb_window_offer offers[RANKS];
    memcpy(offers, p->scene->offers, sizeof offers);
    if (p->rank == 4 && how == 0)
        offers[1].token++;
    if (p->rank == 4 && how == 1)
        offers[1].process = (uint32_t)getpid();
    if (p->rank == 4 && how == 2)
        offers[1].descriptor = 0;
    if (p->rank == 4 && how == 3)
        offers[1].file++;
    int error = tb_window_host_enter(p->host, offers);
    meet(p);
    if (error == TB_OK)
        tb_window_host_settle(p->host);
    return error;
}

static void be_misled(struct place *p)
{
    for (int how = 0; how < 4; how++) {
        CHECK(go_in_misled(p, size_of(p->rank), how) == TB_OK);
        char *memory = tb_window_host_memory(p->host, p->rank);
        fill(p, memory);
        meet(p);
        for (uint32_t i = 0; i < HERE; i++) {
            bool found = here[i] == p->rank || (here[i] != 4 && p->rank != 4);
            CHECK((tb_window_host_memory(p->host, here[i]) != NULL) == (found && size_of(here[i]) > 0));
            CHECK((tb_window_host_near.map(p->host, here[i], 0, 0) != NULL) == found);
        }
        tb_window_host_near.enter(p->host, p->rank);
        tb_window_host_near.leave(p->host, p->rank);
        go_out(p);
    }
}

static void one_that_cannot_share_has_memory_of_its_own(void **state)
{
    by_all(be_misled, (struct tb_window_host_config){.allocates = true});
}

static void be_misled_in_vain(struct place *p)
{
    CHECK(go_in_misled(p, 10, 0) == (p->rank == 4 ? TB_ERR_FORBIDDEN : TB_OK));
    go_out(p);
}

static void where_all_must_share_it_is_an_error(void **state)
{
    by_all(be_misled_in_vain, (struct tb_window_host_config){.allocates = true, .whole = true});
}

/* Reads or writes one piece of a rank's memory. */
static int read_piece(struct place *p, uint32_t rank, uint64_t at, struct tb_spans *into, uint64_t length)
{
    struct tb_spans there = tb_spans_of((void *)(uintptr_t)at, length);
    return tb_window_host_near.read(p->host, rank, &there, into, length);
}

static int write_piece(struct place *p, uint32_t rank, uint64_t at, struct tb_spans *from, uint64_t length)
{
    struct tb_spans there = tb_spans_of((void *)(uintptr_t)at, length);
    return tb_window_host_near.write(p->host, rank, &there, from, length);
}

/* ---- memory of the program's ------------------------------------------------------------------------------------- */

/* Rank 1 is written to by all others, each has its own bytes there. */
static void copy_across(struct place *p)
{
    const struct tb_window_near *near = &tb_window_host_near;
    char *own = calloc(1, 1000), back[100], mine[100];
    CHECK(own != NULL && go_in(p, own, 1000) == TB_OK);
    CHECK(near->map(p->host, p->rank, 10, 990) == own + 10);
    if (p->rank != 1) {
        struct tb_spans from = tb_spans_of(mine, sizeof mine), into = tb_spans_of(back, sizeof back);
        memset(mine, (int)p->rank, sizeof mine);
        CHECK(near->map(p->host, 1, 0, 1) == NULL);
        int error = write_piece(p, 1, p->rank * 100, &from, sizeof mine);
        CHECK((error == TB_OK) == near->reaches(p->host, 1) && !near->reaches(p->host, 0));
        if (error == TB_AGAIN) { /* this machine forbids it, and always the same */
            CHECK(from.left == sizeof mine && read_piece(p, 1, 0, &into, 1) == TB_AGAIN);
        } else {
            CHECK(error == TB_OK && read_piece(p, 1, p->rank * 100, &into, sizeof back) == TB_OK);
            CHECK(memcmp(back, mine, sizeof back) == 0);
            into = tb_spans_of(back, sizeof back);
            CHECK(read_piece(p, 1, 901, &into, sizeof back) == TB_ERR_ARGUMENT && into.left == sizeof back);
            CHECK(read_piece(p, 1, UINT64_MAX - 10, &into, sizeof back) == TB_ERR_ARGUMENT);
        }
        from = tb_spans_of(mine, sizeof mine);
        CHECK(write_piece(p, 0, 0, &from, sizeof mine) == TB_AGAIN);
    }
    meet(p);
    for (uint32_t rank = 2; rank < RANKS && p->rank == 1 && own[rank * 100] != 0; rank++)
        for (uint32_t i = 0; i < 100; i++)
            CHECK(own[rank * 100 + i] == (char)rank);
    go_out(p);
    free(own);
}

static void memory_of_the_program_is_copied_across(void **state)
{
    by_all(copy_across, (struct tb_window_host_config){.whole = true});
}

/* 100 pieces of 3 bytes there are 150 of 2 bytes here, more than one call of the kernel takes. */
static void copy_pieces(struct place *p)
{
    const struct tb_window_near *near = &tb_window_host_near;
    struct tb_type *threes, *twos;
    unsigned char *own = calloc(1, 700), mine[600];
    CHECK(own != NULL && tb_type_vector(100, 3, 7, &tb_type_byte, false, &threes) == TB_OK);
    CHECK(tb_type_vector(150, 2, 4, &tb_type_byte, false, &twos) == TB_OK);
    CHECK(go_in(p, own, 700) == TB_OK);
    for (uint32_t i = 0; i < sizeof mine; i++)
        mine[i] = (unsigned char)(i % 4 < 2 ? i / 4 * 2 + i % 4 : 255);
    if (p->rank == 4 && near->reaches(p->host, 2)) {
        struct tb_spans there, own_side;
        tb_buffer_spans(&(struct tb_buffer){NULL, 1, threes}, 0, 300, &there);
        tb_buffer_spans(&(struct tb_buffer){mine, 1, twos}, 0, 300, &own_side);
        CHECK(near->write(p->host, 2, &there, &own_side, 300) == TB_OK && there.left == 0 && own_side.left == 0);
        memset(mine, 0, sizeof mine);
        tb_buffer_spans(&(struct tb_buffer){NULL, 1, threes}, 0, 300, &there);
        tb_buffer_spans(&(struct tb_buffer){mine, 1, twos}, 0, 300, &own_side);
        CHECK(near->read(p->host, 2, &there, &own_side, 300) == TB_OK);
        for (uint32_t i = 0; i < sizeof mine; i++)
            CHECK(mine[i] == (i % 4 < 2 ? (unsigned char)(i / 4 * 2 + i % 4) : 0));
        /* Its last piece is outside: nothing is copied at all. */
        tb_buffer_spans(&(struct tb_buffer){(void *)5, 1, threes}, 0, 300, &there);
        tb_buffer_spans(&(struct tb_buffer){mine, 1, twos}, 0, 300, &own_side);
        CHECK(near->write(p->host, 2, &there, &own_side, 300) == TB_ERR_ARGUMENT && own_side.left == 300);
    }
    meet(p);
    for (uint32_t i = 0; i < 700 && p->rank == 2 && near->reaches(p->host, 4); i++)
        CHECK(own[i] == (i % 7 < 3 ? (unsigned char)(i / 7 * 3 + i % 7) : 0));
    go_out(p);
    tb_type_release(threes);
    tb_type_release(twos);
    free(own);
}

static void pieces_are_copied_together(void **state)
{
    by_all(copy_pieces, (struct tb_window_host_config){.whole = true});
}

/* Of a dynamic window what the rank has attached can be copied, by its address, and nothing else. */
static void copy_attached(struct place *p)
{
    const struct tb_window_near *near = &tb_window_host_near;
    static uint64_t own[2];
    uint32_t other = p->rank == 1 ? 2 : 1;
    uint64_t at = (uintptr_t)own, got = 0; /* all processes have it at the same address */
    struct tb_spans into = tb_spans_of(&got, sizeof got);
    CHECK(go_in(p, NULL, 0) == TB_OK);
    CHECK(near->map(p->host, other, at, 8) == NULL && near->map(p->host, p->rank, at, 8) == NULL);
    CHECK(read_piece(p, other, at, &into, 8) == TB_AGAIN);
    own[0] = p->rank;
    meet(p);
    near->attach(p->host, at, at + 8);
    meet(p);
    int error = read_piece(p, other, at, &into, 8);
    CHECK(error == TB_AGAIN || (error == TB_OK && got == other)); /* the machine may forbid it */
    into = tb_spans_of(&got, sizeof got);
    CHECK(read_piece(p, other, at + 1, &into, 8) == TB_AGAIN);
    meet(p);
    near->detach(p->host, at);
    meet(p);
    CHECK(read_piece(p, other, at, &into, 8) == TB_AGAIN);
    go_out(p);
}

static void attached_memory_is_copied_across(void **state)
{
    by_all(copy_attached, (struct tb_window_host_config){.dynamic = true});
}

/* ---- combining --------------------------------------------------------------------------------------------------- */

#define ROUNDS 20000

static void combine(struct place *p)
{
    CHECK(go_in(p, NULL, sizeof(uint64_t)) == TB_OK);
    volatile uint64_t *sum = tb_window_host_memory(p->host, 5);
    for (int i = 0; i < ROUNDS; i++) {
        tb_window_host_near.enter(p->host, 5);
        *sum = *sum + p->rank;
        tb_window_host_near.leave(p->host, 5);
    }
    meet(p);
    CHECK(*sum == (uint64_t)ROUNDS * (1 + 2 + 4 + 5));
    go_out(p);
}

static void who_combines_keeps_others_out(void **state)
{
    by_all(combine, (struct tb_window_host_config){.allocates = true});
}

/* Each holds the lock of rank 5 alone for a while, and looks at others' only where they are here. */
static void lock(struct place *p)
{
    const struct tb_window_near *near = &tb_window_host_near;
    uint32_t ticket, wake;
    CHECK(go_in(p, NULL, sizeof(uint64_t)) == TB_OK);
    CHECK(near->queue(p->host, 0, false, &ticket) == TB_AGAIN && near->queue(p->host, 3, false, &ticket) == TB_AGAIN);
    volatile uint64_t *sum = tb_window_host_memory(p->host, 5);
    for (int i = 0; i < ROUNDS / 400; i++) {
        CHECK(near->queue(p->host, 5, false, &ticket) == TB_OK);
        while (!near->turn(p->host, 5, ticket, true, false, &wake))
            usleep(20);
        CHECK(wake == TB_ANY_RANK);
        *sum = *sum + p->rank;
        wake = near->unlock(p->host, 5, true);
        CHECK(wake == TB_ANY_RANK || wake == 1 || wake == 2 || wake == 4 || wake == 5);
    }
    meet(p);
    CHECK(*sum == (uint64_t)ROUNDS / 400 * (1 + 2 + 4 + 5));
    go_out(p);
}

static void who_locks_keeps_others_out(void **state)
{
    by_all(lock, (struct tb_window_host_config){.allocates = true});
}

/* ---- who dies ---------------------------------------------------------------------------------------------------- */

/* Rank 1 dies while it combines with what rank 5 has, and while it has the lock of rank 4: the first is taken from it,
 * the second is known not to be had any more. */
static void die_inside(struct place *p)
{
    const struct tb_window_near *near = &tb_window_host_near;
    uint32_t ticket, wake;
    CHECK(go_in(p, NULL, sizeof(uint64_t)) == TB_OK);
    if (p->rank == 1) {
        near->enter(p->host, 5);
        CHECK(near->queue(p->host, 4, false, &ticket) == TB_OK && near->turn(p->host, 4, ticket, true, false, &wake));
        CHECK(near->queue(p->host, 2, false, &ticket) == TB_OK && near->turn(p->host, 2, ticket, true, false, &wake));
        near->unlock(p->host, 2, true);
    }
    meet(p);
    if (p->rank == 1)
        _exit(0);
    near->enter(p->host, 5);
    volatile uint64_t *sum = tb_window_host_memory(p->host, 5);
    *sum = *sum + 1;
    near->leave(p->host, 5);
    CHECK(near->queue(p->host, 4, false, &ticket) == TB_OK && !near->turn(p->host, 4, ticket, false, false, &wake));
    CHECK(near->blocker(p->host, 4) == TB_ANY_RANK); /* nobody has said so yet */
    near->bury(p->host, 1);
    near->bury(p->host, 0); /* which is not here */
    CHECK(near->blocker(p->host, 4) == 1);
    CHECK(near->blocker(p->host, 2) == TB_ANY_RANK && near->blocker(p->host, 0) == TB_ANY_RANK);
    near->pass(p->host, 4, ticket);
    while (*sum < HERE - 1) /* the alarm ends it */
        usleep(1000);
    tb_window_host_close(p->host);
}

static void nobody_waits_for_the_dead(void **state)
{
    by_all(die_inside, (struct tb_window_host_config){.allocates = true});
}

/* ---- nobody else ------------------------------------------------------------------------------------------------- */

static void one_rank_alone_has_its_memory(void **state)
{
    const uint32_t only = 2;
    struct tb_window_host_config config = {
        .size = 3, .rank = 2, .locals = &only, .local_count = 1, .allocates = true, .whole = true, .contiguous = true};
    struct tb_window_offer offers[3] = {{.size = 5}, {.size = 6}, {.size = 7}};
    struct tb_window_host *host;
    assert_int_equal(tb_window_host_open(&config, &offers[2], &host), TB_OK);
    assert_int_equal(offers[2].descriptor, -1);
    assert_int_equal(tb_window_host_enter(host, offers), TB_OK);
    tb_window_host_settle(host);
    char *memory = tb_window_host_memory(host, 2);
    assert_non_null(memory);
    assert_null(tb_window_host_memory(host, 0));
    memset(memory, 1, 7);
    tb_window_host_near.enter(host, 2);
    tb_window_host_near.leave(host, 2);
    assert_ptr_equal(tb_window_host_near.map(host, 2, 7, 0), memory + 7);
    tb_window_host_close(host);
    tb_window_host_close(NULL);
}

int main(void)
{
    if (tb_engine_load_params() != TB_OK)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocated_memory_is_found_by_all),
        cmocka_unit_test(shared_memory_is_contiguous_if_wished),
        cmocka_unit_test(memory_of_each_rank_is_aligned_as_wished),
        cmocka_unit_test(too_much_memory_is_refused),
        cmocka_unit_test(one_that_cannot_share_has_memory_of_its_own),
        cmocka_unit_test(where_all_must_share_it_is_an_error),
        cmocka_unit_test(memory_of_the_program_is_copied_across),
        cmocka_unit_test(pieces_are_copied_together),
        cmocka_unit_test(attached_memory_is_copied_across),
        cmocka_unit_test(who_combines_keeps_others_out),
        cmocka_unit_test(who_locks_keeps_others_out),
        cmocka_unit_test(nobody_waits_for_the_dead),
        cmocka_unit_test(one_rank_alone_has_its_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

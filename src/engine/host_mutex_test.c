/* A lock of processes: one at a time is inside, and one that has died inside is in nobody's way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/host_mutex.h"

#define PROCESSES 4u
#define ROUNDS    20000u

struct scene {
    _Atomic uint32_t mutex;
    _Atomic uint32_t processes[PROCESSES];
    _Atomic uint32_t wrong; /* how often one was found dead that is not */
    uint64_t sum;
};

static bool is_dead(void *context, uint32_t who)
{
    struct scene *s = context;
    bool dead = tb_host_mutex_is_dead(atomic_load(&s->processes[who]));
    if (dead && who != 0)
        atomic_fetch_add(&s->wrong, 1);
    return dead;
}

static void add(struct scene *s, uint32_t who)
{
    volatile uint64_t *sum = &s->sum;
    tb_host_mutex_enter(&s->mutex, who, is_dead, s);
    uint64_t before = *sum;
    if (before % 64 == 0)
        sched_yield();
    *sum = before + 1;
    tb_host_mutex_leave(&s->mutex);
}

static pid_t start(struct scene *s, uint32_t who, uint32_t rounds, bool dies)
{
    pid_t child = fork();
    assert_true(child >= 0);
    atomic_store(&s->processes[who], (uint32_t)(child > 0 ? child : getpid()));
    if (child > 0)
        return child;
    alarm(60);
    for (uint32_t i = 0; i < rounds; i++)
        add(s, who);
    if (dies)
        tb_host_mutex_enter(&s->mutex, who, is_dead, s);
    _exit(0);
}

static struct scene *scene_make(void)
{
    struct scene *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(s, MAP_FAILED);
    return s;
}

static void end(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void one_at_a_time_is_inside(void **state)
{
    struct scene *s = scene_make();
    pid_t children[PROCESSES];
    for (uint32_t i = 0; i < PROCESSES; i++)
        children[i] = start(s, i, ROUNDS, false);
    for (uint32_t i = 0; i < PROCESSES; i++)
        end(children[i]);
    assert_int_equal(s->sum, PROCESSES * ROUNDS);
    assert_int_equal(s->wrong, 0);
    assert_int_equal(s->mutex, 0);
    munmap(s, sizeof *s);
}

/* Nobody has asked yet how the first one ended; or somebody has, and nothing is left of it. */
static void one_that_has_died_inside_is_in_nobodys_way(void **state)
{
    for (int asked = 0; asked < 2; asked++) {
        struct scene *s = scene_make();
        pid_t children[PROCESSES];
        siginfo_t info;
        children[0] = start(s, 0, 1, true);
        assert_int_equal(waitid(P_PID, (id_t)children[0], &info, WEXITED | WNOWAIT), 0);
        if (asked)
            end(children[0]);
        assert_int_equal(s->mutex, 1);
        for (uint32_t i = 1; i < PROCESSES; i++)
            children[i] = start(s, i, 100, false);
        for (uint32_t i = 1; i < PROCESSES; i++)
            end(children[i]);
        if (!asked)
            end(children[0]);
        assert_int_equal(s->sum, 1 + 100 * (PROCESSES - 1));
        assert_int_equal(s->wrong, 0);
        munmap(s, sizeof *s);
    }
}

static void the_living_are_not_dead(void **state)
{
    assert_false(tb_host_mutex_is_dead((uint32_t)getpid()));
    assert_false(tb_host_mutex_is_dead(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_at_a_time_is_inside),
        cmocka_unit_test(one_that_has_died_inside_is_in_nobodys_way),
        cmocka_unit_test(the_living_are_not_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A lock for an owner and a visitor: that they never are inside at the same time, that neither misses the other, with
 * the kernel's fences and without them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "engine/biased_lock.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VISITS  1000u  /* that are tried */
#define PASSES  20000u /* of the owner, at least */
#define SECONDS 300    /* after which a test that hangs is ended */

/* Everything but the lock and the flags that say so is touched only inside. */
struct pair {
    struct tb_biased_lock lock;
    const void *inside; /* who is */
    uint64_t owned, visited;
    _Atomic bool stale; /* the visitor was not let in, and counts on the owner */
    _Atomic bool over;
    uint64_t refused;
    _Atomic uint32_t wrong;
};

static void rest(long ns)
{
    struct timespec t = {.tv_nsec = ns};
    nanosleep(&t, NULL);
}

/* Works inside for a moment, calling in again as callbacks do. */
static void work(struct pair *p, const void *who, uint64_t *count)
{
    p->wrong += p->inside != NULL;
    p->inside = who;
    bool first = tb_biased_lock_enter(&p->lock);
    p->wrong += first;
    ++*count;
    bool last = tb_biased_lock_is_last(&p->lock);
    p->wrong += last;
    p->wrong += p->inside != who;
    p->inside = NULL;
}

/* Tries to come in; if it cannot, it waits until the owner has seen that it wanted to. */
static void *visitor_run(void *argument)
{
    struct pair *p = argument;
    tb_biased_lock_introduce(&p->lock);
    for (uint32_t i = 0; i < VISITS; i++) {
        atomic_store_explicit(&p->stale, true, memory_order_relaxed);
        if (tb_biased_lock_visit(&p->lock)) {
            work(p, &p->visited, &p->visited);
            atomic_store_explicit(&p->stale, false, memory_order_relaxed);
            tb_biased_lock_depart(&p->lock);
        } else {
            p->refused++;
            while (atomic_load_explicit(&p->stale, memory_order_relaxed)) /* or the alarm ends it */
                sched_yield();
        }
        if (i % 16 == 0)
            rest(1000);
    }
    p->over = true;
    return NULL;
}

/* Until the visitor has had its turns. What the visitor wants after the owner has looked for the last time it gets by
 * itself: then it is let in. So the owner looks once behind each leave, as the engine does, and otherwise goes away. */
static void *owner_run(void *argument)
{
    struct pair *p = argument;
    for (uint64_t i = 0; i < PASSES || !p->over; i++) {
        bool first = tb_biased_lock_enter(&p->lock);
        p->wrong += !first;
        work(p, &p->owned, &p->owned);
        bool last = tb_biased_lock_is_last(&p->lock);
        p->wrong += !last;
        tb_biased_lock_leave(&p->lock);
        if (atomic_load_explicit(&p->stale, memory_order_relaxed)) {
            tb_biased_lock_enter(&p->lock);
            atomic_store_explicit(&p->stale, false, memory_order_relaxed);
            tb_biased_lock_leave(&p->lock);
        }
        if (i % 64 == 0)
            rest(1000); /* outside */
    }
    return NULL;
}

static void pair_run(struct pair *p)
{
    pthread_t visitor;
    TB_ASSERT(pthread_create(&visitor, NULL, visitor_run, p) == 0);
    owner_run(p);
    TB_ASSERT(pthread_join(visitor, NULL) == 0);
}

static void pair_check(const struct pair *p)
{
    TB_ASSERT(p->wrong == 0);
    TB_ASSERT(p->visited + p->refused == VISITS);
    TB_ASSERT(p->visited > 0);
    TB_ASSERT(p->owned >= PASSES);
    TB_ASSERT(p->lock.depth == 0 && !p->lock.inside && !p->lock.claimed && !p->lock.blocked);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void both_pass(void **state)
{
    for (int fenced = 0; fenced < 2; fenced++) {
        struct pair p = {.owned = 0};
        tb_biased_lock_open(&p.lock);
        p.lock.fenced = p.lock.fenced || fenced;
        pair_run(&p);
        pair_check(&p);
        tb_biased_lock_close(&p.lock);
    }
}

/* As a container does, or a program that guards itself: the call is answered with EPERM. */
static void forbid_membarrier(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    TB_ASSERT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    TB_ASSERT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* The kernel never fences, or stops to when the lock is in use. */
static void both_pass_without_the_kernel(void **state)
{
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
        skip(); /* nothing can be forbidden where processes of another kind of machine are emulated */
    for (int late = 0; late < 2; late++) {
        pid_t child = fork();
        if (child == 0) {
            struct pair p = {.owned = 0};
            alarm(SECONDS);
            if (!late)
                forbid_membarrier();
            tb_biased_lock_open(&p.lock);
            TB_ASSERT(late || p.lock.fenced);
            if (late)
                forbid_membarrier();
            pair_run(&p);
            TB_ASSERT(p.lock.fenced);
            pair_check(&p);
            _exit(0);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

static void the_owner_may_enter_again(void **state)
{
    struct tb_biased_lock lock;
    tb_biased_lock_open(&lock);
    for (int round = 0; round < 3; round++) {
        assert_true(tb_biased_lock_enter(&lock));
        for (int i = 0; i < 5; i++)
            assert_false(tb_biased_lock_enter(&lock));
        assert_true(tb_biased_lock_is_busy(&lock));
        for (int i = 0; i < 5; i++)
            assert_false(tb_biased_lock_is_last(&lock));
        assert_true(tb_biased_lock_is_busy(&lock));
        assert_true(tb_biased_lock_is_last(&lock));
        tb_biased_lock_leave(&lock);
        assert_false(tb_biased_lock_is_busy(&lock));
    }
    tb_biased_lock_close(&lock);
}

static void *guest_run(void *argument)
{
    struct pair *p = argument;
    tb_biased_lock_introduce(&p->lock);
    bool inside = tb_biased_lock_visit(&p->lock);
    p->over = true;
    if (!inside)
        return p;
    while (!tb_biased_lock_is_wanted(&p->lock)) /* or the alarm ends it */
        sched_yield();
    rest(5000000); /* so that an owner who does not wait is seen */
    work(p, &p->visited, &p->visited);
    tb_biased_lock_depart(&p->lock);
    return NULL;
}

/* It says so, and is inside when the visitor has gone. */
static void the_owner_waits(void **state)
{
    struct pair p = {.owned = 0};
    pthread_t guest;
    void *refused;
    tb_biased_lock_open(&p.lock);
    pthread_create(&guest, NULL, guest_run, &p);
    while (!p.over)
        sched_yield();
    assert_false(tb_biased_lock_is_wanted(&p.lock));
    assert_true(tb_biased_lock_enter(&p.lock));
    assert_int_equal(p.visited, 1);
    work(&p, &p.owned, &p.owned);
    assert_true(tb_biased_lock_is_last(&p.lock));
    tb_biased_lock_leave(&p.lock);
    pthread_join(guest, &refused);
    assert_null(refused);
    assert_int_equal(p.wrong, 0);
    tb_biased_lock_close(&p.lock);
}

static void *refused_run(void *argument)
{
    struct pair *p = argument;
    tb_biased_lock_introduce(&p->lock);
    return tb_biased_lock_visit(&p->lock) ? p : NULL;
}

static void the_visitor_is_refused(void **state)
{
    struct pair p = {.owned = 0};
    pthread_t guest;
    void *let_in;
    tb_biased_lock_open(&p.lock);
    assert_true(tb_biased_lock_enter(&p.lock));
    pthread_create(&guest, NULL, refused_run, &p);
    pthread_join(guest, &let_in);
    assert_null(let_in);
    assert_true(tb_biased_lock_is_last(&p.lock));
    tb_biased_lock_leave(&p.lock);
    assert_true(tb_biased_lock_visit(&p.lock)); /* it is free again */
    tb_biased_lock_depart(&p.lock);
    tb_biased_lock_close(&p.lock);
}

/* A third thread looks at what the visitor changes, while the owner comes and goes. */
static void *third_run(void *argument)
{
    struct pair *p = argument;
    uint64_t last = 0;
    while (!p->over) {
        tb_biased_lock_keep_out(&p->lock);
        p->wrong += p->visited < last;
        last = p->visited;
        tb_biased_lock_let_in(&p->lock);
        rest(20000);
    }
    return NULL;
}

static void a_third_thread_looks(void **state)
{
    struct pair p = {.owned = 0};
    pthread_t third;
    tb_biased_lock_open(&p.lock);
    pthread_create(&third, NULL, third_run, &p);
    pair_run(&p);
    pthread_join(third, NULL);
    pair_check(&p);
    tb_biased_lock_close(&p.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_pass),
        cmocka_unit_test(both_pass_without_the_kernel),
        cmocka_unit_test(the_owner_may_enter_again),
        cmocka_unit_test(the_owner_waits),
        cmocka_unit_test(the_visitor_is_refused),
        cmocka_unit_test(a_third_thread_looks),
    };
    alarm(SECONDS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

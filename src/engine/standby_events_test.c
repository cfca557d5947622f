/* What happens while the program computes, besides messages between two processes: timers and descriptors of drivers,
 * what the agent says, collectives, ranks of the same host. */
#include "engine/standby_test.h"

#define RANKS 2
#include "engine/host_test.h"

#include <fcntl.h>
#include <stdio.h>

/* ---- a driver ---------------------------------------------------------------------------------------------------- */

/* One that waits for a time or a descriptor, as long as the test lets it have something on its way. */
static struct {
    struct tb_list on_its_way;
    _Atomic uint64_t due;
    _Atomic int descriptor;
    _Atomic uint32_t advanced; /* when it was time */
    _Atomic bool by_another;   /* than the thread of the test */
    pthread_t here;
} clockwork;

static int clockwork_open(struct tb_engine *e, const struct tb_channel_config *config, void **state)
{
    return TB_OK;
}

/* Is due once; then not before it is told a new time. */
static int clockwork_advance(struct tb_list *active, bool thorough)
{
    uint64_t rings;
    bool due = tb_clock_now_real() >= clockwork.due;
    bool rung = clockwork.descriptor >= 0 && read(clockwork.descriptor, &rings, sizeof rings) > 0;
    if (!due && !rung)
        return 0;
    clockwork.due = TB_NEVER;
    clockwork.by_another = pthread_equal(pthread_self(), clockwork.here) == 0;
    clockwork.advanced++;
    return 1;
}

static int clockwork_descriptor(const struct tb_list *active)
{
    return clockwork.descriptor;
}

static uint64_t clockwork_deadline(const struct tb_list *active)
{
    return clockwork.due;
}

static const struct tb_driver_table willing = {.name = "willing",
                                               .standby = true,
                                               .open = clockwork_open,
                                               .advance = clockwork_advance,
                                               .descriptor = clockwork_descriptor,
                                               .deadline = clockwork_deadline};
static const struct tb_driver_table unwilling = {.name = "unwilling",
                                                 .open = clockwork_open,
                                                 .advance = clockwork_advance,
                                                 .descriptor = clockwork_descriptor,
                                                 .deadline = clockwork_deadline};

/* ---- an engine without a network --------------------------------------------------------------------------------- */

static struct {
    int bell; /* that the agent rings */
    struct tb_engine *engine;
    _Atomic uint32_t heard;
} agent;

/* The other process is gone, it says. */
static int agent_ready(void *context)
{
    uint64_t rings;
    if (read(agent.bell, &rings, sizeof rings) < 0)
        return TB_OK;
    tb_engine_lost(agent.engine, (struct tb_proc){7, 1}, tb_error(TB_ERR_PEER, "it was lost in this test"));
    agent.heard++;
    return TB_OK;
}

static struct tb_engine *lonely_open(const struct tb_driver_table *const *drivers, bool threaded,
                                     struct tb_channel **channel)
{
    struct tb_engine_config config = {.transport = {.self = {7, 0}},
                                      .processes = 2,
                                      .threaded = threaded,
                                      .control = agent.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                      .control_ready = agent_ready,
                                      .drivers = drivers};
    struct tb_channel_config c = {.context = LOOP_CONTEXT, .size = 2};
    struct tb_engine *e;
    assert_int_equal(tb_param_load(), TB_OK);
    assert_int_equal(tb_engine_open(&config, &e), TB_OK);
    assert_int_equal(tb_channel_open(e, &c, channel), TB_OK);
    assert_int_equal(tb_engine_stand_by(e), TB_OK);
    assert_int_equal(tb_engine_watch(e, TB_STANDBY_NETWORK), TB_OK);
    agent.engine = e;
    agent.heard = 0;
    return e;
}

static void lonely_close(struct tb_engine *e, struct tb_channel *channel)
{
    tb_engine_stand_down(e);
    tb_channel_close(channel);
    tb_engine_close(e);
    close(agent.bell);
}

static struct tb_engine *clockwork_begin(const struct tb_driver_table *table, bool threaded, int descriptor,
                                         struct tb_channel **channel)
{
    static const struct tb_driver_table *drivers[2];
    drivers[0] = table;
    struct tb_engine *e = lonely_open(drivers, threaded, channel);
    clockwork.due = TB_NEVER;
    clockwork.descriptor = descriptor;
    clockwork.advanced = 0;
    clockwork.by_another = false;
    clockwork.here = pthread_self();
    tb_engine_lock(e);
    tb_list_append(&e->driving.active[0], &clockwork.on_its_way);
    tb_engine_stir(e);
    tb_engine_unlock(e);
    return e;
}

static void clockwork_end(struct tb_engine *e, struct tb_channel *channel)
{
    tb_engine_lock(e);
    tb_list_remove(&clockwork.on_its_way);
    tb_engine_unlock(e);
    lonely_close(e, channel);
    if (clockwork.descriptor >= 0)
        close(clockwork.descriptor);
}

static void clockwork_set(struct tb_engine *e, uint64_t ns)
{
    tb_engine_lock(e);
    clockwork.due = tb_clock_now_real() + ns;
    tb_engine_unlock(e);
}

static void advanced_by_another(uint32_t times)
{
    while (clockwork.advanced < times) /* or the alarm ends it */
        usleep(100);
    assert_true(clockwork.by_another);
}

#define MS   UINT64_C(1000000)
#define HOUR (3600000 * MS)

static void timers_are_kept(void **state)
{
    for (int threaded = 0; threaded < 2; threaded++) {
        struct tb_channel *channel;
        struct tb_engine *e = clockwork_begin(&willing, threaded != 0, -1, &channel);
        for (uint32_t i = 0; i < 20; i++) {
            if (i % 3 == 0)
                clockwork_set(e, HOUR); /* which is then set for earlier */
            uint64_t begin = tb_clock_now_real();
            clockwork_set(e, i % 4 * MS);
            advanced_by_another(i + 1);
            assert_true(tb_clock_now_real() - begin >= i % 4 * MS);
        }
        /* Set for later, it is not looked at in vain for long. */
        clockwork_set(e, 5 * MS);
        clockwork_set(e, HOUR);
        compute(A_WHILE);
        assert_int_equal(clockwork.advanced, 20);
        clockwork_end(e, channel);
    }
}

static void descriptors_are_heard(void **state)
{
    for (int threaded = 0; threaded < 2; threaded++) {
        struct tb_channel *channel;
        uint64_t one = 1;
        int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        struct tb_engine *e = clockwork_begin(&willing, threaded != 0, bell, &channel);
        for (uint32_t i = 0; i < 20; i++) {
            assert_int_equal(write(bell, &one, sizeof one), sizeof one);
            advanced_by_another(i + 1);
        }
        clockwork_end(e, channel);
    }
}

/* A file cannot be waited for: it is looked at again and again, and everything else goes on. */
static void what_cannot_be_heard_is_looked_at(void **state)
{
    struct tb_channel *channel;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    struct tb_engine *e = clockwork_begin(&willing, false, file, &channel);
    advanced_by_another(10);
    uint64_t one = 1;
    assert_int_equal(write(agent.bell, &one, sizeof one), sizeof one);
    while (agent.heard == 0)
        usleep(100);
    clockwork_end(e, channel);
}

/* Its steps may call functions of the program's. */
static void an_unwilling_driver_waits(void **state)
{
    struct tb_channel *channel;
    uint64_t one = 1;
    int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct tb_engine *e = clockwork_begin(&unwilling, false, bell, &channel);
    clockwork_set(e, 0);
    assert_int_equal(write(bell, &one, sizeof one), sizeof one);
    compute(A_WHILE);
    assert_int_equal(write(agent.bell, &one, sizeof one), sizeof one); /* which wakes the standby */
    while (agent.heard == 0)
        usleep(100);
    compute(A_WHILE);
    assert_int_equal(clockwork.advanced, 0);
    tb_engine_progress(e);
    assert_int_equal(clockwork.advanced, 1);
    assert_false(clockwork.by_another);
    clockwork_end(e, channel);
}

/* ---- the agent --------------------------------------------------------------------------------------------------- */

static void *agent_rings(void *argument)
{
    uint64_t one = 1;
    usleep(20000);
    return write(agent.bell, &one, sizeof one) == sizeof one ? NULL : argument;
}

/* A process is lost while this one computes: what it waits for has ended with an error, which its next call tells. */
static void losses_are_heard_of(void **state)
{
    for (int threaded = 0; threaded < 2; threaded++) {
        struct tb_channel *channel;
        struct tb_engine *e = lonely_open(NULL, threaded != 0, &channel);
        struct tb_buffer nothing = {NULL, 0, &tb_type_byte};
        struct tb_request r = {.complete = NULL};
        pthread_t thread;
        tb_receive_post(channel, &r, &nothing, 1, 5, UINT64_MAX);
        pthread_create(&thread, NULL, agent_rings, &agent);
        while (!tb_request_done(&r)) /* computes */
            usleep(100);
        pthread_join(thread, NULL);
        tb_request_wait(&r);
        assert_int_equal(r.status.error, TB_ERR_PEER);
        assert_non_null(strstr(tb_error_story(), "it was lost in this test"));
        lonely_close(e, channel);
    }
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

static struct {
    pthread_t here;
    _Atomic uint32_t combined, completed, elsewhere;
} program;

/* An operation of the program's. */
static void combine(void *context, void *in, void *inout, int count, uintptr_t type)
{
    program.combined++;
    program.elsewhere += pthread_equal(pthread_self(), program.here) == 0;
    for (int i = 0; i < count; i++)
        ((int *)inout)[i] += ((const int *)in)[i];
}

static void completed(struct tb_request *r)
{
    program.completed++;
    program.elsewhere += pthread_equal(pthread_self(), program.here) == 0;
}

#define ITEMS 4000

/* What another rank has is received, combined, and the result is sent back. */
static struct tb_program *program_make(uint32_t rank)
{
    const struct tb_slice all = {TB_SYMBOL_OUT, 0, 1, 1}, other = {TB_SYMBOL_WORK, 0, 1, 1};
    struct tb_program *made;
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    if (rank == 0) {
        tb_builder_receive(&b, 1, 0, other);
        tb_builder_reduce(&b, other, all);
        tb_builder_send(&b, 1, 1, all);
    } else {
        tb_builder_send(&b, 0, 0, all);
        tb_builder_receive(&b, 0, 1, all);
    }
    TB_ASSERT(tb_builder_finish(&b, &made) == TB_OK);
    return made;
}

static struct tb_binding program_bind(int *data, const struct tb_op *op)
{
    const struct tb_type *number = tb_type_predefined(0x209); /* int */
    struct tb_binding binding = {
        .elements = ITEMS, .element_bytes = sizeof(int), .piece = ITEMS, .op = op, .operation = TB_OPERATION_ALLREDUCE};
    binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){data, ITEMS, number};
    binding.buffers[TB_SYMBOL_WORK] = (struct tb_buffer){NULL, 0, number};
    return binding;
}

struct side {
    struct tb_channel *channel;
    bool refuses;
    int data[ITEMS];
    int error;
    _Atomic bool over;
};

static void *side_run(void *argument)
{
    struct side *s = argument;
    struct tb_program *p = program_make(1);
    struct tb_binding binding = program_bind(s->data, NULL);
    if (s->refuses)
        tb_collective_refuse(s->channel, &binding, tb_error(TB_ERR_MEMORY, "refused in this test"));
    else
        s->error = tb_program_run(s->channel, p, &binding);
    tb_engine_flush(s->channel->engine);
    s->over = true;
    tb_program_free(p);
    return NULL;
}

static void collective_begin(struct loop_net *net, struct side *here, struct side *there, const struct tb_op **op)
{
    duo_open(net, false);
    watch(net);
    program.here = pthread_self();
    program.combined = program.completed = program.elsewhere = 0;
    assert_int_equal(tb_op_create(combine, NULL, NULL, true, op), TB_OK);
    for (int i = 0; i < ITEMS; i++) {
        here->data[i] = i;
        there->data[i] = 1000;
    }
    there->channel = net->channels[1];
    there->over = false;
}

/* The message comes while the program computes; what is made of it waits for the program's thread. */
static void functions_of_the_program_are_put_off(void **state)
{
    static struct side here, there;
    struct loop_net net;
    const struct tb_op *op;
    pthread_t partner;
    collective_begin(&net, &here, &there, &op);
    struct tb_program *p = program_make(0);
    struct tb_binding binding = program_bind(here.data, op);
    struct tb_request r = {.complete = completed};
    there.refuses = false;
    tb_program_post(net.channels[0], &r, p, &binding);
    pthread_create(&partner, NULL, side_run, &there);
    while (rounds_of(net.engines[0]) == 0)
        usleep(100);
    compute(A_WHILE);
    assert_int_equal(program.combined, 0);
    assert_false(tb_request_done(&r));
    tb_request_wait(&r);
    pthread_join(partner, NULL);
    assert_true(program.combined > 0);
    assert_int_equal(program.completed, 1);
    assert_int_equal(program.elsewhere, 0);
    assert_int_equal(there.error, TB_OK);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(there.data[i], 1000 + i);
    tb_op_drop(op);
    tb_program_free(p);
    duo_close(&net);
}

/* The same with the news that another rank has given it up; and where the standby ends before. */
static void ends_of_programs_are_put_off(void **state)
{
    static struct side here, there;
    for (int ended = 0; ended < 2; ended++) {
        struct loop_net net;
        const struct tb_op *op;
        pthread_t partner;
        collective_begin(&net, &here, &there, &op);
        struct tb_program *p = program_make(0);
        struct tb_binding binding = program_bind(here.data, op);
        struct tb_request r = {.complete = completed};
        there.refuses = true;
        tb_program_post(net.channels[0], &r, p, &binding);
        pthread_create(&partner, NULL, side_run, &there);
        while (rounds_of(net.engines[0]) == 0)
            usleep(100);
        compute(A_WHILE);
        assert_int_equal(program.completed, 0);
        assert_false(tb_request_done(&r));
        if (ended) {
            tb_engine_stand_down(net.engines[0]);
            assert_true(tb_request_done(&r));
        }
        tb_request_wait(&r);
        pthread_join(partner, NULL);
        assert_true(r.status.error < 0);
        assert_int_equal(program.completed, 1);
        assert_int_equal(program.combined, 0);
        assert_int_equal(program.elsewhere, 0);
        tb_op_drop(op);
        tb_program_free(p);
        duo_close(&net);
    }
}

/* ---- this host --------------------------------------------------------------------------------------------------- */

static struct question host_question(const struct host *h, uint64_t tag, uint64_t length)
{
    return (struct question){.from = h->channels[1], .to = h->channels[0], .tag = tag, .length = length};
}

/* Ranks of the same host are heard only if somebody wants it, since they have to ring. */
static void ranks_of_the_host_are_heard_on_demand(void **state)
{
    struct host h;
    host_open(&h, RANKS);
    assert_int_equal(tb_engine_stand_by(h.engines[0]), TB_OK);
    assert_int_equal(tb_engine_watch(h.engines[0], TB_STANDBY_NETWORK), TB_OK);
    for (uint64_t i = 0; i < 3; i++) {
        struct question unheard = host_question(&h, 100 + i, 10), again = host_question(&h, 200 + i, 100000);
        question_is_ignored(&unheard);
        assert_int_equal(tb_engine_watch(h.engines[0], TB_STANDBY_HOST), TB_OK);
        for (uint64_t length = 0; length < 300000; length = length * 9 + 1) {
            struct question heard = host_question(&h, length, length);
            question_is_answered(&heard);
        }
        tb_engine_unwatch(h.engines[0], TB_STANDBY_HOST);
        question_is_ignored(&again);
    }
    tb_engine_stand_down(h.engines[0]);
    host_close(&h);
}

/* Asks when the other one has slept once more. */
static void *ask_sleeper(void *argument)
{
    struct question *q = argument;
    const uint64_t *sleeps = &q->to->engine->counters.sleeps, before = q->tag;
    while (__atomic_load_n(sleeps, __ATOMIC_RELAXED) <= before) /* or the alarm ends it */
        usleep(100);
    return question_run(q);
}

/* Whoever has slept in the library says that it is awake; then the ranks of the host would not ring. */
static void they_are_heard_after_a_sleep(void **state)
{
    struct host h;
    host_open(&h, RANKS);
    assert_int_equal(tb_engine_stand_by(h.engines[0]), TB_OK);
    assert_int_equal(tb_engine_watch(h.engines[0], TB_STANDBY_HOST), TB_OK);
    for (uint64_t i = 0; i < 20; i++) {
        struct question asleep = host_question(&h, h.engines[0]->counters.sleeps, 0);
        struct question heard = host_question(&h, UINT32_MAX + i, i * 1000);
        struct tb_buffer nothing = {NULL, 0, &tb_type_byte};
        asleep.receive.complete = NULL;
        tb_receive_post(asleep.to, &asleep.receive, &nothing, 1, asleep.tag, UINT64_MAX);
        pthread_create(&asleep.partner, NULL, ask_sleeper, &asleep);
        tb_request_wait(&asleep.receive);
        pthread_join(asleep.partner, NULL);
        question_is_answered(&heard);
    }
    tb_engine_stand_down(h.engines[0]);
    host_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_are_kept),
        cmocka_unit_test(descriptors_are_heard),
        cmocka_unit_test(what_cannot_be_heard_is_looked_at),
        cmocka_unit_test(an_unwilling_driver_waits),
        cmocka_unit_test(losses_are_heard_of),
        cmocka_unit_test(functions_of_the_program_are_put_off),
        cmocka_unit_test(ends_of_programs_are_put_off),
        cmocka_unit_test(ranks_of_the_host_are_heard_on_demand),
        cmocka_unit_test(they_are_heard_after_a_sleep),
    };
    alarm(SECONDS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

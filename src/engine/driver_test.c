/* What the engine asks of a driver, and in which order: one that writes it down stands in the second place of the
 * table, beside that for common memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/common.h"
#include "engine/engine_state.h"

#include <sys/timerfd.h>

#define RECORDER 1 /* its place in the table */

/* ---- the driver that writes down --------------------------------------------------------------------------------- */

static char record[1024];
static struct tb_list *line;  /* drives on their way, in order */
static int at_once;           /* so many more are finished when they are started */
static int outcome;           /* of the next one that is finished */
static bool others_must_know; /* of its failure */
static uint32_t allowed;      /* so many items may be finished */
static uint64_t taken;        /* places */
static bool timed;            /* nothing is finished until a while after the deadline was asked for first: */
static uint64_t due;          /* then; TB_NEVER: not asked yet */
static int bell = -1;         /* nor until this can be read, which is a while after it was asked for; -1: it is not */

struct recorded {
    struct tb_drive drive;
    struct tb_list in_line;
};
_Static_assert(sizeof(struct recorded) <= sizeof(union tb_drive_room), "there is room for it");

static __attribute__((format(printf, 1, 2))) void note(const char *format, ...)
{
    va_list list;
    size_t length = strlen(record);
    va_start(list, format);
    vsnprintf(record + length, sizeof record - length, format, list);
    va_end(list);
}

static void recorder_claim(struct tb_engine *e, uint64_t context, bool first)
{
    note("claim%s ", first ? "-first" : "");
}

static void recorder_unclaim(struct tb_engine *e, uint64_t context)
{
    note("unclaim ");
}

static int recorder_open(struct tb_engine *e, const struct tb_channel_config *config, void **state)
{
    note("open ");
    *state = config->common ? record : NULL;
    line = &e->driving.active[RECORDER];
    return TB_OK;
}

static void recorder_close(void *state)
{
    note("close ");
}

static void drive_end(struct tb_drive *d)
{
    d->error = outcome == TB_OK ? TB_OK : tb_error(outcome, "as this test wants it");
    d->done += outcome == TB_OK;
    outcome = TB_OK;
}

static bool recorder_start(struct tb_drive *d, void *state, bool idle)
{
    assert_ptr_equal(state, record);
    d->done = 0;
    note("start%u%s ", d->step->edge, idle ? "-idle" : "");
    if (at_once > 0) {
        at_once--;
        drive_end(d);
        if (tb_drive_over(d))
            return true;
    }
    tb_list_append(line, &TB_CONTAINER(d, struct recorded, drive)->in_line);
    tb_engine_stir(d->channel->engine);
    return false;
}

static bool recorder_extend(struct tb_drive *d, void *state)
{
    note("extend%u:%u ", d->step->edge, d->ready);
    return false;
}

static void recorder_stop(struct tb_drive *d, int error)
{
    note("stop%u ", d->step->edge);
    outcome = error;
}

static void recorder_reserve(void *state, struct tb_reserved *r, uint32_t places, uint32_t collective,
                             uint8_t operation)
{
    note("reserve%u ", places);
    r->first = taken;
    r->left = (1u << places) - 1;
    taken += places;
}

static void recorder_forgo(void *state, struct tb_reserved *r, uint32_t places)
{
    if (places != 0)
        note("forgo%x ", places);
}

#define SOON UINT64_C(20000000) /* ns */

static int recorder_descriptor(const struct tb_list *active)
{
    struct itimerspec at = {.it_value = {.tv_nsec = (long)SOON}}, now;
    TB_ASSERT(!tb_list_empty(active));
    if (bell >= 0 && timerfd_gettime(bell, &now) == 0 && now.it_value.tv_nsec == 0)
        TB_ASSERT(timerfd_settime(bell, 0, &at, NULL) == 0);
    return bell;
}

static uint64_t recorder_deadline(const struct tb_list *active)
{
    TB_ASSERT(!tb_list_empty(active));
    if (timed && due == TB_NEVER)
        due = tb_clock_now_real() + SOON;
    return due;
}

/* What it waits for besides frames. */
static bool recorder_is_ready(void)
{
    uint64_t rings;
    return (!timed || tb_clock_now_real() >= due) && (bell < 0 || read(bell, &rings, sizeof rings) > 0);
}

static int recorder_advance(struct tb_list *active, bool thorough)
{
    if (allowed == 0 || !recorder_is_ready())
        return 0;
    struct recorded *r = TB_CONTAINER(active->next, struct recorded, in_line);
    if (r->drive.done == r->drive.ready && outcome == TB_OK)
        return 0;
    allowed--;
    drive_end(&r->drive);
    if (tb_drive_over(&r->drive)) {
        tb_list_remove(&r->in_line);
        note("end%u ", r->drive.step->edge);
    }
    r->drive.moved(&r->drive);
    return 1;
}

static bool recorder_concerns(const struct tb_drive *d, const void *state)
{
    note("concerns%u ", d->step->edge);
    return others_must_know;
}

static void recorder_lose(void *state, const struct tb_peer *peer)
{
    note("lose%u ", peer->proc.index);
}

static void recorder_give_up(void *state, const struct tb_failure *f)
{
    note("give-up%u ", TB_MATCH_NUMBER(f->match));
}

static void recorder_hear(void *state, const struct tb_message *m)
{
    note("hear ");
}

static bool recorder_overhear(void *state, uint32_t collective, uint8_t operation, uint32_t *rank, uint8_t *theirs)
{
    return false;
}

static void recorder_describe(const struct tb_drive *d, struct tb_wait *wait)
{
    note("describe%u ", d->step->edge);
    wait->rank = 1;
    wait->state = TB_WAIT_UNCALLED;
}

static const struct tb_driver_table recorder = {.name = "recorder",
                                                .meets = true,
                                                .claim = recorder_claim,
                                                .unclaim = recorder_unclaim,
                                                .open = recorder_open,
                                                .close = recorder_close,
                                                .start = recorder_start,
                                                .reserve = recorder_reserve,
                                                .forgo = recorder_forgo,
                                                .extend = recorder_extend,
                                                .stop = recorder_stop,
                                                .advance = recorder_advance,
                                                .descriptor = recorder_descriptor,
                                                .deadline = recorder_deadline,
                                                .concerns = recorder_concerns,
                                                .lose = recorder_lose,
                                                .give_up = recorder_give_up,
                                                .hear = recorder_hear,
                                                .overhear = recorder_overhear,
                                                .describe = recorder_describe};

/* ---- one rank of two, without any transport ---------------------------------------------------------------------- */

struct stage {
    struct tb_engine *engine;
    struct tb_channel *channel;
    struct tb_program *program;
    struct tb_binding binding;
    struct tb_request request;
};

/* A program of so many composite steps, each after the one before. */
static void stage_open_in(struct stage *s, uint32_t composites, bool threaded)
{
    static const struct tb_driver_table *const drivers[] = {&tb_driver_common, &recorder, NULL};
    const struct tb_slice nothing = {.symbol = TB_SYMBOL_OUT};
    const struct tb_contract contract = {.composite = TB_COMPOSITE_BARRIER, .driver = RECORDER};
    struct tb_engine_config config = {
        .transport = {.self = {7, 0}}, .processes = 2, .threaded = threaded, .control = -1, .drivers = drivers};
    struct tb_channel_config channel = {.context = tb_context_make(0, 1, TB_PLANE_POINT), .size = 2, .common = true};
    struct tb_builder b;
    assert_int_equal(tb_param_load(), TB_OK);
    memset(s, 0, sizeof *s);
    record[0] = '\0';
    at_once = 0;
    outcome = TB_OK;
    allowed = UINT32_MAX;
    others_must_know = false;
    timed = false;
    due = TB_NEVER;
    bell = -1;
    assert_int_equal(tb_engine_open(&config, &s->engine), TB_OK);
    tb_engine_claim(s->engine, channel.context, false);
    assert_int_equal(tb_channel_open(s->engine, &channel, &s->channel), TB_OK);
    tb_builder_open(&b, 0);
    for (uint32_t i = 0; i < composites; i++) {
        uint32_t step = tb_builder_composite(&b, &contract, 0, nothing, nothing);
        if (i > 0)
            tb_builder_after(&b, step - 1);
    }
    assert_int_equal(tb_builder_finish(&b, &s->program), TB_OK);
    s->binding = (struct tb_binding){.operation = TB_OPERATION_BARRIER, .call = "MPI_Barrier"};
}

static void stage_open(struct stage *s, uint32_t composites)
{
    stage_open_in(s, composites, false);
}

static void stage_close(struct stage *s)
{
    tb_program_free(s->program);
    tb_channel_close(s->channel);
    tb_engine_close(s->engine);
}

static void stage_post(struct stage *s)
{
    tb_program_post(s->channel, &s->request, s->program, &s->binding);
}

static void stage_settle(struct stage *s)
{
    while (tb_engine_progress(s->engine) > 0) {
    }
}

static void stage_ends(struct stage *s, int error, const char *calls)
{
    stage_settle(s);
    assert_true(tb_request_done(&s->request));
    assert_int_equal(s->request.status.error, error);
    stage_close(s);
    assert_string_equal(record, calls);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void steps_are_started_in_turn(void **state)
{
    struct stage s;
    stage_open(&s, 3);
    assert_true(s.channel->driven);
    allowed = 0;
    stage_post(&s);
    stage_settle(&s);
    assert_false(tb_request_done(&s.request));
    at_once = 1; /* the second */
    allowed = 2;
    stage_ends(&s, TB_OK, "claim open reserve3 start0 end0 start1 start2 end2 close ");
}

/* Two steps of five items, the second one piece by piece after the first; between their places there is one that this
 * rank has no step for. */
static void stage_pipeline(struct stage *s)
{
    const struct tb_contract contract = {.composite = TB_COMPOSITE_BCAST, .driver = RECORDER};
    const struct tb_slice nothing = {.symbol = TB_SYMBOL_OUT}, data = {TB_SYMBOL_OUT, 0, 1, 5};
    struct tb_builder b;
    stage_open(s, 1);
    tb_program_free(s->program);
    tb_builder_open(&b, 5);
    for (uint16_t i = 0; i < 2; i++) {
        tb_builder_composite(&b, &contract, 0, data, nothing);
        tb_builder_place(&b, 2 * i);
        tb_builder_cut(&b, 1);
    }
    tb_builder_after_pieces(&b, 0);
    assert_int_equal(tb_builder_finish(&b, &s->program), TB_OK);
    s->binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){"12345", 5, &tb_type_byte};
    s->binding.elements = 5;
    s->binding.element_bytes = s->binding.piece = 1;
}

static void items_are_ready_one_by_one(void **state)
{
    struct stage s;
    stage_pipeline(&s);
    stage_post(&s);
    stage_ends(&s, TB_OK,
               "claim open reserve3 forgo2 start0 start2 extend2:2 extend2:3 extend2:4 end0 extend2:5 end2 close ");
}

static void a_failure_stops_what_never_can_be_ready(void **state)
{
    struct stage s;
    stage_pipeline(&s);
    allowed = 2;
    stage_post(&s);
    stage_settle(&s);
    outcome = TB_ERR_MISMATCH;
    allowed = 2;
    stage_ends(&s, TB_ERR_MISMATCH,
               "claim open reserve3 forgo2 start0 start2 extend2:2 end0 concerns0 stop2 end2 close ");
}

static void one_step_alone_has_no_run(void **state)
{
    struct stage s;
    stage_open(&s, 1);
    for (int i = 0; i < 2; i++) {
        at_once = i;
        assert_int_equal(tb_program_run(s.channel, s.program, &s.binding), TB_OK);
    }
    outcome = TB_ERR_MISMATCH;
    assert_int_equal(tb_program_run(s.channel, s.program, &s.binding), TB_ERR_MISMATCH);
    assert_non_null(strstr(tb_error_story(), "as this test wants it"));
    stage_close(&s);
    assert_string_equal(record, "claim open start0-idle end0 start0-idle start0-idle end0 concerns0 close ");
}

/* What has not been started never will be. */
static void a_failure_leaves_out_the_rest(void **state)
{
    for (int told = 0; told < 2; told++) {
        struct stage s;
        stage_open(&s, 4);
        at_once = 1;
        allowed = 0;
        others_must_know = told > 0;
        stage_post(&s);
        outcome = TB_ERR_MISMATCH;
        allowed = 1;
        stage_settle(&s);
        assert_int_equal(s.channel->collective->failures != NULL, told); /* the others were told */
        /* The other one, who cannot be reached, counts as lost when it is told. */
        stage_ends(&s, TB_ERR_MISMATCH,
                   told ? "claim open reserve4 start0 start1 end1 concerns1 forgoc lose1 close "
                        : "claim open reserve4 start0 start1 end1 concerns1 forgoc close ");
    }
}

static void a_refused_collective_is_left_out(void **state)
{
    struct stage s;
    stage_open(&s, 2);
    tb_collective_refuse(s.channel, &s.binding, tb_error(TB_ERR_ARGUMENT, "refused in this test"));
    s.program->steps[1].contract.driver = TB_DRIVERS_LIMIT;
    stage_post(&s);
    assert_non_null(strstr(tb_error_story(), "without a driver"));
    stage_ends(&s, TB_ERR_UNSUPPORTED, "claim open reserve1 forgo1 reserve2 forgo3 lose1 close ");
}

static void losses_and_failures_are_told(void **state)
{
    struct stage s;
    stage_open(&s, 1);
    allowed = 0;
    stage_post(&s);
    tb_engine_lost(s.engine, (struct tb_proc){7, 1}, tb_error(TB_ERR_PEER, "lost in this test"));
    stage_settle(&s);
    struct tb_failure f = {.match = tb_match_collective(5, TB_OPERATION_BARRIER, 0)};
    tb_driven_give_up(s.channel->drivers, &f);
    const struct tb_message m = {.match = tb_match_collective(0, TB_OPERATION_BCAST, 0)};
    tb_mismatch_arrived(s.channel->collective, &m);
    struct tb_wait wait;
    tb_request_describe(&s.request, &wait);
    assert_int_equal(wait.state, TB_WAIT_UNCALLED);
    assert_int_equal(wait.rank, 1);
    assert_string_equal(wait.collective, "MPI_Barrier");
    allowed = 1;
    stage_ends(&s, TB_ERR_PEER, "claim open reserve1 start0 lose1 give-up5 hear describe0 end0 close ");
}

/* A driver that has nothing for a channel carries out no step there. */
static void channels_without_a_driver(void **state)
{
    struct stage s;
    struct tb_channel *channel;
    struct tb_channel_config config = {.context = tb_context_make(0, 2, TB_PLANE_POINT), .size = 2};
    stage_open(&s, 1);
    assert_int_equal(tb_channel_open(s.engine, &config, &channel), TB_OK);
    assert_false(tb_channel_meets(channel));
    assert_true(tb_channel_meets(s.channel)); /* by whichever driver */
    assert_int_equal(tb_program_run(channel, s.program, &s.binding), TB_ERR_UNSUPPORTED);
    assert_non_null(strstr(tb_error_story(), "no driver"));
    tb_channel_close(channel);
    tb_engine_unclaim(s.engine, config.context);
    stage_close(&s);
    assert_string_equal(record, "claim open open unclaim close ");
}

/* What the recorder is to wait for. */
static void stage_await(bool rings)
{
    timed = !rings;
    bell = rings ? timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC) : -1;
    assert_true(!rings || bell >= 0);
}

/* Nothing else would end the sleep. */
static void timers_and_descriptors_end_a_sleep(void **state)
{
    for (int rings = 0; rings < 2; rings++) {
        struct stage s;
        stage_open(&s, 1);
        stage_await(rings != 0);
        uint64_t begin = tb_clock_now_real();
        assert_int_equal(tb_program_run(s.channel, s.program, &s.binding), TB_OK);
        assert_true(tb_clock_now_real() >= begin + SOON);
        assert_true(s.engine->counters.sleeps > 0);
        close(bell);
        stage_close(&s);
    }
}

struct sleeper {
    struct tb_engine *engine;
    _Atomic bool over;
};

static bool sleeper_ready(void *context)
{
    return ((struct sleeper *)context)->over;
}

static void *sleeper_run(void *context)
{
    tb_engine_wait(((struct sleeper *)context)->engine, sleeper_ready, context);
    return NULL;
}

/* A thread sleeps for something else when another one starts what has to be looked after. */
static void a_sleeper_hears_of_what_is_started(void **state)
{
    for (int rings = 0; rings < 2; rings++) {
        struct stage s;
        pthread_t thread;
        stage_open_in(&s, 1, true);
        struct sleeper sleeper = {.engine = s.engine};
        pthread_create(&thread, NULL, sleeper_run, &sleeper);
        while (__atomic_load_n(&s.engine->counters.sleeps, __ATOMIC_RELAXED) == 0)
            usleep(1000);
        stage_await(rings != 0);
        stage_post(&s);
        while (!tb_request_done(&s.request)) /* or the alarm ends it */
            usleep(1000);
        sleeper.over = true;
        tb_engine_kick(s.engine);
        pthread_join(thread, NULL);
        close(bell);
        stage_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_are_started_in_turn),
                                       cmocka_unit_test(items_are_ready_one_by_one),
                                       cmocka_unit_test(a_failure_stops_what_never_can_be_ready),
                                       cmocka_unit_test(one_step_alone_has_no_run),
                                       cmocka_unit_test(a_failure_leaves_out_the_rest),
                                       cmocka_unit_test(a_refused_collective_is_left_out),
                                       cmocka_unit_test(losses_and_failures_are_told),
                                       cmocka_unit_test(channels_without_a_driver),
                                       cmocka_unit_test(timers_and_descriptors_end_a_sleep),
                                       cmocka_unit_test(a_sleeper_hears_of_what_is_started)};
    alarm(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

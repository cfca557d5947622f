/* A standby: what it does while the program computes, and what it leaves alone. */
#include "engine/standby_test.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

/* ---- system calls, counted --------------------------------------------------------------------------------------- */

static _Atomic uint32_t wakes, settings;

int __real_epoll_wait(int epoll, struct epoll_event *events, int room, int timeout);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int room, int timeout);
int __real_epoll_ctl(int epoll, int operation, int descriptor, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int descriptor, struct epoll_event *event);
int __real_timerfd_settime(int timer, int flags, const struct itimerspec *at, struct itimerspec *before);
int __wrap_timerfd_settime(int timer, int flags, const struct itimerspec *at, struct itimerspec *before);

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int room, int timeout)
{
    int count = __real_epoll_wait(epoll, events, room, timeout);
    wakes += timeout != 0; /* transports that only look do not sleep */
    return count;
}

int __wrap_epoll_ctl(int epoll, int operation, int descriptor, struct epoll_event *event)
{
    settings++;
    return __real_epoll_ctl(epoll, operation, descriptor, event);
}

int __wrap_timerfd_settime(int timer, int flags, const struct itimerspec *at, struct itimerspec *before)
{
    settings++;
    return __real_timerfd_settime(timer, flags, at, before);
}

/* ---- who is answered --------------------------------------------------------------------------------------------- */

static void a_process_that_computes_answers(void **state)
{
    for (int threaded = 0; threaded < 2; threaded++) {
        struct loop_net net;
        duo_open(&net, threaded != 0);
        watch(&net);
        for (uint64_t length = 0; length < 300000; length = length * 7 + 1) {
            struct question q = duo_question(&net, length, length);
            question_is_answered(&q);
        }
        assert_true(rounds_of(net.engines[0]) > 0);
        duo_close(&net);
    }
}

/* Neither without a standby, nor with one that nobody watches. */
static void nobody_answers_unwatched(void **state)
{
    for (int threaded = 0; threaded < 2; threaded++) {
        struct loop_net net;
        duo_open(&net, threaded != 0);
        struct question none = duo_question(&net, 1, 10), off = duo_question(&net, 2, 20000);
        question_is_ignored(&none);
        assert_false(net.engines[0]->standby.running);
        watch(&net);
        unwatch(&net);
        question_is_ignored(&off);
        duo_close(&net);
    }
}

static void watching_is_counted(void **state)
{
    struct loop_net net;
    duo_open(&net, false);
    for (uint64_t i = 0; i < 60; i++) {
        struct question on = duo_question(&net, i, i * 100);
        watch(&net);
        watch(&net);
        unwatch(&net);
        question_is_answered(&on);
        unwatch(&net);
        if (i % 20 == 0) {
            struct question off = duo_question(&net, i, i);
            question_is_ignored(&off);
        }
    }
    watch(&net);
    tb_engine_stand_down(net.engines[0]);
    unwatch(&net); /* of one that has ended nothing becomes of it */
    loop_net_close(&net);
}

/* A thread of the program waits in the engine for something else, and does everybody's work. */
static bool is_over(void *context)
{
    return atomic_load((_Atomic bool *)context);
}

struct waiter {
    struct tb_engine *engine;
    _Atomic bool over;
};

static void *waiter_run(void *argument)
{
    struct waiter *w = argument;
    tb_engine_wait(w->engine, is_over, &w->over);
    return NULL;
}

static void threads_of_the_program_come_first(void **state)
{
    struct loop_net net;
    pthread_t thread;
    duo_open(&net, true);
    watch(&net);
    for (uint64_t i = 0; i < 10; i++) {
        struct waiter w = {.engine = net.engines[0]};
        struct question within = duo_question(&net, i, 100 + i), without = duo_question(&net, i, 9000);
        uint64_t slept = __atomic_load_n(&net.engines[0]->counters.sleeps, __ATOMIC_RELAXED);
        pthread_create(&thread, NULL, waiter_run, &w);
        while (__atomic_load_n(&net.engines[0]->counters.sleeps, __ATOMIC_RELAXED) == slept)
            usleep(100);
        uint64_t before = rounds_of(net.engines[0]);
        question_is_answered(&within);
        assert_int_equal(rounds_of(net.engines[0]), before);
        atomic_store(&w.over, true);
        tb_engine_kick(net.engines[0]);
        pthread_join(thread, NULL);
        question_is_answered(&without);
        assert_true(rounds_of(net.engines[0]) > before); /* the standby listens again */
    }
    duo_close(&net);
}

/* ---- both at a time ---------------------------------------------------------------------------------------------- */

#define BALLS 200u

/* Everything here is touched only with the engine locked. */
struct game {
    struct loop_net *net;
    bool inside;
    uint32_t received;
    uint64_t work;
    struct tb_request requests[8], answers[8];
    uint32_t in[8], out[8];
    _Atomic uint32_t wrong;
    _Atomic bool over;
};

static void ball_expect(struct game *g, uint32_t number);

/* Called by whoever has received it, the standby or the thread that plays; goes on from within the callback. */
static void ball_received(struct tb_request *r)
{
    struct game *g = r->user;
    uint32_t at = (uint32_t)(r - g->requests), number = g->in[at];
    g->wrong += g->inside || number != g->received;
    g->inside = true;
    g->received++;
    g->out[at] = number;
    struct tb_buffer answer = {&g->out[at], sizeof number, &tb_type_byte};
    tb_send_post(g->net->channels[0], &g->answers[at], &answer, 1, number, TB_MODE_STANDARD);
    g->inside = false;
    if (number + 8 < BALLS)
        ball_expect(g, number + 8);
}

static void ball_expect(struct game *g, uint32_t number)
{
    struct tb_request *r = &g->requests[number % 8];
    struct tb_buffer room = {&g->in[number % 8], sizeof g->in[0], &tb_type_byte};
    r->complete = ball_received;
    r->user = g;
    tb_receive_post(g->net->channels[0], r, &room, 1, number, UINT64_MAX);
}

/* Sends one after the other, and gets each back. */
static void *partner_play(void *argument)
{
    struct game *g = argument;
    struct tb_channel *channel = g->net->channels[1];
    for (uint32_t i = 0; i < BALLS; i++) {
        uint32_t back = UINT32_MAX;
        struct tb_buffer ball = {&i, sizeof i, &tb_type_byte}, room = {&back, sizeof back, &tb_type_byte};
        struct tb_request r = {.complete = NULL}, s = {.complete = NULL};
        tb_receive_post(channel, &r, &room, 0, i, UINT64_MAX);
        tb_send_post(channel, &s, &ball, 0, i, TB_MODE_STANDARD);
        tb_request_wait(&s);
        tb_request_wait(&r);
        g->wrong += back != i;
        if (i % 3 == 0)
            usleep(i % 200);
    }
    atomic_store(&g->over, true);
    return NULL;
}

/* Comes in, works there for a moment, calls in again, leaves. */
static void pass(struct game *g, uint64_t turn)
{
    struct tb_engine *e = g->net->engines[0];
    tb_engine_lock(e);
    g->wrong += g->inside;
    g->inside = true;
    for (uint64_t i = 0; i < turn % 4; i++) {
        tb_engine_lock(e);
        g->work++;
        tb_engine_unlock(e);
    }
    g->inside = false;
    if (turn % 1024 == 0)
        tb_engine_progress(e);
    tb_engine_unlock(e);
}

static void nobody_comes_in_beside_another(void **state)
{
    static struct game g;
    for (int fenced = 0; fenced < 2; fenced++) {
        struct loop_net net;
        pthread_t partner;
        memset(&g, 0, sizeof g);
        g.net = &net;
        duo_open(&net, false);
        net.engines[0]->standby.lock.fenced |= fenced != 0;
        for (uint32_t i = 0; i < 8; i++)
            ball_expect(&g, i);
        watch(&net);
        pthread_create(&partner, NULL, partner_play, &g);
        uint64_t turns = 0, work = 0;
        for (; turns < 200000 || !g.over; turns++) {
            pass(&g, turns);
            work += turns % 4;
            if (turns % 4096 == 0)
                usleep(2000); /* computes */
        }
        pthread_join(partner, NULL);
        tb_engine_lock(net.engines[0]);
        assert_int_equal(g.wrong, 0);
        assert_int_equal(g.received, BALLS);
        assert_int_equal(g.work, work);
        tb_engine_unlock(net.engines[0]);
        duo_close(&net);
    }
}

/* ---- it does not disturb ----------------------------------------------------------------------------------------- */

/* Neither time nor system calls: nothing happens, or only calls that change nothing for it. */
static void it_sleeps_while_nothing_happens(void **state)
{
    struct loop_net net;
    duo_open(&net, false);
    watch(&net);
    struct question q = duo_question(&net, 3, 30);
    question_is_answered(&q); /* everything is set up */
    compute(A_WHILE);
    uint32_t before = wakes, set_before = settings;
    compute(A_WHILE);
    for (int i = 0; i < 100000; i++) {
        tb_engine_lock(net.engines[0]);
        tb_engine_unlock(net.engines[0]);
    }
    assert_int_equal(wakes, before);
    assert_int_equal(settings, set_before);
    duo_close(&net);
}

#define FLOOD 200u

static void *partner_flood(void *argument)
{
    struct tb_channel *channel = argument;
    for (uint32_t i = 0; i < FLOOD; i++) {
        struct tb_buffer nothing = {NULL, 0, &tb_type_byte};
        struct tb_request s = {.complete = NULL};
        tb_send_post(channel, &s, &nothing, 0, i, TB_MODE_STANDARD);
        tb_request_wait(&s);
        usleep(i % 16 == 0 ? 3000 : 0);
    }
    return NULL;
}

/* While the program is inside, all that comes wakes it once, and a second time when it looks; the rest waits until the
 * program leaves. */
static void it_wakes_once_in_vain(void **state)
{
    struct loop_net net;
    static struct tb_request r[FLOOD];
    pthread_t partner;
    duo_open(&net, false);
    for (uint32_t i = 0; i < FLOOD; i++) {
        struct tb_buffer nothing = {NULL, 0, &tb_type_byte};
        tb_receive_post(net.channels[0], &r[i], &nothing, 1, i, UINT64_MAX);
    }
    watch(&net);
    struct question q = duo_question(&net, FLOOD, 10);
    question_is_answered(&q); /* everything is set up */
    compute(A_WHILE);
    tb_engine_lock(net.engines[0]);
    uint32_t before = wakes;
    pthread_create(&partner, NULL, partner_flood, net.channels[1]);
    pthread_join(partner, NULL);
    compute(A_WHILE);
    assert_in_range(wakes - before, 1, 3);
    assert_false(tb_request_done(&r[0]));
    tb_engine_unlock(net.engines[0]);
    while (!tb_request_done(&r[FLOOD - 1])) /* computes */
        usleep(100);
    duo_close(&net);
}

#define EXCHANGES 500u

static void *partner_exchange(void *argument)
{
    struct tb_channel *channel = argument;
    for (uint32_t i = 0; i < EXCHANGES; i++) {
        struct tb_buffer nothing = {NULL, 0, &tb_type_byte};
        struct tb_request r = {.complete = NULL}, s = {.complete = NULL};
        tb_receive_post(channel, &r, &nothing, 0, i, UINT64_MAX);
        tb_request_wait(&r);
        tb_send_post(channel, &s, &nothing, 0, i, TB_MODE_STANDARD);
        tb_request_wait(&s);
    }
    return NULL;
}

/* A process that exchanges messages all the time is not helped for each of them: twice in a millisecond at most. */
static void it_leaves_a_busy_process_alone(void **state)
{
    struct loop_net net;
    pthread_t partner;
    duo_open(&net, false);
    watch(&net);
    uint32_t before = wakes, set_before = settings;
    uint64_t begin = tb_clock_now_real();
    pthread_create(&partner, NULL, partner_exchange, net.channels[1]);
    for (uint32_t i = 0; i < EXCHANGES; i++) {
        struct tb_buffer nothing = {NULL, 0, &tb_type_byte};
        struct tb_request r = {.complete = NULL}, s = {.complete = NULL};
        tb_send_post(net.channels[0], &s, &nothing, 1, i, TB_MODE_STANDARD);
        tb_request_wait(&s);
        tb_receive_post(net.channels[0], &r, &nothing, 1, i, UINT64_MAX);
        tb_request_wait(&r);
    }
    uint64_t took = (tb_clock_now_real() - begin) / 1000000 + 1;
    uint32_t woke = wakes - before, set = settings - set_before;
    pthread_join(partner, NULL);
    assert_in_range(woke, 0, took * 3 + 10);
    assert_in_range(set, 0, took * 6 + 10);
    duo_close(&net);
}

/* ---- its end ----------------------------------------------------------------------------------------------------- */

static void it_ends_asleep_or_awake(void **state)
{
    for (uint64_t i = 0; i < 40; i++) {
        struct loop_net net;
        struct question q;
        duo_open(&net, i % 5 == 0);
        if (i % 4 > 0)
            watch(&net);
        q = duo_question(&net, i, i % 2 == 0 ? 10 : 100000);
        question_ask(&q);
        usleep((unsigned)(i * 37 % 500));
        tb_engine_stand_down(net.engines[0]);
        tb_engine_stand_down(net.engines[0]);
        question_end(&q); /* by the program's own call */
        if (i % 3 == 0) {
            assert_int_equal(tb_engine_stand_by(net.engines[0]), TB_OK);
            assert_int_equal(tb_engine_stand_by(net.engines[0]), TB_OK);
            watch(&net);
            q = duo_question(&net, i, i);
            question_is_answered(&q);
        }
        duo_close(&net);
    }
}

static int threads_of_this_process(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks != NULL && readdir(tasks) != NULL)
        count++;
    if (tasks != NULL)
        closedir(tasks);
    return count - 2; /* . and .. */
}

/* A child has no standby, and its end does not touch that of its parent. */
static void a_child_has_none(void **state)
{
    struct loop_net net;
    duo_open(&net, false);
    watch(&net);
    int before = threads_of_this_process();
    for (uint64_t i = 0; i < 10; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            _exit(threads_of_this_process() < before ? 0 : 1);
        struct question q = duo_question(&net, i, i * 1000);
        question_is_answered(&q);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    duo_close(&net);
}

/* ---- real sockets ------------------------------------------------------------------------------------------------ */

static int ask_nobody(void *context, struct tb_proc to, enum tb_stream stream)
{
    return TB_OK; /* the connections come by themselves */
}

static bool is_not_local(void *context, struct tb_proc proc)
{
    return false;
}

static void socket_engine_open(uint32_t self, const int *sockets, struct tb_engine **engine,
                               struct tb_channel **channel)
{
    static const struct tb_transport_table *const transports[] = {&tb_transport_tcp, NULL};
    struct tb_engine_config config = {.transport = {.self = {7, self}, .connect = ask_nobody, .processes = 2},
                                      .processes = 2,
                                      .transports = transports,
                                      .is_local = is_not_local,
                                      .control = -1};
    struct tb_channel_config c = {.context = LOOP_CONTEXT, .size = 2, .rank = self};
    TB_ASSERT(tb_engine_open(&config, engine) == TB_OK && tb_channel_open(*engine, &c, channel) == TB_OK);
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        TB_ASSERT(tb_engine_adopt(*engine, (struct tb_proc){7, 1 - self}, (enum tb_stream)i, sockets[i]) == TB_OK);
}

/* Asks, and ends well if it is answered with all that it has sent. */
static int other_process(const int *sockets)
{
    struct tb_engine *engine;
    struct tb_channel *channel;
    static char out[1 << 20];
    socket_engine_open(1, sockets, &engine, &channel);
    for (uint64_t length = 0; length <= sizeof out; length = length * 16 + 1) {
        struct tb_buffer buffer = {out, length, &tb_type_byte};
        struct tb_request r = {.complete = NULL};
        memset(out, (int)length + 5, length);
        tb_send_post(channel, &r, &buffer, 0, length, TB_MODE_SYNCHRONOUS);
        tb_request_wait(&r);
        if (r.status.error != TB_OK)
            return 1;
    }
    tb_engine_flush(engine);
    tb_channel_close(channel);
    tb_engine_close(engine);
    return 0;
}

#define MESSAGES 7 /* of 0, 1, 17, 273, 4369, 69905 and 1118481 bytes, of which the last is too long */

static void it_serves_real_sockets(void **state)
{
    struct tb_engine *engine;
    struct tb_channel *channel;
    static char in[MESSAGES][1 << 20];
    struct tb_request r[MESSAGES];
    int here[TB_STREAM_COUNT], there[TB_STREAM_COUNT], status = -1, count = 0;
    assert_int_equal(tb_engine_load_params(), TB_OK);
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        int both[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both), 0);
        here[i] = both[0];
        there[i] = both[1];
    }
    pid_t child = fork();
    if (child == 0)
        _exit(other_process(there));
    socket_engine_open(0, here, &engine, &channel);
    assert_int_equal(tb_engine_stand_by(engine), TB_OK);
    for (uint64_t length = 0; length <= sizeof in[0]; length = length * 16 + 1) {
        struct tb_buffer buffer = {in[count], sizeof in[count], &tb_type_byte};
        r[count].complete = NULL;
        tb_receive_post(channel, &r[count++], &buffer, 1, length, UINT64_MAX);
    }
    assert_int_equal(tb_engine_watch(engine, TB_STANDBY_NETWORK), TB_OK);
    assert_int_equal(waitpid(child, &status, 0), child); /* computes */
    assert_int_equal(status, 0);
    count = 0;
    for (uint64_t length = 0; length <= sizeof in[0]; length = length * 16 + 1, count++) {
        while (!tb_request_done(&r[count])) /* the last one may have left there, and not be here yet */
            usleep(100);
        assert_int_equal(r[count].status.bytes, length);
        for (uint64_t i = 0; i < length; i++)
            assert_int_equal(in[count][i], (char)(length + 5));
    }
    tb_engine_stand_down(engine);
    tb_channel_close(channel);
    tb_engine_close(engine);
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        close(there[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_that_computes_answers),
        cmocka_unit_test(nobody_answers_unwatched),
        cmocka_unit_test(watching_is_counted),
        cmocka_unit_test(threads_of_the_program_come_first),
        cmocka_unit_test(nobody_comes_in_beside_another),
        cmocka_unit_test(it_sleeps_while_nothing_happens),
        cmocka_unit_test(it_wakes_once_in_vain),
        cmocka_unit_test(it_leaves_a_busy_process_alone),
        cmocka_unit_test(it_ends_asleep_or_awake),
        cmocka_unit_test(a_child_has_none),
        cmocka_unit_test(it_serves_real_sockets),
    };
    alarm(SECONDS);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

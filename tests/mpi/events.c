/* Events, for tools: messages that come before their receives are told, with what they are, in order, at the end of a
 * call; too many are counted. Each rank sends to the next of a ring. */
#include "test.h"

#define MANY 3000
#define KEPT 1024 /* at most so many wait to be told */

#define OK(call) CHECK_EQUAL(call, MPI_SUCCESS)

/* What is copied of an unexpected message. */
struct message {
    int source, tag;
    MPI_Count bytes;
};

static int event = -1, calls, other_calls, losses, frees;
static long long dropped;
static MPI_Count last_time;
static MPI_T_event_registration expected_registration;
static MPI_T_event_instance old_instance;
static struct message messages[2 * MANY]; /* those of all phases */
static int phase;                         /* each has tags of its own: a neighbour may be in the next one already */

static void note(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                 void *user_data)
{
    struct message *m = &messages[calls % (2 * MANY)];
    int source = -1, tag = -1, number = -1, flag = 0;
    MPI_Count bytes = -1, time = 0;
    CHECK(user_data == &calls && registration == expected_registration, "it is called for another one");
    OK(MPI_T_event_copy(instance, m));
    OK(MPI_T_event_read(instance, 0, &source));
    OK(MPI_T_event_read(instance, 1, &tag));
    OK(MPI_T_event_read(instance, 2, &bytes));
    CHECK(source == m->source && tag == m->tag && bytes == m->bytes, "read %d, %d, %lld", source, tag,
          (long long)bytes);
    CHECK_EQUAL(MPI_T_event_read(instance, 3, &bytes), MPI_T_ERR_INVALID_INDEX);
    OK(MPI_T_event_get_timestamp(instance, &time));
    CHECK(time >= last_time, "the clock goes back");
    last_time = time;
    OK(MPI_T_event_get_source(instance, &number));
    CHECK_EQUAL(number, 0);
    MPI_Iprobe(test_previous(), m->tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE); /* anything may be called */
    old_instance = instance;
    calls++;
}

static void note_other(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                       void *user_data)
{
    other_calls++;
}

static void note_loss(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                      void *user_data)
{
    losses++;
}

static void listen_for_loss(const char *name)
{
    int index = -1;
    MPI_T_event_registration registration;
    OK(MPI_T_event_get_index(name, &index));
    OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &registration));
    OK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, note_loss));
}

static void note_dropped(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety,
                         void *user_data)
{
    CHECK_EQUAL(source, 0);
    dropped += count;
}

static void note_free(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *user_data)
{
    CHECK(user_data == &frees, "other data");
    frees++;
}

static int tag_of(int message)
{
    return phase * 10000 + 1 + message;
}

/* Messages that nobody has asked for until the last one, whose tag is the phase's first, is here. */
static void send_all(int count)
{
    static int data[MANY];
    MPI_Request *requests = test_memory((size_t)(count + 1) * sizeof *requests);
    int last = 0;
    MPI_Barrier(MPI_COMM_WORLD); /* all have looked at what was told before */
    phase++;
    for (int i = 0; i < count; i++)
        MPI_Isend(data, i % 3, MPI_INT, test_next(), tag_of(i), MPI_COMM_WORLD, &requests[i]);
    MPI_Isend(data, 1, MPI_INT, test_next(), tag_of(-1), MPI_COMM_WORLD, &requests[count]);
    MPI_Recv(&last, 1, MPI_INT, test_previous(), tag_of(-1), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) {
        int in[3];
        MPI_Recv(in, 3, MPI_INT, test_previous(), tag_of(i), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Waitall(count + 1, requests, MPI_STATUSES_IGNORE);
    free(requests);
}

/* How many of the phase were told, without the last one, which may have found its receive; in order, each once. */
static int count_told(void)
{
    int told = 0, least = 0;
    for (int i = 0; i < calls; i++) {
        const struct message *m = &messages[i];
        int number = m->tag - tag_of(0);
        if (number < 0 || number >= MANY)
            continue;
        CHECK(m->source == test_previous() && number >= least && m->bytes == number % 3 * (int)sizeof(int),
              "message %d after %d, from %d, with %lld bytes", number, least, m->source, (long long)m->bytes);
        least = number + 1;
        told++;
    }
    return told;
}

static void few(void)
{
    send_all(10);
    CHECK_EQUAL(count_told(), 10);
    CHECK_EQUAL(dropped, 0);
}

/* How many come during one call is not known, but none is told twice or forgotten. */
static void many(void)
{
    send_all(MANY);
    int told = count_told();
    CHECK(told + dropped == MANY || told + dropped == MANY + 1, "%d told, %lld dropped", told, dropped);
    CHECK(told >= KEPT - 1 || dropped == 0, "%d told, %lld dropped", told, dropped);
}

#define TELLING 11

/* Calls that wait for nothing here. */
static void call_telling(int which, MPI_Win *win)
{
    int flag = 0, index = 0;
    switch (which) {
    case 0:
        OK(MPI_Win_lock_all(0, *win));
        break;
    case 1:
        OK(MPI_Win_flush_local(test_next(), *win));
        break;
    case 2:
        OK(MPI_Win_flush_local_all(*win));
        break;
    case 3:
        OK(MPI_Win_unlock_all(*win));
        break;
    case 4:
        OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, *win));
        break;
    case 5:
        OK(MPI_Win_wait(*win));
        break;
    case 6:
        OK(MPI_Request_get_status(MPI_REQUEST_NULL, &flag, MPI_STATUS_IGNORE));
        break;
    case 7:
        OK(MPI_Request_get_status_all(0, NULL, &flag, MPI_STATUSES_IGNORE));
        break;
    case 8:
        OK(MPI_Request_get_status_any(0, NULL, &index, &flag, MPI_STATUS_IGNORE));
        break;
    case 9:
        OK(MPI_Request_get_status_some(0, NULL, &index, &flag, MPI_STATUSES_IGNORE));
        break;
    default:
        OK(MPI_Win_free(win));
        break;
    }
}

/* What has come during a call that tells nothing is told at the end of the next one that does. */
static void told_by_all(void)
{
    MPI_Win win;
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    phase++;
    for (int which = 0; which < TELLING; which++) {
        MPI_Request request;
        int data[3] = {0}, token = 0;
        MPI_Allreduce(MPI_IN_PLACE, &token, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); /* nobody is further, or is told */
        MPI_Isend(data, which % 3, MPI_INT, test_next(), tag_of(which), MPI_COMM_WORLD, &request);
        MPI_Sendrecv_replace(&token, 1, MPI_INT, test_next(), tag_of(-1), test_previous(), tag_of(-1), MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
        CHECK_EQUAL(count_told(), which);
        call_telling(which, &win);
        CHECK_EQUAL(count_told(), which + 1);
        MPI_Recv(data, 3, MPI_INT, test_previous(), tag_of(which), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void wrong(void)
{
    MPI_T_event_registration r = expected_registration;
    MPI_Info info = MPI_INFO_NULL;
    int number;
    CHECK_EQUAL(MPI_T_event_register_callback(r, (MPI_T_cb_safety)7, MPI_INFO_NULL, NULL, note), MPI_T_ERR_INVALID);
    CHECK_EQUAL(MPI_T_event_read(old_instance, 0, &number), MPI_T_ERR_INVALID_HANDLE); /* it is over */
    OK(MPI_T_event_handle_set_info(r, MPI_INFO_NULL));
    OK(MPI_T_event_handle_get_info(r, &info));
    MPI_Info_free(&info);
    OK(MPI_T_event_callback_get_info(r, MPI_T_CB_REQUIRE_NONE, &info));
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    int provided = -1;
    MPI_T_event_registration other;
    if (test_peer())
        return 0;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    OK(MPI_T_event_get_index("tombolo_unexpected_message", &event));
    OK(MPI_T_event_handle_alloc(event, NULL, MPI_INFO_NULL, &expected_registration)); /* before MPI_Init, too */
    listen_for_loss("tombolo_process_lost");
    listen_for_loss("tombolo_connection_lost");
    test_begin(&argc, &argv);
    OK(MPI_T_event_register_callback(expected_registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, NULL,
                                     note_other));
    OK(MPI_T_event_register_callback(expected_registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &calls, note));
    OK(MPI_T_event_set_dropped_handler(expected_registration, note_dropped));
    few();
    told_by_all();
    CHECK_EQUAL(other_calls, 0);
    OK(MPI_T_event_handle_alloc(event, NULL, MPI_INFO_NULL, &other));
    OK(MPI_T_event_register_callback(other, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, NULL, note_other));
    few();
    CHECK(other_calls >= 10, "the other one was told of %d", other_calls);
    OK(MPI_T_event_handle_free(other, NULL, NULL));
    many();
    wrong();
    OK(MPI_T_event_handle_free(expected_registration, &frees, note_free));
    CHECK_EQUAL(frees, 1);
    CHECK_EQUAL(MPI_T_event_handle_free(expected_registration, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    int before = calls;
    send_all(3);
    CHECK_EQUAL(calls, before);
    CHECK_EQUAL(losses, 0); /* all is well */
    OK(MPI_T_finalize());
    return test_end();
}

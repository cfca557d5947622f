/* Events of losses, in a job that goes on: ranks are killed, and all others are told once of each of them; or the
 * connection of rank 0 and the last rank is reset, and these two are told so, while all ranks live.
 *
 * usage: losses killed | reset */
#include "test.h"

#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>

#define LONG    30.0
#define MOST    64 /* ranks */
#define TAG     7
#define BYTES   300000 /* what makes for a stream of its own */
#define STREAMS 16
#define FILES   1024
#define END     80 /* of a connection, as text */

#define OK(call) CHECK_EQUAL(call, MPI_SUCCESS)

static int lost[MOST], cut[MOST]; /* how often we were told */

static bool is_rank(int process)
{
    CHECK(process >= 0 && process < test_size && process != test_rank, "process %d", process);
    return process >= 0 && process < test_size;
}

static void note_lost(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                      void *user_data)
{
    int process = -1;
    OK(MPI_T_event_copy(instance, &process));
    if (is_rank(process))
        lost[process]++;
}

static void note_cut(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                     void *user_data)
{
    struct {
        int process, error;
    } event = {-1, -1};
    OK(MPI_T_event_copy(instance, &event));
    CHECK_EQUAL(event.error, MPI_ERR_PROC_ABORTED);
    if (is_rank(event.process))
        cut[event.process]++;
}

static void listen_to(const char *name, MPI_T_event_cb_function *function)
{
    int index = -1;
    MPI_T_event_registration registration;
    OK(MPI_T_event_get_index(name, &index));
    OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &registration));
    OK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, function));
}

/* Each with each other, but for one; with a short message and a long one each way. One begins and the other answers: if
 * both asked for a connection, a second one might come after the first was reset, of which the library warns. */
static void meet_all_but(int avoided)
{
    static char data[BYTES];
    for (int other = 0; other < test_size; other++)
        for (int bytes = 8; bytes <= BYTES && other != test_rank && other != avoided; bytes += BYTES - 8) {
            if (test_rank < other)
                OK(MPI_Send(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD));
            OK(MPI_Recv(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            if (test_rank > other)
                OK(MPI_Send(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD));
        }
}

/* ---- ranks that die ---------------------------------------------------------------------------------------------- */

/* The last one, and of many another one too. */
static bool is_doomed(int rank)
{
    return rank == test_size - 1 || (test_size > 3 && rank == 1);
}

static bool all_told(void)
{
    bool all = true;
    for (int i = 0; i < test_size; i++)
        all = all && (!is_doomed(i) || lost[i] > 0);
    return all;
}

static void killed(void)
{
    MPI_Comm left;
    int flag, failures = 0;
    MPI_Comm_split(MPI_COMM_WORLD, is_doomed(test_rank), 0, &left);
    meet_all_but(test_rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_doomed(test_rank))
        raise(SIGKILL);
    for (double until = test_now() + LONG; !all_told() && test_now() < until;)
        MPI_Iprobe(MPI_ANY_SOURCE, TAG, left, &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < 20; i++) /* time to be told again */
        MPI_Barrier(left);
    for (int i = 0; i < test_size; i++) {
        CHECK(lost[i] == is_doomed(i), "told %d times that rank %d is lost", lost[i], i);
        CHECK(cut[i] <= is_doomed(i), "told %d times that the connection to rank %d is", cut[i], i);
    }
    MPI_Reduce(&(int){test_failures}, &failures, 1, MPI_INT, MPI_SUM, 0, left);
    if (test_rank == 0 && failures == 0)
        printf("those who are left are well\n");
}

/* ---- a connection that is reset ---------------------------------------------------------------------------------- */

/* An address as text, the same at both ends: one may see IPv4 as a part of IPv6. */
static void print_end(const struct sockaddr_storage *address, socklen_t length, char text[END])
{
    static const char mapped[] = "::ffff:";
    char host[END] = "", port[8] = "";
    getnameinfo((const struct sockaddr *)address, length, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    size_t skip = strncmp(host, mapped, strlen(mapped)) == 0 ? strlen(mapped) : 0;
    snprintf(text, END, "%s %s", host + skip, port);
}

/* Whether it is a TCP connection, and its ends. */
static bool is_connection(int file, char here[END], char there[END])
{
    struct sockaddr_storage own, other;
    socklen_t own_length = sizeof own, other_length = sizeof other;
    if (getsockname(file, (struct sockaddr *)&own, &own_length) != 0 || own.ss_family == AF_UNIX ||
        getpeername(file, (struct sockaddr *)&other, &other_length) != 0)
        return false;
    print_end(&own, own_length, here);
    print_end(&other, other_length, there);
    return true;
}

/* The last rank tells rank 0 what its connections are called, which finds its ends of them and resets these. */
static void reset_connection(int last)
{
    char here[STREAMS][END] = {""}, there[STREAMS][END] = {""}, mine[END], theirs[END];
    int count = 0;
    for (int file = 0; file < FILES && count < STREAMS && test_rank == last; file++)
        count += is_connection(file, here[count], there[count]);
    if (test_rank == last) {
        MPI_Send(here, sizeof here, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
        MPI_Send(there, sizeof there, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
        return;
    }
    MPI_Recv(here, sizeof here, MPI_CHAR, last, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(there, sizeof there, MPI_CHAR, last, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int file = 0; file < FILES; file++)
        for (int i = 0; i < STREAMS && is_connection(file, mine, theirs); i++)
            if (strcmp(mine, there[i]) == 0 && strcmp(theirs, here[i]) == 0) {
                OK(connect(file, &(struct sockaddr){.sa_family = AF_UNSPEC}, sizeof(struct sockaddr)));
                count++;
            }
    CHECK(count > 0, "%d streams", count);
}

static void reset(void)
{
    int last = test_size - 1, word = 0;
    int other_end = test_rank == 0 || test_rank == last ? last - test_rank : test_rank;
    meet_all_but(test_rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (other_end != test_rank) {
        reset_connection(last);
        CHECK_CLASS(MPI_Recv(&word, 1, MPI_INT, other_end, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                    MPI_ERR_PROC_ABORTED);
    }
    meet_all_but(other_end); /* both live, as the others see */
    for (int i = 0; i < test_size; i++) {
        CHECK_EQUAL(lost[i], 0);
        CHECK_EQUAL(cut[i], i == other_end && i != test_rank);
    }
}

int main(int argc, char **argv)
{
    int provided;
    test_begin(&argc, &argv);
    test_need(argc > 1 && test_size <= MOST, "a word is missing, or there are too many ranks");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    listen_to("tombolo_process_lost", note_lost);
    listen_to("tombolo_connection_lost", note_cut);
    if (strcmp(argv[1], "killed") == 0)
        killed();
    else
        reset();
    OK(MPI_T_finalize());
    return test_end();
}

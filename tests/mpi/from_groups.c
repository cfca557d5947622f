/* Communicators made from groups alone, by ranks of which none calls MPI_Init: of one group and of two, many of them at
 * a time, told apart by their string tags, in any order on each rank, and by groups that overlap. */
#include "test.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS  10

static MPI_Session session;
static MPI_Group world, even, odd;

static MPI_Group mine(void)
{
    return test_rank % 2 == 0 ? even : odd;
}

static MPI_Group theirs(void)
{
    return test_rank % 2 == 0 ? odd : even;
}

static MPI_Comm make(MPI_Group group, const char *tag)
{
    MPI_Comm comm = MPI_COMM_NULL;
    int code = MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    CHECK_EQUAL(code, MPI_SUCCESS);
    test_need(comm != MPI_COMM_NULL, "there is no communicator");
    return comm;
}

static MPI_Comm make_inter(const char *tag, int leader, int other_leader)
{
    MPI_Comm comm = MPI_COMM_NULL;
    int code = MPI_Intercomm_create_from_groups(mine(), leader, theirs(), other_leader, tag, MPI_INFO_NULL,
                                                MPI_ERRORS_RETURN, &comm);
    CHECK_EQUAL(code, MPI_SUCCESS);
    test_need(comm != MPI_COMM_NULL, "there is no communicator");
    return comm;
}

static int group_size(MPI_Group group)
{
    int size = -1;
    MPI_Group_size(group, &size);
    return size;
}

/* Everyone in it says the same number. */
static void expect_all(MPI_Comm comm, int size, int number)
{
    int seen = -1, sum = 0;
    MPI_Comm_size(comm, &seen);
    CHECK_EQUAL(seen, size);
    CHECK_EQUAL(MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    CHECK_EQUAL(sum, size * number);
}

/* The sum of what the other group has. */
static void expect_across(MPI_Comm comm, int number)
{
    int remote = -1, sum = 0;
    MPI_Comm_remote_size(comm, &remote);
    CHECK_EQUAL(remote, group_size(theirs()));
    CHECK_EQUAL(MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    CHECK_EQUAL(sum, remote * number);
}

/* ---- one after the other ----------------------------------------------------------------------------------------- */

/* The same tag again and again, with groups that overlap: calls of a group are in order. */
static void one_tag(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Comm all = make(world, "one tag"), half = make(mine(), "one tag");
        expect_all(half, group_size(mine()), i);
        expect_all(all, test_size, i);
        MPI_Comm_free(&all);
        MPI_Comm_free(&half);
    }
}

/* Leaders in the middle of their groups, and two that stay while others come and go. */
static void across(void)
{
    MPI_Comm kept = make_inter("kept", 0, 0);
    int leader = group_size(mine()) - 1, other = group_size(theirs()) - 1;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Comm comm = make_inter("across", leader, other), merged;
        expect_across(comm, i + 1);
        MPI_Intercomm_merge(comm, test_rank % 2, &merged);
        expect_all(merged, test_size, i);
        MPI_Comm_free(&merged);
        MPI_Comm_free(&comm);
    }
    expect_across(kept, 3);
    MPI_Comm_free(&kept);
}

/* With nobody there is nothing to make, whichever group that is; the others need not call. */
static void with_nobody(void)
{
    const MPI_Group pairs[][2] = {
        {MPI_GROUP_EMPTY, theirs()}, {mine(), MPI_GROUP_EMPTY}, {MPI_GROUP_EMPTY, MPI_GROUP_EMPTY}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0] && test_rank == test_size - 1; i++) {
        MPI_Comm comm = MPI_COMM_WORLD;
        int code = MPI_Intercomm_create_from_groups(pairs[i][0], 0, pairs[i][1], 0, "nobody", MPI_INFO_NULL,
                                                    MPI_ERRORS_RETURN, &comm);
        CHECK_EQUAL(code, MPI_SUCCESS);
        CHECK(comm == MPI_COMM_NULL, "there is an intercommunicator with nobody");
    }
}

static void wrong_leaders(void)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    CHECK_CLASS(
        MPI_Intercomm_create_from_groups(mine(), -1, theirs(), 0, "wrong", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
        MPI_ERR_RANK);
    CHECK(comm == MPI_COMM_NULL, "there is an intercommunicator without a leader");
    comm = MPI_COMM_WORLD;
    /* The leaders find it, and tell the others. */
    int code =
        MPI_Intercomm_create_from_groups(mine(), 0, theirs(), 1000, "wrong", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    CHECK(code != MPI_SUCCESS && comm == MPI_COMM_NULL,
          "there is an intercommunicator with a leader outside the group");
    code = MPI_Intercomm_create_from_groups(mine(), 0, mine(), 0, "wrong", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    CHECK(code != MPI_SUCCESS, "there is an intercommunicator of a group with itself");
}

/* ---- at the same time -------------------------------------------------------------------------------------------- */

/* Threads make them in an order that the others do not have; only the tag tells them apart. */
static void *make_some(void *argument)
{
    int number = *(const int *)argument;
    for (int round = 0; round < ROUNDS; round++) {
        char tag[64];
        test_sleep((double)((test_rank * 7 + number * 3 + round) % 5) * 0.0005);
        snprintf(tag, sizeof tag, "thread %d", number);
        MPI_Comm comm = make(world, tag);
        expect_all(comm, test_size, number);
        if (test_size > 1) {
            MPI_Comm inter = make_inter(tag, 0, 0);
            expect_across(inter, number);
            MPI_Comm_free(&inter);
        }
        MPI_Comm_free(&comm);
    }
    return NULL;
}

static void many_at_once(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = (i + test_rank) % THREADS;
        pthread_create(&threads[i], NULL, make_some, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Sessions of threads of their own. */
static void *own_session(void *argument)
{
    const char *tag = argument;
    MPI_Session own;
    MPI_Group group;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQUAL(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &own), MPI_SUCCESS);
        MPI_Group_from_session_pset(own, "mpi://WORLD", &group);
        MPI_Comm comm = make(group, tag);
        expect_all(comm, group_size(group), i);
        MPI_Comm_free(&comm);
        MPI_Group_free(&group);
        CHECK_EQUAL(MPI_Session_finalize(&own), MPI_SUCCESS);
    }
    return NULL;
}

static void own_sessions(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, own_session, "session of thread 0");
    pthread_create(&threads[1], NULL, own_session, "session of thread 1");
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

static void halves(void)
{
    int ranges[2][3] = {{0, test_size - 1, 2}, {1, test_size - 1, 2}};
    MPI_Group_range_incl(world, 1, &ranges[0], &even);
    if (test_size > 1)
        MPI_Group_range_incl(world, 1, &ranges[1], &odd);
}

int main(void)
{
    own_sessions(); /* they begin and end with nobody else there */
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Info_free(&info);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    MPI_Group_size(world, &test_size);
    MPI_Group_rank(world, &test_rank);
    halves();
    one_tag();
    with_nobody();
    if (test_size > 1) {
        across();
        wrong_leaders();
    }
    many_at_once();
    own_sessions();
    MPI_Group_free(&even);
    if (test_size > 1)
        MPI_Group_free(&odd);
    MPI_Group_free(&world);
    MPI_Session_finalize(&session);
    return test_verdict();
}

/* Named groups (tombolo.h): joining, leaving, meeting in communicators of a generation, of which old ones stay valid,
 * counted barriers, freezing, messages from outside, several groups at once, and what goes wrong; in one world or in
 * several. */
#include "worlds.h"

#include <math.h>

#define LONG  60.0 /* what is sure to come has come by then */
#define SHORT 0.05
#define TAG   7

static MPI_Comm join(const char *name, int count)
{
    MPI_Comm comm = MPI_COMM_NULL;
    CHECK_EQUAL(Tombolo_Group_join(name, count, LONG, &comm), MPI_SUCCESS);
    test_need(comm != MPI_COMM_NULL, "there is no communicator of a group");
    return comm;
}

static MPI_Comm meet(const char *name, int count)
{
    MPI_Comm comm = MPI_COMM_NULL;
    CHECK_EQUAL(Tombolo_Group_comm(name, count, LONG, &comm), MPI_SUCCESS);
    test_need(comm != MPI_COMM_NULL, "there is no communicator of a generation");
    return comm;
}

static void leave(const char *name)
{
    CHECK_EQUAL(Tombolo_Group_leave(name), MPI_SUCCESS);
}

/* Everyone in it says its number in the job. */
static void expect_sum(MPI_Comm comm, int size, int sum)
{
    int seen = -1, total = -1;
    MPI_Comm_size(comm, &seen);
    CHECK_EQUAL(seen, size);
    CHECK_EQUAL(MPI_Allreduce(&test_rank, &total, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    CHECK_EQUAL(total, sum);
}

static int sum_below(int n)
{
    return n * (n - 1) / 2;
}

static void all_join(void)
{
    int flag = -1, size = -1, id = -1, rank = -1, generation = -1, result = -1;
    MPI_Group members, group;
    MPI_Comm comm = join("all", test_size);
    expect_sum(comm, test_size, sum_below(test_size));
    CHECK_EQUAL(Tombolo_Group_exists("all", &flag), MPI_SUCCESS);
    CHECK_EQUAL(flag, 1);
    CHECK_EQUAL(Tombolo_Group_size("all", &size), MPI_SUCCESS);
    CHECK_EQUAL(size, test_size);
    CHECK_EQUAL(Tombolo_Group_id("all", &id), MPI_SUCCESS);
    MPI_Comm_rank(comm, &rank);
    CHECK_EQUAL(id, rank);
    CHECK_EQUAL(Tombolo_Group_members("all", &generation, &members), MPI_SUCCESS);
    CHECK_EQUAL(generation, test_size);
    MPI_Comm_group(comm, &group);
    MPI_Group_compare(group, members, &result);
    CHECK_EQUAL(result, MPI_IDENT);
    MPI_Group_free(&group);
    MPI_Group_free(&members);
    CHECK_EQUAL(Tombolo_Group_lost("all", &members), MPI_SUCCESS);
    CHECK(members == MPI_GROUP_EMPTY, "somebody was lost");
    CHECK_EQUAL(Tombolo_Group_barrier("all", TOMBOLO_GROUP_ALL, LONG), MPI_SUCCESS);
    leave("all");
    MPI_Barrier(test_all);
    CHECK_EQUAL(Tombolo_Group_exists("all", &flag), MPI_SUCCESS);
    CHECK_EQUAL(flag, 0); /* it has ended with its last member */
    expect_sum(comm, test_size, sum_below(test_size));
    MPI_Comm_free(&comm);
}

/* One after the other joins, and each generation has a communicator, all of which stay valid. */
static void generations(void)
{
    MPI_Comm *comms = test_memory((size_t)test_size * sizeof *comms);
    for (int n = 0; n < test_size; n++) {
        if (test_rank == n)
            CHECK_EQUAL(Tombolo_Group_join("grows", 0, 0, NULL), MPI_SUCCESS);
        MPI_Barrier(test_all);
        if (test_rank <= n)
            comms[n] = meet("grows", 1);
        MPI_Barrier(test_all); /* or the next one would have to meet, too */
    }
    for (int n = test_size; n-- > test_rank;) {
        expect_sum(comms[n], n + 1, sum_below(n + 1));
        MPI_Comm_free(&comms[n]);
    }
    MPI_Barrier(test_all);
    /* And shrinks, from the front. */
    for (int n = 0; n < test_size; n++) {
        if (test_rank == n)
            leave("grows");
        MPI_Barrier(test_all);
        if (test_rank > n) {
            int id = -1;
            CHECK_EQUAL(Tombolo_Group_id("grows", &id), MPI_SUCCESS);
            CHECK_EQUAL(id, test_rank - n - 1);
            MPI_Comm comm = meet("grows", 1);
            expect_sum(comm, test_size - n - 1, sum_below(test_size) - sum_below(n + 1));
            MPI_Comm_free(&comm);
        }
    }
    free(comms);
}

static void several_at_once(void)
{
    const char *own = test_rank % 2 == 0 ? "even" : "odd";
    int mine = (test_size + (test_rank % 2 == 0)) / 2, sum = 0;
    for (int i = test_rank % 2; i < test_size; i += 2)
        sum += i;
    MPI_Comm half = join(own, mine), all = join("both", test_size);
    expect_sum(half, mine, sum);
    expect_sum(all, test_size, sum_below(test_size));
    MPI_Comm again = meet(own, mine);
    int result = -1;
    MPI_Comm_compare(half, again, &result);
    CHECK_EQUAL(result, MPI_CONGRUENT);
    expect_sum(again, mine, sum);
    leave("both");
    expect_sum(half, mine, sum);
    leave(own);
    MPI_Comm_free(&half);
    MPI_Comm_free(&all);
    MPI_Comm_free(&again);
    MPI_Barrier(test_all);
}

/* Barriers of so many, whoever they are: as many as a multiple of it are let through. */
static void counted(void)
{
    int count = test_size > 2 ? 2 : 1, passed = test_size / count * count;
    CHECK_EQUAL(Tombolo_Group_join("counts", 0, 0, NULL), MPI_SUCCESS);
    MPI_Barrier(test_all);
    for (int i = 0; i < 10; i++) {
        if (test_rank < passed)
            CHECK_EQUAL(Tombolo_Group_barrier("counts", count, LONG), MPI_SUCCESS);
        MPI_Barrier(test_all);
    }
    if (test_rank == 0)
        CHECK_CLASS(Tombolo_Group_barrier("counts", test_size + 1, SHORT), TOMBOLO_ERR_TIMEOUT);
    MPI_Barrier(test_all);
    leave("counts");
    MPI_Barrier(test_all);
}

static void frozen(void)
{
    MPI_Comm comm = MPI_COMM_NULL;
    int members = test_size > 1 ? test_size - 1 : 1;
    bool outside = test_rank >= members;
    if (!outside)
        comm = join("ice", members);
    if (test_rank == 0)
        CHECK_EQUAL(Tombolo_Group_freeze("ice"), MPI_SUCCESS);
    MPI_Barrier(test_all);
    if (outside) {
        CHECK_CLASS(Tombolo_Group_join("ice", 0, 0, NULL), TOMBOLO_ERR_FROZEN);
        CHECK_CLASS(Tombolo_Group_freeze("ice"), TOMBOLO_ERR_MEMBER);
        CHECK_CLASS(Tombolo_Group_barrier("ice", 1, LONG), TOMBOLO_ERR_MEMBER);
        CHECK_CLASS(Tombolo_Group_comm("ice", 1, LONG, &comm), TOMBOLO_ERR_MEMBER);
        CHECK_CLASS(Tombolo_Group_leave("ice"), TOMBOLO_ERR_MEMBER);
        int id = 0;
        CHECK_EQUAL(Tombolo_Group_id("ice", &id), MPI_SUCCESS);
        CHECK_EQUAL(id, MPI_UNDEFINED);
    } else {
        CHECK_CLASS(Tombolo_Group_barrier("ice", members + 1, LONG), MPI_ERR_NOT_SAME);
        MPI_Comm other = MPI_COMM_WORLD;
        CHECK_CLASS(Tombolo_Group_comm("ice", members + 1, LONG, &other), MPI_ERR_NOT_SAME);
        CHECK(other == MPI_COMM_NULL, "a communicator was given in spite of an error");
        expect_sum(comm, members, sum_below(members));
        MPI_Comm_free(&comm);
    }
    MPI_Barrier(test_all);
    if (!outside)
        leave("ice");
    MPI_Barrier(test_all);
}

/* One that is no member waits for the group, and writes to it. */
static void from_outside(void)
{
    int sizes[] = {0, 1, 1000, 300000};
    int members = test_size - 1, current = -1, sender = test_indices[0];
    MPI_Comm inbox;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0] && members > 0; s++) {
        char *data = test_memory((size_t)sizes[s] + 1);
        if (test_rank == 0) {
            CHECK_EQUAL(Tombolo_Group_watch("inside", 0, LONG, &current), MPI_SUCCESS);
            while (current < members)
                CHECK_EQUAL(Tombolo_Group_watch("inside", current, LONG, &current), MPI_SUCCESS);
            test_fill(data, (size_t)sizes[s], (uint64_t)sizes[s]);
            CHECK_EQUAL(Tombolo_Group_send(data, sizes[s], MPI_BYTE, TOMBOLO_GROUP_ALL, TAG, "inside"), MPI_SUCCESS);
            for (int i = 0; i < members; i++)
                CHECK_EQUAL(Tombolo_Group_send(&i, 1, MPI_INT, i, TAG + 1, "inside"), MPI_SUCCESS);
            CHECK_CLASS(Tombolo_Group_send(&members, 1, MPI_INT, members, TAG, "inside"), MPI_ERR_RANK);
            CHECK_CLASS(Tombolo_Group_send(&members, 1, MPI_INT, -2, TAG, "inside"), MPI_ERR_RANK);
        } else {
            MPI_Status status;
            int number = -1, id = -2;
            CHECK_EQUAL(Tombolo_Group_join("inside", 0, 0, NULL), MPI_SUCCESS);
            CHECK_EQUAL(Tombolo_Group_inbox("inside", &inbox), MPI_SUCCESS);
            MPI_Request request;
            CHECK_EQUAL(MPI_Irecv(data, sizes[s], MPI_BYTE, sender, TAG, inbox, &request), MPI_SUCCESS);
            CHECK_EQUAL(MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, TAG + 1, inbox, &status), MPI_SUCCESS);
            CHECK_STATUS(&status, sender, TAG + 1, sizeof number);
            CHECK_EQUAL(Tombolo_Group_id("inside", &id), MPI_SUCCESS);
            CHECK_EQUAL(number, id);
            CHECK_EQUAL(MPI_Wait(&request, &status), MPI_SUCCESS);
            CHECK_STATUS(&status, sender, TAG, (size_t)sizes[s]);
            CHECK_DATA(data, (size_t)sizes[s], (uint64_t)sizes[s]);
        }
        MPI_Barrier(test_all);
        if (test_rank > 0)
            leave("inside");
        MPI_Barrier(test_all);
        free(data);
    }
}

/* A member writes to all others, and not to itself; who is alone writes to nobody. */
static void from_inside(void)
{
    MPI_Comm inbox;
    int got = -1;
    MPI_Comm comm = join("talk", test_size);
    CHECK_EQUAL(Tombolo_Group_inbox("talk", &inbox), MPI_SUCCESS);
    MPI_Comm_set_errhandler(inbox, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2; i++) { /* it is not the program's to free, and works as before */
        MPI_Comm same = inbox;
        CHECK_CLASS(i == 0 ? MPI_Comm_free(&same) : MPI_Comm_disconnect(&same), MPI_ERR_COMM);
        CHECK(same == inbox, "another handle");
    }
    CHECK_EQUAL(Tombolo_Group_send(&test_rank, 1, MPI_INT, TOMBOLO_GROUP_ALL, TAG, "talk"), MPI_SUCCESS);
    for (int i = 0; i < test_size; i++)
        if (i != test_rank) {
            CHECK_EQUAL(MPI_Recv(&got, 1, MPI_INT, test_indices[i], TAG, inbox, MPI_STATUS_IGNORE), MPI_SUCCESS);
            CHECK_EQUAL(got, i);
        }
    MPI_Barrier(comm);
    int flag = -1;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, inbox, &flag, MPI_STATUS_IGNORE);
    CHECK_EQUAL(flag, 0);
    MPI_Barrier(comm);
    leave("talk");
    MPI_Comm_free(&comm);
}

/* The last one leaves a group and joins it again while it goes on: what is written to it from then on comes, also
 * before it asks for the inbox again, and what was left in the inbox that it had does not. `waits`: a receive of that
 * inbox is in flight all the while, and gets it. */
static void once_more(const char *name, bool waits)
{
    int left = 11, later = 22, got = -1;
    bool comes_back = test_rank == test_size - 1 && test_size > 1;
    MPI_Comm inbox;
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_EQUAL(Tombolo_Group_join(name, 0, 0, NULL), MPI_SUCCESS);
    CHECK_EQUAL(Tombolo_Group_inbox(name, &inbox), MPI_SUCCESS);
    MPI_Barrier(test_all);
    if (comes_back && waits)
        MPI_Irecv(&got, 1, MPI_INT, test_indices[0], TAG, inbox, &request);
    if (test_rank == 0)
        CHECK_EQUAL(Tombolo_Group_send(&left, 1, MPI_INT, TOMBOLO_GROUP_ALL, TAG + 1, name), MPI_SUCCESS);
    else
        CHECK_EQUAL(MPI_Probe(test_indices[0], TAG + 1, inbox, MPI_STATUS_IGNORE), MPI_SUCCESS);
    if (comes_back) {
        leave(name);
        CHECK_EQUAL(Tombolo_Group_join(name, 0, 0, NULL), MPI_SUCCESS);
    }
    MPI_Barrier(test_all);
    if (test_rank == 0)
        CHECK_EQUAL(Tombolo_Group_send(&later, 1, MPI_INT, TOMBOLO_GROUP_ALL, TAG, name), MPI_SUCCESS);
    MPI_Barrier(test_all);
    CHECK_EQUAL(Tombolo_Group_inbox(name, &inbox), MPI_SUCCESS);
    if (comes_back && waits)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    else if (test_rank > 0)
        CHECK_EQUAL(MPI_Recv(&got, 1, MPI_INT, test_indices[0], TAG, inbox, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQUAL(got, test_rank > 0 ? later : -1);
    int flag = -1;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG + 1, inbox, &flag, MPI_STATUS_IGNORE);
    CHECK(waits || !comes_back || flag == 0, "a message to a member that had left");
    MPI_Barrier(test_all);
    leave(name);
}

static int asked, refused;

static int asks(MPI_Comm comm, int keyval, void *value, void *state)
{
    MPI_Comm inbox;
    CHECK_EQUAL(Tombolo_Group_inbox("staying", &inbox), MPI_SUCCESS);
    asked++;
    return refused-- > 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* What is attached to an inbox is deleted when its group is left; meanwhile others can be asked for. If that is refused
 * the inbox stays. */
static void attached(void)
{
    int keyval, flag = 0;
    void *value;
    MPI_Comm inbox, other;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, asks, &keyval, NULL);
    CHECK_EQUAL(Tombolo_Group_join("staying", 0, 0, NULL), MPI_SUCCESS);
    CHECK_EQUAL(Tombolo_Group_join("leaving", 0, 0, NULL), MPI_SUCCESS);
    CHECK_EQUAL(Tombolo_Group_inbox("staying", &other), MPI_SUCCESS);
    CHECK_EQUAL(Tombolo_Group_inbox("leaving", &inbox), MPI_SUCCESS);
    MPI_Comm_set_errhandler(inbox, MPI_ERRORS_RETURN);
    MPI_Comm_set_attr(inbox, keyval, &asked);
    refused = 1;
    leave("leaving");
    CHECK_EQUAL(asked, 1);
    MPI_Comm_get_attr(inbox, keyval, &value, &flag);
    CHECK(flag && value == &asked, "flag %d", flag);
    CHECK_EQUAL(Tombolo_Group_join("leaving", 0, 0, NULL), MPI_SUCCESS);
    leave("leaving");
    CHECK_EQUAL(asked, 2);
    leave("staying");
    MPI_Comm_free_keyval(&keyval);
}

/* Who writes a long message to a member that leaves instead of receiving it waits no longer. */
static void never_read(void)
{
    size_t bytes = 300000;
    char *data = test_memory(bytes);
    if (test_rank == test_size - 1)
        CHECK_EQUAL(Tombolo_Group_join("deaf", 0, 0, NULL), MPI_SUCCESS);
    MPI_Barrier(test_all);
    if (test_rank < test_size - 1) {
        int class = -1, code = Tombolo_Group_send(data, (MPI_Count)bytes, MPI_BYTE, TOMBOLO_GROUP_ALL, TAG, "deaf");
        MPI_Error_class(code, &class); /* it may have left before */
        CHECK(code == MPI_SUCCESS || class == TOMBOLO_ERR_NO_GROUP, "class %d", class);
    } else {
        test_sleep(SHORT);
        leave("deaf");
    }
    MPI_Barrier(test_all);
    free(data);
}

/* What is wrong is said of this call, and where in it that stands. */
static void says(int code, int class, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    CHECK_CLASS(code, class);
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, "Tombolo_Group_send: ") != NULL && strstr(text, what) != NULL, "%s", text);
}

static void errors_of_sending(void)
{
    MPI_Comm inbox;
    char name[16];
    snprintf(name, sizeof name, "own %d", test_indices[test_rank]);
    CHECK_EQUAL(Tombolo_Group_join(name, 0, 0, NULL), MPI_SUCCESS);
    CHECK_EQUAL(Tombolo_Group_inbox(name, &inbox), MPI_SUCCESS);
    MPI_Comm_set_errhandler(inbox, MPI_ERRORS_RETURN);
    for (int all = 0; all < 2; all++) { /* there is nobody else in it */
        int id = all ? TOMBOLO_GROUP_ALL : 0;
        says(Tombolo_Group_send(&id, 1, MPI_INT, id, -5, name), MPI_ERR_TAG, "argument 5 (tag)");
        says(Tombolo_Group_send(&id, -1, MPI_INT, id, TAG, name), MPI_ERR_COUNT, "argument 2 (count)");
        says(Tombolo_Group_send(NULL, 1, MPI_INT, id, TAG, name), MPI_ERR_BUFFER, "argument 1 (buffer)");
    }
    says(Tombolo_Group_send(&inbox, 1, MPI_DATATYPE_NULL, 0, TAG, name), MPI_ERR_TYPE, "argument 3 (type)");
    says(Tombolo_Group_send(&inbox, 1, MPI_INT, 1, TAG, name), MPI_ERR_RANK, "argument 4 (id)");
    says(Tombolo_Group_send(&inbox, 1, MPI_INT, 0, TAG, NULL), MPI_ERR_ARG, "argument 6 (name)");
    says(Tombolo_Group_send(&inbox, 1, MPI_INT, 0, TAG, ""), MPI_ERR_ARG, "argument 6 (name)");
    leave(name);
}

static void errors(void)
{
    char longest[TOMBOLO_MAX_GROUP_NAME + 1], text[MPI_MAX_ERROR_STRING];
    int number = -1, length = 0, flag = -1;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Group group;
    memset(longest, 'x', sizeof longest);
    longest[TOMBOLO_MAX_GROUP_NAME] = 0;
    CHECK_CLASS(Tombolo_Group_join(NULL, 0, 0, NULL), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Group_join("", 0, 0, NULL), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Group_join(longest, 0, 0, NULL), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Group_join("e", -2, 1, &comm), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Group_join("e", -1, 1, &comm), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Group_comm("e", -1, 1, &comm), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Group_join("e", 1, -2, &comm), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Group_join("e", 1, NAN, &comm), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Group_barrier("e", 0, 1), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Group_watch("e", -1, 1, &number), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Group_comm("e", 1, 1, NULL), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Group_exists("e", NULL), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Group_size("e", NULL), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Group_leave("nobody"), TOMBOLO_ERR_NO_GROUP);
    CHECK_CLASS(Tombolo_Group_size("nobody", &number), TOMBOLO_ERR_NO_GROUP);
    CHECK_CLASS(Tombolo_Group_id("nobody", &number), TOMBOLO_ERR_NO_GROUP);
    CHECK_CLASS(Tombolo_Group_members("nobody", &number, &group), TOMBOLO_ERR_NO_GROUP);
    CHECK_CLASS(Tombolo_Group_lost("nobody", &group), TOMBOLO_ERR_NO_GROUP);
    CHECK_CLASS(Tombolo_Group_freeze("nobody"), TOMBOLO_ERR_NO_GROUP);
    CHECK_CLASS(Tombolo_Group_barrier("nobody", 1, 1), TOMBOLO_ERR_NO_GROUP);
    CHECK_CLASS(Tombolo_Group_inbox("nobody", &comm), TOMBOLO_ERR_NO_GROUP);
    CHECK_CLASS(Tombolo_Group_send(&number, 1, MPI_INT, 0, TAG, "nobody"), TOMBOLO_ERR_NO_GROUP);
    CHECK_CLASS(Tombolo_Group_watch("nobody", 3, LONG, &number), TOMBOLO_ERR_NO_GROUP);
    CHECK_CLASS(Tombolo_Group_watch("nobody", 0, SHORT, &number), TOMBOLO_ERR_TIMEOUT);
    int code = Tombolo_Group_comm("nobody at all", 1, 1, &comm);
    CHECK_CLASS(code, TOMBOLO_ERR_NO_GROUP);
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, "Tombolo_Group_comm") != NULL && strstr(text, "\"nobody at all\"") != NULL, "%s", text);
    /* A name of the full length is one of its own. */
    longest[TOMBOLO_MAX_GROUP_NAME - 1] = 0;
    longest[0] = (char)('a' + test_rank % 26);
    CHECK_EQUAL(Tombolo_Group_join(longest, 0, 0, NULL), MPI_SUCCESS);
    CHECK_CLASS(Tombolo_Group_join(longest, 0, 0, NULL), TOMBOLO_ERR_MEMBER);
    double begin = test_now();
    CHECK_CLASS(Tombolo_Group_comm(longest, test_size + 1, SHORT, &comm), TOMBOLO_ERR_TIMEOUT);
    CHECK(test_now() - begin >= SHORT && comm == MPI_COMM_NULL, "%g s", test_now() - begin);
    CHECK_CLASS(Tombolo_Group_barrier(longest, test_size + 1, 0), TOMBOLO_ERR_TIMEOUT);
    leave(longest);
    CHECK_CLASS(Tombolo_Group_leave(longest), test_size > 26 ? TOMBOLO_ERR_MEMBER : TOMBOLO_ERR_NO_GROUP);
    CHECK_EQUAL(Tombolo_Group_exists(longest, &flag), MPI_SUCCESS);
    MPI_Barrier(test_all);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    worlds_begin(argc, argv);
    all_join();
    generations();
    several_at_once();
    counted();
    frozen();
    from_outside();
    from_inside();
    once_more("again", false);
    once_more("once again", true);
    attached();
    never_read();
    errors();
    errors_of_sending();
    /* Whoever is still in a group when MPI ends has left it. */
    CHECK_EQUAL(Tombolo_Group_join("last", 0, 0, NULL), MPI_SUCCESS);
    return test_end();
}

/* Inter-communicators: making them in several ways, messages and probes through them, comparing, merging, splitting. */
#include "test.h"

/* Two groups of the world: the first `left` ranks, and the others. */
struct sides {
    int left, mine, theirs; /* sizes */
    int first, their_first; /* ranks in the world of the groups' rank 0 */
    bool is_left;
    MPI_Comm local;
};

static struct sides make_sides(int left)
{
    struct sides s = {.left = left, .is_left = test_rank < left};
    s.mine = s.is_left ? left : test_size - left;
    s.theirs = test_size - s.mine;
    s.first = s.is_left ? 0 : left;
    s.their_first = s.is_left ? left : 0;
    MPI_Comm_split(MPI_COMM_WORLD, s.is_left, 0, &s.local);
    return s;
}

static void check_shape(MPI_Comm inter, const struct sides *s)
{
    int flag = 0, rank = -1, size = -1, remote = -1, first = 0, found = -1, result = -1;
    MPI_Group group, world, local;
    MPI_Comm_test_inter(inter, &flag);
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &remote);
    CHECK(flag && rank == test_rank - s->first && size == s->mine && remote == s->theirs,
          "inter %d, rank %d of %d, %d remote", flag, rank, size, remote);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_remote_group(inter, &group);
    MPI_Group_translate_ranks(group, 1, &first, world, &found);
    CHECK_EQUAL(found, s->their_first);
    MPI_Group_free(&group);
    MPI_Comm_group(inter, &group);
    MPI_Comm_group(s->local, &local);
    MPI_Group_compare(group, local, &result);
    CHECK_EQUAL(result, MPI_IDENT);
    MPI_Group_free(&group);
    MPI_Group_free(&local);
    MPI_Group_free(&world);
}

/* Everyone to everyone on the other side, received from anybody after a probe; each round has its own tags. */
static void messages(MPI_Comm inter, const struct sides *s, int bytes)
{
    static int round = 0;
    int tag = 100 * ++round, mine = tag + test_rank - s->first;
    unsigned char *out = test_memory((size_t)bytes), *in = test_memory((size_t)bytes);
    MPI_Request *sends = test_memory((size_t)s->theirs * sizeof *sends);
    uint64_t seen = 0;
    test_fill(out, (size_t)bytes, (uint64_t)test_rank);
    for (int i = 0; i < s->theirs; i++)
        MPI_Isend(out, bytes, MPI_BYTE, i, tag + i, inter, &sends[i]);
    for (int i = 0; i < s->theirs; i++) {
        MPI_Status probed, status;
        MPI_Probe(MPI_ANY_SOURCE, mine, inter, &probed);
        CHECK_STATUS(&probed, probed.MPI_SOURCE, mine, (size_t)bytes);
        test_clear(in, (size_t)bytes);
        MPI_Recv(in, bytes, MPI_BYTE, probed.MPI_SOURCE, mine, inter, &status);
        CHECK_STATUS(&status, probed.MPI_SOURCE, mine, (size_t)bytes);
        CHECK_DATA(in, (size_t)bytes, (uint64_t)(s->their_first + probed.MPI_SOURCE));
        seen |= (uint64_t)1 << probed.MPI_SOURCE;
    }
    CHECK(seen == ((uint64_t)1 << s->theirs) - 1, "messages from %llx", (unsigned long long)seen);
    MPI_Waitall(s->theirs, sends, MPI_STATUSES_IGNORE);
    free(out);
    free(in);
    free(sends);
}

static void errors(MPI_Comm inter, const struct sides *s)
{
    MPI_Comm comm;
    int value = 0, dims = 1, periods = 0;
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Send(&value, 1, MPI_INT, s->theirs, 0, inter), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Recv(&value, 1, MPI_INT, s->theirs, 0, inter, MPI_STATUS_IGNORE), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Cart_create(inter, 1, &dims, &periods, 0, &comm), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, s->their_first, 0, &comm), MPI_ERR_COMM);
    MPI_Comm_set_errhandler(s->local, MPI_ERRORS_RETURN);
    if (!test_peer())
        CHECK_CLASS(MPI_Comm_remote_size(s->local, &value), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Intercomm_merge(s->local, 0, &comm), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Intercomm_create(s->local, 99, MPI_COMM_WORLD, s->their_first, 0, &comm), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Intercomm_create(s->local, 0, MPI_COMM_WORLD, s->their_first, -1, &comm), MPI_ERR_TAG);
}

static void merge(MPI_Comm inter, const struct sides *s)
{
    for (int way = 0; way < 4; way++) {
        MPI_Comm merged;
        int rank = -1, size = -1, before = -1;
        int left_high = way & 1, right_high = way >> 1, high = s->is_left ? left_high : right_high;
        MPI_Intercomm_merge(inter, high, &merged);
        MPI_Comm_rank(merged, &rank);
        MPI_Comm_size(merged, &size);
        CHECK_EQUAL(size, test_size);
        if (left_high != right_high)
            CHECK_EQUAL(rank, (high ? s->theirs : 0) + test_rank - s->first);
        int next = (rank + 1) % size, previous = (rank + size - 1) % size;
        MPI_Sendrecv(&rank, 1, MPI_INT, next, 0, &before, 1, MPI_INT, previous, 0, merged, MPI_STATUS_IGNORE);
        CHECK_EQUAL(before, previous);
        MPI_Comm_free(&merged);
    }
}

/* By the parity of the rank in each group; where the other group has no such rank there is nothing. */
static void split(MPI_Comm inter, const struct sides *s)
{
    MPI_Comm part;
    int rank = test_rank - s->first, color = rank % 2, expected = (s->theirs + (color == 0)) / 2;
    MPI_Comm_split(inter, color, -rank, &part);
    CHECK((part == MPI_COMM_NULL) == (expected == 0), "colour %d of %d and %d", color, s->mine, s->theirs);
    if (part == MPI_COMM_NULL)
        return;
    int remote = -1, size = -1, mine = -1, got = -1, last = (s->theirs - 1 - color) / 2 * 2 + color;
    MPI_Comm_remote_size(part, &remote);
    MPI_Comm_size(part, &size);
    MPI_Comm_rank(part, &mine);
    CHECK_EQUAL(remote, expected);
    CHECK_EQUAL(mine, size - 1 - rank / 2);
    MPI_Request request;
    MPI_Isend(&test_rank, 1, MPI_INT, 0, 6, part, &request);
    for (int i = 0; i < remote && mine == 0; i++) {
        MPI_Recv(&got, 1, MPI_INT, i, 6, part, MPI_STATUS_IGNORE);
        CHECK_EQUAL(got, s->their_first + last - 2 * i);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&part);
}

/* Only the first of each group, then nobody of the right one. */
static void create(MPI_Comm inter, const struct sides *s)
{
    MPI_Group local, some;
    MPI_Comm part;
    int zero = 0, got = -1;
    MPI_Comm_group(inter, &local);
    MPI_Group_incl(local, 1, &zero, &some);
    MPI_Comm_create(inter, some, &part);
    CHECK((part != MPI_COMM_NULL) == (test_rank == s->first), "rank %d in the new one", test_rank);
    if (part != MPI_COMM_NULL) {
        MPI_Sendrecv(&test_rank, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, part, MPI_STATUS_IGNORE);
        CHECK_EQUAL(got, s->their_first);
        MPI_Comm_free(&part);
    }
    MPI_Comm_create(inter, s->is_left ? some : MPI_GROUP_EMPTY, &part);
    CHECK(part == MPI_COMM_NULL, "a communicator with %s", "an empty group");
    MPI_Group_free(&some);
    MPI_Group_free(&local);
}

static void duplicates(MPI_Comm inter, const struct sides *s)
{
    MPI_Comm dups[3];
    MPI_Request requests[2];
    int result = -1;
    MPI_Comm_dup(inter, &dups[0]);
    MPI_Comm_idup(inter, &dups[1], &requests[0]);
    MPI_Comm_idup(dups[0], &dups[2], &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_compare(inter, dups[i], &result);
        CHECK_EQUAL(result, MPI_CONGRUENT);
        check_shape(dups[i], s);
        messages(dups[i], s, 100);
    }
    MPI_Comm_compare(inter, s->local, &result);
    CHECK_EQUAL(result, MPI_UNEQUAL);
    MPI_Comm_compare(inter, inter, &result);
    CHECK_EQUAL(result, MPI_IDENT);
    for (int i = 2; i >= 0; i--)
        MPI_Comm_free(&dups[i]);
}

/* Leaders that are not rank 0, through a duplicate of the world, many times with the same tag; then by groups alone. */
static void other_ways(const struct sides *s)
{
    MPI_Comm peer, inters[3];
    MPI_Group world, groups[2];
    int leader = s->mine - 1, their_leader = s->their_first + s->theirs - 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &peer);
    for (int i = 0; i < 3; i++)
        MPI_Intercomm_create(s->local, leader, test_rank == s->first + leader ? peer : MPI_COMM_NULL, their_leader, 3,
                             &inters[i]);
    for (int i = 0; i < 3; i++) {
        check_shape(inters[i], s);
        messages(inters[i], s, 10);
        MPI_Comm_free(&inters[i]);
    }
    MPI_Comm_free(&peer);
    if (test_peer())
        return;
    int ranges[2][3] = {{s->first, s->first + s->mine - 1, 1}, {s->their_first, s->their_first + s->theirs - 1, 1}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, &ranges[0], &groups[0]);
    MPI_Group_range_incl(world, 1, &ranges[1], &groups[1]);
    MPI_Intercomm_create_from_groups(groups[0], leader, groups[1], s->theirs - 1, "tests/mpi/intercomm", MPI_INFO_NULL,
                                     MPI_ERRORS_ARE_FATAL, &inters[0]);
    check_shape(inters[0], s);
    messages(inters[0], s, 10);
    MPI_Comm_free(&inters[0]);
    MPI_Group_free(&world);
    MPI_Group_free(&groups[0]);
    MPI_Group_free(&groups[1]);
}

static void collectives(MPI_Comm inter, const struct sides *s)
{
    int sum = -1, expected = 0, value = test_rank;
    MPI_Barrier(inter);
    MPI_Allreduce(&test_rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    for (int i = 0; i < s->theirs; i++)
        expected += s->their_first + i;
    CHECK_EQUAL(sum, expected);
    MPI_Bcast(&value, 1, MPI_INT, !s->is_left ? 0 : test_rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    CHECK_EQUAL(value, s->is_left ? test_rank : 0);
}

static void with_left(int left)
{
    struct sides s = make_sides(left);
    MPI_Comm inter;
    MPI_Intercomm_create(s.local, 0, MPI_COMM_WORLD, s.their_first, 77, &inter);
    check_shape(inter, &s);
    messages(inter, &s, 0);
    messages(inter, &s, 1000);
    messages(inter, &s, 100000);
    merge(inter, &s);
    split(inter, &s);
    create(inter, &s);
    duplicates(inter, &s);
    other_ways(&s);
    collectives(inter, &s);
    errors(inter, &s);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&s.local);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int left = 1; left<test_size; left += test_size> 8 ? 5 : 1)
        with_left(left);
    return test_end();
}

/* Collectives between the two groups of an intercommunicator: the root in either group, groups of different sizes. */
#include "test.h"

static MPI_Comm inter, side;
static int here, there, me; /* ranks in my group and in the other one; my rank in mine */
static bool low;            /* my group is the one with rank 0 of all */

/* How the root of the call is called by this rank; the root is `rank` of the low or the other group. */
static int root_name(bool in_low, int rank)
{
    return in_low != low ? rank : me == rank ? MPI_ROOT : MPI_PROC_NULL;
}

static bool am_root(bool in_low, int rank)
{
    return root_name(in_low, rank) == MPI_ROOT;
}

static int value_of(bool in_low, int rank, int i)
{
    return (in_low ? 1000000 : 2000000) + rank * 1000 + i % 1000;
}

#define LONG 17000 /* ints: more than what is sent in one piece */
#define MOST (16 * (LONG + 1))
static int given[MOST + 16], taken[MOST + 16];

static void taken_clear(void)
{
    memset(taken, -1, sizeof taken);
}

/* Gather, scatter and broadcast with this root. */
static void rooted(bool in_low, int root, int count)
{
    int name = root_name(in_low, root), counts[16], displs[16];
    bool takes = am_root(in_low, root), gives = low != in_low;
    for (int i = 0; i < count; i++)
        given[i] = value_of(low, me, i);
    for (int i = 0; i < 16; i++) {
        counts[i] = count;
        displs[i] = i * (count + 1);
    }
    taken_clear();
    MPI_Bcast(takes ? given : taken, count, MPI_INT, name, inter);
    for (int i = 0; i < count && gives; i++)
        CHECK_EQUAL(taken[i], value_of(in_low, root, i));
    taken_clear();
    MPI_Gather(given, count, MPI_INT, taken, count, MPI_INT, name, inter);
    for (int i = 0; i < count * there && takes; i++)
        CHECK_EQUAL(taken[i], value_of(!in_low, i / count, i % count));
    taken_clear();
    MPI_Gatherv(given, count, MPI_INT, taken, counts, displs, MPI_INT, name, inter);
    for (int i = 0; i < count * there && takes; i++)
        CHECK_EQUAL(taken[displs[i / count] + i % count], value_of(!in_low, i / count, i % count));
    for (int i = 0; i < count * there && takes; i++)
        given[i] = value_of(in_low, i / count, i % count);
    taken_clear();
    MPI_Scatter(given, count, MPI_INT, taken, count, MPI_INT, name, inter);
    for (int i = 0; i < count && gives; i++)
        CHECK_EQUAL(taken[i], value_of(in_low, me, i));
    for (int i = 0; i < count * there && takes; i++)
        given[displs[i / count] + i % count] = value_of(in_low, i / count, i % count);
    taken_clear();
    MPI_Scatterv(given, counts, displs, MPI_INT, taken, count, MPI_INT, name, inter);
    for (int i = 0; i < count && gives; i++)
        CHECK_EQUAL(taken[i], value_of(in_low, me, i));
    CHECK(!gives || taken[count] == -1, "too much was changed");
}

/* The sum over a group of value_of. */
static int sum_of(bool in_low, int ranks, int i)
{
    return ranks * (in_low ? 1000000 : 2000000) + ranks * (ranks - 1) / 2 * 1000 + ranks * (i % 1000);
}

static void join(void *left, void *right, int *count, MPI_Datatype *type)
{
    int *a = left, *b = right;
    for (int i = 0; i < *count; i++) {
        CHECK(a[2 * i + 1] + 1 == b[2 * i], "%d to %d was joined with %d to %d", a[2 * i], a[2 * i + 1], b[2 * i],
              b[2 * i + 1]);
        b[2 * i] = a[2 * i];
    }
}

static void reduced(bool in_low, int root, int count)
{
    int name = root_name(in_low, root), words[2] = {me, me}, word[2] = {-1, -1};
    MPI_Datatype type;
    MPI_Op op;
    for (int i = 0; i < count; i++)
        given[i] = value_of(low, me, i);
    taken_clear();
    MPI_Reduce(given, taken, count, MPI_INT, MPI_SUM, name, inter);
    for (int i = 0; i < count && am_root(in_low, root); i++)
        CHECK_EQUAL(taken[i], sum_of(!in_low, there, i));
    taken_clear();
    MPI_Allreduce(given, taken, count, MPI_INT, MPI_SUM, inter);
    for (int i = 0; i < count; i++)
        CHECK_EQUAL(taken[i], sum_of(!low, there, i));
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(join, 0, &op);
    MPI_Allreduce(words, word, 1, type, op, inter);
    CHECK(word[0] == 0 && word[1] == there - 1, "the reduction is over %d to %d", word[0], word[1]);
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

/* The total is divided evenly in both groups, and unevenly: the last rank gets what the others have left. */
static void divided(int unit)
{
    int counts[16], total = here * there * unit, first = 0;
    for (int i = 0; i < total; i++)
        given[i] = value_of(low, me, i);
    taken_clear();
    MPI_Reduce_scatter_block(given, taken, there * unit, MPI_INT, MPI_SUM, inter);
    for (int i = 0; i < there * unit; i++)
        CHECK_EQUAL(taken[i], sum_of(!low, there, me * there * unit + i));
    for (int i = 0; i < here; i++)
        counts[i] = i % 2 * unit;
    counts[here - 1] = total;
    for (int i = 0; i + 1 < here; i++)
        counts[here - 1] -= counts[i];
    for (int i = 0; i < me; i++)
        first += counts[i];
    taken_clear();
    MPI_Reduce_scatter(given, taken, counts, MPI_INT, MPI_SUM, inter);
    for (int i = 0; i < counts[me]; i++)
        CHECK_EQUAL(taken[i], sum_of(!low, there, first + i));
}

/* Each group gives blocks of its own size. */
static void everyone(int low_count, int high_count)
{
    int count = low ? low_count : high_count, other = low ? high_count : low_count;
    int counts[16], displs[16], send_counts[16], send_displs[16];
    MPI_Datatype types[16];
    for (int i = 0; i < count; i++)
        given[i] = value_of(low, me, i);
    for (int i = 0; i < 16; i++) {
        counts[i] = other;
        displs[i] = i * (other + 1);
        send_counts[i] = count;
        send_displs[i] = i * count;
        types[i] = MPI_INT;
    }
    taken_clear();
    MPI_Allgather(given, count, MPI_INT, taken, other, MPI_INT, inter);
    for (int i = 0; i < other * there; i++)
        CHECK_EQUAL(taken[i], value_of(!low, i / other, i % other));
    taken_clear();
    MPI_Allgatherv(given, count, MPI_INT, taken, counts, displs, MPI_INT, inter);
    for (int i = 0; i < other * there; i++)
        CHECK_EQUAL(taken[displs[i / other] + i % other], value_of(!low, i / other, i % other));
    for (int i = 0; i < count * there; i++)
        given[i] = value_of(low, me, i / count * 10 + i % count);
    taken_clear();
    MPI_Alltoall(given, count, MPI_INT, taken, other, MPI_INT, inter);
    for (int i = 0; i < other * there; i++)
        CHECK_EQUAL(taken[i], value_of(!low, i / other, me * 10 + i % other));
    taken_clear();
    MPI_Alltoallv(given, send_counts, send_displs, MPI_INT, taken, counts, displs, MPI_INT, inter);
    for (int i = 0; i < other * there; i++)
        CHECK_EQUAL(taken[displs[i / other] + i % other], value_of(!low, i / other, me * 10 + i % other));
    for (int i = 0; i < 16; i++) {
        displs[i] *= (int)sizeof(int);
        send_displs[i] *= (int)sizeof(int);
    }
    taken_clear();
    MPI_Alltoallw(given, send_counts, send_displs, types, taken, counts, displs, types, inter);
    for (int i = 0; i < other * there; i++)
        CHECK_EQUAL(taken[displs[i / other] / (int)sizeof(int) + i % other],
                    value_of(!low, i / other, me * 10 + i % other));
}

/* Nobody of one group leaves before all of the other have entered. */
static void barrier(int round)
{
    double entered, left, latest;
    if (me == round % here && low == (round % 2 == 0))
        test_sleep(0.02);
    entered = test_now();
    MPI_Barrier(inter);
    left = test_now();
    MPI_Allreduce(&entered, &latest, 1, MPI_DOUBLE, MPI_MAX, inter);
    CHECK(left >= latest, "left the barrier %g s before somebody of the other group came", latest - left);
}

static void errors(void)
{
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Bcast(taken, 1, MPI_INT, there, inter), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Allreduce(MPI_IN_PLACE, taken, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Scan(given, taken, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Exscan(given, taken, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM);
}

/* The first ranks are one group; or, with border 0, every second rank, so that the groups have hosts and clusters in
 * common. */
static void between(int border)
{
    low = border > 0 ? test_rank < border : test_rank % 2 == 0;
    MPI_Comm_split(MPI_COMM_WORLD, low, 0, &side);
    MPI_Comm_rank(side, &me);
    MPI_Comm_size(side, &here);
    there = test_size - here;
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, !low ? 0 : border > 0 ? border : 1, 5, &inter);
    for (int round = 0; round < 4; round++)
        barrier(round);
    for (int in_low = 0; in_low < 2; in_low++)
        for (int root = 0; root < (in_low == low ? here : there); root++) {
            if (root == 0 && border == 0) {
                rooted(in_low, root, LONG);
                reduced(in_low, root, 3 * LONG);
            }
            rooted(in_low, root, 1);
            rooted(in_low, root, 999);
            rooted(in_low, root, 0);
            reduced(in_low, root, 1);
            reduced(in_low, root, 3000);
        }
    divided(1);
    divided(13);
    everyone(1, 1);
    everyone(3, 10);
    everyone(7, 0);
    if (!test_peer())
        errors();
    MPI_Comm_free(&inter);
    MPI_Comm_free(&side);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    test_need(test_size > 1 && test_size <= 16, "this takes 2 to 16 ranks");
    between(0);
    for (int border = 1; border < test_size; border += border < 3 || test_size < 6 ? 1 : test_size / 3)
        between(border);
    return test_end();
}

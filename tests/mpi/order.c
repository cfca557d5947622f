/* Messages of one pair are received in the order in which they were sent, whatever their sizes; receives match in the
 * order in which they were posted; nothing that is sent to MPI_ANY_SOURCE starves. */
#include "test.h"

#define BATCH   40
#define BATCHES 6
#define LARGEST 300000
#define TO_ROOT 150

static const int lengths[] = {0, 8, 100, 1000, 8192, 8193, 32768, 32769, 70000, LARGEST};
#define LENGTHS (sizeof lengths / sizeof lengths[0])

static int length_of(int from, int index)
{
    uint64_t state = (uint64_t)from * 1000 + (uint64_t)index;
    /* Every third message is of any length, the others are short: the long ones are overtaken if that is possible. */
    return lengths[test_random(&state) % (index % 3 == 0 ? LENGTHS : 4)];
}

static uint64_t name(int from, int index)
{
    return (uint64_t)from * 100000 + (uint64_t)index;
}

/* The same tag for all; receives are posted before, after, or one by one with MPI_ANY_TAG. */
static void one_tag(int batch)
{
    static unsigned char *out[BATCH], *in[BATCH];
    MPI_Request sends[BATCH], receives[BATCH];
    MPI_Status statuses[BATCH];
    for (int i = 0; i < BATCH; i++) {
        int length = length_of(test_rank, batch * BATCH + i);
        out[i] = test_memory((size_t)length);
        test_fill(out[i], (size_t)length, name(test_rank, batch * BATCH + i));
        in[i] = test_memory(LARGEST);
    }
    if (batch % 3 == 0)
        for (int i = 0; i < BATCH; i++)
            MPI_Irecv(in[i], LARGEST, MPI_BYTE, test_previous(), 3, MPI_COMM_WORLD, &receives[i]);
    for (int i = 0; i < BATCH; i++)
        MPI_Isend(out[i], length_of(test_rank, batch * BATCH + i), MPI_BYTE, test_next(), 3, MPI_COMM_WORLD, &sends[i]);
    if (batch % 3 == 1)
        for (int i = 0; i < BATCH; i++)
            MPI_Irecv(in[i], LARGEST, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : test_previous(), 3, MPI_COMM_WORLD,
                      &receives[i]);
    if (batch % 3 == 2)
        for (int i = 0; i < BATCH; i++)
            MPI_Recv(in[i], LARGEST, MPI_BYTE, test_previous(), MPI_ANY_TAG, MPI_COMM_WORLD, &statuses[i]);
    else
        MPI_Waitall(BATCH, receives, statuses);
    for (int i = 0; i < BATCH; i++) {
        int index = batch * BATCH + i, length = length_of(test_previous(), index);
        CHECK_STATUS(&statuses[i], test_previous(), 3, (size_t)length);
        CHECK_DATA(in[i], (size_t)length, name(test_previous(), index));
    }
    MPI_Waitall(BATCH, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < BATCH; i++) {
        free(out[i]);
        free(in[i]);
    }
}

/* Two tags in turn; all of the second are received first, then those of the first: each in order. */
static void two_tags(void)
{
    enum { COUNT = 60 };
    int out[COUNT], in;
    static char filler[20000], drain[20000];
    MPI_Request sends[2 * COUNT];
    for (int i = 0; i < COUNT; i++) {
        out[i] = i;
        MPI_Isend(&out[i], 1, MPI_INT, test_next(), 10 + i % 2, MPI_COMM_WORLD, &sends[2 * i]);
        MPI_Isend(filler, i % 5 == 0 ? (int)sizeof filler : 1, MPI_BYTE, test_next(), 12, MPI_COMM_WORLD,
                  &sends[2 * i + 1]);
    }
    for (int tag = 11; tag >= 10; tag--)
        for (int i = tag - 10; i < COUNT; i += 2) {
            in = -1;
            MPI_Recv(&in, 1, MPI_INT, test_previous(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_EQUAL(in, i);
        }
    for (int i = 0; i < COUNT; i++) {
        MPI_Status status;
        MPI_Recv(drain, (int)sizeof drain, MPI_BYTE, test_previous(), 12, MPI_COMM_WORLD, &status);
        CHECK_STATUS(&status, test_previous(), 12, i % 5 == 0 ? sizeof filler : 1);
    }
    MPI_Waitall(2 * COUNT, sends, MPI_STATUSES_IGNORE);
}

/* Receives with and without wildcards: a message goes to the first posted that fits. */
static void posted_order(bool posted_first)
{
    static const int tags[] = {5, 6, 5, 6, 5, 7};
    enum { COUNT = sizeof tags / sizeof tags[0] };
    int from = test_previous(), out[COUNT], in[COUNT];
    const int sources[COUNT] = {MPI_ANY_SOURCE, from, MPI_ANY_SOURCE, from, MPI_ANY_SOURCE, from};
    const int wanted[COUNT] = {MPI_ANY_TAG, 6, 5, MPI_ANY_TAG, MPI_ANY_TAG, 7};
    MPI_Request sends[COUNT], receives[COUNT];
    MPI_Status statuses[COUNT];
    for (int i = 0; i < COUNT; i++)
        in[i] = -1;
    if (posted_first)
        for (int i = 0; i < COUNT; i++)
            MPI_Irecv(&in[i], 1, MPI_INT, sources[i], wanted[i], MPI_COMM_WORLD, &receives[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) {
        out[i] = i;
        MPI_Isend(&out[i], 1, MPI_INT, test_next(), tags[i], MPI_COMM_WORLD, &sends[i]);
    }
    if (!posted_first)
        for (int i = 0; i < COUNT; i++)
            MPI_Irecv(&in[i], 1, MPI_INT, sources[i], wanted[i], MPI_COMM_WORLD, &receives[i]);
    MPI_Waitall(COUNT, receives, statuses);
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQUAL(in[i], i);
        CHECK_STATUS(&statuses[i], from, tags[i], sizeof(int));
    }
    MPI_Waitall(COUNT, sends, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void send_to_root(unsigned char *copies[TO_ROOT], MPI_Request requests[TO_ROOT])
{
    for (int i = 0; i < TO_ROOT; i++) {
        int length = length_of(test_rank, i);
        copies[i] = test_memory((size_t)length);
        test_fill(copies[i], (size_t)length, name(test_rank, i));
        MPI_Isend(copies[i], length, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
}

/* Everyone, the root too, sends to the root, which takes whatever comes: all arrive, each sender's in order. */
static void to_root(void)
{
    static unsigned char *copies[TO_ROOT];
    static MPI_Request requests[TO_ROOT];
    send_to_root(copies, requests);
    if (test_rank == 0) {
        unsigned char *in = test_memory(LARGEST);
        int *arrived = calloc((size_t)test_size, sizeof *arrived);
        test_need(arrived != NULL, "there is no memory");
        for (int n = 0; n < TO_ROOT * test_size; n++) {
            MPI_Status status;
            MPI_Recv(in, LARGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            int from = status.MPI_SOURCE;
            test_need(from >= 0 && from < test_size && arrived[from] < TO_ROOT, "the source is wrong");
            int length = length_of(from, arrived[from]);
            CHECK_STATUS(&status, from, arrived[from], (size_t)length);
            CHECK_DATA(in, (size_t)length, name(from, arrived[from]));
            arrived[from]++;
        }
        free(arrived);
        free(in);
    }
    MPI_Waitall(TO_ROOT, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < TO_ROOT; i++)
        free(copies[i]);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int batch = 0; batch < BATCHES; batch++)
        one_tag(batch);
    MPI_Barrier(MPI_COMM_WORLD);
    two_tags();
    posted_order(true);
    posted_order(false);
    to_root();
    return test_end();
}

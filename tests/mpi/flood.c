/* Many messages that nobody has asked for yet: they neither crash nor deadlock, and the receiver's memory stays
 * bounded. Long ones are received in reverse order of their tags.
 *
 * usage: flood [LONG SHORT]       messages of each sender: 64 KiB ones (10000) and 1 KiB ones (100000 in all) */
#include "test.h"

#define LONG_BYTES  65536
#define SHORT_BYTES 1024
#define BOUND       (64 << 20) /* growth of a rank beyond its own buffers */
#define SENDERS     3

/* A field of /proc/self/status in bytes. */
static long long memory(const char *field)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long long kib = -1;
    test_need(file != NULL, "/proc/self/status cannot be read");
    while (kib < 0 && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            kib = strtoll(line + strlen(field) + 1, NULL, 10);
    fclose(file);
    test_need(kib >= 0, field);
    return kib * 1024;
}

static void check_growth(const char *when, long long before)
{
    long long growth = memory("VmRSS") - before;
    CHECK(growth < BOUND, "the process has grown by %lld MiB %s", growth >> 20, when);
}

static bool is_sender(void)
{
    return test_size == 1 || (test_rank > 0 && test_rank <= SENDERS);
}

static int sender_count(void)
{
    return test_size == 1 ? 1 : test_size - 1 < SENDERS ? test_size - 1 : SENDERS;
}

static int sender(int i)
{
    return test_size == 1 ? 0 : i + 1;
}

/* Message i is the data of its sender from word i on: all differ, and one buffer holds them all. */
static void check_message(const unsigned char *data, size_t bytes, int from, int i)
{
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t expected = test_word((uint64_t)from, at / sizeof expected + (uint64_t)i), seen;
        memcpy(&seen, data + at, sizeof seen);
        if (seen != expected) {
            CHECK(false, "message %d from %d is wrong at byte %zu of %zu", i, from, at, bytes);
            return;
        }
    }
}

static void receive_long(int messages, unsigned char *in, long long before)
{
    for (int i = messages - 1; i >= 0; i--) {
        for (int s = 0; s < sender_count(); s++) {
            MPI_Status status;
            MPI_Recv(in, LONG_BYTES, MPI_BYTE, sender(s), i, MPI_COMM_WORLD, &status);
            CHECK_STATUS(&status, sender(s), i, LONG_BYTES);
            check_message(in, LONG_BYTES, sender(s), i);
        }
        if (i % 1000 == 0)
            check_growth("while it received long messages in reverse order", before);
    }
}

static void long_ones(int messages)
{
    size_t room = LONG_BYTES + (size_t)messages * sizeof(uint64_t);
    unsigned char *out = NULL, *in = NULL;
    MPI_Request *requests = NULL;
    if (is_sender()) {
        out = test_memory(room);
        test_fill(out, room, (uint64_t)test_rank);
        requests = test_memory((size_t)messages * sizeof *requests);
    }
    if (test_rank == 0)
        in = test_memory(LONG_BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    long long before = memory("VmRSS");
    if (is_sender())
        for (int i = 0; i < messages; i++)
            MPI_Isend(out + (size_t)i * sizeof(uint64_t), LONG_BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
    if (test_rank == 0) {
        /* The last of each is announced when all before it are. */
        for (int s = 0; s < sender_count(); s++)
            MPI_Probe(sender(s), messages - 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_growth("when all long messages had been sent", before);
        receive_long(messages, in, before);
    }
    if (is_sender()) {
        MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
        check_growth("as a sender of long messages", before);
    }
    free(out);
    free(in);
    free(requests);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void short_ones(int messages)
{
    if (test_size == 1)
        return;
    messages /= sender_count();
    size_t room = SHORT_BYTES + (size_t)messages * sizeof(uint64_t);
    unsigned char *out = NULL, in[SHORT_BYTES];
    if (is_sender()) {
        out = test_memory(room);
        test_fill(out, room, (uint64_t)test_rank);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    long long before = memory("VmRSS");
    if (is_sender())
        for (int i = 0; i < messages; i++)
            MPI_Send(out + (size_t)i * sizeof(uint64_t), SHORT_BYTES, MPI_BYTE, 0, i % 30000, MPI_COMM_WORLD);
    if (test_rank == 0) {
        /* A while in which messages only arrive: in an MPI call, but not received. */
        double end = test_now() + 0.3;
        int flag;
        while (test_now() < end)
            MPI_Iprobe(MPI_ANY_SOURCE, 32000, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        check_growth("while short messages arrived", before);
        int next[SENDERS + 1] = {0};
        for (int i = 0; i < messages * sender_count(); i++) {
            MPI_Status status;
            MPI_Recv(in, SHORT_BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            int from = status.MPI_SOURCE;
            test_need(from > 0 && from <= SENDERS, "the source is wrong");
            CHECK_STATUS(&status, from, next[from] % 30000, SHORT_BYTES);
            check_message(in, SHORT_BYTES, from, next[from]++);
        }
        check_growth("after short messages", before);
    }
    if (is_sender())
        check_growth("as a sender of short messages", before);
    free(out);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    int longs = argc > 1 ? atoi(argv[1]) : 10000, shorts = argc > 2 ? atoi(argv[2]) : 100000;
    long_ones(longs);
    short_ones(shorts);
    return test_end();
}

/* What the shared-memory transport does by itself, without MPI on top: two processes on two cores.
 *
 *     shm_pingpong latency [SIZE]    half round trips of one frame
 *     shm_pingpong rate [SIZE]       frames one way, as fast as they go
 *     shm_pingpong copy [LEAST MOST] bytes one way for several message sizes: two copies through the ring against one
 *                                    copy by cross-memory attach, with one buffer and with buffers in rotation
 *
 * Parameters come from the environment (TOMBOLO_SHM_RING=256k). */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "transport/transport.h"

#define BUFFERS      64
#define BUFFER_BYTES (4u << 20)
#define ROUNDS       24
#define WINDOW       32
#define BATCHES      401
#define BATCH        2000

struct side {
    struct tb_transport *transport;
    struct tb_endpoint *other;
    uint64_t frames, bytes; /* arrived */
    uint64_t vain;          /* polls without result */
    uint64_t requests;      /* frames that will have arrived when all requests have been answered */
    uint64_t address, length;
    char *buffer; /* where payload goes */
    char *memory; /* all buffers */
};

static void take_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                       const struct tb_message *message, const void *payload, size_t length)
{
    struct side *side = context;
    side->frames++;
    side->bytes += length;
    if (message->kind == TB_KIND_DATA) {
        memcpy(side->buffer + message->offset, payload, length);
    } else if (message->kind == TB_KIND_REQUEST) {
        side->length = message->length;
        memcpy(&side->address, payload, sizeof(side->address));
    }
}

static void see_writable(void *context, struct tb_endpoint *to) {}

static void see_opened(void *context, struct tb_endpoint *from) {}

static void see_broken(void *context, struct tb_endpoint *with, int error)
{
    fprintf(stderr, "broken: %s\n", tb_error_story());
    exit(1);
}

static void check(int error)
{
    if (error != TB_OK) {
        fprintf(stderr, "%s\n", tb_error_story());
        exit(1);
    }
}

/* On a machine with other work the one that is waited for may not run. */
static void poll_once(struct side *side)
{
    if (side->transport->table->poll(side->transport) > 0)
        side->vain = 0;
    else if (++side->vain % 10000 == 0)
        sched_yield();
}

static void post(struct side *side, uint8_t kind, uint64_t offset, const void *bytes, size_t length)
{
    struct tb_envelope envelope = {.message = {.kind = kind, .length = length, .offset = offset}};
    struct tb_spans spans = tb_spans_of(bytes, length);
    int answer;
    while ((answer = side->transport->table->send(side->other, &envelope, &spans, TB_STREAM_SHORT, NULL)) == TB_AGAIN)
        poll_once(side);
    check(answer);
}

static void await(struct side *side, uint64_t frames)
{
    while (side->frames < frames)
        poll_once(side);
}

static void pass_baton(struct side *side, int index)
{
    uint64_t frames = side->frames;
    if (index == 0)
        post(side, TB_KIND_DONE, 0, NULL, 0);
    await(side, frames + 1);
    if (index == 1)
        post(side, TB_KIND_DONE, 0, NULL, 0);
}

static double seconds_since(uint64_t start)
{
    return (double)(tb_clock_now_real() - start) * 1e-9;
}

/* Many short runs: on a machine with other work the least and the median say more than a mean. */
static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *what, size_t size, double *times)
{
    qsort(times, BATCHES, sizeof(*times), compare_times);
    printf("%zu bytes: %s %.1f ns at least, %.1f ns median\n", size, what, times[0] * 1e9, times[BATCHES / 2] * 1e9);
}

static void run_latency(struct side *side, int index, size_t size)
{
    char *bytes = side->memory;
    double times[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t start = tb_clock_now_real();
        for (int i = 0; i < BATCH; i++) {
            uint64_t frames = side->frames;
            if (index == 0)
                post(side, TB_KIND_EAGER, 0, bytes, size);
            await(side, frames + 1);
            if (index == 1)
                post(side, TB_KIND_EAGER, 0, bytes, size);
        }
        times[batch] = seconds_since(start) / BATCH / 2;
    }
    if (index == 0)
        print_times("half round trip", size, times);
}

static void run_rate(struct side *side, int index, size_t size)
{
    char *bytes = side->memory;
    double times[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        pass_baton(side, index);
        uint64_t start = tb_clock_now_real(), frames = side->frames;
        if (index == 0) {
            for (int i = 0; i < BATCH; i++)
                post(side, TB_KIND_EAGER, 0, bytes, size);
            await(side, frames + 1);
            times[batch] = seconds_since(start) / BATCH;
        } else {
            await(side, frames + BATCH);
            post(side, TB_KIND_DONE, 0, NULL, 0);
        }
    }
    if (index == 0)
        print_times("a frame", size, times);
}

static char *buffer_at(struct side *side, uint64_t i, size_t length, bool rotate)
{
    uint64_t many = (uint64_t)BUFFERS * BUFFER_BYTES / (length > BUFFER_BYTES ? length : BUFFER_BYTES);
    return side->memory + (rotate ? i % many * (length > BUFFER_BYTES ? length : BUFFER_BYTES) : 0);
}

/* One message through the ring, in fragments of the transport's size. */
static void copy_twice(struct side *side, int index, char *buffer, size_t length)
{
    if (index == 1) {
        uint64_t bytes = side->bytes;
        side->buffer = buffer;
        while (side->bytes < bytes + length)
            poll_once(side);
        return;
    }
    size_t piece = side->transport->max_payload;
    for (size_t at = 0; at < length; at += piece)
        post(side, TB_KIND_DATA, at, buffer + at, length - at < piece ? length - at : piece);
}

/* One message read by the receiver itself. Few are under way, so that no ring is ever full. */
static void copy_once(struct side *side, int index, char *buffer, size_t length)
{
    if (index == 0) {
        await(side, side->requests > WINDOW ? side->requests - WINDOW : 0);
        side->requests++;
        struct tb_envelope envelope = {.message = {.kind = TB_KIND_REQUEST, .length = length}};
        uint64_t address = (uint64_t)(uintptr_t)buffer;
        struct tb_spans spans = tb_spans_of(&address, sizeof(address));
        while (side->transport->table->send(side->other, &envelope, &spans, TB_STREAM_SHORT, NULL) == TB_AGAIN)
            poll_once(side);
        return;
    }
    await(side, side->frames + 1);
    struct tb_spans into = tb_spans_of(buffer, length);
    check(side->transport->table->read(side->other, side->address, &into, length));
    post(side, TB_KIND_DONE, 0, NULL, 0);
}

static double time_copies(struct side *side, int index, size_t length, bool rotate, bool once)
{
    double best = 1e9;
    uint64_t count = (32u << 20) / length + 1;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        pass_baton(side, index);
        uint64_t start = tb_clock_now_real(), frames = side->frames;
        side->requests = frames;
        for (uint64_t i = round * count; i < (round + 1) * count; i++)
            (once ? copy_once : copy_twice)(side, index, buffer_at(side, i, length, rotate), length);
        if (index == 1 && !once)
            post(side, TB_KIND_DONE, 0, NULL, 0);
        if (index == 0)
            await(side, frames + (once ? count : 1));
        double took = seconds_since(start);
        best = took < best ? took : best;
    }
    return (double)(count * length) / best * 1e-9;
}

static void run_copy(struct side *side, int index, size_t least, size_t most)
{
    for (size_t length = least; length <= most; length *= 4) {
        double speed[4];
        for (int mode = 0; mode < 4; mode++)
            speed[mode] = time_copies(side, index, length, mode & 1, mode & 2);
        if (index == 0)
            printf("%8zu bytes, GB/s: ring %5.1f rotating %5.1f; attach %5.1f rotating %5.1f\n", length, speed[0],
                   speed[1], speed[2], speed[3]);
    }
}

static void run(int index, void *segment, size_t bytes, const int *doorbells, int argc, char **argv)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(index, &cores);
    sched_setaffinity(0, sizeof(cores), &cores);
    const uint32_t procs[2] = {0, 1};
    struct side side = {.frames = 0};
    struct tb_transport_config config = {
        .self = {1, (uint32_t)index},
        .clock = &tb_clock_real,
        .upcalls = {&side, take_frame, NULL, NULL, see_writable, see_opened, see_broken},
        .segment = segment,
        .segment_bytes = bytes,
        .local_index = (uint32_t)index,
        .local_count = 2,
        .local_procs = procs,
        .doorbells = doorbells,
    };
    check(tb_transport_shm.open(&config, &side.transport));
    check(tb_transport_shm.endpoint(side.transport, (struct tb_proc){1, procs[1 - index]}, &side.other));
    size_t size = argc > 2 ? (size_t)atol(argv[2]) : 8;
    {
        size_t all = strcmp(argv[1], "copy") == 0 ? (size_t)BUFFERS * BUFFER_BYTES : BUFFER_BYTES;
        side.memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (side.memory == MAP_FAILED)
            check(tb_error_errno("no memory for the buffers"));
        memset(side.memory, index, all);
    }
    pass_baton(&side, index);
    if (strcmp(argv[1], "latency") == 0)
        run_latency(&side, index, size);
    else if (strcmp(argv[1], "rate") == 0)
        run_rate(&side, index, size);
    else
        run_copy(&side, index, argc > 2 ? size : 16384, argc > 3 ? (size_t)atol(argv[3]) : 16u << 20);
    tb_transport_shm.close(side.transport);
}

int main(int argc, char **argv)
{
    if (argc < 2 || (strcmp(argv[1], "latency") != 0 && strcmp(argv[1], "rate") != 0 && strcmp(argv[1], "copy") != 0)) {
        fprintf(stderr, "usage: %s latency [SIZE] | rate [SIZE] | copy [LEAST MOST]\n", argv[0]);
        return 2;
    }
    check(tb_transports_load_params());
    size_t bytes = tb_shm_segment_bytes(2);
    void *segment = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int doorbells[2] = {eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (segment == MAP_FAILED || doorbells[0] < 0 || doorbells[1] < 0)
        check(tb_error_errno("cannot set up"));
    pid_t child = fork();
    if (child < 0)
        check(tb_error_errno("cannot fork"));
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    run(child == 0, segment, bytes, doorbells, argc, argv);
    if (child == 0)
        return 0;
    int status = 0;
    waitpid(child, &status, 0);
    return status != 0;
}

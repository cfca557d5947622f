/* Ranks of a host that talk through shared memory, for the tests of that transport. A child process proves its part by
 * its exit code. */
#ifndef TB_TRANSPORT_SHM_SHM_TEST_H
#define TB_TRANSPORT_SHM_SHM_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "transport/transport.h"
#include "transport/shm/segment.h"
#include "transport/shm/shm_param.h"

#define RANKS_MOST 8
#define PATIENCE   50000 /* milliseconds after which a sleeper has been forgotten */
#define JOB        77
#define LAST       99 /* match of the last frame of a test */

static const struct tb_transport_table *const shm = &tb_transport_shm;

/* ---- a host ------------------------------------------------------------------------------------------------------ */

struct host {
    uint32_t ranks;
    int memory;
    void *segment;
    size_t bytes;
    uint32_t procs[RANKS_MOST];
    int doorbells[RANKS_MOST];
};

static void host_make(struct host *host, uint32_t ranks, uint64_t ring)
{
    tb_shm_param.ring = ring;
    tb_shm_param.cross_memory = true;
    *host = (struct host){.ranks = ranks, .bytes = tb_shm_segment_bytes(ranks)};
    host->memory = memfd_create("shm_test", MFD_CLOEXEC);
    assert_true(host->memory >= 0);
    assert_int_equal(ftruncate(host->memory, (off_t)host->bytes), 0);
    host->segment = mmap(NULL, host->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, host->memory, 0);
    assert_true(host->segment != MAP_FAILED);
    for (uint32_t i = 0; i < ranks; i++) {
        host->procs[i] = 100 + i * 3; /* job indices of a host have gaps */
        host->doorbells[i] = eventfd(0, EFD_CLOEXEC);
        assert_true(host->doorbells[i] >= 0);
    }
}

static void host_end(struct host *host)
{
    munmap(host->segment, host->bytes);
    close(host->memory);
    for (uint32_t i = 0; i < host->ranks; i++)
        close(host->doorbells[i]);
}

/* ---- a rank ------------------------------------------------------------------------------------------------------ */

struct rank {
    struct host *host;
    uint32_t index;
    struct tb_transport *transport;
    struct tb_endpoint *to[RANKS_MOST];
    uint64_t got[RANKS_MOST]; /* frames from each */
    struct tb_random expected[RANKS_MOST];
    uint64_t frames, opened, writable, broken, sleeps;
    int error;      /* of the last broken */
    bool unchecked; /* frames are only counted, and whether one was marked as the last */
    bool last;
    _Atomic uint64_t *seen; /* tells another process how many frames have arrived; NULL: nobody */
};

static uint32_t local_of(struct rank *rank, struct tb_endpoint *endpoint)
{
    for (uint32_t i = 0; i < rank->host->ranks; i++) {
        if (rank->host->procs[i] == endpoint->proc.index)
            return i;
    }
    TB_ASSERT(!"an endpoint of another host");
    return 0;
}

/* The frames of a stream follow from its seed: the sender makes them, the receiver makes them again. */
struct sample {
    struct tb_envelope envelope;
    uint32_t length;
    char payload[64 << 10];
};

static void sample_make(struct sample *sample, struct tb_random *random, uint32_t longest)
{
    static const uint32_t odd[] = {0,  1,  7,   8,   15,  16,  17,  31,  48,  63,  64,
                                   65, 80, 168, 169, 207, 208, 209, 255, 256, 1024};
    uint64_t choice = tb_random_below(random, 64);
    if (choice < sizeof(odd) / sizeof(odd[0]))
        sample->length = odd[choice];
    else if (choice < 26)
        sample->length = longest - (uint32_t)tb_random_below(random, 3);
    else if (choice < 40)
        sample->length = (uint32_t)tb_random_below(random, longest + 1);
    else
        sample->length = (uint32_t)tb_random_below(random, 300);
    struct tb_message *m = &sample->envelope.message;
    *m = (struct tb_message){.context = tb_random_next(random),
                             .match = tb_random_next(random),
                             .length = sample->length,
                             .offset = tb_random_next(random),
                             .source_rank = (uint32_t)tb_random_next(random),
                             .kind = TB_KIND_EAGER,
                             .representation = 3};
    if (tb_random_below(random, 4) == 0) {
        m->flags = TB_MESSAGE_ROUTED;
        sample->envelope.routing =
            (struct tb_routing){.source = {JOB, 1}, .sequence = (uint32_t)tb_random_next(random)};
    }
    uint64_t fill = tb_random_next(random);
    for (uint32_t i = 0; i < sample->length; i++)
        sample->payload[i] = (char)(fill >> (i % 57) ^ i);
}

static void sample_check(const struct sample *sample, const struct tb_routing *routing,
                         const struct tb_message *message, const void *payload, size_t length)
{
    TB_ASSERT(length == sample->length);
    TB_ASSERT(memcmp(message, &sample->envelope.message, sizeof(*message)) == 0);
    TB_ASSERT((routing != NULL) == ((message->flags & TB_MESSAGE_ROUTED) != 0));
    if (routing != NULL)
        TB_ASSERT(memcmp(routing, &sample->envelope.routing, sizeof(*routing)) == 0);
    TB_ASSERT(length == 0 || memcmp(payload, sample->payload, length) == 0);
}

static void on_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    struct rank *rank = context;
    uint32_t local = local_of(rank, from);
    rank->frames++;
    rank->got[local]++;
    if (rank->seen != NULL)
        atomic_store_explicit(rank->seen, rank->frames, memory_order_relaxed);
    if (rank->unchecked) {
        rank->last |= message->match == LAST;
        return;
    }
    struct sample *sample = malloc(sizeof(*sample));
    TB_ASSERT(sample != NULL);
    *sample = (struct sample){.length = 0};
    sample_make(sample, &rank->expected[local], rank->transport->max_payload);
    sample_check(sample, routing, message, payload, length);
    free(sample);
}

static void on_writable(void *context, struct tb_endpoint *to)
{
    ((struct rank *)context)->writable++;
}

static void on_opened(void *context, struct tb_endpoint *from)
{
    struct rank *rank = context;
    rank->opened++;
    from->user = rank;
}

static void on_broken(void *context, struct tb_endpoint *with, int error)
{
    struct rank *rank = context;
    rank->broken++;
    rank->error = error;
}

static struct tb_transport_config rank_config(struct rank *rank, struct host *host, uint32_t index)
{
    return (struct tb_transport_config){
        .self = {JOB, host->procs[index]},
        .clock = &tb_clock_real,
        .upcalls =
            {.context = rank, .frame = on_frame, .writable = on_writable, .opened = on_opened, .broken = on_broken},
        .segment = host->segment,
        .segment_bytes = host->bytes,
        .local_index = index,
        .local_count = host->ranks,
        .local_procs = host->procs,
        .doorbells = host->doorbells,
    };
}

static uint64_t stream_seed(uint32_t from, uint32_t to)
{
    return 1000 + from * 64 + to;
}

static void rank_open(struct rank *rank, struct host *host, uint32_t index)
{
    *rank = (struct rank){.host = host, .index = index};
    struct tb_transport_config config = rank_config(rank, host, index);
    TB_ASSERT(shm->open(&config, &rank->transport) == TB_OK);
    for (uint32_t i = 0; i < host->ranks; i++)
        tb_random_seed(&rank->expected[i], stream_seed(i, index));
}

static struct tb_endpoint *rank_reach(struct rank *rank, uint32_t local)
{
    if (rank->to[local] == NULL) {
        struct tb_proc proc = {JOB, rank->host->procs[local]};
        TB_ASSERT(shm->endpoint(rank->transport, proc, &rank->to[local]) == TB_OK);
    }
    return rank->to[local];
}

static void rank_close(struct rank *rank)
{
    shm->close(rank->transport);
}

/* Ends the process with what is known about a sleeper that nobody has woken. */
static inline _Noreturn void rank_forgotten(struct rank *rank)
{
    struct host *host = rank->host;
    for (uint32_t i = 0; i < host->ranks; i++) {
        struct tb_ring_memory *in = tb_shm_ring_of(host->segment, host->ranks, i, rank->index, tb_shm_param.ring);
        struct tb_ring_memory *out = tb_shm_ring_of(host->segment, host->ranks, rank->index, i, tb_shm_param.ring);
        fprintf(stderr, "rank %u: state %u; to %u: told %llu, waiting %u; from it: told %llu, waiting %u, taken %llu\n",
                i, tb_shm_page_of(host->segment, i)->state, rank->index, (unsigned long long)in->head, in->waiting,
                (unsigned long long)out->head, out->waiting, (unsigned long long)rank->got[i]);
    }
    tb_panic(__FILE__, __LINE__, "rank %u slept for %d s; frames %llu, broken %llu, room again: %llu", rank->index,
             PATIENCE / 1000, (unsigned long long)rank->frames, (unsigned long long)rank->broken,
             (unsigned long long)rank->writable);
}

/* Sleeps until something may have happened. Each sleep must end: nobody waits for PATIENCE. */
static inline void rank_sleep(struct rank *rank)
{
    if (!shm->arm(rank->transport))
        return;
    struct pollfd wait = {.fd = shm->descriptor(rank->transport), .events = POLLIN};
    int ready;
    do {
        ready = poll(&wait, 1, PATIENCE);
    } while (ready < 0 && errno == EINTR);
    if (ready != 1)
        rank_forgotten(rank);
    rank->sleeps++;
    shm->disarm(rank->transport);
}

/* Spans of a few bytes each, walked by `next`. */
static void crumbs_next(struct tb_spans *spans)
{
    static const size_t sizes[] = {1, 5, 64, 3, 1000};
    size_t n = sizes[spans->cursor[0]++ % 5];
    spans->length = n < spans->left ? n : spans->left;
}

static struct tb_spans crumbs_of(void *base, size_t length)
{
    struct tb_spans spans = {.base = base, .left = length, .next = crumbs_next};
    if (length > 0)
        crumbs_next(&spans);
    return spans;
}

static int rank_try(struct rank *rank, uint32_t to, struct sample *sample, bool crumbs)
{
    struct tb_spans spans =
        crumbs ? crumbs_of(sample->payload, sample->length) : tb_spans_of(sample->payload, sample->length);
    int answer = shm->send(rank_reach(rank, to), &sample->envelope, &spans, TB_STREAM_SHORT, NULL);
    TB_ASSERT(answer == TB_OK || answer == TB_AGAIN);
    TB_ASSERT(spans.left == (answer == TB_OK ? 0 : sample->length));
    return answer;
}

/* ---- streams between ranks, as threads and as processes ---------------------------------------------------------- */

struct plan {
    struct host *host;
    uint32_t index;
    uint64_t count;    /* frames of each stream */
    uint64_t targets;  /* bit set of ranks that this one sends to */
    uint64_t expected; /* frames that it gets in all */
    bool asleep;       /* sleeps whenever there is nothing to do */
};

static inline void *plan_run(void *argument)
{
    struct plan *plan = argument;
    struct rank *rank = malloc(sizeof(*rank));
    struct sample *sample = calloc(1, sizeof(*sample));
    TB_ASSERT(rank != NULL && sample != NULL);
    rank_open(rank, plan->host, plan->index);
    struct tb_random seeds[RANKS_MOST];
    for (uint32_t to = 0; to < plan->host->ranks; to++)
        tb_random_seed(&seeds[to], stream_seed(plan->index, to));
    for (uint64_t i = 0; i < plan->count; i++) {
        for (uint32_t to = 0; to < plan->host->ranks; to++) {
            if (!(plan->targets >> to & 1))
                continue;
            *sample = (struct sample){.length = 0};
            sample_make(sample, &seeds[to], rank->transport->max_payload);
            while (rank_try(rank, to, sample, i % 3 == 0) == TB_AGAIN) {
                if (shm->poll(rank->transport) == 0 && plan->asleep)
                    rank_sleep(rank);
            }
        }
        shm->poll(rank->transport);
    }
    while (rank->frames < plan->expected) {
        if (shm->poll(rank->transport) == 0 && plan->asleep)
            rank_sleep(rank);
    }
    TB_ASSERT((rank->broken == 0 || rank->error == TB_ERR_CLOSED) &&
              shm->idle(rank->transport)); /* others may leave first */
    rank_close(rank);
    free(sample);
    free(rank);
    return NULL;
}

static inline pid_t start_child(void *(*run)(void *), void *argument)
{
    pid_t parent = getpid(), child = fork();
    assert_true(child >= 0);
    if (child > 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    run(argument);
    _exit(0);
}

static inline void end_child(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- two ranks in one thread ------------------------------------------------------------------------------------- */

struct pair {
    struct host host;
    struct rank a, b;
    struct sample *sample;
};

static inline void pair_open(struct pair *pair, uint64_t ring)
{
    host_make(&pair->host, 2, ring);
    rank_open(&pair->a, &pair->host, 0);
    rank_open(&pair->b, &pair->host, 1);
    pair->b.unchecked = true;
    pair->sample = calloc(1, sizeof(*pair->sample));
    assert_non_null(pair->sample);
    pair->sample->envelope.message.kind = TB_KIND_EAGER;
}

static inline void pair_close(struct pair *pair)
{
    rank_close(&pair->a);
    rank_close(&pair->b);
    free(pair->sample);
    host_end(&pair->host);
}

#endif

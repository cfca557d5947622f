/* The shared-memory transport between threads, processes, and alone. A child process proves its part by its exit
 * status: what is wrong there ends it with TB_ASSERT. */
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
    tb_param.shm_ring = ring;
    tb_param.cross_memory = true;
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
static _Noreturn void rank_forgotten(struct rank *rank)
{
    struct host *host = rank->host;
    for (uint32_t i = 0; i < host->ranks; i++) {
        struct tb_ring_memory *in = tb_shm_ring_of(host->segment, host->ranks, i, rank->index, tb_param.shm_ring);
        struct tb_ring_memory *out = tb_shm_ring_of(host->segment, host->ranks, rank->index, i, tb_param.shm_ring);
        fprintf(stderr, "rank %u: state %u; to %u: told %llu, waiting %u; from it: told %llu, waiting %u, taken %llu\n",
                i, tb_shm_page_of(host->segment, i)->state, rank->index, (unsigned long long)in->head, in->waiting,
                (unsigned long long)out->head, out->waiting, (unsigned long long)rank->got[i]);
    }
    tb_panic(__FILE__, __LINE__, "rank %u slept for %d s; frames %llu, broken %llu, room again: %llu", rank->index,
             PATIENCE / 1000, (unsigned long long)rank->frames, (unsigned long long)rank->broken,
             (unsigned long long)rank->writable);
}

/* Sleeps until something may have happened. Each sleep must end: nobody waits for PATIENCE. */
static void rank_sleep(struct rank *rank)
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

static void *plan_run(void *argument)
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
    TB_ASSERT(rank->broken == 0 && shm->idle(rank->transport));
    rank_close(rank);
    free(sample);
    free(rank);
    return NULL;
}

static pid_t start_child(void *(*run)(void *), void *argument)
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

static void end_child(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void run_plans(struct plan *plans, uint32_t count, bool processes)
{
    pid_t children[RANKS_MOST];
    pthread_t threads[RANKS_MOST];
    for (uint32_t i = 0; i < count; i++) {
        if (processes)
            children[i] = start_child(plan_run, &plans[i]);
        else
            assert_int_equal(pthread_create(&threads[i], NULL, plan_run, &plans[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (processes)
            end_child(children[i]);
        else
            assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static void run_streams(uint32_t ranks, uint64_t ring, uint64_t count, bool to_first_only, bool asleep, bool processes)
{
    struct host host;
    struct plan plans[RANKS_MOST];
    host_make(&host, ranks, ring);
    for (uint32_t i = 0; i < ranks; i++) {
        plans[i] = (struct plan){.host = &host, .index = i, .count = count, .asleep = asleep};
        if (!to_first_only) {
            plans[i].targets = ((uint64_t)1 << ranks) - 1; /* itself too */
            plans[i].expected = count * ranks;
        } else {
            plans[i].targets = i > 0;
            plans[i].expected = i > 0 ? 0 : count * (ranks - 1);
        }
    }
    run_plans(plans, ranks, processes);
    host_end(&host);
}

static void test_streams_of_threads(void **state)
{
    run_streams(2, 64 << 10, 3000, false, true, false);
}

static void test_streams_of_processes(void **state)
{
    run_streams(2, 128 << 10, 5000, false, true, true);
    run_streams(2, 8 << 10, 3000, false, true, true);
}

static void test_many_senders(void **state)
{
    run_streams(7, 16 << 10, 600, true, true, true);
}

static void test_everybody_to_everybody(void **state)
{
    run_streams(5, 32 << 10, 300, false, true, true);
}

static void test_alone(void **state)
{
    run_streams(1, 64 << 10, 500, false, false, true);
}

/* ---- in one thread: what is exact -------------------------------------------------------------------------------- */

struct pair {
    struct host host;
    struct rank a, b;
    struct sample *sample;
};

static void pair_open(struct pair *pair, uint64_t ring)
{
    host_make(&pair->host, 2, ring);
    rank_open(&pair->a, &pair->host, 0);
    rank_open(&pair->b, &pair->host, 1);
    pair->b.unchecked = true;
    pair->sample = calloc(1, sizeof(*pair->sample));
    assert_non_null(pair->sample);
    pair->sample->envelope.message.kind = TB_KIND_EAGER;
}

static void pair_close(struct pair *pair)
{
    rank_close(&pair->a);
    rank_close(&pair->b);
    free(pair->sample);
    host_end(&pair->host);
}

/* Fills the ring from a to b with frames of one length and empties it again, often enough to wrap. */
static void fill_and_empty(struct pair *pair, uint32_t length)
{
    pair->sample->length = length;
    for (int round = 0; round < 20; round++) {
        uint64_t sent = 0, before = pair->b.frames, writable = pair->a.writable;
        while (rank_try(&pair->a, 1, pair->sample, false) == TB_OK)
            sent++;
        assert_true(sent >= 3);
        assert_int_equal(rank_try(&pair->a, 1, pair->sample, true), TB_AGAIN);
        assert_int_equal(pair->a.writable, writable);
        while (shm->poll(pair->b.transport) > 0)
            ;
        assert_int_equal(pair->b.frames, before + sent);
        assert_int_equal(shm->poll(pair->a.transport), 1);
        assert_int_equal(pair->a.writable, writable + 1);
        assert_int_equal(shm->poll(pair->a.transport), 0);
    }
}

static void test_full_ring(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    uint32_t longest = pair.a.transport->max_payload;
    const uint32_t lengths[] = {0, 8, 16, 17, 80, 81, 208, 209, 1000, longest - 63, longest - 1, longest};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        fill_and_empty(&pair, lengths[i]);
    pair.sample->envelope.message.flags = TB_MESSAGE_ROUTED;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        fill_and_empty(&pair, lengths[i]);
    pair_close(&pair);
}

static void test_full_ring_forbids_sleep_when_freed(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    pair.sample->length = pair.a.transport->max_payload;
    while (rank_try(&pair.a, 1, pair.sample, false) == TB_OK)
        ;
    assert_true(shm->arm(pair.a.transport));
    shm->disarm(pair.a.transport);
    while (shm->poll(pair.b.transport) > 0)
        ;
    assert_false(shm->arm(pair.a.transport));
    assert_int_equal(shm->poll(pair.a.transport), 1);
    assert_true(shm->arm(pair.a.transport));
    shm->disarm(pair.a.transport);
    pair_close(&pair);
}

static bool doorbell_rang(struct rank *rank)
{
    struct pollfd wait = {.fd = shm->descriptor(rank->transport), .events = POLLIN};
    return poll(&wait, 1, 0) == 1;
}

static void test_doorbell(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
    assert_false(doorbell_rang(&pair.b));     /* nobody sleeps */
    assert_false(shm->arm(pair.b.transport)); /* an unknown sender has announced itself */
    assert_int_equal(shm->poll(pair.b.transport), 1);
    assert_true(shm->arm(pair.b.transport));
    assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
    assert_true(doorbell_rang(&pair.b));
    assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK); /* not rung twice */
    uint64_t rings = 0;
    assert_int_equal(read(pair.host.doorbells[1], &rings, sizeof(rings)), sizeof(rings));
    assert_int_equal(rings, 1);
    shm->disarm(pair.b.transport);
    assert_false(doorbell_rang(&pair.b));
    assert_false(shm->arm(pair.b.transport));
    assert_int_equal(shm->deadline(pair.b.transport), TB_NEVER);
    pair_close(&pair);
}

/* A writer that sleeps because the ring is full is woken when the reader makes room. */
static void test_doorbell_for_room(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    pair.sample->length = 8;
    while (rank_try(&pair.a, 1, pair.sample, false) == TB_OK)
        ;
    assert_true(shm->arm(pair.a.transport));
    assert_false(doorbell_rang(&pair.a));
    while (shm->poll(pair.b.transport) > 0)
        ;
    assert_true(doorbell_rang(&pair.a));
    shm->disarm(pair.a.transport);
    assert_int_equal(shm->poll(pair.a.transport), 1);
    pair_close(&pair);
}

/* Long busy, then asleep: the word of the rank says so, and it is still woken. */
static void test_doorbell_after_busy_times(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    struct tb_shm_page *page = tb_shm_page_of(pair.host.segment, 1);
    assert_int_equal(page->state, 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1100; i++) {
            assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
            assert_int_equal(shm->poll(pair.b.transport), 1);
        }
        assert_true(page->state == 2 || page->state == 0); /* 0 where the kernel cannot fence for others */
        assert_true(shm->arm(pair.b.transport));
        assert_int_equal(page->state, 1);
        assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
        assert_true(doorbell_rang(&pair.b));
        shm->disarm(pair.b.transport);
        assert_int_equal(page->state, 0);
        assert_int_equal(shm->poll(pair.b.transport), 1);
    }
    pair_close(&pair);
}

static void test_opened(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
    while (shm->poll(pair.b.transport) > 0)
        ;
    assert_int_equal(pair.b.opened, 1);
    assert_int_equal(pair.b.frames, 3);
    assert_ptr_equal(rank_reach(&pair.b, 0)->user, &pair.b);
    /* The answer comes from one that was asked for already. */
    pair.a.unchecked = true;
    assert_int_equal(rank_try(&pair.b, 0, pair.sample, false), TB_OK);
    assert_int_equal(shm->poll(pair.a.transport), 1);
    assert_int_equal(pair.a.opened, 0);
    pair_close(&pair);
}

static void test_nonsense(void **state)
{
    static const uint64_t words[] = {1,
                                     (uint64_t)1 << 63,
                                     0xffffffffffffffff,
                                     (uint64_t)TB_RING_IS_RECORD << 32 | 5000,
                                     (uint64_t)(TB_RING_IS_RECORD | TB_RING_IS_BULK) << 32 | 8,
                                     (uint64_t)(TB_RING_IS_RECORD | TB_RING_IS_BULK) << 32 | 0xfffffff0};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct pair pair;
        pair_open(&pair, 16 << 10);
        assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
        size_t bulk = 16 << 10;
        struct tb_ring_memory *ring = tb_shm_ring_of(pair.host.segment, 2, 0, 1, bulk);
        atomic_store(&ring->units[0].word, words[i]);
        shm->poll(pair.b.transport);
        assert_int_equal(pair.b.frames, 0);
        assert_int_equal(pair.b.broken, 1);
        assert_int_equal(pair.b.error, TB_ERR_PROTOCOL);
        assert_int_equal(shm->poll(pair.b.transport), 0); /* said once */
        assert_true(shm->arm(pair.b.transport));
        shm->disarm(pair.b.transport);
        pair_close(&pair);
    }
}

static void test_kind_is_checked(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    pair.sample->envelope.message.kind = TB_KIND_COUNT;
    assert_int_equal(rank_try(&pair.a, 1, pair.sample, false), TB_OK);
    shm->poll(pair.b.transport);
    assert_int_equal(pair.b.frames, 0);
    assert_int_equal(pair.b.error, TB_ERR_PROTOCOL);
    pair_close(&pair);
}

static void test_bad_arguments(void **state)
{
    struct host host;
    struct rank rank = {.host = &host};
    struct tb_transport *transport = NULL;
    host_make(&host, 2, 16 << 10);
    struct tb_transport_config config = rank_config(&rank, &host, 0);
    config.segment_bytes--;
    assert_int_equal(shm->open(&config, &transport), TB_ERR_ARGUMENT);
    config.segment_bytes++;
    config.local_index = 2;
    assert_int_equal(shm->open(&config, &transport), TB_ERR_LIMIT);
    config.local_index = 0;
    const int closed[] = {-1, -1};
    config.doorbells = closed;
    assert_int_equal(shm->open(&config, &transport), TB_ERR_SYSTEM);
    assert_null(transport);
    rank_open(&rank, &host, 0);
    struct tb_endpoint *endpoint = NULL, *again = NULL;
    assert_int_equal(shm->endpoint(rank.transport, (struct tb_proc){JOB, 5}, &endpoint), TB_ERR_PEER);
    assert_int_equal(shm->endpoint(rank.transport, (struct tb_proc){JOB + 1, 103}, &endpoint), TB_ERR_PEER);
    assert_int_equal(shm->endpoint(rank.transport, (struct tb_proc){JOB, 103}, &endpoint), TB_OK);
    assert_int_equal(shm->endpoint(rank.transport, (struct tb_proc){JOB, 103}, &again), TB_OK);
    assert_ptr_equal(endpoint, again);
    rank_close(&rank);
    host_end(&host);
}

/* Ranks that have only started have touched their own page and nothing else. */
static void test_memory_at_start(void **state)
{
    struct pair pair;
    pair_open(&pair, 128 << 10);
    assert_int_equal(shm->poll(pair.a.transport), 0);
    assert_true(shm->arm(pair.a.transport));
    shm->disarm(pair.a.transport);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (pair.host.bytes + page - 1) / page, touched = 0;
    unsigned char *resident = malloc(pages);
    assert_non_null(resident);
    assert_int_equal(mincore(pair.host.segment, pair.host.bytes, resident), 0);
    for (size_t i = 0; i < pages; i++)
        touched += resident[i] & 1;
    assert_true(touched <= 2);
    free(resident);
    pair_close(&pair);
}

/* ---- sleeping under load ----------------------------------------------------------------------------------------- */

/* One sends two frames and waits for the answer to the second. The other sleeps after the first, and the second comes
 * at about the moment when it falls asleep, which it tells through `seen`. Bursts make it busy now and then, so that
 * every way to sleep is gone. A wake-up that is lost is seen by both: nothing else would wake them. */
#define NAP_TIME 4000000000u /* nanoseconds */

struct nap {
    struct host *host;
    uint32_t index;
    int rounds;
    _Atomic uint64_t *seen;
};

static void nap_post(struct rank *rank, struct sample *sample)
{
    while (rank_try(rank, 1 - rank->index, sample, false) == TB_AGAIN) {
        if (shm->poll(rank->transport) == 0)
            rank_sleep(rank);
    }
}

static void nap_dawdle(struct tb_random *random)
{
    for (uint64_t spin = tb_random_below(random, 1500); spin > 0; spin--)
        __asm__ volatile("" ::: "memory");
}

static void nap_await(struct rank *rank, uint64_t frames, struct tb_random *random)
{
    while (rank->frames < frames) {
        if (shm->poll(rank->transport) == 0) {
            nap_dawdle(random);
            rank_sleep(rank);
        }
    }
}

static void nap_ask(struct rank *rank, struct sample *sample, _Atomic uint64_t *seen, int rounds)
{
    struct tb_random random;
    tb_random_seed(&random, 5);
    uint64_t sent = 0;
    uint64_t start = tb_clock_now_real();
    for (int i = 0; i < rounds && sample->envelope.message.match != LAST; i++) {
        for (uint64_t burst = i % 8 == 4 ? 1200 : 1; burst > 0; burst--, sent++)
            nap_post(rank, sample);
        for (uint64_t look = 1; atomic_load_explicit(seen, memory_order_relaxed) < sent; look++) {
            if (look % 4096 == 0)
                usleep(20); /* not sched_yield: who yields again and again may be put off for seconds */
        }
        nap_dawdle(&random);
        /* On a crowded machine a round takes milliseconds. */
        if (i == rounds - 1 || tb_clock_now_real() - start > NAP_TIME)
            sample->envelope.message.match = LAST;
        nap_post(rank, sample);
        sent++;
        nap_await(rank, (uint64_t)i + 1, &random);
    }
}

static void nap_answer(struct rank *rank, struct sample *sample)
{
    struct tb_random random;
    tb_random_seed(&random, 6);
    uint64_t expected = 0;
    for (int i = 0; !rank->last; i++) {
        nap_await(rank, expected += i % 8 == 4 ? 1201 : 2, &random);
        nap_post(rank, sample);
    }
    TB_ASSERT(rank->sleeps > 20);
}

/* A scheduler likes to put the one that is woken beside the one that woke it; then they never meet. */
static void nap_bind(uint32_t index)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2)
        return;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &allowed) && index-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            sched_setaffinity(0, sizeof(one), &one);
            return;
        }
    }
}

static void *nap_run(void *argument)
{
    struct nap *nap = argument;
    nap_bind(nap->index);
    struct rank *rank = malloc(sizeof(*rank));
    struct sample *sample = calloc(1, sizeof(*sample));
    TB_ASSERT(rank != NULL && sample != NULL);
    rank_open(rank, nap->host, nap->index);
    rank->unchecked = true;
    sample->envelope.message.kind = TB_KIND_EAGER;
    if (nap->index == 0) {
        nap_ask(rank, sample, nap->seen, nap->rounds);
    } else {
        rank->seen = nap->seen;
        nap_answer(rank, sample);
    }
    rank_close(rank);
    free(sample);
    free(rank);
    return NULL;
}

static void *burn(void *argument)
{
    for (;;)
        __asm__ volatile("" ::: "memory");
    return argument;
}

static void run_naps(int rounds, bool loaded)
{
    struct host host;
    host_make(&host, 2, 16 << 10);
    _Atomic uint64_t *seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(seen != MAP_FAILED);
    struct nap naps[2] = {{&host, 0, rounds, seen}, {&host, 1, rounds, seen}};
    pid_t burner = loaded ? start_child(burn, NULL) : 0;
    pid_t children[2] = {start_child(nap_run, &naps[0]), start_child(nap_run, &naps[1])};
    int status[2] = {-1, -1};
    for (int i = 0; i < 2; i++)
        waitpid(children[i], &status[i], 0);
    if (loaded) {
        kill(burner, SIGKILL);
        waitpid(burner, NULL, 0);
    }
    assert_int_equal(status[0], 0);
    assert_int_equal(status[1], 0);
    munmap(seen, 4096);
    host_end(&host);
}

static void test_sleep_and_wake(void **state)
{
    run_naps(6000, false);
}

static void test_sleep_and_wake_loaded(void **state)
{
    run_naps(1000, true);
}

/* ---- reading another's memory ------------------------------------------------------------------------------------ */

struct lender {
    struct host *host;
    char *lent;   /* filled by the child only, so the parent's own copy differs */
    int ready[2]; /* pipes: the child has filled, the parent has finished */
    int finished[2];
};

#define LENT_BYTES 300000

static char lent_byte(size_t i)
{
    return (char)(i * 7 + i / 253);
}

static void *lender_run(void *argument)
{
    struct lender *lender = argument;
    struct rank rank;
    rank_open(&rank, lender->host, 1);
    for (size_t i = 0; i < LENT_BYTES; i++)
        lender->lent[i] = lent_byte(i);
    char byte = 0;
    TB_ASSERT(write(lender->ready[1], &byte, 1) == 1);
    close(lender->finished[1]);
    TB_ASSERT(read(lender->finished[0], &byte, 1) == 0);
    rank_close(&rank);
    free(lender->lent);
    return NULL;
}

static pid_t lender_start(struct lender *lender, struct host *host)
{
    lender->host = host;
    lender->lent = malloc(LENT_BYTES);
    assert_non_null(lender->lent);
    memset(lender->lent, 0, LENT_BYTES);
    assert_int_equal(pipe2(lender->ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(lender->finished, O_CLOEXEC), 0);
    pid_t child = start_child(lender_run, lender);
    char byte;
    assert_int_equal(read(lender->ready[0], &byte, 1), 1);
    return child;
}

static void lender_end(struct lender *lender, pid_t child)
{
    close(lender->finished[1]);
    end_child(child);
    close(lender->finished[0]);
    close(lender->ready[0]);
    close(lender->ready[1]);
    free(lender->lent);
}

static void check_lent(const char *bytes, size_t from, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != lent_byte(from + i))
            fail_msg("byte %zu is wrong", i);
    }
}

static void test_read(void **state)
{
    struct host host;
    struct lender lender;
    struct rank rank;
    host_make(&host, 2, 16 << 10);
    pid_t child = lender_start(&lender, &host);
    rank_open(&rank, &host, 0);
    struct tb_endpoint *from = rank_reach(&rank, 1);
    char *into = calloc(1, LENT_BYTES);
    uint64_t address = (uint64_t)(uintptr_t)lender.lent;
    struct tb_spans spans = tb_spans_of(into, LENT_BYTES);
    bool possible = rank.transport->capabilities & TB_CAP_REMOTE_READ;
    int answer = shm->read(from, address, &spans, LENT_BYTES);
    if (possible && answer == TB_OK) {
        assert_int_equal(spans.left, 0);
        check_lent(into, 0, LENT_BYTES);
        memset(into, 0, LENT_BYTES);
        spans = crumbs_of(into, LENT_BYTES - 100);
        assert_int_equal(shm->read(from, address + 99, &spans, LENT_BYTES - 100), TB_OK);
        check_lent(into, 99, LENT_BYTES - 100);
        spans = tb_spans_of(into, 0);
        assert_int_equal(shm->read(from, address, &spans, 0), TB_OK);
        /* Nothing is there: this message has to be sent, others may still be read. */
        spans = tb_spans_of(into, 8);
        assert_int_equal(shm->read(from, 64, &spans, 8), TB_ERR_FORBIDDEN);
        assert_true(rank.transport->capabilities & TB_CAP_REMOTE_READ);
    } else {
        assert_int_equal(answer, TB_ERR_FORBIDDEN);
        assert_int_equal(rank.transport->capabilities & TB_CAP_REMOTE_READ, 0);
    }
    free(into);
    rank_close(&rank);
    lender_end(&lender, child);
    host_end(&host);
}

/* The number of the process is that of another one, as it looks across PID namespaces. */
static void test_read_from_the_wrong_process(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    tb_shm_page_of(pair.host.segment, 1)->token ^= 1;
    char bytes[8];
    struct tb_spans spans = tb_spans_of(bytes, 8);
    uint64_t address = (uint64_t)(uintptr_t)bytes;
    assert_int_equal(shm->read(rank_reach(&pair.a, 1), address, &spans, 8), TB_ERR_FORBIDDEN);
    assert_int_equal(spans.left, 8);
    assert_int_equal(pair.a.transport->capabilities, TB_CAP_DEPENDABLE);
    pair_close(&pair);
}

static void test_read_from_one_that_has_not_come(void **state)
{
    struct host host;
    struct rank rank;
    host_make(&host, 2, 16 << 10);
    rank_open(&rank, &host, 0);
    char bytes[8];
    struct tb_spans spans = tb_spans_of(bytes, 8);
    assert_int_equal(shm->read(rank_reach(&rank, 1), 4096, &spans, 8), TB_ERR_FORBIDDEN);
    rank_close(&rank);
    host_end(&host);
}

static void test_read_switched_off(void **state)
{
    struct host host;
    struct rank rank;
    host_make(&host, 1, 16 << 10);
    tb_param.cross_memory = false;
    rank_open(&rank, &host, 0);
    assert_int_equal(rank.transport->capabilities, TB_CAP_DEPENDABLE);
    char bytes[8];
    struct tb_spans spans = tb_spans_of(bytes, 8);
    assert_int_equal(shm->read(rank_reach(&rank, 0), (uint64_t)(uintptr_t)bytes, &spans, 8), TB_ERR_FORBIDDEN);
    rank_close(&rank);
    host_end(&host);
}

/* As a container does: the call is answered with EPERM. Everything else goes on. */
static void *forbidden_run(void *argument)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    TB_ASSERT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    TB_ASSERT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    struct rank rank;
    rank_open(&rank, argument, 0);
    TB_ASSERT(rank.transport->capabilities == TB_CAP_DEPENDABLE);
    rank_close(&rank);
    struct plan plan = {.host = argument, .index = 0, .count = 2000, .targets = 1, .expected = 2000, .asleep = true};
    plan_run(&plan);
    return NULL;
}

static void test_forbidden_by_the_machine(void **state)
{
    struct host host;
    host_make(&host, 1, 16 << 10);
    end_child(start_child(forbidden_run, &host));
    host_end(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_of_threads),
        cmocka_unit_test(test_streams_of_processes),
        cmocka_unit_test(test_many_senders),
        cmocka_unit_test(test_everybody_to_everybody),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_full_ring),
        cmocka_unit_test(test_full_ring_forbids_sleep_when_freed),
        cmocka_unit_test(test_doorbell),
        cmocka_unit_test(test_doorbell_for_room),
        cmocka_unit_test(test_doorbell_after_busy_times),
        cmocka_unit_test(test_opened),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_kind_is_checked),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_memory_at_start),
        cmocka_unit_test(test_sleep_and_wake),
        cmocka_unit_test(test_sleep_and_wake_loaded),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_read_from_the_wrong_process),
        cmocka_unit_test(test_read_from_one_that_has_not_come),
        cmocka_unit_test(test_read_switched_off),
        cmocka_unit_test(test_forbidden_by_the_machine),
    };
    if (tb_param_load() != TB_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

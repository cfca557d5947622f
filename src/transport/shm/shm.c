/* shm: frames between the ranks of one host, through rings in the memory that they share (see segment.h and ring.h).
 *
 * How frames pass them is in duct.h: a send is TB_OK or TB_AGAIN.
 *
 * A rank sleeps as doorbell.h says. It is woken by whoever writes a record for it, by whoever frees room in a ring that
 * it has found full, and by whoever leaves: only before it sleeps does it look for those.
 *
 * Copying twice, through the ring, or once, from the other's memory? Through the ring both processes copy at the same
 * time, and the ring stays in their caches; the single copy is made by the receiver alone, in the kernel, page by page.
 * Measured with bench/shm_pingpong.c on two Neoverse-V1 cores (64 KiB L1, 1 MiB L2), GB/s of one stream, with one
 * buffer / with 64 buffers of 4 MiB in rotation:
 *
 *                       16 KiB       64 KiB      256 KiB        1 MiB        4 MiB       16 MiB
 *     ring of 64k    15 / 20      22 / 20      22 / 19      20 / 18      20 / 19      19 / 19
 *     ring of 128k   31 / 26      30 / 23      31 / 19      25 / 21      21 / 21      19 / 21
 *     ring of 256k   29 / 24      31 / 21      32 / 19      27 / 22      23 / 22      20 / 22
 *     one copy       11 /  8      14 / 11      15 / 10      12 /  9      12 /  9       8 /  9
 *
 * So a ring has 128 KiB, a frame up to an eighth of it, and nothing is read directly unless shm_single_copy says from
 * which length on. A frame of 8 bytes takes 120 ns to the other side; a stream of them 40 ns each. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "transport/transport.h"
#include "transport/shm/board.h"
#include "transport/shm/doorbell.h"
#include "transport/shm/duct.h"
#include "transport/shm/segment.h"
#include "transport/shm/shm_param.h"

#define CALM 1000 /* after so many frames without sleep a rank is taken for busy */

/* Another rank of this host, or this one. Made when it is first asked for or heard of. */
struct shm_peer {
    struct tb_endpoint endpoint;
    struct tb_duct duct;
    struct tb_shm_page *page;
    int doorbell;
    uint32_t local; /* its number on this host */
    bool announced; /* it knows that we send to it */
    bool left;      /* that it has left was told */
    bool proved;    /* its memory is that of the right process */
};

struct shm_transport {
    struct tb_transport transport;
    struct tb_transport_config config;
    struct tb_shm_page *page; /* our own */
    size_t bulk;              /* bytes of a ring's bulk */
    uint64_t token;           /* what others find here when they prove that they read the right process */
    uint32_t words;           /* of the bitmap of senders */
    uint32_t active_count;
    bool polling;
    bool open;
    bool registered;     /* for fences by the kernel, see doorbell.h */
    bool deaf;           /* that memory was lacking for a sender has been said */
    bool unusual;        /* there is somebody in `blocked`, or who has left and of whom that was not told */
    uint32_t calm;       /* frames that have arrived since the last sleep, up to CALM */
    uint32_t departures; /* as many have left as far as was looked */
    struct tb_list blocked;
    struct shm_peer **peers;      /* by number on this host; NULL until needed */
    struct shm_peer **active;     /* those that have sent something to us */
    uint64_t heard[TB_SHM_WORDS]; /* the bitmap as far as it has been taken in */
    struct tb_board_debts debts;
};

static struct shm_transport *shm_of(struct tb_transport *transport)
{
    return (struct shm_transport *)transport;
}

const struct tb_transport_config *tb_shm_config(const struct tb_transport *transport)
{
    return &((const struct shm_transport *)transport)->config;
}

struct tb_board_debts *tb_shm_debts(struct tb_transport *transport)
{
    return &shm_of(transport)->debts;
}

bool tb_shm_registered(const struct tb_transport *transport)
{
    return ((const struct shm_transport *)transport)->registered;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int shm_check(const struct tb_transport_config *config)
{
    if (config->local_count == 0 || config->local_count > TB_SHM_RANKS || config->local_index >= config->local_count)
        return tb_error(TB_ERR_LIMIT, "shared memory serves 1 to %d ranks of a host; this is number %u of %u",
                        TB_SHM_RANKS, config->local_index, config->local_count);
    size_t needed = tb_shm_segment_bytes(config->local_count);
    if (config->segment == NULL || config->segment_bytes < needed)
        return tb_error(
            TB_ERR_ARGUMENT,
            "the shared memory of this host has %zu bytes, %zu are needed for %u ranks; do all ranks run the "
            "same version with the same shm_ring?",
            config->segment_bytes, needed, config->local_count);
    return TB_OK;
}

/* Those that sleep are woken, whether they know this rank or not: they may wait for it. */
static void shm_leave(struct shm_transport *shm)
{
    const struct tb_transport_config *config = &shm->config;
    atomic_store_explicit(&shm->page->left, 1, memory_order_release);
    atomic_fetch_add_explicit(&tb_shm_page_of(config->segment, 0)->departures, 1, memory_order_seq_cst);
    for (uint32_t i = 0; i < config->local_count; i++) {
        if (i != config->local_index)
            tb_doorbell_wake(&tb_shm_page_of(config->segment, i)->state, config->doorbells[i], shm->registered);
    }
}

static void shm_close(struct tb_transport *transport)
{
    struct shm_transport *shm = shm_of(transport);
    if (shm->open)
        shm_leave(shm);
    if (shm->peers != NULL) {
        for (uint32_t i = 0; i < shm->config.local_count; i++)
            free(shm->peers[i]);
    }
    free(shm->peers);
    free(shm->active);
    free(shm);
}

static int shm_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    int error = shm_check(config);
    if (error != TB_OK)
        return error;
    struct shm_transport *shm = calloc(1, sizeof(*shm));
    if (shm == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the shared-memory transport");
    shm->config = *config;
    shm->bulk = tb_shm_bulk_bytes();
    shm->words = (config->local_count + 63) / 64;
    shm->page = tb_shm_page_of(config->segment, config->local_index);
    shm->transport.table = &tb_transport_shm;
    shm->transport.capabilities = tb_transport_shm.capabilities;
    shm->transport.max_payload = tb_ring_longest(shm->bulk);
    shm->transport.eager_limit = shm->transport.max_payload;
    if (tb_param.eager_shm < shm->transport.eager_limit)
        shm->transport.eager_limit = (uint32_t)tb_param.eager_shm;
    tb_list_init(&shm->blocked);
    shm->peers = calloc(config->local_count, sizeof(*shm->peers));
    shm->active = calloc(config->local_count, sizeof(*shm->active));
    if (shm->peers == NULL || shm->active == NULL) {
        error = tb_error(TB_ERR_MEMORY, "no memory for the endpoints of %u ranks", config->local_count);
        goto out;
    }
    /* Emptying the doorbell must not block, whoever made it. */
    int doorbell = config->doorbells[config->local_index];
    int flags = fcntl(doorbell, F_GETFL);
    if (flags < 0 || fcntl(doorbell, F_SETFL, flags | O_NONBLOCK) < 0) {
        error = tb_error_errno("the doorbell of this rank (descriptor %d) cannot be used", doorbell);
        goto out;
    }
    shm->registered = tb_doorbell_register();
    error = tb_memory_card_begin(&shm->transport, &shm->token);
    if (error == TB_OK)
        tb_memory_card_write(&shm->page->card, &shm->token);
out:
    shm->open = error == TB_OK;
    if (error != TB_OK)
        shm_close(&shm->transport);
    else
        *transport = &shm->transport;
    return error;
}

static int shm_peer_make(struct shm_transport *shm, uint32_t local, struct shm_peer **made)
{
    const struct tb_transport_config *config = &shm->config;
    struct shm_peer *peer = calloc(1, sizeof(*peer));
    if (peer == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for an endpoint of shared memory");
    uint32_t own = config->local_index, count = config->local_count;
    peer->endpoint.transport = &shm->transport;
    peer->endpoint.proc = (struct tb_proc){config->self.job, config->local_procs[local]};
    peer->page = tb_shm_page_of(config->segment, local);
    peer->doorbell = config->doorbells[local];
    peer->local = local;
    tb_duct_open(&peer->duct, &peer->endpoint, tb_shm_ring_of(config->segment, count, own, local, shm->bulk),
                 tb_shm_ring_of(config->segment, count, local, own, shm->bulk), shm->bulk);
    shm->peers[local] = *made = peer;
    return TB_OK;
}

static int shm_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    struct shm_transport *shm = shm_of(transport);
    const struct tb_transport_config *config = &shm->config;
    for (uint32_t i = 0; i < config->local_count && proc.job == config->self.job; i++) {
        if (config->local_procs[i] != proc.index)
            continue;
        struct shm_peer *peer = shm->peers[i];
        int error = peer != NULL ? TB_OK : shm_peer_make(shm, i, &peer);
        if (error == TB_OK)
            *endpoint = &peer->endpoint;
        return error;
    }
    return tb_error(TB_ERR_PEER, "process %u of job %u is not on this host", proc.index, proc.job);
}

/* ---- sleeping ---------------------------------------------------------------------------------------------------- */

static inline void shm_wake(struct shm_transport *shm, struct shm_peer *peer)
{
    tb_doorbell_wake(&peer->page->state, peer->doorbell, shm->registered);
}

/* Whether somebody has left since the last time. */
static bool shm_departed(struct shm_transport *shm)
{
    uint32_t seen = atomic_load_explicit(&tb_shm_page_of(shm->config.segment, 0)->departures, memory_order_seq_cst);
    bool more = seen != shm->departures;
    shm->unusual |= more;
    shm->departures = seen;
    return more;
}

static bool shm_anything(struct shm_transport *shm)
{
    if (shm_departed(shm))
        return true;
    for (uint32_t i = 0; i < shm->words; i++) {
        if (atomic_load_explicit(&shm->page->senders[i], memory_order_seq_cst) != shm->heard[i])
            return true;
    }
    for (uint32_t i = 0; i < shm->active_count; i++) {
        if (tb_duct_ready(&shm->active[i]->duct))
            return true;
    }
    return tb_ducts_have_room(&shm->blocked);
}

static bool shm_arm(struct tb_transport *transport)
{
    struct shm_transport *shm = shm_of(transport);
    shm->calm = 0;
    if (!tb_doorbell_sleep(&shm->page->state))
        return false;
    if (!shm_anything(shm))
        return true;
    atomic_store_explicit(&shm->page->state, TB_DOORBELL_AWAKE, memory_order_relaxed);
    return false;
}

static void shm_disarm(struct tb_transport *transport)
{
    struct shm_transport *shm = shm_of(transport);
    tb_doorbell_awake(&shm->page->state, shm->config.doorbells[shm->config.local_index]);
}

static int shm_descriptor(struct tb_transport *transport)
{
    struct shm_transport *shm = shm_of(transport);
    return shm->config.doorbells[shm->config.local_index];
}

static uint64_t shm_deadline(struct tb_transport *transport)
{
    return TB_NEVER;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static void shm_announce(struct shm_transport *shm, struct shm_peer *peer)
{
    uint32_t own = shm->config.local_index;
    atomic_fetch_or_explicit(&peer->page->senders[own / 64], (uint64_t)1 << (own % 64), memory_order_seq_cst);
    peer->announced = true;
}

static int shm_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                    enum tb_stream stream, void *token)
{
    struct shm_peer *peer = (struct shm_peer *)endpoint;
    struct shm_transport *shm = shm_of(endpoint->transport);
    struct tb_ring_frame frame;
    if (!tb_duct_write(&peer->duct, &shm->blocked, envelope, payload, &frame)) {
        shm->unusual = true;
        return TB_AGAIN;
    }
    if (__builtin_expect(!peer->announced, 0))
        shm_announce(shm, peer);
    tb_ring_publish(&peer->duct.writer, &frame);
    shm_wake(shm, peer);
    return TB_OK;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/* Takes in one that has announced itself. False: there is no memory for it now. */
static bool shm_hear(struct shm_transport *shm, uint32_t local)
{
    struct shm_peer *peer = shm->peers[local];
    if (peer == NULL) {
        if (shm_peer_make(shm, local, &peer) != TB_OK) {
            if (!shm->deaf)
                tb_log(TB_LOG_ERROR, "shm", "a rank of this host cannot be heard yet: %s", tb_error_story());
            shm->deaf = true;
            return false;
        }
        shm->config.upcalls.opened(shm->config.upcalls.context, &peer->endpoint);
    }
    shm->active[shm->active_count++] = peer;
    return true;
}

/* Takes in those that have announced themselves since the last time; the next poll tries again where it fails. */
static void shm_admit(struct shm_transport *shm, uint32_t word)
{
    uint64_t fresh = atomic_load_explicit(&shm->page->senders[word], memory_order_acquire) & ~shm->heard[word];
    while (fresh != 0) {
        uint32_t local = word * 64 + (uint32_t)__builtin_ctzll(fresh);
        uint64_t bit = fresh & -fresh;
        fresh -= bit;
        if (local >= shm->config.local_count || shm_hear(shm, local))
            shm->heard[word] |= bit;
    }
}

static inline int shm_receive(struct shm_transport *shm, struct shm_peer *peer)
{
    bool waits = false;
    int got = tb_duct_receive(&peer->duct, &shm->config.upcalls, &waits);
    if (waits)
        shm_wake(shm, peer);
    return got;
}

/* Whether something that this rank has sent may not have been delivered yet. */
static bool shm_has_more(const struct shm_transport *shm, const struct shm_peer *peer)
{
    uint32_t word = peer->local / 64, bit = peer->local % 64;
    uint64_t unheard = atomic_load_explicit(&shm->page->senders[word], memory_order_relaxed) & ~shm->heard[word];
    return unheard >> bit & 1 || tb_ring_ready(&peer->duct.reader);
}

/* Those that have left, once all that they had sent has been delivered, and also those that were never heard of:
 * somebody may wait for them. *more: there are some left. */
static int shm_part(struct shm_transport *shm, bool *more)
{
    const struct tb_upcalls *up = &shm->config.upcalls;
    int told = 0;
    for (uint32_t i = 0; i < shm->config.local_count; i++) {
        struct shm_peer *peer = shm->peers[i];
        if (i == shm->config.local_index || (peer != NULL && (peer->left || peer->duct.damaged)) ||
            atomic_load_explicit(&tb_shm_page_of(shm->config.segment, i)->left, memory_order_acquire) == 0)
            continue;
        if (peer == NULL && shm_peer_make(shm, i, &peer) == TB_OK)
            up->opened(up->context, &peer->endpoint);
        if (peer == NULL || shm_has_more(shm, peer)) {
            *more = true;
            continue;
        }
        peer->left = true;
        tb_error(TB_ERR_CLOSED, "process %u has left", peer->endpoint.proc.index);
        up->broken(up->context, &peer->endpoint, TB_ERR_CLOSED);
        told++;
    }
    return told;
}

static int shm_unusual(struct shm_transport *shm)
{
    bool more = false;
    int done = tb_ducts_unblock(&shm->blocked, &shm->config.upcalls);
    if (shm->departures > 0)
        done += shm_part(shm, &more);
    shm->unusual = more || !tb_list_empty(&shm->blocked);
    return done;
}

static inline void shm_heard(struct shm_transport *shm, uint32_t count)
{
    if (__builtin_expect(shm->calm < CALM && (shm->calm += count) >= CALM && shm->registered, 0))
        tb_doorbell_busy(&shm->page->state);
}

void tb_shm_heard(struct tb_transport *transport, uint32_t count)
{
    shm_heard(shm_of(transport), count);
}

static int shm_poll(struct tb_transport *transport)
{
    struct shm_transport *shm = shm_of(transport);
    int done = 0;
    TB_ASSERT(!shm->polling);
    shm->polling = true;
    for (uint32_t i = 0; i < shm->words; i++) {
        if (__builtin_expect(atomic_load_explicit(&shm->page->senders[i], memory_order_relaxed) != shm->heard[i], 0))
            shm_admit(shm, i);
    }
    for (uint32_t i = 0; i < shm->active_count; i++)
        done += shm_receive(shm, shm->active[i]);
    if (__builtin_expect(shm->unusual, 0))
        done += shm_unusual(shm);
    shm->polling = false;
    if (done > 0)
        shm_heard(shm, (uint32_t)done);
    return done;
}

static bool shm_idle(struct tb_transport *transport)
{
    return true; /* what was accepted is in memory that outlives this process */
}

/* ---- reading another rank's memory ------------------------------------------------------------------------------- */

static int shm_read(struct tb_endpoint *endpoint, uint64_t address, struct tb_spans *into, uint64_t length)
{
    struct shm_peer *peer = (struct shm_peer *)endpoint;
    return tb_memory_card_read(endpoint->transport, &peer->page->card, &peer->proved, address, into, length);
}

static bool shm_usable(const struct tb_transport_config *config)
{
    return config->segment != NULL && config->local_count > 1;
}

const struct tb_transport_table tb_transport_shm = {
    .name = "shm",
    .scope = TB_SCOPE_HOST,
    .capabilities = TB_CAP_DEPENDABLE | TB_CAP_BOARDS,
    .params = tb_shm_param_rows,
    .usable = shm_usable,
    .open = shm_open,
    .close = shm_close,
    .endpoint = shm_endpoint,
    .send = shm_send,
    .poll = shm_poll,
    .arm = shm_arm,
    .disarm = shm_disarm,
    .descriptor = shm_descriptor,
    .deadline = shm_deadline,
    .idle = shm_idle,
    .read = shm_read,
};

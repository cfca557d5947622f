#include "engine/peer.h"

#include "engine/engine_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool peer_is_local(const struct tb_engine *e, struct tb_proc proc)
{
    return e->local != NULL && e->config.is_local != NULL && e->config.is_local(e->config.context, proc);
}

/* Nothing waits for one that is lost from the beginning. */
static void peer_begin_lost(struct tb_peer *p, const struct tb_lost_range *range)
{
    p->error = range->error;
    p->mourned = true;
    p->story = range->story != NULL ? strdup(range->story) : NULL;
}

struct tb_peer *tb_peer_make(struct tb_engine *e, uint32_t index)
{
    struct tb_peer *p = calloc(1, sizeof *p);
    if (p == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory to talk to process %u", index);
        return NULL;
    }
    p->engine = e;
    p->proc = (struct tb_proc){e->config.transport.self.job, index};
    p->self = index == e->config.transport.self.index;
    p->local = !p->self && peer_is_local(e, p->proc);
    p->stranger = e->config.is_stranger != NULL && e->config.is_stranger(e->config.context, index);
    e->peers.strangers += p->stranger;
    p->granted = tb_grant(&e->config, p->stranger);
    p->owing = p->granted >> e->peers.owing;
    p->allowed = p->credit = e->lanes == NULL ? p->granted : 0; /* lanes borrow it */
    tb_aheads_open(&p->aheads, &e->arrivals.spare);
    tb_list_init(&p->answers);
    tb_list_init(&p->envelopes);
    tb_list_init(&p->requests);
    tb_list_init(&p->on_waiting);
    tb_list_init(&p->on_dying);
    tb_list_init(&p->on_parted);
    tb_list_init(&p->accesses[TB_STREAM_SHORT]);
    tb_list_init(&p->accesses[TB_STREAM_BULK]);
    tb_list_init(&p->results);
    tb_list_init(&p->on_accessing);
    tb_port_open(&p->own_port);
    p->port = &e->ports.network;
    e->peers.by_index[index] = p;
    const struct tb_lost_range *lost = tb_unborn_find(&e->peers.unborn, index);
    if (TB_UNLIKELY(lost != NULL))
        peer_begin_lost(p, lost);
    return p;
}

int tb_peers_open(struct tb_peers *peers, uint32_t count, uint64_t grant)
{
    peers->grant = grant;
    tb_list_init(&peers->waiting);
    tb_list_init(&peers->dying);
    tb_list_init(&peers->parted);
    peers->owing = 1;
    tb_pool_open(&peers->notes, sizeof(struct tb_note), 64, TB_NOTES_LIMIT);
    peers->by_index = calloc(count, sizeof(struct tb_peer *));
    if (peers->by_index == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a table of %u processes", count);
    peers->count = peers->begun = count;
    return TB_OK;
}

/* By half as much again, so that many small steps take little. */
int tb_peers_grow(struct tb_peers *peers, uint32_t index)
{
    if (index < peers->count)
        return TB_OK;
    uint32_t count = peers->count + peers->count / 2 > index ? peers->count + peers->count / 2 : index + 1;
    struct tb_peer **grown = reallocarray(peers->by_index, count, sizeof(struct tb_peer *));
    if (grown == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a table of %u processes", count);
    memset(grown + peers->count, 0, (count - peers->count) * sizeof(struct tb_peer *));
    peers->by_index = grown;
    uint32_t *uses = reallocarray(peers->uses, count - peers->begun, sizeof *uses);
    if (uses == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a table of %u processes", count);
    memset(uses + (peers->count - peers->begun), 0, (count - peers->count) * sizeof *uses);
    peers->uses = uses;
    __atomic_store_n(&peers->count, count, __ATOMIC_RELEASE);
    return TB_OK;
}

/* Whether anything of it, or for it, is still somewhere. */
static bool is_idle(const struct tb_peer *p)
{
    return tb_list_empty(&p->on_dying) && tb_list_empty(&p->requests) && tb_list_empty(&p->answers) &&
           tb_list_empty(&p->envelopes) && tb_list_empty(&p->on_waiting) && tb_list_empty(&p->on_accessing) &&
           tb_list_empty(&p->accesses[TB_STREAM_SHORT]) && tb_list_empty(&p->accesses[TB_STREAM_BULK]) &&
           tb_list_empty(&p->results) && p->unknown == 0 && p->arrivals == 0 && p->kept == 0 && !p->named;
}

static void peer_free(struct tb_peer *p)
{
    tb_aheads_clear(&p->aheads, true);
    free(p->story);
    free(p);
}

/* If it is gone, and nobody has it in a channel, nothing of it is left. */
static void forget(struct tb_peers *peers, struct tb_peer *p)
{
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a peer that was freed is in no list
    uint32_t index = p->proc.index;
    struct tb_endpoint *endpoint = p->endpoint;
    tb_list_remove(&p->on_parted);
    if (!p->parted || p->error == TB_OK || peers->uses[index - peers->begun] > 0 || !is_idle(p) ||
        (endpoint != NULL && endpoint->transport->table->forget == NULL))
        return;
    if (endpoint != NULL)
        endpoint->transport->table->forget(endpoint);
    peers->raised -= p->granted - tb_grant(&p->engine->config, p->stranger);
    peers->by_index[index] = NULL;
    peer_free(p);
}

static void part(struct tb_peers *peers, uint32_t index)
{
    struct tb_peer *p = peers->by_index[index];
    if (--peers->uses[index - peers->begun] > 0 || p == NULL)
        return;
    p->parted = true;
    tb_list_remove(&p->on_parted);
    tb_list_append(&peers->parted, &p->on_parted);
}

/* Of those with which the job has begun everything is kept, so they need not be counted. */
void tb_peers_use(struct tb_peers *peers, const uint32_t *procs, uint32_t count, bool begins)
{
    for (uint32_t i = 0; i < count && peers->count > peers->begun; i++) {
        uint32_t index = procs != NULL ? procs[i] : i;
        if (index >= peers->begun && begins)
            peers->uses[index - peers->begun]++;
        else if (index >= peers->begun)
            part(peers, index);
    }
}

void tb_peers_close(struct tb_peers *peers)
{
    for (uint32_t i = 0; i < peers->count; i++)
        if (peers->by_index[i] != NULL)
            peer_free(peers->by_index[i]);
    tb_unborn_close(&peers->unborn);
    free(peers->by_index);
    free(peers->uses);
    tb_pool_close(&peers->notes);
}

static uint64_t ahead_limit(uint64_t latency, uint64_t rate)
{
    uint64_t bytes = tb_ahead_bytes(latency, rate);
    return bytes < TB_GRANT_HIGH ? bytes : TB_GRANT_HIGH;
}

/* Agents pass a frame on when it is whole, so that on slow wires frames are shorter. What would otherwise be one frame
 * is then cut too; it still asks nobody, and its pieces stay where they need not wait for long messages of others. */
void tb_peer_settle(struct tb_peer *p)
{
    struct tb_engine *e = p->engine;
    const struct tb_transport *t = p->endpoint->transport;
    struct tb_distance far = {0};
    p->near = p->local || tb_transport_set_leads(&e->transports, t, TB_SCOPE_NEAR);
    p->port = p->near ? &p->own_port : &e->ports.network;
    if (!p->near && e->config.distance != NULL)
        e->config.distance(e->config.context, p->proc, &far);
    p->ahead_out = ahead_limit(far.latency, far.out_rate);
    p->ahead_in = ahead_limit(far.latency, far.in_rate);
    p->eager_limit = t->eager_limit < t->max_payload ? t->eager_limit : t->max_payload;
    p->frame = t->max_payload;
    p->short_limit = 0;
    uint32_t frame = tb_frame_bytes(far.out_rate);
    if (!tb_transport_set_leads(&e->transports, t, TB_SCOPE_RELAYED) || frame >= p->frame)
        return;
    p->frame = frame;
    p->short_limit = p->eager_limit;
    if (p->ahead_out < p->short_limit)
        p->ahead_out = p->short_limit;
    if (p->eager_limit > frame)
        p->eager_limit = frame;
}

/* The transport that leads to a process. The answer never changes for a process, since messages must not overtake. */
static int peer_transport(const struct tb_peer *p, struct tb_transport **transport)
{
    struct tb_engine *e = p->engine;
    const struct tb_transport_table *table = NULL;
    struct tb_reach reach = {.direct = true};
    if (p->local) {
        *transport = e->local;
        return TB_OK;
    }
    int error = e->config.reach != NULL ? e->config.reach(e->config.context, p->proc, &reach) : TB_OK;
    if (error != TB_OK)
        return error;
    if (reach.near)
        table = tb_transport_set_of_scope(&e->transports, TB_SCOPE_NEAR);
    if (table == NULL && reach.direct)
        table = tb_transport_set_of_scope(&e->transports, TB_SCOPE_DIRECT);
    if (table == NULL && reach.relayed)
        table = tb_transport_set_of_scope(&e->transports, TB_SCOPE_RELAYED);
    if (table != NULL)
        return tb_engine_transport(e, table, transport);
    if (reach.direct)
        return tb_error(TB_ERR_PEER, "no transport leads to process %u: the parameter `transports` leaves tcp out",
                        p->proc.index);
    return tb_error(TB_ERR_PEER,
                    "process %u is where only agents lead, and the parameter `transports` leaves relay, which uses "
                    "them, out",
                    p->proc.index);
}

int tb_peer_reach(struct tb_peer *p)
{
    struct tb_transport *t;
    int error = peer_transport(p, &t);
    if (error != TB_OK)
        return error;
    struct tb_endpoint *endpoint = NULL;
    error = t->table->endpoint(t, p->proc, &endpoint);
    if (error != TB_OK)
        return error;
    endpoint->user = p;
    p->endpoint = endpoint;
    tb_peer_settle(p);
    return TB_OK;
}

/* ---- failure ----------------------------------------------------------------------------------------------------- */

const char *tb_peer_host(const struct tb_peer *p, char text[static TB_PEER_HOST_BYTES])
{
    const struct tb_engine_config *config = &p->engine->config;
    const char *name = config->host != NULL ? config->host(config->context, p->proc) : NULL;
    snprintf(text, TB_PEER_HOST_BYTES, "%s%s", name != NULL ? " on host " : "", name != NULL ? name : "");
    return text;
}

int tb_peer_error(const struct tb_peer *p)
{
    return p->error == TB_ERR_MEMORY || p->error == TB_ERR_LIMIT ? p->error : TB_ERR_PEER;
}

static void fail(struct tb_peer *p, int error)
{
    const char *story = tb_error_story();
    p->error = error;
    p->story = strdup(story[0] != '\0' ? story : tb_error_name(error));
    p->engine->waiting.events++;
    p->engine->waiting.stirred = true;
    tb_list_append(&p->engine->peers.dying, &p->on_dying);
    p->engine->peers.fresh++;
    tb_log(error == TB_ERR_CLOSED ? TB_LOG_DEBUG : TB_LOG_INFO, "engine", "process %u: %s", p->proc.index,
           p->story != NULL ? p->story : "");
}

void tb_peer_break(struct tb_peer *p, int error)
{
    const struct tb_engine_config *config = &p->engine->config;
    if (p->error != TB_OK)
        return;
    fail(p, error);
    if (error != TB_ERR_CLOSED && p->endpoint != NULL && config->connection_lost != NULL &&
        (p->engine->lanes == NULL || tb_lane_ways.claim_loss(p)))
        config->connection_lost(config->context, p->proc, tb_peer_error(p));
}

/* Whether a process that nobody has spoken with is in a channel, so that it matters at once. */
static bool is_used(const struct tb_peers *peers, uint32_t index)
{
    return index < peers->begun || peers->uses[index - peers->begun] > 0;
}

/* Those that are here, or all; how many are not, and not known to be lost. */
static uint32_t break_all(struct tb_engine *e, uint32_t first, uint32_t count, bool all, int error)
{
    uint32_t unborn = 0;
    for (uint32_t index = first; index - first < count; index++) {
        bool here = e->peers.by_index[index] != NULL || is_used(&e->peers, index);
        struct tb_peer *p = (here || all) && index != e->config.transport.self.index ? tb_peer_of(e, index) : NULL;
        if (p != NULL && p->error == TB_OK)
            fail(p, error); /* as the owner has said itself */
        unborn += !here && tb_unborn_find(&e->peers.unborn, index) == NULL;
    }
    return unborn;
}

void tb_peers_lose(struct tb_engine *e, uint32_t first, uint32_t count, int error)
{
    if (break_all(e, first, count, false, error) == 0)
        return;
    if (tb_unborn_add(&e->peers.unborn, first, count, error)) /* a communicator that is being made may have them */
        e->peers.lost++;
    else
        break_all(e, first, count, true, error);
}

/* Who leaves in good order says so on its boards; of the others all channels learn at once. */
static void mourn(struct tb_peers *peers, struct tb_engine *e)
{
    struct tb_peer *p;
    uint32_t lost = 0;
    TB_LIST_EACH (p, &peers->dying, struct tb_peer, on_dying)
        lost += !p->mourned && p->error != TB_ERR_CLOSED;
    peers->fresh = 0;
    peers->lost += lost;
    if (lost > 0)
        tb_channels_lose(e);
    TB_LIST_EACH (p, &peers->dying, struct tb_peer, on_dying)
        p->mourned = true;
    if (lost > 0)
        tb_runs_mourn(&e->runs);
}

int tb_peers_bury(struct tb_peers *peers)
{
    int ended = 0;
    while (!tb_list_empty(&peers->dying)) {
        struct tb_peer *p = TB_CONTAINER(peers->dying.next, struct tb_peer, on_dying);
        if (peers->fresh > 0)
            mourn(peers, p->engine);
        tb_list_remove(&p->on_dying);
        tb_list_remove(&p->on_waiting);
        p->credit_due = false;
        tb_driving_miss(&p->engine->driving, p);
        /* Whoever is told of the end of a request may use its buffer. */
        if (p->endpoint != NULL && p->endpoint->transport->table->drop != NULL)
            p->endpoint->transport->table->drop(p->endpoint);
        while (!tb_list_empty(&p->answers)) {
            struct tb_note *n = TB_CONTAINER(p->answers.next, struct tb_note, queue);
            tb_list_remove(&n->queue);
            tb_pool_give(&peers->notes, n);
        }
        while (!tb_list_empty(&p->requests)) {
            tb_request_finish(TB_CONTAINER(p->requests.next, struct tb_request, on_peer), tb_peer_error(p));
            ended++;
        }
        p->kept -= tb_aheads_clear(&p->aheads, false);
        if (p->parted)
            forget(peers, p);
    }
    while (!tb_list_empty(&peers->parted))
        forget(peers, TB_CONTAINER(peers->parted.next, struct tb_peer, on_parted));
    return ended;
}

/* ---- answers and credit ------------------------------------------------------------------------------------------ */

void tb_peer_queue(struct tb_peer *p)
{
    p->engine->waiting.stirred = true;
    p->engine->counters.held++;
    if (tb_list_empty(&p->on_waiting))
        tb_list_append(&p->engine->peers.waiting, &p->on_waiting);
}

static int answer_send(struct tb_peer *p, const struct tb_message *message)
{
    struct tb_envelope envelope;
    struct tb_spans nothing = tb_spans_of(NULL, 0);
    envelope.message = *message;
    int rc = tb_peer_transmit(p, &envelope, &nothing, TB_STREAM_SHORT, 0);
    if (rc < 0)
        tb_peer_break(p, rc);
    return rc;
}

void tb_peer_answer(struct tb_peer *p, const struct tb_message *message)
{
    if (p->error != TB_OK)
        return;
    if (p->endpoint == NULL) {
        int error = tb_peer_reach(p);
        if (error != TB_OK) {
            tb_peer_break(p, error);
            return;
        }
    }
    if (tb_list_empty(&p->answers) && answer_send(p, message) != TB_AGAIN)
        return;
    /* An answer must not get lost: without memory for it the peer is given up, which both sides are told. */
    struct tb_note *n = tb_pool_take(&p->engine->peers.notes);
    if (n == NULL) {
        tb_peer_break(p, TB_ERR_MEMORY);
        return;
    }
    n->message = *message;
    tb_list_append(&p->answers, &n->queue);
    tb_peer_queue(p);
}

void tb_peer_reply(struct tb_peer *p, enum tb_kind kind, uint64_t match, uint64_t offset, uint64_t length)
{
    const struct tb_message m = {.kind = (uint8_t)kind,
                                 .match = match,
                                 .offset = offset,
                                 .length = length,
                                 .representation = p->engine->representation};
    tb_peer_answer(p, &m);
}

static int credit_send(struct tb_peer *p)
{
    const struct tb_message m = {
        .kind = TB_KIND_CREDIT, .length = p->owed, .offset = p->growth, .representation = p->engine->representation};
    int rc = answer_send(p, &m);
    if (rc == TB_OK) {
        p->owed = p->growth = 0;
        p->engine->counters.credits++;
    }
    return rc;
}

static void credit_give(struct tb_peer *p)
{
    if (p->credit_due || p->error != TB_OK || credit_send(p) != TB_AGAIN)
        return;
    p->credit_due = true;
    tb_peer_queue(p);
}

void tb_peer_owe(struct tb_peer *p, uint64_t bytes)
{
    p->owed += bytes;
    if (TB_UNLIKELY(p->owed >= p->owing))
        credit_give(p);
}

void tb_peer_consumed(struct tb_peer *p, struct tb_ahead *a)
{
    uint64_t total = a->total;
    p->kept -= total;
    tb_ahead_free(a);
    tb_peer_owe(p, total);
}

void tb_peer_waste(struct tb_peer *p, struct tb_ahead *a)
{
    a->state = TB_AHEAD_DROPPED;
    tb_ahead_forget_bytes(a);
    if (tb_ahead_is_whole(a) || p->error != TB_OK)
        tb_peer_consumed(p, a);
}

/* Several of them may be under way. What was granted is never taken back: whoever comes late asks. */
void tb_peer_raise(struct tb_peer *p, uint64_t context, uint64_t length)
{
    uint64_t want = 4 * length < TB_GRANT_HIGH ? 4 * length : TB_GRANT_HIGH;
    if (!tb_peer_takes_ahead(p, context, length, p->ahead_in) || want <= p->granted)
        return;
    uint64_t growth = want - p->granted, memory = tb_param.ahead_memory / tb_engine_lanes(p->engine);
    if (growth > memory || p->engine->peers.raised > memory - growth)
        return;
    p->engine->peers.raised += growth;
    p->granted += growth;
    p->owing = p->granted >> p->engine->peers.owing;
    p->growth += growth;
    credit_give(p);
}

/* Where there are lanes, others of them may have granted it more. */
bool tb_peer_has_room(struct tb_peer *p, uint64_t bytes)
{
    uint64_t most = p->engine->lanes == NULL ? p->granted : TB_GRANT_HIGH;
    if (TB_LIKELY(p->kept <= most && bytes <= most - p->kept))
        return true;
    tb_peer_break(p, tb_error(TB_ERR_PROTOCOL,
                              "process %u has sent more than it was allowed to: %llu bytes, and %llu wait already "
                              "(the parameter eager_memory must be the same everywhere)",
                              p->proc.index, (unsigned long long)bytes, (unsigned long long)p->kept));
    return false;
}

bool tb_peer_borrow(struct tb_peer *p, uint64_t bytes)
{
    return p->engine->lanes != NULL && tb_lane_ways.borrow(p, bytes);
}

/* Who gives back more than it was given does not make us send more than fits the other side. */
void tb_peer_credited(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    uint64_t used = p->allowed - p->credit, most = TB_GRANT_HIGH - p->allowed;
    uint64_t more = m->offset < most ? m->offset : most;
    p->credit += (m->length < used ? m->length : used) + more;
    p->allowed += more;
}

static bool may_announce(const struct tb_peer *p)
{
    return p->unknown < TB_STRANGER_CONTEXTS && p->engine->peers.unknown < TB_STRANGERS_CONTEXTS;
}

static bool give_up_early(struct tb_peer *p)
{
    tb_peer_break(p, tb_error(TB_ERR_PROTOCOL,
                              "process %u, of another job, has sent more than can wait for communicators that are not "
                              "known here yet",
                              p->proc.index));
    return false;
}

bool tb_peer_may_wait(struct tb_peer *p)
{
    return (p->early < TB_STRANGER_EARLY && p->engine->peers.early < TB_STRANGERS_EARLY) || give_up_early(p);
}

bool tb_peer_may_give_up(struct tb_peer *p)
{
    return p->given_up++ < TB_STRANGER_GIVEN_UP || give_up_early(p);
}

struct tb_context *tb_peer_context(struct tb_peer *p, uint64_t id)
{
    struct tb_contexts *all = &p->engine->contexts;
    struct tb_context *c = tb_contexts_find(all, id);
    if (c != NULL)
        return c;
    if (p->unknown >= TB_UNKNOWN_LIMIT || (p->stranger && !may_announce(p))) {
        tb_peer_break(p,
                      tb_error(TB_ERR_PROTOCOL, "process %u has sent messages for %u communicators that do not exist",
                               p->proc.index, p->unknown));
        return NULL;
    }
    c = tb_contexts_get(all, id);
    if (c == NULL) {
        tb_peer_break(p, TB_ERR_MEMORY);
        return NULL;
    }
    c->announcer = p;
    p->unknown++;
    p->engine->peers.unknown += p->stranger;
    return c;
}

void tb_peer_disclaim(struct tb_context *c)
{
    struct tb_peer *p = c->announcer;
    c->announcer = NULL;
    if (p == NULL)
        return;
    p->unknown--;
    p->engine->peers.unknown -= p->stranger;
}

/* ---- what waits for room ----------------------------------------------------------------------------------------- */

/* Answers before envelopes. Returns how many frames have gone. */
static int peer_flush(struct tb_peer *p)
{
    int gone = 0;
    if (p->credit_due) {
        if (credit_send(p) != TB_OK)
            return gone;
        p->credit_due = false;
        gone++;
    }
    while (!tb_list_empty(&p->answers)) {
        struct tb_note *n = TB_CONTAINER(p->answers.next, struct tb_note, queue);
        if (answer_send(p, &n->message) != TB_OK)
            return gone;
        tb_list_remove(&n->queue);
        tb_pool_give(&p->engine->peers.notes, n);
        gone++;
    }
    while (!tb_list_empty(&p->envelopes)) {
        struct tb_request *r = TB_CONTAINER(p->envelopes.next, struct tb_request, queue);
        int rc = tb_send_envelope(r);
        if (rc == TB_AGAIN)
            return gone;
        if (rc < 0)
            tb_request_finish(r, rc);
        gone++;
    }
    tb_list_remove(&p->on_waiting);
    return gone;
}

int tb_peers_flush(struct tb_peers *peers)
{
    int gone = 0;
    struct tb_peer *p;
    TB_LIST_EACH (p, &peers->waiting, struct tb_peer, on_waiting) {
        /* Looking for room in shared memory costs little; a socket says when it is worth it. */
        if (p->error == TB_OK && (p->local || !p->held[TB_STREAM_SHORT]))
            gone += peer_flush(p);
    }
    return gone;
}

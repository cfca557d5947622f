/* pair: frames between processes of one host that were not started together, two by two, through memory that only the
 * two share (shared.h), with the rings of shm (duct.h). It is made when one of them first has something for the other:
 * the agent, which has started both, makes it and gives each its half through `adopt`.
 *
 * Both may ask at the same time. An agent has one thread and gives everything to both in the same order: the first that
 * comes is used by both, and what comes afterwards is closed by both.
 *
 * Who is woken, and by what. A process says for each of the others that it sleeps, in a word of the memory of the two,
 * and waits for an epoll of all its sockets; whoever writes a record, or frees room that it waits for, takes that word
 * back and puts a byte in the socket. A byte is taken out of a socket only by `disarm`, never by `poll`: who listens
 * for a thread that computes (engine/listening.h) counts on being woken by it, and the word it took back is set again
 * only by whoever arms anew. That the other process has gone is no byte but the end of the socket, which stays to be
 * seen, asleep or awake: by the epoll before a sleep, and by a look at it after so many polls.
 *
 * There is no fence by the kernel for those who do not sleep (TB_DOORBELL_BUSY), since that would be one for each
 * word: a record costs its writer a fence. */
#include "transport/endpoint_table.h"
#include "transport/pair/pair_param.h"
#include "transport/pair/shared.h"
#include "transport/shm/doorbell.h"
#include "transport/shm/duct.h"
#include "transport/tcp/late.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_LIMIT 32
#define LOOK_ROUNDS  512 /* polls from one look at the sockets to the next */

struct pair_peer {
    struct tb_endpoint head;
    struct tb_list on_linked; /* in the transport's `linked` while there is memory and a socket */
    struct tb_list notice;    /* in the transport's notices when there is something to tell from poll */
    struct tb_pair_shared shared;
    struct tb_duct duct;
    bool known;   /* to the owner: no need for `opened` */
    bool asked;   /* for a connection; the answer is outstanding */
    bool waiting; /* the owner got TB_AGAIN for want of one, and is told when it is there */
    bool proved;  /* its memory is that of the right process */
    bool gone;    /* the socket has ended; what lies in the ring is still to be delivered */
    bool told;    /* `broken` has been called, or nobody wants to hear it */
    int error;    /* nothing more will pass; `story` says why */
    char *story;
};

struct pair {
    struct tb_transport head;
    struct tb_transport_config config;
    struct tb_endpoint_table peers; /* of struct pair_peer */
    struct tb_list linked, notices, blocked;
    struct tb_late late;
    uint64_t token; /* memory_card.h */
    uint32_t until_look;
    int epoll;
};

static struct pair *pair_of(struct tb_endpoint *endpoint)
{
    return (struct pair *)endpoint->transport;
}

/* ---- peers ------------------------------------------------------------------------------------------------------- */

/* NULL: no memory, or too many. */
static struct pair_peer *peer_find(struct pair *t, struct tb_proc proc)
{
    bool fresh;
    struct pair_peer *p = (struct pair_peer *)tb_endpoint_table_find(&t->peers, &t->head, proc, sizeof *p, &fresh);
    if (fresh) {
        tb_list_init(&p->on_linked);
        tb_list_init(&p->notice);
        tb_pair_shared_init(&p->shared);
    }
    return p;
}

static void peer_notice(struct pair *t, struct pair_peer *p)
{
    if (tb_list_empty(&p->notice))
        tb_list_append(&t->notices, &p->notice);
}

static bool peer_is_linked(const struct pair_peer *p)
{
    return p->shared.socket >= 0;
}

/* Remembers why nothing more will pass, with the story of this moment; the owner is told from poll. */
static void peer_fail(struct pair *t, struct pair_peer *p, int error)
{
    if (p->error != TB_OK)
        return;
    p->error = error;
    p->story = strdup(tb_error_story());
    peer_notice(t, p);
}

static int peer_explain(const struct pair_peer *p, int code)
{
    return tb_error(code, "%s", p->story != NULL ? p->story : tb_error_name(code));
}

static void peer_unlink(struct pair *t, struct pair_peer *p, bool left)
{
    if (peer_is_linked(p)) {
        epoll_ctl(t->epoll, EPOLL_CTL_DEL, p->shared.socket, NULL);
        tb_duct_close(&p->duct);
    }
    tb_list_remove(&p->on_linked);
    tb_pair_shared_close(&p->shared, left);
    p->proved = p->gone = false;
}

/* ---- connecting -------------------------------------------------------------------------------------------------- */

static int peer_ask(struct pair *t, struct pair_peer *p)
{
    if (p->error != TB_OK)
        return peer_explain(p, TB_ERR_PEER);
    p->waiting = true;
    if (p->asked)
        return TB_AGAIN;
    p->asked = true;
    int error = t->config.connect(t->config.connect_context, p->head.proc, (enum tb_stream)TB_STREAM_PAIR);
    if (error == TB_OK)
        return TB_AGAIN;
    peer_fail(t, p, error);
    return error;
}

static int socket_adopt(struct pair *t, struct pair_peer *p, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = p};
    int error = TB_OK;
    if (p->shared.memory == NULL)
        error = tb_error(TB_ERR_PROTOCOL, "process %u was connected with this one without memory", p->head.proc.index);
    else if (epoll_ctl(t->epoll, EPOLL_CTL_ADD, descriptor, &event) < 0)
        error = errno == ENOMEM || errno == ENOSPC ? tb_error(TB_ERR_MEMORY, "no memory to wait for a process")
                                                   : tb_error_errno("cannot wait for process %u", p->head.proc.index);
    if (error != TB_OK)
        return error;
    p->shared.socket = descriptor;
    tb_duct_open(&p->duct, &p->head, p->shared.out, p->shared.in, tb_pair_bulk());
    tb_memory_card_write(&p->shared.own->card, &t->token);
    tb_list_append(&t->linked, &p->on_linked);
    p->asked = false;
    peer_notice(t, p); /* so that nobody sleeps before it was looked whether something is there already */
    return TB_OK;
}

/* Takes the descriptor unless it returns TB_ERR_MEMORY. */
static int adopt_now(void *context, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    struct pair *t = context;
    struct pair_peer *p = peer_find(t, proc);
    int error = TB_OK;
    bool memory = (uint32_t)stream == TB_STREAM_MEMORY;
    if (p == NULL)
        return TB_ERR_MEMORY;
    if (p->error != TB_OK)
        error = peer_explain(p, p->error == TB_ERR_MEMORY ? TB_ERR_PEER : p->error);
    else if (!peer_is_linked(p) && memory)
        error = tb_pair_shared_map(&p->shared, descriptor, t->config.self.index < proc.index);
    else if (!peer_is_linked(p) && !memory)
        error = socket_adopt(t, p, descriptor);
    if (error == TB_ERR_MEMORY)
        return error;
    if (p->shared.socket != descriptor)
        close(descriptor);
    if (error != TB_OK && p->error == TB_OK)
        peer_fail(t, p, error);
    return error;
}

static bool pair_adopts(struct tb_proc proc, enum tb_stream stream)
{
    return (uint32_t)stream == TB_STREAM_PAIR || (uint32_t)stream == TB_STREAM_MEMORY;
}

/* What comes while others wait waits behind them: both sides must take the same one for the first. */
static int pair_adopt(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    struct pair *t = (struct pair *)transport;
    tb_late_try(&t->late, adopt_now, t);
    int error = t->late.count > 0 ? TB_ERR_MEMORY : adopt_now(t, proc, stream, descriptor);
    if (error != TB_ERR_MEMORY)
        return error;
    if (tb_late_keep(&t->late, proc, stream, descriptor))
        return TB_OK;
    close(descriptor);
    return error;
}

static void pair_refused(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int error)
{
    struct pair *t = (struct pair *)transport;
    struct pair_peer *p = peer_find(t, proc);
    if (p == NULL || !p->asked)
        return; /* the other side's wish was granted first */
    p->asked = false;
    if (!peer_is_linked(p))
        peer_fail(t, p, error);
}

/* ---- the other side goes ----------------------------------------------------------------------------------------- */

/* Its socket has ended. */
static void peer_gone(struct pair *t, struct pair_peer *p)
{
    epoll_ctl(t->epoll, EPOLL_CTL_DEL, p->shared.socket, NULL);
    p->gone = true;
    peer_notice(t, p);
}

/* All that it has sent was delivered. One that has never taken its half, and that nothing was sent to, need not even be
 * gone: it may be that it has left over what came first. */
static void peer_part(struct pair *t, struct pair_peer *p)
{
    const struct tb_pair_side *other = p->shared.other;
    uint32_t index = p->head.proc.index;
    bool left = atomic_load_explicit(&other->left, memory_order_seq_cst) != 0;
    bool unused = atomic_load_explicit(&other->card.pid, memory_order_acquire) == 0 && p->duct.writer.tail == 0;
    peer_unlink(t, p, false);
    if (left)
        peer_fail(t, p, tb_error(TB_ERR_CLOSED, "process %u has left", index));
    else if (!unused)
        peer_fail(t, p, tb_error(TB_ERR_PEER, "process %u of this host has ended, and did not say goodbye", index));
}

/* Looks at the sockets. `hush`: takes rings out of them. */
static void sockets_look(struct pair *t, bool hush)
{
    struct epoll_event events[EVENTS_LIMIT];
    int ready;
    t->until_look = LOOK_ROUNDS;
    do {
        ready = epoll_wait(t->epoll, events, EVENTS_LIMIT, 0);
        for (int i = 0; i < ready; i++) {
            struct pair_peer *p = events[i].data.ptr;
            if (hush)
                tb_pair_shared_hush(&p->shared);
            if (events[i].events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR))
                peer_gone(t, p);
        }
    } while (hush && ready == EVENTS_LIMIT);
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

static int pair_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                     enum tb_stream stream, void *token)
{
    struct pair_peer *p = (struct pair_peer *)endpoint;
    struct pair *t = pair_of(endpoint);
    struct tb_ring_frame frame;
    if (__builtin_expect(!peer_is_linked(p), 0))
        return peer_ask(t, p);
    if (!tb_duct_write(&p->duct, &t->blocked, envelope, payload, &frame))
        return TB_AGAIN;
    tb_ring_publish(&p->duct.writer, &frame);
    tb_pair_shared_wake(&p->shared);
    t->head.sent++;
    return TB_OK;
}

/* True: all was told, and it need not be noticed any more. */
static bool notice_tell(struct pair *t, struct pair_peer *p)
{
    const struct tb_upcalls *up = &t->config.upcalls;
    if (!p->known) {
        p->known = true;
        up->opened(up->context, &p->head);
    }
    if (p->gone && tb_duct_ready(&p->duct))
        return false;
    if (p->gone)
        peer_part(t, p);
    if (p->error != TB_OK && !p->told) {
        p->told = true;
        peer_unlink(t, p, false);
        peer_explain(p, p->error);
        up->broken(up->context, &p->head, p->error);
    } else if (p->waiting && peer_is_linked(p)) {
        p->waiting = false;
        up->writable(up->context, &p->head);
    } else if (p->waiting && p->error == TB_OK) {
        p->waiting = false; /* what was there has ended unused: it may ask again */
        up->writable(up->context, &p->head);
    }
    return p->error == TB_OK || p->told; /* asking again may have failed */
}

static int notices_tell(struct pair *t)
{
    int told = 0;
    struct pair_peer *p;
    TB_LIST_EACH (p, &t->notices, struct pair_peer, notice) {
        if (!notice_tell(t, p))
            continue;
        tb_list_remove(&p->notice);
        told++;
    }
    return told;
}

static int pair_poll(struct tb_transport *transport)
{
    struct pair *t = (struct pair *)transport;
    struct pair_peer *p;
    int done = 0;
    if (__builtin_expect(t->late.count > 0, 0))
        tb_late_try(&t->late, adopt_now, t);
    if (__builtin_expect(--t->until_look == 0, 0))
        sockets_look(t, false);
    if (__builtin_expect(!tb_list_empty(&t->notices), 0))
        done += notices_tell(t);
    TB_LIST_EACH (p, &t->linked, struct pair_peer, on_linked) {
        bool waits = false;
        done += tb_duct_receive(&p->duct, &t->config.upcalls, &waits);
        if (waits)
            tb_pair_shared_wake(&p->shared);
    }
    if (__builtin_expect(!tb_list_empty(&t->blocked), 0))
        done += tb_ducts_unblock(&t->blocked, &t->config.upcalls);
    return done;
}

/* ---- sleeping ---------------------------------------------------------------------------------------------------- */

/* If something is there the words stay as they are: whoever writes meanwhile rings in vain, which does no harm. */
static bool pair_arm(struct tb_transport *transport)
{
    struct pair *t = (struct pair *)transport;
    struct pair_peer *p;
    bool ready = !tb_list_empty(&t->notices);
    TB_LIST_EACH (p, &t->linked, struct pair_peer, on_linked)
        tb_doorbell_sleep(&p->shared.own->state);
    TB_LIST_EACH (p, &t->linked, struct pair_peer, on_linked)
        ready = ready || tb_duct_ready(&p->duct);
    return !ready && !tb_ducts_have_room(&t->blocked);
}

static void pair_disarm(struct tb_transport *transport)
{
    struct pair *t = (struct pair *)transport;
    struct pair_peer *p;
    TB_LIST_EACH (p, &t->linked, struct pair_peer, on_linked)
        atomic_store_explicit(&p->shared.own->state, TB_DOORBELL_AWAKE, memory_order_relaxed);
    if (!tb_list_empty(&t->linked))
        sockets_look(t, true);
}

static int pair_descriptor(struct tb_transport *transport)
{
    return ((struct pair *)transport)->epoll;
}

static uint64_t pair_deadline(struct tb_transport *transport)
{
    return tb_late_deadline(&((struct pair *)transport)->late);
}

static bool pair_idle(struct tb_transport *transport)
{
    return true; /* what was accepted is in memory that outlives this process */
}

/* ---- endpoints --------------------------------------------------------------------------------------------------- */

static int pair_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    struct pair_peer *p = peer_find((struct pair *)transport, proc);
    if (p == NULL)
        return TB_ERR_MEMORY;
    p->known = true;
    *endpoint = &p->head;
    return TB_OK;
}

static int pair_read(struct tb_endpoint *endpoint, uint64_t address, struct tb_spans *into, uint64_t length)
{
    struct pair_peer *p = (struct pair_peer *)endpoint;
    if (!peer_is_linked(p))
        return tb_error(TB_ERR_FORBIDDEN, "process %u has left", endpoint->proc.index);
    return tb_memory_card_read(endpoint->transport, &p->shared.other->card, &p->proved, address, into, length);
}

static void pair_drop(struct tb_endpoint *endpoint)
{
    struct pair_peer *p = (struct pair_peer *)endpoint;
    if (p->error == TB_OK) {
        p->error = TB_ERR_CLOSED;
        p->story = strdup("this process has given the other one up");
    }
    p->told = true;
    tb_list_remove(&p->notice);
    peer_unlink(pair_of(endpoint), p, false);
}

static void pair_forget(struct tb_endpoint *endpoint)
{
    TB_ASSERT(!peer_is_linked((struct pair_peer *)endpoint));
    free(((struct pair_peer *)endpoint)->story);
    tb_endpoint_table_remove(&pair_of(endpoint)->peers, endpoint);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static bool pair_usable(const struct tb_transport_config *config)
{
    return config->connect != NULL;
}

static void pair_close(struct tb_transport *transport)
{
    struct pair *t = (struct pair *)transport;
    struct pair_peer *p;
    for (uint32_t i = 0; (p = (struct pair_peer *)tb_endpoint_table_next(&t->peers, &i)) != NULL;) {
        peer_unlink(t, p, true);
        free(p->story);
    }
    tb_late_close(&t->late);
    tb_endpoint_table_close(&t->peers);
    if (t->epoll >= 0)
        close(t->epoll);
    free(t);
}

static int pair_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    struct pair *t = calloc(1, sizeof *t);
    if (t == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the transport between two processes of a host");
    uint32_t longest = tb_ring_longest(tb_pair_bulk());
    t->head =
        (struct tb_transport){.table = &tb_transport_pair,
                              .capabilities = tb_transport_pair.capabilities,
                              .max_payload = longest,
                              .eager_limit = tb_param.eager_shm < longest ? (uint32_t)tb_param.eager_shm : longest};
    t->config = *config;
    t->until_look = LOOK_ROUNDS;
    tb_list_init(&t->linked);
    tb_list_init(&t->notices);
    tb_list_init(&t->blocked);
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    int error = t->epoll < 0 ? tb_error_errno("cannot make an epoll descriptor for processes of this host") : TB_OK;
    if (error == TB_OK)
        error = tb_memory_card_begin(&t->head, &t->token);
    if (error == TB_OK)
        error = tb_endpoint_table_open(&t->peers, "through memory of two");
    if (error == TB_OK) {
        *transport = &t->head;
        return TB_OK;
    }
    if (t->epoll >= 0)
        close(t->epoll);
    free(t);
    return error;
}

const struct tb_transport_table tb_transport_pair = {
    .name = "pair",
    .scope = TB_SCOPE_NEAR,
    .capabilities = TB_CAP_DEPENDABLE,
    .params = tb_pair_param_rows,
    .usable = pair_usable,
    .open = pair_open,
    .close = pair_close,
    .endpoint = pair_endpoint,
    .send = pair_send,
    .poll = pair_poll,
    .arm = pair_arm,
    .disarm = pair_disarm,
    .descriptor = pair_descriptor,
    .deadline = pair_deadline,
    .idle = pair_idle,
    .read = pair_read,
    .drop = pair_drop,
    .forget = pair_forget,
    .adopts = pair_adopts,
    .adopt = pair_adopt,
    .refused = pair_refused,
};

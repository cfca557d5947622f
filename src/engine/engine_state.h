/* The engine's own structs, private to this folder. Everything here is touched only with the engine locked (or by the
 * only thread, when the process is not threaded), except where a member says otherwise.
 *
 * Who calls whom: the public functions take the lock and use send.c and receive.c; frames come up from transports to
 * upcalls in engine.c, which hands each kind to its handler in send.c or receive.c; both answer through peer.c. A
 * request ends in tb_request_finish and nowhere else. */
#ifndef TB_ENGINE_STATE_H
#define TB_ENGINE_STATE_H

#include "engine/engine.h"
#include "wire/wire.h"

#include <pthread.h>

#define TB_LIKELY(x)   __builtin_expect(!!(x), 1)
#define TB_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Messages that wait for their receive: any number is legal, so only memory limits them. Their payload is limited by
 * credit; what is left is sizeof(struct tb_arrival) for each. */
#define TB_ARRIVALS_LIMIT       UINT32_MAX
#define TB_NOTES_LIMIT          (1u << 22) /* answers that wait for room */
#define TB_CONTEXTS_LIMIT       (1u << 20)
#define TB_FREED_CONTEXTS_LIMIT 4096u /* ranges of contexts that are gone */
#define TB_BUCKETS_FIRST        256u
#define TB_BUCKETS_LIMIT        (1u << 20)
#define TB_SLOT_BITS            24
#define TB_GRANT_LOW            (16u << 10)
#define TB_GRANT_HIGH           (2u << 20) /* more than the pieces of a collective that are under way */
#define TB_ARRIVAL_INLINE       128        /* payload up to this length is kept in the arrival itself */
#define TB_TOKEN_MINIMUM        2048 /* shorter eager payload is copied by the transport instead of being waited for */
#define TB_PUMP_FRAMES          32   /* frames of one transfer before others get their turn */
#define TB_READ_SPAN            1024 /* into shorter spans a message is not read from its sender's memory but sent */

enum tb_request_kind { TB_REQUEST_NONE, TB_REQUEST_SEND, TB_REQUEST_RECEIVE, TB_REQUEST_PROGRAM };

enum tb_phase {
    TB_PHASE_IDLE,     /* finished, or not on any list yet */
    TB_PHASE_QUEUED,   /* send: its envelope waits for room */
    TB_PHASE_ASKED,    /* send: REQUEST is out */
    TB_PHASE_SENT,     /* send: EAGER is out; waits to have left, for DONE, or both */
    TB_PHASE_BULK,     /* send: DATA is being sent */
    TB_PHASE_TAIL,     /* send: all DATA was accepted and has not left */
    TB_PHASE_RECALLED, /* send: has left, and the receiver was asked to forget it */
    TB_PHASE_HELD,     /* send: to this process itself, waits for its receive */
    TB_PHASE_POSTED,   /* receive: waits for a message */
    TB_PHASE_COMING,   /* receive: matched, DATA is expected */
    TB_PHASE_RUNNING   /* program */
};

/* A context as it appears on the wire: one plane of a channel. May exist before its channel, because of arrivals. */
struct tb_context {
    uint64_t id;
    struct tb_channel *channel; /* NULL: not known yet */
    struct tb_list arrivals;    /* in order of arrival */
    struct tb_list wild;        /* receives that leave source or match open, in order of posting */
    struct tb_list requests;    /* all unfinished ones */
    struct tb_context *next;    /* in its bucket */
};

struct tb_channel {
    struct tb_engine *engine;
    struct tb_context *point, *collective; /* collective: NULL in a control channel */
    struct tb_channel *control;            /* NULL: not needed yet */
    uint32_t size, rank;
    uint32_t *procs; /* NULL: identity */
    uint32_t users;  /* the owner and every unfinished request */
    uint32_t collectives;
    void *owner;
    struct tb_board *board;     /* that its ranks share, or NULL */
    struct tb_list composites;  /* steps on it, in order; the first one is being carried out */
    struct tb_list on_boards;   /* in engine->boards while there are some */
    const struct tb_peer *lost; /* one of its processes that is gone, if it has a board */
};

/* Transfers that share a way out and go in order: one for all of tcp, one for each peer in shared memory. */
struct tb_port {
    struct tb_list transfers;
    struct tb_list on_engine; /* in engine->ports while there are transfers */
};

struct tb_peer {
    struct tb_engine *engine;
    struct tb_proc proc;
    struct tb_endpoint *endpoint; /* NULL: not needed yet, or this process itself */
    struct tb_port *port;
    bool self, local;
    bool held[TB_STREAM_COUNT]; /* the transport said TB_AGAIN for this stream and not yet `writable` */
    bool credit_due;            /* a CREDIT frame waits for room */
    int error;                  /* not TB_OK: nothing more will pass */
    char *story;                /* why */
    uint32_t eager_limit;
    uint64_t credit;           /* eager payload that we may still send */
    uint64_t owed;             /* eager payload of theirs that is consumed and not given back yet */
    struct tb_list answers;    /* struct tb_note, waiting for room; in no order with envelopes */
    struct tb_list envelopes;  /* sends whose EAGER or REQUEST waits for room, in order */
    struct tb_list requests;   /* all unfinished ones */
    struct tb_list on_waiting; /* in engine->waiting while something waits for room */
    struct tb_list on_dying;   /* in engine->dying from its break until its requests are ended */
    struct tb_port own_port;
};

struct tb_note {
    struct tb_list queue;
    struct tb_message message;
};

struct tb_arrival {
    struct tb_list in_bucket, in_context;
    struct tb_peer *peer;
    struct tb_request *local; /* a send of this process itself that waits, else NULL */
    struct tb_message message;
    uint64_t address; /* REQUEST with TB_MESSAGE_REMOTE */
    char *payload;    /* EAGER: `keep`, or allocated */
    char keep[TB_ARRIVAL_INLINE];
};

struct tb_bucket {
    struct tb_list posted;  /* exact receives */
    struct tb_list arrived; /* arrivals */
};

struct tb_slot {
    struct tb_request *request; /* NULL: free */
    uint64_t id;
    uint32_t next; /* free slot */
};

struct tb_freed_contexts {
    uint64_t low, high; /* context >> TB_CONTEXT_PLANE_BITS, inclusive: counters of an allocator are neighbours */
};

struct tb_waiter {
    struct tb_list on_engine;
    struct tb_request *request; /* or ready() */
    bool (*ready)(void *context);
    void *context;
    bool satisfied;
    bool asking;   /* ready is running */
    uint64_t seen; /* engine->events when ready was asked last */
    pthread_cond_t wake;
};

/* Why a collective failed, for whoever waits for it and may be another thread. */
struct tb_story {
    const struct tb_request *of; /* never followed: it may be gone */
    int error;
    char *text; /* NULL: there was no memory */
};
#define TB_STORIES 16u

struct tb_engine {
    struct tb_engine_config config;
    int (*connect)(void *context, struct tb_proc to, enum tb_stream stream); /* the owner's */
    void *connect_context;
    bool threaded;
    bool inside;  /* in progress already: upcalls and callbacks must not poll again */
    bool stirred; /* something changed that a sleeping thread must know */
    uint8_t representation;
    uint64_t events;             /* grows with everything that a waiter could wait for */
    struct tb_transport *local;  /* NULL: none, or not opened yet; the same for: */
    struct tb_transport *remote; /* tcp */
    struct tb_transport *relay;  /* gateways */
    bool networked;              /* one of the last two is open */
    uint32_t remote_interval, remote_countdown;
    uint32_t control_countdown;
    uint32_t connecting; /* rounds of progress in which the control descriptor is looked at often */
    uint32_t idle_tests;
    int control; /* -1: none, or it has ended */
    uint64_t grant;

    struct tb_peer **peers;
    struct tb_list waiting, ports, dying;
    struct tb_port port; /* of tcp */

    struct tb_bucket *buckets;
    uint32_t bucket_mask, bucket_used;
    uint64_t orders; /* receives posted so far */

    struct tb_context **contexts;
    uint32_t context_mask, context_used;
    struct tb_context *recent;
    struct tb_freed_contexts *gone;
    uint32_t freed_used, freed_room;

    struct tb_slot *slots;
    uint32_t slot_room, slot_free; /* 0: none free; slot 0 is never used */
    uint64_t ids;
    uint64_t sends;                      /* unfinished ones */
    uint64_t self_bytes;                 /* payload of arrivals from this process itself */
    struct tb_story stories[TB_STORIES]; /* of the last collectives that failed */
    uint32_t story_next;

    struct tb_list working; /* items of programs that copy or reduce, a portion in each round of progress */
    struct tb_list boards;  /* channels with composite steps on their way */
    void *work;             /* memory that the last program needed, kept for the next one */
    uint64_t work_bytes;

    struct tb_pool arrivals, notes;
    struct tb_counters counters;

    /* Waiting. */
    uint64_t spin;            /* ns that are spent looking before a yield; learnt */
    long switches;            /* involuntary ones seen so far */
    pthread_mutex_t lock;     /* recursive: a callback may use the public functions */
    _Atomic uint32_t wanting; /* threads at the lock; any thread */
    _Atomic bool kicked;      /* any thread */
    int kick;                 /* eventfd; -1 when not threaded */
    bool sleeping;            /* a thread waits in ppoll with the lock released */
    uint64_t sleep_until;
    struct tb_waiter *poller;
    struct tb_list waiters;
};

/* ---- the lock (wait.c) ------------------------------------------------------------------------------------------- */

void tb_engine_lock_slow(struct tb_engine *e);
void tb_engine_unlock_slow(struct tb_engine *e);

static inline void tb_engine_lock(struct tb_engine *e)
{
    if (TB_UNLIKELY(e->threaded))
        tb_engine_lock_slow(e);
}

static inline void tb_engine_unlock(struct tb_engine *e)
{
    if (TB_UNLIKELY(e->threaded))
        tb_engine_unlock_slow(e);
}

int tb_engine_poll_once(struct tb_engine *e);
/* Whether nobody else seems to want the core. */
bool tb_engine_spins(const struct tb_engine *e);
void tb_waiter_wake(struct tb_engine *e, struct tb_waiter *w);

/* ---- the engine (engine.c) -----------------------------------------------------------------------------------------
 */

int tb_engine_open_remote(struct tb_engine *e); /* opens the transport to other hosts, if that is not done yet */
int tb_engine_open_relay(struct tb_engine *e);  /* and that through gateways */
int tb_control_poll(struct tb_engine *e);

/* ---- peers (peer.c) ---------------------------------------------------------------------------------------------- */

struct tb_peer *tb_peer_make(struct tb_engine *e, uint32_t index); /* NULL: no memory; the story is told */
int tb_peer_reach(struct tb_peer *p);                              /* finds the endpoint */
void tb_peer_settle(struct tb_peer *p);                            /* takes over what its endpoint allows */
void tb_peer_free(struct tb_peer *p);
/* Nothing more will pass; its requests are ended at the next round of progress. The story is the thread's last one. */
void tb_peer_break(struct tb_peer *p, int error);
int tb_peer_error(const struct tb_peer *p); /* what requests with a broken peer end with */
int tb_peer_bury(struct tb_engine *e);
/* Sends a frame without payload, now or later. */
void tb_peer_answer(struct tb_peer *p, const struct tb_message *message);
void tb_peer_owe(struct tb_peer *p, uint64_t bytes);
void tb_peer_queue(struct tb_peer *p); /* something of it waits for its turn */
int tb_peers_flush(struct tb_engine *e);

static inline struct tb_peer *tb_peer_of(struct tb_engine *e, uint32_t index)
{
    struct tb_peer *p = e->peers[index];
    return TB_LIKELY(p != NULL) ? p : tb_peer_make(e, index);
}

/* A peer that is going takes nothing more, but what it has sent before may still have to be read: `broken` comes after
 * that and ends whatever waits here. Until then it is as if there were no room. */
static inline int tb_peer_transmit(struct tb_peer *p, const struct tb_envelope *envelope, struct tb_spans *payload,
                                   enum tb_stream stream, uint64_t token)
{
    int rc = p->endpoint->transport->table->send(p->endpoint, envelope, payload, stream, (void *)(uintptr_t)token);
    if (TB_LIKELY(rc >= 0 && rc != TB_AGAIN))
        return rc;
    if (rc == TB_AGAIN || rc == TB_ERR_PEER || rc == TB_ERR_CLOSED) {
        p->held[stream] = true;
        return TB_AGAIN;
    }
    return rc;
}

/* ---- contexts and channels (channel.c, gone.c) ------------------------------------------------------------------- */

struct tb_context *tb_context_find(struct tb_engine *e, uint64_t id); /* NULL if there is none */
struct tb_context *tb_context_get(struct tb_engine *e, uint64_t id);  /* makes it; NULL: no memory */
void tb_contexts_close(struct tb_engine *e);
void tb_channel_drop(struct tb_channel *channel); /* one user less */

bool tb_freed_contexts_contains(const struct tb_engine *e, uint64_t context);
void tb_freed_contexts_add(struct tb_engine *e, uint64_t context);

static inline struct tb_peer *tb_channel_peer(struct tb_channel *c, uint32_t rank)
{
    return tb_peer_of(c->engine, c->procs == NULL ? rank : c->procs[rank]);
}

/* ---- matching (match.c) ------------------------------------------------------------------------------------------ */

int tb_match_open(struct tb_engine *e);
void tb_match_close(struct tb_engine *e);
/* The earliest posted receive for a message; stays where it is. */
struct tb_request *tb_match_posted(struct tb_engine *e, struct tb_context *c, uint32_t source, uint64_t match);
/* The earliest arrived message for a receive; stays where it is. */
struct tb_arrival *tb_match_arrived(struct tb_engine *e, struct tb_context *c, uint32_t rank, uint64_t match,
                                    uint64_t mask);
void tb_match_post(struct tb_engine *e, struct tb_context *c, struct tb_request *r);
void tb_match_unpost(struct tb_engine *e, struct tb_request *r);
void tb_match_arrive(struct tb_engine *e, struct tb_context *c, struct tb_arrival *a);
void tb_match_take(struct tb_engine *e, struct tb_arrival *a);

/* ---- requests (request.c) ---------------------------------------------------------------------------------------- */

void tb_request_begin(struct tb_request *r, struct tb_context *c, enum tb_request_kind kind);
void tb_request_enlist(struct tb_request *r, struct tb_context *c); /* on the lists of peer and context */
void tb_request_finish(struct tb_request *r, int error);
/* What this thread has told last is told again by tb_request_explain, if the request ends with that error. */
void tb_story_keep(const struct tb_request *r, int error);
int tb_request_number(struct tb_request *r); /* gives it a slot and a message id */
struct tb_request *tb_request_find(struct tb_engine *e, uint64_t id, enum tb_request_kind kind); /* NULL: stale */
void tb_request_cancel_locked(struct tb_request *r);

/* ---- sending (send.c) -------------------------------------------------------------------------------------------- */

/* A part of a buffer: `length` bytes of its packed form from `from` on. */
struct tb_part {
    const struct tb_buffer *buffer;
    uint64_t from, length;
};

int tb_send_try(struct tb_context *c, const struct tb_part *part, uint32_t to, uint64_t match, enum tb_mode mode);
void tb_send_start(struct tb_context *c, struct tb_request *r, const struct tb_part *part, uint32_t to, uint64_t match,
                   enum tb_mode mode);
int tb_send_envelope(struct tb_request *r); /* TB_OK: it is out; TB_AGAIN; or an error that ends it */
void tb_send_cleared(struct tb_peer *p, const struct tb_message *m);
void tb_send_matched(struct tb_peer *p, const struct tb_message *m);
void tb_send_cancelled(struct tb_peer *p, const struct tb_message *m);
void tb_send_left(struct tb_engine *e, uint64_t token, int error);
int tb_ports_pump(struct tb_engine *e);

/* ---- receiving (receive.c) --------------------------------------------------------------------------------------- */

void tb_receive_start(struct tb_context *c, struct tb_request *r, const struct tb_part *part, uint32_t from,
                      uint64_t match, uint64_t mask);
/* Handlers of frames that tb_message_check has passed. */
void tb_receive_eager(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
void tb_receive_asked(struct tb_peer *p, const struct tb_message *m, const void *payload);
void tb_receive_data(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
void *tb_receive_place(struct tb_peer *p, const struct tb_message *m, size_t length);
void tb_receive_forget(struct tb_peer *p, const struct tb_message *m);
/* A receive gets a message of this process itself, straight from its buffer. */
void tb_receive_local(struct tb_request *r, const struct tb_message *m, const struct tb_part *part);
struct tb_arrival *tb_arrival_make(struct tb_peer *p, const struct tb_message *m, uint64_t payload);
void tb_arrival_free(struct tb_engine *e, struct tb_arrival *a);
void tb_arrival_drop(struct tb_engine *e, struct tb_arrival *a);  /* nobody will ever receive it: answers its sender */
void tb_arrival_file(struct tb_context *c, struct tb_arrival *a); /* it waits for its receive from now on */

/* ---- programs (run.c, binding.c) --------------------------------------------------------------------------------- */

int tb_runs_work(struct tb_engine *e);

/* The bytes of one item of a step's slice; `room` is for a buffer that part may refer to. */
void tb_binding_part(const struct tb_binding *b, const struct tb_program *program, const struct tb_step *step,
                     const struct tb_slice *slice, uint32_t item, struct tb_part *part, struct tb_buffer *room);
/* The same of one piece of a slice, whether or not the step joins them. */
void tb_binding_block(const struct tb_binding *b, const struct tb_program *program, const struct tb_slice *slice,
                      uint32_t at, struct tb_part *part, struct tb_buffer *room);
/* Provides WORK, in the `small_bytes` at `small` if they are enough; *work is then NULL. */
int tb_binding_take_work(struct tb_binding *b, const struct tb_program *program, struct tb_engine *e, void *small,
                         uint64_t small_bytes, void **work, uint64_t *work_bytes);
void tb_binding_give_work(struct tb_engine *e, void *work, uint64_t bytes);
/* How much memory so many items of a type take, and where in it the first one stands. */
int tb_items_measure(const struct tb_type *type, unsigned __int128 count, uint64_t *bytes, int64_t *origin);

/* ---- composite steps (composite.c, exchange.c) ------------------------------------------------------------------- */

/* One of them, by whoever runs the program. The first part is set before the start. */
struct tb_composite_state {
    uint8_t what;      /* enum tb_composite */
    uint8_t operation; /* of the collective, and its number on the channel */
    uint32_t collective;
    uint32_t root;
    uint64_t bytes, unit;       /* to be given or got; what must not be cut */
    struct tb_part give, get;   /* where that is asked for; of blocks, all of them, and only of reductions */
    struct tb_buffer rooms[2];  /* that these may refer to */
    const struct tb_type *type; /* of reductions */
    const struct tb_op *op;
    const struct tb_binding *binding; /* of blocks */
    const struct tb_program *program;
    const struct tb_step *step;
    void (*complete)(struct tb_composite_state *s); /* not if it is finished at once */
    int error;                                      /* when finished */

    uint8_t stage;
    struct tb_list in_line;
    struct tb_channel *channel;
    struct tb_board *board;
    uint64_t number;
    uint32_t called;  /* ranks before this one have called the same */
    uint32_t awaited; /* of these, those that this rank has waited for */
    uint32_t looks;   /* without success */
    bool foreign;     /* another collective of the same number has been heard of: */
    uint8_t foreign_operation;
    uint32_t foreign_rank;
    uint32_t fragment, fragments;
    uint32_t slot; /* of this rank's first one */
    bool alone;    /* of reductions: who gets the result makes it of whole fragments */
    bool direct;   /* this rank's operand is read where it stands: */
    const char *operand;
    uint32_t slot_offset; /* where in a slot the data of a fragment begins */
    uint32_t stripe;      /* of blocks: how much of each goes into a fragment; 0: they are in the cell */
    uint32_t mine;        /* fragments that this rank writes; `fragments` are those that it takes */
    uint32_t next;        /* rank, counted from this one, whose fragment is to be taken */
    bool heard_long;      /* somebody may wait until this rank has counted */
    uint32_t free;        /* fragments that fit into this rank's slots, when last looked at */
    uint32_t counts[TB_BOARD_COUNTERS];
};

/* On a channel that has a board. True: finished already; where the caller has nothing else to do, it is worth a while
 * of looking. */
bool tb_composite_start(struct tb_composite_state *s, struct tb_channel *channel, bool idle);
int tb_composites_work(struct tb_engine *e);
int tb_composites_look(struct tb_engine *e); /* the same, thoroughly, before a sleep */
void tb_composites_lose(struct tb_peer *peer);
/* A message of a collective that nobody here waits for. */
void tb_composites_hear(struct tb_channel *channel, const struct tb_message *m);

/* ---- collectives (mismatch.c) ------------------------------------------------------------------------------------ */

/* Another operation under the same number of the same collective sequence: ranks have called different collectives. */
void tb_mismatch_arrived(struct tb_context *c, const struct tb_message *m);
bool tb_mismatch_posted(struct tb_context *c, struct tb_request *r); /* true: the request was ended */

#endif

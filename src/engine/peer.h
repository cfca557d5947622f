/* The engine's view of one process of the job: how it is reached, what it may be sent, and what waits for it. Made when
 * first needed, lives as long as the engine; that of a process that was started later, until it is gone and no channel
 * has it any more, unless somebody may still ask why a request has failed that it was part of. Touched with the engine
 * locked. */
#ifndef TB_ENGINE_PEER_H
#define TB_ENGINE_PEER_H

#include "engine/ahead.h"
#include "engine/engine.h"
#include "engine/likely.h"
#include "engine/port.h"
#include "engine/unborn.h"
#include "wire/wire.h"

/* What a process may send to another one before it hears that it was consumed. */
#define TB_GRANT_LOW  (16u << 10)
#define TB_GRANT_HIGH (2u << 20) /* more than the pieces of a collective that are under way */
/* To and from one of another job: neither knows how many the other has begun with. */
#define TB_GRANT_STRANGER (128u << 10)

#define TB_NOTES_LIMIT   (1u << 22) /* answers that wait for room */
#define TB_UNKNOWN_LIMIT (1u << 16) /* contexts that a peer names before we know them */

/* Of processes of other jobs, each of which is such a peer: as much as a program can mean, and since a job may have
 * very many, not more of all together. */
#define TB_STRANGER_CONTEXTS  1024u /* that one names before we know them, */
#define TB_STRANGERS_CONTEXTS 65536u
#define TB_STRANGER_EARLY     32768u /* messages that wait in such, */
#define TB_STRANGERS_EARLY    (1u << 18)
#define TB_STRANGER_GIVEN_UP  1024u /* collectives that it has given up there, ever */

struct tb_peer {
    struct tb_engine *engine;
    struct tb_proc proc;
    struct tb_endpoint *endpoint; /* NULL: not needed yet, or this process itself */
    struct tb_port *port;
    bool self, local;
    bool near;                  /* what passes between us goes through memory: it is local, or of another world */
    bool stranger;              /* of another job: stranger.h */
    bool held[TB_STREAM_COUNT]; /* the transport said TB_AGAIN for this stream and not yet `writable` */
    bool casts;                 /* its casts are heard of by multicast */
    bool credit_due;            /* a CREDIT frame waits for room */
    bool parted;                /* the last channel that had it was closed; then it may be: */
    struct tb_list on_parted;   /* in the peers' `parted`: gone as well, and to be forgotten */
    bool mourned;               /* channels know that it is gone */
    bool named;                 /* by a request that has failed, in whose channel it is not: it is never forgotten */
    int error;                  /* not TB_OK: nothing more will pass */
    char *story;                /* why */
    uint32_t eager_limit;
    uint64_t allowed, credit;  /* payload that we may have sent without asking, and that we may still send so */
    uint64_t granted;          /* the same for them: never more than this is kept */
    uint64_t growth;           /* that they do not know of yet */
    uint64_t kept;             /* payload of theirs that waits for its receive or is still to come */
    struct tb_aheads aheads;   /* long messages of theirs that left without asking */
    uint32_t unknown;          /* contexts that their messages have made and that have no channel yet; */
    uint32_t early;            /* messages of theirs that wait in such, */
    uint32_t given_up;         /* and collectives that a stranger has given up there */
    uint32_t arrivals;         /* messages of theirs that wait anywhere for their receive, also empty ones */
    uint64_t owed;             /* payload of theirs that is consumed and not given back yet... */
    uint64_t owing;            /* ...and as much as is given back at once */
    struct tb_list answers;    /* struct tb_note, waiting for room; in no order with envelopes */
    struct tb_list envelopes;  /* sends whose EAGER or REQUEST waits for room, in order */
    struct tb_list requests;   /* all unfinished ones */
    struct tb_list on_waiting; /* in the peers' `waiting` while something waits for room */
    struct tb_list on_dying;   /* in the peers' `dying` from its break until its requests are ended */
    struct tb_port own_port;
    uint64_t ahead_out, ahead_in; /* longest messages of the program that leave without asking, from here and there */
    uint32_t frame;               /* payload of a frame of DATA, unless the message is very long */
    uint32_t short_limit;         /* DATA of messages up to here takes the stream of short ones */
    const void *placing; /* where the transport reads a frame of theirs to, in the buffer of a receive; NULL: nowhere */
    uint64_t placing_for;                     /* the id of that receive */
    const struct tb_window *placing_in;       /* into a window, where that is 0: which, */
    uint64_t placing_bytes;                   /* and how many */
    struct tb_list accesses[TB_STREAM_COUNT]; /* struct tb_access, waiting for room, in order */
    struct tb_list results;                   /* struct tb_access_result, waiting for room */
    uint64_t wanted, results_bytes; /* by accesses from them, and not here yet; kept for them in `results`: bytes */
    uint32_t results_waiting;
    uint32_t unanswered;         /* questions that it was asked: until then this process does not leave */
    struct tb_list on_accessing; /* in the accesses' `waiting` while one of these is not empty */
};

/* An answer that waits for room. */
struct tb_note {
    struct tb_list queue;
    struct tb_message message;
};

/* All of an engine. */
struct tb_peers {
    struct tb_peer **by_index; /* NULL where one was not needed yet, or is not any more */
    uint32_t begun;            /* processes with which the job has begun; of the others, from that index on: */
    uint32_t *uses;            /* how many channels have each */
    uint32_t count; /* processes that there is room for: all that some channel has, or that have sent something; other
                     * threads may read it */
    struct tb_list waiting, dying, parted;
    struct tb_pool notes;
    uint64_t grant;     /* payload that each may send at first without hearing of it */
    uint64_t raised;    /* what some were granted later, all together */
    uint8_t owing;      /* a share of 1 / 2^owing of what was granted is given back at once */
    uint32_t lost;      /* of them, so many are gone, and not in good order; */
    uint32_t fresh;     /* of the dying, so many of whom channels do not know it yet */
    uint32_t strangers; /* that there are, or were; what all of them have made early: */
    uint32_t unknown, early;
    struct tb_unborn unborn; /* of whom there is no peer: one that is made is lost from the beginning */
};

uint64_t tb_grant(const struct tb_engine_config *config, bool stranger); /* both sides find the same */
int tb_peers_open(struct tb_peers *peers, uint32_t count, uint64_t grant);
void tb_peers_close(struct tb_peers *peers);
int tb_peers_grow(struct tb_peers *peers, uint32_t index); /* there is a process of this index, too */
/* A channel has these processes (NULL: the first ones), or no longer. */
void tb_peers_use(struct tb_peers *peers, const uint32_t *procs, uint32_t count, bool begins);
int tb_peers_flush(struct tb_peers *peers); /* sends what waits for room; how many frames have gone */
int tb_peers_bury(struct tb_peers *peers); /* ends the requests of those that broke, how many; not inside a transport */

static inline bool tb_peers_mourn(const struct tb_peers *peers) /* whether it has something to do */
{
    return !tb_list_empty(&peers->dying) || !tb_list_empty(&peers->parted);
}

/* So many processes, from that index on, for which there is room, are lost, with the present story. */
void tb_peers_lose(struct tb_engine *e, uint32_t first, uint32_t count, int error);

struct tb_peer *tb_peer_make(struct tb_engine *e, uint32_t index); /* NULL: no memory; the story is told */
int tb_peer_reach(struct tb_peer *p);                              /* finds the endpoint */
void tb_peer_settle(struct tb_peer *p); /* takes over what its endpoint allows, and how far away it is */
/* Nothing more will pass; its requests are ended at the next round of progress. The story is the thread's last one. */
void tb_peer_break(struct tb_peer *p, int error);
/* " on host NAME", for errors, or "". Returns `text`. */
#define TB_PEER_HOST_BYTES 270u
const char *tb_peer_host(const struct tb_peer *p, char text[static TB_PEER_HOST_BYTES]);
int tb_peer_error(const struct tb_peer *p); /* what requests with a broken peer end with */
/* Sends a frame without payload, now or later. */
void tb_peer_answer(struct tb_peer *p, const struct tb_message *message);
/* The same, of what most answers say. */
void tb_peer_reply(struct tb_peer *p, enum tb_kind kind, uint64_t match, uint64_t offset, uint64_t length);
static inline void tb_peer_ask(struct tb_peer *p, const struct tb_message *message)
{
    p->unanswered++;
    tb_peer_answer(p, message);
}

void tb_peer_owe(struct tb_peer *p, uint64_t bytes);
/* So much more of it would be kept. False: it was not granted that, and is given up. */
bool tb_peer_has_room(struct tb_peer *p, uint64_t bytes);
/* A message of its, all of which has come, was used: ends it. */
void tb_peer_consumed(struct tb_peer *p, struct tb_ahead *a);
/* Nobody will receive it: what is still to come is only counted. It may be gone afterwards. */
void tb_peer_waste(struct tb_peer *p, struct tb_ahead *a);
/* It sends such messages: from now on they are granted, if there is memory for it. */
void tb_peer_raise(struct tb_peer *p, uint64_t context, uint64_t length);
/* It gives back so much: the handler of a frame. */
void tb_peer_credited(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
/* The context of a message from there, made if we do not know it yet. NULL: the peer was given up, because of no memory
 * or because it names more that are unknown than any program would. */
struct tb_context *tb_peer_context(struct tb_peer *p, uint64_t id);
/* Whether one more message of a stranger may wait in such a context, or one more collective be given up there. False:
 * it was given up itself. */
bool tb_peer_may_wait(struct tb_peer *p);
bool tb_peer_may_give_up(struct tb_peer *p);
void tb_peer_disclaim(struct tb_context *c); /* it has a channel, or ends: whoever has made it need not answer for it */
void tb_peer_queue(struct tb_peer *p);       /* something of it waits for its turn */

/* Whether a message of this length may leave without asking, if there is credit for it: those of a collective are
 * expected, or will be soon; those of the program up to a limit, which is ahead_out or ahead_in. On this host asking
 * costs next to nothing. */
static inline bool tb_peer_takes_ahead(const struct tb_peer *p, uint64_t context, uint64_t length, uint64_t limit)
{
    return !p->near && length >= TB_AHEAD_LEAST &&
           length <= (tb_context_is_collective(context) ? TB_GRANT_HIGH : limit);
}

bool tb_peer_borrow(struct tb_peer *p, uint64_t bytes);

/* Whether so much may be sent without asking. */
static inline bool tb_peer_has_credit(struct tb_peer *p, uint64_t bytes)
{
    return TB_LIKELY(bytes <= p->credit) || tb_peer_borrow(p, bytes);
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

#endif

/* A connection: one connected stream socket to another process, frames cut from it and written to it. Belongs to the
 * transport that adopted the socket; the thread that owns the transport alone touches it. It makes the calls up for
 * frames that arrive and for frames that have left; whether the *process* behind it is gone is judged in tcp.c, because
 * two processes may share several connections.
 *
 * Out: a frame is written with one call straight from the user's memory. What the socket did not take is kept as it is
 * when the giver waits for `sent`, else copied; until it has left, nothing else is accepted, so that frames never mix.
 * In: bytes are read into one buffer that all connections share and parsed there. The rest of a frame that has only
 * begun is read straight to where it goes: the room that `place` gave, or memory of its own. */
#ifndef TB_TRANSPORT_TCP_CONNECTION_H
#define TB_TRANSPORT_TCP_CONNECTION_H

#include "transport/tcp/pulse.h"
#include "transport/transport.h"

#include <netinet/in.h>
#include <sys/uio.h>

#define TB_CONNECTION_SPANS 16 /* spans that are written from where they lie; more are gathered first */

/* What all connections of a transport share. */
struct tb_hub {
    struct tb_upcalls upcalls;
    struct tb_proc self;
    int epoll;
    uint32_t unsent;      /* connections with a frame that is half-written */
    struct tb_list waits; /* connections with a frame that waits for the next one, in the kernel */
    char *scratch;        /* for reading: TB_HUB_SCRATCH bytes */
    char *staging;        /* for writing: a whole frame */
};

#define TB_HUB_SCRATCH ((256u << 10) + sizeof(struct tb_hop) + sizeof(struct tb_envelope))
#define TB_HUB_STAGING (TB_FRAME_PAYLOAD_LIMIT + sizeof(struct tb_hop) + sizeof(struct tb_envelope))

struct tb_name { /* of a socket's end */
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    };
};

struct tb_connection {
    struct tb_list of_peer;    /* in the peer's connections; in the transport's dead ones after its end */
    struct tb_list in_trouble; /* in the transport's list when `trouble` was set outside of reading */
    struct tb_list in_waits;   /* in the hub's list */
    struct tb_hub *hub;
    struct tb_endpoint *peer;
    struct tb_name here, there;
    int descriptor; /* -1: ended */
    int trouble;    /* errno of a write that failed; 0: none */
    uint8_t stream; /* enum tb_stream */
    struct tb_pulse pulse;
    bool watching; /* epoll tells when it is writable */
    bool wanted;   /* the owner got TB_AGAIN and waits for `writable` */

    uint32_t out_sequence;
    int out_at, out_count; /* what of `out` is still to be written; out_count 0: nothing */
    struct iovec out[TB_CONNECTION_SPANS + 2];
    void *out_token;
    char *out_copy; /* memory of ours that `out` points to */
    char out_head[sizeof(struct tb_hop) + sizeof(struct tb_envelope)];

    uint32_t in_sequence;
    uint32_t in_goodbyes; /* with a goodbye: how many the other side says in all */
    uint32_t in_have;     /* bytes in in_head: a header that has only begun */
    char in_head[sizeof(struct tb_hop) + sizeof(struct tb_envelope)];
    uint8_t in_type; /* enum tb_hop_type of the frame whose payload is being read */
    struct tb_envelope in_envelope;
    char *in_body; /* where its payload goes; NULL: no such frame */
    bool in_own;   /* in_body is ours to free */
    size_t in_length, in_read;
};

/* Takes the descriptor, sets its options and watches it for reading. On error it is still the caller's. */
int tb_connection_open(struct tb_hub *hub, struct tb_endpoint *peer, enum tb_stream stream, int descriptor,
                       struct tb_connection **connection);
/* Closes the socket and tells the giver of an unfinished frame that it never leaves. The struct stays, for whoever
 * still points to it, until tb_connection_free. */
void tb_connection_end(struct tb_connection *connection);
void tb_connection_free(struct tb_connection *connection);

/* As the transport's send. An error is also left in `trouble`. `more`: it may wait, if it is small, as the transport's
 * `more` says; the kernel waits a fifth of a second at most, or as long as it would before it sends again. */
int tb_connection_send(struct tb_connection *connection, const struct tb_envelope *envelope, struct tb_spans *payload,
                       void *token, bool more);
/* What waits so waits no longer. */
void tb_hub_push(struct tb_hub *hub);
/* Goes on writing. 1: something has left; 0: nothing; else TB_ERR_PEER. */
int tb_connection_flush(struct tb_connection *connection);
/* Reads what is there, within a bound, and calls up. Returns how many frames arrived (1 for a part of one), or why
 * nothing more comes:
 * TB_ERR_CLOSED after a goodbye, TB_ERR_PEER, TB_ERR_PROTOCOL, with the story. TB_ERR_CANCELLED: it ended without
 * having been used by either side, which is no harm. */
int tb_connection_read(struct tb_connection *connection);
/* Delivers what the other side had sent before it went away. 0: that was all, and there was no goodbye. */
int tb_connection_exhaust(struct tb_connection *connection);
/* Watches for writability if there is something to write or someone who waits. */
int tb_connection_watch(struct tb_connection *connection);
/* Says goodbye, one of so many to this process, and writes nothing more. */
void tb_connection_bye(struct tb_connection *connection, uint32_t goodbyes);
/* The story of its end: both processes and addresses, and why. Returns TB_ERR_PEER, or the code. */
int tb_connection_story(const struct tb_connection *connection, const char *why);
int tb_connection_end_story(const struct tb_connection *connection, int code, const char *why);

#endif

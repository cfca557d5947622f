/* A connection of the forwarder: one connected, proved socket between this agent and another process, a rank or another
 * agent. Frames are those of the tcp transport (hop, envelope, payload), so that a rank notices no difference between a
 * rank and a gateway.
 *
 * In: a read brings many bytes at once; whole frames are handed up from where they lie. Out: a frame is written at once
 * if nothing is before it; otherwise a connection pulls the next one from the queue of its peer (hop_peer.h) when its
 * socket has room, and the socket holds little that is unsent. Bytes pass a codec on their way, if the connection has
 * one: socket, codec, frames.
 *
 * Everything belongs to the agent's one thread. */
#ifndef TB_AGENT_HOP_CONNECTION_H
#define TB_AGENT_HOP_CONNECTION_H

#include "agent/hop_ping.h"
#include "agent/hop_set.h"

#define TB_HOP_CONNECTION_BATCH (16u << 10) /* bytes of one write, usually */

/* A whole frame that has arrived; valid during the call. */
struct tb_cargo {
    char *bytes; /* hop, envelope, payload; the hop may be written to */
    uint32_t length;
    const struct tb_envelope *envelope; /* NULL: whoever made it knows */
    struct tb_proc source, destination;
    struct tb_frame_buffer
        *buffer; /* holds the bytes already, and may be taken (set to NULL); NULL: they lie elsewhere */
    bool more;   /* other frames follow in the same read */
};

/* What stands between the frames and the socket of a connection, made by whoever adopts the socket. Both calls append
 * to growing memory of the connection; what is encoded is written to the socket before anything else. */
struct tb_codec {
    int (*begin)(struct tb_codec *codec,
                 struct tb_hop_connection *connection); /* before anything else; may put. NULL: nothing */
    /* Frames to bytes for the socket: tb_hop_connection_put. `more`: another one follows at once, and the end of this
     * one may wait for it. */
    int (*encode)(struct tb_codec *codec, struct tb_hop_connection *connection, const void *bytes, size_t length,
                  bool more);
    /* Bytes from the socket to bytes of frames: tb_hop_connection_take, any number of times; tb_hop_connection_put for
     * answers of its own, such as those of a handshake. */
    int (*decode)(struct tb_codec *codec, struct tb_hop_connection *connection, char *bytes, size_t length);
    bool (*ready)(const struct tb_codec *codec); /* frames may be encoded now; NULL: always */
    void (*close)(struct tb_codec *codec);
};

struct tb_hop_connection {
    struct tb_watch watch;
    struct tb_list node; /* in its peer; in the hop set's dead ones after its end */
    struct tb_hop_set *hop_set;
    struct tb_hop_peer *peer; /* whose it is, */
    struct tb_proc proc;      /* which process that is, */
    struct tb_queue *queue;   /* and what waits for it */
    uint8_t stream;           /* enum tb_stream */
    uint8_t stripe;
    bool ours;        /* opened by our wish: then it is for us to open it again */
    bool blocked;     /* its socket takes nothing now */
    uint32_t refused; /* how often its socket has refused what the codec had made */
    struct tb_codec *codec;
    struct tb_hop_ping ping; /* of agents */
    uint64_t opened;         /* when it was adopted */
    uint64_t heard;          /* when something was read last; 0: nothing yet */

    uint32_t batch;  /* bytes of one write: when so many have been pulled, it begins */
    uint32_t unsent; /* bytes that may lie in its socket unsent; 0: as the kernel has it */
    uint32_t out_sequence;
    struct tb_list out; /* frame buffers that were pulled; the first may be half-written */
    uint32_t out_count;
    size_t out_at;
    char *coded; /* bytes from the codec that are to be written */
    size_t coded_at, coded_end, coded_room;

    uint32_t in_sequence;
    uint32_t in_have; /* bytes of a header that has only begun, in in_head; or of in_buffer */
    struct tb_frame_buffer *in_buffer;
    char in_head[TB_FRAME_BUFFER_HEAD];
};

/* Takes the socket, and the codec if there is one, in any case. The caller sets what says whose it is, puts it into its
 * list, and begins. */
int tb_hop_connection_open(struct tb_hop_connection **connection, struct tb_hop_set *hop_set, int socket,
                           struct tb_codec *codec);
int tb_hop_connection_begin(struct tb_hop_connection *connection);  /* the codec may speak; on an error it is closed */
void tb_hop_connection_close(struct tb_hop_connection *connection); /* without a call up */
void tb_hop_connection_say_bye(struct tb_hop_connection *connection);
bool tb_hop_connection_is_ready(const struct tb_hop_connection *connection); /* for a frame, at once */
/* Writes a frame at once. TB_AGAIN: nothing was taken. Otherwise TB_OK (cargo->buffer may have been taken), or the
 * connection has ended. */
int tb_hop_connection_send(struct tb_hop_connection *connection, struct tb_cargo *cargo);
/* Writes and pulls until the socket is full or there is nothing more; after a while others have their turn. False: the
 * connection has ended. */
bool tb_hop_connection_flush(struct tb_hop_connection *connection);
/* Asks the agent at its other end for an answer, as soon as the frame that is being written is out. */
void tb_hop_connection_ask(struct tb_hop_connection *connection, uint32_t about);
/* Ends it, as a connection does that is broken; `why` becomes the story. */
void tb_hop_connection_give_up(struct tb_hop_connection *connection, const char *why);

/* For codecs. */
int tb_hop_connection_put(struct tb_hop_connection *connection, const void *bytes, size_t length);
int tb_hop_connection_take(struct tb_hop_connection *connection, char *bytes,
                           size_t length); /* TB_FRAME_BUFFER_HEAD bytes of room before them */

#endif

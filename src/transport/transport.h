/* transport: moving frames between processes. A transport is a table of functions; shm, pair, tcp, relay (through
 * agents), fault (a decorator that misbehaves on purpose) and sim (a network in virtual time, for tests) are each a
 * file or two with their table at the bottom. link is a decorator of the same shape that adds what a transport lacks.
 * Nobody else knows them by name: whoever adds one makes a folder, and a line in transports.c.
 *
 * A frame is a message header (and the routing half when TB_MESSAGE_ROUTED is set in its flags) and up to max_payload
 * bytes. Nothing here blocks. A transport belongs to one engine or agent, which serialises all calls; upcalls are made
 * only from inside poll (and from inside send for `broken`), on the caller's thread. An upcall may call send. */
#ifndef TB_TRANSPORT_TRANSPORT_H
#define TB_TRANSPORT_TRANSPORT_H

#include "wire/wire.h"

enum tb_capability {
    TB_CAP_ORDERED = 1,       /* frames of one stream and direction arrive in the order of sending */
    TB_CAP_RELIABLE = 2,      /* what was accepted arrives once, or `broken` is called */
    TB_CAP_INTEGRITY = 4,     /* bytes arrive unchanged */
    TB_CAP_REMOTE_READ = 8,   /* `read` copies straight from the other process's memory */
    TB_CAP_REMOTE_WRITE = 16, /* reserved for fabrics */
    TB_CAP_BOARDS = 64        /* its processes have boards in common (shm/board.h) */
};
#define TB_CAP_DEPENDABLE (TB_CAP_ORDERED | TB_CAP_RELIABLE | TB_CAP_INTEGRITY)

/* Whom a transport leads to. */
enum tb_scope {
    TB_SCOPE_HOST,   /* processes of this host; it is opened with its owner, others when they are needed first */
    TB_SCOPE_NEAR,   /* processes of this host, each with memory of its own and this one's */
    TB_SCOPE_DIRECT, /* those that can be connected with this one */
    TB_SCOPE_RELAYED /* those that agents pass frames on to; what gets lost there is theirs to repair */
};

struct tb_transport;

/* The way to one process. Each transport's own endpoint struct begins with this. Owned by the transport, lives until
 * the transport is closed, or the owner above forgets it. */
struct tb_endpoint {
    struct tb_transport *transport;
    struct tb_proc proc;
    void *user; /* set by the owner above: the engine's peer, or a decorator's endpoint */
};

/* Calls up. `context` is what was given at opening. */
struct tb_upcalls {
    void *context;
    /* A frame has arrived. header and payload are valid during the call only. `routing` is NULL unless the frame
     * carried it. If `place` gave a destination for this frame, payload is that destination. */
    void (*frame)(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                  const struct tb_message *message, const void *payload, size_t length);
    /* Optional (may be NULL): where should the payload of this frame go? Returns room for `length` bytes, or NULL:
     * then it is delivered from the transport's own buffer. The room must stay valid until `frame` or `broken`. */
    void *(*place)(void *context, struct tb_endpoint *from, const struct tb_message *message, size_t length);
    /* A frame that `send` answered with TB_PENDING has left the caller's memory (error 0), or never will: then `broken`
     * follows. */
    void (*sent)(void *context, struct tb_endpoint *to, void *token, int error);
    /* After TB_AGAIN: trying again is worth it now. May come without need. */
    void (*writable)(void *context, struct tb_endpoint *to);
    /* A process unknown so far has sent something or connected: set endpoint->user. Called before its first frame. */
    void (*opened)(void *context, struct tb_endpoint *from);
    /* Nothing more will pass between us and this process. TB_ERR_CLOSED: it said goodbye. The story is in tb_error. */
    void (*broken)(void *context, struct tb_endpoint *with, int error);
};

/* What a process is given at its start; each transport takes what it needs. Valid as long as the transport. */
struct tb_transport_config {
    struct tb_proc self;
    const struct tb_clock *clock;
    struct tb_upcalls upcalls;
    /* shm: the host's segment, made by the agent, zero at first */
    void *segment;
    size_t segment_bytes;
    uint32_t local_index, local_count; /* which of the host's ranks this is */
    const uint32_t *local_procs;       /* job index of each of the host's ranks */
    const int *doorbells;              /* an eventfd for each of the host's ranks */
    /* tcp, pair: asks for a connected, proved stream; the answer comes later through `adopt` or `refused`. NULL: nobody
     * is there to be asked */
    int (*connect)(void *context, struct tb_proc to, enum tb_stream stream);
    /* order: adopts what has been connected meanwhile without our asking; called while it closes, when nobody else
     * listens to the agent. May be NULL. */
    void (*arrivals)(void *context);
    void *connect_context;
    /* relay: the agent of this host; how many ranks the job has; and whether there is a way to a process: TB_OK, or an
     * error, with its story, when there is none and never will be (may be NULL: there always is) */
    struct tb_proc agent;
    uint32_t processes;
    bool (*knows)(void *context, uint32_t index); /* of those that were started since; with the context of `way` */
    int (*way)(void *context, struct tb_proc to);
    void *way_context;
    /* sim: the network, for tests */
    struct tb_sim *sim;
    /* fault: the specification, and what is wrapped */
    const char *fault;
    const struct tb_transport_table *inner; /* for decorators, which open it with their own upcalls and close it */
};

struct tb_transport_table {
    const char *name; /* as in the parameter `transports` */
    /* What holds before it is opened; the next five are not of decorators. */
    uint8_t scope;                     /* enum tb_scope */
    uint32_t patience;                 /* rounds of progress from one poll to the next, where one for processes of this
                                        * host is open, since polling takes a system call; 0: every round */
    unsigned capabilities;             /* enum tb_capability: those that it has wherever it can be opened */
    const struct tb_param_row *params; /* its own parameters, the last one without a name; NULL: none */
    /* Whether the process was given what it needs; NULL: it needs nothing. */
    bool (*usable)(const struct tb_transport_config *config);
    /* Opens. On error nothing is left open. */
    int (*open)(const struct tb_transport_config *config, struct tb_transport **transport);
    /* Says goodbye where the other side may wait for it, closes everything, frees endpoints. Never blocks: call `idle`
     * and poll before, if what was sent must arrive. */
    void (*close)(struct tb_transport *transport);
    /* The endpoint for a process that this transport can reach; the same one for the same process. Does not wait for a
     * connection. TB_ERR_PEER if it cannot be reached by this transport at all. */
    int (*endpoint)(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint);
    /* Sends one frame. envelope->routing is read only with TB_MESSAGE_ROUTED. The payload's length is payload->left, at
     * most max_payload; it is consumed only with TB_OK and TB_PENDING.
     * TB_OK: the frame and its payload are no longer needed. TB_PENDING: only if token is not NULL: the payload's
     * memory must stay valid until `sent`. TB_AGAIN: nothing was taken; `writable` follows. TB_ERR_PEER, TB_ERR_CLOSED:
     * nothing can be sent any more; `broken` follows from poll, after everything that the other process had sent,
     * unless it came before. Other errors: the owner had better drop this process. */
    int (*send)(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                enum tb_stream stream, void *token);
    /* Moves what can be moved. Returns how many frames arrived or left; 0: nothing happened. */
    int (*poll)(struct tb_transport *transport);
    /* Sleeping: `arm` announces that this process will sleep; false: something is there, do not sleep. `disarm` takes
     * it back, and may come without need. Between them the owner waits until `descriptor` is readable or `deadline` has
     * passed. */
    bool (*arm)(struct tb_transport *transport);
    void (*disarm)(struct tb_transport *transport);
    int (*descriptor)(struct tb_transport *transport);    /* to wait for; -1: none */
    uint64_t (*deadline)(struct tb_transport *transport); /* the next timer; TB_NEVER */
    /* Everything accepted has left this process (its kernel's socket buffers count as left). */
    bool (*idle)(struct tb_transport *transport);
    /* With TB_CAP_REMOTE_READ: copies `length` bytes from `address` in that process. NULL without. TB_ERR_FORBIDDEN:
     * the machine does not allow it; the caller then asks for the data to be sent, and the capability is cleared. */
    int (*read)(struct tb_endpoint *endpoint, uint64_t address, struct tb_spans *into, uint64_t length);
    /* The owner will have nothing more to do with this process: memory that `place` or `send` were given is not touched
     * any more, what was kept for it is forgotten, no call up about it follows. Never blocks; not from inside poll,
     * send or an upcall. NULL: this transport holds no memory of its owner; frames that lie there may still be called
     * up. */
    void (*drop)(struct tb_endpoint *endpoint);
    /* The process is gone, and nobody will want to send to it: frees an endpoint that was dropped. As if there had been
     * none, should something come from there nevertheless. NULL: it stays until the transport is closed. */
    void (*forget)(struct tb_endpoint *endpoint);
    /* Of transports whose connections an agent makes, all three or none; decorators pass the last two on. */
    bool (*adopts)(struct tb_proc proc, enum tb_stream stream); /* whether such a connection is for it */
    /* A connected, proved, nonblocking socket to `proc`, made by either side's wish; of TB_STREAM_MEMORY, memory that
     * is shared with it. Takes the descriptor in any case.
     * TB_ERR_CLOSED: it comes too late, the other side has left or was dropped. */
    int (*adopt)(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int descriptor);
    /* The connection that was asked for cannot be made; the story is in tb_error. */
    void (*refused)(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int error);
    /* config->way gives other answers from now on. NULL: it does not ask. Decorators pass it on. */
    void (*routes)(struct tb_transport *transport);
    /* Of transports that can tell, both or none; decorators pass them on. The owner waits for this process: until
     * `rest`, the ways there are asked whether anything passes. True: on one of them nothing has come back for a while,
     * whatever was sent or asked; *tried: ns since that was done last. */
    bool (*is_stuck)(struct tb_transport *transport, struct tb_proc proc, uint64_t *tried);
    void (*rest)(struct tb_transport *transport);
};

/* The head of every transport's own struct. */
struct tb_transport {
    const struct tb_transport_table *table;
    struct tb_transport *inner; /* what a decorator wraps and closes; NULL: nothing */
    unsigned capabilities;      /* enum tb_capability */
    uint32_t max_payload;       /* bytes of payload in one frame */
    uint32_t eager_limit;       /* longest message that is sent without asking */
    uint64_t sent;              /* frames, of those that count them */
    bool more;                  /* set by the owner around a send: what is sent may wait for the next frame of this
                                 * stream to the same process, or for the next poll, if that spares a packet */
    uint64_t remote_minimum;    /* with REMOTE_READ: messages from this length on are faster read than sent */
};

#define TB_TRANSPORTS_LIMIT 8u

/* All transports, in the order in which their owner prefers and polls them, the last one NULL. */
extern const struct tb_transport_table *const tb_transports[];
/* Those of `all` that `list`, the value of the parameter `transports`, names and that are usable, in the order of
 * `all`. At most TB_TRANSPORTS_LIMIT. TB_ERR_ARGUMENT: there is no such transport. */
int tb_transports_choose(const struct tb_transport_table *const *all, const char *list,
                         const struct tb_transport_config *config, const struct tb_transport_table **chosen,
                         uint32_t *count);
/* tb_param_load, with the parameters of all transports. */
int tb_transports_load_params(void);

/* The calls of decorators that pass them on. */
int tb_inner_adopt(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int descriptor);
void tb_inner_refused(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int error);
void tb_inner_routes(struct tb_transport *transport);
bool tb_inner_is_stuck(struct tb_transport *transport, struct tb_proc proc, uint64_t *tried);
void tb_inner_rest(struct tb_transport *transport);

extern const struct tb_transport_table tb_transport_shm;
extern const struct tb_transport_table tb_transport_pair;
extern const struct tb_transport_table tb_transport_tcp;
extern const struct tb_transport_table tb_transport_relay;
extern const struct tb_transport_table tb_transport_fault;
/* And tb_transport_sim, for tests: transport/sim/sim.h. */

/* shm: the bytes that the agent must provide for `ranks` ranks of a host. */
size_t tb_shm_segment_bytes(uint32_t ranks);
/* pair: the bytes that the agent must provide for two processes of a host. */
size_t tb_pair_bytes(void);
#include "transport/shm/board.h"
#include "transport/shm/cross_memory.h"

/* mcast: datagrams to many hosts at once. It moves no frames and is no transport as those in the table are: what is
 * lost stays lost, and a protocol above repairs it. */
#include "transport/mcast/group.h"

/* tcp: a process that was broken, refused or dropped is as if it had never been talked to: the next frame asks for a
 * connection again. What is still open to it is closed, without a call up. Not from inside poll, but for `broken`. */
void tb_tcp_revive(struct tb_endpoint *endpoint);

/* fault: which capabilities a specification takes away; TB_ERR_ARGUMENT if it is not understood. */
int tb_fault_breaks(const char *specification, unsigned *capabilities);
/* fault: the same by dice, for agents, who pass frames on without a transport. One that would be corrupted is lost:
 * between agents that is noticed. `self` makes those of each one different. */
struct tb_fault_dice {
    double loss, repeat, reorder, share;
    uint64_t delay;
    struct tb_random random;
};
struct tb_fault_fate {
    bool lost, repeated;
    uint64_t delay; /* ns; 0: none */
};
int tb_fault_dice_open(struct tb_fault_dice *dice, const char *specification, uint64_t self);
struct tb_fault_fate tb_fault_dice_roll(struct tb_fault_dice *dice);
/* fault: what it has done so far, so that a test can prove that there was something to repair. */
struct tb_fault_counters {
    uint64_t passed; /* frames that were given to it */
    uint64_t lost, repeated, delayed, reordered, corrupted;
};
void tb_fault_count(const struct tb_transport *transport, struct tb_fault_counters *counters);

#endif

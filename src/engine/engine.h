/* engine: channels, matching, requests, protocols, progress; runs programs.
 *
 * An engine is all of this for one process: what it knows of the other processes of the job, the messages that are on
 * their way to and from them, and the transports that carry these. A process opens one; all of its communicators are
 * channels of it. Nothing happens by itself: messages move while a thread is inside a function that makes
 * progress (tb_request_wait, tb_engine_wait, tb_engine_progress, probing), and whoever waits does everybody's work;
 * unless somebody wants a standby to watch (tb_engine_watch).
 *
 * It has one lock, or several lanes with a lock each (laned.h). Every function here takes it when the process is
 * threaded, and none of them when it is not: then only one thread may call at a time (and with a standby a cheaper lock
 * is taken). It is released while a waiting thread of a threaded process yields or sleeps, and it is recursive, so that
 * callbacks, which run with the engine locked, may call back in. Of many threads that wait, one polls for all.
 *
 * Messages are matched by (context, source rank, match); a receive may leave source or match open. */
#ifndef TB_ENGINE_ENGINE_H
#define TB_ENGINE_ENGINE_H

#include "data/data.h"
#include "link/link.h"
#include "schedule/schedule.h"

struct tb_engine;
struct tb_channel;
struct tb_peer;    /* the engine's view of one process */
struct tb_arrival; /* a message that has arrived (or been announced) and is not matched yet */
struct tb_kept;    /* what drivers of composite steps have for a collective that is started again and again */

#define TB_ANY_RANK UINT32_MAX

/* ---- the engine -------------------------------------------------------------------------------------------------- */

/* What leads to a process; the best of it for which there is a transport is used. */
struct tb_reach {
    bool near;    /* it is on this host, where two can have memory of their own */
    bool direct;  /* this process and that one can be connected */
    bool relayed; /* agents pass frames on */
};

/* How far away a process is, as far as that is known; 0: it is not. */
struct tb_distance {
    uint64_t latency;           /* ps, of one way */
    uint64_t out_rate, in_rate; /* bit/s of the slowest wire of the way there, and of that from there */
};

/* The multicast group of the cluster that a process is in. */
struct tb_engine_group {
    bool works; /* now; otherwise nothing else is said of it, and what is multicast goes over connections */
    struct tb_mcast_config config; /* addresses, interface, hops and key; the rest is filled in by the engine */
    uint16_t piece;                /* payload bytes of a datagram */
    uint32_t buffer;               /* bytes that the kernel of each host holds for a socket; 0: not known */
    uint64_t byte_time;            /* ps that a byte takes on the wire, roughly; 0: not known */
};

/* What is wrong with it, as this process sees it. */
enum tb_engine_trouble {
    TB_TROUBLE_NONE,
    TB_TROUBLE_UNHEARD, /* most of what was multicast lately came over connections */
    TB_TROUBLE_OTHERS   /* another job uses the group, too */
};

struct tb_driver_table; /* driver.h */

struct tb_engine_config {
    struct tb_transport_config transport; /* upcalls are filled in by the engine */
    uint32_t processes;                   /* with which the job has begun; they share eager memory, alike for all */
    /* Whether there is, or was, a process of a higher index: one that was started since. NULL: there are none. */
    bool (*knows)(void *context, uint32_t index);
    /* Whether such a one is of another job, and believed only what it may say. NULL: none is. */
    bool (*is_stranger)(void *context, uint32_t index);
    bool threaded;  /* several threads may call at a time: lock */
    uint32_t lanes; /* then: how many it has, as laned.h says; up to 1: none */
    /* Which transports it has, in the order in which it prefers and polls them, the last one NULL; NULL: those of
     * tb_transports that the parameter `transports` names and that this process can use. */
    const struct tb_transport_table *const *transports;
    /* Which processes are on this host and of this world, where the transport for that leads. */
    bool (*is_local)(void *context, struct tb_proc proc);
    /* What leads to the others, asked once for each; or an error, and its story: nothing does. NULL: all can be
     * connected with this one. */
    int (*reach)(void *context, struct tb_proc proc, struct tb_reach *reach);
    /* Asked once for each process of another host that something is exchanged with; `distance` is zero before. NULL:
     * nothing is known. */
    void (*distance)(void *context, struct tb_proc proc, struct tb_distance *distance);
    /* The name of its host, for errors; NULL: it is not known. May be NULL itself. */
    const char *(*host)(void *context, struct tb_proc proc);
    /* Of multicast, all or none. Which processes are in the cluster of this one; the group of that, asked with the
     * engine locked until it is told: false, there never is one, or it is not known yet; and trouble with it, told with
     * the engine locked, and not often: it should be tested, of which tb_engine_regroup tells the result. */
    bool (*in_cluster)(void *context, struct tb_proc proc);
    bool (*multicast)(void *context, struct tb_engine_group *group);
    void (*multicast_trouble)(void *context, enum tb_engine_trouble what);
    /* Descriptor of the control connection to the agent (-1: none), and what to call when it is readable. Called from
     * progress with the engine locked; may call tb_engine_adopt, tb_engine_refused, tb_engine_lost. */
    int control;
    int (*control_ready)(void *context);
    /* A thread has slept for a while for want of what others are to send or take (tb_engine_awaited tells whom); said
     * again now and then, and that it is over, if it is in time. With the engine locked. NULL: nobody wants to know. */
    void (*waiting)(void *context, bool waits);
    /* A message between programs, of this tag and length, has come before its receive. With the engine locked. NULL:
     * nobody wants to know. */
    void (*unexpected)(void *context, struct tb_proc from, uint64_t match, uint64_t bytes);
    /* Nothing passes between this process and another one any more, though nobody has said that it is gone: what led
     * there broke, cannot be made, or was given up here. Told once, with the error of calls that need it; not of who
     * says goodbye. With locks held. NULL: nobody wants to know. */
    void (*connection_lost)(void *context, struct tb_proc with, int error);
    void *context;
    const struct tb_driver_table *const *drivers; /* up to NULL, of composite steps; NULL: tb_drivers */
};

/* Settles all parameters, those of transports too: before anything else that needs them. */
int tb_engine_load_params(void);
int tb_engine_open(const struct tb_engine_config *config, struct tb_engine **engine);
/* Everything that was sent has left, or its peer is gone. Blocks. Before tb_engine_close in MPI_Finalize. */
int tb_engine_flush(struct tb_engine *engine);
/* Whatever others were told that they do not wait for, such as that a collective is given up, has come there: if they
 * had left, the connection would break. Blocks. */
int tb_engine_flush_told(struct tb_engine *engine);
/* After all channels were closed by their owners, and without a standby. Requests that are not finished never will be.
 */
void tb_engine_close(struct tb_engine *engine);

/* What was counted so far. Everything here only grows, but for unexpected_bytes. */
struct tb_counters {
    uint64_t eager;            /* messages sent at once */
    uint64_t ahead;            /* longer ones that were sent without asking */
    uint64_t rendezvous;       /* messages sent by asking first */
    uint64_t remote_reads;     /* messages that were read from the sender's memory */
    uint64_t self;             /* messages to this process itself */
    uint64_t unexpected;       /* messages that arrived before their receive */
    uint64_t unexpected_bytes; /* payload that is kept for them now */
    uint64_t unexpected_peak;  /* and the most that ever was */
    uint64_t credits;          /* frames that gave credit back */
    uint64_t held;             /* frames that had to wait for room in a transport */
    uint64_t dropped;          /* messages for communicators that are gone */
    uint64_t yields, sleeps;   /* of waiting threads */
    uint64_t wakes;            /* of threads that waited while another one polled for them */
    uint64_t looks;            /* in vain, of waiting threads before they yielded or slept */
    uint64_t standby_rounds;   /* of progress, not in vain, that a standby has made */
    uint64_t paired;           /* frames that went through memory of two processes */
    uint64_t direct;           /* frames that went over connections with other processes */
    uint64_t relayed;          /* frames that went through gateways, each counted once */
    uint64_t repeated;         /* frames that were sent again, because they were lost or seemed to be */
    uint64_t reordered;        /* frames that had to wait for an earlier one */
    /* Datagrams of multicast: sent, repairs among them; received and used; of these, before this process took part in
     * their message; of messages that were over; that brought what had been missing; forged, of others, or senseless.
     */
    uint64_t multicast_sent, multicast_used, multicast_early, multicast_late, multicast_repaired, multicast_rejected;
    uint64_t multicast_overflowed; /* datagrams that the kernel had no room for before this process read them */
    uint64_t multicast_repairs_one, multicast_repairs_all; /* that this process has sent to one other, or to all */
    uint64_t multicast_control; /* bytes of multicast messages that this process has sent over connections instead */
    uint64_t multicast_skew;    /* ns between this process's beginning to receive and the first datagram, on average */
};
void tb_engine_count(struct tb_engine *engine, struct tb_counters *counters); /* any thread */

/* Each process of another host that an unfinished request needs; and, if a receive leaves open from whom, or nothing is
 * posted at all, each one that something was exchanged with. */
void tb_engine_awaited(struct tb_engine *engine, void (*each)(void *context, struct tb_proc proc), void *context);
/* Those of them to whom a connection passes nothing, found by asking while this is called every few seconds; *tried: ns
 * since the last try. Not before tb_engine_rest does the asking end. */
void tb_engine_stuck(struct tb_engine *engine, void (*each)(void *context, struct tb_proc proc, uint64_t tried),
                     void *context);
void tb_engine_rest(struct tb_engine *engine);

/* From control_ready. Connections with agents are for what goes through gateways. */
int tb_engine_adopt(struct tb_engine *engine, struct tb_proc proc, enum tb_stream stream, int descriptor);
void tb_engine_refused(struct tb_engine *engine, struct tb_proc proc, enum tb_stream stream, int error);
/* Completes its requests with the error; or those of so many, from the first on. */
void tb_engine_lost(struct tb_engine *engine, struct tb_proc proc, int error);
void tb_engine_lost_all(struct tb_engine *engine, struct tb_proc first, uint32_t count, int error);
void tb_engine_routes(struct tb_engine *engine); /* the gateways to other hosts have changed */

/* The multicast group is known now. Whoever hears for its host calls it then, since what comes before it listens has to
 * be sent again; others listen when they first take part in a multicast. From control_ready, too. */
void tb_engine_listen(struct tb_engine *engine);
/* Something else is known of the group: it does not work any more, works again, or is another one. Processes may learn
 * of that at different times. */
void tb_engine_regroup(struct tb_engine *engine);
/* All processes of the job meet before they leave it, each with its engine flushed: this one is about to. Nobody is
 * told anything more by itself from when on the first one leaves. Then: all have come, or not. */
void tb_engine_meet_last(struct tb_engine *engine);
void tb_engine_part(struct tb_engine *engine, bool all);

/* ---- channels ---------------------------------------------------------------------------------------------------- */

struct tb_channel_config {
    uint64_t context; /* plane point-to-point; the others are derived */
    uint32_t size, rank;
    const uint32_t *procs; /* job index of each rank; NULL: the identity. Copied. */
    void *owner;           /* the communicator, for errors */
    bool local;            /* for one group of an inter-communicator, which has the same context */
    bool common;           /* not of an inter-communicator: may have drivers of composite steps */
    /* Its ranks that are on this host, ascending; NULL: they are looked for, one by one. Copied. */
    const uint32_t *locals;
    uint32_t local_count;
    uint64_t kept; /* for drivers, of a collective that is kept: its number, from 1 on */
};
/* Of an inter-communicator: size and procs are those of the remote group, to and from which messages go, and rank is
 * this process's in its own group. */
int tb_channel_open(struct tb_engine *engine, const struct tb_channel_config *config, struct tb_channel **channel);
/* The same in two steps: everything that needs memory, while the context may not be known yet, and entering it, which
 * cannot fail. If all ranks are on one host, or each is on another one, there may be fewer of them in the end than it
 * was prepared for, and `procs` must have been given then. */
int tb_channel_prepare(struct tb_engine *engine, const struct tb_channel_config *config, struct tb_channel **channel);
void tb_channel_enter(struct tb_channel *channel, const struct tb_channel_config *config);
/* Once it, and the other side of an inter-communicator, are entered: whatever those strangers have sent here before who
 * are not in it is gone. */
void tb_channel_screen(struct tb_channel *channel);
/* There are so many processes: from now on those of a channel whose ranks are processes by their index, and which has
 * no collectives, may be all of them, whatever its size was. */
int tb_engine_reach(struct tb_engine *engine, uint32_t processes);
/* Gives up the owner's hold; requests in flight keep the channel alive. The context is remembered as gone. */
void tb_channel_close(struct tb_channel *channel);
/* It cannot be opened here, since something else is lacking. The others of whom it should consist are told: the first
 * collective on it fails. tb_channel_open does the same when it fails. */
void tb_channel_abandon(struct tb_engine *engine, const struct tb_channel_config *config);
bool tb_channel_exists(struct tb_engine *engine, uint64_t context); /* there is or was one, in this plane of it */
/* Whether its ranks have composite steps among themselves, on each host that has several of them: the same on all of
 * them. Where all are on one host it is so if the process that made up the context has claimed what a driver needs for
 * it, such as a piece of memory, before it told anybody, and there was some left. `first`: for a context that everyone
 * on the host knows and claims. */
bool tb_channel_meets(const struct tb_channel *channel);
void tb_engine_claim(struct tb_engine *engine, uint64_t context, bool first);
void tb_engine_unclaim(struct tb_engine *engine, uint64_t context); /* it was not used after all */
/* Where they are on several hosts, ranks have to agree: a word that says what this host has, of which everybody is then
 * told the bits that are set for all ranks. Until then no memory is used, and if nobody is told, none is. An error is
 * that of this process alone, which has then nothing to do with the channel but to close it. */
uint64_t tb_channel_provides(struct tb_channel *channel);
int tb_channel_agree(struct tb_channel *channel, uint64_t all);
uint32_t tb_channel_size(const struct tb_channel *channel);
uint32_t tb_channel_rank(const struct tb_channel *channel);
/* The same ranks in a plane of its own, for messages of the library that no receive of the program can match. It lives
 * as long as the channel. Not of one group of an inter-communicator. */
struct tb_channel *tb_channel_control(struct tb_channel *channel);
/* A number for the next collective on this channel: the same on all ranks, because they call in the same order. */
uint32_t tb_channel_next_collective(struct tb_channel *channel);

/* ---- requests ---------------------------------------------------------------------------------------------------- */

struct tb_status {
    uint32_t source; /* rank in the communicator */
    uint64_t match;  /* the tag */
    uint64_t bytes;  /* received; at most the buffer */
    bool cancelled;
    int error; /* TB_OK, TB_ERR_TRUNCATE, TB_ERR_PEER... */
};

struct tb_waiter; /* a thread that waits for a request */

/* Belongs to its user, who may keep it on the stack; from post until done the engine refers to it and it must not move.
 * `done` is read with tb_request_done. */
struct tb_request {
    _Atomic uint32_t done; /* 1 when finished: status is valid then */
    uint8_t kind;          /* private from here on, except status, complete and user */
    uint8_t phase;
    uint8_t mode;
    uint8_t cancelling; /* the receiver was asked to forget it */
    struct tb_status status;
    struct tb_engine *engine;
    struct tb_channel *channel;
    struct tb_peer *peer;      /* NULL while any source may match */
    struct tb_list queue;      /* in the posted or pending queue */
    struct tb_list on_peer;    /* all requests of a peer, so that its failure ends them */
    struct tb_list on_context; /* all requests of a channel, so that revocation ends them */
    struct tb_buffer buffer;
    uint64_t from, room; /* the bytes of the packed buffer that are meant: first one, how many */
    uint64_t context;    /* on the wire */
    uint64_t match, mask;
    uint32_t rank;         /* source or destination in the communicator, or TB_ANY_RANK */
    uint32_t slot;         /* in the table of message ids, 0: none */
    uint32_t pending;      /* frames that the transport has accepted and that have not left */
    uint64_t order;        /* when it was posted, among the receives of the engine */
    uint64_t length;       /* of the message, which may be longer than the buffer */
    uint64_t total, moved; /* bytes to transfer; bytes that are done */
    uint64_t remote_id;    /* the other side's message id */
    uint64_t message_id;   /* ours */
    struct tb_waiter *waiter;
    /* Optional: called once, engine locked, right after `done` was set; may post others, may free the request. Whoever
     * polls `done` of a request that has one, in a threaded process, must not reuse the request before it has run:
     * returning from tb_request_wait or tb_engine_progress means that it has. That of a message may be called by a
     * standby, that of a program never. */
    void (*complete)(struct tb_request *request);
    void *user;
};

static inline bool tb_request_done(const struct tb_request *r)
{
    return __atomic_load_n((const uint32_t *)&r->done, __ATOMIC_ACQUIRE) != 0;
}

/* The last is of the engine itself: a send of a cast, which asks first. */
enum tb_mode { TB_MODE_STANDARD, TB_MODE_SYNCHRONOUS, TB_MODE_READY, TB_MODE_TOGETHER };

/* Sends at once if that is possible without waiting (small, room, credit): TB_OK. TB_AGAIN: nothing was done, post it.
 */
int tb_send_now(struct tb_channel *channel, const struct tb_buffer *buffer, uint32_t to, uint64_t match,
                enum tb_mode mode);
/* Starts; the request's end is its `done`. Errors at once (unreachable peer) are also told by the request, never by the
 * return value, so that a started request is always completed. `complete` and `user` of the request are set by the
 * caller before, or NULL. */
void tb_send_post(struct tb_channel *channel, struct tb_request *request, const struct tb_buffer *buffer, uint32_t to,
                  uint64_t match, enum tb_mode mode);
/* One message to several ranks, in order with other sends to each of them. Those in the multicast group of this process
 * get a long one together. The buffer's memory and type live until all are done. TB_ERR_MEMORY: nothing was sent. */
struct tb_cast;
int tb_cast_post(struct tb_channel *channel, const struct tb_buffer *buffer, const uint32_t *ranks, uint32_t count,
                 uint64_t match, struct tb_cast **cast);
/* Whether a message of this length is one of those, where there is such a group. */
bool tb_cast_is_long(uint64_t bytes);
/* Blocks until all are done. The first send that has failed; NULL: none. */
const struct tb_request *tb_cast_wait(struct tb_cast *cast, const char *call);
void tb_cast_free(struct tb_cast *cast);
/* A mask of all ones asks for exactly `match` and is found in constant time; bits that are 0 in the mask are open. */
void tb_receive_post(struct tb_channel *channel, struct tb_request *request, const struct tb_buffer *buffer,
                     uint32_t from, uint64_t match, uint64_t mask);
/* Of exactly `match`, into the bytes from `first` on of the packed data alone. */
void tb_receive_post_part(struct tb_channel *channel, struct tb_request *request, const struct tb_buffer *buffer,
                          uint64_t first, uint64_t bytes, uint32_t from, uint64_t match);
/* Looks for a message: TB_OK and its status, or TB_AGAIN, or TB_ERR_PEER when `from` is gone and nothing of it is left.
 * With `arrival` it is taken out of matching and belongs to the caller, who must give it to tb_receive_arrival. Makes
 * progress. */
int tb_probe(struct tb_channel *channel, uint32_t from, uint64_t match, uint64_t mask, struct tb_status *status,
             struct tb_arrival **arrival);
/* As tb_probe, but blocks until there is one; `call` is only for tb_engine_waits. */
int tb_probe_wait(struct tb_channel *channel, uint32_t from, uint64_t match, uint64_t mask, struct tb_status *status,
                  struct tb_arrival **arrival, const char *call);
void tb_receive_arrival(struct tb_channel *channel, struct tb_request *request, const struct tb_buffer *buffer,
                        struct tb_arrival *arrival);
/* Asks to cancel. The request is completed in any case, cancelled or not; a send may need an answer of the receiver
 * first. For a send that is already done and was eager, `done` is taken back until the answer is here. */
void tb_request_cancel(struct tb_request *request);

/* Blocks until done: spins, yields, sleeps; makes progress on everything meanwhile. */
static inline void tb_request_wait(struct tb_request *request);
/* The same in a call of the program; `set` is the caller's. Both are only for tb_engine_waits. */
void tb_request_wait_in(struct tb_request *request, const char *call, const void *set);
static inline void tb_request_wait(struct tb_request *request)
{
    tb_request_wait_in(request, NULL, NULL);
}
/* Tells the story of a finished request's error (again), on this thread; tb_request_wait has done so. Returns it. */
int tb_request_explain(const struct tb_request *request);
/* Blocks until ready(context) is true; it is called with the engine locked, after each change, by any thread that waits
 * in this engine, and not again once it was true. It may probe and post, but not wait. */
static inline void tb_engine_wait(struct tb_engine *engine, bool (*ready)(void *context), void *context);
/* The same in a call of the program; that is only for tb_engine_waits. */
void tb_engine_wait_in(struct tb_engine *engine, bool (*ready)(void *context), void *context, const char *call);
static inline void tb_engine_wait(struct tb_engine *engine, bool (*ready)(void *context), void *context)
{
    tb_engine_wait_in(engine, ready, context, NULL);
}
/* One round of progress. Returns what happened, 0: nothing. */
int tb_engine_progress(struct tb_engine *engine);
/* Wakes a thread that waits in this engine, because something outside (a generalised request) has changed. */
void tb_engine_kick(struct tb_engine *engine);

/* ---- progress while the program computes ------------------------------------------------------------------------- */

/* A standby is a thread of the library that makes progress while no thread of the program is in it, and sleeps unless
 * something happens. It does not call functions of the program's: reductions, and whatever a program's request calls
 * when it is done, wait for the next call. */
enum tb_standby_scope {
    TB_STANDBY_NETWORK, /* it listens to other hosts, the agent, timers, and what drivers wait for */
    /* To ranks of this host, too: those then ring for it, which takes them a system call for the first frame after each
     * sleep. Only for what cannot do without. */
    TB_STANDBY_HOST,
    /* It listens to nothing, and looks every few milliseconds: for what others can wait for so long. It does not wake
     * for each frame, then, of a program that calls often. */
    TB_STANDBY_SELDOM,
    TB_STANDBY_SCOPES
};

/* From now on somebody may ask for one. Until then that costs nothing; afterwards, in a process that is not threaded,
 * some nanoseconds a call. The caller is in no other function of the engine. Once more does nothing. */
int tb_engine_stand_by(struct tb_engine *engine);
/* Ends it, whoever watches. The caller is in no other function of the engine. */
void tb_engine_stand_down(struct tb_engine *engine);
/* Somebody wants it to listen, or no longer does; each as often as the other. From callbacks, too. The first one makes
 * the thread, which may fail. After tb_engine_stand_by. */
int tb_engine_watch(struct tb_engine *engine, enum tb_standby_scope scope);
void tb_engine_unwatch(struct tb_engine *engine, enum tb_standby_scope scope);

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* How the memory of a symbol is cut into pieces. */
enum tb_cut {
    TB_CUT_EVEN,    /* its buffer is cut after every `piece` elements; the last piece may be shorter */
    TB_CUT_OFFSETS, /* piece i of its buffer begins at element offsets[i] and ends before offsets[i + 1] */
    TB_CUT_BLOCKS,  /* its buffer is piece 0; the others follow it, each as far from the one before as it is long */
    TB_CUT_TABLE    /* piece i is tables[symbol][i], of any place, length and type; such pieces cannot be joined */
};

/* What a program's symbols stand for. WORK is provided by the executor: its buffer gives the type and, if it is cut
 * into blocks, the items of a block; it has no base, and no type means packed bytes. Cut in another way, it is as often
 * the whole of `elements` as the program needs. */
struct tb_binding {
    struct tb_buffer buffers[TB_SYMBOL_COUNT];
    const struct tb_buffer *tables[TB_SYMBOL_COUNT];
    uint8_t cuts[TB_SYMBOL_COUNT]; /* enum tb_cut */
    uint8_t operation;             /* enum tb_operation: travels in match and detects mismatched collectives */
    bool numbered;                 /* `numbers` are set, by tb_binding_number */
    uint32_t numbers[2];           /* of the collective on its channel and on `local` */
    uint8_t start;                 /* of one that is numbered: how often it was started before; wraps */
    uint64_t elements;             /* of what is cut evenly or by offsets: in all, the bytes of one, those of a piece */
    uint64_t element_bytes;
    uint64_t piece;
    const uint64_t *offsets;
    const struct tb_op *op;   /* of reductions, whose elements are items of their type */
    struct tb_channel *local; /* of the local group, where the channel is that of an intercommunicator; else NULL */
    const char *call;         /* of the program, for tb_engine_waits; NULL: the library wants it itself */
    /* Of one that is numbered: what its composite steps have instead of what the channel has; NULL: it has none. */
    const struct tb_kept *kept;
};

/* Gives the collective its number now rather than when it is started: it can then be started again and again, and in
 * another order than on other ranks. Only one of these runs may be in progress at a time. */
void tb_binding_number(struct tb_channel *channel, struct tb_binding *binding);
/* Memory for the composite steps of a collective of that number, on a channel whose ranks share some; `locals` of the
 * configuration are those of the channel's. Its ranks have to agree, also if they are all on one host, as they do about
 * a channel; whether they have is returned in `agreed`. In any case it is closed, when nothing of it is in progress. */
int tb_channel_keep(struct tb_channel *channel, const struct tb_channel_config *config, uint32_t number,
                    struct tb_kept **kept);
uint64_t tb_channel_kept_provides(struct tb_kept *kept);
int tb_channel_kept_agree(struct tb_kept *kept, uint64_t all, bool *agreed);
void tb_channel_kept_close(struct tb_kept *kept);
/* Takes part in a collective only by giving it up, for a reason that this process alone has, such as no memory to plan
 * it: it is counted, and the others are told. The error's story stays. */
void tb_collective_refuse(struct tb_channel *channel, const struct tb_binding *binding, int error);
/* What is needed to send to those that a program of an intracommunicator sends to is there: then what it lacks it lacks
 * before it has sent anything. TB_ERR_MEMORY, or TB_OK. */
int tb_program_reach(struct tb_channel *channel, const struct tb_program *program);
/* Runs a program to its end. A small one needs no allocation. */
int tb_program_run(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding);
/* Starts it; `request` completes when all steps are done; program and what the binding points to
 * must live until then. */
void tb_program_post(struct tb_channel *channel, struct tb_request *request, const struct tb_program *program,
                     const struct tb_binding *binding);

/* ---- what threads wait for --------------------------------------------------------------------------------------- */

enum tb_wait_kind {
    TB_WAIT_SEND,
    TB_WAIT_RECEIVE,
    TB_WAIT_PROBE,
    TB_WAIT_COLLECTIVE,
    TB_WAIT_WINDOW,   /* a synchronisation of a window */
    TB_WAIT_CONDITION /* anything else, as `ready` and `context` say */
};

/* How far that is. */
enum tb_wait_state {
    TB_WAIT_NOTHING,  /* a send: it has not been asked for yet; a receive: nothing has come that it matches; a
                       * collective: nothing is known of `rank` */
    TB_WAIT_MOVING,   /* its data is on its way, from or to `rank` */
    TB_WAIT_UNCALLED, /* a collective: `rank` has not called it */
    /* Of a window: */
    TB_WAIT_POST,     /* `rank` has not called MPI_Win_post */
    TB_WAIT_COMPLETE, /* it has not called MPI_Win_complete */
    TB_WAIT_LOCK, /* the lock of rank `other`, which `rank` has or waits for as well; if that is the same, others do */
    TB_WAIT_APPLY /* it has not said that all accesses have come */
};

/* One thread that waits in an engine. It refers to what is valid only while the engine stays locked. */
struct tb_wait {
    const char *call; /* in which it waits; NULL: not known */
    const void *set;  /* as its owner gave it; NULL: nothing */
    uint64_t time;    /* ns so far; 0: it has only just begun */
    uint8_t kind;     /* enum tb_wait_kind; the rest is of some of them */
    uint8_t state;    /* enum tb_wait_state */
    uint8_t operation;
    bool library;           /* a message that the library itself exchanges */
    const char *collective; /* binding.call of a collective */
    bool counted;           /* a collective that ranks count, as this number: */
    uint32_t number;
    void *owner;          /* of its channel */
    uint32_t rank;        /* in the communicator; TB_ANY_RANK: any, or nobody in particular */
    uint32_t other, more; /* of a window: as `state` says; and how many ranks besides `rank` are waited for */
    uint64_t match, mask;
    bool (*ready)(void *context);
    void *context;
};

/* Each of them. May be called from control_ready: only reads. */
void tb_engine_waits(struct tb_engine *engine, void (*each)(void *context, const struct tb_wait *wait), void *context);
/* Of a request that is not done: kind and what follows it. With the engine locked. */
void tb_request_describe(const struct tb_request *request, struct tb_wait *wait);

/* ---- one-sided communication ------------------------------------------------------------------------------------- */

#include "engine/access.h"
#include "engine/window.h"
#include "engine/window_host.h"

#endif

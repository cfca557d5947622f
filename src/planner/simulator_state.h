/* The state of the simulator, private to this folder, and its memory: filled by simulator_setup.c of programs, shape
 * and ways, advanced by simulator.c (steps), simulator_wires.c (streams, parts and wires), simulator_turns.c (who is
 * next at a wire) and simulator_composite.c. */
#ifndef TB_PLANNER_SIMULATOR_STATE_H
#define TB_PLANNER_SIMULATOR_STATE_H

#include "planner/item_bytes.h"
#include "planner/simulator.h"

#define TB_SIMULATOR_NONE UINT32_MAX
#define TB_SIMULATOR_HELD (UINT32_MAX - 1)

/* What happens, and to what. */
enum tb_simulator_event_kind {
    TB_SIMULATOR_DONE,   /* a step: an item of it is finished */
    TB_SIMULATOR_ARRIVE, /* a message: the receiving rank has something to do for it */
    TB_SIMULATOR_NEXT, /* twice a stream: the next part of its long messages may come to the first wire; or, 1 more, its
                        * next short message */
    TB_SIMULATOR_PART, /* a part: its first byte has come to the wire where it is next */
    TB_SIMULATOR_ASK,  /* a message: the other side is asked whether it may come */
    TB_SIMULATOR_ANSWER, /* a message: it may */
    TB_SIMULATOR_WIRE,   /* a wire: it is free, unless a short message has come meanwhile, and a part waits for it */
    TB_SIMULATOR_COME,   /* a part that is a short message: as ARRIVE */
};
#define TB_SIMULATOR_INDEX_BITS 29u

struct tb_simulator_event {
    uint64_t time;
    uint64_t what; /* order, kind and index: of what happens at the same time, that which was known first comes first */
};

/* One that happens later than those in the heap. */
struct tb_simulator_waiting {
    struct tb_simulator_event event;
    uint32_t next; /* of its list, or free */
};
#define TB_SIMULATOR_LISTS 8192u

/* What a step comes after. */
struct tb_simulator_after {
    uint32_t step : 30;  /* index of it */
    uint32_t joined : 1; /* items of one of the two are several pieces */
    uint32_t last : 1;   /* of its step */
    int32_t lag;         /* TB_AFTER_WHOLE: all of it */
};

/* A step of one rank. All ranks' steps stand in one array. Its size is that of a line of the cache. */
struct tb_simulator_step {
    const struct tb_step *about;
    uint32_t after;     /* index of the first; TB_SIMULATOR_NONE: nothing */
    uint32_t each;      /* bytes of all items but the last, if they are alike; else 0 */
    uint32_t rank : 29; /* fewer than the limit of steps */
    uint32_t kind : 3;  /* enum tb_step_kind */
    uint32_t items, window, started, done;
    uint32_t path;             /* of messages; TB_SIMULATOR_NONE: within the host */
    uint32_t waiting, waiters; /* steps that depend on it: first index, and how many */
    uint32_t blocker;          /* the one for which its next item waits, as was found last */
    uint32_t askers;           /* of a receive: messages that have asked before it was posted, in order */
    union {
        uint32_t partner; /* of a send: the receive; of composites: the step of the next member */
        uint32_t posted;  /* receives */
    };
    union {
        uint32_t stream;  /* of a send to another host; of composites: which */
        uint32_t arrived; /* messages for receives */
    };
};

/* From one wire to the next. */
struct tb_simulator_leg {
    uint32_t wire;  /* its number, or TB_WAY_*, of the two hosts; TB_SIMULATOR_BARE: there is none */
    uint32_t frame; /* bytes, of its path */
    uint64_t delay; /* behind it */
    uint64_t store; /* behind it, until the first frame is whole */
    uint64_t hold;  /* of the last frame, which is whole there, until the next agent has it */
};
#define TB_SIMULATOR_BARE (TB_WAY_IN_AGENT - 1)

/* The last time that was asked for of something of which mostly the same is asked. */
struct tb_simulator_last {
    uint64_t bytes, time;
};

/* A way, leg by leg. */
struct tb_simulator_path {
    uint32_t first, count; /* legs */
    uint32_t frame, ends;
    uint64_t latency, window, round_trip; /* bytes: that may be under way; that pass while an answer comes back */
    uint64_t send_none, receive_none;     /* what an empty message takes its ends */
    struct tb_simulator_last send, receive;
};

/* Its size is that of a line of the cache, too. */
struct tb_simulator_message {
    uint64_t bytes, left;
    uint64_t until; /* when the sender is through with it; once it is there: before that the receive is not done */
    uint64_t there; /* bytes that have come */
    union {
        uint64_t ready; /* before anything of it has left: when its first byte can come to the first wire */
        uint64_t first; /* then: when the first of these had come, */
    };
    uint64_t last; /* and the last */
    uint32_t step, item;
    uint32_t partner; /* of the step */
    uint32_t next;    /* of the stream, of those who ask, or free; TB_SIMULATOR_HELD: all parts have passed the first
                       * wire, but the window does not let the last byte go yet */
};

/* Wires of the two hosts of a message: the port that it leaves by and the agent there, the port that it arrives by and
 * the agent there. */
struct tb_simulator_ends {
    uint32_t out, out_agent, in, in_agent;
};

/* Holds what is needed to pass from wire to wire, without a look at its message. A short message is a part and nothing
 * else. */
struct tb_simulator_part {
    uint64_t last;          /* when its last byte comes to the wire where it is next; of a short message that is there:
                             * before that the receive is not done */
    uint64_t start, length; /* in the message */
    uint32_t message;       /* of a short one: the receive; or the next free part */
    uint32_t stream;        /* of the message */
    uint32_t next;          /* of those that wait for a wire, or of its stream there */
    uint32_t leg;           /* the one where it is next */
    uint16_t left;          /* legs from there on */
    bool is_first;          /* of these, of its path */
    bool is_short;
    bool in_turn; /* a short one that others of its stream were before: it overtakes nobody */
    bool burst;   /* it comes at once, and so counts in a queue */
    struct tb_simulator_ends ends;
};

/* What one rank sends to another: two connections, one for long messages and one for short ones. On each of them
 * messages leave in order, one after the other; streams that have something to send take turns at a wire. */
struct tb_simulator_stream {
    uint32_t from, to; /* ranks */
    uint32_t path;
    struct tb_simulator_ends ends;
    uint32_t head, tail;             /* long messages that have not left wholly */
    uint64_t free;                   /* when the last part of those before them has left the first wire */
    uint32_t short_head, short_tail; /* short ones that wait for those before them */
    uint64_t short_free;             /* when the last of those before them has left the first wire */
    uint32_t acks, last_ack;         /* of parts that are there: when this side will know */
    uint32_t turns;                  /* of its first leg; TB_SIMULATOR_NONE: it takes none */
    bool short_busy;                 /* a short one is on its way to the first wire, or the next one has a time */
    bool busy;                       /* its next part has a time */
    bool waits;                      /* or waits for the window */
    bool brief;         /* all messages are short, so that nothing waits for a window, and there are no acks: */
    uint64_t known;     /* when this side will know of all that is there */
    uint64_t under_way; /* bytes that it does not know of; of a brief one, that are not there */
};

/* Parts of a stream that wait for a wire which passes those of all streams in turns. */
struct tb_simulator_turn {
    uint32_t head, tail; /* TB_SIMULATOR_NONE: none does */
    uint32_t next;       /* turn of the stream that is behind it */
    uint64_t passed;     /* so much is counted for it */
};

/* Streams that wait for a wire which they pass in turns. */
struct tb_simulator_round {
    uint32_t head, tail; /* turns */
    uint32_t streams;
    unsigned __int128 passed; /* is counted for all of them together */
};

/* A wire that streams pass in turns. */
struct tb_simulator_sharing {
    struct tb_simulator_round round, next; /* streams for which less is counted than the end of the round, and others */
    uint64_t end;
    uint64_t longest; /* time that a part took so far */
    uint64_t passed;  /* was counted for the stream of which a part was the last to pass, before it */
    uint64_t bytes;   /* of the next parts of all streams */
};

struct tb_simulator_wire {
    struct tb_simulator_last last;
    uint64_t free;
    uint64_t load;              /* time for which it was busy */
    uint64_t held;              /* bytes that came at once and are in front of it */
    uint32_t queue, last_queue; /* when they are through, rising */
    uint32_t waiting,
        last_waiting;      /* parts of long messages, which short ones overtake; or the turn of one that does */
    uint32_t sharing;      /* of one that streams pass in turns */
    uint32_t row : 30;     /* in the cost table */
    uint32_t limited : 1;  /* what does not fit is lost; in front of the sender's own port it waits */
    uint32_t in_turns : 1; /* streams pass parts in turn */
};

/* That so many bytes are gone at some time. */
struct tb_simulator_note {
    uint64_t time, bytes;
    uint32_t next;
};

struct tb_simulator_core {
    uint64_t free;
    uint32_t rank;
};

/* Cores that several ranks share. */
struct tb_simulator_host {
    uint32_t ranks;
    uint32_t cores; /* index of the first of its pool's; TB_SIMULATOR_NONE: every rank has its own */
    uint64_t memory;
    uint64_t load; /* of all its ranks */
};

/* Steps of several ranks that are one composite step. Its items follow each other through the memory. */
struct tb_simulator_composite {
    uint32_t first;        /* step of a member, and so those of all */
    uint32_t members;      /* how many there are to be */
    uint32_t item, behind; /* the next one, and how many members have not come to it */
    uint64_t free;         /* when the bytes of the last item have passed */
    bool cast;             /* by multicast: */
    bool busy;             /* a part is to leave */
    uint32_t root, parts;  /* the root's step, once it has come; parts of the item that have left */
    uint64_t given, there; /* when the root is through with its last item; when all members have what has left */
};

/* A time that was asked for before. */
struct tb_simulator_memo {
    uint64_t bytes, time;
    uint32_t what, run; /* in which simulation: others may be of another table */
};
#define TB_SIMULATOR_MEMOS 1024u

/* Times that depend on bytes: what of. Then two for each of the ends (enum tb_ends, table->ends), and the wires. */
enum { TB_TIME_NONE, TB_TIME_COPY, TB_TIME_REDUCE, TB_TIME_MEMORY, TB_TIME_ENDS };

/* Memory that only grows. */
struct tb_simulator_room {
    void *at;
    size_t bytes;
};
enum {
    ROOM_STEPS,
    ROOM_FIRSTS,
    ROOM_WAITING,
    ROOM_AFTER,
    ROOM_LEFT,
    ROOM_BUSY,
    ROOM_LOADS,
    ROOM_HOST_OF,
    ROOM_HOSTS,
    ROOM_CORES,
    ROOM_WIRES,
    ROOM_DUES,
    ROOM_STREAMS,
    ROOM_TURNS,
    ROOM_SHARINGS,
    ROOM_PATHS,
    ROOM_PATH_OF,
    ROOM_LEGS,
    ROOM_COMPOSITES,
    ROOM_TABLE,
    ROOM_HEAP,
    ROOM_WAITS,
    ROOM_MESSAGES,
    ROOM_PARTS,
    ROOM_NOTES,
    ROOM_COUNT
};

struct tb_simulator {
    struct tb_simulation *run;
    const struct tb_cost_table *table;
    const struct tb_cost_constants *constants;
    const struct tb_group_shape *shape;
    struct tb_item_data data;
    uint32_t ranks, step_count;
    struct tb_simulator_step *steps;
    uint32_t *firsts;  /* step of each rank, and the end */
    uint32_t *waiting; /* indices of steps */
    struct tb_simulator_after *after;
    uint32_t *left;    /* steps of each rank that are not done */
    uint64_t *busy;    /* until when each rank is */
    uint64_t *loads;   /* time for which each rank was busy */
    uint32_t *host_of; /* of each rank */
    struct tb_simulator_host *hosts;
    struct tb_simulator_core *cores;
    uint32_t core_count, pool; /* of all pools, of one */
    struct tb_simulator_wire *wires;
    uint64_t *dues; /* of wires with a bucket: when it is full again; NULL: there are none */
    uint32_t wire_count;
    bool mixed; /* there are short messages and long ones: else nobody can overtake, and wires are taken beforehand */
    struct tb_simulator_stream *streams;
    uint32_t stream_count;
    struct tb_simulator_turn *turns;
    struct tb_simulator_sharing *sharings;
    struct tb_simulator_path *paths;
    uint32_t path_count;
    uint32_t *path_of; /* by way */
    uint32_t way_count;
    struct tb_simulator_leg *legs;
    uint32_t leg_count;
    struct tb_simulator_composite *composites;
    uint32_t composite_count;
    uint32_t to_come, order; /* events; so many so far */
    struct tb_simulator_event *heap;
    uint32_t heap_count;
    bool heap_hole; /* the first entry has been taken; the others stand behind it */
    uint64_t soon;  /* what happens before this is in the heap */
    struct tb_simulator_waiting *waits;
    uint32_t wait_count, free_wait;
    uint64_t list_begin; /* of the first list; each is for as much time as list_bits say */
    uint32_t list_bits;
    uint32_t lists[TB_SIMULATOR_LISTS + 1]; /* of those who wait; the last one: for longer than all others */
    uint64_t lists_used[TB_SIMULATOR_LISTS / 64];
    uint32_t lists_word; /* of these: those before it are empty */
    struct tb_simulator_message *messages;
    struct tb_simulator_part *parts;
    struct tb_simulator_note *notes;
    uint32_t message_count, part_count, note_count; /* used so far */
    uint32_t free_message, free_part, free_note;
    uint32_t wire_times; /* TB_TIME_*: of the first row of wires */
    uint32_t finished;
    uint32_t runs; /* so far */
    int error;
    struct tb_simulator_memo memos[TB_SIMULATOR_MEMOS];
    struct tb_simulator_room rooms[ROOM_COUNT];
};

/* ---- simulator_state.c ------------------------------------------------------------------------------------------- */

/* At least so many bytes, with what was in them before; NULL: no memory, which is m->error then. */
void *tb_simulator_room(struct tb_simulator *m, unsigned room, size_t bytes);

/* ---- simulator_events.c ------------------------------------------------------------------------------------------ */

void tb_simulator_push(struct tb_simulator *m, enum tb_simulator_event_kind kind, uint32_t index, uint64_t time);
struct tb_simulator_event tb_simulator_pop(struct tb_simulator *m); /* there must be one */
void tb_simulator_events_clear(struct tb_simulator *m);
/* An item of a step will be done at `time`. Where nobody waits for it that is all there is to it, and no event. */
void tb_simulator_done(struct tb_simulator *m, uint32_t step, uint64_t time);
/* It is; whether its rank is. */
void tb_simulator_count(struct tb_simulator *m, uint32_t step, uint64_t time);

/* ---- simulator_ranks.c ------------------------------------------------------------------------------------------- */

/* A time by bytes, of TB_TIME_*. */
uint64_t tb_simulator_time(struct tb_simulator *m, uint32_t what, uint64_t bytes);
/* The same, of which the last answer is known. */
uint64_t tb_simulator_last_time(struct tb_simulator *m, struct tb_simulator_last *last, uint32_t what, uint64_t bytes);
/* What a message takes its ends. */
uint64_t tb_simulator_send_time(struct tb_simulator *m, uint32_t path, uint64_t bytes);
uint64_t tb_simulator_receive_time(struct tb_simulator *m, uint32_t path, uint64_t bytes);
/* Keeps a rank busy for some time; `bytes` pass through memory. Returns the end. */
uint64_t tb_simulator_work(struct tb_simulator *m, uint32_t rank, uint64_t now, uint64_t time, uint64_t bytes);

/* ---- simulator_paths.c ------------------------------------------------------------------------------------------- */

/* The path between two ranks; TB_SIMULATOR_NONE: they are on one host, or there is an error. */
uint32_t tb_simulator_path(struct tb_simulator *m, uint32_t from_rank, uint32_t to_rank);
/* The wires of the two hosts of ranks on a way from one to the other. */
struct tb_simulator_ends tb_simulator_ends_of(const struct tb_simulator *m, uint32_t from, uint32_t to);

/* ---- simulator_setup.c ------------------------------------------------------------------------------------------- */

/* Everything for `run`; TB_ERR_LIMIT, TB_ERR_MISMATCH as tb_simulate. */
int tb_simulator_fill(struct tb_simulator *m, struct tb_simulation *run);

/* ---- simulator_wires.c ------------------------------------------------------------------------------------------- */

/* An item of a send step to another host begins. */
void tb_simulator_send(struct tb_simulator *m, uint32_t step, uint32_t item, uint64_t bytes, uint64_t now);
void tb_simulator_next(struct tb_simulator *m, uint32_t stream, uint64_t now);
void tb_simulator_part_comes(struct tb_simulator *m, uint32_t part, uint64_t now);
void tb_simulator_wire_free(struct tb_simulator *m, uint32_t wire, uint64_t now);
void tb_simulator_ask(struct tb_simulator *m, uint32_t message, uint64_t now);
void tb_simulator_answer(struct tb_simulator *m, uint32_t message, uint64_t now);
/* A receive was posted: whoever has asked for it may send. */
void tb_simulator_posted(struct tb_simulator *m, uint32_t step, uint64_t now);
/* Keeps a wire busy with bytes from `start` of a message on, from `now` or from when it is free; returns when it
 * begins. */
uint64_t tb_simulator_wire_take(struct tb_simulator *m, uint32_t wire, uint64_t start, uint64_t length, uint64_t now,
                                uint64_t *end);

/* ---- simulator_turns.c ------------------------------------------------------------------------------------------- */

/* Finds the wires at which streams must take turns. */
void tb_simulator_turns(struct tb_simulator *m);
/* A part waits for a wire, where short messages may overtake it. */
void tb_simulator_turn_wait(struct tb_simulator *m, uint32_t wire, uint32_t part);
/* A part passes a wire, whether or not it has waited there. */
void tb_simulator_turn_pass(struct tb_simulator *m, uint32_t wire, uint32_t part, bool waited, uint64_t begin,
                            uint64_t end);
/* The part that is next there; one must wait. */
uint32_t tb_simulator_turn_take(struct tb_simulator *m, uint32_t wire);

/* ---- simulator_composite.c --------------------------------------------------------------------------------------- */

/* Finds out which steps belong together. */
int tb_simulator_composites(struct tb_simulator *m);
/* A rank has come to an item of a composite step. */
void tb_simulator_come(struct tb_simulator *m, uint32_t step, uint64_t now);

/* ---- simulator_multicast.c --------------------------------------------------------------------------------------- */

/* Those of multicast: a step joins the others; a rank has come to an item. */
int tb_simulator_cast_join(struct tb_simulator *m, uint32_t step);
void tb_simulator_cast_come(struct tb_simulator *m, uint32_t step, uint64_t now);
/* A part of one may leave: as TB_SIMULATOR_NEXT of a stream whose number is that of the composite step behind those of
 * all streams. */
void tb_simulator_cast_next(struct tb_simulator *m, uint32_t composite, uint64_t now);

/* The next of what a step comes after; TB_SIMULATOR_NONE: there is none. */
static inline uint32_t tb_simulator_after_next(const struct tb_simulator *m, uint32_t after)
{
    return m->after[after].last ? TB_SIMULATOR_NONE : after + 1;
}

/* The wire of a leg of a way between two hosts. */
static inline uint32_t tb_simulator_leg_wire(const struct tb_simulator_leg *leg, const struct tb_simulator_ends *ends)
{
    switch (leg->wire) {
    case TB_WAY_OUT:
        return ends->out;
    case TB_WAY_OUT_AGENT:
        return ends->out_agent;
    case TB_WAY_IN:
        return ends->in;
    case TB_WAY_IN_AGENT:
        return ends->in_agent;
    default:
        return leg->wire;
    }
}

static inline uint64_t tb_simulator_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- what is used again ------------------------------------------------------------------------------------------ */

static inline uint32_t tb_simulator_message_new(struct tb_simulator *m)
{
    uint32_t index = m->free_message;
    if (index != TB_SIMULATOR_NONE) {
        m->free_message = m->messages[index].next;
    } else {
        index = m->message_count;
        size_t need = ((size_t)index + 1) * sizeof *m->messages;
        if (need > m->rooms[ROOM_MESSAGES].bytes && (m->messages = tb_simulator_room(m, ROOM_MESSAGES, need)) == NULL)
            return TB_SIMULATOR_NONE;
        m->message_count++;
    }
    return index;
}

static inline void tb_simulator_message_free(struct tb_simulator *m, uint32_t message)
{
    m->messages[message].next = m->free_message;
    m->free_message = message;
}

static inline void tb_simulator_part_free(struct tb_simulator *m, uint32_t part)
{
    m->parts[part].message = m->free_part;
    m->free_part = part;
}

#endif

/* The state of a traffic simulation, private to this folder, and its memory: filled by traffic_setup.c of programs,
 * shape and ways, advanced by traffic.c (steps), traffic_wires.c (streams, parts and wires) and traffic_composite.c. */
#ifndef TB_PLANNER_TRAFFIC_STATE_H
#define TB_PLANNER_TRAFFIC_STATE_H

#include "planner/item_bytes.h"
#include "planner/traffic.h"

#define TB_TRAFFIC_NONE UINT32_MAX

/* What happens, and to what. */
enum tb_traffic_event_kind {
    TB_TRAFFIC_DONE,   /* a step: an item of it is finished */
    TB_TRAFFIC_ARRIVE, /* a message: the receiving rank has something to do for it */
    TB_TRAFFIC_NEXT,   /* a stream: its next part may come to its first wire */
    TB_TRAFFIC_PART,   /* a part: its first byte has come to the wire where it is next */
    TB_TRAFFIC_ASK,    /* a message: the other side is asked whether it may come */
    TB_TRAFFIC_ANSWER, /* a message: it may */
};
#define TB_TRAFFIC_INDEX_BITS 29u

struct tb_traffic_event {
    uint64_t time;
    uint32_t order; /* of what happens at the same time, that which was known first comes first */
    uint32_t what;  /* kind and index */
};

/* A step of one rank. All ranks' steps stand in one array. */
struct tb_traffic_step {
    const struct tb_step *about;
    uint32_t rank;
    uint32_t items, window, started, done;
    uint32_t posted, arrived;    /* receives, and messages for them */
    uint32_t partner;            /* of a send: the receive; of composites: the step of the next member */
    uint32_t path;               /* of messages; TB_TRAFFIC_NONE: within the host */
    uint32_t stream;             /* of a send to another host; of composites: which */
    uint32_t waiting, waiters;   /* steps that depend on it: first index, and how many */
    uint32_t askers, last_asker; /* of a receive: messages that have asked before it was posted, in order */
};

/* From one wire to the next. */
struct tb_traffic_leg {
    uint32_t list;  /* its wire: index in ways->list */
    bool has_wire;  /* or there is none */
    uint64_t delay; /* behind it */
    uint64_t store; /* behind it, until the first frame is whole */
    uint64_t hold;  /* of the last frame, which is whole there, until the next agent has it */
};

/* A way, leg by leg. */
struct tb_traffic_path {
    uint32_t first, count; /* legs */
    uint32_t frame, ends;
    uint64_t latency, window;
};

struct tb_traffic_message {
    uint64_t bytes, left;
    uint64_t ready; /* when its first byte can come to the first wire */
    uint64_t until; /* when the sender is through with it; once it is there: before that the receive is not done */
    uint64_t part;  /* length of its parts */
    uint64_t there; /* bytes that have come */
    uint64_t first, last; /* when the first and the last one of these had */
    uint32_t step, item;
    uint32_t next; /* of the stream, of those who ask, or free */
};

struct tb_traffic_part {
    uint64_t last;          /* when its last byte comes to the wire where it is next */
    uint64_t start, length; /* in the message */
    uint32_t message;       /* or the next free one */
    uint16_t leg;
    bool is_short;
    bool burst; /* it comes at once, and so counts in a queue */
};

/* What one rank sends to another in long messages. */
struct tb_traffic_stream {
    uint32_t from, to;       /* ranks */
    uint32_t head, tail;     /* messages that have not left wholly */
    uint32_t acks, last_ack; /* of parts that are there: when this side will know */
    uint64_t under_way;      /* bytes that it does not know of */
    bool busy;               /* its next part has a time */
    bool waits;              /* or waits for the window */
};

struct tb_traffic_wire {
    uint64_t free, free_short;
    uint64_t load;              /* time for which it was busy */
    uint64_t held;              /* bytes that came at once and are in front of it */
    uint32_t queue, last_queue; /* when they are through, rising */
    uint32_t row;               /* in the cost table */
    bool limited;               /* what does not fit is lost; in front of the sender's own port it waits */
};

/* That so many bytes are gone at some time. */
struct tb_traffic_note {
    uint64_t time, bytes;
    uint32_t next;
};

struct tb_traffic_core {
    uint64_t free;
    uint32_t rank;
};

/* Cores that several ranks share. */
struct tb_traffic_host {
    uint32_t ranks;
    uint32_t cores; /* index of the first of its pool's; TB_TRAFFIC_NONE: every rank has its own */
    uint64_t memory;
    uint64_t load; /* of all its ranks */
};

/* Steps of several ranks that are one composite step. Its items follow each other through the memory or the port. */
struct tb_traffic_composite {
    uint32_t first;        /* step of a member, and so those of all */
    uint32_t members;      /* how many there are to be */
    uint32_t item, behind; /* the next one, and how many members have not come to it */
    uint32_t path;         /* the farthest that the members span; TB_TRAFFIC_NONE: they are on one host */
    uint64_t free;         /* when the bytes of the last item have passed */
};

/* A time that was asked for before. */
struct tb_traffic_memo {
    uint64_t bytes, time;
    uint32_t what;
};
#define TB_TRAFFIC_MEMOS 1024u

/* Times that depend on bytes: what of. Then two for each of the ends (enum tb_ends, table->ends), and the wires. */
enum { TB_TIME_NONE, TB_TIME_COPY, TB_TIME_REDUCE, TB_TIME_MEMORY, TB_TIME_ENDS };

/* Memory that only grows. */
struct tb_traffic_room {
    void *at;
    size_t bytes;
};
enum {
    ROOM_STEPS,
    ROOM_FIRSTS,
    ROOM_WAITING,
    ROOM_LEFT,
    ROOM_BUSY,
    ROOM_LOADS,
    ROOM_HOST_OF,
    ROOM_HOSTS,
    ROOM_CORES,
    ROOM_WIRES,
    ROOM_STREAMS,
    ROOM_PATHS,
    ROOM_PATH_OF,
    ROOM_LEGS,
    ROOM_COMPOSITES,
    ROOM_TABLE,
    ROOM_HEAP,
    ROOM_MESSAGES,
    ROOM_PARTS,
    ROOM_NOTES,
    ROOM_COUNT
};

struct tb_traffic {
    struct tb_traffic_run *run;
    const struct tb_cost_table *table;
    const struct tb_cost_constants *constants;
    const struct tb_group_shape *shape;
    struct tb_item_data data;
    uint32_t ranks, step_count;
    struct tb_traffic_step *steps;
    uint32_t *firsts;  /* step of each rank, and the end */
    uint32_t *waiting; /* indices of steps */
    uint32_t *left;    /* steps of each rank that are not done */
    uint64_t *busy;    /* until when each rank is */
    uint64_t *loads;   /* time for which each rank was busy */
    uint32_t *host_of; /* of each rank */
    struct tb_traffic_host *hosts;
    struct tb_traffic_core *cores;
    uint32_t core_count, pool; /* of all pools, of one */
    struct tb_traffic_wire *wires;
    uint32_t wire_count;
    struct tb_traffic_stream *streams;
    uint32_t stream_count;
    struct tb_traffic_path *paths;
    uint32_t path_count;
    uint32_t *path_of; /* by way */
    uint32_t way_count;
    struct tb_traffic_leg *legs;
    uint32_t leg_count;
    struct tb_traffic_composite *composites;
    uint32_t composite_count;
    struct tb_traffic_event *heap;
    uint32_t heap_count, order;
    struct tb_traffic_message *messages;
    struct tb_traffic_part *parts;
    struct tb_traffic_note *notes;
    uint32_t message_count, part_count, note_count; /* used so far */
    uint32_t free_message, free_part, free_note;
    uint32_t wire_times; /* TB_TIME_*: of the first row of wires */
    uint32_t finished;
    int error;
    struct tb_traffic_memo memos[TB_TRAFFIC_MEMOS];
    struct tb_traffic_room rooms[ROOM_COUNT];
};

/* ---- traffic_state.c --------------------------------------------------------------------------------------------- */

/* At least so many bytes, with what was in them before; NULL: no memory, which is m->error then. */
void *tb_traffic_room(struct tb_traffic *m, unsigned room, size_t bytes);

/* ---- traffic_events.c -------------------------------------------------------------------------------------------- */

void tb_traffic_push(struct tb_traffic *m, enum tb_traffic_event_kind kind, uint32_t index, uint64_t time);
struct tb_traffic_event tb_traffic_pop(struct tb_traffic *m); /* there must be one */

/* ---- traffic_ranks.c --------------------------------------------------------------------------------------------- */

/* A time by bytes, of TB_TIME_*. */
uint64_t tb_traffic_time(struct tb_traffic *m, uint32_t what, uint64_t bytes);
/* Keeps a rank busy for some time; `bytes` pass through memory. Returns the end. */
uint64_t tb_traffic_work(struct tb_traffic *m, uint32_t rank, uint64_t now, uint64_t time, uint64_t bytes);

/* ---- traffic_paths.c --------------------------------------------------------------------------------------------- */

/* The path between two ranks; TB_TRAFFIC_NONE: they are on one host, or there is an error. */
uint32_t tb_traffic_path(struct tb_traffic *m, uint32_t from_rank, uint32_t to_rank);

/* ---- traffic_setup.c --------------------------------------------------------------------------------------------- */

/* Everything for `run`; TB_ERR_LIMIT, TB_ERR_MISMATCH as tb_traffic_simulate. */
int tb_traffic_fill(struct tb_traffic *m, struct tb_traffic_run *run);

/* ---- traffic_wires.c --------------------------------------------------------------------------------------------- */

/* An item of a send step to another host begins. */
void tb_traffic_send(struct tb_traffic *m, uint32_t step, uint32_t item, uint64_t bytes, uint64_t now);
void tb_traffic_next(struct tb_traffic *m, uint32_t stream, uint64_t now);
void tb_traffic_part_comes(struct tb_traffic *m, uint32_t part, uint64_t now);
void tb_traffic_ask(struct tb_traffic *m, uint32_t message, uint64_t now);
void tb_traffic_answer(struct tb_traffic *m, uint32_t message, uint64_t now);
/* A receive was posted: whoever has asked for it may send. */
void tb_traffic_posted(struct tb_traffic *m, uint32_t step, uint64_t now);
uint32_t tb_traffic_message_new(struct tb_traffic *m);
void tb_traffic_message_free(struct tb_traffic *m, uint32_t message);

/* ---- traffic_composite.c ----------------------------------------------------------------------------------------- */

/* Finds out which steps belong together. */
int tb_traffic_composites(struct tb_traffic *m);
/* A rank has come to an item of a composite step. */
void tb_traffic_come(struct tb_traffic *m, uint32_t step, uint64_t now);

static inline uint64_t tb_traffic_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint32_t tb_traffic_send_time(const struct tb_traffic_path *path)
{
    return TB_TIME_ENDS + 2 * path->ends;
}

static inline uint32_t tb_traffic_receive_time(const struct tb_traffic_path *path)
{
    return TB_TIME_ENDS + 2 * path->ends + 1;
}

#endif

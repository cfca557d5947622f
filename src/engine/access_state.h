/* Accesses from within: one that is under way, the queues before transports, and results that wait for room. Private to
 * the engine, touched with it locked. */
#ifndef TB_ENGINE_ACCESS_STATE_H
#define TB_ENGINE_ACCESS_STATE_H

#include "engine/engine.h"
#include "engine/window_state.h"

#define TB_ACCESSES_LIMIT  (1u << 24)
#define TB_ACCESS_COST     128u         /* what a frame that asks for data counts beside that in TB_ACCESS_WINDOW, */
#define TB_RESULTS_LIMIT   (1u << 14)   /* so that fewer frames of results than this wait for room for one origin, */
#define TB_RESULTS_BYTES   (4u << 20)   /* and fewer bytes */
#define TB_ACCESS_SHORT    (16u << 10)  /* data up to here takes the stream of short messages */
#define TB_ACCESS_PIECE    (128u << 10) /* data of one frame at most... */
#define TB_ACCESS_COMBINED (64u << 10)  /* ...and of what combines, which may wait in a cache */
#define TB_ACCESS_RUNS     256u         /* runs of one frame at most */
#define TB_ACCESS_FRAME    (TB_ACCESS_HEAD_BYTES + TB_ACCESS_RUNS * TB_ACCESS_RUN_BYTES + TB_ACCESS_PIECE)

/* What an access is, and how much of it has left: bytes of packed data. */
struct tb_access_walk {
    struct tb_window_rank *rank;
    uint8_t kind;                  /* enum tb_kind: PUT (also as PUT_RUNS), GET, ACCUMULATE, COMPARE */
    bool answered;                 /* data comes back */
    const struct tb_op *op;        /* of ACCUMULATE */
    const struct tb_type *element; /* of ACCUMULATE and COMPARE */
    struct tb_buffer origin, result, target;
    const void *compare; /* of COMPARE */
    uint64_t sent, total;
};

/* One that could not leave at once, or to which something comes back. Its request is the engine's own, by which it is
 * found, and ends with its peer. */
struct tb_access {
    struct tb_request core;
    struct tb_access_walk walk;
    struct tb_request *request; /* of the program; NULL: none */
    struct tb_list open;        /* of its rank */
    uint64_t number;            /* of its window */
    uint64_t outstanding;       /* bytes of results that were asked for and have not come, */
    uint64_t frames;            /* and what has asked since there were none */
    bool refused;               /* a part of it was; it ends when the one that is being read is here */
};

/* An answer with data that waits for room: the data, or where in the window it is read then. */
struct tb_access_result {
    struct tb_list queue;
    struct tb_message message;
    uint8_t stream;
    bool stays;
    uint64_t at;
    uint8_t data[];
};

/* All of an engine. */
struct tb_accesses {
    struct tb_list waiting; /* struct tb_peer: something waits for room there */
    struct tb_pool pool;
    uint8_t *frame; /* where frames are put together; NULL: there has been no window */
};

int tb_accesses_open(struct tb_accesses *accesses); /* with the first window */
/* Rounds of progress and the end of the engine come here through a table, since accesses are made of what is below
 * these. */
struct tb_accesses_work {
    /* Sends what waits for room. How many frames have gone. */
    int (*push)(struct tb_accesses *accesses);
    /* Some processes are gone. How many ranks of windows that concerned. */
    int (*bury)(struct tb_windows *windows);
    void (*close)(struct tb_accesses *accesses);
};
extern const struct tb_accesses_work tb_accesses_work;
/* The lock of a rank is there: what waited for it leaves. */
void tb_accesses_release(struct tb_window_rank *r);
/* A result, now or later. `at`: where it stands in the window of `message`, and is read again later; NULL: the data is
 * copied if need be. */
void tb_access_answer(struct tb_peer *p, const struct tb_message *message, const void *data, const uint64_t *at);
/* Sends results that wait for room, as far as there is some. How many frames have gone. */
int tb_results_push(struct tb_peer *p);
void tb_results_forget(struct tb_peer *p);
/* Something waits for room there. */
void tb_accesses_queue(struct tb_peer *p);

/* Handlers of frames that answer an access. */
void *tb_access_place(struct tb_peer *p, const struct tb_message *m, size_t length);
void tb_access_got(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
void tb_access_refused(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);

#endif

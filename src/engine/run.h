/* The executor: a run is one program on its way. A step's items (pieces) are started in order when what they depend on
 * is done, at most a window of them at a time. Sends that need no waiting use no request. Progress comes from the
 * completion of items.
 *
 * An error ends a run, and the other ranks are told so that nobody waits for it in vain (failure.h).
 *
 * A run stands in memory of its own, which it frees at its end, or of its caller. Touched with the engine locked. */
#ifndef TB_ENGINE_RUN_H
#define TB_ENGINE_RUN_H

#include "engine/binding.h"
#include "engine/channel.h"
#include "engine/failure.h"

enum tb_run_item_state { TB_ITEM_IDLE, TB_ITEM_ACTIVE, TB_ITEM_DONE };

struct tb_run_item {
    union {
        struct tb_request request;
        union tb_drive_room room;
    };
    struct tb_run *run;
    uint32_t step, index;
    enum tb_run_item_state state;
    struct tb_list working; /* of copies and reductions: in the runs' `working` */
    uint64_t moved;         /* bytes that they have done */
};

/* Of a step. Items [0, done) are finished, [done, started) are on their way or finished out of order. */
struct tb_run_progress {
    uint32_t items, started, done;
    uint32_t window;
    uint32_t first; /* place of its items in run->items; item k is at first + k % window */
};

/* Whoever makes one sets the last part. */
struct tb_run {
    struct tb_list in_all;          /* of the engine's runs */
    struct tb_list in_put_off;      /* likewise, if it goes on when a thread of the program comes in */
    struct tb_request *request;     /* completes when everything is done */
    struct tb_context *contexts[2]; /* by the group of a step's peer */
    const struct tb_program *program;
    struct tb_binding binding;
    uint32_t low;    /* all steps before this one are done */
    uint32_t active; /* items on their way; of composite steps the whole step */
    /* That carry out its composite steps, and what it has reserved with each, if there are places. */
    const struct tb_driven
        *drivers; /* the channel's, or those of a collective that is kept; NULL: no composite steps */
    struct tb_reserved reserved[TB_DRIVERS_LIMIT];
    int error; /* that ends it */
    bool advancing, again;
    void *work; /* allocated for WORK, or NULL */
    uint64_t work_bytes;
    uint64_t *sizes; /* allocated for SIZES and the offsets that are made of them, or NULL */

    void *memory; /* in which it stands, freed at its end; NULL: the caller's */
    void *small;  /* memory for a small WORK, or NULL */
    uint64_t small_bytes;
    struct tb_run_progress *progress;
    struct tb_run_item *items;
};

/* What runs of an engine share. */
struct tb_runs {
    struct tb_list all;     /* that are not finished */
    struct tb_list working; /* items that copy or reduce, a portion in each round of progress */
    struct tb_list put_off; /* that a standby could not advance, since they may call functions of the program's */
    struct tb_work_cache cache;
};

/* How many items of a step are on their way at most, and have room. */
static inline uint32_t tb_run_window(const struct tb_step *s)
{
    return s->kind == TB_STEP_COMPOSITE ? 1 : s->window;
}

/* The numbers of a collective on its channels: the next ones. */
void tb_run_number(struct tb_channel *channel, struct tb_binding *binding);
/* Starts it. The request is begun and will be finished. */
void tb_run_start(struct tb_run *run, struct tb_channel *channel, struct tb_request *request,
                  const struct tb_program *program, const struct tb_binding *binding);
/* Another rank has given up a collective of this context. */
void tb_runs_give_up(struct tb_runs *runs, const struct tb_context *c, const struct tb_failure *f);
/* A process is gone: collectives of its channels, which have noted that, cannot come to their ends on all ranks, and do
 * so on none that has not finished. */
void tb_runs_mourn(struct tb_runs *runs);
/* What a program that is one composite step, and has no run, waits for (program.c). */
void tb_alone_describe(const struct tb_request *request, struct tb_wait *wait);
/* A thread of the program goes on with those that were put off. */
void tb_runs_resume(struct tb_runs *runs);
/* Does a portion of the copy or reduction whose turn it is; there is one. */
int tb_runs_work(struct tb_runs *runs);

#endif

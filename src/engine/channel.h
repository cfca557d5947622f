/* A communicator as the engine knows it: its contexts and the processes of its ranks. It has an owner and lives until
 * that has closed it and no request refers to it any more. Touched with the engine locked. */
#ifndef TB_ENGINE_CHANNEL_H
#define TB_ENGINE_CHANNEL_H

#include "engine/context.h"
#include "engine/engine.h"
#include "engine/failure.h"

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

static inline uint32_t tb_channel_proc(const struct tb_channel *c, uint32_t rank)
{
    return c->procs == NULL ? rank : c->procs[rank];
}

void tb_channel_drop(struct tb_channel *channel); /* one user less */
void tb_channels_close(struct tb_engine *e);      /* and all contexts */

/* How many places on the board a program has, which are its composite steps. NULL: one that is not known; nearly all
 * have one where there is a board. */
uint32_t tb_channel_places(const struct tb_channel *channel, const struct tb_program *program);
/* Gives up the collective of a binding that has its numbers, with the error, and tells the others. `program` may be
 * NULL, and says with whom this process has steps, and how many places on the board it has. The story stays. */
void tb_channel_give_up(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding,
                        int error);
/* Passes a failure on, if it spreads. */
void tb_channel_pass_on(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding,
                        const struct tb_failure *f);
/* A frame that tells of a failure: it is remembered. The channel on which runs and composite steps are to end, or NULL.
 */
struct tb_channel *tb_channel_hear(struct tb_peer *p, const struct tb_message *m, struct tb_failure *f);

#endif

/* A communicator as the engine knows it: its contexts and the processes of its ranks. It has an owner and lives until
 * that has closed it and no request refers to it any more. Touched with the engine locked. */
#ifndef TB_ENGINE_CHANNEL_H
#define TB_ENGINE_CHANNEL_H

#include "engine/context.h"
#include "engine/driver.h"
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
    bool driven; /* there is a driver of composite steps: */
    struct tb_driven drivers[TB_DRIVERS_LIMIT];
};

static inline uint32_t tb_channel_proc(const struct tb_channel *c, uint32_t rank)
{
    return c->procs == NULL ? rank : c->procs[rank];
}

void tb_channel_drop(struct tb_channel *channel); /* one user less */
void tb_channels_close(struct tb_engine *e);      /* and all contexts */
void tb_channels_lose(struct tb_peer *peer);      /* drivers learn that it is gone */

/* The driver of a composite step, or NULL. */
static inline const struct tb_driven *tb_channel_driver(const struct tb_channel *c, const struct tb_step *s)
{
    const struct tb_driven *d = &c->drivers[s->contract.driver];
    return d->state != NULL ? d : NULL;
}

/* How many places a program has with drivers. NULL: one that is not known; nearly all have one where there is one. */
uint32_t tb_channel_places(const struct tb_channel *channel, const struct tb_program *program);
/* Gives up the collective of a binding that has its numbers, with the error, and tells the others. `program` may be
 * NULL, and says with whom this process has steps, and how many composite ones. The story stays. */
void tb_channel_give_up(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding,
                        int error);
/* Passes a failure on, if it spreads. */
void tb_channel_pass_on(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding,
                        const struct tb_failure *f);
/* A frame that tells of a failure: it is remembered. The channel on which runs and composite steps are to end, or NULL.
 */
struct tb_channel *tb_channel_hear(struct tb_peer *p, const struct tb_message *m, struct tb_failure *f);

#endif

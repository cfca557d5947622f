/* A communicator as the engine knows it: its contexts and the processes of its ranks. It has an owner and lives until
 * that has closed it and no request refers to it any more. Touched with the engine locked. */
#ifndef TB_ENGINE_CHANNEL_H
#define TB_ENGINE_CHANNEL_H

#include "engine/context.h"
#include "engine/driver.h"
#include "engine/engine.h"
#include "engine/failure.h"
#include "engine/likely.h"

struct tb_channel {
    struct tb_engine *engine;
    struct tb_context *point, *collective; /* collective: NULL in a control channel */
    struct tb_channel *control;            /* NULL: not needed yet */
    uint32_t size, rank;
    uint32_t *procs; /* NULL: identity */
    uint32_t users;  /* the owner and every unfinished request */
    uint32_t collectives;
    void *owner;
    bool local, entered; /* of one group of an inter-communicator; its context is known: before, it has spare ones */
    bool agreed;         /* there is one because ranks of several hosts have agreed on it */
    bool meets;          /* ranks of each host have a driver for steps among themselves */
    bool counted;        /* its processes are, by the engine's peers */
    bool driven;         /* there is a driver of composite steps, for all ranks that need one: */
    struct tb_driven drivers[TB_DRIVERS_LIMIT], proposed[TB_DRIVERS_LIMIT];
    struct tb_window *window;   /* it is that of a window; or NULL */
    bool left;                  /* that is, and this process has ended its part of MPI without having freed it */
    struct tb_list kept;        /* struct tb_kept: of collectives that have drivers of their own */
    const struct tb_peer *lost; /* one of its processes that is gone, and not in good order; NULL: none is */
};

static inline uint32_t tb_channel_proc(const struct tb_channel *c, uint32_t rank)
{
    return c->procs == NULL ? rank : c->procs[rank];
}

void tb_channel_drop(struct tb_channel *channel); /* one user less */
void tb_channels_leave(struct tb_engine *e);      /* what they share with others, while there are transports */
void tb_channels_close(struct tb_engine *e);      /* and all contexts */
/* Those who are dying, but for who leaves in good order, are gone: channels note it, and drivers learn of it. */
void tb_channels_lose(struct tb_engine *e);
int tb_channel_mourn(const struct tb_channel *channel); /* tells the story of what is lost; the error */

/* What drivers have for a collective, and the driver of a composite step of it, or NULL. */
static inline const struct tb_driven *tb_channel_drivers(const struct tb_channel *c, const struct tb_binding *b)
{
    return b->kept != NULL ? b->kept->drivers : c->drivers;
}

static inline const struct tb_driven *tb_channel_driver(const struct tb_channel *c, const struct tb_binding *b,
                                                        const struct tb_step *s)
{
    const struct tb_driven *d = &tb_channel_drivers(c, b)[s->contract.driver];
    return d->state != NULL ? d : NULL;
}

/* Drives of all collectives hear of a failure, or of a message that nobody expects. */
void tb_channel_drives_give_up(struct tb_channel *channel, const struct tb_failure *f);
void tb_channel_drives_hear(struct tb_channel *channel, const struct tb_message *m);

/* How many places a collective has with drivers; its program, or NULL: that is not known. On one host nearly all have
 * one. On several all have as many, but those that are numbered and have their own. */
static inline uint32_t tb_channel_places(const struct tb_channel *c, const struct tb_program *program,
                                         const struct tb_binding *b)
{
    uint32_t places = program != NULL ? program->places : c->driven;
    if (TB_LIKELY(!c->agreed || b->numbered))
        return places;
    return places > TB_COLLECTIVE_PLACES ? places : TB_COLLECTIVE_PLACES;
}
/* Gives up the collective of a binding that has its numbers, with the error, and tells the others. `program` may be
 * NULL, and says with whom this process has steps, and how many composite ones. The story stays. */
void tb_channel_give_up(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding,
                        int error);
/* A collective of its own that somebody will not take part in: it is remembered, and what has come of it dropped. */
void tb_channel_fail(struct tb_channel *channel, const struct tb_failure *f);
/* Passes a failure on, if it spreads. */
void tb_channel_pass_on(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding,
                        const struct tb_failure *f);
/* A frame that tells of a failure: it is remembered. The channel on which runs and composite steps are to end, or NULL.
 */
struct tb_channel *tb_channel_hear(struct tb_peer *p, const struct tb_message *m, struct tb_failure *f);

#endif

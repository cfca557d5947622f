/* Collectives that a rank has given up because of an error: it tells all others of the communicator (channel.h), so
 * that nobody waits for what it will never send. Whoever has not finished that collective ends it with TB_ERR_GIVEN_UP,
 * also one that is started later; whoever has finished it is not concerned. Numbers of later collectives still agree.
 *
 * Where telling everybody would open too many connections, those are told that this process is connected with or has
 * steps with, and they pass it on.
 *
 * Their context remembers them: those of collectives that this rank has not started yet, since others may be far ahead,
 * and the last ones besides, whose messages may still come. Touched with the engine locked. */
#ifndef TB_ENGINE_FAILURE_H
#define TB_ENGINE_FAILURE_H

#include "engine/context.h"
#include "engine/engine.h"
#include "wire/wire.h"

#define TB_FAILURES       16u        /* of collectives that were started here, or may have been */
#define TB_FAILURES_LIMIT (1u << 16) /* of one context; then the oldest are forgotten */

/* A collective is named by the match of its messages without the edge. */
struct tb_failure {
    uint64_t match;
    uint32_t rank;     /* who has given it up */
    uint32_t places;   /* that it has on the board of the ranks, if they have one */
    bool spreads;      /* not everybody was told: pass it on */
    uint32_t stranger; /* the process of another job that has told it; 0: one of ours has */
};

struct tb_failures {
    struct tb_failure *kept; /* a ring of `room`; not in the order of numbers */
    uint32_t next, count, room;
};

/* The last byte of its match. */
static inline uint64_t tb_binding_sort(const struct tb_binding *binding)
{
    return binding->numbered ? TB_MATCH_KEPT | TB_MATCH_START((unsigned)binding->start) : 0;
}

/* The name of a collective. */
static inline uint64_t tb_failure_name(const struct tb_binding *binding)
{
    return tb_match_collective(binding->numbers[0], binding->operation, 0) | tb_binding_sort(binding);
}

/* Whether a failure concerns a collective, whatever its operation was here. */
static inline bool tb_failure_concerns(const struct tb_failure *f, uint64_t name)
{
    const uint64_t operation = tb_match_collective(0, UINT8_MAX, 0);
    return ((f->match ^ name) & ~operation) == 0;
}

/* The failure of that collective which is remembered, or NULL. */
const struct tb_failure *tb_failure_find(const struct tb_context *c, uint64_t name);
/* The same for a collective that is started now, where there are failures. */
const struct tb_failure *tb_failure_at_start(struct tb_context *c, uint64_t name);
/* Whether a message belongs to a collective that was given up: nobody will receive it. */
bool tb_failure_covers(const struct tb_context *c, uint64_t match);
/* False: there is no memory, and this rank would wait for ever if it called the collective later. */
bool tb_failure_keep(struct tb_context *c, const struct tb_failure *f);
void tb_failures_free(struct tb_failures *failures);
/* Tells the story to rank `self`, which is in this one; returns TB_ERR_GIVEN_UP, or what is known better. */
int tb_failure_explain(const struct tb_failure *f, uint32_t self, const struct tb_binding *binding);

#endif

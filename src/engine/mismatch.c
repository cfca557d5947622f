#include "engine/mismatch.h"

#include "engine/channel.h"
#include "engine/engine_state.h"

#define LOOK_LIMIT 256 /* arrivals that are looked at; a mismatch behind them is found when something else arrives */

/* Whoever sent it, and for whomever this rank waits: the number says that it is the same call. */
static bool mismatched(uint64_t mine, uint64_t theirs)
{
    return TB_MATCH_NUMBER(mine) == TB_MATCH_NUMBER(theirs) && (mine & UINT8_MAX) == (theirs & UINT8_MAX) &&
           TB_MATCH_OPERATION(mine) != TB_MATCH_OPERATION(theirs);
}

int tb_mismatch_explain(uint32_t number, uint32_t rank, uint8_t theirs, uint32_t self, uint8_t mine)
{
    return tb_error(
        TB_ERR_MISMATCH,
        "ranks call different collectives: as number %u on this communicator rank %u has called %s, this rank (%u) %s",
        number, rank, tb_operation_name(theirs), self, tb_operation_name(mine));
}

static void mismatch_end(struct tb_request *r, uint32_t source, uint64_t match)
{
    int error = tb_mismatch_explain(TB_MATCH_NUMBER(match), source, (uint8_t)TB_MATCH_OPERATION(match),
                                    r->channel->rank, (uint8_t)TB_MATCH_OPERATION(r->match));
    tb_request_keep_story(r, error);
    tb_request_finish(r, error);
}

void tb_mismatch_arrived(struct tb_context *c, const struct tb_message *m)
{
    struct tb_request *r;
    TB_LIST_EACH (r, &c->requests, struct tb_request, on_context)
        if (r->phase == TB_PHASE_POSTED && mismatched(r->match, m->match)) {
            mismatch_end(r, m->source_rank, m->match);
            return;
        }
    if (c->channel != NULL)
        tb_channel_drives_hear(c->channel, m);
}

static const struct tb_message *find_mismatched(const struct tb_context *c, uint64_t match)
{
    int looked = 0;
    const struct tb_arrival *a;
    TB_LIST_EACH (a, &c->arrivals, const struct tb_arrival, in_context) {
        if (mismatched(match, a->message.match))
            return &a->message;
        if (++looked == LOOK_LIMIT)
            break;
    }
    return NULL;
}

bool tb_mismatch_posted(struct tb_context *c, struct tb_request *r)
{
    const struct tb_message *m = find_mismatched(c, r->match);
    if (m != NULL)
        mismatch_end(r, m->source_rank, m->match);
    return m != NULL;
}

bool tb_mismatch_waits(const struct tb_context *c, uint64_t match, uint32_t *rank, uint8_t *theirs)
{
    const struct tb_message *m = find_mismatched(c, match);
    if (m == NULL)
        return false;
    *rank = m->source_rank;
    *theirs = (uint8_t)TB_MATCH_OPERATION(m->match);
    return true;
}

/* A receive in which a run waits; NULL: there is none. */
static struct tb_request *run_awaits(const struct tb_run *run)
{
    struct tb_request *r;
    TB_LIST_EACH (r, &run->contexts[0]->requests, struct tb_request, on_context)
        if (r->phase == TB_PHASE_POSTED && TB_MATCH_NUMBER(r->match) == run->binding.numbers[0] &&
            (r->match & UINT8_MAX) == 0)
            return r;
    return NULL;
}

bool tb_mismatch_overheard(struct tb_engine *e)
{
    const struct tb_run *run;
    uint32_t rank;
    uint8_t operation;
    TB_LIST_EACH (run, &e->runs.all, const struct tb_run, in_all) {
        const struct tb_channel *channel = run->contexts[0]->channel;
        struct tb_request *r = channel->driven && !run->binding.numbered ? run_awaits(run) : NULL;
        uint32_t number = run->binding.numbers[0];
        if (r == NULL || !tb_driven_overhear(channel->drivers, number, run->binding.operation, &rank, &operation))
            continue;
        mismatch_end(r, rank, tb_match_collective(number, operation, 0));
        return true;
    }
    return false;
}

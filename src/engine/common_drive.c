#include "engine/common_drive.h"

#include "engine/engine_state.h"

#define HEARSAY_NS 200000000u /* for what another one was told before this rank to come here, too */

const char *tb_common_name(unsigned what)
{
    static const enum tb_operation operations[TB_COMPOSITE_COUNT] = {
        TB_OPERATION_BARRIER, TB_OPERATION_BCAST,    TB_OPERATION_REDUCE,        TB_OPERATION_ALLREDUCE,
        TB_OPERATION_SCAN,    TB_OPERATION_EXSCAN,   TB_OPERATION_GATHER,        TB_OPERATION_ALLGATHER,
        TB_OPERATION_SCATTER, TB_OPERATION_ALLTOALL, TB_OPERATION_REDUCE_SCATTER};
    return what < TB_COMPOSITE_COUNT ? tb_operation_name(operations[what]) : "nothing known";
}

/* As this rank has called it. */
static const char *name_here(const struct tb_common_drive *s)
{
    return s->operation < TB_OPERATION_COUNT ? tb_common_name(s->what) : tb_operation_name(s->operation);
}

int tb_common_different(const struct tb_common_drive *s, uint32_t rank, const char *theirs)
{
    if (theirs == NULL && s->operation >= TB_OPERATION_COUNT)
        return tb_error(
            TB_ERR_MISMATCH,
            "rank %u has gone on without %s: not all ranks have come to it, or it has called something else", rank,
            tb_operation_name(s->operation));
    if (theirs == NULL)
        theirs = "another one";
    return tb_error(TB_ERR_MISMATCH,
                    "ranks call different collectives: as number %u on this communicator rank %u has called %s, this "
                    "rank (%u) %s",
                    s->drive.collective, rank, theirs, tb_common_rank(s, s->rank), name_here(s));
}

int tb_common_unlike(const struct tb_common_drive *s, uint32_t rank, uint64_t theirs, uint64_t mine)
{
    return tb_error(theirs > mine ? TB_ERR_TRUNCATE : TB_ERR_MISMATCH,
                    "%s: rank %u has sent %llu bytes where this rank expects %llu", tb_operation_name(s->operation),
                    tb_common_rank(s, rank), (unsigned long long)theirs, (unsigned long long)mine);
}

int tb_common_disagreement(const struct tb_common_drive *s, const struct tb_board_cell *cell, uint32_t rank)
{
    if (cell->collective != s->drive.collective)
        return tb_common_different(s, tb_common_rank(s, rank), NULL);
    if (cell->what != s->what)
        return tb_common_different(s, tb_common_rank(s, rank), tb_common_name(cell->what));
    if (cell->operation != s->operation)
        return tb_common_different(s, tb_common_rank(s, rank), tb_operation_name(cell->operation));
    if (cell->root != s->root)
        return tb_error(TB_ERR_MISMATCH, "%s: rank %u takes rank %u for the root, this rank takes rank %u",
                        tb_common_name(s->what), tb_common_rank(s, rank),
                        cell->root < s->size ? tb_common_rank(s, cell->root) : cell->root, tb_common_rank(s, s->root));
    if (!tb_common_exchanges(s) && cell->bytes != s->bytes)
        return tb_common_unlike(s, rank, cell->bytes, s->bytes);
    return tb_error(TB_ERR_MISMATCH,
                    "%s: rank %u cannot give the data that this rank expects: ranks do not agree about sizes",
                    tb_operation_name(s->operation), tb_common_rank(s, rank));
}

int tb_common_abandoned(const struct tb_common_drive *s, uint32_t rank)
{
    return tb_error(TB_ERR_MISMATCH, "%s: rank %u has given up", name_here(s), tb_common_rank(s, rank));
}

bool tb_common_is_missed(struct tb_common_drive *s)
{
    uint64_t now = tb_clock_now(s->common->engine->config.transport.clock);
    if (s->missed == 0)
        s->missed = now;
    return now - s->missed >= HEARSAY_NS;
}

static uint64_t line_deadline(const struct tb_common *c)
{
    uint64_t next = TB_NEVER;
    const struct tb_common_drive *s;
    TB_LIST_EACH (s, &c->line, const struct tb_common_drive, in_line)
        if (TB_UNLIKELY(s->missed > 0) && s->missed + HEARSAY_NS < next)
            next = s->missed + HEARSAY_NS;
    return next;
}

uint64_t tb_common_deadline(const struct tb_list *active)
{
    uint64_t next = TB_NEVER;
    const struct tb_common *c;
    TB_LIST_EACH (c, active, const struct tb_common, busy) {
        uint64_t own = line_deadline(c);
        next = own < next ? own : next;
    }
    return next;
}

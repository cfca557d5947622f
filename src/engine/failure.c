#include "engine/failure.h"

#include <stdlib.h>

const struct tb_failure *tb_failure_find(const struct tb_context *c, uint64_t name)
{
    for (uint32_t i = 0; c->failures != NULL && i < c->failures->count; i++)
        if (tb_failure_concerns(&c->failures->kept[i], name))
            return &c->failures->kept[i];
    return NULL;
}

bool tb_failure_covers(const struct tb_context *c, uint64_t match)
{
    return tb_failure_find(c, tb_match_collective(TB_MATCH_NUMBER(match), 0, 0) | (match & UINT8_MAX)) != NULL;
}

bool tb_failure_keep(struct tb_context *c, const struct tb_failure *f)
{
    if (c->failures == NULL)
        c->failures = calloc(1, sizeof *c->failures);
    if (c->failures == NULL)
        return false;
    c->failures->kept[c->failures->next++ % TB_FAILURES] = *f;
    if (c->failures->count < TB_FAILURES)
        c->failures->count++;
    return true;
}

int tb_failure_explain(const struct tb_failure *f)
{
    return tb_error(TB_ERR_GIVEN_UP, "rank %u has given up %s, number %u on this communicator, and says why itself",
                    f->rank, tb_operation_name(TB_MATCH_OPERATION(f->match)), TB_MATCH_NUMBER(f->match));
}

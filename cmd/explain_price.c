#include <stdio.h>

#include "explain_price.h"
#include "explain_tree.h"
#include "planner/planner.h"

int tb_explain_price(const struct tb_collective *call, bool commutative, bool json, uint64_t time)
{
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    struct tb_collective any = *call;
    if (!call->reproducible || !tb_rating_possible(call) || time == TB_COST_NEVER)
        return TB_OK;
    any.reproducible = false;
    any.commutative = commutative;
    uint32_t count = tb_rating_list(&any, NULL, rows);
    int error = tb_rating_rate(call->shape, &any, rows, count, true, NULL);
    if (error != TB_OK || count == 0)
        return error;
    tb_rating_sort(rows, count);
    /* What runs is one of these, and may be predicted as closely as the best of them. */
    uint64_t least = rows[0].time < time ? rows[0].time : time;
    double times = least > 0 ? (double)time / (double)least : 1;
    if (json) {
        printf(", \"reproducible\": {\"seconds\": %.12f, \"without\": \"%s\", ", (double)time / 1e12,
               rows[0].algorithm->name);
        tb_explain_argument_json(rows[0].argument);
        printf(", \"seconds_without\": %.12f, \"price\": %.3f}\n", (double)least / 1e12, times);
    } else {
        printf("\n  The price of reproducible: what runs takes %.3f us; without the parameter %s would take %.3f us,\n"
               "  so it is %.2f times as long.\n",
               (double)time / 1e6, rows[0].algorithm->name, (double)least / 1e6, times);
    }
    return TB_OK;
}

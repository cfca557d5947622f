#include "topology/measure_fit.h"
#include "topology/cost_curve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of what the slower one carries alone: so much of it beside the faster one. */
#define SHARED_MOST    0.25
#define SEPARATE_LEAST 0.65
#define UNEQUAL        0.2  /* of the faster one */
#define DISTURBED      0.75 /* of the faster one: what two carry together is no less, unless something is in the way */
#define FITS           0.1

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

enum tb_sharing tb_sharing_judge(const struct tb_sharing_round *r)
{
    double fast = fmax(r->alone[0], r->alone[1]), slow = fmin(r->alone[0], r->alone[1]);
    if (!(slow > 0) || !isfinite(fast))
        return TB_SHARING_UNCLEAR;
    if (slow < UNEQUAL * fast)
        return TB_SHARING_UNEQUAL;
    double both = r->together[0] + r->together[1], more = (both - fast) / slow;
    if (both < DISTURBED * fast)
        return TB_SHARING_UNCLEAR;
    return more <= SHARED_MOST ? TB_SHARING_SHARED : more >= SEPARATE_LEAST ? TB_SHARING_SEPARATE : TB_SHARING_UNCLEAR;
}

struct tb_sharing_round tb_sharing_best(const struct tb_sharing_round *rounds, uint32_t count)
{
    struct tb_sharing_round best = {{0, 0}, {0, 0}};
    for (uint32_t i = 0; i < count; i++) {
        const struct tb_sharing_round *r = &rounds[i];
        best.alone[0] = fmax(best.alone[0], r->alone[0]);
        best.alone[1] = fmax(best.alone[1], r->alone[1]);
        if (r->together[0] + r->together[1] > best.together[0] + best.together[1])
            memcpy(best.together, r->together, sizeof best.together);
    }
    return best;
}

const char *tb_sharing_name(enum tb_sharing sharing)
{
    static const char *const names[] = {
        [TB_SHARING_UNCLEAR] = "unclear",
        [TB_SHARING_UNEQUAL] = "not found out, as one is much slower than the other",
        [TB_SHARING_SEPARATE] = "they do not share a line",
        [TB_SHARING_SHARED] = "they share a line",
    };
    return names[sharing];
}

/* ---- latencies --------------------------------------------------------------------------------------------------- */

/* Least squares: with S the sum of all parts and R the sum of a place's latencies, R = (n - 2) part + S. */
bool tb_uplink_latencies_fit(uint32_t count, const double *latencies, double tolerance, double *parts)
{
    double total = 0;
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = 0;
        for (uint32_t k = 0; k < count; k++) {
            if (k != i && !(latencies[(size_t)i * count + k] >= 0))
                return false;
            parts[i] += k != i ? latencies[(size_t)i * count + k] : 0;
        }
        total += parts[i] / 2;
    }
    if (count < 3)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = (parts[i] - total / (count - 1)) / (count - 2);
        if (parts[i] < -tolerance)
            return false;
        parts[i] = fmax(parts[i], 0);
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++) {
            double seen = latencies[(size_t)i * count + k];
            if (fabs(seen - parts[i] - parts[k]) > fmax(FITS * seen, tolerance))
                return false;
        }
    return true;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* A row of points that have one level, since what was measured falls there. */
struct level {
    double time;
    uint32_t count;
};

void tb_measured_table_print(const struct tb_measured_point *points, uint32_t count, double send, double receive,
                             char text[TB_GRID_TABLE_BYTES])
{
    struct level levels[TB_COST_POINTS];
    uint32_t used = 0, point = 0;
    size_t at = 0;
    count = count < TB_COST_POINTS ? count : TB_COST_POINTS;
    for (uint32_t i = 0; i < count; i++) {
        levels[used++] = (struct level){.time = points[i].gap, .count = 1};
        for (; used > 1 && levels[used - 1].time < levels[used - 2].time; used--) {
            struct level *a = &levels[used - 2], *b = &levels[used - 1];
            a->time = (a->time * a->count + b->time * b->count) / (a->count + b->count);
            a->count += b->count;
        }
    }
    text[0] = 0;
    for (uint32_t i = 0; i < used; i++)
        for (uint32_t k = 0; k < levels[i].count && at < TB_GRID_TABLE_BYTES; k++, point++)
            at += (size_t)snprintf(text + at, TB_GRID_TABLE_BYTES - at, "%s%.0f:%.0f:%.0f:%.0f", point > 0 ? "," : "",
                                   points[point].bytes, send, receive, levels[i].time);
    if (at >= TB_GRID_TABLE_BYTES)
        text[0] = 0;
}

#include "topology/cost_curve.h"

#include <errno.h>
#include <stdlib.h>

#define PS_PER_NS 1000u
#define PS_PER_S  1000000000000u

static uint64_t saturate(unsigned __int128 time)
{
    return time > TB_COST_NEVER ? TB_COST_NEVER : (uint64_t)time;
}

uint64_t tb_cost_at(const struct tb_cost_curve *curve, uint64_t bytes)
{
    if (curve->count == 0)
        return 0;
    if (curve->count == 1)
        return curve->points[0].time;
    uint32_t i = 1;
    while (i + 1 < curve->count && bytes > curve->points[i].bytes)
        i++;
    uint64_t b0 = curve->points[i - 1].bytes, b1 = curve->points[i].bytes;
    uint64_t t0 = curve->points[i - 1].time, t1 = curve->points[i].time;
    /* A measured curve may fall a little between two points. */
    if (t1 < t0)
        return bytes >= b1 ? t1 : t0 - (uint64_t)((unsigned __int128)(t0 - t1) * (bytes - b0) / (b1 - b0));
    return saturate(t0 + (unsigned __int128)(t1 - t0) * (bytes - b0) / (b1 - b0));
}

uint64_t tb_cost_least(const struct tb_cost_curve *curve)
{
    uint64_t least = curve->count > 0 ? curve->points[0].time : 0;
    for (uint32_t i = 1; i < curve->count; i++)
        least = curve->points[i].time < least ? curve->points[i].time : least;
    return least;
}

struct tb_cost_curve tb_cost_line(uint64_t base, uint64_t bandwidth)
{
    const uint64_t far = 1ull << 30;
    struct tb_cost_curve line = {.count = 1, .points = {{0, base}}};
    if (bandwidth == 0)
        return line;
    line.count = 2;
    line.points[1].bytes = far;
    line.points[1].time = saturate(base + (unsigned __int128)far * 8 * PS_PER_S / bandwidth);
    return line;
}

/* ---- what was measured ------------------------------------------------------------------------------------------- */

static const char *point_parse(const char *text, struct tb_cost_curve *const curves[3])
{
    uint64_t values[4];
    for (int i = 0; i < 4; i++) {
        char *end;
        errno = 0;
        values[i] = strtoull(text, &end, 10);
        bool good = end != text && *text != '-' && errno == 0 && values[i] < (uint64_t)INT64_MAX / PS_PER_NS;
        if (!good || (i < 3 ? *end != ':' : *end != ',' && *end != 0))
            return NULL;
        text = end + (*end != 0);
    }
    for (int i = 0; i < 3; i++) {
        struct tb_cost_curve *c = curves[i];
        if (c == NULL)
            continue;
        bool rising = c->count == 0 ? values[0] == 0 : c->points[c->count - 1].bytes < values[0];
        if (!rising || c->count == TB_COST_POINTS)
            return NULL;
        c->points[c->count].bytes = values[0];
        c->points[c->count++].time = values[i + 1] * PS_PER_NS;
    }
    return text;
}

bool tb_cost_points_parse(const char *text, struct tb_cost_curve *send, struct tb_cost_curve *receive,
                          struct tb_cost_curve *gap)
{
    struct tb_cost_curve *const curves[3] = {send, receive, gap};
    for (int i = 0; i < 3; i++)
        if (curves[i] != NULL)
            *curves[i] = (struct tb_cost_curve){.count = 0};
    const char *at = text;
    while (at != NULL && *at != 0)
        at = point_parse(at, curves);
    return at != NULL && send->count > 0; // NOLINT(clang-analyzer-core.NullDereference): only the others may be NULL
}

#include "planner/growth.h"

#define ONE_BITS    30u
#define ONE         (1ull << ONE_BITS)
#define LOG_BITS    12u /* behind the point of a logarithm to base 2 */
#define LOG_ONE     ((int64_t)1 << LOG_BITS)
#define STEEPEST    (2 * LOG_ONE)  /* with the square of the ranks */
#define FLAT        (LOG_ONE / 64) /* what differs from a tree by less than this is taken for one */
#define RISE_BITS   56u            /* of times, and of factors that are compared */
#define FACTOR_BITS 64u

/* The logarithm of a number above 0. */
static int64_t log_of(unsigned __int128 number)
{
    int64_t whole = 0;
    while (number >> 32 != 0) {
        number >>= 1;
        whole++;
    }
    uint64_t x = (uint64_t)number;
    int top = 63 - __builtin_clzll(x);
    int64_t log = (whole + top) * LOG_ONE;
    x <<= 31 - top;
    for (int64_t bit = LOG_ONE / 2; bit > 0; bit /= 2) {
        x = x * x >> 31;
        if (x >> 32 != 0) {
            log += bit;
            x >>= 1;
        }
    }
    return log;
}

/* 2 to the power of `log`, in parts of ONE. */
static unsigned __int128 power_of(int64_t log)
{
    /* Roots of 2: the square root, that of it, and so on. */
    static const uint64_t roots[LOG_BITS] = {1518500250, 1276901417, 1170923762, 1121280436, 1097253708, 1085434106,
                                             1079572136, 1076653033, 1075196443, 1074468888, 1074105294, 1073923544};
    int64_t whole = log >> LOG_BITS, part = log & (LOG_ONE - 1);
    uint64_t power = ONE;
    for (uint32_t i = 0; i < LOG_BITS; i++)
        if ((part >> (LOG_BITS - 1 - i) & 1) != 0)
            power = power * roots[i] >> ONE_BITS;
    if (whole < 0)
        return whole < -63 ? 0 : power >> -whole;
    return (unsigned __int128)power << (whole > 64 ? 64 : whole);
}

/* What was seen, as rises; logarithms of ranks and ranks between points. */
struct growth {
    uint64_t before, rise;                  /* from the first to the second point, and to the third */
    int64_t before_log, rise_log, more_log; /* `more`: from there on */
    uint64_t before_ranks, rise_ranks, more_ranks;
};

static bool product(unsigned __int128 a, unsigned __int128 b, unsigned __int128 *both)
{
    return !__builtin_mul_overflow(a, b, both);
}

/* As a + b * log(ranks) + c * ranks, the time of a tree and that of a ring together. False: b or c would be below 0. */
static bool even_growth(const struct growth *g, uint64_t *rest)
{
    unsigned __int128 late = (unsigned __int128)g->rise * (uint64_t)g->before_log,
                      early = (unsigned __int128)g->before * (uint64_t)g->rise_log;
    /* c is `over` / `under`. */
    int64_t under = (int64_t)g->rise_ranks * g->before_log - (int64_t)g->before_ranks * g->rise_log;
    unsigned __int128 over = late - early, linear;
    if (late < early || under <= 0 || (unsigned __int128)g->before * (uint64_t)under < over * g->before_ranks)
        return false;
    int64_t more = (int64_t)g->more_ranks * g->before_log - (int64_t)g->before_ranks * g->more_log;
    unsigned __int128 all = (unsigned __int128)g->before * (uint64_t)g->more_log / (uint64_t)g->before_log;
    if (!product(over, more > 0 ? (uint64_t)more : 0, &linear))
        linear = ~(unsigned __int128)0;
    all += linear / (uint64_t)under / (uint64_t)g->before_log;
    *rest = all > UINT64_MAX ? UINT64_MAX : (uint64_t)all;
    return true;
}

/* Whether what was seen grows by less than with this power of the ranks: then the second rise would be
 * (c^rise - 1) / (1 - c^-before) times the first one, for what a doubling of the ranks makes of it, c. */
static bool grows_less(const struct growth *g, int64_t power)
{
    unsigned __int128 then = power_of(power * g->rise_log / LOG_ONE), ago = power_of(-power * g->before_log / LOG_ONE);
    unsigned __int128 top = power > 0 ? then - ONE : ONE - then, bottom = power > 0 ? ONE - ago : ago - ONE;
    uint64_t rise = g->rise, before = g->before;
    if (power > -FLAT && power < FLAT) {
        top = (uint64_t)g->rise_log;
        bottom = (uint64_t)g->before_log;
    }
    for (; rise >> RISE_BITS != 0 || before >> RISE_BITS != 0; rise >>= 1)
        before >>= 1;
    for (; top >> FACTOR_BITS != 0 || bottom >> FACTOR_BITS != 0; top >>= 1)
        bottom >>= 1;
    return rise * bottom < before * top;
}

/* The power of the ranks with which both rises agree. */
static int64_t power_find(const struct growth *g)
{
    int64_t low = -STEEPEST, high = STEEPEST;
    if (!grows_less(g, high))
        return high;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (grows_less(g, middle))
            high = middle;
        else
            low = middle;
    }
    return low;
}

/* As a + b * c^log(ranks), a power of the ranks: rises tell c, and so what is still to come: the last rise *
 * (c^more - 1) / (1 - c^-last). Where c is 1 it is a straight line. */
static uint64_t power_growth(const struct growth *g)
{
    int64_t growth = g->before > 0 ? power_find(g) : LOG_ONE;
    if (growth > -FLAT && growth < FLAT) {
        unsigned __int128 line = (unsigned __int128)g->rise * (uint64_t)g->more_log / (uint64_t)g->rise_log;
        return line > UINT64_MAX ? UINT64_MAX : (uint64_t)line;
    }
    /* Both in parts of ONE; of a growth below 1 both change their sign. */
    unsigned __int128 then = power_of(growth * g->more_log / LOG_ONE), ago = power_of(-growth * g->rise_log / LOG_ONE);
    unsigned __int128 top = growth > 0 ? then - ONE : ONE - then, bottom = growth > 0 ? ONE - ago : ago - ONE;
    uint32_t shift = top >> 64 != 0 ? 32 : 0;
    unsigned __int128 rest = bottom > 0 ? (unsigned __int128)g->rise * (uint64_t)(top >> shift) / bottom : 0;
    return rest > UINT64_MAX >> shift ? UINT64_MAX : (uint64_t)rest << shift;
}

uint64_t tb_growth_continue(const struct tb_growth_point p[3], uint32_t ranks)
{
    uint64_t rest, all;
    TB_ASSERT(p[0].ranks > 0 && p[0].ranks < p[1].ranks && p[1].ranks < p[2].ranks && p[2].ranks <= ranks);
    const struct growth g = {.before = p[1].value > p[0].value ? p[1].value - p[0].value : 0,
                             .rise = p[2].value > p[1].value ? p[2].value - p[1].value : 0,
                             .before_log = log_of(p[1].ranks) - log_of(p[0].ranks),
                             .rise_log = log_of(p[2].ranks) - log_of(p[1].ranks),
                             .more_log = log_of(ranks) - log_of(p[2].ranks),
                             .before_ranks = p[1].ranks - p[0].ranks,
                             .rise_ranks = p[2].ranks - p[1].ranks,
                             .more_ranks = ranks - p[2].ranks};
    if (g.rise == 0 || g.more_log == 0 || g.before_log == 0 || g.rise_log == 0)
        return p[2].value;
    if (!even_growth(&g, &rest))
        rest = power_growth(&g);
    return __builtin_add_overflow(p[2].value, rest, &all) ? UINT64_MAX : all;
}

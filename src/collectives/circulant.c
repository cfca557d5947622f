#include "collectives/circulant.h"

/* The search for what a rank receives. Every sum of different skips is a way from the root along which the block of its
 * smallest skip travels. For each round in turn the way is wanted that ends among the ranks from which the round can
 * reach this one, nearer to the root than the way before, and whose smallest skip is the largest that is not taken. */
struct search {
    const struct tb_circulant *c;
    uint64_t end;     /* this rank, behind one turn of the ring */
    uint32_t round;   /* that is looked for */
    int32_t *receive; /* numbers of skips */
    /* Numbers of skips that are not taken, a ring from q down to 0; q + 1 is where it begins and ends. */
    uint32_t next[TB_CIRCULANT_ROUNDS + 2], before[TB_CIRCULANT_ROUNDS + 2];
};

static void search_take(struct search *s, uint32_t e)
{
    s->next[s->before[e]] = s->next[e];
    s->before[s->next[e]] = s->before[e];
}

/* The furthest rank from which what is sent in round k reaches this one in time. */
static uint64_t search_reach(const struct search *s, uint32_t k)
{
    return s->end - s->c->skip[k];
}

/* Goes on from `at`, to which a way leads, by skips from number e down, to ranks before `limit`. It goes as deep as
 * there are skips. */
static void search_from(struct search *s, uint64_t at, uint64_t limit, uint32_t e)
{
    uint32_t q = s->c->q;
    for (; e <= q && s->round < q; e = s->next[e]) {
        uint64_t to = at + s->c->skip[e];
        if (to > search_reach(s, s->round) || to >= limit)
            continue;
        if (to <= search_reach(s, s->round + 1))
            search_from(s, to, limit, e);
        if (s->round == q || at > search_reach(s, s->round + 1))
            return;
        limit = to;
        s->receive[s->round++] = (int32_t)e;
        search_take(s, e);
    }
}

void tb_circulant_open(struct tb_circulant *c, uint32_t p)
{
    TB_ASSERT(p > 0);
    *c = (struct tb_circulant){.p = p};
    while (c->q < TB_CIRCULANT_ROUNDS && (1ull << c->q) < p)
        c->q++;
    c->skip[c->q] = p;
    for (uint32_t k = c->q; k-- > 0;)
        c->skip[k] = c->skip[k + 1] - c->skip[k + 1] / 2;
}

/* The greedy way from 0 to r takes the largest skips that fit; the last of them is the base. */
static uint32_t circulant_base(const struct tb_circulant *c, uint32_t r)
{
    for (uint32_t k = c->q; r > 0 && k-- > 0;)
        if (c->skip[k] <= r) {
            r -= c->skip[k];
            if (r == 0)
                return k;
        }
    return c->q;
}

static void circulant_receive(const struct tb_circulant *c, uint32_t r, int32_t *receive)
{
    int32_t q = (int32_t)c->q, base = (int32_t)circulant_base(c, r);
    struct search s = {.c = c, .end = (uint64_t)r + c->p, .receive = receive};
    for (uint32_t e = 0; e <= c->q + 1; e++) {
        s.next[e] = e > 0 ? e - 1 : c->q + 1;
        s.before[e] = e <= c->q ? e + 1 : 0;
    }
    search_take(&s, (uint32_t)base);
    search_from(&s, 0, 2ull * c->p, c->q);
    TB_ASSERT(s.round == c->q);
    for (int32_t k = 0; k < q; k++)
        receive[k] = receive[k] == q ? base : receive[k] - q;
}

/* What is received there, which is right for every rank; most of it follows from the way to r. */
static int32_t circulant_ask(const struct tb_circulant *c, uint32_t r, uint32_t k)
{
    int32_t receive[TB_CIRCULANT_ROUNDS];
    uint32_t to = tb_circulant_after(c, r, c->skip[k]);
    circulant_receive(c, to, receive);
    return receive[k];
}

/* Going down from all p ranks, each skip cuts those that are left in two; r is the `rest`th of `end`. Whom round k
 * reaches in the other half has the same way behind it, but for the ends of the halves, which are not always equally
 * long. */
static void circulant_send(struct tb_circulant *c, uint32_t r)
{
    int32_t q = (int32_t)c->q, block = (int32_t)c->base;
    uint64_t rest = r, end = c->p;
    for (uint32_t k = c->q; k-- > 1 && r > 0;) {
        bool lower = rest < c->skip[k], known = lower ? rest + c->skip[k] < end : rest > c->skip[k];
        block = lower ? block : (int32_t)k - q;
        c->send[k] = known ? block : circulant_ask(c, r, k);
        rest -= lower ? 0 : c->skip[k];
        end = lower ? (end < c->skip[k] ? end : c->skip[k]) : end - c->skip[k];
    }
    if (q > 0)
        c->send[0] = (int32_t)c->base - q;
    for (uint32_t k = 0; k < c->q && r == 0; k++)
        c->send[k] = (int32_t)k;
}

void tb_circulant_find(struct tb_circulant *c, uint32_t r)
{
    TB_ASSERT(r < c->p);
    c->base = circulant_base(c, r);
    circulant_receive(c, r, c->receive);
    circulant_send(c, r);
}

struct tb_circulant_blocks tb_circulant_blocks(const struct tb_circulant *c, int32_t value, uint32_t n)
{
    struct tb_circulant_blocks blocks = {.last = value >= 0};
    int64_t q = c->q, x = (q - (n - 1) % q) % q; /* so many blocks before the first one fill the first phase */
    int64_t first = ((value - x) % q + q) % q, end = (value < 0 ? value : value - q) + (int64_t)n;
    if (end > first) {
        blocks.first = (uint32_t)first;
        blocks.count = (uint32_t)((end - first + q - 1) / q);
        blocks.phase = (uint32_t)((first - value + x) / q);
    }
    return blocks;
}

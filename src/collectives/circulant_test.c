/* Circulant schedules by brute force: what the tables promise for every rank, and rounds in which nobody sends what it
 * has not got. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collectives/circulant.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERY_RANKS 300
#define ROUND_RANKS 40
#else
#define EVERY_RANKS 2060
#define ROUND_RANKS 260
#endif
#define BLOCKS 80

static struct tb_circulant ranks[EVERY_RANKS];

static void all_ranks(uint32_t p)
{
    for (uint32_t r = 0; r < p; r++) {
        tb_circulant_open(&ranks[r], p);
        tb_circulant_find(&ranks[r], r);
    }
}

/* Of one phase a rank gets q different blocks: those before its base, relative to this phase, but for the one that the
 * base itself is of the next. */
static void check_received(const struct tb_circulant *c, uint32_t r)
{
    int32_t q = (int32_t)c->q, base = (int32_t)c->base;
    uint64_t seen = 0;
    for (int32_t k = 0; k < q; k++) {
        int32_t v = c->receive[k];
        if (v < 0 ? v < -q || v == base - q : v != base || v > k)
            fail_msg("rank %u of %u receives %d in round %d, base %d", r, c->p, v, k, base);
        seen |= 1ull << (v < 0 ? v + q : v);
    }
    if (seen != (1ull << q) - 1)
        fail_msg("rank %u of %u receives a block twice", r, c->p);
}

/* What it sends is what the other one receives, and came before: in an earlier round of the phase, or, as the base, in
 * an earlier phase. The root sends one block after the other. */
static void check_sent(const struct tb_circulant *c, uint32_t r, uint32_t k, const struct tb_circulant *to)
{
    int32_t v = c->send[k];
    bool held = r == 0 ? v == (int32_t)k : v == (int32_t)c->base - (int32_t)c->q;
    for (uint32_t j = 0; j < k && r > 0; j++)
        held = held || c->receive[j] == v;
    if (!held)
        fail_msg("rank %u of %u sends %d in round %u and has not got it", r, c->p, v, k);
    if (to->receive[k] != v)
        fail_msg("rank %u of %u sends %d in round %u, and %d is awaited", r, c->p, v, k, to->receive[k]);
}

static void tables_fit_together(void **state)
{
    for (uint32_t p = 1; p <= EVERY_RANKS; p++) {
        all_ranks(p);
        for (uint32_t r = 0; r < p; r++) {
            if (r > 0)
                check_received(&ranks[r], r);
            for (uint32_t k = 0; k < ranks[r].q; k++) {
                uint32_t to = tb_circulant_after(&ranks[r], r, ranks[r].skip[k]);
                assert_int_equal(tb_circulant_before(&ranks[r], to, ranks[r].skip[k]), r);
                if (to != 0)
                    check_sent(&ranks[r], r, k, &ranks[to]);
            }
        }
    }
}

static void so_do_those_of_many_ranks(void **state)
{
    static const uint32_t sizes[] = {4095,     4096,           4097,           10007,          65535,
                                     65537,    1000003,        (1u << 20) - 1, 1u << 20,       (1u << 20) + 1,
                                     1u << 31, (1u << 31) + 1, 4294967291u,    UINT32_MAX - 1, UINT32_MAX};
    struct tb_circulant c, other;
    uint64_t random = 1;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int n = 0; n < 240; n++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            /* The first and the last ranks, those about the middle, and any. */
            uint32_t r = (uint32_t)((random >> 32) % sizes[i]), near = (uint32_t)n / 8;
            r = n % 4 == 0 ? near : n % 4 == 1 ? sizes[i] - 1 - near : n % 4 == 2 ? sizes[i] / 2 + near : r;
            tb_circulant_open(&c, sizes[i]);
            tb_circulant_open(&other, sizes[i]);
            tb_circulant_find(&c, r);
            if (r > 0)
                check_received(&c, r);
            for (uint32_t k = 0; k < c.q; k++) {
                tb_circulant_find(&other, tb_circulant_after(&c, r, c.skip[k]));
                if (tb_circulant_after(&c, r, c.skip[k]) != 0)
                    check_sent(&c, r, k, &other);
            }
        }
}

/* As published. */
static void seventeen_ranks(void **state)
{
    static const uint32_t skips[] = {1, 2, 3, 5, 9, 17};
    static const int32_t receive[5][17] = {{-4, 0, -5, -4, -3, -5, -2, -5, -4, -3, -1, -5, -4, -3, -5, -2, -5},
                                           {-5, -4, 1, -5, -4, -3, -3, -2, -5, -4, -3, -1, -5, -4, -3, -3, -2},
                                           {-2, -2, -2, 2, 0, -4, -4, -3, -2, -2, -4, -3, -1, -1, -4, -4, -3},
                                           {-1, -3, -3, -2, -2, 3, 0, 1, 2, -5, -2, -2, -2, -2, -1, -1, -1},
                                           {-3, -1, -1, -1, -1, -1, -1, -1, -1, 4, 0, 1, 2, 0, 3, 0, 1}};
    all_ranks(17);
    assert_int_equal(ranks[0].q, 5);
    assert_memory_equal(ranks[0].skip, skips, sizeof skips);
    for (uint32_t r = 0; r < 17; r++)
        for (uint32_t k = 0; k < 5; k++) {
            assert_int_equal(ranks[r].receive[k], receive[k][r]);
            assert_int_equal(ranks[r].send[k], receive[k][(r + skips[k]) % 17]);
        }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static uint32_t has[ROUND_RANKS][BLOCKS]; /* the round in which the block came, counted from 1; 0: it has not come */

/* The block of a value in a round: none (-1) before the first, and the last one for those behind it. */
static int64_t block_in(const struct tb_circulant *c, int32_t value, uint32_t n, uint32_t round)
{
    int64_t q = c->q, x = (q - (n - 1) % q) % q, block = value - x + (round + x) / q * q;
    return block < 0 ? -1 : block < n ? block : n - 1;
}

/* Which of its blocks the value means in a round, by what tb_circulant_blocks says. */
static int64_t block_listed(const struct tb_circulant *c, int32_t value, uint32_t n, uint32_t round)
{
    struct tb_circulant_blocks b = tb_circulant_blocks(c, value, n);
    uint32_t q = c->q, x = (q - (n - 1) % q) % q, phase = (round + x) / q, last = (n - 1 + x) / q;
    if (b.last && phase == last)
        return n - 1;
    return phase >= b.phase && phase - b.phase < b.count ? (int64_t)b.first + (phase - b.phase) * q : -1;
}

static void check_round(uint32_t p, uint32_t n, uint32_t round)
{
    uint32_t q = ranks[0].q, x = (q - (n - 1) % q) % q, k = (round + x) % q;
    for (uint32_t r = 0; r < p; r++) {
        uint32_t to = tb_circulant_after(&ranks[r], r, ranks[r].skip[k]);
        int64_t block = block_in(&ranks[r], ranks[r].send[k], n, round);
        if (block_listed(&ranks[r], ranks[r].send[k], n, round) != block)
            fail_msg("rank %u of %u, %u blocks, round %u: block %lld is not listed", r, p, n, round, (long long)block);
        if (to == 0)
            continue;
        assert_int_equal(block, block_in(&ranks[to], ranks[to].receive[k], n, round));
        assert_int_equal(block, block_listed(&ranks[to], ranks[to].receive[k], n, round));
        if (block < 0)
            continue;
        if (r != 0 && (has[r][block] == 0 || has[r][block] > round))
            fail_msg("rank %u of %u sends block %lld of %u in round %u and has not got it", r, p, (long long)block, n,
                     round);
        if (has[to][block] != 0)
            fail_msg("rank %u of %u gets block %lld of %u twice", to, p, (long long)block, n);
        has[to][block] = round + 1;
    }
}

static void check_rounds(uint32_t p, uint32_t n)
{
    memset(has, 0, sizeof has);
    for (uint32_t round = 0; round < n - 1 + ranks[0].q; round++)
        check_round(p, n, round);
    for (uint32_t r = 1; r < p; r++)
        for (uint32_t block = 0; block < n; block++)
            if (has[r][block] == 0)
                fail_msg("rank %u of %u has not got block %u of %u", r, p, block, n);
}

static void everyone_has_all_after_the_fewest_rounds(void **state)
{
    for (uint32_t p = 2; p <= ROUND_RANKS; p++) {
        all_ranks(p);
        uint32_t q = ranks[0].q, counts[] = {1, 2, 3, q, q + 1, 2 * q - 1, 2 * q + 3, 64};
        assert_true(p <= 1u << q && p > 1u << (q - 1));
        for (int i = 0; i < 8; i++)
            check_rounds(p, counts[i]);
    }
    all_ranks(17);
    for (uint32_t n = 1; n <= BLOCKS; n++)
        check_rounds(17, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_fit_together),
                                       cmocka_unit_test(so_do_those_of_many_ranks), cmocka_unit_test(seventeen_ranks),
                                       cmocka_unit_test(everyone_has_all_after_the_fewest_rounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

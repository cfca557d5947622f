#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "planner/growth.h"

static double root(double n)
{
    double x = n;
    for (int i = 0; i < 100; i++)
        x = (x + n / x) / 2;
    return x;
}

static double log_of(double n)
{
    double log = 0, bit = 0.5;
    while (n >= 2) {
        n /= 2;
        log++;
    }
    for (int i = 0; i < 30; i++) {
        n *= n;
        if (n >= 2) {
            n /= 2;
            log += bit;
        }
        bit /= 2;
    }
    return log;
}

static double tree(double n)
{
    return 1e9 + 3e8 * log_of(n);
}

static double ring(double n)
{
    return 5e8 * (n - 1);
}

static double both(double n)
{
    return 3e8 * log_of(n) + 1e7 * n;
}

static double steep(double n)
{
    return 1e6 * n * root(n);
}

static double square(double n)
{
    return 7e5 * n * n + 1e9;
}

static double flat(double n)
{
    return 4e9;
}

static double slow(double n)
{
    return 4e9 - 1e9 / root(n);
}

static void assert_within(double a, double b, double part)
{
    if (a > b * (1 + part) || a < b * (1 - part))
        fail_msg("%g is not within %g of %g", a, part, b);
}

/* Whatever grows evenly with some power of the ranks, or with their logarithm, is continued as it goes on. */
static void growth_goes_on(void **state)
{
    static double (*const functions[])(double) = {tree, ring, both, steep, square, flat, slow};
    static const uint32_t ranks[][4] = {{8, 16, 32, 1024}, {4, 16, 64, 1024}, {8, 64, 512, 1 << 20}, {5, 11, 23, 24}};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        for (size_t k = 0; k < sizeof ranks / sizeof ranks[0]; k++) {
            struct tb_growth_point p[3];
            for (int m = 0; m < 3; m++)
                p[m] = (struct tb_growth_point){ranks[k][m], (uint64_t)functions[i](ranks[k][m])};
            assert_within((double)tb_growth_continue(p, ranks[k][3]), functions[i](ranks[k][3]), 0.02);
        }
}

/* Steps that are not as far from each other as the ones before. */
static void uneven_steps(void **state)
{
    static const uint32_t ranks[] = {4, 9, 36};
    struct tb_growth_point p[3];
    for (int m = 0; m < 3; m++)
        p[m] = (struct tb_growth_point){ranks[m], (uint64_t)tree(ranks[m])};
    assert_within((double)tb_growth_continue(p, 1024), tree(1024), 0.02);
    for (int m = 0; m < 3; m++)
        p[m] = (struct tb_growth_point){ranks[m], (uint64_t)both(ranks[m])};
    assert_within((double)tb_growth_continue(p, 1024), both(1024), 0.02);
    /* The first fold may be one of each kind, the others as many of each as the whole has. */
    static double (*const functions[])(double) = {steep, square, slow};
    static const uint32_t others[][4] = {{2, 6, 12, 48}, {4, 9, 36, 144}, {16, 24, 96, 192}, {3, 96, 192, 1024}};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
            for (int m = 0; m < 3; m++)
                p[m] = (struct tb_growth_point){others[k][m], (uint64_t)functions[i](others[k][m])};
            assert_within((double)tb_growth_continue(p, others[k][3]), functions[i](others[k][3]), 0.02);
        }
}

static void odd_points(void **state)
{
    /* It falls, or does not rise any more: it stays. */
    const struct tb_growth_point falls[] = {{2, 100}, {4, 90}, {8, 80}}, stops[] = {{2, 10}, {4, 90}, {8, 90}};
    assert_int_equal(tb_growth_continue(falls, 4096), 80);
    assert_int_equal(tb_growth_continue(stops, 4096), 90);
    /* It begins to rise: with the number. */
    const struct tb_growth_point begins[] = {{2, 100}, {4, 100}, {8, 110}};
    assert_within((double)tb_growth_continue(begins, 16), 130, 0.02);
    /* It has got there. */
    assert_int_equal(tb_growth_continue(begins, 8), 110);
    /* Too much for the number saturates. */
    const struct tb_growth_point huge[] = {{2, 1}, {4, 1ull << 40}, {8, 1ull << 63}};
    assert_true(tb_growth_continue(huge, 1u << 31) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(growth_goes_on), cmocka_unit_test(uneven_steps),
                                       cmocka_unit_test(odd_points)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

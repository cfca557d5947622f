#include "job/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Three hosts; the second one's ranks stand in two ranges. */
static void make(struct tb_book *book, struct tb_host hosts[3], struct tb_rank_range ranges[4])
{
    memset(hosts, 0, 3 * sizeof hosts[0]);
    static const char *const names[] = {"venus1", "venus2", "venus3"};
    for (uint32_t i = 0; i < 3; i++) {
        strcpy(hosts[i].name, names[i]);
        strcpy(hosts[i].place.cluster, "venus");
        hosts[i].address_count = 2;
        hosts[i].addresses[0] =
            (struct tb_address){.family = 4, .prefix = 24, .port = 4711, .bytes = {10, 0, 0, (uint8_t)i}};
        hosts[i].addresses[1] =
            (struct tb_address){.family = 6, .prefix = 64, .port = 4712, .bytes = {0xfd, [15] = (uint8_t)i}};
    }
    hosts[0].rank_count = 2;
    hosts[1].first_rank = 2;
    hosts[1].rank_count = 4;
    hosts[2].first_rank = 5;
    hosts[2].rank_count = 1;
    ranges[0] = (struct tb_rank_range){0, 2, 0, 0};
    ranges[1] = (struct tb_rank_range){2, 3, 1, 0};
    ranges[2] = (struct tb_rank_range){5, 1, 2, 0};
    ranges[3] = (struct tb_rank_range){6, 1, 1, 3};
    *book =
        (struct tb_book){.job = 99, .ranks = 7, .host_count = 3, .range_count = 4, .hosts = hosts, .ranges = ranges};
}

static void check(const struct tb_book *book)
{
    static const uint32_t host_of[] = {0, 0, 1, 1, 1, 2, 1}, local[] = {0, 1, 0, 1, 2, 0, 3};
    assert_int_equal(book->job, 99);
    assert_int_equal(book->ranks, 7);
    for (uint32_t rank = 0; rank < 7; rank++) {
        assert_int_equal(tb_book_host_of(book, rank), host_of[rank]);
        assert_int_equal(tb_book_local_index(book, rank), local[rank]);
    }
    assert_string_equal(book->hosts[2].name, "venus3");
    assert_string_equal(book->hosts[2].place.cluster, "venus");
    assert_int_equal(book->hosts[1].addresses[1].port, 4712);
    assert_int_equal(book->hosts[1].addresses[1].bytes[15], 1);
}

static void book_survives_the_wire(void **state)
{
    struct tb_host hosts[3];
    struct tb_rank_range ranges[4];
    struct tb_book book, copy;
    struct tb_writer w;
    struct tb_reader r;
    make(&book, hosts, ranges);
    check(&book);
    tb_writer_open(&w);
    assert_int_equal(tb_book_encode(&book, &w), TB_OK);
    tb_reader_open(&r, w.bytes, w.length);
    assert_int_equal(tb_book_decode(&copy, &r), TB_OK);
    assert_int_equal(tb_reader_end(&r), TB_OK);
    check(&copy);
    tb_book_close(&copy);
    tb_writer_close(&w);
}

/* Whatever bytes arrive, decoding refuses them or gives a book in which every rank has a host. */
static void hostile_books_are_refused(void **state)
{
    struct tb_host hosts[3];
    struct tb_rank_range ranges[4];
    struct tb_book book, copy;
    struct tb_writer w;
    struct tb_reader r;
    struct tb_random dice;
    make(&book, hosts, ranges);
    tb_writer_open(&w);
    assert_int_equal(tb_book_encode(&book, &w), TB_OK);
    for (size_t length = 0; length < w.length; length++) {
        tb_reader_open(&r, w.bytes, length);
        assert_int_not_equal(tb_book_decode(&copy, &r), TB_OK);
    }
    tb_random_seed(&dice, 5);
    uint8_t *bytes = malloc(w.length);
    assert_non_null(bytes);
    for (int i = 0; i < 20000; i++) {
        memcpy(bytes, w.bytes, w.length);
        for (uint64_t n = 1 + tb_random_below(&dice, 4); n > 0; n--)
            bytes[tb_random_below(&dice, w.length)] = (uint8_t)tb_random_next(&dice);
        tb_reader_open(&r, bytes, w.length);
        if (tb_book_decode(&copy, &r) != TB_OK)
            continue;
        assert_true(copy.ranks <= TB_JOB_RANKS_LIMIT);
        for (uint32_t rank = 0; rank < copy.ranks && rank < 1000; rank++)
            assert_true(tb_book_host_of(&copy, rank) < copy.host_count);
        tb_book_close(&copy);
    }
    free(bytes);
    tb_writer_close(&w);
}

static void a_host_shares_one_copy(void **state)
{
    struct tb_host hosts[3];
    struct tb_rank_range ranges[4];
    struct tb_book book, mapped;
    int descriptor = -1;
    make(&book, hosts, ranges);
    assert_int_equal(tb_book_share(&book, &descriptor), TB_OK);
    assert_int_equal(tb_book_map(&mapped, descriptor), TB_OK);
    assert_int_equal(write(descriptor, "x", 1), -1); /* sealed */
    close(descriptor);
    check(&mapped);
    tb_book_close(&mapped);
}

static void addresses_print(void **state)
{
    char text[80];
    struct tb_address four = {.family = 4, .port = 4711, .bytes = {10, 0, 0, 1}};
    struct tb_address six = {.family = 6, .port = 4711, .bytes = {[15] = 1}};
    tb_address_print(&four, text, sizeof text);
    assert_string_equal(text, "10.0.0.1:4711");
    tb_address_print(&six, text, sizeof text);
    assert_string_equal(text, "[::1]:4711");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(book_survives_the_wire),
        cmocka_unit_test(hostile_books_are_refused),
        cmocka_unit_test(a_host_shares_one_copy),
        cmocka_unit_test(addresses_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "job/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Three hosts, dealt out in turns: ranks 0-1 on a, 2 on b, 3-4 on a, 5 on c. */
static struct tb_host hosts[3] = {
    {.name = "a",
     .place = 2,
     .pattern = 1,
     .first_rank = 0,
     .rank_count = 4,
     .address_count = 1,
     .addresses = {{.family = 4, .prefix = 24, .port = 4711, .bytes = {10, 0, 0, 1}}}},
    {.name = "b", .place = 4, .first_rank = 2, .rank_count = 1},
    {.name = "c",
     .pattern = 2,
     .first_rank = 5,
     .rank_count = 1,
     .address_count = 2,
     .addresses = {{.family = 6, .prefix = 64, .port = 1, .scope = 3, .bytes = {0xfe, 0x80, [15] = 9}},
                   {.family = 4, .prefix = 32, .port = 65535, .bytes = {127, 0, 0, 1}}}}};
static struct tb_rank_range ranges[4] = {
    {0, 2, 0, 0, 0, 0, 0}, {2, 1, 1, 0, 0, 0, 0}, {3, 2, 0, 2, 0, 0, 0}, {5, 1, 2, 0, 0, 0, 0}};
/* The world, in it delft, in it venus and rack in venus; and, in no site, another venus. */
static char names[] = "\0delft\0venus\0rack\0venus";
static struct tb_place_row rows[5] = {{TB_PLACE_NONE, 5, 0, 0, TB_LEVEL_WORLD, 0},
                                      {0, 4, 1, 1, TB_LEVEL_SITE, 0},
                                      {1, 4, 7, 2, TB_LEVEL_CLUSTER, 0},
                                      {2, 4, 13, 3, TB_LEVEL_CLUSTER, 0},
                                      {0, 5, 18, 1, TB_LEVEL_CLUSTER, 0}};
/* Two packages on a, of which the third rank may use both; one rank on c, and b does not bind. */
static struct tb_seat seats[5] = {{{0, 0, 0, 1}},
                                  {{0, 0, 1, 2}},
                                  {{TB_SEAT_NONE, TB_SEAT_NONE, TB_SEAT_NONE, TB_SEAT_NONE}},
                                  {{1, 1, 2, 300}},
                                  {{0, TB_SEAT_NONE, 0, 0}}};
static uint32_t firsts[3] = {0, 4, 5};
static struct tb_address_book sample = {.version = 1,
                                        .job = 77,
                                        .ranks = 6,
                                        .host_count = 3,
                                        .range_count = 4,
                                        .places = {5, sizeof names, rows, names},
                                        .hosts = hosts,
                                        .ranges = ranges,
                                        .pattern_count = 2,
                                        .pattern_firsts = firsts,
                                        .seats = seats};

static void ranks_are_found(void **state)
{
    static const uint32_t host[] = {0, 0, 1, 0, 0, 2}, local[] = {0, 1, 0, 2, 3, 0};
    for (uint32_t rank = 0; rank < 6; rank++) {
        assert_int_equal(tb_address_book_host_of(&sample, rank), host[rank]);
        assert_int_equal(tb_address_book_local_index(&sample, rank), local[rank]);
    }
}

static void check_same(const struct tb_address_book *book)
{
    assert_int_equal(book->version, 1);
    assert_int_equal(book->job, 77);
    assert_int_equal(book->ranks, 6);
    assert_int_equal(book->host_count, 3);
    assert_int_equal(book->range_count, 4);
    assert_memory_equal(book->ranges, ranges, sizeof ranges);
    assert_int_equal(book->places.count, 5);
    assert_memory_equal(book->places.rows, rows, sizeof rows);
    assert_memory_equal(book->places.names, names, sizeof names);
    assert_string_equal(tb_address_book_cluster(book, 0), "venus");
    assert_string_equal(tb_address_book_cluster(book, 1), "venus");
    assert_string_equal(tb_address_book_cluster(book, 2), ""); /* in the world */
    assert_memory_equal(tb_address_book_seats(book, 0), seats, 4 * sizeof *seats);
    assert_null(tb_address_book_seats(book, 1));
    assert_memory_equal(tb_address_book_seats(book, 2), seats + 4, sizeof *seats);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(book->hosts[i].name, hosts[i].name);
        assert_int_equal(book->hosts[i].place, hosts[i].place);
        assert_int_equal(book->hosts[i].rank_count, hosts[i].rank_count);
        assert_int_equal(book->hosts[i].address_count, hosts[i].address_count);
        assert_memory_equal(book->hosts[i].addresses, hosts[i].addresses, sizeof hosts[i].addresses);
    }
}

static void survives_the_wire(void **state)
{
    struct tb_writer w;
    struct tb_reader r;
    struct tb_address_book book;
    tb_writer_open(&w);
    assert_int_equal(tb_address_book_encode(&sample, &w), TB_OK);
    tb_reader_open(&r, w.bytes, w.length);
    assert_int_equal(tb_address_book_decode(&book, &r), TB_OK);
    assert_int_equal(tb_reader_end(&r), TB_OK);
    check_same(&book);
    tb_address_book_close(&book);
    /* Every shorter one is refused. */
    for (size_t length = 0; length < w.length; length++) {
        tb_reader_open(&r, w.bytes, length);
        assert_int_not_equal(tb_address_book_decode(&book, &r), TB_OK);
    }
    /* And so is a longer one. */
    tb_put_u8(&w, 0);
    tb_reader_open(&r, w.bytes, w.length);
    assert_int_equal(tb_address_book_decode(&book, &r), TB_ERR_PROTOCOL);
    tb_writer_close(&w);
}

static void survives_sharing(void **state)
{
    int fd;
    struct tb_address_book book;
    assert_int_equal(tb_address_book_share(&sample, &fd), TB_OK);
    assert_int_equal(tb_address_book_map(&book, fd), TB_OK);
    assert_int_equal(write(fd, "x", 1), -1); /* sealed */
    close(fd);
    check_same(&book);
    tb_address_book_close(&book);
    assert_int_not_equal(tb_address_book_map(&book, -1), TB_OK);
    FILE *other = tmpfile();
    assert_non_null(other);
    fputs("this is no address book but something else", other);
    fflush(other);
    assert_int_not_equal(tb_address_book_map(&book, fileno(other)), TB_OK);
    fclose(other);
}

/* What is accepted after damage is consistent, so that every lookup is safe. */
static void damage_does_no_harm(void **state)
{
    struct tb_writer w;
    struct tb_random random;
    tb_writer_open(&w);
    assert_int_equal(tb_address_book_encode(&sample, &w), TB_OK);
    uint8_t *bytes = malloc(w.length);
    assert_non_null(bytes);
    tb_random_seed(&random, 1);
    for (int i = 0; i < 20000; i++) {
        memcpy(bytes, w.bytes, w.length);
        for (uint64_t k = tb_random_below(&random, 4) + 1; k > 0; k--)
            bytes[tb_random_below(&random, w.length)] = (uint8_t)tb_random_next(&random);
        struct tb_reader r;
        struct tb_address_book book;
        tb_reader_open(&r, bytes, w.length);
        if (tb_address_book_decode(&book, &r) != TB_OK)
            continue;
        for (uint32_t rank = 0; rank < book.ranks; rank++) {
            uint32_t host = tb_address_book_host_of(&book, rank);
            assert_true(host < book.host_count);
            assert_true(tb_address_book_local_index(&book, rank) < book.hosts[host].rank_count);
            assert_true(book.hosts[host].place < book.places.count);
            assert_true(tb_places_meet(&book.places, book.hosts[host].place, book.hosts[0].place) < book.places.count);
            (void)tb_address_book_cluster(&book, host);
        }
        tb_address_book_close(&book);
    }
    free(bytes);
    tb_writer_close(&w);
}

static void lies_about_counts_cost_nothing(void **state)
{
    for (int field = 0; field < 5; field++) {
        struct tb_writer w;
        struct tb_reader r;
        struct tb_address_book book;
        tb_writer_open(&w);
        tb_put_u32(&w, 2);
        tb_put_u32(&w, 1);
        tb_put_u32(&w, 1);
        tb_put_u32(&w, field == 0 ? UINT32_MAX : TB_JOB_RANKS_LIMIT);
        tb_put_u32(&w, field == 1 ? UINT32_MAX : TB_JOB_HOSTS_LIMIT);
        tb_put_u32(&w, field == 2 ? UINT32_MAX : TB_JOB_RANKS_LIMIT);
        tb_put_u32(&w, field == 3 ? UINT32_MAX : TB_PLACES_LIMIT);
        tb_put_u32(&w, field == 4 ? UINT32_MAX : TB_JOB_HOSTS_LIMIT);
        tb_reader_open(&r, w.bytes, w.length);
        assert_int_equal(tb_address_book_decode(&book, &r), TB_ERR_PROTOCOL);
        tb_writer_close(&w);
    }
}

static void inconsistent_books_are_refused(void **state)
{
    static const struct tb_rank_range bad[][4] = {
        {{0, 2, 0, 0, 0, 0, 0}, {3, 1, 1, 0, 0, 0, 0}, {3, 2, 0, 2, 0, 0, 0}, {5, 1, 2, 0, 0, 0, 0}}, /* a gap */
        {{0, 2, 0, 0, 0, 0, 0}, {2, 1, 3, 0, 0, 0, 0}, {3, 2, 0, 2, 0, 0, 0}, {5, 1, 2, 0, 0, 0, 0}}, /* no such host */
        {{0, 2, 0, 0, 0, 0, 0},
         {2, 1, 1, 0, 0, 0, 0},
         {3, 2, 0, 1, 0, 0, 0},
         {5, 1, 2, 0, 0, 0, 0}}, /* a local index twice */
        {{0, 2, 0, 0, 0, 0, 0},
         {2, 1, 1, 0, 0, 0, 0},
         {3, 3, 0, 2, 0, 0, 0},
         {6, 1, 2, 0, 0, 0, 0}}, /* more than there are */
        {{0, 2, 0, 0, 0, 0, 0}, {2, 1, 1, 0, 0, 0, 0}, {3, 2, 0, 2, 0, 0, 0}, {5, 0, 2, 0, 0, 0, 0}}, /* nobody */
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tb_address_book book = sample, decoded;
        struct tb_rank_range copy[4];
        struct tb_writer w;
        struct tb_reader r;
        memcpy(copy, bad[i], sizeof copy);
        book.ranges = copy;
        tb_writer_open(&w);
        assert_int_equal(tb_address_book_encode(&book, &w), TB_OK);
        tb_reader_open(&r, w.bytes, w.length);
        assert_int_equal(tb_address_book_decode(&decoded, &r), TB_ERR_PROTOCOL);
        tb_writer_close(&w);
    }
}

/* A pattern is one of the book's, and seats as many as the host has ranks. */
static void senseless_seats_are_refused(void **state)
{
    static const uint32_t bad[3] = {2, 3, UINT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        struct tb_host moved[3];
        struct tb_address_book book = sample, decoded;
        struct tb_writer w;
        struct tb_reader r;
        memcpy(moved, hosts, sizeof moved);
        moved[0].pattern = bad[i];
        book.hosts = moved;
        tb_writer_open(&w);
        assert_int_equal(tb_address_book_encode(&book, &w), TB_OK);
        tb_reader_open(&r, w.bytes, w.length);
        assert_int_equal(tb_address_book_decode(&decoded, &r), TB_ERR_PROTOCOL);
        tb_writer_close(&w);
    }
}

/* Places stand in preorder, each once, sites in the world, and hosts in one of them. */
static void senseless_places_are_refused(void **state)
{
    static const struct {
        uint32_t number, parent, level, place;
    } bad[] = {{2, 2, TB_LEVEL_CLUSTER, 0}, {3, 1, TB_LEVEL_SITE, 0},   {3, 2, TB_LEVEL_WORLD, 0},
               {3, 2, TB_LEVEL_HOST, 0},    {4, 3, TB_LEVEL_SITE, 0},   {2, 0, TB_LEVEL_CLUSTER, 0},
               {1, 0, TB_LEVEL_CLUSTER, 5}, {3, 9, TB_LEVEL_CLUSTER, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tb_place_row changed[5];
        struct tb_host moved[3];
        struct tb_address_book book = sample, decoded;
        struct tb_writer w;
        struct tb_reader r;
        memcpy(changed, rows, sizeof changed);
        memcpy(moved, hosts, sizeof moved);
        changed[bad[i].number].parent = bad[i].parent;
        changed[bad[i].number].level = (uint8_t)bad[i].level;
        moved[0].place = bad[i].place;
        book.places.rows = changed;
        book.hosts = moved;
        tb_writer_open(&w);
        assert_int_equal(tb_address_book_encode(&book, &w), TB_OK);
        tb_reader_open(&r, w.bytes, w.length);
        assert_int_equal(tb_address_book_decode(&decoded, &r), TB_ERR_PROTOCOL);
        tb_writer_close(&w);
    }
}

static void addresses_are_readable(void **state)
{
    char text[80];
    struct sockaddr_storage name;
    tb_address_print(&hosts[0].addresses[0], text, sizeof text);
    assert_string_equal(text, "10.0.0.1:4711");
    tb_address_print(&hosts[2].addresses[0], text, sizeof text);
    assert_string_equal(text, "[fe80::9]:1");
    assert_int_equal(tb_address_socket(&hosts[2].addresses[0], &name), sizeof(struct sockaddr_in6));
    assert_int_equal(((struct sockaddr_in6 *)&name)->sin6_scope_id, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_found),
        cmocka_unit_test(survives_the_wire),
        cmocka_unit_test(survives_sharing),
        cmocka_unit_test(damage_does_no_harm),
        cmocka_unit_test(lies_about_counts_cost_nothing),
        cmocka_unit_test(inconsistent_books_are_refused),
        cmocka_unit_test(senseless_seats_are_refused),
        cmocka_unit_test(senseless_places_are_refused),
        cmocka_unit_test(addresses_are_readable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "job/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HOSTS 3u
#define RANKS 4u

/* A job that has begun with four ranks, on the first two of three hosts. */
static struct tb_address_book begun(void)
{
    struct tb_address_book book = {.version = 1, .job = 7, .ranks = RANKS, .host_count = HOSTS, .range_count = 2};
    book.hosts = calloc(HOSTS, sizeof *book.hosts);
    book.ranges = calloc(2, sizeof *book.ranges);
    assert_non_null(book.hosts);
    assert_non_null(book.ranges);
    book.ranges[0] = (struct tb_rank_range){.first_rank = 0, .count = 2, .host = 0};
    book.ranges[1] = (struct tb_rank_range){.first_rank = 2, .count = 2, .host = 1};
    return book;
}

static void end(struct tb_address_book *book)
{
    tb_worlds_close(book);
    free(book->hosts);
    free(book->ranges);
}

static int add(struct tb_address_book *book, uint32_t first, uint32_t count, uint32_t host)
{
    const struct tb_rank_range range = {.first_rank = first, .count = count, .host = host};
    return tb_worlds_add(book, &range, 1);
}

static void finds_where_new_processes_are(void **state)
{
    struct tb_address_book book = begun();
    assert_int_equal(tb_worlds_processes(&book), RANKS);
    assert_false(tb_address_book_knows(&book, RANKS));
    const struct tb_rank_range world[] = {{.first_rank = 4, .count = 3, .host = 2}, {.first_rank = 7, .count = 1}};
    assert_int_equal(tb_worlds_add(&book, world, 2), TB_OK);
    static const uint32_t hosts[] = {0, 0, 1, 1, 2, 2, 2, 0};
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(tb_address_book_host_of(&book, i), hosts[i]);
    assert_true(tb_address_book_knows(&book, 7));
    assert_false(tb_address_book_knows(&book, 8));
    assert_int_equal(tb_worlds_processes(&book), 8);
    assert_int_equal(book.ranks, RANKS); /* what the job has begun with stays what it was */
    end(&book);
}

static void neighbours_on_a_host_are_one_range(void **state)
{
    struct tb_address_book book = begun();
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(add(&book, RANKS + 3 * i, 3, 1), TB_OK);
    assert_int_equal(atomic_load(&book.worlds->count), 1);
    assert_int_equal(tb_worlds_processes(&book), RANKS + 3000);
    assert_int_equal(add(&book, RANKS + 3000, 1, 0), TB_OK);
    assert_int_equal(atomic_load(&book.worlds->count), 2);
    assert_int_equal(tb_address_book_host_of(&book, RANKS + 2999), 1);
    assert_int_equal(tb_address_book_host_of(&book, RANKS + 3000), 0);
    end(&book);
}

static void finds_who_was_started_together(void **state)
{
    struct tb_address_book book = begun();
    const struct tb_rank_range world[] = {{.first_rank = 4, .count = 3, .host = 2}, {.first_rank = 7, .count = 1}};
    static const uint32_t firsts[] = {0, 0, 0, 0, 4, 4, 4, 4, 8, 9, 9}, ends[] = {4, 4, 4, 4, 8, 8, 8, 8, 9, 11, 11};
    assert_int_equal(tb_worlds_add(&book, world, 2), TB_OK);
    assert_int_equal(add(&book, 8, 1, 0), TB_OK); /* on the host of its neighbour */
    assert_int_equal(add(&book, 9, 2, 0), TB_OK);
    for (uint32_t i = 0, last; i < 11; i++) {
        assert_int_equal(tb_worlds_of(&book, i, &last), firsts[i]);
        assert_int_equal(last, ends[i]);
    }
    end(&book);
}

static void refuses_what_makes_no_sense(void **state)
{
    struct tb_address_book book = begun();
    assert_int_equal(add(&book, RANKS + 1, 1, 0), TB_ERR_PROTOCOL); /* a gap */
    assert_int_equal(add(&book, RANKS - 1, 1, 0), TB_ERR_PROTOCOL); /* once more */
    assert_int_equal(add(&book, RANKS, 0, 0), TB_ERR_PROTOCOL);
    assert_int_equal(add(&book, RANKS, 1, HOSTS), TB_ERR_PROTOCOL);
    assert_int_equal(add(&book, RANKS, TB_JOB_RANKS_LIMIT, 0), TB_ERR_PROTOCOL);
    const struct tb_rank_range half[] = {{.first_rank = 4, .count = 1}, {.first_rank = 9, .count = 1}};
    assert_int_equal(tb_worlds_add(&book, half, 2), TB_ERR_PROTOCOL);
    assert_int_equal(tb_worlds_processes(&book), RANKS); /* nothing of it was taken */
    assert_int_equal(add(&book, RANKS, TB_JOB_RANKS_LIMIT - RANKS, 0), TB_OK);
    assert_int_equal(add(&book, TB_JOB_RANKS_LIMIT, 1, 0), TB_ERR_PROTOCOL); /* there are no more */
    end(&book);
}

static void travels_in_frames(void **state)
{
    const struct tb_rank_range world[] = {{.first_rank = 4, .count = 3, .host = 2}, {.first_rank = 7, .count = 1}};
    struct tb_rank_range *got;
    uint32_t count;
    struct tb_writer w;
    struct tb_reader r;
    tb_writer_open(&w);
    tb_worlds_put(&w, world, 2);
    tb_reader_open(&r, w.bytes, w.length);
    assert_int_equal(tb_worlds_get(&r, &got, &count), TB_OK);
    assert_int_equal(count, 2);
    assert_memory_equal(got, world, sizeof world);
    free(got);
    for (size_t length = 0; length < w.length; length++) { /* whatever is missing is noticed */
        tb_reader_open(&r, w.bytes, length);
        assert_int_equal(tb_worlds_get(&r, &got, &count), TB_ERR_PROTOCOL);
        free(got);
    }
    tb_writer_close(&w);
}

static void ranks_see_what_their_agent_adds(void **state)
{
    struct tb_address_book agent = begun(), rank = begun();
    int descriptor, pipe_ends[2];
    assert_int_equal(tb_worlds_make(&agent, &descriptor), TB_OK);
    assert_int_equal(tb_worlds_map(&rank, descriptor), TB_OK);
    assert_int_equal(tb_worlds_processes(&rank), RANKS);
    assert_int_equal(add(&agent, RANKS, 2, 1), TB_OK);
    assert_true(tb_address_book_knows(&rank, RANKS + 1));
    assert_false(tb_address_book_knows(&rank, RANKS + 2));
    assert_int_equal(add(&agent, RANKS + 2, 2, 1), TB_OK);
    assert_int_equal(add(&agent, RANKS + 4, 1, 2), TB_OK);
    for (uint32_t i = 0; i < RANKS + 5; i++)
        assert_int_equal(tb_address_book_host_of(&rank, i), tb_address_book_host_of(&agent, i));
    tb_worlds_close(&rank);
    assert_int_equal(pipe(pipe_ends), 0); /* what is no such memory is not mapped */
    assert_int_equal(tb_worlds_map(&rank, pipe_ends[0]), TB_ERR_PROTOCOL);
    assert_null(rank.worlds);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    close(descriptor);
    end(&agent);
    end(&rank);
}

static void processes_of_other_jobs_are_known_by_both_names(void **state)
{
    struct tb_address_book book = begun();
    const struct tb_rank_range first = {.first_rank = 4, .count = 2, .host = 1, .job = 99, .home = 5, .generation = 1};
    const struct tb_rank_range again = {.first_rank = 6, .count = 3, .host = 1, .job = 99, .home = 4, .generation = 2};
    uint32_t index = 0;
    assert_int_equal(tb_worlds_add(&book, &first, 1), TB_OK);
    assert_true(tb_worlds_is_foreign(&book, 5));
    assert_false(tb_worlds_is_foreign(&book, 3));
    assert_true(tb_worlds_home(&book, 5).job == 99 && tb_worlds_home(&book, 5).index == 6);
    assert_true(tb_worlds_home(&book, 3).job == 7 && tb_worlds_home(&book, 3).index == 3);
    assert_true(tb_worlds_find(&book, (struct tb_proc){99, 6}, 0, &index) && index == 5);
    assert_true(tb_worlds_find(&book, (struct tb_proc){7, 2}, 0, &index) && index == 2);
    assert_false(tb_worlds_find(&book, (struct tb_proc){99, 7}, 0, &index));
    assert_false(tb_worlds_find(&book, (struct tb_proc){98, 5}, 0, &index));
    assert_false(tb_worlds_find(&book, (struct tb_proc){7, 4}, 0, &index)); /* that index is another job's */
    assert_int_equal(tb_worlds_add(&book, &again, 1), TB_OK);               /* it was met again: the newest ones */
    assert_true(tb_worlds_find(&book, (struct tb_proc){99, 6}, 0, &index) && index == 8);
    assert_true(tb_worlds_find(&book, (struct tb_proc){99, 6}, 1, &index) && index == 5); /* or those that are meant */
    assert_false(tb_worlds_find(&book, (struct tb_proc){99, 4}, 1, &index));
    assert_true(tb_worlds_find(&book, (struct tb_proc){99, 6}, 3, &index) && index == 8); /* it is between others */
    assert_true(tb_worlds_find(&book, (struct tb_proc){7, 2}, 3, &index) && index == 2);
    assert_true(tb_worlds_generation(&book, 5) == 1 && tb_worlds_generation(&book, 8) == 2 &&
                tb_worlds_generation(&book, 3) == 0);
    uint64_t theirs = tb_context_make(tb_context_tag(99) + 6, 5, TB_PLANE_POINT);
    assert_true(tb_worlds_makes(&book, 5, theirs) && tb_worlds_makes(&book, 8, theirs)); /* it is the same process */
    assert_false(tb_worlds_makes(&book, 4, theirs));                                     /* of that job another one */
    assert_false(tb_worlds_makes(&book, 2, theirs));
    assert_false(tb_worlds_makes(&book, 5, tb_context_plane(theirs, TB_PLANE_COLLECTIVE)));
    assert_false(tb_worlds_makes(&book, 2, tb_context_make(2, 5, TB_PLANE_POINT))); /* as if of one job alone */
    assert_true(tb_worlds_makes(&book, 2, tb_context_make(tb_context_tag(7) + 2, 5, TB_PLANE_POINT)));
    assert_false(tb_worlds_makes(&book, 5, tb_context_make(tb_context_tag(7) + 2, 5, TB_PLANE_POINT)));
    const struct tb_rank_range ours = {.first_rank = 9, .count = 1, .host = 0, .job = 7};
    const struct tb_rank_range beyond = {.first_rank = 9, .count = 1, .host = 0, .job = 99, .home = TB_JOB_RANKS_LIMIT};
    assert_int_equal(tb_worlds_add(&book, &ours, 1), TB_ERR_PROTOCOL);
    assert_int_equal(tb_worlds_add(&book, &beyond, 1), TB_ERR_PROTOCOL);
    end(&book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_of_other_jobs_are_known_by_both_names),
        cmocka_unit_test(finds_where_new_processes_are),
        cmocka_unit_test(neighbours_on_a_host_are_one_range),
        cmocka_unit_test(refuses_what_makes_no_sense),
        cmocka_unit_test(travels_in_frames),
        cmocka_unit_test(ranks_see_what_their_agent_adds),
        cmocka_unit_test(finds_who_was_started_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* When the launcher is told that this process has left another job, without the rest of the library. */
#include "mpi/foreign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define JOB   7u
#define OTHER 99u
#define RANKS 2u
#define THEM  RANKS /* and the process behind it */

static int agent = -1;

/* A process of a job that knows two of another one, and is joined with an agent. */
static int begin(void **state)
{
    struct tb_address_book *book = &tb_self.job.book;
    const struct tb_rank_range theirs = {.first_rank = THEM, .count = 2, .job = OTHER, .generation = 1};
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    *book = (struct tb_address_book){.version = 1, .job = JOB, .ranks = RANKS, .host_count = 1, .range_count = 1};
    book->hosts = calloc(1, sizeof *book->hosts);
    book->ranges = calloc(1, sizeof *book->ranges);
    assert_true(book->hosts != NULL && book->ranges != NULL);
    book->ranges[0] = (struct tb_rank_range){.count = RANKS};
    assert_int_equal(tb_worlds_add(book, &theirs, 1), TB_OK);
    tb_self.job.self = (struct tb_proc){JOB, 0};
    tb_self.job.control = ends[0];
    agent = ends[1];
    tb_list_init(&tb_self.foreign);
    return 0;
}

static int end(void **state)
{
    tb_foreign_close();
    tb_worlds_close(&tb_self.job.book);
    free(tb_self.job.book.hosts);
    free(tb_self.job.book.ranges);
    close(tb_self.job.control);
    close(agent);
    return 0;
}

static struct tb_comm comm_with(const uint32_t *procs)
{
    return (struct tb_comm){.procs = (uint32_t *)procs, .size = 2, .peers = 2};
}

/* The meeting with the other job that the launcher is told of now; 0: it is told nothing. */
static uint32_t told(void)
{
    struct tb_packet packet;
    struct tb_meeting meeting;
    struct tb_reader r;
    void *bytes;
    size_t length;
    uint32_t what[2];
    tb_foreign_leave();
    int rc = tb_packet_receive(agent, &packet, false);
    if (rc == TB_AGAIN)
        return 0;
    assert_int_equal(rc, TB_OK);
    assert_int_equal(packet.frame.kind, TB_CONTROL_MEET);
    assert_int_equal(tb_shared_bytes_get(packet.descriptors[0], &bytes, &length), TB_OK);
    tb_reader_open(&r, bytes, length);
    assert_int_equal(tb_meeting_get(&r, &meeting), TB_OK);
    assert_int_equal(meeting.wish, TB_MEETING_LEAVE);
    assert_int_equal(meeting.length, sizeof what);
    memcpy(what, meeting.bytes, sizeof what);
    assert_int_equal(what[0], OTHER);
    tb_packet_discard(&packet);
    free(bytes);
    return what[1];
}

static const uint32_t both[] = {0, THEM}, second[] = {0, THEM + 1};

static void when_the_last_communicator_is_gone(void **state)
{
    struct tb_comm one = comm_with(both), two = comm_with(second);
    struct tb_foreign *met = tb_foreign_met(THEM, 5);
    tb_foreign_begin(&one);
    tb_foreign_made(met);
    tb_foreign_begin(&two);
    assert_int_equal(told(), 0);
    tb_foreign_end(&one);
    assert_int_equal(told(), 0);
    tb_foreign_end(&two);
    assert_int_equal(told(), 5);
    assert_int_equal(told(), 0);
}

/* Another thread gives up the last one. */
static void not_while_one_is_being_made(void **state)
{
    struct tb_comm one = comm_with(both), two = comm_with(second);
    struct tb_foreign *met = tb_foreign_met(THEM, 5);
    tb_foreign_begin(&one);
    tb_foreign_made(met);
    met = tb_foreign_met(THEM + 1, 6);
    tb_foreign_end(&one);
    assert_int_equal(told(), 0);
    tb_foreign_begin(&two);
    tb_foreign_made(met);
    assert_int_equal(told(), 0);
    tb_foreign_end(&two);
    assert_int_equal(told(), 6);
}

static void when_nothing_comes_of_it(void **state)
{
    struct tb_foreign *met = tb_foreign_met(THEM, 5);
    assert_int_equal(told(), 0);
    tb_foreign_made(met);
    assert_int_equal(told(), 5);
}

/* Threads at several meetings get there in any order: the launcher wants to hear of the last one. */
static void when_meetings_overtake_each_other(void **state)
{
    struct tb_foreign *later = tb_foreign_met(THEM, 6), *earlier = tb_foreign_met(THEM, 5);
    tb_foreign_made(later);
    assert_int_equal(told(), 0);
    tb_foreign_made(earlier);
    assert_int_equal(told(), 6);
}

static void nobody_of_this_job(void **state)
{
    assert_null(tb_foreign_met(1, 5));
    assert_null(tb_foreign_met(THEM, 0));
    tb_foreign_made(NULL);
    assert_int_equal(told(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(when_the_last_communicator_is_gone, begin, end),
        cmocka_unit_test_setup_teardown(not_while_one_is_being_made, begin, end),
        cmocka_unit_test_setup_teardown(when_nothing_comes_of_it, begin, end),
        cmocka_unit_test_setup_teardown(when_meetings_overtake_each_other, begin, end),
        cmocka_unit_test_setup_teardown(nobody_of_this_job, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

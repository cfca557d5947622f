/* The stranger log: what the user reads of a few strangers, of a flood, and of one who is known and talks nonsense. */
#include "agent/stranger_log.h"
#include "remote/virtual_loop_test.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static struct world {
    struct virtual_loop time;
    struct tb_host hosts[2];
    struct tb_rank_range range;
    struct tb_address_book book;
    struct tb_member member;
    struct tb_stranger_log log;
    int kept, paper; /* standard error as it was; where it goes meanwhile */
} w;

static void open_log(enum tb_stranger_kind kind)
{
    memset(&w, 0, sizeof w);
    assert_int_equal(virtual_loop_open(&w.time), TB_OK);
    snprintf(w.hosts[1].name, sizeof w.hosts[1].name, "venus");
    w.range = (struct tb_rank_range){.count = 4, .host = 1};
    w.book = (struct tb_address_book){
        .job = 5, .ranks = 4, .host_count = 2, .hosts = w.hosts, .range_count = 1, .ranges = &w.range};
    w.member = (struct tb_member){.loop = &w.time.loop, .self = {5, TB_PROC_AGENT}, .name = "mars", .book = &w.book};
    tb_stranger_log_open(&w.log, &w.member, kind);
    w.kept = dup(2);
    w.paper = memfd_create("log", MFD_CLOEXEC);
    assert_true(w.kept >= 0 && w.paper >= 0 && dup2(w.paper, 2) == 2);
}

static void close_log(void)
{
    dup2(w.kept, 2);
    close(w.kept);
    close(w.paper);
    tb_stranger_log_close(&w.log);
    virtual_loop_close(&w.time);
}

/* What was written since the last time: as many lines as there are texts, each of which ends one. */
static void expect_lines(uint32_t count, const char *text)
{
    char all[4096] = "";
    lseek(w.paper, 0, SEEK_SET);
    ssize_t n = read(w.paper, all, sizeof all - 1);
    assert_true(n >= 0 && ftruncate(w.paper, 0) == 0);
    lseek(w.paper, 0, SEEK_SET);
    uint32_t lines = 0;
    for (ssize_t i = 0; i < n; i++)
        lines += all[i] == '\n';
    assert_int_equal(lines, count);
    if (count > 0 && strstr(all, text) == NULL)
        fail_msg("%s should say: %s", all, text);
}

static void come_from(int family, const char *address)
{
    struct sockaddr_storage from = {.ss_family = (sa_family_t)family};
    void *bytes = family == AF_INET ? (void *)&((struct sockaddr_in *)&from)->sin_addr
                                    : (void *)&((struct sockaddr_in6 *)&from)->sin6_addr;
    assert_int_equal(inet_pton(family, address, bytes), 1);
    tb_stranger_log_unproved(&w.log, &from);
}

static void the_first_is_told_at_once(void **state)
{
    open_log(TB_STRANGER_UNPROVED);
    come_from(AF_INET, "10.0.0.7");
    expect_lines(1, "host mars: a connection from 10.0.0.7 did not prove the job key, and was closed\n");
    virtual_loop_pass(&w.time, 61 * SECOND);
    come_from(AF_INET6, "::ffff:10.0.0.8");
    expect_lines(1, "from 10.0.0.8 did");
    virtual_loop_pass(&w.time, 61 * SECOND);
    come_from(AF_INET6, "2001:db8::1");
    expect_lines(1, "from 2001:db8::1 did");
    close_log();
}

static void the_others_are_counted(void **state)
{
    open_log(TB_STRANGER_UNPROVED);
    come_from(AF_INET, "10.0.0.7");
    expect_lines(1, "10.0.0.7");
    for (int i = 0; i < 310; i++)
        come_from(AF_INET, i % 100 == 0 ? "10.0.0.9" : i % 100 == 1 ? "10.0.0.8" : "10.0.0.7");
    virtual_loop_pass(&w.time, 59 * SECOND);
    expect_lines(0, "");
    virtual_loop_pass(&w.time, SECOND);
    expect_lines(1,
                 "host mars: 310 connections from 10.0.0.7 and 2 others did not prove the job key in the last minute, "
                 "and were closed\n");
    virtual_loop_pass(&w.time, 60 * SECOND);
    expect_lines(0, "");
    close_log();
}

static void a_flood_is_a_line_a_minute(void **state)
{
    open_log(TB_STRANGER_UNPROVED);
    for (int i = 0; i < 20000; i++) {
        char text[32];
        snprintf(text, sizeof text, "10.1.%d.%d", i / 256 % 256, i % 256);
        come_from(AF_INET, text);
        virtual_loop_pass(&w.time, SECOND / 100);
    }
    expect_lines(4, "5999 connections from 10.1.0.1 and at least 15 others");
    close_log();
}

static void nonsense_has_a_name(void **state)
{
    open_log(TB_STRANGER_NONSENSE);
    tb_error(TB_ERR_PROTOCOL, "a frame makes no sense");
    tb_stranger_log_nonsense(&w.log, (struct tb_proc){5, TB_PROC_AGENT | 1});
    expect_lines(1, "host mars: a connection with the agent of host venus has ended: a frame makes no sense\n");
    for (int i = 0; i < 3; i++) {
        tb_error(TB_ERR_PROTOCOL, "a frame is too long");
        tb_stranger_log_nonsense(&w.log, (struct tb_proc){5, 3});
    }
    expect_lines(0, "");
    virtual_loop_pass(&w.time, 60 * SECOND);
    expect_lines(
        1, "host mars: 3 connections with rank 3 on host venus have ended in the last minute: a frame is too long\n");
    close_log();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_told_at_once),
        cmocka_unit_test(the_others_are_counted),
        cmocka_unit_test(a_flood_is_a_line_a_minute),
        cmocka_unit_test(nonsense_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Ranks that join their agent: packets, membership, and agents that are gone. */
#include "job/cost_mapping_test.h"
#include "job/job.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- packets and joining ----------------------------------------------------------------------------------------- */

static void packets_bring_descriptors(void **state)
{
    int ends[2], bell = eventfd(7, EFD_CLOEXEC);
    struct tb_packet *packet = malloc(sizeof *packet);
    struct tb_writer w;
    uint64_t value = 0;
    assert_non_null(packet);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(tb_packet_receive(ends[1], packet, false), TB_AGAIN);
    tb_writer_open(&w);
    tb_put_text(&w, "hello");
    assert_int_equal(tb_packet_send(ends[0], TB_CONTROL_LOST, &w, &bell, 1), TB_OK);
    tb_writer_close(&w);
    assert_int_equal(tb_packet_receive(ends[1], packet, false), TB_OK);
    assert_int_equal(packet->frame.kind, TB_CONTROL_LOST);
    assert_int_equal(packet->descriptor_count, 1);
    assert_true(fcntl(packet->descriptors[0], F_GETFD) & FD_CLOEXEC);
    assert_int_equal(read(packet->descriptors[0], &value, sizeof value), sizeof value);
    assert_int_equal(value, 7);
    tb_packet_discard(packet);
    assert_int_equal(send(ends[0], "garbage", 7, 0), 7);
    assert_int_equal(tb_packet_receive(ends[1], packet, false), TB_ERR_PROTOCOL);
    close(ends[0]);
    assert_int_equal(tb_packet_receive(ends[1], packet, true), TB_ERR_CLOSED);
    assert_int_equal(tb_packet_send(ends[1], TB_CONTROL_PING, NULL, NULL, 0), TB_ERR_CLOSED);
    close(ends[1]);
    close(bell);
    free(packet);
}

static const char *plan; /* that comes with the welcome; NULL: none */

static int plan_file(void)
{
    int file = plan != NULL ? memfd_create("plan", MFD_CLOEXEC) : -1;
    if (file >= 0)
        assert_int_equal(write(file, plan, strlen(plan)), strlen(plan));
    return file;
}

static bool multicasts;            /* the job that is joined has groups */
static struct tb_host_routes ways; /* that come with the welcome */

/* A host with `count` ranks, of which this process is the last, as an agent would start it. */
static int start_membership_with(uint32_t count, off_t plans_bytes, int *agent)
{
    int ends[2], files[TB_WELCOME_FILES], bells[300];
    struct tb_host host = {.name = "venus1", .rank_count = count};
    struct tb_rank_range range = {.count = count};
    struct tb_address_book book = {
        .version = 1, .job = 9, .ranks = count, .host_count = 1, .range_count = 1, .hosts = &host, .ranges = &range};
    struct tb_rank_welcome welcome = {
        .rank = count - 1, .segment_bytes = 8192, .multicast = multicasts, .size = book.ranks};
    struct stat about;
    char text[128];
    uint32_t sent = 0;
    costs_places(&book.places, 2);
    files[TB_WELCOME_SEGMENT] = memfd_create("segment", MFD_CLOEXEC);
    files[TB_WELCOME_COSTS] = costs_file_of(2, 1, 1);
    assert_int_equal(ftruncate(files[TB_WELCOME_SEGMENT], 8192), 0);
    files[TB_WELCOME_PLAN] = plan_file();
    files[TB_WELCOME_PARENT] = -1;
    files[TB_WELCOME_PLANS] = memfd_create("plans", MFD_CLOEXEC);
    assert_int_equal(ftruncate(files[TB_WELCOME_PLANS], plans_bytes), 0);
    assert_int_equal(tb_address_book_share(&book, &files[TB_WELCOME_BOOK]), TB_OK);
    assert_int_equal(tb_host_routes_share(&ways, &files[TB_WELCOME_ROUTES]), TB_OK);
    assert_int_equal(tb_worlds_make(&book, &files[TB_WELCOME_WORLDS]), TB_OK);
    tb_worlds_close(&book);
    tb_places_close(&book.places);
    for (uint32_t i = 0; i < count; i++)
        assert_true((bells[i] = eventfd(0, EFD_CLOEXEC)) >= 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(tb_rank_welcome_send(ends[0], &welcome, "log=error\n", files, bells, count, &sent), TB_OK);
    assert_int_equal(sent, count);
    for (uint32_t i = 0; i < count; i++)
        close(bells[i]);
    for (int i = 0; i < TB_WELCOME_FILES; i++)
        if (files[i] >= 0)
            close(files[i]);
    assert_int_equal(fstat(ends[1], &about), 0);
    snprintf(text, sizeof text, "%d:%lu:%u:tombolo-nobody", ends[1], (unsigned long)about.st_ino, count);
    setenv(TB_AGENT_VARIABLE, text, 1);
    *agent = ends[0];
    return ends[1];
}

static int start_membership(uint32_t count, int *agent)
{
    return start_membership_with(count, TB_JOB_PLANS_BYTES, agent);
}

static struct {
    int connections, refusals;
    char story[64];
} seen;

static void on_connection(void *context, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    assert_int_equal(proc.index, 4);
    assert_int_equal(stream, TB_STREAM_BULK);
    close(descriptor);
    seen.connections++;
}

static void on_refused(void *context, struct tb_proc proc, enum tb_stream stream, int error)
{
    snprintf(seen.story, sizeof seen.story, "%s", tb_error_story());
    seen.refusals++;
}

static void on_lost(void *context, struct tb_proc first, uint32_t count, int error) {}

static void tell_connection(int agent, int error, int descriptor)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_u32(&w, 9);
    tb_put_u32(&w, 4);
    tb_put_u32(&w, TB_STREAM_BULK);
    tb_put_u32(&w, (uint32_t)error);
    tb_put_text(&w, error != TB_OK ? "no way" : "");
    assert_int_equal(tb_packet_send(agent, TB_CONTROL_CONNECTION, &w, &descriptor, descriptor >= 0 ? 1 : 0), TB_OK);
    tb_writer_close(&w);
}

static void ranks_join_and_talk(void **state)
{
    static const struct tb_job_events events = {.connection = on_connection, .refused = on_refused, .lost = on_lost};
    struct tb_packet *packet = malloc(sizeof *packet);
    assert_non_null(packet);
    for (uint32_t count = 1; count <= 300; count += 299) {
        struct tb_job job;
        int agent, other = eventfd(0, EFD_CLOEXEC);
        start_membership(count, &agent);
        assert_int_equal(tb_job_join(&job), TB_OK);
        assert_int_equal(job.source, TB_JOB_AGENT);
        assert_int_equal(job.self.job, 9);
        assert_int_equal(job.self.index, count - 1);
        assert_int_equal(job.local_index, count - 1);
        assert_int_equal(job.local_count, count);
        assert_int_equal(job.local_procs[count - 1], count - 1);
        assert_true(job.doorbells[count - 1] >= 0);
        assert_int_equal(job.segment_bytes, 8192);
        assert_int_equal(job.plans != NULL, count > 1);
        assert_null(job.plan);
        if (job.plans != NULL)
            memset(job.plans, 1, TB_JOB_PLANS_BYTES);
        assert_string_equal(job.host, "venus1");
        assert_int_equal(tb_packet_receive(agent, packet, false), TB_OK);
        assert_int_equal(packet->frame.kind, TB_CONTROL_HELLO);
        assert_int_equal(tb_get_u32(&packet->frame.fields), getpid());
        assert_int_equal(tb_job_tell_initialized(&job), TB_OK);
        assert_int_equal(tb_packet_receive(agent, packet, false), TB_OK);
        assert_int_equal(packet->frame.kind, TB_CONTROL_INITIALIZED);
        seen.connections = seen.refusals = 0;
        tell_connection(agent, TB_OK, other);
        tell_connection(agent, TB_ERR_PEER, -1);
        assert_int_equal(tb_job_poll(&job, &events), TB_OK);
        assert_int_equal(seen.connections, 1);
        assert_int_equal(seen.refusals, 1);
        assert_string_equal(seen.story, "no way");
        close(agent);
        assert_int_equal(tb_job_poll(&job, &events), TB_ERR_CLOSED);
        tb_job_leave(&job);
        close(other);
    }
    unsetenv(TB_AGENT_VARIABLE);
    free(packet);
}

static int held[600]; /* connections, as many as `seen` says */

static void hold_connection(void *context, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    held[seen.connections++] = descriptor;
}

/* More than the process might have open when it began: its limit follows, up to what it may have at most. */
static void connections_raise_the_limit(void **state)
{
    static const struct tb_job_events events = {.connection = hold_connection};
    const int count = (int)(sizeof held / sizeof held[0]);
    struct rlimit before, now;
    struct tb_job job;
    int agent, other = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    if (before.rlim_max < 2048) {
        print_message("not enough descriptors here (%lu)\n", (unsigned long)before.rlim_max);
        close(other);
        return;
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){280, before.rlim_max}), 0);
    start_membership(2, &agent);
    assert_int_equal(tb_job_join(&job), TB_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(now.rlim_cur, 280); /* not sooner than it is needed */
    seen.connections = 0;
    for (int i = 0; i < count; i++) {
        tell_connection(agent, TB_OK, other);
        assert_in_range(tb_job_poll(&job, &events), 0, 1);
        assert_int_equal(seen.connections, i + 1);
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
    assert_in_range(now.rlim_cur, count + 256, count + 600);
    assert_int_equal(now.rlim_max, before.rlim_max);
    for (int i = 0; i < count; i++)
        close(held[i]);
    tb_job_leave(&job);
    unsetenv(TB_AGENT_VARIABLE);
    close(agent);
    close(other);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* It is mapped as it is, and only to be read; one that is empty is none. */
static void a_plan_comes_along(void **state)
{
    for (uint32_t count = 1; count <= 300; count += 299) {
        struct tb_job job;
        int agent;
        plan = "any bytes";
        start_membership(count, &agent);
        assert_int_equal(tb_job_join(&job), TB_OK);
        assert_int_equal(job.plan_bytes, strlen(plan));
        assert_memory_equal(job.plan, plan, strlen(plan));
        assert_true(job.doorbells[count - 1] >= 0);
        assert_int_equal(mprotect(job.plan, 4096, PROT_READ), 0);
        close(agent);
        tb_job_leave(&job);
        plan = "";
        start_membership(count, &agent);
        assert_int_equal(tb_job_join(&job), TB_ERR_PROTOCOL);
        close(agent);
    }
    plan = NULL;
    unsetenv(TB_AGENT_VARIABLE);
}

static void memory_for_plans_has_its_length(void **state)
{
    static const off_t wrong[] = {0, TB_JOB_PLANS_BYTES - 4096, 2 * TB_JOB_PLANS_BYTES};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct tb_job job;
        int agent;
        start_membership_with(2, wrong[i], &agent);
        assert_int_equal(tb_job_join(&job), TB_ERR_PROTOCOL);
        close(agent);
    }
    unsetenv(TB_AGENT_VARIABLE);
}

static void on_asked(void *context, uint32_t number)
{
    struct tb_job *job = context;
    struct tb_job_wait waits[TB_WAITS_LIMIT];
    for (uint32_t i = 0; i < TB_WAITS_LIMIT; i++) {
        waits[i].time = i;
        memset(waits[i].text, 'x', sizeof waits[i].text - 1);
        waits[i].text[sizeof waits[i].text - 1] = 0;
    }
    tb_job_tell_waits(job, number, waits, TB_WAITS_LIMIT);
}

/* As much as a rank may say fits into a packet. */
static void ranks_answer_what_they_wait_for(void **state)
{
    struct tb_packet *packet = malloc(sizeof *packet);
    struct tb_job job;
    const struct tb_job_events events = {.context = &job, .asked = on_asked}, deaf = {.context = &job};
    struct tb_writer w;
    int agent;
    assert_non_null(packet);
    start_membership(1, &agent);
    assert_int_equal(tb_job_join(&job), TB_OK);
    assert_int_equal(tb_packet_receive(agent, packet, false), TB_OK);
    tb_writer_open(&w);
    tb_put_u32(&w, 77);
    assert_int_equal(tb_packet_send(agent, TB_CONTROL_ASK, &w, NULL, 0), TB_OK);
    assert_int_equal(tb_job_poll(&job, &deaf), TB_OK);
    assert_int_equal(tb_packet_receive(agent, packet, false), TB_AGAIN);
    assert_int_equal(tb_packet_send(agent, TB_CONTROL_ASK, &w, NULL, 0), TB_OK);
    assert_int_equal(tb_job_poll(&job, &events), TB_OK);
    assert_int_equal(tb_packet_receive(agent, packet, false), TB_OK);
    assert_int_equal(packet->frame.kind, TB_CONTROL_WAITS);
    struct tb_reader *r = &packet->frame.fields;
    assert_int_equal(tb_get_u32(r), 77);
    assert_int_equal(tb_get_u32(r), TB_WAITS_LIMIT);
    for (uint32_t i = 0; i < TB_WAITS_LIMIT; i++) {
        size_t length = 0;
        assert_int_equal(tb_get_u64(r), i);
        tb_get_bytes(r, &length);
        assert_int_equal(length, TB_WAIT_TEXT - 1);
    }
    assert_int_equal(tb_reader_end(r), TB_OK);
    tb_writer_close(&w);
    close(agent);
    tb_job_leave(&job);
    unsetenv(TB_AGENT_VARIABLE);
    free(packet);
}

/* However often they change, a rank needs no more memory for them than it has from the start. */
static void ranks_take_new_ways(void **state)
{
    const struct tb_job_events events = {.context = NULL};
    struct tb_host_route rows[2] = {{.means = TB_HOST_ROUTE_DIRECT, .near = 1, .latency = 1},
                                    {.means = TB_HOST_ROUTE_NONE}};
    struct tb_job job;
    int agent;
    ways = (struct tb_host_routes){.version = 1, .kind_count = 2, .routes = rows};
    start_membership(1, &agent);
    assert_int_equal(tb_job_join(&job), TB_OK);
    assert_int_equal(tb_job_route(&job, 0).latency, 1);
    const struct tb_host_route *memory[2] = {job.spare.routes, job.routes.routes};
    for (uint32_t version = 2; version < 5; version++) {
        int descriptor = -1;
        ways.version = version;
        rows[0].latency = version;
        assert_int_equal(tb_host_routes_share(&ways, &descriptor), TB_OK);
        assert_int_equal(tb_packet_send(agent, TB_CONTROL_ROUTES, NULL, &descriptor, 1), TB_OK);
        assert_int_equal(tb_packet_send(agent, TB_CONTROL_ROUTES, NULL, &descriptor, 1), TB_OK); /* the same again */
        close(descriptor);
        assert_int_equal(tb_job_poll(&job, &events), TB_OK);
        assert_int_equal(tb_job_route(&job, 0).latency, version);
        assert_ptr_equal(job.routes.routes, memory[version % 2]);
    }
    ways = (struct tb_host_routes){0};
    close(agent);
    tb_job_leave(&job);
    unsetenv(TB_AGENT_VARIABLE);
}

static void ranks_hear_where_multicast_works(void **state)
{
    struct tb_packet *packet = malloc(sizeof *packet);
    const struct tb_job_events events = {.context = NULL};
    struct tb_multicast_facts said = {.expected = true};
    const uint8_t bits = 2;
    struct tb_writer w;
    struct tb_job job;
    int agent;
    assert_non_null(packet);
    start_membership(1, &agent);
    assert_int_equal(tb_job_join(&job), TB_OK);
    assert_int_equal(tb_multicast_first(&job.multicast, 1), TB_MULTICAST_FAILS); /* there are no groups */
    close(agent);
    tb_job_leave(&job);
    multicasts = true;
    start_membership(1, &agent);
    multicasts = false;
    assert_int_equal(tb_job_join(&job), TB_OK);
    assert_int_equal(tb_multicast_first(&job.multicast, 1), TB_MULTICAST_UNKNOWN);
    assert_int_equal(tb_multicast_learn(&said, 1, &bits, 1), TB_OK);
    tb_writer_open(&w);
    tb_multicast_put(&w, &said);
    assert_int_equal(tb_packet_send(agent, TB_CONTROL_GROUP_VERDICT, &w, NULL, 0), TB_OK);
    assert_int_equal(tb_job_poll(&job, &events), TB_OK);
    assert_int_equal(tb_multicast_first(&job.multicast, 1), TB_MULTICAST_WORKS);
    assert_int_equal(tb_multicast_first(&job.multicast, 0), TB_MULTICAST_FAILS);
    assert_int_equal(tb_packet_receive(agent, packet, false), TB_OK); /* hello */
    tb_job_tell_group_trouble(&job, TB_MULTICAST_OTHER_JOB);
    assert_int_equal(tb_packet_receive(agent, packet, false), TB_OK);
    assert_int_equal(packet->frame.kind, TB_CONTROL_GROUP_TROUBLE);
    assert_int_equal(tb_get_u32(&packet->frame.fields), 1);
    assert_int_equal(tb_get_u8(&packet->frame.fields), TB_MULTICAST_OTHER_JOB);
    w.length--;
    assert_int_equal(tb_packet_send(agent, TB_CONTROL_GROUP_VERDICT, &w, NULL, 0), TB_OK);
    assert_int_equal(tb_job_poll(&job, &events), TB_ERR_PROTOCOL);
    tb_writer_close(&w);
    close(agent);
    tb_job_leave(&job);
    unsetenv(TB_AGENT_VARIABLE);
    free(packet);
}

static void without_an_agent(void **state)
{
    struct tb_job job;
    unsetenv(TB_AGENT_VARIABLE);
    assert_int_equal(tb_job_join(&job), TB_OK);
    assert_int_equal(job.source, TB_JOB_ALONE);
    assert_int_equal(job.size, 1);
    assert_int_equal(tb_address_book_host_of(&job.book, 0), 0);
    assert_int_not_equal(job.self.job, 0);
    assert_int_equal(tb_job_poll(&job, NULL), TB_OK);
    assert_int_not_equal(tb_job_ask_connection(&job, job.self, TB_STREAM_SHORT), TB_OK);
    tb_job_leave(&job);
    static const char *const bad[] = {"x", "1:2", "1:2:3:", "3:4:99999:name", "3:1:1:tombolo-nobody-is-here"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv(TB_AGENT_VARIABLE, bad[i], 1);
        assert_int_not_equal(tb_job_join(&job), TB_OK);
        assert_non_null(strstr(tb_error_story(), TB_AGENT_VARIABLE));
    }
    unsetenv(TB_AGENT_VARIABLE);
}

static void an_agent_that_is_gone(void **state)
{
    struct tb_job job;
    int agent, own = start_membership(2, &agent);
    struct tb_packet *packet = malloc(sizeof *packet);
    assert_non_null(packet);
    /* Somebody else has taken the welcome, and the agent does not answer by name either. */
    assert_int_equal(tb_packet_receive(own, packet, false), TB_OK);
    tb_packet_discard(packet);
    close(agent);
    assert_int_not_equal(tb_job_join(&job), TB_OK);
    unsetenv(TB_AGENT_VARIABLE);
    free(packet);
}

/* Its welcome lies in the inherited socket, but there is nobody any more to be told of us. */
static void an_agent_that_has_gone_after_its_welcome(void **state)
{
    struct tb_job job;
    int agent;
    start_membership(1, &agent);
    close(agent);
    assert_int_equal(tb_job_join(&job), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "is gone"));
    assert_non_null(strstr(tb_error_story(), "goes into the background"));
    unsetenv(TB_AGENT_VARIABLE);
}

/* The name of an agent that is gone, taken by a user whom `uid` is. Returns the process that holds it. */
static pid_t take_name(const char *text, uid_t uid)
{
    int told[2];
    char word;
    assert_int_equal(pipe2(told, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        memcpy(name.sun_path + 1, text, strlen(text));
        socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(text));
        int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        alarm(30);
        if (setuid(uid) == 0 && bind(fd, (struct sockaddr *)&name, length) == 0 && listen(fd, 1) == 0 &&
            write(told[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    assert_true(pid > 0);
    close(told[1]);
    assert_int_equal(read(told[0], &word, 1), 1);
    close(told[0]);
    return pid;
}

static void another_user_in_the_place_of_the_agent(void **state)
{
    struct tb_job job;
    char name[64], text[96];
    if (geteuid() != 0)
        skip();
    snprintf(name, sizeof name, "tombolo-control-test-%d", (int)getpid());
    snprintf(text, sizeof text, "-1:1:1:%s", name);
    pid_t pid = take_name(name, 65534);
    setenv(TB_AGENT_VARIABLE, text, 1);
    assert_int_equal(tb_job_join(&job), TB_ERR_FORBIDDEN);
    assert_non_null(strstr(tb_error_story(), "user 65534"));
    unsetenv(TB_AGENT_VARIABLE);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Moves all that one pipe has queued into the other, as somebody between them would. */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_bring_descriptors),
        cmocka_unit_test(ranks_join_and_talk),
        cmocka_unit_test(connections_raise_the_limit),
        cmocka_unit_test(a_plan_comes_along),
        cmocka_unit_test(memory_for_plans_has_its_length),
        cmocka_unit_test(ranks_answer_what_they_wait_for),
        cmocka_unit_test(ranks_take_new_ways),
        cmocka_unit_test(ranks_hear_where_multicast_works),
        cmocka_unit_test(without_an_agent),
        cmocka_unit_test(an_agent_that_is_gone),
        cmocka_unit_test(an_agent_that_has_gone_after_its_welcome),
        cmocka_unit_test(another_user_in_the_place_of_the_agent),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

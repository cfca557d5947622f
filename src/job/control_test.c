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
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- setup ------------------------------------------------------------------------------------------------------- */

static char *words[] = {(char *)"./hello", (char *)"", (char *)"two words", NULL};
static char *variables[] = {(char *)"A=1", (char *)"B=", NULL};
static struct tb_app apps[2] = {{.first_rank = 0,
                                 .ranks = 3,
                                 .argument_count = 3,
                                 .arguments = words,
                                 .variables = variables,
                                 .variable_count = 2,
                                 .directory = (char *)"/x"},
                                {.first_rank = 3,
                                 .ranks = 1,
                                 .argument_count = 1,
                                 .arguments = words + 2,
                                 .variables = variables + 2,
                                 .directory = (char *)""}};
static struct tb_setup sample = {.version = (char *)"0.1.0",
                                 .bind_width = 2,
                                 .bind_cpus = (char *)"0+1,2",
                                 .rank_cpus = (char *)"3=1\n",
                                 .input_rank = 7,
                                 .job = 5,
                                 .key = {{1, 2, 3}},
                                 .host = 1,
                                 .host_count = 2,
                                 .flags = TB_SETUP_LOCAL,
                                 .bind = TB_BIND_CORE,
                                 .window = 1000,
                                 .hold = 1ull << 40,
                                 .terminal = 24 << 16 | 80,
                                 .parameters = (char *)"log=debug\n",
                                 .own_parameters = (char *)"",
                                 .directory = (char *)"/home",
                                 .app_count = 2,
                                 .apps = apps,
                                 .neighbour_count = 2,
                                 .neighbours = {{.family = 4, .prefix = 24, .bytes = {10, 0, 0, 1}, .port = 7},
                                                {.family = 6, .prefix = 64, .bytes = {0xfd, 1}}}};

static void setup_survives_the_wire(void **state)
{
    struct tb_writer w;
    struct tb_reader r;
    struct tb_setup setup;
    tb_writer_open(&w);
    assert_int_equal(tb_setup_encode(&sample, &w), TB_OK);
    tb_reader_open(&r, w.bytes, w.length);
    assert_int_equal(tb_setup_decode(&setup, &r), TB_OK);
    assert_int_equal(tb_reader_end(&r), TB_OK);
    assert_memory_equal(&setup.key, &sample.key, sizeof setup.key);
    assert_int_equal(setup.bind, TB_BIND_CORE);
    assert_true(setup.hold == 1ull << 40);
    assert_int_equal(setup.terminal, 24 << 16 | 80);
    assert_int_equal(setup.app_count, 2);
    assert_string_equal(setup.apps[0].arguments[2], "two words");
    assert_null(setup.apps[0].arguments[3]);
    assert_string_equal(setup.apps[0].variables[1], "B=");
    assert_int_equal(setup.apps[1].first_rank, 3);
    assert_int_equal(setup.neighbour_count, 2);
    assert_memory_equal(setup.neighbours, sample.neighbours, sizeof sample.neighbours);
    tb_setup_close(&setup);
    for (size_t length = 0; length < w.length; length++) {
        tb_reader_open(&r, w.bytes, length);
        assert_int_not_equal(tb_setup_decode(&setup, &r), TB_OK);
    }
    tb_writer_close(&w);
}

static void damaged_setup_does_no_harm(void **state)
{
    struct tb_writer w;
    struct tb_random random;
    tb_writer_open(&w);
    assert_int_equal(tb_setup_encode(&sample, &w), TB_OK);
    uint8_t *bytes = malloc(w.length);
    assert_non_null(bytes);
    tb_random_seed(&random, 2);
    for (int i = 0; i < 20000; i++) {
        struct tb_reader r;
        struct tb_setup setup;
        memcpy(bytes, w.bytes, w.length);
        bytes[tb_random_below(&random, w.length)] = (uint8_t)tb_random_next(&random);
        bytes[tb_random_below(&random, w.length)] = (uint8_t)tb_random_next(&random);
        tb_reader_open(&r, bytes, w.length);
        if (tb_setup_decode(&setup, &r) == TB_OK)
            tb_setup_close(&setup);
    }
    free(bytes);
    tb_writer_close(&w);
}

/* ---- pipes ------------------------------------------------------------------------------------------------------- */

static void open_ends(struct tb_control_stream *pipe, int *other)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    tb_control_stream_open(pipe, ends[0], ends[0]);
    *other = ends[1];
}

static void frames_arrive_in_pieces(void **state)
{
    struct tb_control_stream from, to;
    int a, b[2];
    struct tb_control_frame frame;
    open_ends(&from, &a);
    assert_int_equal(pipe2(b, O_NONBLOCK | O_CLOEXEC), 0);
    tb_control_stream_open(&to, b[0], -1);
    for (uint32_t i = 0; i < 5; i++) {
        tb_put_u32(tb_control_stream_begin(&from, TB_CONTROL_SIGNAL), i);
        assert_int_equal(tb_control_stream_end(&from), TB_OK);
    }
    assert_int_equal(tb_control_stream_flush(&from), TB_OK);
    assert_int_equal(tb_control_stream_queued(&from), 0);
    uint32_t got = 0;
    char byte;
    while (read(a, &byte, 1) == 1) {
        assert_int_equal(write(b[1], &byte, 1), 1);
        assert_int_equal(tb_control_stream_fill(&to), TB_OK);
        assert_int_equal(tb_control_stream_fill(&to), TB_AGAIN);
        int rc = tb_control_stream_next(&to, &frame);
        if (rc == TB_AGAIN)
            continue;
        assert_int_equal(rc, TB_OK);
        assert_int_equal(frame.kind, TB_CONTROL_SIGNAL);
        assert_int_equal(tb_get_u32(&frame.fields), got++);
        assert_int_equal(tb_reader_end(&frame.fields), TB_OK);
    }
    assert_int_equal(got, 5);
    close(b[1]);
    assert_int_equal(tb_control_stream_fill(&to), TB_ERR_CLOSED);
    close(a);
    tb_control_stream_close(&from);
    tb_control_stream_close(&to);
}

static void long_frames_wait_for_room(void **state)
{
    struct tb_control_stream from, to;
    int other;
    static char bytes[3000000];
    struct tb_control_frame frame;
    size_t length = 0;
    memset(bytes, 'x', sizeof bytes);
    open_ends(&from, &other);
    tb_control_stream_open(&to, other, other);
    tb_put_bytes(tb_control_stream_begin(&from, TB_CONTROL_INPUT), bytes, sizeof bytes);
    assert_int_equal(tb_control_stream_end(&from), TB_OK);
    assert_int_equal(tb_control_stream_send(&from, TB_CONTROL_PING), TB_OK);
    assert_int_equal(tb_control_stream_flush(&from), TB_AGAIN);
    while (tb_control_stream_next(&to, &frame) == TB_AGAIN) {
        tb_control_stream_fill(&to);
        tb_control_stream_flush(&from);
    }
    assert_non_null(tb_get_bytes(&frame.fields, &length));
    assert_int_equal(length, sizeof bytes);
    while (tb_control_stream_next(&to, &frame) == TB_AGAIN) {
        tb_control_stream_fill(&to);
        tb_control_stream_flush(&from);
    }
    assert_int_equal(frame.kind, TB_CONTROL_PING);
    tb_control_stream_close(&from);
    tb_control_stream_close(&to);
}

static void preamble_is_found_in_noise(void **state)
{
    struct tb_control_stream pipe;
    int other;
    char version[32];
    const char first[] = "Welcome to venus!\nNo mail.\ntombolo ag", second[] = "ent 0.1.0 wi", third[] = "re 1\nXYZ";
    open_ends(&pipe, &other);
    assert_int_equal(write(other, first, sizeof first - 1), sizeof first - 1);
    assert_int_equal(tb_control_stream_fill(&pipe), TB_OK);
    assert_int_equal(tb_control_stream_preamble(&pipe, version, sizeof version), TB_AGAIN);
    assert_int_equal(write(other, second, sizeof second - 1), sizeof second - 1);
    assert_int_equal(tb_control_stream_fill(&pipe), TB_OK);
    assert_int_equal(tb_control_stream_preamble(&pipe, version, sizeof version), TB_AGAIN);
    assert_int_equal(write(other, third, sizeof third - 1), sizeof third - 1);
    assert_int_equal(tb_control_stream_fill(&pipe), TB_OK);
    assert_int_equal(tb_control_stream_preamble(&pipe, version, sizeof version), TB_OK);
    assert_string_equal(version, "0.1.0 wire 1");
    assert_int_equal(pipe.received_end - pipe.received_start, 3);
    close(other);
    tb_control_stream_close(&pipe);
}

static void endless_noise_is_no_preamble(void **state)
{
    struct tb_control_stream pipe;
    int other, rc = TB_AGAIN;
    char version[32], noise[4096];
    memset(noise, 'n', sizeof noise);
    open_ends(&pipe, &other);
    for (int i = 0; i < 100 && rc == TB_AGAIN; i++) {
        assert_int_equal(write(other, noise, sizeof noise), sizeof noise);
        while (tb_control_stream_fill(&pipe) == TB_OK)
            ;
        rc = tb_control_stream_preamble(&pipe, version, sizeof version);
    }
    assert_int_equal(rc, TB_ERR_PROTOCOL);
    close(other);
    tb_control_stream_close(&pipe);
}

static void garbage_is_refused(void **state)
{
    struct tb_random random;
    tb_random_seed(&random, 3);
    for (int i = 0; i < 200; i++) {
        struct tb_control_stream pipe;
        struct tb_control_frame frame;
        int other, rc = TB_OK;
        uint8_t bytes[256];
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)tb_random_next(&random);
        bytes[0] = i % 2 == 0 ? TB_WIRE_VERSION : bytes[0];
        open_ends(&pipe, &other);
        assert_int_equal(write(other, bytes, sizeof bytes), sizeof bytes);
        assert_int_equal(tb_control_stream_fill(&pipe), TB_OK);
        for (int k = 0; k < 20 && rc == TB_OK; k++)
            rc = tb_control_stream_next(&pipe, &frame);
        assert_int_not_equal(rc, TB_OK);
        close(other);
        tb_control_stream_close(&pipe);
    }
}

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

/* A host with `count` ranks, of which this process is the last, as an agent would start it. */
static int start_membership(uint32_t count, int *agent)
{
    int ends[2], book_fd, routes_fd, segment = memfd_create("segment", MFD_CLOEXEC), bells[300];
    struct tb_host host = {.name = "venus1", .rank_count = count};
    struct tb_rank_range range = {0, count, 0, 0};
    struct tb_address_book book = {
        .job = 9, .ranks = count, .host_count = 1, .range_count = 1, .hosts = &host, .ranges = &range};
    struct tb_rank_welcome welcome = {.rank = count - 1, .segment_bytes = 8192};
    struct stat about;
    char text[128];
    uint32_t sent = 0;
    assert_int_equal(ftruncate(segment, 8192), 0);
    assert_int_equal(tb_address_book_share(&book, &book_fd), TB_OK);
    assert_int_equal(tb_host_routes_share(&(struct tb_host_routes){0}, &routes_fd), TB_OK);
    for (uint32_t i = 0; i < count; i++)
        assert_true((bells[i] = eventfd(0, EFD_CLOEXEC)) >= 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(
        tb_rank_welcome_send(ends[0], &welcome, "log=error\n", segment, book_fd, routes_fd, bells, count, &sent),
        TB_OK);
    assert_int_equal(sent, count);
    for (uint32_t i = 0; i < count; i++)
        close(bells[i]);
    close(segment);
    close(book_fd);
    close(routes_fd);
    assert_int_equal(fstat(ends[1], &about), 0);
    snprintf(text, sizeof text, "%d:%lu:%u:tombolo-nobody", ends[1], (unsigned long)about.st_ino, count);
    setenv(TB_AGENT_VARIABLE, text, 1);
    *agent = ends[0];
    return ends[1];
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

static void on_lost(void *context, struct tb_proc proc, int error) {}

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
static void carry(struct tb_control_stream *from, struct tb_control_stream *to, size_t most)
{
    size_t length;
    while (tb_control_stream_queued(from) > 0 && most > 0) {
        const void *bytes = tb_control_stream_take(from, most < 7 ? most : 7, &length);
        assert_int_equal(tb_control_stream_feed(to, bytes, length), TB_OK);
        most -= length;
    }
}

static void put_number(struct tb_control_stream *pipe, uint32_t number)
{
    tb_put_u32(tb_control_stream_begin(pipe, TB_CONTROL_WINDOW), number);
    assert_int_equal(tb_control_stream_end(pipe), TB_OK);
}

/* Numbers from *next on, until nothing more is there. */
static void expect_numbers(struct tb_control_stream *pipe, uint32_t *next)
{
    struct tb_control_frame frame;
    int rc;
    while ((rc = tb_control_stream_next(pipe, &frame)) == TB_OK)
        if (frame.kind == TB_CONTROL_WINDOW)
            assert_int_equal(tb_get_u32(&frame.fields), (*next)++);
    assert_int_equal(rc, TB_AGAIN);
}

/* It cannot go on as another one, and what is said of its frames does not matter. */
static void one_that_keeps_nothing(void **state)
{
    struct tb_control_stream a;
    size_t length;
    tb_control_stream_open(&a, -1, -1);
    for (uint32_t i = 0; i < 2000; i++) {
        put_number(&a, i);
        tb_control_stream_take(&a, 17, &length); /* never up to the end of a frame */
    }
    assert_int_equal(tb_control_stream_heard(&a, 3), TB_OK);
    assert_int_equal(tb_control_stream_resume(&a, -1, -1, 3), TB_ERR_PROTOCOL);
    tb_control_stream_close(&a);
}

/* Whatever is lost with a stream is sent again on the next one, once, and nothing is kept that has been heard. */
static void lost_streams_are_resumed(void **state)
{
    struct tb_control_stream a, b;
    uint32_t sent = 0, received = 0;
    for (size_t lost_at = 0; lost_at < 200; lost_at += 13) {
        tb_control_stream_open(&a, -1, -1);
        tb_control_stream_open(&b, -1, -1);
        tb_control_stream_keep(&a);
        tb_control_stream_keep(&b);
        for (sent = received = 0; sent < 20; sent++)
            put_number(&a, sent);
        carry(&a, &b, lost_at);
        size_t length;
        tb_control_stream_take(&a, 100, &length); /* gone with the stream */
        expect_numbers(&b, &received);
        put_number(&a, sent++);
        assert_int_equal(tb_control_stream_resume(&a, -1, -1, b.sequence_in), TB_OK);
        assert_int_equal(tb_control_stream_resume(&b, -1, -1, a.sequence_in), TB_OK);
        carry(&a, &b, SIZE_MAX);
        expect_numbers(&b, &received);
        assert_int_equal(received, 21);
        assert_false(tb_control_stream_tell_heard(&b, 100));
        assert_true(tb_control_stream_tell_heard(&b, 1));
        carry(&b, &a, SIZE_MAX);
        struct tb_control_frame frame;
        assert_int_equal(tb_control_stream_next(&a, &frame), TB_OK);
        assert_int_equal(frame.kind, TB_CONTROL_HEARD);
        tb_control_stream_heard(&a, tb_get_u32(&frame.fields));
        assert_int_equal(a.queued_end, 0);
        assert_int_equal(tb_control_stream_resume(&a, -1, -1, 3), TB_ERR_PROTOCOL); /* which nobody has any more */
        assert_int_equal(tb_control_stream_resume(&a, -1, -1, sent + 1), TB_ERR_PROTOCOL); /* nor yet */
        assert_int_equal(tb_control_stream_heard(&a, sent + 1), TB_ERR_PROTOCOL);
        assert_int_equal(tb_control_stream_keep(&a), TB_ERR_PROTOCOL); /* too late */
        tb_control_stream_close(&a);
        tb_control_stream_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setup_survives_the_wire),
        cmocka_unit_test(damaged_setup_does_no_harm),
        cmocka_unit_test(frames_arrive_in_pieces),
        cmocka_unit_test(long_frames_wait_for_room),
        cmocka_unit_test(preamble_is_found_in_noise),
        cmocka_unit_test(endless_noise_is_no_preamble),
        cmocka_unit_test(garbage_is_refused),
        cmocka_unit_test(packets_bring_descriptors),
        cmocka_unit_test(ranks_join_and_talk),
        cmocka_unit_test(without_an_agent),
        cmocka_unit_test(an_agent_that_is_gone),
        cmocka_unit_test(an_agent_that_has_gone_after_its_welcome),
        cmocka_unit_test(another_user_in_the_place_of_the_agent),
        cmocka_unit_test(lost_streams_are_resumed),
        cmocka_unit_test(one_that_keeps_nothing),
        cmocka_unit_test(ranks_answer_what_they_wait_for),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

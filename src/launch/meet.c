/* What `tombolo meet` does: a name server from its start to its end. */
#include "launch/launch.h"

#include "launch/name_client.h"
#include "launch/name_file.h"
#include "launch/name_server.h"
#include "launch/own_addresses.h"
#include "link/link.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_NS 3000000000u /* for a server that may still live, on whichever machine */

/* The one that runs. */
struct meet {
    struct tb_loop loop;
    struct tb_name_server server;
    struct tb_watch signals;
    struct tb_name_file file;
};

/* The exit code. */
static int complain(int rc)
{
    fprintf(stderr, "tombolo meet: %s\n", tb_error_story());
    return rc == TB_ERR_ARGUMENT ? 2 : 1;
}

/* Whether the server that has written a file still answers. */
struct question {
    struct tb_loop loop;
    struct tb_name_client client;
    struct tb_timer late;
    bool answered;
};

static void too_late(struct tb_timer *timer)
{
    TB_CONTAINER(timer, struct question, late)->loop.stop = true;
}

static void question_answered(void *context, uint32_t rank, const struct tb_registry_answer *answer)
{
    struct question *question = context;
    question->answered = answer->result != TB_REGISTRY_DEAD;
    question->loop.stop = true;
}

static void settle_question(struct tb_loop *loop)
{
    tb_name_client_settle(&TB_CONTAINER(loop, struct question, loop)->client);
}

/* Asked for a name, as a launcher does. */
static void look_up(struct question *question)
{
    struct tb_writer fields;
    tb_writer_open(&fields);
    tb_registry_question_put(&fields, &(struct tb_registry_question){.kind = TB_REGISTRY_LOOKUP, .name = "?"});
    tb_name_client_take(&question->client, &(struct tb_agent_wish){0, 0, fields.bytes, fields.length});
    tb_writer_close(&fields);
}

static int ask_whether_it_lives(const char *path, bool *lives)
{
    static struct question question;
    const struct tb_name_client_events heard = {.context = &question, .answered = question_answered};
    int rc = tb_loop_open(&question.loop, &tb_clock_real);
    if (rc != TB_OK)
        return rc;
    rc = tb_name_client_open(&question.client, &question.loop, path, &heard);
    if (rc == TB_OK) {
        question.loop.settle = settle_question;
        tb_timer_init(&question.late, too_late);
        tb_timer_set(&question.loop, &question.late, ANSWER_NS);
        look_up(&question);
        rc = tb_loop_run(&question.loop);
        tb_timer_clear(&question.late);
    }
    tb_name_client_close(&question.client);
    tb_loop_close(&question.loop);
    *lives = question.answered;
    return rc;
}

/* Nothing is replaced but what a server has left behind that is gone. */
static int find_place(struct tb_name_file *file, const char *path)
{
    bool lives = false;
    int rc = tb_name_file_claim(file, path);
    if (rc == TB_OK && file->left >= 0)
        rc = ask_whether_it_lives(path, &lives);
    if (rc == TB_OK && lives)
        rc = tb_error(TB_ERR_ARGUMENT,
                      "%s is of a tombolo meet that still answers: start jobs with that one, end it first, or name "
                      "another file",
                      path);
    return rc;
}

static void signals_ready(struct tb_watch *watch, uint32_t events)
{
    TB_CONTAINER(watch, struct meet, signals)->loop.stop = true;
}

static void settle(struct tb_loop *loop)
{
    tb_name_server_settle(&TB_CONTAINER(loop, struct meet, loop)->server);
}

static int open_signals(struct meet *meet)
{
    sigset_t set, before;
    int descriptor;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    int rc = tb_signals_open(&set, &before, &descriptor);
    return rc == TB_OK ? tb_loop_watch(&meet->loop, &meet->signals, descriptor, EPOLLIN, signals_ready) : rc;
}

/* Listens, and tells jobs where in the file. */
static int begin(struct meet *meet, const char *path, const char *ports)
{
    char addresses[TB_OWN_ADDRESSES_BYTES], text[TB_NAME_PLACE_BYTES];
    struct tb_name_place place;
    uint16_t port = 0;
    int rc = tb_tls_is_usable();
    if (rc != TB_OK)
        return rc;
    int socket = tb_ports_listen(ports, &port);
    if (socket < 0)
        return tb_error_errno("cannot listen at ports %s", ports);
    tb_own_addresses_print(port, addresses);
    rc = tb_name_place_make(&place, addresses, text);
    if (rc == TB_OK)
        rc = tb_name_server_open(&meet->server, &meet->loop, socket, &place.key);
    if (rc == TB_OK)
        rc = tb_name_file_write(&meet->file, text);
    if (rc == TB_OK) {
        printf("tombolo meet: names are kept at %s\nstart jobs with: mpiexec --meet %s ...\n"
               "On other machines they need a copy of this file, which has a secret in it.\n",
               addresses, path);
        fflush(stdout);
    }
    explicit_bzero(text, sizeof text);
    return rc;
}

int tb_meet_run(const char *path, const char *ports)
{
    static struct meet meet;
    tb_core_forbid(); /* the secret is in our memory */
    signal(SIGPIPE, SIG_IGN);
    int rc = find_place(&meet.file, path);
    if (rc == TB_OK)
        rc = tb_loop_open(&meet.loop, &tb_clock_real);
    meet.loop.settle = settle;
    if (rc == TB_OK)
        rc = open_signals(&meet);
    if (rc == TB_OK)
        rc = begin(&meet, path, ports);
    if (rc != TB_OK)
        return complain(rc);
    rc = tb_loop_run(&meet.loop);
    tb_name_file_close(&meet.file);
    tb_name_server_close(&meet.server);
    return rc == TB_OK ? 0 : complain(rc);
}

#include "launch/name_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADDRESS_NS 5000000000u /* for one address to answer, and prove the secret; then for it to say anything */

struct asked_name {
    struct tb_list node;
    uint32_t rank, number;
};

static void try_next(struct tb_name_client *client);

/* ---- its end ----------------------------------------------------------------------------------------------------- */

static void close_socket(struct tb_name_client *client)
{
    int socket = client->watch.descriptor;
    tb_timer_clear(&client->overdue);
    if (socket < 0)
        return;
    tb_loop_unwatch(client->loop, &client->watch);
    close(socket);
}

/* Nobody is there: whoever waits for an answer has none. The next question tries again. */
static void fail(struct tb_name_client *client)
{
    close_socket(client);
    client->broken = true;
    while (!tb_list_empty(&client->asked)) {
        struct asked_name *asked = TB_CONTAINER(client->asked.next, struct asked_name, node);
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a question that was freed is in no list
        const struct tb_registry_answer answer = {.number = asked->number, .result = TB_REGISTRY_DEAD};
        uint32_t rank = asked->rank;
        tb_list_remove(&asked->node);
        client->asked_count--;
        free(asked);
        client->events.answered(client->events.context, rank, &answer);
    }
}

static void bury(struct tb_name_client *client)
{
    if (!client->broken)
        return;
    tb_tls_stream_close(&client->tls);
    tb_control_stream_close(&client->control);
    tb_control_stream_open(&client->control, -1, -1);
    client->open = client->broken = false;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static int take_answer(struct tb_name_client *client, struct tb_control_frame *frame)
{
    struct tb_registry_answer answer;
    struct asked_name *asked;
    uint32_t rank = tb_get_u32(&frame->fields), number = tb_get_u32(&frame->fields);
    size_t length = 0;
    const void *bytes = tb_get_bytes(&frame->fields, &length);
    if (frame->kind != TB_CONTROL_ANSWER || tb_reader_end(&frame->fields) != TB_OK ||
        tb_registry_answer_unpack(bytes, length, &answer) != TB_OK)
        return TB_ERR_PROTOCOL;
    free(answer.members); /* names have none */
    answer.members = NULL;
    answer.member_count = 0;
    answer.number = number;
    TB_LIST_EACH (asked, &client->asked, struct asked_name, node)
        if (asked->rank == rank && asked->number == answer.number) {
            tb_list_remove(&asked->node);
            client->asked_count--;
            free(asked);
            client->events.answered(client->events.context, rank, &answer);
            break;
        }
    return TB_OK;
}

static void received(void *context, const void *bytes, size_t length)
{
    struct tb_name_client *client = context;
    struct tb_control_frame frame;
    client->heard = true;
    int rc = client->broken ? TB_ERR_CLOSED : tb_control_stream_feed(&client->control, bytes, length);
    while (rc == TB_OK && (rc = tb_control_stream_next(&client->control, &frame)) == TB_OK)
        rc = take_answer(client, &frame);
    if (rc != TB_AGAIN && rc != TB_OK)
        fail(client);
}

static void ended(void *context, int error)
{
    fail(context);
}

/* ---- connecting -------------------------------------------------------------------------------------------------- */

static void ask(struct tb_name_client *client, uint32_t rank, const struct tb_registry_question *question)
{
    struct tb_writer *w = tb_control_stream_begin(&client->control, TB_CONTROL_REGISTRY);
    tb_put_u32(w, rank);
    tb_put_u32(w, question->number);
    tb_registry_question_put(w, question);
    tb_control_stream_end(&client->control);
}

/* Somebody waits for an answer from now on, or still does. */
static void listen_for_it(struct tb_name_client *client)
{
    client->heard = true;
    tb_timer_set(client->loop, &client->overdue, ADDRESS_NS);
}

/* Who waits for a name that nobody has published hears nothing for a long time; so it is asked something else now and
 * then, which it answers at once if it is there. */
static void look_for_it(struct tb_name_client *client)
{
    if (tb_list_empty(&client->asked))
        return;
    if (!client->heard) {
        fail(client);
        return;
    }
    ask(client, 0, &(struct tb_registry_question){.kind = TB_REGISTRY_LOOKUP, .name = "?"});
    client->heard = false;
    tb_timer_set(client->loop, &client->overdue, ADDRESS_NS);
}

/* The secret is proved by both. */
static void encrypt(struct tb_name_client *client)
{
    struct tb_key secret;
    int socket = client->watch.descriptor;
    tb_loop_unwatch(client->loop, &client->watch);
    int rc = tb_stream_secret(&secret, &client->place.key, &client->handshake.hello, &client->handshake.welcome);
    if (rc == TB_OK)
        rc = tb_tls_stream_open(&client->tls, client->loop, socket, &secret, true, &client->control,
                                &(struct tb_tls_stream_events){client, received, ended});
    explicit_bzero(&secret, sizeof secret);
    if (rc != TB_OK) {
        close(socket);
        fail(client);
    } else {
        listen_for_it(client);
        tb_tls_stream_flush(&client->tls); /* the first words of TLS are ours */
    }
}

static int say_hello(struct tb_name_client *client)
{
    int error = 0, socket = client->watch.descriptor;
    socklen_t length = sizeof error;
    if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0)
        return TB_ERR_PEER;
    client->greeted = true;
    int rc = tb_handshake_connect(&client->handshake, &client->place.key, (struct tb_proc){0, TB_PROC_AGENT},
                                  (struct tb_proc){0, 0}, TB_STREAM_SHORT, 0);
    if (rc == TB_OK)
        rc = tb_handshake_socket_send(&client->handshake, socket);
    tb_loop_change(client->loop, &client->watch, EPOLLIN);
    return rc;
}

static int advance(struct tb_name_client *client)
{
    struct tb_handshake *h = &client->handshake;
    int rc = TB_OK, socket = client->watch.descriptor;
    while (rc == TB_OK && h->verdict != TB_HANDSHAKE_DONE) {
        rc = tb_handshake_socket_receive(h, socket);
        if (rc == TB_OK && h->verdict == TB_HANDSHAKE_WELCOMED) {
            rc = tb_handshake_confirm(h);
            if (rc == TB_OK)
                rc = tb_handshake_socket_send(h, socket);
        } else if (rc == TB_OK && h->verdict != TB_HANDSHAKE_DONE) {
            rc = TB_ERR_FORBIDDEN;
        }
    }
    return rc;
}

static void socket_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_name_client *client = TB_CONTAINER(watch, struct tb_name_client, watch);
    int rc = client->greeted ? advance(client) : say_hello(client);
    if (rc == TB_AGAIN || (rc == TB_OK && client->handshake.verdict != TB_HANDSHAKE_DONE))
        return;
    if (rc == TB_OK)
        encrypt(client);
    else
        try_next(client);
}

static void overdue(struct tb_timer *timer)
{
    struct tb_name_client *client = TB_CONTAINER(timer, struct tb_name_client, overdue);
    if (tb_tls_stream_is_open(&client->tls))
        look_for_it(client);
    else
        try_next(client);
}

static int dial(struct tb_name_client *client, const struct tb_address *address)
{
    struct sockaddr_storage name;
    socklen_t length = tb_address_socket(address, &name);
    int fd = socket(address->family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return TB_ERR_SYSTEM;
    if ((connect(fd, (struct sockaddr *)&name, length) < 0 && errno != EINPROGRESS) ||
        tb_loop_watch(client->loop, &client->watch, fd, EPOLLOUT, socket_ready) != TB_OK) {
        close(fd);
        return TB_ERR_PEER;
    }
    client->greeted = false;
    client->handshake = (struct tb_handshake){0};
    tb_timer_set(client->loop, &client->overdue, ADDRESS_NS);
    return TB_OK;
}

static void try_next(struct tb_name_client *client)
{
    char *word;
    struct tb_address address;
    close_socket(client);
    while ((word = strsep(&client->next, ",")) != NULL)
        if (tb_address_parse(word, &address) == TB_OK && dial(client, &address) == TB_OK)
            return;
    fail(client);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static bool note(struct tb_name_client *client, uint32_t rank, uint32_t number)
{
    struct asked_name *asked = client->asked_count < TB_NAME_CLIENT_ASKED ? calloc(1, sizeof *asked) : NULL;
    if (asked == NULL)
        return false;
    asked->rank = rank;
    asked->number = number;
    tb_list_append(&client->asked, &asked->node);
    client->asked_count++;
    return true;
}

bool tb_name_client_take(struct tb_name_client *client, const struct tb_agent_wish *wish)
{
    struct tb_reader r;
    struct tb_registry_question question;
    uint32_t rank = wish->rank;
    tb_reader_open(&r, wish->bytes, wish->length);
    if (client->loop == NULL || tb_registry_question_get(&r, &question) != TB_OK)
        return false;
    question.number = wish->number;
    if (question.kind == TB_REGISTRY_END)
        tb_name_client_end(client, rank);
    if (question.kind < TB_REGISTRY_PUBLISH || question.kind > TB_REGISTRY_LOOKUP)
        return false;
    bury(client);
    if (!note(client, rank, question.number)) {
        const struct tb_registry_answer full = {.number = question.number, .result = TB_REGISTRY_FULL};
        client->events.answered(client->events.context, rank, &full);
        return true;
    }
    ask(client, rank, &question);
    if (client->open && !tb_timer_is_set(&client->overdue))
        listen_for_it(client);
    if (client->open)
        return true;
    client->open = true;
    memcpy(client->tried, client->place.addresses, sizeof client->tried);
    client->next = client->tried;
    try_next(client);
    return true;
}

void tb_name_client_end(struct tb_name_client *client, uint32_t rank)
{
    struct asked_name *asked;
    if (client->loop == NULL || !client->open || client->broken)
        return;
    TB_LIST_EACH (asked, &client->asked, struct asked_name, node)
        if (asked->rank == rank) {
            tb_list_remove(&asked->node);
            client->asked_count--;
            free(asked);
        }
    ask(client, rank, &(struct tb_registry_question){.kind = TB_REGISTRY_END});
}

void tb_name_client_settle(struct tb_name_client *client)
{
    if (client->loop == NULL)
        return;
    bury(client);
    if (tb_tls_stream_is_open(&client->tls) && tb_control_stream_queued(&client->control) > 0)
        tb_tls_stream_flush(&client->tls);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

int tb_name_client_open(struct tb_name_client *client, struct tb_loop *loop, const char *path,
                        const struct tb_name_client_events *events)
{
    *client = (struct tb_name_client){.events = *events, .watch.descriptor = -1, .tls.watch.descriptor = -1};
    tb_list_init(&client->asked);
    int rc = tb_name_place_read(&client->place, path);
    if (rc != TB_OK)
        return rc;
    client->loop = loop;
    tb_timer_init(&client->overdue, overdue);
    tb_control_stream_open(&client->control, -1, -1);
    return TB_OK;
}

void tb_name_client_close(struct tb_name_client *client)
{
    struct asked_name *asked;
    if (client->loop == NULL)
        return;
    close_socket(client);
    tb_tls_stream_close(&client->tls);
    tb_control_stream_close(&client->control);
    TB_LIST_EACH (asked, &client->asked, struct asked_name, node)
        free(asked);
    explicit_bzero(&client->place, sizeof client->place);
    client->loop = NULL;
}

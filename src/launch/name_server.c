#include "launch/name_server.h"

#include "launch/tls_stream.h"

#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_NS 10000000000u /* for a caller to prove the secret */
#define RANK_BITS   20u          /* of what the table knows a process by; above it, which client that is */
#define RECEIVED    65536u       /* bytes that no frame of a client has */
#define UNSENT      (64u << 20)  /* that a client has not read, though a job of many ranks asks: it is no friend */
#define IDLE_S      10           /* until the kernel asks whether a client is there, and how long it may take */

struct name_caller {
    struct tb_caller head;
    struct tb_handshake handshake;
};

struct tb_name_guest {
    struct tb_list node;
    struct tb_name_server *server;
    uint32_t slot;
    struct tb_tls_stream tls;
    struct tb_control_stream control;
    bool over;
};

/* ---- questions --------------------------------------------------------------------------------------------------- */

/* It may be in a call of its own, or the table in one of its: both are looked after when nobody is (bury). */
static void guest_end(struct tb_name_guest *guest)
{
    if (guest->over)
        return;
    guest->over = true;
    tb_list_append(&guest->server->dead, &guest->node);
}

/* Somebody waits no longer than until then. */
static void wake_by(struct tb_name_server *server, uint64_t until)
{
    uint64_t now = tb_loop_now(server->loop);
    if (until != TB_NEVER && (!tb_timer_is_set(&server->late) || until < server->late.due))
        tb_timer_set(server->loop, &server->late, until > now ? until - now : 0);
}

static void something_late(struct tb_timer *timer)
{
    struct tb_name_server *server = TB_CONTAINER(timer, struct tb_name_server, late);
    wake_by(server, tb_name_table_expire(&server->names, tb_loop_now(server->loop)));
}

static void tell(void *context, uint32_t proc, const struct tb_registry_answer *answer)
{
    const struct tb_name_server *server = context;
    struct tb_name_guest *guest = server->clients[proc >> RANK_BITS];
    if (guest == NULL || guest->over)
        return;
    void *bytes = NULL;
    size_t length = 0;
    if (tb_registry_answer_pack(answer, &bytes, &length) != TB_OK) {
        guest_end(guest);
        return;
    }
    struct tb_writer *w = tb_control_stream_begin(&guest->control, TB_CONTROL_ANSWER);
    tb_put_u32(w, proc & ((1u << RANK_BITS) - 1));
    tb_put_u32(w, answer->number);
    tb_put_bytes(w, bytes, length);
    tb_control_stream_end(&guest->control);
    free(bytes);
    if (tb_control_stream_queued(&guest->control) > UNSENT)
        guest_end(guest);
}

static int take_question(struct tb_name_guest *guest, struct tb_control_frame *frame)
{
    struct tb_registry_question question;
    struct tb_name_server *server = guest->server;
    uint32_t rank = tb_get_u32(&frame->fields), number = tb_get_u32(&frame->fields);
    if (frame->kind != TB_CONTROL_REGISTRY || rank >= TB_JOB_RANKS_LIMIT ||
        tb_registry_question_get(&frame->fields, &question) != TB_OK)
        return TB_ERR_PROTOCOL;
    uint32_t proc = guest->slot << RANK_BITS | rank;
    question.number = number;
    if (question.kind == TB_REGISTRY_END) {
        tb_name_table_end(&server->names, proc, proc);
    } else if (question.kind >= TB_REGISTRY_PUBLISH && question.kind <= TB_REGISTRY_LOOKUP) {
        uint64_t now = tb_loop_now(server->loop);
        uint64_t until = question.patience < TB_NEVER - now ? now + question.patience : TB_NEVER;
        tb_name_table_ask(&server->names, proc, &question, until);
        if (question.kind == TB_REGISTRY_LOOKUP && question.patience > 0)
            wake_by(server, until);
    } else {
        return TB_ERR_PROTOCOL;
    }
    return TB_OK;
}

static void received(void *context, const void *bytes, size_t length)
{
    struct tb_name_guest *guest = context;
    struct tb_control_frame frame;
    int rc = guest->over ? TB_ERR_CLOSED : tb_control_stream_feed(&guest->control, bytes, length);
    while (rc == TB_OK && !guest->over && (rc = tb_control_stream_next(&guest->control, &frame)) == TB_OK)
        rc = take_question(guest, &frame);
    if ((rc != TB_OK && rc != TB_AGAIN) || guest->control.received_end - guest->control.received_start > RECEIVED)
        guest_end(guest);
}

static void ended(void *context, int error)
{
    guest_end(context);
}

/* ---- guests ------------------------------------------------------------------------------------------------------ */

static void ask_now_and_then(int socket)
{
    int on = 1, idle = IDLE_S, often = 3;
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &often, sizeof often);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &often, sizeof often);
}

/* Takes the socket. */
static void guest_open(struct tb_name_server *server, int socket, const struct tb_handshake *h)
{
    struct tb_name_guest *guest = calloc(1, sizeof *guest);
    struct tb_key secret;
    uint32_t slot = 0;
    while (slot < TB_NAME_SERVER_CLIENTS && server->clients[slot] != NULL)
        slot++;
    if (guest == NULL || slot == TB_NAME_SERVER_CLIENTS ||
        tb_stream_secret(&secret, &server->key, &h->hello, &h->welcome) != TB_OK) {
        free(guest);
        close(socket);
        return;
    }
    ask_now_and_then(socket);
    guest->server = server;
    guest->slot = slot;
    tb_list_init(&guest->node);
    tb_control_stream_open(&guest->control, -1, -1);
    if (tb_tls_stream_open(&guest->tls, server->loop, socket, &secret, false, &guest->control,
                           &(struct tb_tls_stream_events){guest, received, ended}) == TB_OK) {
        server->clients[slot] = guest;
    } else {
        close(socket);
        tb_control_stream_close(&guest->control);
        free(guest);
    }
    explicit_bzero(&secret, sizeof secret);
}

static int advance(struct tb_name_server *server, struct name_caller *caller)
{
    struct tb_handshake *h = &caller->handshake;
    int rc = TB_OK, socket = caller->head.watch.descriptor;
    while (rc == TB_OK && h->verdict != TB_HANDSHAKE_DONE) {
        rc = tb_handshake_socket_receive(h, socket);
        if (rc == TB_OK && h->verdict == TB_HANDSHAKE_ASKED) {
            rc = tb_handshake_socket_welcome(h, &server->nonces, socket);
            if (rc == TB_OK)
                tb_caller_heard(&caller->head);
        } else if (rc == TB_OK && h->verdict == TB_HANDSHAKE_CONFIRMED) {
            tb_handshake_admit(h);
            rc = tb_handshake_socket_send(h, socket);
        } else if (rc == TB_OK) {
            rc = TB_ERR_FORBIDDEN;
        }
    }
    return rc;
}

static void caller_ready(void *context, struct tb_caller *head)
{
    struct tb_name_server *server = context;
    struct name_caller *caller = TB_CONTAINER(head, struct name_caller, head);
    int rc = advance(server, caller);
    if (rc == TB_AGAIN)
        return;
    struct tb_handshake shaken = caller->handshake;
    int socket = tb_caller_end(head);
    if (rc == TB_OK)
        guest_open(server, socket, &shaken);
    else
        close(socket);
}

static bool caller_came(void *context, struct tb_caller *head)
{
    const struct tb_name_server *server = context;
    tb_handshake_accept(&TB_CONTAINER(head, struct name_caller, head)->handshake, &server->key);
    return true;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

int tb_name_server_open(struct tb_name_server *server, struct tb_loop *loop, int socket, const struct tb_key *key)
{
    const struct tb_callers_events heard = {
        .context = server, .bytes = sizeof(struct name_caller), .came = caller_came, .ready = caller_ready};
    *server = (struct tb_name_server){.loop = loop, .key = *key};
    tb_list_init(&server->dead);
    tb_timer_init(&server->late, something_late);
    tb_name_table_open(&server->names, tell, server);
    server->names.sharer_bits = RANK_BITS;
    tb_callers_open(&server->callers, loop, TB_NAME_SERVER_CALLERS, PATIENCE_NS, &heard);
    return tb_callers_listen(&server->callers, socket);
}

static void bury(struct tb_name_server *server)
{
    struct tb_name_guest *guest;
    TB_LIST_EACH (guest, &server->dead, struct tb_name_guest, node) {
        uint32_t first = guest->slot << RANK_BITS;
        tb_name_table_end(&server->names, first, first | ((1u << RANK_BITS) - 1));
        server->clients[guest->slot] = NULL;
        tb_list_remove(&guest->node);
        tb_tls_stream_close(&guest->tls);
        tb_control_stream_close(&guest->control);
        free(guest);
    }
}

void tb_name_server_settle(struct tb_name_server *server)
{
    bury(server); /* these have no sockets any more, or no good ones */
    for (uint32_t i = 0; i < TB_NAME_SERVER_CLIENTS; i++)
        if (server->clients[i] != NULL && tb_control_stream_queued(&server->clients[i]->control) > 0)
            tb_tls_stream_flush(&server->clients[i]->tls);
    bury(server);
}

void tb_name_server_close(struct tb_name_server *server)
{
    for (uint32_t i = 0; i < TB_NAME_SERVER_CLIENTS; i++)
        if (server->clients[i] != NULL)
            guest_end(server->clients[i]);
    bury(server);
    tb_callers_close(&server->callers);
    tb_nonces_close(&server->nonces);
    tb_timer_clear(&server->late);
    tb_name_table_close(&server->names);
}

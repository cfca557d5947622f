#include "launch/manual_listener.h"

#include "launch/own_addresses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_NS  10000000000u /* for a caller to prove the secret */
#define SECRET_CHARS 24           /* of 32 letters each: 120 bits */

/* An agent that is to come. */
struct expected {
    struct tb_list node;
    uint32_t host;
    struct tb_key key; /* made from its secret */
};

/* Somebody who has connected and not proved everything yet. */
struct caller {
    struct tb_caller head;
    const struct expected *expected; /* whose secret the hello has proved; NULL: none yet */
    struct tb_handshake handshake;
};

/* ---- callers ----------------------------------------------------------------------------------------------------- */

static bool is_wanted(const struct tb_manual_listener *listener, const struct expected *expected)
{
    return listener->events.wanted(listener->events.context, expected->host);
}

/* The hello is there: whose secret is it? Not a byte for a stranger, nor for one who repeats what he has overheard. */
static int answer(struct tb_manual_listener *listener, struct caller *caller)
{
    struct tb_handshake *handshake = &caller->handshake;
    struct expected *expected;
    TB_LIST_EACH (expected, &listener->expected, struct expected, node)
        if (handshake->verdict == TB_HANDSHAKE_HEARD && is_wanted(listener, expected) &&
            tb_handshake_try_key(handshake, &expected->key) == TB_HANDSHAKE_ASKED)
            caller->expected = expected;
    if (caller->expected == NULL)
        return TB_ERR_FORBIDDEN;
    int rc = tb_handshake_socket_welcome(handshake, &listener->nonces, caller->head.watch.descriptor);
    if (rc == TB_OK)
        tb_caller_heard(&caller->head);
    return rc;
}

static int admit(const struct tb_manual_listener *listener, struct caller *caller)
{
    if (!is_wanted(listener, caller->expected))
        return TB_ERR_FORBIDDEN; /* a secret is good for one */
    tb_handshake_admit(&caller->handshake);
    return tb_handshake_socket_send(&caller->handshake, caller->head.watch.descriptor);
}

/* As far as it goes now. TB_OK: it is admitted; TB_AGAIN: more must come; other codes: it is to be closed. */
static int advance(struct tb_manual_listener *listener, struct caller *caller)
{
    int rc = TB_OK;
    while (rc == TB_OK && caller->handshake.verdict != TB_HANDSHAKE_DONE) {
        rc = tb_handshake_socket_receive(&caller->handshake, caller->head.watch.descriptor);
        if (rc != TB_OK)
            break;
        switch (caller->handshake.verdict) {
        case TB_HANDSHAKE_HEARD:
            rc = answer(listener, caller);
            break;
        case TB_HANDSHAKE_CONFIRMED:
            rc = admit(listener, caller);
            break;
        default:
            rc = TB_ERR_FORBIDDEN;
            break;
        }
    }
    return rc;
}

static void caller_ready(void *context, struct tb_caller *head)
{
    struct tb_manual_listener *listener = context;
    struct caller *caller = TB_CONTAINER(head, struct caller, head);
    struct tb_key secret;
    int rc = advance(listener, caller);
    if (rc == TB_AGAIN)
        return;
    if (rc == TB_OK)
        rc = tb_stream_secret(&secret, &caller->expected->key, &caller->handshake.hello, &caller->handshake.welcome);
    uint32_t host = caller->expected != NULL ? caller->expected->host : 0;
    int socket = tb_caller_end(head);
    if (rc == TB_OK)
        listener->events.came(listener->events.context, host, socket, &secret);
    else
        close(socket);
    explicit_bzero(&secret, sizeof secret);
}

static bool caller_came(void *context, struct tb_caller *head)
{
    tb_handshake_accept(&TB_CONTAINER(head, struct caller, head)->handshake, NULL);
    return true;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

int tb_manual_listener_open(struct tb_manual_listener *listener, struct tb_loop *loop,
                            const struct tb_manual_listener_events *events)
{
    const struct tb_callers_events heard = {
        .context = listener, .bytes = sizeof(struct caller), .came = caller_came, .ready = caller_ready};
    *listener = (struct tb_manual_listener){.events = *events};
    tb_list_init(&listener->expected);
    char where[128];
    int fd = tb_ports_listen(tb_param.ports, &listener->port);
    if (fd < 0) {
        tb_param_print_origin(tb_param_find("ports"), where, sizeof where);
        return tb_error_errno("cannot listen for clusters that are started by hand (ports=%s, from %s)", tb_param.ports,
                              where);
    }
    tb_own_addresses_print(listener->port, listener->addresses);
    tb_callers_open(&listener->callers, loop, TB_MANUAL_CALLERS, PATIENCE_NS, &heard);
    int rc = tb_callers_listen(&listener->callers, fd);
    if (rc == TB_OK)
        listener->loop = loop;
    else
        close(fd);
    return rc;
}

void tb_manual_listener_close(struct tb_manual_listener *listener)
{
    if (listener->loop == NULL)
        return;
    tb_manual_listener_forget(listener);
    tb_callers_close(&listener->callers);
    tb_nonces_close(&listener->nonces);
    listener->loop = NULL;
}

static int make_secret(char *text)
{
    uint8_t bytes[SECRET_CHARS];
    int rc = tb_random_secret(bytes, sizeof bytes);
    for (size_t i = 0; rc == TB_OK && i < SECRET_CHARS; i++) {
        *text++ = "abcdefghijkmnpqrstuvwxyz23456789"[bytes[i] & 31];
        if (i % 4 == 3 && i + 1 < SECRET_CHARS)
            *text++ = '-';
    }
    *text = 0;
    return rc;
}

int tb_manual_listener_expect(struct tb_manual_listener *listener, uint32_t host,
                              char secret[static TB_MANUAL_SECRET_BYTES])
{
    struct expected *expected = calloc(1, sizeof *expected);
    if (expected == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a cluster that is started by hand");
    expected->host = host;
    int rc = make_secret(secret);
    if (rc == TB_OK)
        rc = tb_key_derive(&expected->key, secret);
    if (rc == TB_OK)
        tb_list_append(&listener->expected, &expected->node);
    else
        free(expected);
    return rc;
}

void tb_manual_listener_forget(struct tb_manual_listener *listener)
{
    struct expected *expected;
    if (listener->loop == NULL)
        return;
    tb_callers_clear(&listener->callers);
    TB_LIST_EACH (expected, &listener->expected, struct expected, node) {
        tb_list_remove(&expected->node);
        explicit_bzero(expected, sizeof *expected);
        free(expected);
    }
}

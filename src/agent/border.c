#include "agent/border.h"

#include "agent/attempt.h"
#include "agent/unanswered.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_NS 10000000000u /* for a caller to prove a secret */

struct border_port {
    struct tb_list node;
    uint32_t number;
    struct tb_key key;
};

struct border_caller {
    struct tb_caller head;
    uint32_t port; /* whose secret it has proved, if `known` */
    bool known;
    struct tb_key key;
    struct tb_handshake handshake;
};

/* A port of another job that we connect to: all its addresses at once, and the first that proves the secret wins. */
struct border_dial {
    struct tb_list node;
    struct tb_border *border;
    struct tb_member member; /* ours, with the key of the port */
    struct tb_key key;
    uint32_t link;
    uint32_t count, open;
    bool chosen; /* one was confirmed */
    char addresses[600], why[900];
    struct tb_unanswered unanswered;
    struct tb_timer overdue;
    struct border_try {
        struct tb_attempt attempt;
        struct border_dial *dial;
        struct tb_address address;
    } tries[TB_HOST_ADDRESS_LIMIT];
};

/* ---- telling the launcher ---------------------------------------------------------------------------------------- */

static struct tb_writer *begin(struct tb_border *b, enum tb_border_word word, uint32_t number)
{
    struct tb_writer *w = tb_uplink_begin(b->uplink, TB_CONTROL_BORDER);
    tb_put_u8(w, (uint8_t)word);
    tb_put_u32(w, number);
    return w;
}

static void tell_ended(struct tb_border *b, uint32_t link, const char *why)
{
    tb_put_text(begin(b, TB_BORDER_ENDED, link), why);
    tb_uplink_end(b->uplink);
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static struct tb_border_link *link_of(const struct tb_border *b, uint32_t number)
{
    struct tb_border_link *link;
    TB_LIST_EACH (link, &b->links, struct tb_border_link, node)
        if (link->number == number)
            return link;
    return NULL;
}

/* The link behind which a process is; of several with one job, the one that had names first. */
static struct tb_border_link *link_to(const struct tb_border *b, uint32_t rank)
{
    struct tb_border_link *link;
    uint32_t home;
    TB_LIST_EACH (link, &b->links, struct tb_border_link, node)
        if (link->why[0] == 0 && tb_border_names_there(&link->names, rank, &home))
            return link;
    return NULL;
}

bool tb_border_has(const struct tb_border *b, uint32_t rank)
{
    return link_to(b, rank) != NULL;
}

bool tb_border_is_used(const struct tb_border *b)
{
    const struct tb_border_link *link;
    TB_LIST_EACH (link, &b->links, struct tb_border_link, node)
        if (link->why[0] == 0 && link->names.job != 0)
            return true;
    return !tb_list_empty(&b->ports);
}

static bool is_known(void *context, uint32_t rank)
{
    return tb_border_has(context, rank);
}

/* Those whom no link leads to any more are gone; and so is what waited for them, or for the link to have room. */
static void link_drop(struct tb_border *b, struct tb_border_link *link)
{
    tb_border_ranks_part(&b->ranks, link);
    tb_border_link_close(link);
    b->link_count--;
    tb_border_ranks_keep(&b->ranks, is_known, b);
    tb_border_ranks_review(&b->ranks);
}

static void link_up(void *context, struct tb_border_link *link)
{
    struct tb_border *b = context;
    if (link->number & TB_BORDER_CAME_HERE)
        return; /* the launcher knows of it, and hears from it */
    begin(b, TB_BORDER_UP, link->number);
    tb_uplink_end(b->uplink);
}

static void link_told(void *context, struct tb_border_link *link, const void *bytes, size_t length)
{
    struct tb_border *b = context;
    tb_put_bytes(begin(b, TB_BORDER_TELL, link->number), bytes, length);
    tb_uplink_end(b->uplink);
    tb_border_limits_told(&b->limits, link);
}

static int link_frame(void *context, struct tb_border_link *link, uint32_t from, enum tb_stream stream, char *bytes,
                      size_t length)
{
    struct tb_border *b = context;
    int rc = tb_border_ranks_send(&b->ranks, from, link, stream, bytes, length);
    tb_border_limits_frame(&b->limits, length);
    return rc;
}

static void link_eased(void *context)
{
    struct tb_border *b = context;
    tb_border_ranks_review(&b->ranks);
}

static void link_ended(void *context, struct tb_border_link *link, const char *why)
{
    struct tb_border *b = context;
    tell_ended(b, link->number, why);
    link_drop(b, link);
}

/* Takes the socket. */
static int link_make(struct tb_border *b, uint32_t number, int socket, const struct tb_key *key,
                     const struct tb_handshake *h, bool connector)
{
    const struct tb_border_link_events events = {
        .context = b, .up = link_up, .told = link_told, .frame = link_frame, .eased = link_eased, .ended = link_ended};
    struct tb_border_link *link;
    struct tb_key secret;
    int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int rc = b->link_count < TB_BORDER_LINKS
                 ? tb_stream_secret(&secret, key, &h->hello, &h->welcome)
                 : tb_error(TB_ERR_LIMIT, "there are %u links to other jobs", b->link_count);
    if (rc == TB_OK)
        rc = tb_border_link_open(&link, b->member, socket, &secret, connector, &events);
    explicit_bzero(&secret, sizeof secret);
    if (rc != TB_OK) {
        close(socket);
        return rc;
    }
    link->number = number;
    tb_list_append(&b->links, &link->node);
    b->link_count++;
    return TB_OK;
}

/* ---- between the links and our own job --------------------------------------------------------------------------- */

static int rank_frame(void *context, uint32_t rank, enum tb_stream stream, char *bytes, size_t length)
{
    struct tb_border *b = context;
    struct tb_border_link *link = link_to(b, rank);
    if (link == NULL)
        return TB_ERR_CLOSED;
    bool full = tb_border_link_is_full(link);
    tb_border_link_pass(link, stream, bytes, length);
    if (!full && tb_border_link_is_full(link))
        tb_border_ranks_review(&b->ranks);
    return TB_OK;
}

/* A job that reads nothing holds up nobody but those who speak with it. */
static bool has_room(void *context, uint32_t rank)
{
    const struct tb_border_link *link = link_to(context, rank);
    return link == NULL || !tb_border_link_is_full(link);
}

static void rank_connects(void *context, uint32_t rank, enum tb_stream stream)
{
    struct tb_border *b = context;
    b->events.connect(b->events.context, rank, stream);
}

void tb_border_connection(struct tb_border *b, uint32_t rank, enum tb_stream stream, int socket)
{
    tb_border_ranks_adopt(&b->ranks, rank, stream, socket);
}

static uint64_t kept(void *context, uint32_t rank)
{
    const struct tb_border *b = context;
    return b->events.kept(b->events.context, rank);
}

static size_t unread(void *context)
{
    const struct tb_border *b = context;
    return tb_uplink_queued(b->uplink);
}

void tb_border_settle(struct tb_border *b)
{
    struct tb_border_link *link;
    while ((link = tb_border_limits_quiet(&b->limits)) != NULL)
        link_ended(b, link, "others have come meanwhile, and it had not said who it is");
    TB_LIST_EACH (link, &b->links, struct tb_border_link, node)
        tb_border_link_settle(link);
}

/* ---- those who come ---------------------------------------------------------------------------------------------- */

/* The hello is there: whose secret is it? Not a byte for a stranger, nor for one who repeats what he has overheard. */
static int answer(struct tb_border *b, struct border_caller *caller)
{
    struct tb_handshake *h = &caller->handshake;
    const struct border_port *port;
    TB_LIST_EACH (port, &b->ports, struct border_port, node)
        if (!caller->known && tb_handshake_try_key(h, &port->key) == TB_HANDSHAKE_ASKED) {
            caller->known = true;
            caller->port = port->number;
            caller->key = port->key;
            h->key = &caller->key; /* the port may be closed meanwhile */
        }
    if (!caller->known)
        return TB_ERR_FORBIDDEN;
    int rc = tb_handshake_socket_welcome(h, &b->nonces, caller->head.watch.descriptor);
    if (rc == TB_OK)
        tb_caller_heard(&caller->head);
    return rc;
}

/* As far as it goes now. TB_OK: it is admitted; TB_AGAIN: more must come; other codes: it is to be closed. */
static int advance(struct tb_border *b, struct border_caller *caller)
{
    struct tb_handshake *h = &caller->handshake;
    int rc = TB_OK;
    while (rc == TB_OK && h->verdict != TB_HANDSHAKE_DONE) {
        rc = tb_handshake_socket_receive(h, caller->head.watch.descriptor);
        if (rc == TB_OK && h->verdict == TB_HANDSHAKE_HEARD) {
            rc = answer(b, caller);
        } else if (rc == TB_OK && h->verdict == TB_HANDSHAKE_CONFIRMED) {
            tb_handshake_admit(h);
            rc = tb_handshake_socket_send(h, caller->head.watch.descriptor);
        } else if (rc == TB_OK && h->verdict != TB_HANDSHAKE_MORE) {
            rc = TB_ERR_FORBIDDEN;
        }
    }
    return rc;
}

static void caller_ready(void *context, struct tb_caller *head)
{
    struct tb_border *b = context;
    struct border_caller *caller = TB_CONTAINER(head, struct border_caller, head);
    int rc = advance(b, caller);
    if (rc == TB_AGAIN)
        return;
    struct border_caller came = *caller;
    int socket = tb_caller_end(head);
    if (rc != TB_OK) {
        close(socket);
    } else {
        uint32_t number = TB_BORDER_CAME_HERE | b->next_link++;
        tb_put_u32(begin(b, TB_BORDER_CAME, number), came.port);
        tb_uplink_end(b->uplink);
        if (link_make(b, number, socket, &came.key, &came.handshake, false) != TB_OK)
            tell_ended(b, number, tb_error_story());
    }
    explicit_bzero(&came, sizeof came);
}

static bool caller_came(void *context, struct tb_caller *head)
{
    tb_handshake_accept(&TB_CONTAINER(head, struct border_caller, head)->handshake, NULL);
    return true;
}

static void list_addresses(struct tb_border *b, uint16_t port)
{
    struct tb_address_list own;
    size_t used = 0;
    if (tb_address_list_own(&own, port) != TB_OK)
        own.count = 0;
    if (own.count == 0)
        own.at[own.count++] = (struct tb_address){.family = 4, .port = port, .bytes = {127, 0, 0, 1}};
    for (uint32_t i = 0; i < own.count; i++) {
        char text[80];
        if (own.at[i].scope != 0)
            continue; /* which interface that is, only we know */
        tb_address_print(&own.at[i], text, sizeof text);
        if (used + strlen(text) + 2 < sizeof b->addresses)
            used +=
                (size_t)snprintf(b->addresses + used, sizeof b->addresses - used, "%s%s", used > 0 ? "," : "", text);
    }
}

static int listen_once(struct tb_border *b)
{
    const struct tb_callers_events heard = {
        .context = b, .bytes = sizeof(struct border_caller), .came = caller_came, .ready = caller_ready};
    uint16_t port = 0;
    if (b->callers.loop != NULL)
        return TB_OK;
    int rc = tb_tls_is_usable();
    int socket = rc == TB_OK ? tb_ports_listen(tb_param.ports, &port) : -1;
    if (rc != TB_OK || socket < 0)
        return rc != TB_OK ? rc : tb_error_errno("host %s cannot listen for other jobs", b->member->name);
    tb_callers_open(&b->callers, b->member->loop, TB_BORDER_CALLERS, PATIENCE_NS, &heard);
    rc = tb_callers_listen(&b->callers, socket);
    if (rc != TB_OK) {
        close(socket);
        tb_callers_close(&b->callers);
        b->callers.loop = NULL;
        return rc;
    }
    list_addresses(b, port);
    return TB_OK;
}

static void take_open(struct tb_border *b, uint32_t number, struct tb_reader *r)
{
    struct border_port *port = calloc(1, sizeof *port);
    size_t length = 0;
    const void *key = tb_get_bytes(r, &length);
    int rc = r->error != TB_OK || length != TB_KEY_BYTES ? tb_error(TB_ERR_PROTOCOL, "a port without a key")
             : port == NULL                              ? tb_error(TB_ERR_MEMORY, "no memory for a port")
                                                         : listen_once(b);
    struct tb_writer *w = begin(b, TB_BORDER_OPENED, number);
    tb_put_text(w, rc == TB_OK ? b->addresses : "");
    tb_put_text(w, rc == TB_OK ? "" : tb_error_story());
    tb_uplink_end(b->uplink);
    if (rc != TB_OK) {
        free(port);
        return;
    }
    port->number = number;
    memcpy(port->key.bytes, key, TB_KEY_BYTES);
    tb_list_append(&b->ports, &port->node);
}

static void port_free(struct border_port *port)
{
    tb_list_remove(&port->node);
    explicit_bzero(port, sizeof *port);
    free(port);
}

static void take_shut(struct tb_border *b, uint32_t number)
{
    struct border_port *port;
    TB_LIST_EACH (port, &b->ports, struct border_port, node)
        if (port->number == number)
            port_free(port);
}

/* ---- going elsewhere --------------------------------------------------------------------------------------------- */

static void dial_end(struct border_dial *dial)
{
    for (uint32_t i = 0; i < dial->count; i++)
        tb_attempt_close(&dial->tries[i].attempt);
    tb_timer_clear(&dial->overdue);
    tb_list_remove(&dial->node);
    explicit_bzero(&dial->key, sizeof dial->key);
    free(dial);
}

static void dial_fail(struct border_dial *dial)
{
    tell_ended(dial->border, dial->link, dial->why);
    dial_end(dial);
}

/* All were tried in vain. What somebody has answered tells more than that others have not. */
static void dial_end_tries(struct border_dial *dial)
{
    char all[640];
    if (dial->why[0] == 0) {
        tb_unanswered_print(&dial->unanswered, all, sizeof all);
        snprintf(dial->why, sizeof dial->why, "%s: the job of the port has ended, or cannot be reached from host %s",
                 all, dial->border->member->name);
    }
    dial_fail(dial);
}

static void explain(struct border_try *try, enum tb_attempt_event event)
{
    struct border_dial *dial = try->dial;
    char where[80];
    tb_address_print(&try->address, where, sizeof where);
    if (event == TB_ATTEMPT_FAILED)
        tb_unanswered_add(&dial->unanswered, &try->address, try->attempt.error);
    else if (event == TB_ATTEMPT_VERSION)
        snprintf(dial->why, sizeof dial->why, "the job at %s is of another version of Tombolo", where);
    else if (event == TB_ATTEMPT_TROUBLE)
        snprintf(dial->why, sizeof dial->why, "%s", tb_error_story());
    else
        snprintf(dial->why, sizeof dial->why,
                 "whoever listens at %s knows no such port: it was closed, its job has ended, or the name is not as "
                 "MPI_Open_port has given it",
                 where);
}

static void attempt_event(struct tb_attempt *attempt, enum tb_attempt_event event)
{
    struct border_try *try = TB_CONTAINER(attempt, struct border_try, attempt);
    struct border_dial *dial = try->dial;
    if (event == TB_ATTEMPT_WELCOMED && dial->chosen) {
        tb_attempt_close(attempt); /* another one is there */
    } else if (event == TB_ATTEMPT_WELCOMED) {
        dial->chosen = tb_attempt_confirm(attempt);
        if (dial->chosen)
            return;
    } else if (event == TB_ATTEMPT_CONNECTED) {
        const struct tb_handshake h = attempt->handshake;
        int rc = link_make(dial->border, dial->link, tb_attempt_take(attempt), &dial->key, &h, true);
        snprintf(dial->why, sizeof dial->why, "%s", rc != TB_OK ? tb_error_story() : "");
        if (rc != TB_OK)
            dial_fail(dial);
        else
            dial_end(dial);
        return;
    } else {
        explain(try, event);
        dial->chosen = dial->chosen && !attempt->confirmed;
    }
    if (--dial->open == 0)
        dial_end_tries(dial);
}

static void dial_overdue(struct tb_timer *timer)
{
    struct border_dial *dial = TB_CONTAINER(timer, struct border_dial, overdue);
    snprintf(dial->why, sizeof dial->why, "nobody answers at %s in time", dial->addresses);
    dial_fail(dial);
}

static void dial_begin(struct border_dial *dial)
{
    char *rest = NULL, copy[sizeof dial->addresses];
    snprintf(copy, sizeof copy, "%s", dial->addresses);
    for (char *word = strtok_r(copy, ",", &rest); word != NULL && dial->count < TB_HOST_ADDRESS_LIMIT;
         word = strtok_r(NULL, ",", &rest)) {
        struct border_try *try = &dial->tries[dial->count];
        if (tb_address_parse(word, &try->address) != TB_OK)
            continue;
        try->dial = dial;
        try->attempt = (struct tb_attempt){.source = dial->border->member->self,
                                           .stream = TB_STREAM_SHORT,
                                           .event = attempt_event,
                                           .watch = {.descriptor = -1}};
        dial->count++;
        if (tb_attempt_open(&try->attempt, &dial->member, &try->address) == TB_OK) {
            dial->open++;
        } else {
            try->attempt.error = errno;
            explain(try, TB_ATTEMPT_FAILED);
        }
    }
    if (dial->count == 0)
        snprintf(dial->why, sizeof dial->why, "the name of the port has no address that can be used: %s",
                 dial->addresses);
}

static void take_dial(struct tb_border *b, uint32_t number, struct tb_reader *r)
{
    uint64_t patience = tb_get_u64(r);
    size_t key_length = 0, length = 0;
    const void *key = tb_get_bytes(r, &key_length);
    const char *addresses = tb_get_bytes(r, &length);
    struct border_dial *dial = calloc(1, sizeof *dial);
    if (dial == NULL || r->error != TB_OK || key_length != TB_KEY_BYTES || length >= sizeof dial->addresses) {
        free(dial);
        tell_ended(b, number, "the agent has no memory, or does not understand where to connect to");
        return;
    }
    dial->border = b;
    dial->link = number;
    memcpy(dial->key.bytes, key, TB_KEY_BYTES);
    memcpy(dial->addresses, addresses, length);
    dial->member = *b->member;
    dial->member.key = &dial->key;
    tb_list_append(&b->dials, &dial->node);
    tb_timer_init(&dial->overdue, dial_overdue);
    tb_timer_set(b->member->loop, &dial->overdue, patience);
    dial_begin(dial);
    if (dial->open == 0)
        dial_end_tries(dial);
}

/* ---- what the launcher says -------------------------------------------------------------------------------------- */

static void take_names(struct tb_border *b, struct tb_border_link *link, struct tb_reader *r)
{
    uint32_t telling = tb_get_u32(r);
    if (link->names.job == 0) {
        tb_list_remove(&link->node);
        tb_list_append(&b->links, &link->node);
    }
    if (tb_border_names_take(&link->names, r) != TB_OK) {
        tell_ended(b, link->number, tb_error_story());
        link_drop(b, link);
        return;
    }
    tb_put_u32(begin(b, TB_BORDER_NAMED, link->number), telling);
    tb_uplink_end(b->uplink);
}

static void take_close(struct tb_border *b, uint32_t number)
{
    struct tb_border_link *link = link_of(b, number);
    struct border_dial *dial;
    if (link != NULL)
        link_drop(b, link);
    TB_LIST_EACH (dial, &b->dials, struct border_dial, node)
        if (dial->link == number)
            dial_end(dial);
}

void tb_border_take(struct tb_border *b, struct tb_reader *r)
{
    uint8_t word = tb_get_u8(r);
    uint32_t number = tb_get_u32(r);
    size_t length = 0;
    if (r->error != TB_OK)
        return;
    struct tb_border_link *link = link_of(b, number);
    if (word == TB_BORDER_OPEN) {
        take_open(b, number, r);
    } else if (word == TB_BORDER_SHUT) {
        take_shut(b, number);
    } else if (word == TB_BORDER_DIAL) {
        take_dial(b, number, r);
    } else if (word == TB_BORDER_CLOSE) {
        take_close(b, number);
    } else if (word == TB_BORDER_NAMES && link != NULL) {
        take_names(b, link, r);
    } else if (word == TB_BORDER_TELL && link != NULL) {
        const void *bytes = tb_get_bytes(r, &length);
        if (r->error == TB_OK)
            tb_border_link_tell(link, bytes, length);
    }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

void tb_border_open(struct tb_border *b, const struct tb_member *member, struct tb_uplink *uplink,
                    const struct tb_border_events *events)
{
    const struct tb_border_ranks_events ranks = {
        .context = b, .frame = rank_frame, .connect = rank_connects, .has_room = has_room, .kept = kept};
    *b = (struct tb_border){.member = member, .uplink = uplink, .events = *events};
    tb_border_ranks_open(&b->ranks, member->loop, &ranks);
    tb_list_init(&b->ports);
    tb_list_init(&b->dials);
    tb_list_init(&b->links);
    tb_border_limits_open(&b->limits, member->loop, &b->links, &b->ranks, unread, b);
}

void tb_border_close(struct tb_border *b)
{
    struct tb_border_link *link;
    struct border_dial *dial;
    struct border_port *port;
    tb_border_limits_close(&b->limits);
    TB_LIST_EACH (dial, &b->dials, struct border_dial, node)
        dial_end(dial);
    TB_LIST_EACH (link, &b->links, struct tb_border_link, node)
        tb_border_link_close(link);
    TB_LIST_EACH (port, &b->ports, struct border_port, node)
        port_free(port);
    tb_border_ranks_close(&b->ranks);
    if (b->callers.loop != NULL)
        tb_callers_close(&b->callers);
    tb_nonces_close(&b->nonces);
}

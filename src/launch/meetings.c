#include "launch/meetings.h"

#include "launch/port_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUESTS_BYTES (128u << 20) /* of parties of other jobs at a port, of one job half; the largest has 4 MiB */

struct port {
    struct tb_list node;
    char name[TB_PORT_NAME_BYTES];
    uint32_t owner;
    uint32_t number;       /* by which the border knows it */
    uint32_t host;         /* where others come to */
    uint32_t question;     /* of its owner, until that has the name; 0 then */
    struct tb_list guests; /* all of them accept, or all connect */
};

struct guest {
    struct tb_list node;
    struct tb_meetings *meetings;
    struct tb_timer timer;
    uint32_t rank, number;
    uint64_t until;               /* TB_NEVER: as long as it takes */
    struct tb_foreign_link *link; /* of another job; NULL: of this one */
    bool accepts;
    size_t length;
    char bytes[];
};

static void answer(struct tb_meetings *m, uint32_t rank, uint32_t number, const void *bytes, size_t length)
{
    tb_agent_orders_answer(m->agents, m->book, rank, &(struct tb_agent_answer){number, TB_OK, "", bytes, length});
}

/* With the present story. */
static void refuse(struct tb_meetings *m, uint32_t rank, uint32_t number, int error)
{
    tb_agent_orders_answer(m->agents, m->book, rank,
                           &(struct tb_agent_answer){number, error, tb_error_story(), NULL, 0});
}

static void guest_free(struct guest *guest)
{
    tb_list_remove(&guest->node);
    tb_timer_clear(&guest->timer);
    free(guest);
}

/* The border at which others come to the port. NULL: it is not there any more. */
static struct tb_writer *border_begin(struct tb_meetings *m, const struct port *port, enum tb_border_word word)
{
    struct tb_host_agent *agent = &m->agents->all[port->host];
    if (!tb_host_agent_is_ready(agent))
        return NULL;
    struct tb_writer *w = tb_control_stream_begin(&agent->control, TB_CONTROL_BORDER);
    tb_put_u8(w, (uint8_t)word);
    tb_put_u32(w, port->number);
    return w;
}

static void border_end(struct tb_meetings *m, const struct port *port)
{
    tb_control_stream_end(&m->agents->all[port->host].control);
}

/* Those who wait there are told; why: more of that, or "". */
static void port_free(struct tb_meetings *m, struct port *port, const char *why)
{
    struct guest *guest;
    while (!tb_list_empty(&port->guests)) {
        guest = TB_CONTAINER(port->guests.next, struct guest, node);
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a guest that was freed is in no list
        struct tb_foreign_link *link = guest->link;
        int rc = tb_error(TB_ERR_CLOSED, "the port %s was closed%s", port->name, why);
        if (link == NULL)
            refuse(m, guest->rank, guest->number, rc);
        guest_free(guest);
        if (link != NULL)
            tb_foreign_jobs_refuse(&m->foreign, link);
    }
    tb_list_remove(&port->node);
    m->count--;
    free(port);
}

static void port_close(struct tb_meetings *m, struct port *port)
{
    if (border_begin(m, port, TB_BORDER_SHUT) != NULL)
        border_end(m, port);
    port_free(m, port, "");
}

static void patience_over(struct tb_timer *timer)
{
    struct guest *guest = TB_CONTAINER(timer, struct guest, timer);
    refuse(guest->meetings, guest->rank, guest->number,
           tb_error(TB_ERR_TIMEOUT,
                    "nobody has come to the port in time; the info key timeout, in seconds, says how long to wait"));
    guest_free(guest);
}

static struct port *find(const struct tb_meetings *m, const struct tb_meeting *meeting)
{
    struct port *port;
    TB_LIST_EACH (port, &m->ports, struct port, node)
        if (strlen(port->name) == meeting->name_length && memcmp(port->name, meeting->name, meeting->name_length) == 0)
            return port;
    return NULL;
}

static struct port *find_number(const struct tb_meetings *m, uint32_t number)
{
    struct port *port;
    TB_LIST_EACH (port, &m->ports, struct port, node)
        if (port->number == number)
            return port;
    return NULL;
}

/* The host that the owner has named, or its own. */
static int choose_host(const struct tb_meetings *m, uint32_t rank, const struct tb_meeting *meeting, uint32_t *host)
{
    *host = tb_address_book_host_of(m->book, rank);
    if (meeting->length == 0)
        return TB_OK;
    for (*host = 0; *host < m->book->host_count; ++*host) {
        const char *name = m->book->hosts[*host].name;
        if ((strlen(name) == meeting->length || strcspn(name, ".") == meeting->length) &&
            memcmp(name, meeting->bytes, meeting->length) == 0)
            return TB_OK;
    }
    return tb_error(TB_ERR_ARGUMENT, "the job has no host \"%.*s\", which the info key host names",
                    (int)meeting->length, (const char *)meeting->bytes);
}

static void open_port(struct tb_meetings *m, uint32_t rank, uint32_t number, const struct tb_meeting *meeting)
{
    struct port *port = m->count < TB_MEETINGS_PORTS ? calloc(1, sizeof *port) : NULL;
    struct tb_key key;
    int rc = port != NULL ? choose_host(m, rank, meeting, &port->host)
                          : tb_error(TB_ERR_LIMIT, "there are %u ports open, or no memory for more", m->count);
    if (rc == TB_OK)
        rc = tb_port_name_make(port->name, m->book->job, m->next, &key);
    if (rc != TB_OK) {
        free(port);
        refuse(m, rank, number, rc);
        return;
    }
    port->owner = rank;
    port->number = m->next++;
    port->question = number;
    tb_list_init(&port->guests);
    tb_list_append(&m->ports, &port->node);
    m->count++;
    struct tb_writer *w = border_begin(m, port, TB_BORDER_OPEN);
    if (w != NULL) {
        tb_put_bytes(w, key.bytes, sizeof key.bytes);
        border_end(m, port);
    } else {
        port->question = 0;
        answer(m, rank, number, port->name, strlen(port->name));
    }
    explicit_bzero(&key, sizeof key);
}

/* Where it cannot be reached from outside, it is a port of this job alone. */
static void opened(void *context, uint32_t number, struct tb_reader *r)
{
    struct tb_meetings *m = context;
    struct port *port = find_number(m, number);
    size_t length = 0, why_length = 0;
    const char *addresses = tb_get_bytes(r, &length), *why = tb_get_bytes(r, &why_length);
    if (port == NULL || port->question == 0 || r->error != TB_OK)
        return;
    tb_port_name_add(port->name, addresses, length);
    if (length == 0)
        tb_log(TB_LOG_INFO, "launch", "the port %s is for this job alone: %.*s", port->name, (int)why_length, why);
    answer(m, port->owner, port->question, port->name, strlen(port->name));
    port->question = 0;
}

/* One waits; NULL: no memory. */
static struct guest *guest_new(struct tb_meetings *m, struct port *port, const void *bytes, size_t length)
{
    struct guest *guest = calloc(1, sizeof *guest + length);
    if (guest == NULL)
        return NULL;
    guest->meetings = m;
    guest->length = length;
    if (length > 0)
        memcpy(guest->bytes, bytes, length);
    tb_timer_init(&guest->timer, patience_over);
    tb_list_append(&port->guests, &guest->node);
    return guest;
}

static uint64_t end_of(const struct tb_meetings *m, uint64_t patience)
{
    uint64_t now = tb_loop_now(m->loop);
    return patience > 0 && patience < TB_NEVER - now ? now + patience : TB_NEVER;
}

/* Two meet, of whom the one that has waited may be of another job. */
static void meet(struct tb_meetings *m, struct guest *other, const struct tb_acceptance *who)
{
    struct tb_foreign_link *link = other->link;
    if (link == NULL) {
        int rc = tb_meeting_parties_differ(who->party, who->length, other->bytes, other->length);
        if (rc == TB_OK) {
            answer(m, who->rank, who->question, other->bytes, other->length);
            answer(m, other->rank, other->number, who->party, who->length);
        } else {
            refuse(m, who->rank, who->question, rc);
            refuse(m, other->rank, other->number, rc);
        }
        guest_free(other);
        return;
    }
    struct tb_list *before = other->node.prev;
    tb_list_remove(&other->node); /* if it cannot be now, it is the first again */
    if (tb_foreign_jobs_accept(&m->foreign, link, who) == TB_OK)
        guest_free(other);
    else
        tb_list_append(before->next, &other->node);
}

/* Two meet, or one waits. */
static void enter(struct tb_meetings *m, struct port *port, uint32_t rank, uint32_t number,
                  const struct tb_meeting *meeting)
{
    bool accepts = meeting->wish == TB_MEETING_ACCEPT;
    struct guest *other = tb_list_empty(&port->guests) ? NULL : TB_CONTAINER(port->guests.next, struct guest, node);
    if (other != NULL && other->accepts != accepts) {
        meet(m, other,
             &(struct tb_acceptance){rank, number, end_of(m, meeting->patience), meeting->bytes, meeting->length});
        return;
    }
    struct guest *guest = guest_new(m, port, meeting->bytes, meeting->length);
    if (guest == NULL) {
        refuse(m, rank, number, tb_error(TB_ERR_MEMORY, "mpiexec has no memory for one more who waits at a port"));
        return;
    }
    guest->rank = rank;
    guest->number = number;
    guest->accepts = accepts;
    guest->until = end_of(m, meeting->patience);
    if (meeting->patience > 0)
        tb_timer_set(m->loop, &guest->timer, meeting->patience);
}

/* What others make us keep has a limit, and none of them has more than is left for the rest. */
static bool is_crowded(const struct port *port, const struct tb_foreign_link *link)
{
    const struct guest *guest;
    uint32_t count = 0, own = 0;
    size_t bytes = link->their_length, own_bytes = link->their_length;
    TB_LIST_EACH (guest, &port->guests, const struct guest, node) {
        if (guest->link == NULL)
            continue;
        bool same = guest->link->their_job == link->their_job;
        count++;
        own += same;
        bytes += guest->link->their_length;
        own_bytes += same ? guest->link->their_length : 0;
    }
    return count >= TB_MEETINGS_GUESTS || own >= TB_MEETINGS_GUESTS - count || bytes > GUESTS_BYTES ||
           own_bytes > GUESTS_BYTES - bytes;
}

static int foreign_enters(void *context, uint32_t number, struct tb_foreign_link *link)
{
    struct tb_meetings *m = context;
    struct port *port = find_number(m, number);
    if (port == NULL)
        return tb_error(TB_ERR_PEER, "the port was closed");
    struct guest *other = tb_list_empty(&port->guests) ? NULL : TB_CONTAINER(port->guests.next, struct guest, node);
    if (is_crowded(port, link))
        return tb_error(TB_ERR_LIMIT, "too many wait at the port already");
    struct guest *guest = guest_new(m, port, NULL, 0);
    if (guest == NULL)
        return tb_error(TB_ERR_MEMORY, "mpiexec has no memory for one more who waits at a port");
    guest->link = link;
    if (other == NULL || !other->accepts)
        return TB_OK;
    const struct tb_acceptance who = {other->rank, other->number, other->until, other->bytes, other->length};
    tb_list_remove(&other->node);
    meet(m, guest, &who);
    guest_free(other);
    return TB_OK;
}

static void port_drop(struct port *port, const struct tb_foreign_link *link)
{
    struct guest *guest;
    TB_LIST_EACH (guest, &port->guests, struct guest, node)
        if (guest->link == link)
            guest_free(guest);
}

static void foreign_dropped(void *context, const struct tb_foreign_link *link)
{
    struct tb_meetings *m = context;
    struct port *port;
    TB_LIST_EACH (port, &m->ports, struct port, node)
        port_drop(port, link);
}

static void accept_again(void *context, uint32_t number, const struct tb_acceptance *who)
{
    struct tb_meetings *m = context;
    struct port *port = find_number(m, number);
    uint64_t now = tb_loop_now(m->loop);
    struct tb_meeting meeting = {.wish = TB_MEETING_ACCEPT, .bytes = who->party, .length = who->length};
    if (who->until != TB_NEVER)
        meeting.patience = who->until > now ? who->until - now : 1; /* 0 would be for ever */
    if (port != NULL)
        enter(m, port, who->rank, who->question, &meeting);
    else
        refuse(m, who->rank, who->question, tb_error(TB_ERR_CLOSED, "the port was closed"));
}

static void leave(struct tb_meetings *m, uint32_t rank, const struct tb_meeting *meeting)
{
    uint32_t told[2];
    if (meeting->length != sizeof told)
        return;
    memcpy(told, meeting->bytes, sizeof told);
    tb_foreign_jobs_leave(&m->foreign, rank, told[0], told[1]);
}

void tb_meetings_take(struct tb_meetings *m, struct tb_reader *r)
{
    uint32_t rank = tb_get_u32(r), number = tb_get_u32(r);
    size_t length = 0;
    const void *bytes = tb_get_bytes(r, &length);
    struct tb_meeting meeting;
    struct tb_reader fields;
    if (r->error != TB_OK || !tb_address_book_knows(m->book, rank))
        return;
    tb_reader_open(&fields, bytes, length);
    int rc = tb_meeting_get(&fields, &meeting);
    if (rc == TB_OK && meeting.wish == TB_MEETING_OPEN) {
        open_port(m, rank, number, &meeting);
        return;
    }
    if (rc == TB_OK && meeting.wish == TB_MEETING_LEAVE) {
        leave(m, rank, &meeting);
        return;
    }
    struct port *port = rc == TB_OK ? find(m, &meeting) : NULL;
    if (rc == TB_OK && port == NULL && meeting.wish == TB_MEETING_CONNECT) {
        tb_foreign_jobs_connect(&m->foreign, rank, number, &meeting);
        return;
    }
    if (rc == TB_OK && port == NULL)
        rc = tb_error(TB_ERR_CLOSED, "this job has no port \"%.*s\" that is open%s", (int)meeting.name_length,
                      meeting.name,
                      meeting.name_length > 8 && memcmp(meeting.name, "tombolo:", 8) == 0
                          ? ": it was closed, its owner has ended, or it is of another job"
                          : "; port names come from MPI_Open_port");
    if (rc != TB_OK) {
        refuse(m, rank, number, rc);
    } else if (meeting.wish == TB_MEETING_CLOSE) {
        port_close(m, port);
        answer(m, rank, number, NULL, 0);
    } else {
        enter(m, port, rank, number, &meeting);
    }
}

static void dismiss(struct port *port, uint32_t rank)
{
    struct guest *guest;
    TB_LIST_EACH (guest, &port->guests, struct guest, node)
        if (guest->link == NULL && guest->rank == rank)
            guest_free(guest);
}

void tb_meetings_forget(struct tb_meetings *m, uint32_t rank)
{
    struct port *port;
    TB_LIST_EACH (port, &m->ports, struct port, node) {
        dismiss(port, rank);
        if (port->owner == rank)
            port_close(m, port);
    }
    tb_foreign_jobs_forget(&m->foreign, rank);
}

/* Nobody comes there any more to a port that others know; one that they have not heard of is for this job alone. */
void tb_meetings_lose(struct tb_meetings *m, uint32_t host)
{
    struct port *port;
    tb_foreign_jobs_lose(&m->foreign, host);
    TB_LIST_EACH (port, &m->ports, struct port, node) {
        if (port->host == host && port->question != 0) {
            answer(m, port->owner, port->question, port->name, strlen(port->name));
            port->question = 0;
        } else if (port->host == host && strchr(port->name, '@') != NULL) {
            port_free(m, port, ": the agent of the host at which other jobs come to it is gone");
        }
    }
}

void tb_meetings_init(struct tb_meetings *m, struct tb_loop *loop, struct tb_host_agents *agents,
                      struct tb_address_book *book)
{
    const struct tb_foreign_jobs_events events = {
        .context = m, .opened = opened, .enter = foreign_enters, .dropped = foreign_dropped, .accept = accept_again};
    *m = (struct tb_meetings){.loop = loop, .agents = agents, .book = book};
    tb_list_init(&m->ports);
    tb_foreign_jobs_init(&m->foreign, loop, agents, book, &events);
}

void tb_meetings_close(struct tb_meetings *m)
{
    tb_foreign_jobs_close(&m->foreign);
}

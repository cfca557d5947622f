#include "launch/meetings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct port {
    struct tb_list node;
    char name[TB_PORT_NAME_BYTES];
    uint32_t owner;
    struct tb_list guests; /* all of them accept, or all connect */
};

struct guest {
    struct tb_list node;
    struct tb_meetings *meetings;
    struct tb_timer timer;
    uint32_t rank, number;
    bool accepts;
    size_t length;
    char bytes[];
};

void tb_meetings_init(struct tb_meetings *m, struct tb_loop *loop, struct tb_host_agents *agents,
                      const struct tb_address_book *book)
{
    *m = (struct tb_meetings){.loop = loop, .agents = agents, .book = book};
    tb_list_init(&m->ports);
}

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

static void port_free(struct tb_meetings *m, struct port *port)
{
    struct guest *guest;
    TB_LIST_EACH (guest, &port->guests, struct guest, node) {
        refuse(m, guest->rank, guest->number, tb_error(TB_ERR_CLOSED, "the port %s was closed", port->name));
        guest_free(guest);
    }
    tb_list_remove(&port->node);
    m->count--;
    free(port);
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

static void open_port(struct tb_meetings *m, uint32_t rank, uint32_t number)
{
    struct port *port = m->count < TB_MEETINGS_PORTS ? calloc(1, sizeof *port) : NULL;
    uint64_t secret;
    if (port == NULL || tb_random_secret(&secret, sizeof secret) != TB_OK) {
        free(port);
        refuse(m, rank, number, tb_error(TB_ERR_LIMIT, "there are %u ports open, or no memory for more", m->count));
        return;
    }
    snprintf(port->name, sizeof port->name, "tombolo:%08x:%u:%016llx", m->book->job, m->next++,
             (unsigned long long)secret);
    port->owner = rank;
    tb_list_init(&port->guests);
    tb_list_append(&m->ports, &port->node);
    m->count++;
    answer(m, rank, number, port->name, strlen(port->name));
}

/* Two meet, or one waits. */
static void enter(struct tb_meetings *m, struct port *port, uint32_t rank, uint32_t number,
                  const struct tb_meeting *meeting)
{
    bool accepts = meeting->wish == TB_MEETING_ACCEPT;
    struct guest *other = tb_list_empty(&port->guests) ? NULL : TB_CONTAINER(port->guests.next, struct guest, node);
    if (other != NULL && other->accepts != accepts) {
        answer(m, rank, number, other->bytes, other->length);
        answer(m, other->rank, other->number, meeting->bytes, meeting->length);
        guest_free(other);
        return;
    }
    struct guest *guest = calloc(1, sizeof *guest + meeting->length);
    if (guest == NULL) {
        refuse(m, rank, number, tb_error(TB_ERR_MEMORY, "mpiexec has no memory for one more who waits at a port"));
        return;
    }
    guest->meetings = m;
    guest->rank = rank;
    guest->number = number;
    guest->accepts = accepts;
    guest->length = meeting->length;
    memcpy(guest->bytes, meeting->bytes, meeting->length);
    tb_list_append(&port->guests, &guest->node);
    tb_timer_init(&guest->timer, patience_over);
    if (meeting->patience > 0)
        tb_timer_set(m->loop, &guest->timer, meeting->patience);
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
        open_port(m, rank, number);
        return;
    }
    struct port *port = rc == TB_OK ? find(m, &meeting) : NULL;
    if (rc == TB_OK && port == NULL)
        rc = tb_error(TB_ERR_CLOSED, "this job has no port \"%.*s\" that is open%s", (int)meeting.name_length,
                      meeting.name,
                      meeting.name_length > 8 && memcmp(meeting.name, "tombolo:", 8) == 0
                          ? ": it was closed, its owner has ended, or it is of another job"
                          : "; port names come from MPI_Open_port");
    if (rc != TB_OK) {
        refuse(m, rank, number, rc);
    } else if (meeting.wish == TB_MEETING_CLOSE) {
        port_free(m, port);
        answer(m, rank, number, NULL, 0);
    } else {
        enter(m, port, rank, number, &meeting);
    }
}

static void dismiss(struct port *port, uint32_t rank)
{
    struct guest *guest;
    TB_LIST_EACH (guest, &port->guests, struct guest, node)
        if (guest->rank == rank)
            guest_free(guest);
}

void tb_meetings_forget(struct tb_meetings *m, uint32_t rank)
{
    struct port *port;
    TB_LIST_EACH (port, &m->ports, struct port, node) {
        dismiss(port, rank);
        if (port->owner == rank)
            port_free(m, port);
    }
}

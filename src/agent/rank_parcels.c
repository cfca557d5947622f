#include "agent/rank_parcels.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_NS 5000000u

/* A packet that waits for its rank, with a descriptor or -1. */
struct parcel {
    struct tb_list node;
    enum tb_control kind;
    struct tb_writer fields;
    int descriptor;
};

static void free_parcel(struct tb_port_rank *rank, struct parcel *parcel)
{
    tb_list_remove(&parcel->node);
    rank->parcel_count--;
    if (parcel->descriptor >= 0)
        close(parcel->descriptor);
    tb_writer_close(&parcel->fields);
    free(parcel);
}

static int send_welcome(struct tb_port_rank *rank)
{
    const struct tb_host_services *s = rank->port->services;
    struct tb_rank_welcome welcome = {
        .rank = rank->rank, .host = s->host, .app = rank->app, .segment_bytes = s->segment_bytes};
    welcome.first = s->first;
    welcome.size = s->size;
    welcome.multicast = s->multicast != NULL && s->multicast->expected;
    const int files[TB_WELCOME_FILES] = {
        [TB_WELCOME_SEGMENT] = s->segment, [TB_WELCOME_BOOK] = s->book,    [TB_WELCOME_ROUTES] = s->routes,
        [TB_WELCOME_COSTS] = s->costs,     [TB_WELCOME_PLANS] = s->plans,  [TB_WELCOME_PLAN] = s->plan,
        [TB_WELCOME_WORLDS] = s->worlds,   [TB_WELCOME_PARENT] = s->parent};
    return tb_rank_welcome_send(rank->control.descriptor, &welcome, s->parameters, files, s->doorbells, s->rank_count,
                                &rank->welcomed);
}

/* What could not be sent at once: when there is room again, or, since the kernel does not tell when descriptors under
 * way have become fewer, after a moment. */
static void wait_for_room(struct tb_port_rank *rank)
{
    struct tb_rank_port *port = rank->port;
    if (!tb_timer_is_set(&port->retry))
        tb_timer_set(port->loop, &port->retry, RETRY_NS);
}

void tb_rank_parcels_flush(struct tb_port_rank *rank)
{
    if (rank->control.descriptor < 0)
        return;
    if (rank->welcomed < rank->port->services->rank_count) {
        if (send_welcome(rank) == TB_AGAIN)
            wait_for_room(rank);
        if (rank->welcomed < rank->port->services->rank_count)
            return;
    }
    /* Until its process is known, a packet could be queued in a socket that nobody will read. */
    struct parcel *parcel;
    TB_LIST_EACH (parcel, &rank->parcels, struct parcel, node) {
        if (rank->joined == 0)
            return;
        int rc = tb_packet_send(rank->control.descriptor, parcel->kind, &parcel->fields, &parcel->descriptor,
                                parcel->descriptor >= 0 ? 1 : 0);
        if (rc == TB_AGAIN) {
            wait_for_room(rank);
            return;
        }
        if (rc != TB_OK && parcel->kind == TB_CONTROL_CONNECTION && parcel->descriptor >= 0)
            shutdown(parcel->descriptor, SHUT_RDWR); /* the agent may have a copy of it */
        free_parcel(rank, parcel);
    }
}

static struct parcel *make_parcel(struct tb_port_rank *rank, enum tb_control kind, int descriptor)
{
    struct parcel *parcel = rank->over ? NULL : calloc(1, sizeof *parcel);
    if (parcel == NULL)
        return NULL;
    parcel->kind = kind;
    parcel->descriptor = descriptor;
    tb_writer_open(&parcel->fields);
    tb_list_append(&rank->parcels, &parcel->node);
    rank->parcel_count++;
    return parcel;
}

struct tb_writer *tb_rank_parcels_add(struct tb_port_rank *rank, enum tb_control kind, int descriptor)
{
    struct parcel *parcel = make_parcel(rank, kind, descriptor);
    return parcel != NULL ? &parcel->fields : NULL;
}

struct tb_writer *tb_rank_parcels_renew(struct tb_port_rank *rank, enum tb_control kind, int descriptor)
{
    struct parcel *parcel;
    TB_LIST_EACH (parcel, &rank->parcels, struct parcel, node) {
        if (parcel->kind != kind)
            continue;
        if (parcel->descriptor >= 0)
            close(parcel->descriptor);
        parcel->descriptor = descriptor;
        tb_writer_close(&parcel->fields);
        tb_writer_open(&parcel->fields);
        return &parcel->fields;
    }
    return tb_rank_parcels_add(rank, kind, descriptor);
}

void tb_rank_parcels_welcome(struct tb_port_rank *rank)
{
    send_welcome(rank);
}

void tb_rank_parcels_drop(struct tb_port_rank *rank)
{
    struct parcel *parcel;
    TB_LIST_EACH (parcel, &rank->parcels, struct parcel, node)
        free_parcel(rank, parcel);
    tb_list_init(&rank->parcels);
    rank->over = true;
}

/* The null transport: between owners in one process, takes everything and delivers it at the other one's next poll.
 * What adding a transport takes, for tests: this file, and a line in an array. */
#ifndef TB_TRANSPORT_NULL_TEST_H
#define TB_TRANSPORT_NULL_TEST_H

#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

#define NULL_NODES 4

struct null_frame {
    struct tb_list queue;
    uint32_t from;
    struct tb_message message;
    size_t length;
    char payload[];
};

struct null_node {
    struct tb_transport head;
    struct tb_upcalls up;
    uint32_t self;
    struct tb_list inbox;
    struct tb_endpoint to[NULL_NODES];
};

static struct null_node *null_nodes[NULL_NODES];
static uint64_t null_eager;

static const struct tb_param_row null_params[] = {{.name = "null_eager",
                                                   .type = TB_PARAM_SIZE,
                                                   .fallback = "1k",
                                                   .high = 1 << 20,
                                                   .help = "longest message sent without asking, to nowhere",
                                                   .at = &null_eager},
                                                  {.name = NULL}};
static const struct tb_transport_table null_table;

static int null_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    struct null_node *n = calloc(1, sizeof *n);
    if (n == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory");
    n->head = (struct tb_transport){.table = &null_table,
                                    .capabilities = TB_CAP_DEPENDABLE,
                                    .max_payload = 4096,
                                    .eager_limit = (uint32_t)null_eager,
                                    .remote_minimum = UINT64_MAX};
    n->up = config->upcalls;
    n->self = config->self.index;
    tb_list_init(&n->inbox);
    for (uint32_t i = 0; i < NULL_NODES; i++)
        n->to[i] = (struct tb_endpoint){.transport = &n->head, .proc = {config->self.job, i}};
    null_nodes[n->self] = n;
    *transport = &n->head;
    return TB_OK;
}

static void null_close(struct tb_transport *transport)
{
    struct null_node *n = (struct null_node *)transport;
    struct null_frame *f;
    null_nodes[n->self] = NULL;
    TB_LIST_EACH (f, &n->inbox, struct null_frame, queue)
        free(f);
    free(n);
}

static int null_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    if (proc.index >= NULL_NODES)
        return tb_error(TB_ERR_PEER, "there is no process %u", proc.index);
    *endpoint = &((struct null_node *)transport)->to[proc.index];
    return TB_OK;
}

static int null_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                     enum tb_stream stream, void *token)
{
    struct null_node *to = null_nodes[endpoint->proc.index];
    struct null_frame *f = to != NULL ? malloc(sizeof *f + payload->left) : NULL;
    if (f == NULL)
        return TB_ERR_PEER;
    *f = (struct null_frame){
        .from = ((struct null_node *)endpoint->transport)->self, .message = envelope->message, .length = payload->left};
    if (f->length > 0)
        tb_spans_gather(payload, f->payload, f->length);
    tb_list_append(&to->inbox, &f->queue);
    return TB_OK;
}

static int null_poll(struct tb_transport *transport)
{
    struct null_node *n = (struct null_node *)transport;
    int count = 0;
    for (; !tb_list_empty(&n->inbox); count++) {
        struct null_frame *f = TB_CONTAINER(n->inbox.next, struct null_frame, queue);
        tb_list_remove(&f->queue);
        struct tb_endpoint *from = &n->to[f->from];
        if (from->user == NULL)
            n->up.opened(n->up.context, from);
        n->up.frame(n->up.context, from, NULL, &f->message, f->payload, f->length);
        free(f);
    }
    return count;
}

static bool null_arm(struct tb_transport *transport)
{
    return tb_list_empty(&((struct null_node *)transport)->inbox);
}

static void null_disarm(struct tb_transport *transport) {}

static int null_descriptor(struct tb_transport *transport)
{
    return -1;
}

static uint64_t null_deadline(struct tb_transport *transport)
{
    return TB_NEVER;
}

static bool null_idle(struct tb_transport *transport)
{
    return true;
}

static const struct tb_transport_table null_table = {.name = "null",
                                                     .scope = TB_SCOPE_HOST,
                                                     .capabilities = TB_CAP_DEPENDABLE,
                                                     .params = null_params,
                                                     .open = null_open,
                                                     .close = null_close,
                                                     .endpoint = null_endpoint,
                                                     .send = null_send,
                                                     .poll = null_poll,
                                                     .arm = null_arm,
                                                     .disarm = null_disarm,
                                                     .descriptor = null_descriptor,
                                                     .deadline = null_deadline,
                                                     .idle = null_idle};

#endif

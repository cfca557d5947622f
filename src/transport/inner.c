/* What decorators pass on as it is. */
#include "transport/transport.h"

int tb_inner_adopt(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    return transport->inner->table->adopt(transport->inner, proc, stream, descriptor);
}

void tb_inner_refused(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int error)
{
    transport->inner->table->refused(transport->inner, proc, stream, error);
}

void tb_inner_routes(struct tb_transport *transport)
{
    transport->inner->table->routes(transport->inner);
}

bool tb_inner_is_stuck(struct tb_transport *transport, struct tb_proc proc, uint64_t *tried)
{
    struct tb_transport *inner = transport->inner;
    return inner->table->is_stuck != NULL && inner->table->is_stuck(inner, proc, tried);
}

void tb_inner_rest(struct tb_transport *transport)
{
    struct tb_transport *inner = transport->inner;
    if (inner->table->rest != NULL)
        inner->table->rest(inner);
}

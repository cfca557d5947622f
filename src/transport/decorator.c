/* What decorators pass on as it is. */
#include "transport/transport.h"

int tb_decorator_adopt(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    return transport->inner->table->adopt(transport->inner, proc, stream, descriptor);
}

void tb_decorator_refused(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int error)
{
    transport->inner->table->refused(transport->inner, proc, stream, error);
}

void tb_decorator_routes(struct tb_transport *transport)
{
    transport->inner->table->routes(transport->inner);
}

/* What one-sided accesses say of the data that they carry or want, to and from the wire. */
#include "wire/order.h"
#include "wire/wire.h"

void tb_wire_put_access_head(void *to, const struct tb_access_head *head)
{
    uint8_t *at = to;
    at[offsetof(struct tb_access_head, op)] = head->op;
    at[offsetof(struct tb_access_head, type)] = head->type;
    tb_order_put16(at + offsetof(struct tb_access_head, zero), 0);
    tb_order_put32(at + offsetof(struct tb_access_head, runs), head->runs);
    tb_order_put64(at + offsetof(struct tb_access_head, position), head->position);
}

void tb_wire_get_access_head(const void *from, struct tb_access_head *head)
{
    const uint8_t *at = from;
    head->op = at[offsetof(struct tb_access_head, op)];
    head->type = at[offsetof(struct tb_access_head, type)];
    head->zero = tb_order_get16(at + offsetof(struct tb_access_head, zero));
    head->runs = tb_order_get32(at + offsetof(struct tb_access_head, runs));
    head->position = tb_order_get64(at + offsetof(struct tb_access_head, position));
}

void tb_wire_put_access_run(void *to, const struct tb_access_run *run)
{
    uint8_t *at = to;
    tb_order_put64(at + offsetof(struct tb_access_run, at), run->at);
    tb_order_put64(at + offsetof(struct tb_access_run, stride), run->stride);
    tb_order_put32(at + offsetof(struct tb_access_run, bytes), run->bytes);
    tb_order_put32(at + offsetof(struct tb_access_run, count), run->count);
}

void tb_wire_get_access_run(const void *from, struct tb_access_run *run)
{
    const uint8_t *at = from;
    run->at = tb_order_get64(at + offsetof(struct tb_access_run, at));
    run->stride = tb_order_get64(at + offsetof(struct tb_access_run, stride));
    run->bytes = tb_order_get32(at + offsetof(struct tb_access_run, bytes));
    run->count = tb_order_get32(at + offsetof(struct tb_access_run, count));
}

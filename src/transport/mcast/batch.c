#include "transport/mcast/batch.h"

#include <errno.h>
#include <stdlib.h>

int tb_mcast_batch_open(struct tb_mcast_batch *b, size_t limit)
{
    *b = (struct tb_mcast_batch){.limit = limit, .stale = TB_MCAST_BATCH, .bytes = malloc(TB_MCAST_BATCH * limit)};
    return b->bytes != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for receiving datagrams");
}

void tb_mcast_batch_close(struct tb_mcast_batch *b)
{
    free(b->bytes);
    b->bytes = NULL;
}

static uint8_t *own_bytes(const struct tb_mcast_batch *b, uint32_t which)
{
    return b->bytes + which * b->limit;
}

static uint8_t *place_of(const struct tb_mcast_batch *b, uint32_t which, size_t *length)
{
    const struct tb_mcast_room *r = &b->room;
    *length = tb_datagram_fragment_bytes(r->length, r->piece, (uint64_t)r->fragment + which);
    return r->at + (size_t)which * r->piece;
}

/* A datagram that is longer than its place goes on where it will have to be whole. */
static void prepare(struct tb_mcast_batch *b, uint32_t which)
{
    uint8_t *own = own_bytes(b, which);
    struct iovec *parts = b->parts[which];
    size_t length = 0, count = 0;
    parts[count++] = (struct iovec){.iov_base = b->heads[which], .iov_len = TB_DATAGRAM_BYTES};
    if (which < b->places) {
        uint8_t *place = place_of(b, which, &length);
        parts[count++] = (struct iovec){.iov_base = place, .iov_len = length};
    }
    if (length < b->limit)
        parts[count++] = (struct iovec){.iov_base = own + length, .iov_len = b->limit - length};
    b->messages[which].msg_hdr = (struct msghdr){
        .msg_name = &b->from[which], .msg_namelen = sizeof b->from[which], .msg_iov = parts, .msg_iovlen = count};
}

static bool is_same(const struct tb_mcast_room *a, const struct tb_mcast_room *b)
{
    return a->at == b->at && a->fragment == b->fragment && a->piece == b->piece && a->length == b->length;
}

/* A look in vain is the most frequent, so what was prepared for it stays so. */
static void room_use(struct tb_mcast_batch *b, const struct tb_mcast_room *room)
{
    uint32_t places = room == NULL || room->piece > b->limit ? 0 : room->count;
    places = places < TB_MCAST_BATCH ? places : TB_MCAST_BATCH;
    if (places != b->places || (places > 0 && !is_same(room, &b->room))) {
        uint32_t concerned = places > b->places ? places : b->places;
        b->stale = b->stale > concerned ? b->stale : concerned;
    }
    b->places = places;
    if (places == 0)
        return;
    TB_ASSERT(room->piece > 0 &&
              (uint64_t)room->fragment + room->count <= tb_datagram_fragments(room->length, room->piece));
    b->room = *room;
}

uint32_t tb_mcast_batch_receive(struct tb_mcast_batch *b, int socket, const struct tb_mcast_room *room)
{
    room_use(b, room);
    for (uint32_t i = 0; i < b->stale; i++)
        prepare(b, i);
    int n = recvmmsg(socket, b->messages, TB_MCAST_BATCH, MSG_DONTWAIT, NULL);
    b->stale = n > 0 ? (uint32_t)n : 0;
    return b->stale;
}

size_t tb_mcast_batch_bytes(const struct tb_mcast_batch *b, uint32_t which)
{
    return b->messages[which].msg_len;
}

/* Is it the one that was expected at this place? */
static bool is_expected(const struct tb_mcast_batch *b, uint32_t which, const struct tb_datagram *d)
{
    const struct tb_mcast_room *r = &b->room;
    return d->type == TB_DATAGRAM_DATA && d->context == r->context && d->number == r->number &&
           d->length == r->length && d->sender == r->sender && d->piece == r->piece &&
           d->fragment == r->fragment + which;
}

int tb_mcast_batch_check(struct tb_mcast_batch *b, uint32_t which, const struct tb_siphash_key *key,
                         struct tb_mcast_arrival *arrival)
{
    const struct mmsghdr *message = &b->messages[which];
    size_t header = message->msg_len < TB_DATAGRAM_BYTES ? message->msg_len : TB_DATAGRAM_BYTES;
    size_t length = message->msg_len - header, room = 0;
    uint8_t *own = own_bytes(b, which), *at = own;
    if ((message->msg_hdr.msg_flags & MSG_TRUNC) != 0)
        return tb_error(TB_ERR_PROTOCOL, "a datagram of more than %zu bytes is none of ours", b->limit);
    if (which < b->places) {
        at = place_of(b, which, &room);
        if (length > room) {
            memcpy(own, at, room);
            at = own;
        }
    }
    *arrival = (struct tb_mcast_arrival){.payload = at, .length = length, .from = &b->from[which]};
    int rc = tb_datagram_get(b->heads[which], header, at, length, key, &arrival->head);
    if (rc != TB_OK || at == own)
        return rc;
    arrival->placed = is_expected(b, which, &arrival->head);
    if (!arrival->placed) {
        memcpy(own, at, length);
        arrival->payload = own;
    }
    return TB_OK;
}

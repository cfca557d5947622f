#include "link/multicast_peers.h"

#include <stdlib.h>

static struct tb_list *bucket_of(const struct tb_multicast_peers *p, uint32_t process)
{
    return (struct tb_list *)&p->buckets[process % TB_MULTICAST_PEER_BUCKETS];
}

void tb_multicast_peers_open(struct tb_multicast_peers *p, uint32_t limit)
{
    *p = (struct tb_multicast_peers){.limit = limit > 0 ? limit : 1};
    for (uint32_t i = 0; i < TB_MULTICAST_PEER_BUCKETS; i++)
        tb_list_init(&p->buckets[i]);
    tb_list_init(&p->order);
}

static void peer_free(struct tb_multicast_peers *p, struct tb_multicast_peer *peer)
{
    tb_list_remove(&peer->in_bucket);
    tb_list_remove(&peer->in_order);
    p->count--;
    free(peer);
}

void tb_multicast_peers_close(struct tb_multicast_peers *p)
{
    struct tb_multicast_peer *peer;
    TB_LIST_EACH (peer, &p->order, struct tb_multicast_peer, in_order)
        peer_free(p, peer);
}

struct tb_multicast_peer *tb_multicast_peers_find(const struct tb_multicast_peers *p, uint32_t process)
{
    struct tb_multicast_peer *peer;
    TB_LIST_EACH (peer, bucket_of(p, process), struct tb_multicast_peer, in_bucket)
        if (peer->process == process)
            return peer;
    return NULL;
}

struct tb_multicast_peer *tb_multicast_peers_get(struct tb_multicast_peers *p, uint32_t process)
{
    struct tb_multicast_peer *peer = tb_multicast_peers_find(p, process);
    if (peer == NULL) {
        if (p->count == p->limit)
            peer_free(p, TB_CONTAINER(p->order.next, struct tb_multicast_peer, in_order));
        peer = calloc(1, sizeof *peer);
        if (peer == NULL)
            return NULL;
        peer->process = process;
        tb_list_init(&peer->in_order);
        tb_list_append(bucket_of(p, process), &peer->in_bucket);
        p->count++;
    }
    tb_list_remove(&peer->in_order);
    tb_list_append(&p->order, &peer->in_order);
    return peer;
}

void tb_multicast_peers_forget(struct tb_multicast_peers *p, uint32_t process)
{
    struct tb_multicast_peer *peer = tb_multicast_peers_find(p, process);
    if (peer != NULL)
        peer_free(p, peer);
}

void tb_multicast_peer_learn(struct tb_multicast_peer *peer, const struct tb_multicast_address *address)
{
    if (address->length > 0 && address->length <= TB_MULTICAST_ADDRESS_BYTES)
        peer->address = *address;
}

static uint64_t smoothed(uint64_t before, uint64_t sample)
{
    return before == 0 ? sample : before - before / 8 + sample / 8;
}

void tb_multicast_peer_note_wait(struct tb_multicast_peer *peer, uint64_t waited)
{
    if (peer->wait == 0) {
        peer->wait = waited + 1;
        peer->wait_deviation = waited / 2;
        return;
    }
    uint64_t apart = waited > peer->wait ? waited - peer->wait : peer->wait - waited;
    peer->wait_deviation = peer->wait_deviation - peer->wait_deviation / 4 + apart / 4;
    peer->wait = smoothed(peer->wait, waited) + 1;
}

void tb_multicast_peer_note_answer(struct tb_multicast_peer *peer, uint64_t took)
{
    peer->answer = smoothed(peer->answer, took + 1);
}

void tb_multicast_peer_note_gap(struct tb_multicast_peer *peer, uint64_t gap)
{
    peer->gap = smoothed(peer->gap, gap + 1);
}

/* The most counts, and is forgotten slowly: to ask for what is only late costs a repair. */
void tb_multicast_peer_note_overtaking(struct tb_multicast_peer *peer, uint64_t by)
{
    peer->overtaking = by > peer->overtaking ? by : peer->overtaking - (peer->overtaking - by) / 64;
}

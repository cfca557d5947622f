/* A cost table that is being made: sections that grow, of which alike wires, curves and ends are kept once. Owned by
 * whoever opened it, one thread. The first error stays, and sealing tells it, so that nobody in between need ask. */
#ifndef TB_TOPOLOGY_COST_BUILD_H
#define TB_TOPOLOGY_COST_BUILD_H

#include "topology/cost_table.h"

/* What is taken for true where nothing is said; ps and bit/s. */
struct tb_cost_assumed {
    uint64_t near_latency, near_rate; /* of the network of a cluster, and of a host's port there */
    uint64_t near_own;                /* of a lab, which emulates only longer ones than TB_COST_OWN_MOST; 0: no lab */
    uint64_t near_queue;              /* bytes in front of a port; 0: any number */
    uint64_t near_burst;              /* bytes that pass a port at once after it has rested */
    uint64_t far_latency, far_rate;   /* between clusters */
};

struct tb_cost_section {
    void *data;
    uint32_t count, room;
    uint32_t size;               /* of an element */
    uint32_t *index, index_room; /* finds elements by their bytes; TB_COST_NONE: free */
};

struct tb_cost_builder {
    const struct tb_places *tree;
    uint32_t host_count, version;
    struct tb_cost_section places, kinds, feet, relays, links, wires, curves, ends, detours, hops;
    struct tb_cost_constants constants;
    struct tb_cost_assumed assumed;
    uint32_t near_curve, near_ends; /* of ports of which nothing is said; TB_COST_NONE */
    int error;
};

/* Every place gets what is assumed. The places must outlive it. */
int tb_cost_builder_open(struct tb_cost_builder *builder, const struct tb_places *places,
                         const struct tb_cost_assumed *assumed);
void tb_cost_builder_close(struct tb_cost_builder *builder);
/* Of a port of this rate, or of a hub: what passes it at once after it has rested, as time in us. */
uint16_t tb_cost_builder_burst(const struct tb_cost_builder *builder, uint64_t bandwidth);
/* Their number; of those that are like one that is there already, that one's. */
uint32_t tb_cost_builder_wire(struct tb_cost_builder *builder, const struct tb_wire *wire);
uint32_t tb_cost_builder_curve(struct tb_cost_builder *builder, const struct tb_cost_curve *curve);
uint32_t tb_cost_builder_ends(struct tb_cost_builder *builder, const struct tb_cost_curve *send,
                              const struct tb_cost_curve *receive);
/* What was measured, as text, for a wire; false: it makes no sense. */
bool tb_cost_builder_measured(struct tb_cost_builder *builder, const char *text, uint32_t *curve, uint32_t *ends);
/* What is assumed of all places, again, after near_curve and near_ends were set. */
void tb_cost_builder_assume(struct tb_cost_builder *builder);
/* Puts one more behind a section; its number. */
uint32_t tb_cost_builder_push(struct tb_cost_builder *builder, struct tb_cost_section *section, const void *element);
/* A link in one direction, in the place of one with the same ends if there is one; its entry. `back` is found. */
uint32_t tb_cost_builder_link(struct tb_cost_builder *builder, const struct tb_link_cost *link);
/* One malloc'd block, of the version 1 unless told otherwise. */
int tb_cost_builder_seal(struct tb_cost_builder *builder, void **bytes, size_t *length);

static inline struct tb_cost_place *tb_cost_builder_place(struct tb_cost_builder *builder, uint32_t place)
{
    return (struct tb_cost_place *)builder->places.data + place;
}

/* Bytes that wait in front of a wire of which nothing is said: what is on its way in a round trip. */
static inline uint64_t tb_cost_default_queue(uint64_t bandwidth, uint64_t latency)
{
    unsigned __int128 bytes = (unsigned __int128)bandwidth * latency / 4 / UINT64_C(1000000000000);
    return bytes < 65536 ? 65536 : (uint64_t)bytes;
}

#endif

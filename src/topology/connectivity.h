/* The connectivity graph: which class of hosts can open a connection to which, and what a message between them costs.
 * Its first content is what the grid file says; what was found out by trying can be put in its place. Two classes that
 * can each connect to the other are direct neighbours (the direct connectivity graph); if only one can, it has to be
 * the one that connects. Owned by whoever opened it, one thread; the grid must outlive it.
 *
 * The cost is the time in nanoseconds of a message of TB_CONNECTIVITY_BYTES by one connection: the latencies of all
 * wires on its way (hop_wires.h) and of one relay, and the bytes at the rate of the slowest wire. What the file does
 * not say is taken for TB_CONNECTIVITY_* below. */
#ifndef TB_TOPOLOGY_CONNECTIVITY_H
#define TB_TOPOLOGY_CONNECTIVITY_H

#include "topology/class.h"
#include "topology/cost_table.h"

#define TB_CONNECTIVITY_CLASSES_LIMIT 2048u
#define TB_CONNECTIVITY_BYTES         16384u
#define TB_CONNECTIVITY_RELAY         20000u      /* ns that a process spends on passing a message on */
#define TB_CONNECTIVITY_NEAR_LATENCY  50000u      /* ns; of a cluster's network */
#define TB_CONNECTIVITY_NEAR_RATE     1000000000u /* bit/s */
#define TB_CONNECTIVITY_FAR_LATENCY   10000000u   /* ns; between clusters */
#define TB_CONNECTIVITY_FAR_RATE      100000000u

struct tb_connectivity {
    const struct tb_grid *grid;
    struct tb_host_classes classes;
    uint8_t *reach;             /* [from * class_count + to]; a class reaches itself */
    uint64_t *costs;            /* likewise */
    uint32_t *links;            /* likewise: the first link of the grid that a connection crosses; TB_GRID_NONE: none */
    struct tb_cost_table table; /* which wires there are */
    void *cost_bytes;           /* its */
    uint32_t *cluster_places;   /* in it */
    uint32_t *kinds;            /* in it, of each host: the class as the file has it */
};

/* How two classes can be neighbours; a smaller one is preferred. */
enum tb_tie { TB_TIE_DIRECT, TB_TIE_ONE_WAY, TB_TIE_NONE };

int tb_connectivity_open(struct tb_connectivity *connectivity, const struct tb_grid *grid);
/* Among some hosts alone: `part` has an element for each, NULL: all. TB_ERR_LIMIT: these are of too many kinds. */
int tb_connectivity_open_part(struct tb_connectivity *connectivity, const struct tb_grid *grid, const bool *part);
/* As far as the hosts that are `wanted` need it: of a grid of many clusters, or of too many kinds of hosts, these alone
 * and of all other clusters as many as can be told apart (grid_fold.h, connectivity_part.c). None that is `missing` is
 * looked at then, and clusters that are `apart` are like no other; NULL: none. */
int tb_connectivity_open_for(struct tb_connectivity *connectivity, const struct tb_grid *grid, const bool *wanted,
                             const bool *apart, const bool *missing);
void tb_connectivity_close(struct tb_connectivity *connectivity);
/* What was found out about one direction between two different classes. */
void tb_connectivity_set(struct tb_connectivity *connectivity, uint32_t from, uint32_t to, bool reaches);
/* Hosts of a class have turned out to differ: as tb_host_classes_split. What was known of a class holds for its parts,
 * which reach each other. After an error it can only be closed. */
int tb_connectivity_split(struct tb_connectivity *connectivity, const uint32_t *labels, uint32_t *origins);
/* What the file says of all wires between two classes, as if they were one: latencies and losses together, the slowest
 * rate. What it does not say of some of them is left out; of all of them: not said. */
void tb_connectivity_wire(const struct tb_connectivity *connectivity, uint32_t from, uint32_t to,
                          struct tb_grid_wire *wire);
/* Whether ranks may connect across the link between the two, which the file calls direct; both orders give one answer.
 * Where a host stands in several clusters, one such link between it and the other is enough. */
bool tb_connectivity_direct(const struct tb_connectivity *connectivity, uint32_t a, uint32_t b);
/* Puts one more behind a wire, which begins as {.latency = UINT64_MAX}. */
void tb_grid_wire_add(struct tb_grid_wire *wire, const struct tb_grid_wire *more);
/* Nobody reaches this class any more, nor it anybody else: its hosts are gone. Routes made from now on go around it. */
void tb_connectivity_cut(struct tb_connectivity *connectivity, uint32_t class);

static inline bool tb_connectivity_reaches(const struct tb_connectivity *c, uint32_t from, uint32_t to)
{
    return c->reach[(size_t)from * c->classes.class_count + to] != 0;
}

static inline uint64_t tb_connectivity_cost(const struct tb_connectivity *c, uint32_t from, uint32_t to)
{
    return c->costs[(size_t)from * c->classes.class_count + to];
}

/* The first link of the file that a connection between two classes crosses; NULL: none. */
static inline const struct tb_grid_link *tb_connectivity_link(const struct tb_connectivity *c, uint32_t from,
                                                              uint32_t to)
{
    uint32_t link = c->links[(size_t)from * c->classes.class_count + to];
    return link != TB_GRID_NONE ? &c->grid->links[link] : NULL;
}

static inline enum tb_tie tb_connectivity_tie(const struct tb_connectivity *c, uint32_t a, uint32_t b)
{
    bool forth = tb_connectivity_reaches(c, a, b), back = tb_connectivity_reaches(c, b, a);
    return forth && back ? TB_TIE_DIRECT : (forth || back ? TB_TIE_ONE_WAY : TB_TIE_NONE);
}

#endif

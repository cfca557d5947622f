/* The grid file: sites, clusters, hosts and links as the user describes them. Read once, then constant; whoever has
 * read it owns it. Any thread may read it.
 *
 * Where hosts can connect to:
 *   - hosts of one cluster reach each other;
 *   - a cluster without `gateways` is open: all its hosts reach outward and can be reached;
 *   - with `gateways` only those hosts can be reached from outside; the others reach outward if the cluster is behind
 *     NAT, else not at all. An empty list: nobody can be reached;
 *   - `nat` without `gateways`: all hosts reach outward, nobody can be reached;
 *   - outside of a cluster is the cluster in which it nests, or the wide area, which connects all outermost clusters;
 *   - a host that stands in several clusters has a foot in each;
 *   - a link that is `blocked` lets nobody connect in its direction;
 *   - clusters without an IP family in common do not reach each other. */
#ifndef TB_TOPOLOGY_GRID_H
#define TB_TOPOLOGY_GRID_H

#include "base/base.h"

#include <stdio.h>

#define TB_GRID_NAME_BYTES     64
#define TB_GRID_HOSTS_LIMIT    1048576u
#define TB_GRID_CLUSTERS_LIMIT 16384u   /* and of sites as many */
#define TB_GRID_LINKS_LIMIT    262144u  /* both directions counted */
#define TB_GRID_FEET_LIMIT     2097152u /* hosts of all clusters together */
#define TB_GRID_SLOTS_LIMIT    1048576u /* of a host */
#define TB_GRID_NESTING_LIMIT  16u
#define TB_GRID_FILE_LIMIT     (64u << 20)
#define TB_GRID_PAIRS_LIMIT    1024u /* variables, or programs, of a cluster */
#define TB_GRID_NONE           UINT32_MAX

#define TB_GRID_CONGESTION_BYTES 16

/* Not said: it is full. */
enum tb_grid_duplex { TB_GRID_DUPLEX_NOT_SAID, TB_GRID_FULL, TB_GRID_HALF };

/* What a wire does to what passes it. */
struct tb_grid_wire {
    uint64_t bandwidth;         /* bit/s; 0: not said */
    uint64_t latency;           /* ns one way; UINT64_MAX: not said */
    uint64_t jitter;            /* ns: the latency is spread evenly by up to so much either way */
    uint32_t loss;              /* frames lost of a million */
    uint32_t reorder;           /* frames of a million that overtake those before them */
    uint64_t queue;             /* bytes that wait in front of it at most; 0: not said */
    enum tb_grid_duplex duplex; /* half: both directions share it */
    const char *table; /* what was measured, as the parameter ethernet_table has it; NULL: not said. The grid's own, so
                          that wires can be copied */
};

/* The wire that everything between the inside and the outside of a cluster or site shares. */
struct tb_grid_uplink {
    bool given;
    struct tb_grid_wire up, down; /* outward, inward */
};

/* Bits of IP families. */
enum { TB_GRID_IPV4 = 1, TB_GRID_IPV6 = 2 };

struct tb_grid_site {
    char name[TB_GRID_NAME_BYTES];
    uint32_t line;
    struct tb_grid_uplink uplink;
};

struct tb_grid_host {
    char name[TB_GRID_NAME_BYTES]; /* unique in the grid */
    char *address;                 /* as ssh and the agents know it; NULL: the name */
    char *user;                    /* NULL: not given */
    uint32_t port;                 /* of ssh; 0: not given */
    uint32_t slots;                /* ranks that it carries */
    uint32_t line;
    uint32_t cluster;       /* the first one in the file that names it */
    uint32_t cluster_count; /* all that name it, ascending */
    uint32_t *clusters;
    struct tb_grid_wire *wire; /* of its port in each cluster (`bandwidth`, `duplex`, `queue`), and of its foot outside
                                  if it is a gateway; NULL: nothing was said. Allocated */
};

enum tb_grid_medium { TB_GRID_SWITCH, TB_GRID_HUB };

struct tb_grid_pair {
    char *name, *value;
};

/* How a job is started in a cluster. What is NULL or 0 was not said; then what the cluster around it says holds. */
struct tb_grid_start {
    char *command; /* leads to its gateways (or to all, if it is open) from outside: called as COMMAND host command */
    char *inside;  /* leads from its gateways to its other hosts, likewise */
    char *tombolo; /* where tombolo is on its hosts */
    char *directory;
    uint32_t port; /* on which the agents of its gateways (or of all, if it is open) listen */
    uint32_t program_count, variable_count;
    struct tb_grid_pair *programs;  /* by their names on the command line; a NULL name: all of them */
    struct tb_grid_pair *variables; /* of the environment */
};

struct tb_grid_cluster {
    char name[TB_GRID_NAME_BYTES]; /* unique in the grid */
    uint32_t site;                 /* TB_GRID_NONE: none was named */
    uint32_t parent;               /* cluster in which it nests, or TB_GRID_NONE */
    uint32_t line;
    bool nat;
    bool gated; /* `gateways` was given, be it empty */
    bool said;  /* `nat` was given, be it false */
    uint32_t gateway_count, host_count;
    uint32_t *gateways, *hosts; /* indices of hosts, in the order of the file */
    enum tb_grid_medium medium;
    struct tb_grid_wire ethernet; /* of a host's port, or of the whole hub */
    bool no_multicast;            /* datagrams to groups do not reach its hosts: `multicast: false` */
    struct tb_grid_uplink uplink;
    uint8_t ip; /* families of its hosts' addresses */
    struct tb_grid_start start;
};

/* One direction. Its ends are outermost clusters or siblings, a cluster and the one in which it nests, or gateways of
 * such clusters; a link between gateways is beside that of their clusters and has a rate of its own. Or they are sites,
 * or a site and an outermost cluster elsewhere: one wire that is shared by what goes between them and has no link of
 * its own. */
struct tb_grid_link {
    char name[2 * TB_GRID_NAME_BYTES + 2]; /* "from-to" unless the file names it; both directions have one name */
    uint32_t from, to;                     /* clusters; TB_GRID_NONE: a site */
    uint32_t from_site, to_site;           /* sites; TB_GRID_NONE: a cluster */
    uint32_t from_host, to_host;           /* gateways, or TB_GRID_NONE */
    struct tb_grid_wire wire;
    bool blocked;
    bool said;   /* `blocked` was given, be it false */
    bool direct; /* ranks may connect across it themselves; the same in both directions */
    uint32_t line;
};

struct tb_grid {
    char *file; /* for messages */
    uint32_t site_count, cluster_count, host_count, link_count;
    struct tb_grid_site *sites;
    struct tb_grid_cluster *clusters;          /* a parent before its children */
    struct tb_grid_host *hosts;                /* in the order of the file */
    struct tb_grid_link *links;                /* both directions stand one after the other, as the file has them */
    struct tb_grid_index *index;               /* finds by name, and links by their ends */
    char congestion[TB_GRID_CONGESTION_BYTES]; /* TCP's congestion control on all hosts; "": not said */
    uint32_t table_count;
    char **tables; /* of all wires */
};

/* Reads and checks; the story of an error begins with "FILE:LINE: " and says what was expected. */
int tb_grid_load(struct tb_grid *grid, const char *path);
int tb_grid_parse(struct tb_grid *grid, const char *text, size_t length, const char *file);
void tb_grid_close(struct tb_grid *grid);

/* What sites, clusters and hosts may be called: letters, digits, '.', '_' and '-', beginning with a letter or digit. */
bool tb_grid_is_name(const char *text, size_t length);
/* Indices, or TB_GRID_NONE. */
uint32_t tb_grid_host_find(const struct tb_grid *grid, const char *name);
uint32_t tb_grid_cluster_find(const struct tb_grid *grid, const char *name);
uint32_t tb_grid_site_find(const struct tb_grid *grid, const char *name);
/* The cluster that nests in none and has this one inside of it, or is it. */
static inline uint32_t tb_grid_outermost(const struct tb_grid *grid, uint32_t cluster)
{
    while (grid->clusters[cluster].parent != TB_GRID_NONE)
        cluster = grid->clusters[cluster].parent;
    return cluster; /* in the header, since programs predict costs, too, and must not load what reads grid files */
}
bool tb_grid_cluster_has(const struct tb_grid_cluster *cluster, uint32_t host);
bool tb_grid_is_gateway(const struct tb_grid_cluster *cluster, uint32_t host);
/* The name of the end of a link where it begins, or where it leads to. */
const char *tb_grid_link_end(const struct tb_grid *grid, const struct tb_grid_link *link, bool to);
/* Whether its ends lie in different outermost clusters. */
static inline bool tb_grid_link_is_wide(const struct tb_grid *grid, const struct tb_grid_link *link)
{
    return link->from_site != TB_GRID_NONE || link->to_site != TB_GRID_NONE ||
           tb_grid_outermost(grid, link->from) != tb_grid_outermost(grid, link->to);
}
/* Whether two wires do the same. */
bool tb_grid_wire_same(const struct tb_grid_wire *a, const struct tb_grid_wire *b);
/* The link in this direction that holds for what goes between two gateways (or other hosts) of two clusters: theirs,
 * that of their clusters, or that of their sites; NULL: the file has none. */
const struct tb_grid_link *tb_grid_link_find(const struct tb_grid *grid, uint32_t from, uint32_t from_host, uint32_t to,
                                             uint32_t to_host);

/* Whether a host can open a connection to another, as the file says. */
bool tb_grid_reaches(const struct tb_grid *grid, uint32_t from, uint32_t to);
/* Whether that is only supposed: it can, but of no cluster on the way the file gives `gateways` or `nat`, and of no
 * link `blocked`, in either direction. */
bool tb_grid_supposes(const struct tb_grid *grid, uint32_t from, uint32_t to);
/* Whether somebody in the wide area, who is no host of the grid, can open a connection to a host. */
bool tb_grid_outsider_reaches(const struct tb_grid *grid, uint32_t to);
/* The first pair of hosts with slots of which not each can connect to the other; false: there is none. */
bool tb_grid_first_unreachable(const struct tb_grid *grid, uint32_t *from, uint32_t *to);

/* A commented file to start from; with hosts, as a host file lists them, filled from these. */
struct tb_grid_seed {
    const char *name, *cluster, *site, *user; /* the last three: NULL or "" where not given */
    uint32_t slots, port;                     /* port 0: not given */
};
/* TB_ERR_ARGUMENT: clusters of two sites have the same name. */
int tb_grid_write_template(FILE *to, uint32_t seed_count, const struct tb_grid_seed *seeds);

#endif

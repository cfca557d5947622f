/* For tests: random grids as texts, the same on every machine: each draw is a statement of its own, since compilers
 * evaluate arguments in any order. */
#ifndef TB_PLANNER_RANDOM_GRID_TEST_H
#define TB_PLANNER_RANDOM_GRID_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What is drawn from. */
static uint32_t random_seed = 1;

static inline uint32_t random_below(uint32_t limit)
{
    random_seed = random_seed * 1664525u + 1013904223u;
    return (random_seed >> 8) % limit;
}

static inline int wire_text(char *at, const char *key)
{
    static const uint32_t rates[] = {1, 10, 20, 100, 1000};
    static const char *const latencies[] = {"0.05", "1", "10", "40"};
    uint32_t rate = rates[random_below(5)];
    const char *latency = latencies[random_below(4)];
    return sprintf(at, "%s{bandwidth: %u, latency: %s%s}", key, rate, latency,
                   random_below(5) == 0 ? ", duplex: half" : "");
}

/* Up to so many clusters of up to so many hosts, with and without uplinks, gateways, hubs and links. */
static inline void random_grid(char *at, uint32_t clusters_most, uint32_t hosts_most)
{
    uint32_t clusters = 1 + random_below(clusters_most);
    bool links = false;
    at += sprintf(at, "clusters:\n");
    for (uint32_t i = 0; i < clusters; i++) {
        at += sprintf(at, "- {name: c%u, hosts: \"c%un[1-%u]\"", i, i, 1 + random_below(hosts_most));
        if (random_below(4) == 0)
            at += sprintf(at, ", ethernet: {hub: true, bandwidth: 10, latency: 0.2}");
        else
            at += wire_text(at, ", ethernet: ");
        if (random_below(2) == 0)
            at += wire_text(at, ", uplink: ");
        if (random_below(2) == 0)
            at += sprintf(at, ", gateways: [c%un1]", i);
        at += sprintf(at, "}\n");
    }
    for (uint32_t i = 0; i < clusters; i++)
        for (uint32_t k = i + 1; k < clusters; k++)
            if (random_below(2) == 0) {
                uint32_t rate = 1 + random_below(100), latency = 1 + random_below(50);
                at += sprintf(at, "%s- {from: c%u, to: c%u, bandwidth: %u, latency: %u}\n", links ? "" : "links:\n", i,
                              k, rate, latency);
                links = true;
            }
}

#endif

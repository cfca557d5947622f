#include "topology/cost_parameters.h"
#include "topology/cost_links.h"

#include <string.h>

#define PS_PER_NS 1000u
#define MEGA      1000000u

#define SOCKET_COPY  (16000ull * MEGA) /* the kernel copies what goes through a socket, on both sides; bit/s */
#define UNSENT_BYTES 131072u           /* that a socket takes beyond what is on the wire */

static int table_error(const char *name, const char *table)
{
    return tb_error(TB_ERR_ARGUMENT,
                    "parameter %s: '%s' should be up to %d points BYTES:SEND:RECEIVE:GAP with commas between, "
                    "times in nanoseconds, the first one for 0 bytes, and rising",
                    name, table, TB_COST_POINTS);
}

/* Into memory that is zero already, so that what lies between the fields stays so. */
static void curve_set(struct tb_cost_curve *to, const struct tb_cost_curve *curve)
{
    to->count = curve->count;
    for (uint32_t i = 0; i < curve->count; i++) {
        to->points[i].bytes = curve->points[i].bytes;
        to->points[i].time = curve->points[i].time;
    }
}

static void line_set(struct tb_cost_curve *to, uint64_t base, uint64_t bandwidth)
{
    struct tb_cost_curve line = tb_cost_line(base, bandwidth);
    curve_set(to, &line);
}

static void take_constants(struct tb_cost_constants *c)
{
    const struct tb_params *p = &tb_param;
    uint64_t shm = (uint64_t)p->shm_bandwidth * MEGA;
    line_set(&c->ends[TB_ENDS_SHM].send, p->shm_overhead * PS_PER_NS, shm);
    line_set(&c->ends[TB_ENDS_SHM].receive, p->shm_overhead * PS_PER_NS, shm);
    for (int i = TB_ENDS_TCP; i <= TB_ENDS_AGENTS; i++) {
        line_set(&c->ends[i].send, p->ethernet_overhead * PS_PER_NS, SOCKET_COPY);
        line_set(&c->ends[i].receive, p->ethernet_overhead * PS_PER_NS, SOCKET_COPY);
    }
    c->shm_latency = p->shm_latency * PS_PER_NS;
    line_set(&c->copy, 0, shm);
    line_set(&c->reduce, 0, (uint64_t)p->reduce_bandwidth * MEGA);
    line_set(&c->memory, 0, (uint64_t)p->memory_bandwidth * MEGA);
    c->change = p->change_time * PS_PER_NS;
    c->loss = p->loss_time * PS_PER_NS;
    c->short_bytes = c->eager_tcp = p->eager_tcp;
    c->eager_shm = p->eager_shm;
    c->unsent = UNSENT_BYTES;
    c->wire_work = (uint64_t)p->wire_work;
    c->ack_share = (uint32_t)p->ack_share;
    c->agent_latency = p->agent_overhead * PS_PER_NS;
    c->cores = (uint32_t)p->cores;
    c->pool = (uint32_t)p->shared_cores;
    c->flags = tb_param_connects_ranks() ? 0 : TB_COSTS_CLOSED;
}

/* Measured tables go before lines. */
static int take_tables(struct tb_cost_builder *b)
{
    struct tb_cost_constants *c = &b->constants;
    struct tb_cost_curve send, receive, gap;
    if (*tb_param.shm_table != 0) {
        if (!tb_cost_points_parse(tb_param.shm_table, &send, &receive, NULL))
            return table_error("shm_table", tb_param.shm_table);
        memset(&c->ends[TB_ENDS_SHM], 0, sizeof c->ends[TB_ENDS_SHM]);
        curve_set(&c->ends[TB_ENDS_SHM].send, &send);
        curve_set(&c->ends[TB_ENDS_SHM].receive, &receive);
    }
    if (*tb_param.ethernet_table == 0)
        return TB_OK;
    if (!tb_cost_points_parse(tb_param.ethernet_table, &send, &receive, &gap))
        return table_error("ethernet_table", tb_param.ethernet_table);
    for (int i = TB_ENDS_TCP; i <= TB_ENDS_AGENTS; i++) {
        memset(&c->ends[i], 0, sizeof c->ends[i]);
        curve_set(&c->ends[i].send, &send);
        curve_set(&c->ends[i].receive, &receive);
    }
    b->near_curve = tb_cost_builder_curve(b, &gap);
    tb_cost_builder_assume(b);
    return b->error;
}

int tb_cost_parameters_open(struct tb_cost_builder *b, const struct tb_places *places)
{
    const struct tb_params *p = &tb_param;
    uint64_t own = p->lab_latency * PS_PER_NS, near = p->ethernet_latency * PS_PER_NS;
    struct tb_cost_assumed assumed = {.near_latency = own > 0 ? own : near,
                                      .near_own = own,
                                      .near_rate = (uint64_t)p->ethernet_bandwidth * MEGA,
                                      .near_queue = p->switch_queue,
                                      .near_burst = p->port_burst,
                                      .far_latency = p->wide_latency * PS_PER_NS,
                                      .far_rate = (uint64_t)p->wide_bandwidth * MEGA};
    struct tb_wire agent = {
        .bandwidth = (uint64_t)p->agent_bandwidth * MEGA, .curve = TB_COST_NONE, .ends = TB_COST_NONE};
    int rc = tb_cost_builder_open(b, places, &assumed);
    take_constants(&b->constants);
    b->constants.agent = tb_cost_builder_wire(b, &agent);
    return rc == TB_OK ? take_tables(b) : rc;
}

int tb_cost_parameters_check(void)
{
    struct tb_place_row world = {.parent = TB_PLACE_NONE, .end = 1};
    char name[1] = "";
    struct tb_places places = {.count = 1, .name_bytes = 1, .rows = &world, .names = name};
    struct tb_cost_builder builder;
    int rc = tb_cost_parameters_open(&builder, &places);
    tb_cost_builder_close(&builder);
    return rc == TB_OK ? tb_cost_links_take(NULL, tb_param.links) : rc;
}

int tb_cost_table_make_plain(const struct tb_places *places, uint32_t host_count, void **bytes, size_t *length)
{
    struct tb_cost_builder builder;
    struct tb_cost_kind kind = {.port = TB_COST_NONE, .gate_of = TB_COST_NONE};
    int rc = tb_cost_parameters_open(&builder, places);
    builder.host_count = host_count;
    tb_cost_builder_push(&builder, &builder.kinds, &kind);
    if (rc == TB_OK)
        rc = tb_cost_links_take(&builder, tb_param.links);
    if (rc == TB_OK)
        rc = tb_cost_builder_seal(&builder, bytes, length);
    tb_cost_builder_close(&builder);
    return rc;
}

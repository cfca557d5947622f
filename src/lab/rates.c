/* The rate of a port: a token bucket that counts frames as they are on the wire, with preamble, check sum and gap (24
 * bytes beyond header and payload, 84 at least). It holds one frame, and so much more as passes while a timer of the
 * kernel is late; with exactly one frame every late timer is lost time (measured: 95 % of the rate at 100 Mbit/s, and
 * all of it with 2 KiB). */
#include "lab/network.h"

#include "lab/tool.h"

#include <inttypes.h>

#define BUCKET_LEAST   2048u
#define LATENESS_US    50u
#define SWITCH_BUFFER  262144u   /* of a port; as switches have */
#define HOST_BUFFER    16777216u /* more than programs can have under way; they wait, nothing is dropped */
#define BITS_OF_A_BYTE 8u

static void write_rate(FILE *to, const char *verb, const char *device, uint64_t bandwidth, bool of_host)
{
    uint64_t bucket = bandwidth / BITS_OF_A_BYTE * LATENESS_US / 1000000u;
    fprintf(to,
            "qdisc %s dev %s root handle 1: stab mtu 2047 tsize 2048 mpu 84 overhead 24 linklayer ethernet tbf rate "
            "%" PRIu64 "bit burst %" PRIu64 "b limit %u\n",
            verb, device, bandwidth, bucket > BUCKET_LEAST ? bucket : BUCKET_LEAST,
            of_host ? HOST_BUFFER : SWITCH_BUFFER);
}

void tb_rate_write_add(FILE *to, const char *device, uint64_t bandwidth, bool of_host)
{
    write_rate(to, "add", device, bandwidth, of_host);
}

static void write_change(FILE *to, const char *device, uint64_t before, uint64_t bandwidth, bool of_host)
{
    if (bandwidth > 0)
        write_rate(to, before > 0 ? "change" : "replace", device, bandwidth, of_host);
    else if (before > 0)
        fprintf(to, "qdisc del dev %s root\n", device);
}

/* A port at which the kernel's netem does the links that lead to it has no place for a rate of its own. */
static int refuse_links(const struct tb_lab_network *network, uint32_t foot)
{
    for (uint32_t i = 0; i < network->grid->link_count; i++)
        if (network->links[i].by_kernel && network->links[i].foot == foot)
            return tb_error(TB_ERR_UNSUPPORTED, "link %s leads to this port of host %s; set its bandwidth instead",
                            network->grid->links[i].name, network->plan.nodes[network->plan.feet[foot].node].name);
    return TB_OK;
}

int tb_lab_network_set_bandwidth(struct tb_lab_network *network, uint32_t foot, uint64_t bandwidth, bool out, bool in)
{
    const struct tb_lab_plan_foot *of = &network->plan.feet[foot];
    struct tb_tool tools[2];
    int rc = tb_tool_find(TB_TOOL_TC);
    if (rc == TB_OK && in)
        rc = refuse_links(network, foot);
    if (rc == TB_OK)
        rc = tb_tool_open(&tools[0], TB_TOOL_TC, network->spaces[of->node].parts[TB_SPACE_NET],
                          network->plan.nodes[of->node].name);
    if (rc != TB_OK)
        return rc;
    rc = tb_tool_open(&tools[1], TB_TOOL_TC, network->switches.parts[TB_SPACE_NET], "the switches");
    if (rc != TB_OK) {
        tb_tool_close(&tools[0]);
        return rc;
    }
    if (out)
        write_change(tools[0].to, of->name, network->feet[foot].out, bandwidth, true);
    if (in)
        write_change(tools[1].to, of->port, network->feet[foot].in, bandwidth, false);
    rc = tb_tools_run(tools, 2, NULL, 0);
    if (rc == TB_OK) {
        network->feet[foot].out = out ? bandwidth : network->feet[foot].out;
        network->feet[foot].in = in ? bandwidth : network->feet[foot].in;
    }
    return rc;
}

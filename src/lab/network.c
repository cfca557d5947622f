/* Building the network of a lab. */
#include "lab/network.h"

#include "lab/netem.h"
#include "lab/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAC_FORMAT   "%02x:%02x:%02x:%02x:%02x:%02x"
#define MAC_WORDS(m) (m)[0], (m)[1], (m)[2], (m)[3], (m)[4], (m)[5]

/* ---- namespaces -------------------------------------------------------------------------------------------------- */

/* What the list of allowed ones lacks is refused; then the machine keeps what it was born with. */
static void choose_congestion(struct tb_lab_network *network)
{
    int fd = open("/proc/sys/net/ipv4/tcp_congestion_control", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, network->wanted, strlen(network->wanted));
        close(fd);
    }
    tb_congestion_read(network->congestion);
}

/* Only where the plan has it, so that a grid has no other addresses than those that the plan gives. */
static int tune_ipv6(const struct tb_lab_network *network, uint32_t node)
{
    static const char *const places[] = {"all", "default", "lo"};
    static const char *const refused[] = {"accept_ra", "accept_dad"};
    bool wanted = tb_lab_plan_node_ip(&network->plan, node) & TB_GRID_IPV6;
    char path[64];
    int rc = TB_OK;
    if (access("/proc/sys/net/ipv6", F_OK) != 0)
        return wanted ? tb_error(TB_ERR_UNSUPPORTED, "%s: this kernel has no IPv6, which some clusters should have",
                                 network->grid->file)
                      : TB_OK;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && rc == TB_OK; i++) {
        snprintf(path, sizeof path, "ipv6/conf/%s/disable_ipv6", places[i]);
        rc = tb_space_tune(path, wanted ? "0" : "1");
        for (size_t k = 0; k < sizeof refused / sizeof refused[0] && rc == TB_OK && wanted; k++) {
            snprintf(path, sizeof path, "ipv6/conf/%s/%s", places[i], refused[k]);
            rc = tb_space_tune(path, "0");
        }
    }
    if (rc == TB_OK && wanted && network->plan.nodes[node].forwards)
        rc = tb_space_tune("ipv6/conf/all/forwarding", "1");
    return rc;
}

/* Each interface answers for itself alone. */
static int tune_node(struct tb_lab_network *network, uint32_t node)
{
    static const char *const settings[][2] = {{"ipv4/conf/all/arp_ignore", "1"},
                                              {"ipv4/conf/all/arp_announce", "2"},
                                              {"ipv4/conf/all/rp_filter", "0"},
                                              {"ipv4/conf/default/rp_filter", "0"}};
    int home = tb_space_visit(&network->spaces[node]);
    if (home < 0)
        return TB_ERR_SYSTEM;
    int rc = tune_ipv6(network, node);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0] && rc == TB_OK; i++)
        rc = tb_space_tune(settings[i][0], settings[i][1]);
    if (rc == TB_OK && network->plan.nodes[node].forwards)
        rc = tb_space_tune("ipv4/ip_forward", "1");
    choose_congestion(network);
    int back = tb_space_return(home);
    return rc == TB_OK ? back : rc;
}

static int make_spaces(struct tb_lab_network *network)
{
    const struct tb_lab_plan *plan = &network->plan;
    struct tb_lab_plan_route *routes = calloc(plan->segment_count, sizeof *routes);
    int rc = routes != NULL ? tb_space_make_bare(&network->switches) : tb_error(TB_ERR_MEMORY, "no memory for the lab");
    if (rc == TB_OK) {
        int home = tb_space_visit(&network->switches);
        rc = home >= 0 ? TB_OK : TB_ERR_SYSTEM;
        if (home >= 0) {
            (void)tb_space_tune("ipv6/conf/default/disable_ipv6", "1");
            (void)tb_space_tune("bridge/bridge-nf-call-iptables", "0"); /* there are no rules, so why pass them */
            rc = tb_space_return(home);
        }
    }
    for (uint32_t i = 0; i < plan->node_count && rc == TB_OK; i++) {
        char *names = tb_addresses_names(plan, i, routes);
        rc = names != NULL ? tb_space_make(&network->spaces[i], plan->nodes[i].name, names)
                           : tb_error(TB_ERR_MEMORY, "no memory for the names of the lab");
        free(names);
        if (rc == TB_OK)
            rc = tune_node(network, i);
    }
    free(routes);
    return rc;
}

/* ---- switches and cables ----------------------------------------------------------------------------------------- */

/* The bridge asks who listens to which group, as a real switch does where no router does it. It floods for as long as
 * answers to a question may take, counted from when it is told to ask, so at that time they may take little; what is
 * flooded, hosts take for an answer of others, and then give none. */
static void write_switches(FILE *to, const struct tb_lab_network *network)
{
    for (uint32_t s = 0; s < network->plan.segment_count; s++) {
        fprintf(to, "link add switch%u type bridge stp_state 0 forward_delay 0 mcast_query_response_interval 1\n", s);
        if (tb_port_is_hub(network, s))
            fprintf(to, "link set switch%u type bridge mcast_snooping 0\n", s);
        else
            fprintf(to,
                    "link set switch%u type bridge mcast_querier 1\n"
                    "link set switch%u type bridge mcast_query_response_interval 100\n",
                    s, s);
        fprintf(to, "link set switch%u mtu 1500 up\n", s);
        if (tb_port_is_hub(network, s))
            fprintf(to, "link add hub%u type ifb\nlink set hub%u up\n", s, s);
    }
}

static void write_cables(FILE *to, const struct tb_lab_network *network)
{
    const struct tb_lab_plan *plan = &network->plan;
    for (uint32_t i = 0; i < plan->foot_count; i++) {
        const struct tb_lab_plan_foot *foot = &plan->feet[i];
        fprintf(to, "link add %s type veth peer name %s txqueuelen %u address " MAC_FORMAT " netns /proc/self/fd/%d\n",
                foot->port, foot->name, TB_RATE_HOST_FRAMES, MAC_WORDS(foot->mac),
                network->spaces[foot->node].parts[TB_SPACE_NET]);
        fprintf(to, "link set %s master switch%u up\n", foot->port, foot->segment);
        if (tb_port_is_hub(network, foot->segment))
            fprintf(to, "link set %s type bridge_slave learning off flood on mcast_flood on\n", foot->port);
    }
}

static int connect_all(struct tb_lab_network *network)
{
    const struct tb_lab_plan *plan = &network->plan;
    struct tb_tool tool;
    int *kept = calloc(plan->node_count, sizeof *kept);
    if (kept == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the lab");
    for (uint32_t i = 0; i < plan->node_count; i++)
        kept[i] = network->spaces[i].parts[TB_SPACE_NET];
    int rc = tb_tool_open(&tool, TB_TOOL_IP, network->switches.parts[TB_SPACE_NET], "the switches");
    if (rc == TB_OK) {
        write_switches(tool.to, network);
        write_cables(tool.to, network);
        rc = tb_tools_run(&tool, 1, kept, plan->node_count);
    }
    free(kept);
    return rc;
}

/* Frames on a cable are as they would be on a wire: no larger, and with their checksums. */
static int plain_frames(const struct tb_lab_network *network, uint32_t node)
{
    static const uint32_t offloads[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM};
    const struct tb_lab_plan_node *of = &network->plan.nodes[node];
    int home = tb_space_visit(&network->spaces[node]);
    if (home < 0)
        return TB_ERR_SYSTEM;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = TB_OK;
    for (uint32_t i = 0; i < of->foot_count && rc == TB_OK; i++)
        for (size_t k = 0; k < sizeof offloads / sizeof offloads[0] && rc == TB_OK; k++) {
            struct ethtool_value value = {.cmd = offloads[k]};
            struct ifreq request = {.ifr_data = (char *)&value};
            memcpy(request.ifr_name, network->plan.feet[of->first_foot + i].name, TB_LAB_PLAN_NAME_BYTES);
            if (ioctl(fd, SIOCETHTOOL, &request) != 0 && errno != EOPNOTSUPP)
                rc = tb_error_errno("cannot turn off the offloads of %s", of->name);
        }
    if (fd >= 0)
        close(fd);
    int back = tb_space_return(home);
    return rc == TB_OK ? back : rc;
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

/* What a host sends is held back at the host, where a program can be made to wait for it. */
static void write_host_rates(FILE *to, const struct tb_lab_network *network, uint32_t node)
{
    const struct tb_lab_plan_node *of = &network->plan.nodes[node];
    for (uint32_t i = 0; i < of->foot_count; i++) {
        uint32_t foot = of->first_foot + i;
        if (network->feet[foot].out > 0 && !tb_port_is_hub(network, network->plan.feet[foot].segment)) {
            tb_rate_write_add(to, network->plan.feet[foot].name, network->feet[foot].out, TB_RATE_HOST_QUEUE);
            tb_rate_write_bands(to, network->plan.feet[foot].name);
        }
    }
}

/* On a hub all that enters any port waits in one queue for the one medium. */
static void write_switch_rates(FILE *to, const struct tb_lab_network *network)
{
    char device[TB_LAB_PLAN_NAME_BYTES];
    for (uint32_t s = 1; s < network->plan.segment_count; s++) {
        const struct tb_grid_wire *medium = &network->grid->clusters[s - 1].ethernet;
        if (!tb_port_is_hub(network, s) || medium->bandwidth == 0)
            continue;
        snprintf(device, sizeof device, "hub%u", s);
        tb_rate_write_add(to, device, medium->bandwidth, medium->queue != 0 ? medium->queue : TB_RATE_HOST_QUEUE);
    }
    for (uint32_t i = 0; i < network->plan.foot_count; i++) {
        const struct tb_lab_plan_foot *foot = &network->plan.feet[i];
        if (tb_port_is_hub(network, foot->segment))
            fprintf(to,
                    "qdisc add dev %s handle ffff: ingress\n"
                    "filter add dev %s parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev "
                    "hub%u\n",
                    foot->port, foot->port, foot->segment);
        else if (network->feet[i].in > 0 && !network->feet[i].half)
            tb_rate_write_add(to, foot->port, network->feet[i].in, tb_port_queue(network, i));
    }
}

static int configure_all(struct tb_lab_network *network)
{
    const struct tb_lab_plan *plan = &network->plan;
    struct tb_lab_plan_route *routes = calloc(plan->segment_count, sizeof *routes);
    uint32_t count = 0;
    struct tb_tool *tools = calloc(3 * plan->node_count + 1, sizeof *tools);
    int rc = routes != NULL && tools != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the lab");
    if (rc == TB_OK)
        rc = tb_tool_open(&tools[count++], TB_TOOL_TC, network->switches.parts[TB_SPACE_NET], "the switches");
    if (rc == TB_OK)
        write_switch_rates(tools[0].to, network);
    static const enum tb_tool_program programs[] = {TB_TOOL_IP, TB_TOOL_TC, TB_TOOL_NFT};
    for (uint32_t i = 0; i < 3 * plan->node_count && rc == TB_OK; i++) {
        uint32_t node = i / 3;
        struct tb_tool *tool = &tools[count++];
        rc = tb_tool_open(tool, programs[i % 3], network->spaces[node].parts[TB_SPACE_NET], plan->nodes[node].name);
        if (rc != TB_OK)
            break;
        if (tool->program == TB_TOOL_IP)
            tb_addresses_write(tool->to, plan, node, routes);
        else if (tool->program == TB_TOOL_TC)
            write_host_rates(tool->to, network, node);
        else if (tb_filter_is_needed(network, node))
            tb_filter_write(tool->to, network, node);
    }
    if (rc == TB_OK)
        rc = tb_tools_run(tools, count, NULL, 0);
    for (uint32_t i = 0; i < count; i++)
        tb_tool_close(&tools[i]);
    free(tools);
    free(routes);
    return rc;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int find_tools(const struct tb_lab_network *network)
{
    bool rates = false, filters = false;
    for (uint32_t i = 0; i < network->plan.foot_count; i++)
        rates = rates || network->feet[i].out > 0 || tb_port_is_hub(network, network->plan.feet[i].segment);
    for (uint32_t i = 0; i < network->plan.node_count; i++)
        filters = filters || tb_filter_is_needed(network, i);
    int rc = tb_tool_find(TB_TOOL_IP);
    if (rc == TB_OK && rates)
        rc = tb_tool_find(TB_TOOL_TC);
    return rc == TB_OK && filters ? tb_tool_find(TB_TOOL_NFT) : rc;
}

static int start_wires(struct tb_lab_network *network)
{
    int rc = TB_OK;
    for (uint32_t i = 0; i < network->grid->link_count && rc == TB_OK; i++)
        if (!tb_lab_network_is_plain(&network->grid->links[i].wire))
            rc = tb_lab_network_emulate_segment(network, tb_lab_network_link_segment(network, i));
    for (uint32_t i = 0; i < tb_uplink_count(network) && rc == TB_OK; i++) {
        const struct tb_grid_uplink *uplink = tb_uplink_of(network, i);
        if (uplink != NULL && !(tb_lab_network_is_plain(&uplink->up) && tb_lab_network_is_plain(&uplink->down)))
            rc = tb_lab_network_emulate_segment(network, tb_uplink_segment(network, i));
    }
    return rc == TB_OK ? tb_ports_start(network) : rc;
}

int tb_lab_network_build(struct tb_lab_network *network, const struct tb_grid *grid, const char *congestion,
                         struct tb_congestion_permit *permit)
{
    *network = (struct tb_lab_network){.grid = grid, .wanted = congestion, .emulator = -1};
    int rc = tb_lab_plan_make(&network->plan, grid);
    if (rc != TB_OK)
        return rc;
    network->spaces = calloc(network->plan.node_count, sizeof *network->spaces);
    network->feet = calloc(network->plan.foot_count, sizeof *network->feet);
    network->emulated = calloc(network->plan.segment_count, sizeof *network->emulated);
    network->links = calloc(grid->link_count + 1, sizeof *network->links);
    if (network->spaces == NULL || network->feet == NULL || network->emulated == NULL || network->links == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the lab");
    tb_ports_assign(network);
    rc = find_tools(network);
    network->has_netem = rc == TB_OK && grid->link_count > 0 && tb_netem_probe();
    if (rc == TB_OK)
        rc = make_spaces(network);
    tb_congestion_let_go(permit);
    if (rc == TB_OK)
        rc = connect_all(network);
    for (uint32_t i = 0; i < network->plan.node_count && rc == TB_OK; i++)
        rc = plain_frames(network, i);
    if (rc == TB_OK)
        rc = configure_all(network);
    return rc == TB_OK ? start_wires(network) : rc;
}

/* The part of a lab's network that the emulator carries: links and uplinks, and ports that were given faults.
 *
 * Across a segment each directed link is a pipe, and so is each direction of an uplink. The wide area is then carried
 * by the emulator alone; in a cluster in which others nest, the ports of those others leave the switch for the
 * emulator, which has a trunk to it. A single port with faults is a segment of its own for the emulator, with a trunk
 * to where the port was before (the switch, or the emulator again), so that what goes between two such ports passes
 * both, and the links too. */
#include "lab/network.h"

#include "lab/emulator.h"
#include "lab/passing.h"
#include "lab/tool.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the process ------------------------------------------------------------------------------------------------- */

static int start_emulator(struct tb_lab_network *network)
{
    int ends[2];
    if (network->emulator >= 0)
        return TB_OK;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return tb_error_errno("cannot make a socket for the emulator");
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        if (setns(network->switches.parts[TB_SPACE_NET], CLONE_NEWNET) != 0)
            _exit(1);
        if (ends[1] > 3)
            close_range(3, (unsigned)ends[1] - 1, 0);
        close_range((unsigned)ends[1] + 1, UINT_MAX, 0);
        _exit(tb_emulator_run(ends[1], 1) == TB_OK ? 0 : 1);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return tb_error_errno("cannot start the emulator");
    }
    network->emulator = ends[0];
    network->emulator_pid = pid;
    return TB_OK;
}

int tb_lab_network_tell(struct tb_lab_network *network, char *answer, size_t room, const char *format, ...)
{
    static char reply[TB_EMULATOR_MESSAGE_BYTES + 1]; /* one thread; too large for a stack frame */
    char text[4096];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    int rc = tb_pass(network->emulator, text, NULL, 0);
    if (rc == TB_OK)
        rc = tb_pass_take(network->emulator, reply, sizeof reply, NULL, NULL);
    if (rc != TB_OK)
        return tb_error(TB_ERR_PEER, "the emulator of the lab's links has ended; the lab should be taken down");
    if (strncmp(reply, "ok", 2) != 0)
        return tb_error(TB_ERR_ARGUMENT, "%s", strncmp(reply, "error ", 6) == 0 ? reply + 6 : reply);
    if (answer != NULL)
        snprintf(answer, room, "%s", reply[2] == '\n' ? reply + 3 : "");
    return TB_OK;
}

static int rewire(struct tb_lab_network *network, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Commands of ip among the switches. */
static int rewire(struct tb_lab_network *network, const char *format, ...)
{
    struct tb_tool tool;
    int rc = tb_tool_open(&tool, TB_TOOL_IP, network->switches.parts[TB_SPACE_NET], "the switches");
    if (rc != TB_OK)
        return rc;
    va_list rest;
    va_start(rest, format);
    vfprintf(tool.to, format, rest);
    va_end(rest);
    return tb_tools_run(&tool, 1, NULL, 0);
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static int make_pipe(struct tb_lab_network *network, const char *name, const struct tb_grid_wire *wire)
{
    return tb_lab_network_tell(
        network, NULL, 0, "pipe %s\nset %s bandwidth=%llu latency=%llu jitter=%llu loss=%u reorder=%u queue=%llu", name,
        name, (unsigned long long)wire->bandwidth,
        wire->latency == UINT64_MAX ? 0ull : (unsigned long long)wire->latency, (unsigned long long)wire->jitter,
        wire->loss, wire->reorder, (unsigned long long)wire->queue);
}

/* Of a half-duplex link both directions at once. */
static int make_link(struct tb_lab_network *network, uint32_t link)
{
    const struct tb_grid_wire *wire = &network->grid->links[link].wire;
    char name[TB_LAB_NETWORK_NAME_BYTES], back[TB_LAB_NETWORK_NAME_BYTES];
    if (network->links[link].has_pipe)
        return TB_OK;
    tb_lab_network_pipe_name(network, link, name);
    int rc = make_pipe(network, name, wire);
    network->links[link].has_pipe = rc == TB_OK;
    if (rc != TB_OK || wire->duplex != TB_GRID_HALF)
        return rc;
    uint32_t other = link ^ 1; /* the two stand one after the other */
    tb_lab_network_pipe_name(network, other, back);
    rc = make_pipe(network, back, &network->grid->links[other].wire);
    network->links[other].has_pipe = rc == TB_OK;
    return rc == TB_OK ? tb_lab_network_tell(network, NULL, 0, "half %s %s", name, back) : rc;
}

/* Those that lead to a segment. */
static int make_uplinks(struct tb_lab_network *network, uint32_t segment)
{
    char up[TB_LAB_NETWORK_NAME_BYTES], down[TB_LAB_NETWORK_NAME_BYTES];
    int rc = TB_OK;
    for (uint32_t i = 0; i < tb_uplink_count(network) && rc == TB_OK; i++) {
        const struct tb_grid_uplink *uplink = tb_uplink_of(network, i);
        if (uplink == NULL || tb_uplink_segment(network, i) != segment)
            continue;
        tb_uplink_pipe_name(network, i, true, up);
        tb_uplink_pipe_name(network, i, false, down);
        rc = make_pipe(network, up, &uplink->up);
        if (rc == TB_OK)
            rc = make_pipe(network, down, &uplink->down);
        if (rc == TB_OK && uplink->up.duplex == TB_GRID_HALF)
            rc = tb_lab_network_tell(network, NULL, 0, "half %s %s", up, down);
    }
    return rc;
}

/* The interface by which a foot's frames enter its segment: the far end of the trunk, where it has one. */
static const char *entry_of(const struct tb_lab_network *network, uint32_t foot, char *text)
{
    if (network->feet[foot].has_own)
        snprintf(text, TB_LAB_PLAN_NAME_BYTES, "line.%u", foot);
    else
        snprintf(text, TB_LAB_PLAN_NAME_BYTES, "%s", network->plan.feet[foot].port);
    return text;
}

/* A foot may be TB_GRID_NONE: whatever else is in the segment, behind `trunk`. */
static int route(struct tb_lab_network *network, uint32_t segment, uint32_t from, uint32_t to, const char *trunk)
{
    struct tb_lab_network_way way;
    char text[sizeof way.names] = "", here[TB_LAB_PLAN_NAME_BYTES], there[TB_LAB_PLAN_NAME_BYTES];
    size_t used = 0;
    tb_lab_network_way(network, segment, from, to, &way);
    if (way.count == 0)
        return TB_OK;
    int rc = way.link != TB_GRID_NONE ? make_link(network, way.link) : TB_OK;
    if (rc != TB_OK)
        return rc;
    for (uint32_t i = 0; i < way.count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %s", way.names[i]);
    return tb_lab_network_tell(network, NULL, 0, "route %s %s%s",
                               from != TB_GRID_NONE ? entry_of(network, from, here) : trunk,
                               to != TB_GRID_NONE ? entry_of(network, to, there) : trunk, text);
}

/* Gives an interface through which this foot's frames come to a segment of the emulator. */
static int move_to_emulator(struct tb_lab_network *network, uint32_t foot, const char *interface, const char *segment)
{
    const uint8_t *mac = network->plan.feet[foot].mac;
    int rc = rewire(network, "link set %s nomaster\nlink set %s up\n", interface, interface);
    return rc != TB_OK ? rc
                       : tb_lab_network_tell(network, NULL, 0, "port %s %s %02x:%02x:%02x:%02x:%02x:%02x", interface,
                                             segment, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

/* A cable between the emulator and a switch. */
static int make_trunk(struct tb_lab_network *network, const char *trunk, const char *line, uint32_t segment,
                      const char *emulated)
{
    int rc = rewire(network,
                    "link add %s type veth peer name %s\nlink set %s master switch%u up\nlink set %s up\n"
                    "link set %s mtu 1500\nlink set %s mtu 1500\n",
                    trunk, line, line, segment, trunk, trunk, line);
    return rc == TB_OK ? tb_lab_network_tell(network, NULL, 0, "port %s %s trunk", trunk, emulated) : rc;
}

/* In the wide area all feet, elsewhere those of inner clusters. */
static bool belongs(const struct tb_lab_network *network, uint32_t segment, uint32_t foot)
{
    return network->plan.feet[foot].segment == segment && (segment == 0 || tb_lab_network_is_border(network, foot));
}

/* Both ways between a foot and all others of its segment from this one on. */
static int route_foot(struct tb_lab_network *network, uint32_t foot, uint32_t first)
{
    uint32_t segment = network->plan.feet[foot].segment;
    char trunk[TB_LAB_PLAN_NAME_BYTES];
    int rc = TB_OK;
    snprintf(trunk, sizeof trunk, "trunk%u", segment);
    for (uint32_t i = first; i < network->plan.foot_count && rc == TB_OK; i++) {
        if (i == foot || !belongs(network, segment, i))
            continue;
        rc = route(network, segment, foot, i, trunk);
        if (rc == TB_OK)
            rc = route(network, segment, i, foot, trunk);
    }
    if (rc == TB_OK && segment > 0)
        rc = route(network, segment, foot, TB_GRID_NONE, trunk);
    if (rc == TB_OK && segment > 0)
        rc = route(network, segment, TB_GRID_NONE, foot, trunk);
    return rc;
}

/* From the switch to the emulator; a port that is down stays so. */
static int move_foot(struct tb_lab_network *network, uint32_t foot, const char *segment)
{
    char entry[TB_LAB_PLAN_NAME_BYTES];
    int rc = move_to_emulator(network, foot, entry_of(network, foot, entry), segment);
    if (rc == TB_OK && network->feet[foot].is_cut)
        rc = rewire(network, "link set %s down\n", entry);
    network->feet[foot].by_links = rc == TB_OK;
    return rc;
}

int tb_lab_network_emulate_segment(struct tb_lab_network *network, uint32_t segment)
{
    char trunk[TB_LAB_PLAN_NAME_BYTES], line[TB_LAB_PLAN_NAME_BYTES], name[TB_LAB_PLAN_NAME_BYTES];
    if (network->emulated[segment])
        return TB_OK;
    if (network->has_netem && tb_kernel_links_fit(network, segment)) {
        int done = tb_kernel_links_start(network, segment);
        network->emulated[segment] = done == TB_OK;
        return done;
    }
    snprintf(trunk, sizeof trunk, "trunk%u", segment);
    snprintf(line, sizeof line, "line%u", segment);
    snprintf(name, sizeof name, "switch%u", segment);
    int rc = start_emulator(network);
    if (rc == TB_OK && segment > 0)
        rc = make_trunk(network, trunk, line, segment, name);
    if (rc == TB_OK)
        rc = make_uplinks(network, segment);
    for (uint32_t i = 0; i < network->plan.foot_count && rc == TB_OK; i++)
        if (belongs(network, segment, i))
            rc = move_foot(network, i, name);
    for (uint32_t i = 0; i < network->plan.foot_count && rc == TB_OK; i++)
        if (belongs(network, segment, i))
            rc = route_foot(network, i, i + 1);
    network->emulated[segment] = rc == TB_OK;
    return rc;
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

/* What enters the hub now comes out of the trunk. */
static int move_hub_entry(struct tb_lab_network *network, const struct tb_lab_plan_foot *foot, const char *line)
{
    struct tb_tool tool;
    int rc = tb_tool_open(&tool, TB_TOOL_TC, network->switches.parts[TB_SPACE_NET], "the switches");
    if (rc != TB_OK)
        return rc;
    fprintf(tool.to,
            "qdisc del dev %s ingress\nqdisc add dev %s handle ffff: ingress\n"
            "filter add dev %s parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev hub%u\n",
            foot->port, line, line, foot->segment);
    rc = tb_tools_run(&tool, 1, NULL, 0);
    return rc == TB_OK ? rewire(network, "link set %s type bridge_slave learning off\n", line) : rc;
}

/* A pipe in each direction between a port and its trunk; cut, if the port was. */
static int make_own_pipes(struct tb_lab_network *network, uint32_t foot, const char *trunk)
{
    const char *port = network->plan.feet[foot].port;
    int rc = TB_OK;
    for (int i = 0; i < 2 && rc == TB_OK; i++) {
        rc = tb_lab_network_tell(network, NULL, 0, "pipe %s.%s", port, i == 0 ? "out" : "in");
        if (rc == TB_OK && network->feet[foot].is_cut)
            rc = tb_lab_network_tell(network, NULL, 0, "cut %s.%s", port, i == 0 ? "out" : "in");
    }
    if (rc == TB_OK)
        rc = move_to_emulator(network, foot, port, port);
    if (rc == TB_OK)
        rc = tb_lab_network_tell(network, NULL, 0, "route %s %s %s.out", port, trunk, port);
    return rc == TB_OK ? tb_lab_network_tell(network, NULL, 0, "route %s %s %s.in", trunk, port, port) : rc;
}

int tb_lab_network_emulate_foot(struct tb_lab_network *network, uint32_t foot)
{
    const struct tb_lab_plan_foot *of = &network->plan.feet[foot];
    char trunk[TB_LAB_PLAN_NAME_BYTES], line[TB_LAB_PLAN_NAME_BYTES], name[TB_LAB_PLAN_NAME_BYTES];
    if (network->feet[foot].has_own)
        return TB_OK;
    bool by_links = network->feet[foot].by_links;
    snprintf(trunk, sizeof trunk, "trunk.%u", foot);
    snprintf(line, sizeof line, "line.%u", foot);
    snprintf(name, sizeof name, "switch%u", of->segment);
    int rc = start_emulator(network);
    if (rc == TB_OK)
        rc = make_trunk(network, trunk, line, of->segment, of->port);
    if (rc == TB_OK && of->segment > 0 && network->grid->clusters[of->segment - 1].medium == TB_GRID_HUB)
        rc = move_hub_entry(network, of, line);
    if (rc == TB_OK && by_links)
        rc = tb_lab_network_tell(network, NULL, 0, "drop %s", of->port);
    if (rc == TB_OK)
        rc = make_own_pipes(network, foot, trunk);
    if (rc != TB_OK)
        return rc;
    network->feet[foot].has_own = true;
    network->feet[foot].is_cut = false; /* its pipes are, now */
    if (by_links)
        rc = move_to_emulator(network, foot, line, name);
    return rc == TB_OK && by_links ? route_foot(network, foot, 0) : rc;
}

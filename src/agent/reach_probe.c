/* Finding out whom this host can reach, when the launcher asks: every address of every host that it names is connected
 * to, side by side, and whoever there proves to be the agent of that host has been reached. A connection alone would
 * not do, since a router may take it in somebody else's place. Nothing is kept of it. */
#include "agent/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROBES_MOST   256u /* at once */
#define TARGETS_LIMIT 8192u
#define WAVES         3u /* connections to an address that does not answer, since something may be lost on the way */
#define STORY_BYTES   120

struct target {
    uint32_t host, address_count;
    struct tb_address addresses[TB_HOST_ADDRESS_LIMIT];
    uint32_t failed; /* a bit for each address that will not answer */
    bool done, reached;
    char story[STORY_BYTES];
};

struct probe {
    struct tb_list node;
    struct tb_watch watch;
    struct tb_reach_probe *all;
    struct target *target;
    uint32_t address;
    bool greeted;
    size_t have; /* bytes of welcome */
    struct tb_hello hello;
    struct tb_welcome welcome;
};

struct tb_reach_probe {
    struct tb_agent *agent;
    uint64_t patience;
    uint32_t target_count, open_count; /* open: not done */
    struct target *targets;
    uint32_t waves, next_target, next_address; /* where the present wave has come to */
    struct tb_list probes;
    uint32_t probe_count;
    struct tb_timer wave, overdue;
};

static void end_probe(struct probe *probe)
{
    struct tb_reach_probe *all = probe->all;
    int socket = probe->watch.descriptor;
    tb_loop_unwatch(&all->agent->loop, &probe->watch);
    if (socket >= 0)
        close(socket);
    tb_list_remove(&probe->node);
    all->probe_count--;
    free(probe);
}

void tb_reach_probe_close(struct tb_agent *agent)
{
    struct tb_reach_probe *all = agent->probe;
    struct probe *probe;
    if (all == NULL)
        return;
    agent->probe = NULL;
    TB_LIST_EACH (probe, &all->probes, struct probe, node)
        end_probe(probe);
    tb_timer_clear(&all->wave);
    tb_timer_clear(&all->overdue);
    free(all->targets);
    free(all);
}

static void answer(struct tb_reach_probe *all)
{
    struct tb_agent *agent = all->agent;
    struct tb_writer *w = tb_control_stream_begin(&agent->uplink.stream, TB_CONTROL_PROBED);
    tb_put_u32(w, all->target_count);
    for (uint32_t i = 0; i < all->target_count; i++) {
        const struct target *target = &all->targets[i];
        char text[STORY_BYTES + 64] = "";
        if (!target->done)
            snprintf(text, sizeof text, "%s%sno answer within %.3g s", target->story, *target->story != 0 ? "; " : "",
                     (double)all->patience / 1e9);
        tb_put_u32(w, target->host);
        tb_put_u8(w, target->reached);
        tb_put_text(w, target->reached ? "" : target->done ? target->story : text);
    }
    tb_control_stream_end(&agent->uplink.stream);
    tb_reach_probe_close(agent);
}

static void finish_target(struct tb_reach_probe *all, struct target *target, bool reached)
{
    struct probe *probe;
    target->done = true;
    target->reached = reached;
    all->open_count--;
    TB_LIST_EACH (probe, &all->probes, struct probe, node)
        if (probe->target == target)
            end_probe(probe);
}

/* Nobody whom we look for answers at this address. */
static void fail_address(struct tb_reach_probe *all, struct target *target, uint32_t address, const char *why)
{
    char text[80];
    size_t used = strlen(target->story);
    if (target->failed & 1u << address)
        return;
    target->failed |= 1u << address;
    tb_address_print(&target->addresses[address], text, sizeof text);
    snprintf(target->story + used, sizeof target->story - used, "%s%s: %s", used > 0 ? "; " : "", text, why);
    if (target->failed == (1u << target->address_count) - 1)
        finish_target(all, target, false);
}

/* TB_AGAIN: the other side has to say more. TB_ERR_PEER: errno says why not; otherwise the story does. */
static int greet(struct probe *probe)
{
    struct tb_agent *agent = probe->all->agent;
    uint8_t bytes[sizeof probe->hello];
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(probe->watch.descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
        errno = error;
        return TB_ERR_PEER;
    }
    struct tb_proc to = {agent->setup.job, TB_PROC_AGENT | probe->target->host};
    int rc = tb_hello_make(&probe->hello, &agent->setup.key, tb_agent_proc(agent), to, (enum tb_stream)TB_STREAM_PROBE);
    if (rc != TB_OK)
        return rc;
    tb_wire_put_hello(bytes, &probe->hello);
    if (send(probe->watch.descriptor, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof bytes)
        return TB_ERR_PEER;
    probe->greeted = true;
    tb_loop_change(&agent->loop, &probe->watch, EPOLLIN);
    return TB_AGAIN;
}

static int hear(struct probe *probe)
{
    while (probe->have < sizeof probe->welcome) {
        ssize_t n = recv(probe->watch.descriptor, (char *)&probe->welcome + probe->have,
                         sizeof probe->welcome - probe->have, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? TB_AGAIN : TB_ERR_PEER;
        if (n == 0)
            return tb_error(TB_ERR_FORBIDDEN, "closed the connection without a word: no agent of this job");
        probe->have += (size_t)n;
    }
    tb_wire_get_welcome(&probe->welcome, &probe->welcome);
    if (tb_welcome_verify(&probe->welcome, &probe->all->agent->setup.key, &probe->hello) != TB_OK)
        return tb_error(TB_ERR_FORBIDDEN, "no agent of this job");
    if (probe->welcome.status != TB_WELCOME_OK)
        return tb_error(TB_ERR_FORBIDDEN, "the agent of another host");
    return TB_OK;
}

static void pump(struct tb_reach_probe *all);

static void probe_ready(struct tb_watch *watch, uint32_t events)
{
    struct probe *probe = TB_CONTAINER(watch, struct probe, watch);
    struct tb_reach_probe *all = probe->all;
    struct target *target = probe->target;
    uint32_t address = probe->address;
    int rc = probe->greeted ? TB_OK : greet(probe);
    if (rc == TB_OK)
        rc = hear(probe);
    if (rc == TB_AGAIN)
        return;
    const char *why = rc == TB_ERR_PEER ? strerror(errno) : tb_error_story();
    end_probe(probe);
    if (rc == TB_OK)
        finish_target(all, target, true);
    else
        fail_address(all, target, address, why);
    pump(all);
}

static void start_probe(struct tb_reach_probe *all, struct target *target, uint32_t address)
{
    struct tb_agent *agent = all->agent;
    struct sockaddr_storage name;
    socklen_t length = tb_address_socket(&target->addresses[address], &name);
    struct probe *probe = calloc(1, sizeof *probe);
    int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe == NULL || fd < 0 || (connect(fd, (struct sockaddr *)&name, length) < 0 && errno != EINPROGRESS) ||
        tb_loop_watch(&agent->loop, &probe->watch, fd, EPOLLOUT, probe_ready) != TB_OK) {
        const char *why = strerror(errno);
        free(probe);
        if (fd >= 0)
            close(fd);
        fail_address(all, target, address, why);
        return;
    }
    probe->all = all;
    probe->target = target;
    probe->address = address;
    tb_list_append(&all->probes, &probe->node);
    all->probe_count++;
}

/* As many as may be; may end the trial. */
static void pump(struct tb_reach_probe *all)
{
    while (all->probe_count < PROBES_MOST && all->next_target < all->target_count) {
        struct target *target = &all->targets[all->next_target];
        uint32_t address = all->next_address++;
        if (target->done || address >= target->address_count) {
            all->next_target++;
            all->next_address = 0;
        } else if (!(target->failed & 1u << address)) {
            start_probe(all, target, address);
        }
    }
    if (all->open_count == 0)
        answer(all);
}

static void wave_due(struct tb_timer *timer)
{
    struct tb_reach_probe *all = TB_CONTAINER(timer, struct tb_reach_probe, wave);
    if (++all->waves < WAVES)
        tb_timer_set(&all->agent->loop, timer, all->patience / (WAVES + 1));
    if (all->next_target == all->target_count)
        all->next_target = all->next_address = 0;
    pump(all);
}

static void all_overdue(struct tb_timer *timer)
{
    answer(TB_CONTAINER(timer, struct tb_reach_probe, overdue));
}

static int take_targets(struct tb_reach_probe *all, struct tb_reader *r)
{
    all->patience = tb_get_u64(r);
    uint32_t count = tb_get_u32(r);
    if (r->error != TB_OK || count > TARGETS_LIMIT)
        return TB_ERR_PROTOCOL;
    all->targets = calloc(count + 1u, sizeof *all->targets);
    if (all->targets == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u hosts", count);
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++) {
        struct target *target = &all->targets[i];
        target->host = tb_get_u32(r);
        uint32_t addresses = tb_get_u32(r);
        if (addresses > TB_HOST_ADDRESS_LIMIT)
            return TB_ERR_PROTOCOL;
        for (uint32_t k = 0; k < addresses && r->error == TB_OK; k++) {
            tb_address_get(r, &target->addresses[k]);
            tb_address_fix_scope(all->agent, &target->addresses[k]);
        }
        target->address_count = addresses;
        target->done = addresses == 0;
        all->open_count += addresses > 0;
        if (target->done)
            snprintf(target->story, sizeof target->story, "it has told no address");
    }
    all->target_count = count;
    return tb_reader_end(r);
}

void tb_reach_probe_begin(struct tb_agent *agent, struct tb_reader *r)
{
    if (agent->phase != TB_AGENT_READY || agent->probe != NULL)
        return;
    struct tb_reach_probe *all = agent->probe = calloc(1, sizeof *all);
    if (all == NULL)
        return; /* the launcher does not wait for ever */
    all->agent = agent;
    tb_list_init(&all->probes);
    tb_timer_init(&all->wave, wave_due);
    tb_timer_init(&all->overdue, all_overdue);
    if (take_targets(all, r) != TB_OK) {
        tb_reach_probe_close(agent);
        return;
    }
    tb_timer_set(&agent->loop, &all->overdue, all->patience);
    tb_timer_set(&agent->loop, &all->wave, all->patience / (WAVES + 1));
    pump(all);
}

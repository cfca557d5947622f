#include "agent/host_network.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- connections that were made ---------------------------------------------------------------------------------- */

static void give(struct tb_host_network *n, const struct tb_connected *connected)
{
    uint32_t host;
    if (tb_proc_is_agent(connected->self)) {
        tb_forwarder_adopt(&n->forwarder, connected);
        return;
    }
    /* Agents look after their connections themselves. */
    if (!tb_proc_is_agent(connected->proc) && tb_member_find_host(n->member, connected->proc, &host) == TB_OK &&
        tb_member_is_wide(n->member, host))
        tb_wan_watch_add(&n->wan_watch, connected->self.index, host, connected->socket);
    n->events.connection(n->events.context, connected->self.index, connected->proc, connected->stream, TB_OK,
                         connected->socket);
}

static void dialer_connected(void *context, const struct tb_connected *connected)
{
    give(context, connected);
}

static void dialer_refused(void *context, struct tb_proc self, struct tb_proc to, enum tb_stream stream,
                           uint32_t stripe, int error)
{
    struct tb_host_network *n = context;
    if (tb_proc_is_agent(self))
        tb_forwarder_refused(&n->forwarder, to, stream, stripe, error);
    else
        n->events.connection(n->events.context, self.index, to, stream, error, -1);
}

static void listener_connected(void *context, const struct tb_connected *connected)
{
    struct tb_host_network *n = context;
    if ((uint32_t)connected->stream == TB_STREAM_CONTROL) {
        n->events.control_stream(n->events.context, connected);
        return;
    }
    tb_dialer_arrived(&n->dialer, connected);
    give(n, connected);
}

static int forwarder_connect(void *context, struct tb_proc to, enum tb_stream stream, uint32_t stripe)
{
    struct tb_host_network *n = context;
    return tb_dialer_connect(&n->dialer, n->member->self, to, stream, stripe);
}

/* ---- from one part to another ------------------------------------------------------------------------------------ */

static bool has_rank(void *context, uint32_t rank)
{
    const struct tb_host_network *n = context;
    return n->events.has_rank(n->events.context, rank);
}

static bool is_gone(void *context, uint32_t rank)
{
    const struct tb_host_network *n = context;
    return n->events.is_gone(n->events.context, rank);
}

static void call(void *context, uint32_t host, struct tb_proc there, struct tb_proc here, uint32_t stream)
{
    const struct tb_host_network *n = context;
    n->events.call(n->events.context, host, there, here, stream);
}

static void probed(void *context, const struct tb_reach_report *reports, uint32_t count)
{
    const struct tb_host_network *n = context;
    n->events.probed(n->events.context, reports, count);
}

/* ---- who is to answer -------------------------------------------------------------------------------------------- */

static void link_used(void *context, uint32_t host)
{
    struct tb_host_network *n = context;
    tb_link_watch_used(&n->link_watch, host);
}

static void link_heard(void *context, uint32_t host)
{
    struct tb_host_network *n = context;
    tb_link_watch_heard(&n->link_watch, host);
}

static void link_lost(void *context, uint32_t host, const char *why)
{
    struct tb_host_network *n = context;
    tb_link_watch_lost(&n->link_watch, host, why);
}

/* A rank wants to be connected, and is not. */
static void dial_lost(void *context, uint32_t host, const char *why)
{
    struct tb_host_network *n = context;
    tb_link_watch_used(&n->link_watch, host);
    tb_link_watch_lost(&n->link_watch, host, why + strspn(why, " "));
}

static void link_small(void *context, uint32_t host)
{
    struct tb_host_network *n = context;
    char text[1024];
    tb_dialer_use_small(&n->dialer, host);
    if (n->member->host > host || n->told_of_size)
        return; /* it says the same to the user; and once is enough */
    n->told_of_size = true;
    snprintf(text, sizeof text,
             "large packets are lost between host %s and host %s, and small ones pass: only small ones are used from "
             "now on, which is slower (is the MTU on the way smaller than that of the hosts?)",
             n->member->name, n->member->book->hosts[host].name);
    n->events.note(n->events.context, text);
}

static void link_pass_on(void *context, uint32_t host, uint32_t passed)
{
    struct tb_host_network *n = context;
    tb_link_watch_pass_on(&n->link_watch, host, passed);
}

static bool link_answers(void *context, uint32_t host, uint64_t *since)
{
    const struct tb_host_network *n = context;
    return tb_link_watch_answers(&n->link_watch, host, since);
}

static int link_ask(void *context, uint32_t host, uint32_t about)
{
    struct tb_host_network *n = context;
    return tb_forwarder_ask(&n->forwarder, host, about);
}

static void link_ask_no_more(void *context, uint32_t host)
{
    struct tb_host_network *n = context;
    tb_forwarder_ask_no_more(&n->forwarder, host);
}

static uint64_t link_progress(void *context, uint32_t host, bool again)
{
    struct tb_host_network *n = context;
    return tb_forwarder_progress(&n->forwarder, host, again);
}

static uint64_t link_stuck_since(void *context, uint32_t host, const char **why)
{
    struct tb_host_network *n = context;
    return tb_forwarder_stuck_since(&n->forwarder, host, why);
}

static void link_listen(void *context)
{
    struct tb_host_network *n = context;
    tb_forwarder_listen(&n->forwarder);
}

static void link_suspect(void *context, uint32_t host, bool silent)
{
    struct tb_host_network *n = context;
    tb_forwarder_suspect(&n->forwarder, host, silent);
}

static void link_report(void *context, uint32_t host, bool silent, uint64_t time, const char *why)
{
    const struct tb_host_network *n = context;
    char text[TB_LINK_WATCH_STORY + 128];
    bool added = silent && tb_dialer_uses_small(&n->dialer, host) && strcmp(why, TB_PACKET_STORY) != 0;
    snprintf(text, sizeof text, "%s%s", why, added ? "; before that " TB_PACKET_STORY : "");
    n->events.link(n->events.context, host, silent ? TB_LINK_SILENT : TB_LINK_ANSWERS, time, text);
}

static void stuck_report(void *context, uint32_t host, bool stuck, uint64_t time, const char *ranks)
{
    const struct tb_host_network *n = context;
    n->events.link(n->events.context, host, stuck ? TB_LINK_STUCK : TB_LINK_PASSES, time, ranks);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

void tb_host_network_open(struct tb_host_network *n, struct tb_member *member,
                          const struct tb_host_network_events *events)
{
    *n = (struct tb_host_network){.member = member, .events = *events};
    tb_dialer_open(&n->dialer, member,
                   &(struct tb_dialer_events){.context = n,
                                              .has_rank = has_rank,
                                              .connected = dialer_connected,
                                              .refused = dialer_refused,
                                              .call = call,
                                              .link_found = link_heard,
                                              .link_lost = dial_lost});
    tb_wan_watch_open(&n->wan_watch, member,
                      &(struct tb_wan_watch_events){.context = n, .is_gone = is_gone, .stalled = link_used});
    tb_stuck_watch_open(&n->stuck_watch, member,
                        &(struct tb_stuck_watch_events){.context = n, .answers = link_answers, .report = stuck_report});
    tb_link_watch_open(&n->link_watch, member,
                       &(struct tb_link_watch_events){.context = n,
                                                      .ask = link_ask,
                                                      .ask_no_more = link_ask_no_more,
                                                      .progress = link_progress,
                                                      .stuck_since = link_stuck_since,
                                                      .listen = link_listen,
                                                      .suspect = link_suspect,
                                                      .report = link_report});
    tb_forwarder_open(&n->forwarder, member,
                      &(struct tb_forwarder_events){.context = n,
                                                    .connect = forwarder_connect,
                                                    .used = link_used,
                                                    .heard = link_heard,
                                                    .lost = link_lost,
                                                    .small = link_small,
                                                    .pass_on = link_pass_on});
    tb_reach_probe_open(&n->reach_probe, member, n, probed);
}

void tb_host_network_close(struct tb_host_network *n)
{
    tb_reach_probe_close(&n->reach_probe);
    tb_dialer_close(&n->dialer);
    tb_stuck_watch_close(&n->stuck_watch);
    tb_link_watch_close(&n->link_watch);
    tb_forwarder_close(&n->forwarder);
    tb_wan_watch_close(&n->wan_watch);
    tb_listener_close(&n->listener);
}

/* Where an inner host listens: at the addresses that its own cluster uses. False: that cannot be told. */
static bool find_own_side(const struct tb_host_network *n, const struct tb_setup *setup, struct tb_address_list *own)
{
    if (tb_address_list_narrow(own, setup->neighbours, setup->neighbour_count, getenv("SSH_CONNECTION")))
        return true;
    char name[256] = "", text[512];
    gethostname(name, sizeof name - 1);
    snprintf(text, sizeof text,
             "host %s does not know which of its addresses its cluster uses, and listens on all of them (--set "
             "interfaces=NAME chooses)",
             name);
    n->events.note(n->events.context, text);
    return false;
}

int tb_host_network_listen(struct tb_host_network *n, const struct tb_setup *setup)
{
    const struct tb_listener_events events = {.context = n, .has_rank = has_rank, .connected = listener_connected};
    struct tb_address_list *own = &n->member->addresses;
    int rc = tb_address_list_own(own, 0);
    if (rc != TB_OK)
        return rc;
    bool chosen = *tb_param.interfaces != 0; /* by somebody who knows */
    if ((setup->flags & TB_SETUP_INNER) && (chosen || find_own_side(n, setup, own)))
        return tb_listener_open(&n->listener, n->member, tb_param.ports, own, &events);
    rc = tb_listener_open(&n->listener, n->member, tb_param.ports, NULL, &events);
    for (uint32_t i = 0; i < own->count; i++)
        own->at[i].port = n->listener.port;
    return rc;
}

void tb_host_network_connect(struct tb_host_network *n, uint32_t rank, struct tb_proc to, enum tb_stream stream)
{
    struct tb_proc self = {n->member->self.job, rank};
    int rc = tb_dialer_connect(&n->dialer, self, to, stream, 0);
    if (rc != TB_OK)
        n->events.connection(n->events.context, rank, to, stream, rc, -1);
}

void tb_host_network_want(struct tb_host_network *n, uint32_t rank, const struct tb_job_waiting *waiting)
{
    tb_link_watch_want(&n->link_watch, rank, waiting->hosts, waiting->count);
    tb_stuck_watch_take(&n->stuck_watch, rank, waiting);
}

void tb_host_network_forget(struct tb_host_network *n, uint32_t rank)
{
    tb_host_network_want(n, rank, &(struct tb_job_waiting){0});
    tb_dialer_forget(&n->dialer, (struct tb_proc){n->member->self.job, rank});
    tb_wan_watch_forget(&n->wan_watch, rank);
}

void tb_host_network_called(struct tb_host_network *n, struct tb_reader *r)
{
    struct tb_proc here, there;
    uint32_t host = tb_get_u32(r);
    here.job = tb_get_u32(r);
    here.index = tb_get_u32(r);
    there.job = tb_get_u32(r);
    there.index = tb_get_u32(r);
    uint32_t stream = tb_get_u32(r);
    if (tb_reader_end(r) == TB_OK && host == n->member->host && n->member->running)
        tb_dialer_called(&n->dialer, here, there, stream);
}

void tb_host_network_reroute(struct tb_host_network *n)
{
    tb_forwarder_reroute(&n->forwarder);
}

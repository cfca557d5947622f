/* What agents tell the launcher. */
#include "launch/state.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANCHORS_MOST 16u

void tb_launch_send_ways(struct tb_launch *launch)
{
    for (uint32_t i = 0; i < launch->host_count && launch->realm != NULL; i++) {
        struct tb_guest *guest = &launch->guests[i];
        struct tb_ways ways;
        if (guest->phase < TB_GUEST_READY || guest->phase >= TB_GUEST_GONE)
            continue;
        int rc = tb_realm_ways(launch->realm, &launch->placement, i, &ways);
        if (rc == TB_OK) {
            rc = tb_ways_encode(&ways, tb_pipe_begin(&guest->pipe, TB_CONTROL_WAYS));
            tb_ways_close(&ways);
        }
        if (rc == TB_OK)
            rc = tb_pipe_end(&guest->pipe);
        if (rc != TB_OK)
            tb_launch_fail(launch, TB_VERDICT_CAUSE, 1, "cannot tell host %s its ways to the others: %s",
                           guest->target.host, tb_error_story());
    }
}

void tb_launch_send_books(struct tb_launch *launch)
{
    tb_launch_send_ways(launch);
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_pipe *pipe = &launch->guests[i].pipe;
        int rc = tb_book_encode(&launch->placement.book, tb_pipe_begin(pipe, TB_CONTROL_BOOK));
        if (rc == TB_OK)
            rc = tb_pipe_end(pipe);
        if (rc != TB_OK)
            tb_launch_fail(launch, TB_VERDICT_CAUSE, 1, "the address book is too long: %s", tb_error_story());
    }
    for (uint32_t i = 0; i < launch->host_count; i++)
        tb_guest_send_anchors(&launch->guests[i]);
}

/* Only those hear it whose streams go through somebody; the others have nobody to go to. */
void tb_guest_send_anchors(struct tb_guest *guest)
{
    const struct tb_launch *launch = guest->launch;
    uint32_t anchors[ANCHORS_MOST];
    if (guest->parent == NULL || guest->phase < TB_GUEST_READY || guest->phase >= TB_GUEST_GONE)
        return;
    uint32_t count = tb_realm_anchors(launch->realm, &launch->placement, guest->host, ANCHORS_MOST, anchors);
    struct tb_writer *w = tb_pipe_begin(&guest->pipe, TB_CONTROL_ANCHORS);
    tb_put_u32(w, count);
    for (uint32_t i = 0; i < count; i++)
        tb_put_u32(w, anchors[i]);
    tb_pipe_end(&guest->pipe);
}

static void take_place(struct tb_reader *r, char *place, size_t size)
{
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (r->error == TB_OK && length > 0 && length < size && *place == 0)
        snprintf(place, size, "%.*s", (int)length, text);
}

/* What the grid file says about the address of a host may be known to nobody there, such as that of a router in front
 * of it. The agents try what they see themselves first. */
static void add_known_address(struct tb_guest *guest, struct tb_host *host)
{
    const struct tb_launch *launch = guest->launch;
    const char *text = launch->realm->grid->hosts[launch->placement.entries[guest->host]].address;
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found = NULL;
    if (text == NULL || launch->options->lab != NULL || host->address_count == 0 ||
        getaddrinfo(text, NULL, &wanted, &found) != 0)
        return;
    for (const struct addrinfo *at = found; at != NULL && host->address_count < TB_HOST_ADDRESS_LIMIT;
         at = at->ai_next) {
        struct tb_address address = {.port = host->addresses[0].port};
        if (at->ai_family == AF_INET) {
            address.family = 4;
            address.prefix = 32;
            memcpy(address.bytes, &((const struct sockaddr_in *)at->ai_addr)->sin_addr, 4);
        } else if (at->ai_family == AF_INET6) {
            address.family = 6;
            address.prefix = 128;
            memcpy(address.bytes, &((const struct sockaddr_in6 *)at->ai_addr)->sin6_addr, 16);
        } else {
            continue;
        }
        bool known = false;
        for (uint32_t i = 0; i < host->address_count; i++)
            known = known || (host->addresses[i].family == address.family &&
                              memcmp(host->addresses[i].bytes, address.bytes, sizeof address.bytes) == 0);
        if (!known)
            host->addresses[host->address_count++] = address;
    }
    freeaddrinfo(found);
}

static void take_ready(struct tb_guest *guest, struct tb_reader *r)
{
    struct tb_launch *launch = guest->launch;
    struct tb_host *host = &launch->placement.book.hosts[guest->host];
    char version[64] = "", own_name[256] = "";
    take_place(r, version, sizeof version); /* the same as ours, or the preamble would have told */
    take_place(r, own_name, sizeof own_name);
    take_place(r, host->place.site, sizeof host->place.site);
    take_place(r, host->place.cluster, sizeof host->place.cluster);
    tb_get_u32(r); /* processors */
    uint32_t count = tb_get_u32(r);
    if (r->error != TB_OK || count > TB_HOST_ADDRESS_LIMIT || guest->phase != TB_GUEST_SPOKEN)
        return;
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++)
        tb_address_get(r, &host->addresses[i]);
    host->address_count = r->error == TB_OK ? count : 0;
    if (launch->realm != NULL)
        add_known_address(guest, host);
    guest->phase = TB_GUEST_READY;
    launch->ready_count++;
    tb_log(TB_LOG_INFO, "launch", "host %s (%s) is ready with %u addresses", host->name, own_name, count);
    tb_guests_start(launch);
    tb_launch_check_start(launch);
}

static void take_idle(struct tb_guest *guest)
{
    struct tb_launch *launch = guest->launch;
    if (guest->idle || guest->phase != TB_GUEST_STARTED)
        return;
    guest->idle = true;
    if (++launch->idle_count == launch->host_count)
        tb_launch_finish(launch);
}

/* An agent cannot connect where it wants to; the one there can. */
static void pass_call(struct tb_launch *launch, struct tb_reader *r)
{
    uint32_t host = tb_get_u32(r);
    if (r->error != TB_OK || host >= launch->host_count)
        return;
    struct tb_guest *guest = &launch->guests[host];
    if (guest->phase < TB_GUEST_READY || guest->phase >= TB_GUEST_GONE)
        return;
    struct tb_writer *w = tb_pipe_begin(&guest->pipe, TB_CONTROL_CALL);
    tb_put_u32(w, host);
    while (r->length - r->at >= 4)
        tb_put_u32(w, tb_get_u32(r));
    tb_pipe_end(&guest->pipe);
}

static void take_started(struct tb_guest *guest, struct tb_reader *r)
{
    struct tb_launch *launch = guest->launch;
    uint32_t count = tb_get_u32(r);
    if (r->error != TB_OK || count != launch->placement.book.hosts[guest->host].rank_count)
        return;
    guest->phase = TB_GUEST_STARTED;
    if (guest->target.local && guest->pids == NULL)
        guest->pids = calloc(count, sizeof *guest->pids);
    for (uint32_t i = 0; guest->pids != NULL && i < count; i++)
        guest->pids[i] = tb_get_u32(r);
    if (guest == tb_launch_guest_of(launch, 0))
        tb_input_open(launch);
}

static void take_output(struct tb_guest *guest, struct tb_reader *r)
{
    struct tb_launch *launch = guest->launch;
    uint32_t rank = tb_get_u32(r);
    uint8_t stream = tb_get_u8(r);
    size_t length = 0;
    const char *bytes = tb_get_bytes(r, &length);
    if (r->error == TB_OK && rank < launch->placement.book.ranks && (stream == 1 || stream == 2))
        tb_screen_add(&launch->screens[stream - 1], rank, guest->host, bytes, length);
}

static void take_ended(struct tb_guest *guest, struct tb_reader *r)
{
    struct tb_launch *launch = guest->launch;
    struct tb_ended ended;
    if (tb_ended_get(r, &ended) != TB_OK || ended.rank >= launch->placement.book.ranks ||
        (launch->ranks[ended.rank] & TB_RANK_ENDED))
        return;
    launch->ranks[ended.rank] |= TB_RANK_ENDED;
    /* A group that is gone may come again under its number as somebody else's. */
    uint32_t local = tb_book_local_index(&launch->placement.book, ended.rank);
    if (guest->pids != NULL && guest == tb_launch_guest_of(launch, ended.rank) && guest->pids[local] > 1 &&
        kill(-(pid_t)guest->pids[local], 0) < 0 && errno == ESRCH)
        guest->pids[local] = 0;
    tb_ending_rank(launch, &ended);
}

static void take_abort(struct tb_guest *guest, struct tb_reader *r)
{
    uint32_t rank = tb_get_u32(r), pid = tb_get_u32(r), code = tb_get_u32(r);
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (r->error == TB_OK && rank < guest->launch->placement.book.ranks)
        tb_ending_abort(guest->launch, rank, pid, code, text, (int)length);
}

static void take_text(struct tb_guest *guest, struct tb_reader *r, bool trouble)
{
    uint32_t code = trouble ? tb_get_u32(r) : 0;
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (r->error != TB_OK)
        return;
    if (trouble && guest->phase < TB_GUEST_READY) { /* it does not know its name in the job yet */
        char story[2600];
        snprintf(story, sizeof story, "host %s: %.*s", guest->target.host, (int)length, text);
        tb_launch_miss(guest, story);
    } else if (trouble) {
        tb_launch_fail(guest->launch, TB_VERDICT_CAUSE, (int)(code & 255), "%.*s", (int)length, text);
    } else {
        tb_launch_say(guest->launch, "%.*s", (int)length, text);
    }
}

void tb_guest_take_frame(struct tb_guest *guest, struct tb_frame *frame)
{
    struct tb_launch *launch = guest->launch;
    struct tb_reader *r = &frame->fields;
    switch (frame->kind) {
    case TB_CONTROL_READY:
        take_ready(guest, r);
        break;
    case TB_CONTROL_STARTED:
        take_started(guest, r);
        break;
    case TB_CONTROL_OUTPUT:
        take_output(guest, r);
        break;
    case TB_CONTROL_ENDED:
        take_ended(guest, r);
        break;
    case TB_CONTROL_ABORTED:
        take_abort(guest, r);
        break;
    case TB_CONTROL_TROUBLE:
        take_text(guest, r, true);
        break;
    case TB_CONTROL_NOTE:
        take_text(guest, r, false);
        break;
    case TB_CONTROL_WINDOW:
        tb_input_allow(launch, tb_get_u32(r));
        break;
    case TB_CONTROL_GONE:
        tb_guest_give_up(guest);
        break;
    case TB_CONTROL_IDLE:
        take_idle(guest);
        break;
    case TB_CONTROL_CALL:
        pass_call(launch, r);
        break;
    case TB_CONTROL_HEARD:
        tb_pipe_heard(&guest->pipe, tb_get_u32(r));
        break;
    case TB_CONTROL_TRIED:
        tb_question_take(guest, r);
        break;
    case TB_CONTROL_ATTACH:
        tb_tunnel_take_attach(guest, r);
        break;
    case TB_CONTROL_TUNNEL:
        tb_tunnel_take(guest, r);
        break;
    case TB_CONTROL_TUNNEL_ERRORS:
        tb_tunnel_take_errors(guest, r);
        break;
    case TB_CONTROL_TUNNEL_END:
        tb_tunnel_take_end(guest, r);
        break;
    default:
        break;
    }
}

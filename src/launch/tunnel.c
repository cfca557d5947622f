/* Hosts that only another agent reaches: their standard streams travel in the control stream of that agent's host, at
 * any depth. To everything else here they look like the others. */
#include "launch/state.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES 65536u
#define AHEAD_LIMIT (1u << 20) /* bytes in the pipe of a parent; beyond it what is behind waits in its own pipe */

void tb_tunnel_start(struct tb_guest *guest)
{
    const struct tb_shell_target *target = &guest->target;
    struct tb_writer *w = tb_pipe_begin(&guest->parent->pipe, TB_CONTROL_SHELL);
    tb_put_u32(w, guest->host);
    tb_put_text(w, target->host);
    tb_put_text(w, target->user != NULL ? target->user : "");
    tb_put_u32(w, target->port);
    tb_put_text(w, target->command != NULL ? target->command : "");
    tb_put_text(w, target->program);
    tb_pipe_end(&guest->parent->pipe);
}

void tb_tunnel_close(struct tb_guest *guest, bool now)
{
    struct tb_guest *parent = guest->parent;
    if (parent->phase < TB_GUEST_SPOKEN || parent->phase >= TB_GUEST_GONE)
        return;
    struct tb_writer *w = tb_pipe_begin(&parent->pipe, TB_CONTROL_TUNNEL_END);
    tb_put_u32(w, guest->host);
    tb_put_u8(w, now);
    tb_put_u32(w, 0);
    tb_pipe_end(&parent->pipe);
}

bool tb_tunnel_flush(struct tb_guest *guest)
{
    struct tb_pipe *to = &guest->parent->pipe;
    bool moved = false;
    if (guest->detached || guest->resuming)
        return false;
    while (tb_pipe_queued(&guest->pipe) > 0 && tb_pipe_queued(to) < AHEAD_LIMIT) {
        size_t length;
        const void *bytes = tb_pipe_take(&guest->pipe, PIECE_BYTES, &length);
        struct tb_writer *w = tb_pipe_begin(to, TB_CONTROL_TUNNEL);
        tb_put_u32(w, guest->host);
        tb_put_bytes(w, bytes, length);
        tb_pipe_end(to);
        moved = true;
    }
    return moved;
}

/* Which guest a frame of its parent is about; NULL: it is over with it, or there is none. */
static struct tb_guest *find(struct tb_guest *parent, struct tb_reader *r)
{
    struct tb_launch *launch = parent->launch;
    uint32_t host = tb_get_u32(r);
    if (r->error != TB_OK || host >= launch->host_count)
        return NULL;
    struct tb_guest *guest = &launch->guests[host];
    return guest->parent == parent && guest->phase > TB_GUEST_WAITING && guest->phase < TB_GUEST_GONE ? guest : NULL;
}

void tb_tunnel_take(struct tb_guest *parent, struct tb_reader *r)
{
    struct tb_guest *guest = find(parent, r);
    size_t length = 0;
    const void *bytes = tb_get_bytes(r, &length);
    if (guest == NULL || r->error != TB_OK || guest->detached)
        return;
    const uint8_t *at = bytes;
    int rc = TB_OK;
    for (; guest->resuming && length > 0; at++, length--) {
        guest->next |= (uint32_t)*at << 8 * guest->next_have++;
        if (guest->next_have == 4) {
            guest->resuming = false;
            rc = tb_pipe_resume(&guest->pipe, -1, -1, guest->next);
        }
    }
    if (rc == TB_OK)
        rc = tb_pipe_feed(&guest->pipe, at, length);
    tb_guest_digest(guest, rc);
}

static bool is_behind(const struct tb_guest *guest, const struct tb_guest *parent)
{
    while (guest != NULL && guest != parent)
        guest = guest->parent;
    return guest != NULL;
}

/* An agent comes by another one, perhaps before we have noticed why. */
void tb_tunnel_take_attach(struct tb_guest *parent, struct tb_reader *r)
{
    struct tb_launch *launch = parent->launch;
    uint32_t host = tb_get_u32(r), coming = tb_get_u32(r);
    if (r->error != TB_OK || host >= launch->host_count)
        return;
    struct tb_guest *guest = &launch->guests[host];
    uint32_t next = guest->pipe.sequence_in;
    uint8_t bytes[4] = {(uint8_t)next, (uint8_t)(next >> 8), (uint8_t)(next >> 16), (uint8_t)(next >> 24)};
    bool good =
        !launch->ending && guest->phase == TB_GUEST_STARTED && guest->parent != NULL && !is_behind(parent, guest);
    struct tb_writer *w = tb_pipe_begin(&parent->pipe, good ? TB_CONTROL_ATTACH : TB_CONTROL_TUNNEL_END);
    tb_put_u32(w, host);
    if (good) {
        tb_put_u32(w, coming);
        tb_pipe_end(&parent->pipe);
        w = tb_pipe_begin(&parent->pipe, TB_CONTROL_TUNNEL);
        tb_put_u32(w, host);
        tb_put_bytes(w, bytes, sizeof bytes);
    } else {
        tb_put_u8(w, 1);
        tb_put_u32(w, 0);
    }
    tb_pipe_end(&parent->pipe);
    if (!good)
        return;
    tb_timer_clear(&guest->patience);
    guest->parent = parent;
    guest->detached = false;
    guest->resuming = guest->returning = true;
    guest->next = guest->next_have = 0;
    guest->heard = tb_clock_now_real();
    launch->realm->parents[host] = parent->host;
    tb_guests_sort(launch);
    tb_guest_send_anchors(guest);
}

void tb_tunnel_take_errors(struct tb_guest *parent, struct tb_reader *r)
{
    struct tb_guest *guest = find(parent, r);
    size_t length = 0;
    const char *bytes = tb_get_bytes(r, &length);
    if (guest != NULL && r->error == TB_OK)
        tb_guest_add_errors(guest, bytes, length);
}

void tb_tunnel_take_end(struct tb_guest *parent, struct tb_reader *r)
{
    struct tb_guest *guest = find(parent, r);
    bool exited = tb_get_u8(r) != 0;
    int status = (int)tb_get_u32(r);
    if (guest == NULL || r->error != TB_OK)
        return;
    if (!guest->returning) {
        tb_guest_ended(guest, exited, status);
        return;
    }
    /* It got no answer in time, and comes again. */
    guest->detached = true;
    guest->resuming = guest->returning = false;
    tb_timer_set(&guest->launch->loop, &guest->patience, tb_param.link_patience);
}

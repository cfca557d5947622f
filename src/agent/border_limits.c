#include "agent/border_limits.h"

#include "job/job.h"

#define LOOK_BYTES (4u << 20) /* of frames: more than that may not come before all are weighed */
#define AGAIN_NS   2000000u

/* ---- frames that nobody takes, and words that nobody reads ------------------------------------------------------- */

static void weigh(void *by, uint64_t bytes)
{
    ((struct tb_border_link *)by)->kept += bytes;
}

static void look(struct tb_border_limits *l)
{
    struct tb_border_link *link;
    bool held = false, unread = l->unread(l->context) > TB_BORDER_UNREAD / 2;
    l->came = 0;
    TB_LIST_EACH (link, l->links, struct tb_border_link, node)
        link->kept = 0;
    tb_border_ranks_weigh(l->ranks, weigh);
    TB_LIST_EACH (link, l->links, struct tb_border_link, node) {
        uint64_t most = link->held & TB_BORDER_HELD_FRAMES ? TB_BORDER_KEPT / 2 : TB_BORDER_KEPT;
        tb_border_link_hold(link, TB_BORDER_HELD_FRAMES, link->kept > most);
        if (!unread)
            tb_border_link_hold(link, TB_BORDER_HELD_WORDS, false);
        held = held || link->held != 0;
    }
    if (held)
        tb_timer_set(l->loop, &l->again, AGAIN_NS);
}

static void again(struct tb_timer *timer)
{
    look(TB_CONTAINER(timer, struct tb_border_limits, again));
}

void tb_border_limits_frame(struct tb_border_limits *l, size_t length)
{
    l->came += length + TB_RELAY_FRAME_COST;
    if (l->came > LOOK_BYTES)
        look(l);
}

void tb_border_limits_told(struct tb_border_limits *l, struct tb_border_link *link)
{
    if (l->unread(l->context) <= TB_BORDER_UNREAD)
        return;
    tb_border_link_hold(link, TB_BORDER_HELD_WORDS, true);
    if (!tb_timer_is_set(&l->again))
        tb_timer_set(l->loop, &l->again, AGAIN_NS);
}

/* ---- those who say nothing --------------------------------------------------------------------------------------- */

struct tb_border_link *tb_border_limits_quiet(const struct tb_border_limits *l)
{
    struct tb_border_link *link, *oldest = NULL, *largest = NULL;
    uint64_t bytes = 0;
    uint32_t count = 0;
    TB_LIST_EACH (link, l->links, struct tb_border_link, node) {
        if (!(link->number & TB_BORDER_CAME_HERE) || link->spoken || link->why[0] != 0)
            continue;
        oldest = oldest == NULL ? link : oldest;
        largest = largest == NULL || link->stream.received_room > largest->stream.received_room ? link : largest;
        bytes += link->stream.received_room;
        count++;
    }
    return bytes > TB_BORDER_QUIET_BYTES ? largest : count > TB_BORDER_QUIET ? oldest : NULL;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

void tb_border_limits_open(struct tb_border_limits *l, struct tb_loop *loop, struct tb_list *links,
                           struct tb_border_ranks *ranks, size_t (*unread)(void *context), void *context)
{
    *l = (struct tb_border_limits){.loop = loop, .links = links, .ranks = ranks, .unread = unread, .context = context};
    tb_timer_init(&l->again, again);
}

void tb_border_limits_close(struct tb_border_limits *l)
{
    tb_timer_clear(&l->again);
}

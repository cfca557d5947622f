/* Pace: how much of a long message may be out, that is sent and not reported yet. Loss and delay decide, there is no
 * rate. It begins with a window that doubles each round, until something is lost or answers take longer because the
 * window itself waits in some queue; from then on it grows by one datagram a round. Before anything was lost for want
 * of room it stops growing when much of it is queued; after that it does not, since somebody else may fill the queue,
 * and whoever stands back would get nothing.
 *
 * A loss counts as want of room if answers take long as well, and either longer than the window itself explains, so
 * that others fill the queue or some port is slow, or several members have lost the same: what overflows in front of
 * one of several like ports does so in front of all. It also does if one member loses much of what is sent. Then the
 * window shrinks to half, once a round. Other losses say nothing about room: on a wire that loses one datagram in a
 * hundred, with as many members as one likes, the window stays as it is. If members go on losing much though the
 * window is as small as it gets, it was not for want of room either, and how much they lose does not count any more.
 * How long answers take where nothing is queued shows at the beginning: a mark stands near it for that. */
#ifndef TB_LINK_MULTICAST_PACE_H
#define TB_LINK_MULTICAST_PACE_H

#include "base/base.h"

struct tb_multicast_pace {
    uint32_t window; /* in parts of a datagram */
    uint32_t most;
    uint64_t each; /* ns that a datagram takes the port of this host; 0: not known */
    bool doubling, crowded, immune;
    uint32_t loss;                       /* 1024ths that one member loses */
    uint32_t least_for;                  /* datagrams that were reported while the window was as small as it gets */
    uint64_t quickest, usual, deviation; /* ns that answers take */
    uint64_t round;                      /* ends when this datagram is reported */
};

/* What a report tells of the datagrams before its mark. */
struct tb_multicast_pace_report {
    uint64_t took;    /* since the mark was sent; 0: not known */
    uint32_t covered; /* datagrams that were not reported before, the mark among them */
    uint32_t lost;    /* fragments that somebody misses, */
    uint32_t several; /* and how many of them more than one does */
    uint32_t worst;   /* 1024ths that the member loses of late that loses most */
    uint64_t mark;    /* which datagram it was, counted from 1, */
    uint64_t sent;    /* and how many have been sent by now */
};

void tb_multicast_pace_open(struct tb_multicast_pace *p, uint32_t first, uint32_t most, uint64_t each);
void tb_multicast_pace_report(struct tb_multicast_pace *p, const struct tb_multicast_pace_report *report);
uint32_t tb_multicast_pace_window(const struct tb_multicast_pace *p);
/* How many datagrams there are from one mark to the next. */
uint32_t tb_multicast_pace_mark(const struct tb_multicast_pace *p);
/* How long to wait for an answer. */
uint64_t tb_multicast_pace_patience(const struct tb_multicast_pace *p);

#endif

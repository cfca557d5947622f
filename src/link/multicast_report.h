/* A report: how far a member of a long message and all below it in the tree are, and what they miss. Reports of
 * children are merged with the parent's own, so that the root gets one, whose size is bounded. */
#ifndef TB_LINK_MULTICAST_REPORT_H
#define TB_LINK_MULTICAST_REPORT_H

#include "link/multicast.h"

#define TB_MULTICAST_MISSING 128u       /* fragments in a report, at most */
#define TB_MULTICAST_SEVERAL UINT32_MAX /* more than one process misses it */
#define TB_MULTICAST_PLACED  8u         /* processes of which a report says where they are, at most */

struct tb_multicast_missing {
    uint32_t fragment;
    uint32_t who; /* the process that misses it, or SEVERAL */
};

/* Where datagrams reach one that misses something. */
struct tb_multicast_placed {
    uint32_t process;
    struct tb_multicast_address address;
};

struct tb_multicast_report {
    bool complete;      /* nothing more is needed here; then the rest means nothing */
    uint32_t top, poll; /* everything sent before these marks is judged: up to that fragment, up to that poll */
    uint32_t worst;     /* 1024ths that a member loses of late, of the one that loses most */
    uint32_t count;
    struct tb_multicast_missing missing[TB_MULTICAST_MISSING]; /* ascending */
    uint32_t placed_count;
    struct tb_multicast_placed placed[TB_MULTICAST_PLACED]; /* of those who alone miss something, as far as they fit */
};

/* What one process misses of the fragments from `from` up to `top`. If that is more than fits, `top` becomes less. */
void tb_multicast_report_make(struct tb_multicast_report *r, const struct tb_multicast_holes *holes, uint32_t from,
                              uint32_t top, uint32_t poll, uint32_t who);
/* Of one that was made: that one is there, if it misses something. */
void tb_multicast_report_place(struct tb_multicast_report *r, const struct tb_multicast_address *address);
/* Takes another member's in. If more is missing than fits, `top` becomes less. */
void tb_multicast_report_merge(struct tb_multicast_report *into, const struct tb_multicast_report *from);

#endif

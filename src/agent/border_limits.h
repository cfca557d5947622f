/* What other jobs may occupy in an agent, by the links of its border, and who gives way when that is too much. Nobody
 * but the job that is meant is held up: of one whose frames our own processes do not take, or whose launcher says more
 * than ours reads, nothing more is read until that is less; of those who have come and say nothing the oldest goes.
 * Pure logic but for one timer, which looks again while somebody is held up. The border owns it; one thread. */
#ifndef TB_AGENT_BORDER_LIMITS_H
#define TB_AGENT_BORDER_LIMITS_H

#include "agent/border_link.h"
#include "agent/border_ranks.h"

#define TB_BORDER_QUIET       256u        /* links by which somebody has come who has said nothing yet; */
#define TB_BORDER_QUIET_BYTES (64u << 20) /* and what has come of their first words, of all together */
#define TB_BORDER_KEPT        (64u << 20) /* bytes of frames that came by a link and are kept in this agent */
#define TB_BORDER_UNREAD      (1u << 20)  /* bytes that wait for our launcher: no more words are taken by a link */

struct tb_border_limits {
    struct tb_loop *loop;
    struct tb_list *links; /* the border's */
    struct tb_border_ranks *ranks;
    void *context;
    size_t (*unread)(void *context); /* what waits for our launcher */
    struct tb_timer again;
    uint64_t came; /* bytes of frames since the last look */
};

void tb_border_limits_open(struct tb_border_limits *limits, struct tb_loop *loop, struct tb_list *links,
                           struct tb_border_ranks *ranks, size_t (*unread)(void *context), void *context);
void tb_border_limits_close(struct tb_border_limits *limits);
void tb_border_limits_frame(struct tb_border_limits *limits, size_t length); /* so much has come by a link */
void tb_border_limits_told(struct tb_border_limits *limits, struct tb_border_link *link); /* and words, by this one */
/* One that is to go, since others have come after it; NULL: none. */
struct tb_border_link *tb_border_limits_quiet(const struct tb_border_limits *limits);

#endif

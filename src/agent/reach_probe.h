/* Finding out whom this host can reach, when the launcher asks: every address of every host that it names is connected
 * to, side by side, and whoever there proves to be the agent of that host has been reached. A connection alone would
 * not do, since a router may take it in somebody else's place. Nothing is kept of it. The agent owns it; one thread. */
#ifndef TB_AGENT_REACH_PROBE_H
#define TB_AGENT_REACH_PROBE_H

#include "agent/member.h"

#define TB_REACH_STORY_BYTES 192

struct tb_reach_report {
    uint32_t host;
    bool reached;
    char story[TB_REACH_STORY_BYTES]; /* why not */
};

struct tb_reach_target;

struct tb_reach_probe {
    const struct tb_member *member;
    void *context;
    void (*answered)(void *context, const struct tb_reach_report *reports, uint32_t count);
    uint64_t patience;
    uint32_t target_count, open_count;         /* open: not done */
    struct tb_reach_target *targets;           /* NULL: nobody has asked, or it is over */
    uint32_t waves, next_target, next_address; /* where the present wave has come to */
    struct tb_list probes;
    uint32_t probe_count;
    struct tb_timer wave, overdue;
};

void tb_reach_probe_open(struct tb_reach_probe *probe, const struct tb_member *member, void *context,
                         void (*answered)(void *context, const struct tb_reach_report *reports, uint32_t count));
/* Takes what TB_CONTROL_PROBE brings and begins; only one at a time. `answered` is called once, perhaps from inside,
 * unless there was nonsense in it. */
void tb_reach_probe_begin(struct tb_reach_probe *probe, struct tb_reader *r);
void tb_reach_probe_close(struct tb_reach_probe *probe); /* nobody waits for its answer */

#endif

#include "engine/crowd.h"

#define QUICK_FIRST 300 /* ns: a system call and two looks at the clock... */
#define QUICK_LEAST 150
#define QUICK_MOST  600
#define SWITCHES    400 /* ns: ...and two changes of the process, which never take less */
#define ACCEPTED    8   /* what an accepted yield adds: two of them soon after each other are no accident */

void tb_crowd_init(struct tb_crowd *c)
{
    *c = (struct tb_crowd){.quick = QUICK_FIRST};
}

bool tb_crowd_learn(struct tb_crowd *c, uint64_t took)
{
    bool accepted = took > 2 * (uint64_t)c->quick + SWITCHES;
    c->took = took;
    if (took < c->quick)
        c->quick = took > QUICK_LEAST ? (uint32_t)took : QUICK_LEAST;
    else if (c->quick < QUICK_MOST)
        c->quick += c->quick / 256;
    if (accepted)
        c->sure = c->sure + ACCEPTED < TB_CROWD_FULL ? (uint8_t)(c->sure + ACCEPTED) : TB_CROWD_FULL;
    else if (c->sure > 0)
        c->sure--;
    if (c->sure == TB_CROWD_FULL)
        c->here = true;
    else if (c->sure == 0)
        c->here = false;
    return accepted;
}

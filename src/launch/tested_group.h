/* One multicast group of a job in its tests: who has opened it, who has heard whom, and what follows from that. No
 * input or output, no time. Belongs to struct tb_group_tests; its one thread. */
#ifndef TB_LAUNCH_TESTED_GROUP_H
#define TB_LAUNCH_TESTED_GROUP_H

#include "launch/group_choice.h"

struct tb_tested_host {
    bool open;               /* it has opened the group */
    bool gone;               /* its agent has ended: nobody needs to hear it, or be heard there */
    bool reported;           /* it has told what it heard in this test */
    uint64_t heard, longest; /* a bit for each prober: something of it has come, and its longest datagram has */
};

enum tb_group_phase { TB_GROUP_OPENING, TB_GROUP_TESTING, TB_GROUP_JUDGED };

struct tb_tested_group {
    const struct tb_group_choice *choice;
    struct tb_tested_host *hosts; /* as those of the choice */
    struct tb_multicast_probers probers;
    uint64_t probing;                /* those of them whose hosts are not gone */
    uint32_t living, open, reported; /* hosts that are not gone; of these, who has opened it, and who has reported */
    struct tb_address address;
    enum tb_group_phase phase;
    uint32_t attempt; /* counts the groups that were tried, from 1 */
    uint32_t moves;   /* of these since the last verdict, because somebody else used the one before */
    uint32_t test;    /* number of the present or last test */
    uint32_t shorter; /* tests with shorter datagrams since the group was opened */
    uint32_t piece;   /* payload bytes of the longest datagrams of the test */
    uint32_t buffer;  /* bytes that the kernel of every host holds for a socket; 0: not known */
    uint64_t due;     /* when something is to be done about it; TB_NEVER: nothing */
    bool works, has_worked, has_failed;
    uint64_t judged;              /* when it was last */
    bool wanted;                  /* it is to be tested again at `due`, */
    bool taken;                   /* and in another group */
    uint64_t pause;               /* ns before the next test */
    char why[TB_GROUP_WHY_BYTES]; /* it does not work */
};

void tb_tested_group_open(struct tb_tested_group *group, const struct tb_group_choice *choice,
                          struct tb_tested_host *hosts);
void tb_tested_group_reopen(struct tb_tested_group *group); /* nobody has opened it yet */
void tb_tested_group_retest(struct tb_tested_group *group); /* nobody has reported yet */
/* A host has opened it, and takes so much. */
void tb_tested_group_take_open(struct tb_tested_group *group, uint32_t index, const struct tb_multicast_fit *fit);
void tb_tested_group_take_heard(struct tb_tested_group *group, uint32_t index, uint64_t heard, uint64_t longest);
void tb_tested_group_lose(struct tb_tested_group *group, uint32_t index);

/* When all have reported: every living host has heard every living prober; */
bool tb_tested_group_hears_all(const struct tb_tested_group *group);
bool tb_tested_group_hears_longest(const struct tb_tested_group *group); /* the longest datagrams of them, too. */
/* Which living probers a host has not heard. */
uint64_t tb_tested_group_misses(const struct tb_tested_group *group, uint32_t index, bool longest);
/* The next smaller usual size of datagrams; 0: there is none. */
uint32_t tb_tested_group_shorter(const struct tb_tested_group *group);

#endif

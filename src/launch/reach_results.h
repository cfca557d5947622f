/* What was found out by trying, where a grid file only supposes that one host can connect to another: a table of hosts
 * by hosts. Belongs to the survey that fills it; one thread. */
#ifndef TB_LAUNCH_REACH_RESULTS_H
#define TB_LAUNCH_REACH_RESULTS_H

#include "base/base.h"

#define TB_REACH_RESULTS_HOSTS 64u /* so many try all others, so that hosts of one class may turn out to differ */

enum tb_reach_answer {
    TB_REACH_SAID, /* the file says it, so nobody tries */
    TB_REACH_NO,
    TB_REACH_YES
};

struct tb_reach_results {
    bool all; /* all hosts try about which the file is silent; else a few for each class */
    uint32_t count;
    uint32_t *hosts;  /* of the address book, ascending */
    uint8_t *results; /* [from * count + to], enum tb_reach_answer */
    char **stories;   /* likewise: why not; NULL: not known */
    uint32_t story_count;
};

/* The row and column of a host of the address book. False: it has none. */
bool tb_reach_results_find(const struct tb_reach_results *results, uint32_t host, uint32_t *index);
void tb_reach_results_close(struct tb_reach_results *results);

#endif

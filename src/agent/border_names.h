/* Who is who at the border to another job: which indices its processes have here, and which of ours it may speak with.
 * As the launcher has told it (job/border.h); nothing else passes. Owned by a link of the border; one thread. */
#ifndef TB_AGENT_BORDER_NAMES_H
#define TB_AGENT_BORDER_NAMES_H

#include "job/job.h"

struct tb_border_range {
    uint32_t first, count; /* indices here */
    uint32_t home;         /* of theirs: that of the first one there */
};

struct tb_border_names {
    uint32_t job;                           /* the other one; 0: nothing was told yet */
    uint32_t their_count, own_count;        /* of ranges: */
    struct tb_border_range *theirs;         /* by index here, */
    struct tb_border_range *theirs_by_home; /* the same by index there, */
    struct tb_border_range *own;            /* and ours */
};

/* The rest of TB_BORDER_NAMES, with the other job first. An error: it is as it was. */
int tb_border_names_take(struct tb_border_names *names, struct tb_reader *r);
void tb_border_names_close(struct tb_border_names *names);
/* The index here of one of theirs, or there of one that we have an index for; false: there is none. */
bool tb_border_names_here(const struct tb_border_names *names, uint32_t home, uint32_t *index);
bool tb_border_names_there(const struct tb_border_names *names, uint32_t index, uint32_t *home);
bool tb_border_names_shows(const struct tb_border_names *names, uint32_t index); /* one of ours */

#endif

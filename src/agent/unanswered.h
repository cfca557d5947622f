/* Addresses at which nobody answers, and why not, as text: as many as there is room for, and how many more. A value;
 * all zero is none. */
#ifndef TB_AGENT_UNANSWERED_H
#define TB_AGENT_UNANSWERED_H

#include "job/job.h"

struct tb_unanswered {
    uint32_t count, more; /* in the text, and beside it */
    char text[512];
};

void tb_unanswered_add(struct tb_unanswered *unanswered, const struct tb_address *address, int error); /* an errno */
/* "nobody answers at ADDRESS (WHY), ADDRESS (WHY) and N more". */
void tb_unanswered_print(const struct tb_unanswered *unanswered, char *text, size_t size);

#endif

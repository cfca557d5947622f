/* An introduction: those who meet learn who the others are. The processes of the other job get indices of this one, all
 * our agents note them, and all borders with that job learn who may speak with whom, since frames may pass any of them;
 * then the two sides tell each other that it is so (foreign_jobs.c). Of a link, which has both parties; the launcher's
 * one thread. */
#ifndef TB_LAUNCH_INTRODUCTION_H
#define TB_LAUNCH_INTRODUCTION_H

#include "launch/foreign_link.h"

/* All of a party of ours, a struct tb_meeting_party that may stand anywhere in a frame, are processes of this job. */
int tb_introduction_check_own(const struct tb_address_book *book, const void *party);
/* Who the others are is known; `job` is theirs, or NULL: no memory. When all agents know, who accepts tells the other
 * launcher, and who has connected is at the end. An error: nothing came of it, and a job without processes is freed. */
int tb_introduction_begin(struct tb_foreign_link *link, struct tb_foreign_job *job);
void tb_introduction_told(struct tb_foreign_link *link, uint32_t host);     /* its agent knows, or is gone */
void tb_introduction_named(struct tb_foreign_link *link, uint32_t telling); /* its border has those names */
/* Whether nobody misses a link that is lost: those who were to meet have not, and all that were met before, with the
 * job of the link, are reached by others. */
bool tb_introduction_is_spare(const struct tb_foreign_link *link);
void tb_introduction_undo(struct tb_foreign_link *link); /* of such a one: nobody has met by it */
void tb_introduction_end(struct tb_foreign_link *link);  /* the other side knows, too: the rank is told */

#endif

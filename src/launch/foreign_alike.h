/* What must be the same in two jobs that meet, since their ranks choose algorithms without a word to each other, and
 * read each other's numbers: version, machine, parameters. What a launcher says of its own to the other one, and what
 * that says to it. Constant; the launcher's one thread. */
#ifndef TB_LAUNCH_FOREIGN_ALIKE_H
#define TB_LAUNCH_FOREIGN_ALIKE_H

#include "job/job.h"

void tb_foreign_alike_put(struct tb_writer *w, const struct tb_address_book *book);
/* The number of the other job. TB_ERR_UNSUPPORTED: the two cannot meet, and the story says why. */
int tb_foreign_alike_get(struct tb_reader *r, const struct tb_address_book *book, uint32_t *job);
/* Of that alone: contexts which a job of so many processes makes up are none that this one does. */
int tb_foreign_alike_far(const struct tb_address_book *book, uint32_t job, uint32_t processes);
/* Messages between jobs pass their agents. TB_ERR_CLOSED: those of ours may not, by its parameters. */
int tb_foreign_alike_relays(void);

#endif

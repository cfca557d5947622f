/* An inquiry: a question of this process to the registry of the job, and the answer. The launcher has the registry, and
 * is asked as for anything else (wish.h); a process that runs alone has one of its own. Calls of the program wait in
 * the engine, which makes progress meanwhile; how long they may wait is part of the question. Any thread. */
#ifndef TB_MPI_INQUIRY_H
#define TB_MPI_INQUIRY_H

#include "mpi/self.h"

struct tb_own_registry; /* inquiry.c */

/* Asks and waits for the answer, in this call of the program; the question gets its number here. An error: there is
 * none, and the story is told. In any case tb_inquiry_close comes afterwards. */
int tb_inquiry_make(const char *call, struct tb_registry_question *question, struct tb_registry_answer *answer);
void tb_inquiry_close(struct tb_registry_answer *answer);
/* This process ends its part: it leaves all groups, and what it has published is withdrawn. */
void tb_inquiry_end(void);

#endif

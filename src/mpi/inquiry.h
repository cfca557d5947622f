/* An inquiry: a question of this process to the registry of the job, and the answer. The launcher has the registry, and
 * is asked by way of the agent; a process that runs alone has one of its own. Calls of the program wait in the engine,
 * which makes progress meanwhile; how long they may wait is part of the question. Any thread. */
#ifndef TB_MPI_INQUIRY_H
#define TB_MPI_INQUIRY_H

#include "mpi/self.h"

struct tb_inquiries; /* inquiry.c: all of this process */

struct tb_inquiry {
    struct tb_list node;
    bool done;                        /* read and written atomically: the rest is valid then */
    int error;                        /* TB_OK, or what has kept the answer away; its story is told */
    struct tb_registry_answer answer; /* `members` are all of them, and those of the inquiry */
    uint32_t have;                    /* members that have come so far */
};

/* Asks and waits for the answer, in this call of the program; the question gets its number here. An error: there is
 * none, and the story is told. In any case tb_inquiry_close comes afterwards. */
int tb_inquiry_make(struct tb_inquiry *inquiry, struct tb_registry_question *question, const char *call);
void tb_inquiry_close(struct tb_inquiry *inquiry);
/* A part of an answer has come from the agent. With the engine locked. */
void tb_inquiry_answered(const struct tb_registry_answer *part);
/* This process ends its part: it leaves all groups, and what it has published is withdrawn. */
void tb_inquiries_end(void);

#endif

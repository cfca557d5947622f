/* A wish: something that this process asks the launcher for, through its agent, and waits for: processes, or what there
 * is at a port. The answer comes while the engine makes progress. Any thread. */
#ifndef TB_MPI_WISH_H
#define TB_MPI_WISH_H

#include "mpi/self.h"

struct tb_wish {
    struct tb_list node;
    uint32_t number;
    bool answered;
    struct tb_job_answer answer;
};

/* Asks for one of the two, the other being NULL, and waits for the answer, in this call of the program. TB_OK: *answer
 * is what came back, whose bytes the caller frees; or an error of the launcher's, told. */
int tb_wish_ask(const char *call, const struct tb_spawn *spawn, const struct tb_meeting *meeting,
                struct tb_job_answer *answer);
/* An answer has come. With the engine locked. */
void tb_wish_answer(uint32_t number, const struct tb_job_answer *answer);

#endif

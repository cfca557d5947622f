/* A wish: something that this process asks the launcher for, through its agent, and waits for (TB_CONTROL_SPAWN, _MEET).
 * The answer comes while the engine makes progress. Any thread. */
#ifndef TB_MPI_WISH_H
#define TB_MPI_WISH_H

#include "mpi/self.h"

struct tb_wish {
    struct tb_list node;
    uint32_t number;
    bool answered;
    struct tb_job_answer answer;
};

/* Asks, and waits for the answer, in this call of the program. TB_OK: *answer is what came back, the caller's bytes in
 * it; or an error of the launcher's, told. */
int tb_wish_ask(const char *call, enum tb_control what, const void *bytes, size_t length, struct tb_job_answer *answer);
/* An answer has come. With the engine locked. */
void tb_wish_answer(uint32_t number, const struct tb_job_answer *answer);

#endif

/* A wish: something that this process asks the launcher for, through its agent, and waits for: processes, what there is
 * at a port, or what the registry of the job knows. The answer comes while the engine makes progress. Any thread. */
#ifndef TB_MPI_WISH_H
#define TB_MPI_WISH_H

#include "mpi/self.h"

struct tb_wish {
    struct tb_list node;
    uint32_t number;
    bool answered; /* read and written atomically: the answer is valid then */
    struct tb_job_answer answer;
};

/* Asks for one of the two, the other being NULL, and waits for the answer, in this call of the program. TB_OK: *answer
 * is what came back, whose bytes the caller frees; or an error of the launcher's, told. */
int tb_wish_ask(const char *call, const struct tb_spawn *spawn, const struct tb_meeting *meeting,
                struct tb_job_answer *answer);
/* The same in steps: it has a number, and its answer is taken from now on; then whoever wishes asks, and has to wait,
 * unless asking was an error already. */
void tb_wish_begin(struct tb_wish *wish);
bool tb_wish_is_answered(const struct tb_wish *wish);
int tb_wish_wait(struct tb_wish *wish, const char *call, int error, struct tb_job_answer *answer);
/* The same of what connects this process with others, which has no answer but that it is known. */
int tb_wish_bond(const char *call, const struct tb_bond *bond);
/* An answer has come, whose bytes are taken. With the engine locked. */
void tb_wish_answer(uint32_t number, const struct tb_job_answer *answer);

#endif

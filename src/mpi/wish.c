#include "mpi/wish.h"

#include <stdlib.h>

bool tb_wish_is_answered(const struct tb_wish *wish)
{
    return __atomic_load_n(&wish->answered, __ATOMIC_ACQUIRE);
}

static bool is_answered(void *context)
{
    return tb_wish_is_answered(context);
}

void tb_wish_answer(uint32_t number, const struct tb_job_answer *answer)
{
    struct tb_wish *wish;
    tb_self_lock();
    TB_LIST_EACH (wish, &tb_self.wishes, struct tb_wish, node)
        if (wish->number == number && !wish->answered) {
            wish->answer = *answer;
            __atomic_store_n(&wish->answered, true, __ATOMIC_RELEASE);
            tb_self_unlock();
            return;
        }
    tb_self_unlock();
    free(answer->bytes);
}

void tb_wish_begin(struct tb_wish *wish)
{
    *wish = (struct tb_wish){.answered = false};
    tb_self_lock();
    wish->number = ++tb_self.next_wish;
    tb_list_append(&tb_self.wishes, &wish->node);
    tb_self_unlock();
}

int tb_wish_wait(struct tb_wish *wish, const char *call, int error, struct tb_job_answer *answer)
{
    if (error == TB_OK)
        tb_engine_wait_in(tb_self.engine, is_answered, wish, call);
    tb_self_lock();
    tb_list_remove(&wish->node);
    tb_self_unlock();
    if (error != TB_OK)
        return error;
    *answer = wish->answer;
    return answer->error == TB_OK ? TB_OK : tb_error(answer->error, "%s", answer->text);
}

int tb_wish_ask(const char *call, const struct tb_spawn *spawn, const struct tb_meeting *meeting,
                struct tb_job_answer *answer)
{
    struct tb_wish wish;
    tb_wish_begin(&wish);
    int error = spawn != NULL ? tb_job_ask_spawn(&tb_self.job, wish.number, spawn)
                              : tb_job_ask_meeting(&tb_self.job, wish.number, meeting);
    return tb_wish_wait(&wish, call, error, answer);
}

int tb_wish_bond(const char *call, const struct tb_bond *bond)
{
    struct tb_wish wish;
    struct tb_job_answer answer = {0};
    tb_wish_begin(&wish);
    int error = tb_wish_wait(&wish, call, tb_job_ask_bond(&tb_self.job, wish.number, bond), &answer);
    free(answer.bytes);
    return error;
}

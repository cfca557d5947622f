#include "mpi/wish.h"

#include <stdlib.h>

static bool is_answered(void *context)
{
    return ((const struct tb_wish *)context)->answered;
}

void tb_wish_answer(uint32_t number, const struct tb_job_answer *answer)
{
    struct tb_wish *wish;
    tb_self_lock();
    TB_LIST_EACH (wish, &tb_self.wishes, struct tb_wish, node)
        if (wish->number == number && !wish->answered) {
            wish->answer = *answer;
            wish->answered = true;
            tb_self_unlock();
            return;
        }
    tb_self_unlock();
    free(answer->bytes);
}

int tb_wish_ask(const char *call, const struct tb_spawn *spawn, const struct tb_meeting *meeting,
                struct tb_job_answer *answer)
{
    struct tb_wish wish = {.answered = false};
    tb_self_lock();
    wish.number = ++tb_self.next_wish;
    tb_list_append(&tb_self.wishes, &wish.node);
    tb_self_unlock();
    int error = spawn != NULL ? tb_job_ask_spawn(&tb_self.job, wish.number, spawn)
                              : tb_job_ask_meeting(&tb_self.job, wish.number, meeting);
    if (error == TB_OK)
        tb_engine_wait_in(tb_self.engine, is_answered, &wish, call);
    tb_self_lock();
    tb_list_remove(&wish.node);
    tb_self_unlock();
    if (error != TB_OK)
        return error;
    *answer = wish.answer;
    return answer->error == TB_OK ? TB_OK : tb_error(answer->error, "%s", answer->text);
}

#include "transport/tcp/late.h"

#include <unistd.h>

bool tb_late_keep(struct tb_late *late, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    if (late->count == TB_LATE_LIMIT)
        return false;
    late->all[late->count].proc = proc;
    late->all[late->count].stream = stream;
    late->all[late->count++].descriptor = descriptor;
    return true;
}

int tb_late_try(struct tb_late *late,
                int (*adopt)(void *context, struct tb_proc proc, enum tb_stream stream, int descriptor), void *context)
{
    uint32_t taken = 0;
    while (taken < late->count &&
           adopt(context, late->all[taken].proc, late->all[taken].stream, late->all[taken].descriptor) != TB_ERR_MEMORY)
        taken++;
    late->count -= taken;
    memmove(late->all, late->all + taken, late->count * sizeof(late->all[0]));
    return (int)taken;
}

uint64_t tb_late_deadline(const struct tb_late *late)
{
    return late->count == 0 ? TB_NEVER : tb_clock_now_real() + TB_LATE_INTERVAL;
}

void tb_late_close(struct tb_late *late)
{
    for (uint32_t i = 0; i < late->count; i++)
        close(late->all[i].descriptor);
    late->count = 0;
}

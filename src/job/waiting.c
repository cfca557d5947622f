/* Whom a rank waits for, as it tells its agent: the fields of TB_CONTROL_WAITING. */
#include "job/job.h"

void tb_job_waiting_put(struct tb_writer *w, const struct tb_job_waiting *waiting)
{
    tb_put_u32(w, waiting->count);
    for (uint32_t i = 0; i < waiting->count; i++)
        tb_put_u32(w, waiting->hosts[i]);
    tb_put_u32(w, waiting->stuck_count);
    for (uint32_t i = 0; i < waiting->stuck_count; i++) {
        tb_put_u32(w, waiting->stuck[i].rank);
        tb_put_u64(w, waiting->stuck[i].tried);
    }
}

int tb_job_waiting_get(struct tb_reader *r, struct tb_job_waiting *waiting)
{
    *waiting = (struct tb_job_waiting){.count = tb_get_u32(r)};
    if (waiting->count > TB_WAITING_HOSTS)
        return tb_error(TB_ERR_PROTOCOL, "a rank waits for %u hosts", waiting->count);
    for (uint32_t i = 0; i < waiting->count; i++)
        waiting->hosts[i] = tb_get_u32(r);
    waiting->stuck_count = tb_get_u32(r);
    if (waiting->stuck_count > TB_WAITING_STUCK)
        return tb_error(TB_ERR_PROTOCOL, "a rank has %u stuck connections", waiting->stuck_count);
    for (uint32_t i = 0; i < waiting->stuck_count; i++) {
        waiting->stuck[i].rank = tb_get_u32(r);
        waiting->stuck[i].tried = tb_get_u64(r);
    }
    return tb_reader_end(r);
}

#include "link/multicast_output.h"

#define RETRY TB_MULTICAST_MS

uint32_t tb_multicast_output(struct tb_multicast *m, struct tb_multicast_out *out, uint32_t count)
{
    if (m->full || count == 0)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        out[i].head.job = m->config.job;
        out[i].head.sender = m->config.self;
    }
    uint32_t taken = m->config.calls.send(m->config.calls.owner, out, count);
    TB_ASSERT(taken <= count);
    m->full = taken < count;
    m->busy_until = m->busy_until > m->now ? m->busy_until : m->now;
    for (uint32_t i = 0; i < taken; i++)
        m->busy_until += (out[i].length + TB_DATAGRAM_BYTES) * m->config.byte_time / 1000;
    m->counters.sent += taken;
    return taken;
}

struct tb_writer *tb_multicast_control_begin(struct tb_multicast *m)
{
    m->writer.length = 0;
    m->writer.error = TB_OK;
    return &m->writer;
}

bool tb_multicast_control_end(struct tb_multicast *m, uint32_t process, enum tb_multicast_control kind,
                              const void *bytes, size_t length)
{
    TB_ASSERT(m->writer.error == TB_OK);
    if (process == m->config.self) { /* somebody has given a wrong name */
        m->counters.rejected++;
        return true;
    }
    int result =
        m->config.calls.control(m->config.calls.owner, process, kind, m->writer.bytes, m->writer.length, bytes, length);
    if (result != TB_AGAIN)
        return true; /* if it is gone, that will be told */
    m->stuck = true;
    m->stuck_until = m->now + RETRY;
    m->next = m->stuck_until < m->next ? m->stuck_until : m->next;
    return false;
}

/* Point-to-point calls: what blocking, nonblocking, persistent and combined ones share. */
#ifndef TB_MPI_POINT_H
#define TB_MPI_POINT_H

#include "mpi/check.h"
#include "mpi/request.h"

#define TB_SEND_NAMES(name)                                                                                            \
    {                                                                                                                  \
        name, "buf", "count", "datatype", "dest", "tag", "comm", 1, 2, 3, 4, 5, 6                                      \
    }
#define TB_RECEIVE_NAMES(name)                                                                                         \
    {                                                                                                                  \
        name, "buf", "count", "datatype", "source", "tag", "comm", 1, 2, 3, 4, 5, 6                                    \
    }

/* All bits of a tag must match, or none. */
static inline uint64_t tb_tag_mask(int tag)
{
    return tag == MPI_ANY_TAG ? 0 : UINT64_MAX;
}

static inline uint64_t tb_tag_match(int tag)
{
    return tag == MPI_ANY_TAG ? 0 : (uint64_t)(uint32_t)tag;
}

static inline uint32_t tb_source_rank(int source)
{
    return source == MPI_ANY_SOURCE ? TB_ANY_RANK : (uint32_t)source;
}

/* The arguments of a send to a rank are right. */
static inline bool tb_check_send(const struct tb_comm *c, const struct tb_type *type, const void *buffer,
                                 MPI_Count count, int dest, int tag)
{
    return __builtin_expect(c != NULL && tb_check_data(type, buffer, count) && tb_check_rank(c, dest) && tag >= 0 &&
                                tb_check_machine(c, type, count, dest),
                            1);
}

/* The arguments of a receive from a rank or any rank are right. */
static inline bool tb_check_receive(const struct tb_comm *c, const struct tb_type *type, const void *buffer,
                                    MPI_Count count, int source, int tag)
{
    return __builtin_expect(c != NULL && tb_check_data(type, buffer, count) &&
                                (tb_check_rank(c, source) || source == MPI_ANY_SOURCE) &&
                                (tag >= 0 || tag == MPI_ANY_TAG) && tb_check_machine(c, type, count, source),
                            1);
}

static inline struct tb_buffer tb_buffer_of(const void *base, MPI_Count count, const struct tb_type *type)
{
    return (struct tb_buffer){.base = (void *)base, .count = (uint64_t)count, .type = type};
}

static inline void tb_request_prepare(struct tb_request *request)
{
    request->complete = NULL;
    request->user = NULL;
}

/* A copy of the data, packed, in memory of its own (NULL with an empty one, or without memory), and how to send it. */
void *tb_buffer_pack(const struct tb_buffer *from, void *room, struct tb_buffer *packed);

#endif

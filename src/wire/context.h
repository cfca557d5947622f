/* Context ids: leader u32, its counter u29, plane u3; never used twice. 0 is no context. Of the world (WORLD of its
 * first process) and MPI_COMM_SELF (SELF) the leader is an index; of later ones that and the tag of its job: jobs meet.
 * Those of all processes of a job have an index as leader that there cannot be: mpi/universe.h. */
#ifndef TB_WIRE_CONTEXT_H
#define TB_WIRE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

enum tb_plane {
    TB_PLANE_POINT,
    TB_PLANE_COLLECTIVE,
    TB_PLANE_ONE_SIDED,
    TB_PLANE_CONTROL,     /* messages of the library itself, such as those that make communicators */
    TB_PLANE_LOCAL_POINT, /* of an intercommunicator: inside each of its groups */
    TB_PLANE_LOCAL_COLLECTIVE,
    TB_PLANE_LOCAL_CONTROL
};
#define TB_CONTEXT_COUNTER_BITS 27
#define TB_CONTEXT_PLANE_BITS   3
#define TB_CONTEXT_WORLD        1
#define TB_CONTEXT_SELF         2
#define TB_CONTEXT_FIRST        3 /* for communicators that are made later */
#define TB_CONTEXT_LIMIT        (1u << TB_CONTEXT_COUNTER_BITS)

/* Above the counter, and part of the id: where collectives do without multicast, as far as the process knew that made
 * it up. In its own cluster; in all others. */
#define TB_CONTEXT_UNCAST_THERE ((uint64_t)1 << (TB_CONTEXT_COUNTER_BITS + TB_CONTEXT_PLANE_BITS))
#define TB_CONTEXT_UNCAST_AWAY  (2 * TB_CONTEXT_UNCAST_THERE)
#define TB_CONTEXT_TAG_LEAST    (1u << 24) /* beyond all indices; and room for 2^20 of them behind each tag */
static inline uint32_t tb_context_tag(uint32_t job)
{
    return TB_CONTEXT_TAG_LEAST + job % (UINT32_MAX - TB_CONTEXT_TAG_LEAST - (1u << 20));
}

static inline uint64_t tb_context_make(uint32_t leader, uint32_t counter, enum tb_plane plane)
{
    return (uint64_t)leader << 32 | (counter & (TB_CONTEXT_LIMIT - 1)) << TB_CONTEXT_PLANE_BITS | (uint64_t)plane;
}

/* The process of this job that made it up; of one that another job did, no process of this one. */
static inline uint32_t tb_context_leader(uint64_t context, uint32_t job)
{
    uint32_t leader = (uint32_t)(context >> 32);
    return leader < TB_CONTEXT_TAG_LEAST ? leader : leader - tb_context_tag(job);
}

static inline uint64_t tb_context_plane(uint64_t context, enum tb_plane plane)
{
    return (context & ~(uint64_t)7) | (uint64_t)plane;
}

/* Whether it can be that of a communicator with processes of several jobs: nobody else has it, not even another job. */
static inline bool tb_context_is_tagged(uint64_t context)
{
    return (uint32_t)(context >> 32) >= TB_CONTEXT_TAG_LEAST;
}

/* Whether a process of that job can have made it up for such a one, which is to be made. */
static inline bool tb_context_is_of(uint64_t context, uint32_t job)
{
    return tb_context_is_tagged(context) && tb_context_leader(context, job) < 1u << 20 &&
           context == tb_context_plane(context, TB_PLANE_POINT);
}

/* Whether messages that the program itself sends are matched in it. */
static inline bool tb_context_is_point(uint64_t context)
{
    return (context & 7) == TB_PLANE_POINT;
}

/* Whether messages of collectives are matched in it. */
static inline bool tb_context_is_collective(uint64_t context)
{
    unsigned plane = context & 7;
    return plane == TB_PLANE_COLLECTIVE || plane == TB_PLANE_LOCAL_COLLECTIVE;
}

#endif

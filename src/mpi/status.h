/* How a status is laid out behind the standard's three fields: whether the operation was cancelled, and the bytes of
 * the message (64 bits, in two ints since a status is aligned like int). */
#ifndef TB_MPI_STATUS_H
#define TB_MPI_STATUS_H

#include <string.h>

#include "engine/engine.h"
#include <mpi.h>

enum { TB_STATUS_CANCELLED, TB_STATUS_BYTES }; /* places in MPI_internal */

static inline uint64_t tb_status_bytes(const MPI_Status *status)
{
    uint64_t bytes;
    memcpy(&bytes, &status->MPI_internal[TB_STATUS_BYTES], sizeof bytes);
    return bytes;
}

static inline void tb_status_set_bytes(MPI_Status *status, uint64_t bytes)
{
    memcpy(&status->MPI_internal[TB_STATUS_BYTES], &bytes, sizeof bytes);
}

/* Everything but MPI_ERROR, which only the calls with many statuses may touch. */
static inline void tb_status_fill(MPI_Status *status, int source, int tag, uint64_t bytes, bool cancelled)
{
    status->MPI_SOURCE = source;
    status->MPI_TAG = tag;
    status->MPI_internal[TB_STATUS_CANCELLED] = cancelled;
    tb_status_set_bytes(status, bytes);
}

/* What the standard calls an empty status, but for MPI_ERROR. */
static inline void tb_status_empty(MPI_Status *status)
{
    tb_status_fill(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
}

/* What a receive from MPI_PROC_NULL gives. */
static inline void tb_status_nobody(MPI_Status *status)
{
    tb_status_fill(status, MPI_PROC_NULL, MPI_ANY_TAG, 0, false);
}

static inline void tb_status_received(MPI_Status *status, const struct tb_status *from)
{
    tb_status_fill(status, (int)from->source, (int)from->match, from->bytes, from->cancelled);
}

#endif

/* Buffers for MPI_Bsend. A struct tb_bsend is one buffer that the program has attached, to a communicator, a session or
 * the process; messages in it are in order of their start. Segments stand in the program's memory, or, with
 * MPI_BUFFER_AUTOMATIC, in memory of our own. The tables' lock guards it; the engine is never called with that lock. */
#ifndef TB_MPI_BUFFERED_H
#define TB_MPI_BUFFERED_H

#include "mpi/comm.h"

struct tb_pending;
struct tb_segment; /* a message in the buffer */

/* Sends `buffer` in buffered mode. With `holder` (may be NULL) the message can still be cancelled: holder->segment is
 * set, until the buffer needs the room or is detached. An MPI error code, raised already. */
int tb_bsend_send(struct tb_comm *comm, const struct tb_buffer *buffer, uint32_t to, uint64_t match,
                  struct tb_pending *holder, const char *call);
/* The holder's request is complete: the message no longer needs to stay for it. */
void tb_bsend_let_go(struct tb_pending *holder);
/* The engine's request of the holder's message; NULL if it is no longer there. */
struct tb_request *tb_bsend_request(const struct tb_pending *holder);
/* All messages up to `serial` have left the buffer. */
bool tb_bsend_flushed(struct tb_bsend *bsend, uint64_t serial);
struct tb_bsend *tb_bsend_new(void *base, int64_t size, bool automatic); /* NULL: no memory */
void *tb_bsend_memory(const struct tb_bsend *bsend, MPI_Count *size);    /* as the program has attached it */
/* Waits for all messages, if there is a buffer. */
void tb_bsend_flush(struct tb_bsend *bsend);
/* For a request that waits until all messages that are in it now have left: the number of the last one. */
uint64_t tb_bsend_hold(struct tb_bsend *bsend);
/* Waits for all messages and takes the buffer away from where it is attached, if there is one. Requests that wait for
 * it to be flushed may outlive it. */
void tb_bsend_close(struct tb_bsend **place);
/* Such a request is at its end. */
void tb_bsend_release(struct tb_bsend *bsend);

#endif

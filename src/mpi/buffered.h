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
/* Asks to cancel the holder's message, if it is still in the buffer; then the holder is `cancelling`, and the message
 * stays until that is decided. */
void tb_bsend_cancel(struct tb_pending *holder);
bool tb_bsend_cancel_decided(const struct tb_pending *holder);
bool tb_bsend_cancelled(const struct tb_pending *holder); /* once that is so */
/* All messages up to `serial` have left the buffer. */
bool tb_bsend_flushed(struct tb_bsend *bsend, uint64_t serial);
struct tb_bsend *tb_bsend_new(void *base, int64_t size, bool automatic); /* NULL: no memory */
void *tb_bsend_memory(const struct tb_bsend *bsend, MPI_Count *size);    /* as the program has attached it */
/* Any thread may attach and detach at a place while others send, flush and detach there. False: there is one. */
bool tb_bsend_attach(struct tb_bsend **place, struct tb_bsend *bsend);
/* Waits for all messages that are in the buffer now, if there is one. */
void tb_bsend_flush(struct tb_bsend *const *place);
/* For who waits until all messages that are in it now have left, and releases it then: the buffer and the number of the
 * last one. NULL: there is none. */
struct tb_bsend *tb_bsend_hold(struct tb_bsend *const *place, uint64_t *serial);
/* Takes the buffer away from where it is attached, and waits for all messages; the caller releases it. NULL: there is
 * none. Who waits for it to be flushed may outlive it. */
struct tb_bsend *tb_bsend_detach(struct tb_bsend **place);
void tb_bsend_close(struct tb_bsend **place); /* that and its release, if there is one */
void tb_bsend_release(struct tb_bsend *bsend);

#endif

/* Windows: memory that a process lets the other ranks of a communicator read and write, and what orders their accesses
 * (access.h) and its own.
 *
 * A window belongs to a communicator of its own and is named by the context of that in the plane "one-sided", which all
 * frames of it carry. It is opened by each rank before the exchange that ends its making, so that nobody hears of an
 * access to a window that it does not know; what comes for one that is gone is answered with an error.
 *
 * What an origin has sent to a target is counted on both sides, frame by frame: the origin asks whether so many were
 * applied (FLUSH), and the target answers as soon as they were (APPLIED), however frames have overtaken each other.
 * What a target refuses (outside of its memory) it says at once (REFUSED); the origin's next synchronisation with it
 * fails then, and goes on.
 *
 * Locks are queued at their target (window_lock.h), or in memory that ranks of a host share. Posting tells each origin
 * so, completing tells each target how many frames it has to have applied.
 *
 * All functions take the engine's lock. Those that wait make progress meanwhile; `call` is the MPI call in which they
 * do. All return TB_OK or an error with its story, in any case without waiting for a process that is gone:
 * TB_ERR_PEER, TB_ERR_EPOCH (what is waited for cannot come), TB_ERR_ARGUMENT (a target has refused an access: it is
 * outside of its window), TB_ERR_MEMORY. */
#ifndef TB_ENGINE_WINDOW_H
#define TB_ENGINE_WINDOW_H

#include "base/base.h"
#include "schedule/schedule.h"

struct tb_channel;
struct tb_engine;
struct tb_window;

/* What leads straight to the memory of other ranks of this host, without their taking part (window_host.h). `at` is
 * where bytes stand in the window of `rank`: how far from its base, or, of a dynamic window, its address there. Any
 * member may be NULL: there is no such way. Called with the engine locked; none may wait for another process for long,
 * but `enter`, which is held for as long as it takes to combine a piece. */
struct tb_window_near {
    /* Where they lie in this process; NULL: nowhere, or not all of them are in that window. */
    void *(*map)(void *context, uint32_t rank, uint64_t at, uint64_t length);
    /* Copies to there and from there: the pieces of `there` are not addresses of this process, but where they stand in
     * the window, as above. TB_AGAIN: there is no way, nothing was copied; TB_ERR_ARGUMENT: not all of them are in that
     * window; others: that process is going. Both sides have `length` bytes left, which are consumed if it went well.
     */
    int (*write)(void *context, uint32_t rank, struct tb_spans *there, struct tb_spans *from, uint64_t length);
    int (*read)(void *context, uint32_t rank, struct tb_spans *there, struct tb_spans *into, uint64_t length);
    /* Whether there is a way to all of these pieces, as above: TB_OK, TB_AGAIN, TB_ERR_ARGUMENT. */
    int (*way)(void *context, uint32_t rank, const struct tb_spans *there);
    /* Whether all of that rank's memory is reached by one of these, without its taking part. */
    bool (*reaches)(void *context, uint32_t rank);
    /* Of a dynamic window: this process has attached memory, or detached it. False: there is no way to that, others of
     * the host need frames. */
    bool (*attach)(void *context, uint64_t from, uint64_t to);
    void (*detach)(void *context, uint64_t from);
    /* Between these nobody else combines data (accumulates) with that of `rank`. A process that serves frames of others
     * calls them with its own rank, and so does one whose accesses go to itself. */
    void (*enter)(void *context, uint32_t rank);
    void (*leave)(void *context, uint32_t rank);
    /* The lock of that rank's memory, for whoever is on the host; the target itself takes it for those that ask it by
     * frames. All of these or none. The first takes a place in its queue, of which a process may have two at a time
     * (`again`: *ticket is one that has passed by, or will, and is taken again if that has not happened yet); its own
     * rank's lock is always there. TB_AGAIN: that of another one is not, it has to be asked. */
    int (*queue)(void *context, uint32_t rank, bool again, uint32_t *ticket);
    /* Whether it is this place's turn; the lock is taken then, shared or exclusive. `wake`: as below; the process that
     * has not got its turn is told when it is worth asking again, also when it `joins` and others begin to share it. */
    bool (*turn)(void *context, uint32_t rank, uint32_t ticket, bool exclusive, bool joins, uint32_t *wake);
    /* Who is to be told so, from a place on, one after the other; TB_ANY_RANK: that was all. */
    uint32_t (*joiner)(void *context, uint32_t rank, uint32_t *from);
    /* Shares it with those who do, past all that wait; false: nobody does. */
    bool (*join)(void *context, uint32_t rank);
    /* A place passes by: it is not needed now. */
    uint32_t (*pass)(void *context, uint32_t rank, uint32_t ticket);
    /* A rank of this host is gone. */
    void (*bury)(void *context, uint32_t rank);
    /* One that is gone and had the lock of a rank, or waited for it: who comes behind does not get it. TB_ANY_RANK:
     * there is none. */
    uint32_t (*blocker)(void *context, uint32_t rank);
    /* Whether a rank of this host has the lock of another one, or waits for it. */
    bool (*uses)(void *context, uint32_t rank, uint32_t by);
    /* Gives it back. The rank on this host that may have its turn now and waits for it, or TB_ANY_RANK. */
    uint32_t (*unlock)(void *context, uint32_t rank, bool exclusive);
};

struct tb_window_config {
    /* Of a communicator that nobody else uses; is closed after the window. */
    struct tb_channel *channel;
    void *base;    /* of this process's memory; NULL if size is 0 or it is dynamic */
    uint64_t size; /* bytes */
    bool dynamic;  /* memory is attached and detached; displacements are addresses */
    /* NULL: everything goes by frames. Frames of others may come at once, and what concerns this process's own rank is
     * used from then on; what leads to other ranks not before this process accesses them. */
    const struct tb_window_near *near;
    void *near_context;
};

/* What ranks of a window meet for, in a barrier of its communicator: binding.operation of that. */
enum tb_window_meeting { TB_WINDOW_FENCE = TB_OPERATION_WIN_FENCE, TB_WINDOW_FREE = TB_OPERATION_WIN_FREE };

int tb_window_open(struct tb_engine *engine, const struct tb_window_config *config, struct tb_window **window);
/* Others may ask for a lock, or do anything while this process computes: a standby watches, if some of them need frames
 * for that, or will when more is attached than those of the host have a way to. When all have opened it, since `near`
 * may not know before who reaches whom. */
void tb_window_watch(struct tb_window *window);
/* This process has ended its part of MPI and will not synchronise it any more. Accesses of others go on. */
void tb_window_leave_for_good(struct tb_window *window);
/* The story of an error of a collective of it, with what is known better here. */
const char *tb_window_why(struct tb_window *window, int error);
/* After everybody's accesses have ended, and been heard to have: behind a barrier. */
void tb_window_close(struct tb_window *window);

/* Memory of a dynamic window. TB_ERR_ARGUMENT: it overlaps with what is attached; nothing begins there. */
int tb_window_attach(struct tb_window *window, void *base, uint64_t size);
int tb_window_detach(struct tb_window *window, const void *base);

/* ---- what has been done ------------------------------------------------------------------------------------------ */

/* All accesses to `rank` (TB_ANY_RANK: to all) have ended here: buffers may be used, and what was asked for is there.
 */
int tb_window_flush_local(struct tb_window *window, uint32_t rank, const char *call);
/* They have ended there, too. */
int tb_window_flush(struct tb_window *window, uint32_t rank, const char *call);

/* ---- locks: passive target --------------------------------------------------------------------------------------- */

int tb_window_lock(struct tb_window *window, uint32_t rank, bool exclusive, const char *call);
/* Shared, of every rank. If one cannot be locked none is. */
int tb_window_lock_all(struct tb_window *window, const char *call);
/* Flushes, too. The lock is given back in any case. */
int tb_window_unlock(struct tb_window *window, uint32_t rank, const char *call);
int tb_window_unlock_all(struct tb_window *window, const char *call);

/* ---- active target ----------------------------------------------------------------------------------------------- */

/* This process's memory may be accessed by these ranks, until all of them have completed that. After an error
 * (TB_ERR_MEMORY) by none. Of one that is gone tb_window_wait tells. */
int tb_window_post(struct tb_window *window, const uint32_t *ranks, uint32_t count);
/* Waits until these have posted. */
int tb_window_start(struct tb_window *window, const uint32_t *ranks, uint32_t count, const char *call);
/* All accesses to them have ended here, and they are told. */
int tb_window_complete(struct tb_window *window, const uint32_t *ranks, uint32_t count, const char *call);
/* Waits until all those that were given to tb_window_post have completed. */
int tb_window_wait(struct tb_window *window, const char *call);
/* The same without waiting, after a round of progress: *done, and the result if it is. */
int tb_window_test(struct tb_window *window, bool *done);

#endif

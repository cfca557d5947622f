/* Synchronisation of windows (MPI-5.0, 12.5): fences, post and start, locks, flushing. What is waited for, and what
 * others are told, is the engine's business (engine/window.h); here it is noted in which epochs this rank is.
 *
 * Assertions are accepted and hardly used: MPI_MODE_NOCHECK of a lock spares the question, of the others nothing. */
#include <stdlib.h>

#include "mpi/binding_decls.h"
#include "mpi/group.h"
#include "mpi/win_check.h"

/* The window of a call; otherwise the error was raised. */
static struct tb_win *find(const char *call, int position, MPI_Win win, int *code)
{
    struct tb_win *w = tb_win_find(win);
    *code = w != NULL ? MPI_SUCCESS : tb_raise_win(call, position, "win", win);
    return w;
}

static int finish(struct tb_win *w, int error, const char *call)
{
    return error == TB_OK ? MPI_SUCCESS : tb_win_raise_below(w, error, call);
}

/* ---- fences ------------------------------------------------------------------------------------------------------ */

int tb_mpi_Win_fence(int assert, MPI_Win win)
{
    static const char call[] = "MPI_Win_fence";
    int code;
    struct tb_win *w = find(call, 2, win, &code);
    if (w == NULL)
        return code;
    struct tb_win_epochs *e = &w->epochs;
    code = tb_win_check_assert(w, call, 1, assert,
                               MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED);
    bool used = e->used;
    e->used = false; /* this is what closes it */
    if (code == MPI_SUCCESS)
        code = tb_win_check_no_access(w, call, true);
    if (code == MPI_SUCCESS)
        code = tb_win_check_no_exposure(w, call);
    if (code != MPI_SUCCESS) {
        e->used = used;
        return code;
    }
    int error = tb_window_flush(w->window, TB_ANY_RANK, call);
    if (error != TB_OK) /* the others get their fence all the same */
        code = tb_win_code_below(w, error, call);
    int joined = tb_comm_meet(w->comm, TB_WINDOW_FENCE, call);
    e->fenced = (assert &MPI_MODE_NOSUCCEED) == 0;
    if (code != MPI_SUCCESS)
        return tb_win_raise_code(w, code);
    return joined < 0 ? tb_win_raise_below(w, joined, call) : MPI_SUCCESS;
}

/* ---- post, start, complete, wait --------------------------------------------------------------------------------- */

/* Ranks of the window that are the members of a group, which most programs name in order. NULL: there is an error, or
 * no memory, which is raised; *count. */
static uint32_t *ranks_of(struct tb_win *w, const char *call, MPI_Group handle, uint32_t *count, int *code)
{
    const struct tb_group *group = tb_group_find(handle);
    uint32_t size = w->comm->size, next = 0;
    if (group == NULL) {
        *code = tb_win_raise_argument(w, MPI_ERR_GROUP, call, 1, "group",
                                      handle == MPI_GROUP_NULL ? "it is MPI_GROUP_NULL"
                                                               : "this is no handle of a group, or it has been freed");
        return NULL;
    }
    uint32_t *ranks = malloc((group->size + 1) * sizeof *ranks);
    if (ranks == NULL)
        *code = tb_win_raise(w, MPI_ERR_NO_MEM, call, "no memory for a group of %u ranks", group->size);
    for (uint32_t i = 0; i < group->size && ranks != NULL; i++) {
        uint32_t tried = 0;
        while (tried < size && tb_comm_proc(w->comm, next) != group->procs[i]) {
            next = next + 1 < size ? next + 1 : 0;
            tried++;
        }
        if (tried == size) {
            *code = tb_win_raise_argument(w, MPI_ERR_GROUP, call, 1, "group",
                                          "its rank %u is not in the group of the window", i);
            free(ranks);
            return NULL;
        }
        ranks[i] = next;
    }
    *count = group->size;
    return ranks;
}

/* A fence that nothing was accessed after has opened nothing. */
static void forget_fence(struct tb_win *w)
{
    w->epochs.fenced = false;
}

int tb_mpi_Win_post(MPI_Group group, int assert, MPI_Win win)
{
    static const char call[] = "MPI_Win_post";
    int code;
    uint32_t count;
    struct tb_win *w = find(call, 3, win, &code);
    if (w == NULL)
        return code;
    code = tb_win_check_assert(w, call, 2, assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT);
    if (code == MPI_SUCCESS)
        code = tb_win_check_no_exposure(w, call);
    if (code == MPI_SUCCESS && w->epochs.used)
        code = tb_win_check_no_access(w, call, true);
    if (code != MPI_SUCCESS)
        return code;
    uint32_t *ranks = ranks_of(w, call, group, &count, &code);
    if (ranks == NULL)
        return code;
    atomic_thread_fence(memory_order_seq_cst); /* what was stored is there for whoever is told */
    int error = tb_window_post(w->window, ranks, count);
    free(ranks);
    if (error == TB_OK) {
        forget_fence(w);
        w->epochs.posted = true;
    }
    return finish(w, error, call);
}

int tb_mpi_Win_start(MPI_Group group, int assert, MPI_Win win)
{
    static const char call[] = "MPI_Win_start";
    int code;
    uint32_t count;
    struct tb_win *w = find(call, 3, win, &code);
    if (w == NULL)
        return code;
    struct tb_win_epochs *e = &w->epochs;
    code = tb_win_check_assert(w, call, 2, assert, MPI_MODE_NOCHECK);
    if (code == MPI_SUCCESS)
        code = tb_win_check_no_access(w, call, true);
    if (code != MPI_SUCCESS)
        return code;
    uint32_t *ranks = ranks_of(w, call, group, &count, &code);
    if (ranks == NULL)
        return code;
    int error = tb_window_start(w->window, ranks, count, call);
    if (error != TB_OK) {
        free(ranks);
        return finish(w, error, call);
    }
    forget_fence(w);
    e->started = true;
    e->group = ranks;
    e->group_size = count;
    for (uint32_t i = 0; i < count; i++)
        e->ranks[ranks[i]] |= TB_EPOCH_STARTED;
    return MPI_SUCCESS;
}

int tb_mpi_Win_complete(MPI_Win win)
{
    static const char call[] = "MPI_Win_complete";
    int code;
    struct tb_win *w = find(call, 1, win, &code);
    if (w == NULL)
        return code;
    struct tb_win_epochs *e = &w->epochs;
    if (!e->started)
        return tb_win_raise(w, MPI_ERR_RMA_SYNC, call, "MPI_Win_start has not been called");
    int error = tb_window_complete(w->window, e->group, e->group_size, call);
    for (uint32_t i = 0; i < e->group_size; i++)
        e->ranks[e->group[i]] &= (uint8_t)~TB_EPOCH_STARTED;
    free(e->group);
    e->group = NULL;
    e->started = false;
    return finish(w, error, call);
}

int tb_mpi_Win_wait(MPI_Win win)
{
    static const char call[] = "MPI_Win_wait";
    int code;
    struct tb_win *w = find(call, 1, win, &code);
    if (w == NULL)
        return code;
    if (!w->epochs.posted)
        return tb_win_raise(w, MPI_ERR_RMA_SYNC, call, "MPI_Win_post has not been called");
    int error = tb_window_wait(w->window, call);
    w->epochs.posted = false;
    return finish(w, error, call);
}

int tb_mpi_Win_test(MPI_Win win, int *flag)
{
    static const char call[] = "MPI_Win_test";
    int code;
    bool done;
    struct tb_win *w = find(call, 1, win, &code);
    if (w == NULL)
        return code;
    if (flag == NULL)
        return tb_win_raise_null(w, call, 2, "flag");
    if (!w->epochs.posted)
        return tb_win_raise(w, MPI_ERR_RMA_SYNC, call, "MPI_Win_post has not been called");
    int error = tb_window_test(w->window, &done);
    *flag = done;
    w->epochs.posted = !done;
    return finish(w, error, call);
}

/* ---- locks ------------------------------------------------------------------------------------------------------- */

static int check_locks(struct tb_win *w, const char *call)
{
    if (w->hints.no_locks)
        return tb_win_raise(w, MPI_ERR_RMA_SYNC, call,
                            "the window was made with the info key no_locks; leave that out to use locks");
    return MPI_SUCCESS;
}

int tb_mpi_Win_lock(int lock_type, int rank, int assert, MPI_Win win)
{
    static const char call[] = "MPI_Win_lock";
    int code;
    struct tb_win *w = find(call, 4, win, &code);
    if (w == NULL)
        return code;
    struct tb_win_epochs *e = &w->epochs;
    if (lock_type != MPI_LOCK_SHARED && lock_type != MPI_LOCK_EXCLUSIVE)
        return tb_win_raise_argument(w, MPI_ERR_LOCKTYPE, call, 1, "lock_type",
                                     "%d is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE", lock_type);
    if (rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    code = tb_win_check_rank(w, call, 2, "rank", rank);
    if (code == MPI_SUCCESS)
        code = tb_win_check_assert(w, call, 3, assert, MPI_MODE_NOCHECK);
    if (code == MPI_SUCCESS)
        code = check_locks(w, call);
    if (code == MPI_SUCCESS)
        code = tb_win_check_no_access(w, call, false);
    if (code != MPI_SUCCESS)
        return code;
    if (e->ranks[rank] & TB_EPOCH_LOCKED)
        return tb_win_raise(w, MPI_ERR_RMA_SYNC, call, "rank %d is locked already; call MPI_Win_unlock first", rank);
    bool checked = (assert &MPI_MODE_NOCHECK) == 0;
    if (checked) {
        int error = tb_window_lock(w->window, (uint32_t)rank, lock_type == MPI_LOCK_EXCLUSIVE, call);
        if (error != TB_OK)
            return finish(w, error, call);
    }
    forget_fence(w);
    e->ranks[rank] |= TB_EPOCH_LOCKED | (checked ? 0 : TB_EPOCH_UNCHECKED);
    e->locked++;
    return MPI_SUCCESS;
}

int tb_mpi_Win_unlock(int rank, MPI_Win win)
{
    static const char call[] = "MPI_Win_unlock";
    int code;
    struct tb_win *w = find(call, 2, win, &code);
    if (w == NULL)
        return code;
    if (rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    struct tb_win_epochs *e = &w->epochs;
    code = tb_win_check_rank(w, call, 1, "rank", rank);
    if (code != MPI_SUCCESS)
        return code;
    if ((e->ranks[rank] & TB_EPOCH_LOCKED) == 0)
        return tb_win_raise(w, MPI_ERR_RMA_SYNC, call, "rank %d is not locked by MPI_Win_lock", rank);
    int error = e->ranks[rank] & TB_EPOCH_UNCHECKED ? tb_window_flush(w->window, (uint32_t)rank, call)
                                                    : tb_window_unlock(w->window, (uint32_t)rank, call);
    e->ranks[rank] &= (uint8_t) ~(TB_EPOCH_LOCKED | TB_EPOCH_UNCHECKED);
    e->locked--;
    return finish(w, error, call);
}

int tb_mpi_Win_lock_all(int assert, MPI_Win win)
{
    static const char call[] = "MPI_Win_lock_all";
    int code;
    struct tb_win *w = find(call, 2, win, &code);
    if (w == NULL)
        return code;
    code = tb_win_check_assert(w, call, 1, assert, MPI_MODE_NOCHECK);
    if (code == MPI_SUCCESS)
        code = check_locks(w, call);
    if (code == MPI_SUCCESS)
        code = tb_win_check_no_access(w, call, true);
    if (code != MPI_SUCCESS)
        return code;
    bool checked = (assert &MPI_MODE_NOCHECK) == 0;
    int error = checked ? tb_window_lock_all(w->window, call) : TB_OK;
    if (error != TB_OK)
        return finish(w, error, call);
    forget_fence(w);
    w->epochs.locked_all = true;
    w->epochs.unchecked = !checked;
    return MPI_SUCCESS;
}

int tb_mpi_Win_unlock_all(MPI_Win win)
{
    static const char call[] = "MPI_Win_unlock_all";
    int code;
    struct tb_win *w = find(call, 1, win, &code);
    if (w == NULL)
        return code;
    struct tb_win_epochs *e = &w->epochs;
    if (!e->locked_all)
        return tb_win_raise(w, MPI_ERR_RMA_SYNC, call, "MPI_Win_lock_all has not been called");
    int error = e->unchecked ? tb_window_flush(w->window, TB_ANY_RANK, call) : tb_window_unlock_all(w->window, call);
    e->locked_all = false;
    return finish(w, error, call);
}

/* ---- flushing ---------------------------------------------------------------------------------------------------- */

static int flush_one(const char *call, int rank, MPI_Win win, bool there)
{
    int code;
    struct tb_win *w = find(call, 2, win, &code);
    if (w == NULL)
        return code;
    if (rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    code = tb_win_check_rank(w, call, 1, "rank", rank);
    if (code == MPI_SUCCESS)
        code = tb_win_check_epoch(w, call, rank, true);
    if (code != MPI_SUCCESS)
        return code;
    int error = there ? tb_window_flush(w->window, (uint32_t)rank, call)
                      : tb_window_flush_local(w->window, (uint32_t)rank, call);
    return finish(w, error, call);
}

static int flush_all(const char *call, MPI_Win win, bool there)
{
    int code;
    struct tb_win *w = find(call, 1, win, &code);
    if (w == NULL)
        return code;
    if (!w->epochs.locked_all && w->epochs.locked == 0)
        return tb_win_raise(w, MPI_ERR_RMA_SYNC, call, "nobody is locked; call MPI_Win_lock or MPI_Win_lock_all first");
    int error =
        there ? tb_window_flush(w->window, TB_ANY_RANK, call) : tb_window_flush_local(w->window, TB_ANY_RANK, call);
    return finish(w, error, call);
}

int tb_mpi_Win_flush(int rank, MPI_Win win)
{
    return flush_one("MPI_Win_flush", rank, win, true);
}

int tb_mpi_Win_flush_all(MPI_Win win)
{
    return flush_all("MPI_Win_flush_all", win, true);
}

int tb_mpi_Win_flush_local(int rank, MPI_Win win)
{
    return flush_one("MPI_Win_flush_local", rank, win, false);
}

int tb_mpi_Win_flush_local_all(MPI_Win win)
{
    return flush_all("MPI_Win_flush_local_all", win, false);
}

/* Private and public copy are one memory. Whoever looks for what others write there makes progress. */
int tb_mpi_Win_sync(MPI_Win win)
{
    int code;
    struct tb_win *w = find("MPI_Win_sync", 1, win, &code);
    if (w == NULL)
        return code;
    tb_engine_progress(tb_self.engine);
    atomic_thread_fence(memory_order_seq_cst);
    return MPI_SUCCESS;
}

/* Making and freeing windows (MPI-5.0, 12.2). All ranks get one, or none: whatever is lacking or wrong at one of them
 * is found before the last of three exchanges, and that one carries who could not. The first makes a communicator of
 * the same ranks, the second tells everyone of everyone's memory. */
#include <stdlib.h>
#include <string.h>

#include "mpi/agreement.h"
#include "mpi/binding_decls.h"
#include "mpi/bond.h"
#include "mpi/hint.h"
#include "mpi/subgroup.h"
#include "mpi/win.h"
#include "mpi/win_check.h"
#include "mpi/win_hint.h"

/* A call that makes a window: where its arguments stand, and what they are. */
struct making {
    const char *call;
    int flavor;
    uint8_t size_at, unit_at, info_at, comm_at, result_at, win_at; /* 0: there is none */
    void *base;
    MPI_Aint size, unit;
    MPI_Info info;
    MPI_Comm comm;
    void *result; /* for the address of what was allocated */
    MPI_Win *win;
};

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* What only this rank need have done wrong. A code that is not raised, since the others are told first. */
static int check(const struct making *m, const struct tb_info **info)
{
    *info = m->info == MPI_INFO_NULL ? NULL : tb_info_find(m->info);
    if (m->size < 0)
        return tb_error_code(MPI_ERR_SIZE, m->call, "argument %d (size): %lld is negative", m->size_at,
                             (long long)m->size);
    if (m->unit <= 0)
        return tb_error_code(MPI_ERR_DISP, m->call, "argument %d (disp_unit): %lld is not positive", m->unit_at,
                             (long long)m->unit);
    if (m->flavor == MPI_WIN_FLAVOR_CREATE && m->base == NULL && m->size > 0)
        return tb_error_code(MPI_ERR_BASE, m->call, "argument 1 (base): the pointer is null, and the size is %lld",
                             (long long)m->size);
    if (m->info != MPI_INFO_NULL && *info == NULL)
        return tb_error_code(MPI_ERR_INFO, m->call,
                             "argument %d (info): this is no handle of an info object, or it has been freed",
                             m->info_at);
    if (m->result_at > 0 && m->result == NULL)
        return tb_error_code(MPI_ERR_ARG, m->call, "argument %d (baseptr): the pointer is null", m->result_at);
    if (m->win == NULL)
        return tb_error_code(MPI_ERR_ARG, m->call, "argument %d (win): the pointer is null", m->win_at);
    return MPI_SUCCESS;
}

/* ---- the parts of a window --------------------------------------------------------------------------------------- */

static void win_destroy(struct tb_win *w)
{
    if (w->window != NULL)
        tb_window_close(w->window);
    tb_window_host_close(w->host);
    if (w->comm != NULL)
        tb_comm_release(w->comm);
    tb_errhandler_release(w->errhandler);
    tb_win_epochs_close(&w->epochs);
    free(w->parts);
    tb_handle_give(TB_OBJECT_WIN, w);
}

/* Ranks of a communicator that are on this host, ascending. Those of another job are at the border for this one,
 * wherever they run: jobs share no memory. */
static uint32_t *find_locals(const struct tb_comm *comm, uint32_t *count)
{
    const struct tb_address_book *book = &tb_self.job.book;
    uint32_t *locals = malloc(comm->size * sizeof *locals), here = 0;
    *count = 0;
    if (locals == NULL)
        return NULL;
    if (comm->size > 1)
        here = tb_address_book_host_of(book, tb_self.job.self.index);
    for (uint32_t i = 0; i < comm->size; i++) {
        uint32_t proc = tb_comm_proc(comm, i);
        if (comm->size == 1 || (tb_address_book_host_of(book, proc) == here && !tb_worlds_is_foreign(book, proc)))
            locals[(*count)++] = i;
    }
    return locals;
}

/* What ranks of this host share. Those that do not exchange messages through shared memory do not want it for windows,
 * either, unless the program has asked for it. */
static int open_host(const struct making *m, struct tb_win *w, const struct tb_comm *comm,
                     struct tb_window_offer *offer)
{
    uint32_t count;
    uint32_t *locals = find_locals(comm, &count);
    if (locals == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for a window of %u ranks", comm->size);
    bool shared = m->flavor == MPI_WIN_FLAVOR_SHARED;
    struct tb_window_host_config config = {
        .size = comm->size,
        .rank = comm->rank,
        .locals = locals,
        .local_count = count,
        .allocates = shared || m->flavor == MPI_WIN_FLAVOR_ALLOCATE,
        .contiguous = shared && !w->hints.noncontig,
        .alignment = (uint32_t)w->hints.alignment,
        .dynamic = m->flavor == MPI_WIN_FLAVOR_DYNAMIC,
        .whole = shared,
    };
    if (!shared && !tb_window_host_is_wanted(tb_self.engine)) {
        locals[0] = comm->rank;
        config.local_count = 1;
    }
    int error = tb_window_host_open(&config, offer, &w->host);
    free(locals);
    return error;
}

/* Everything of a known size that needs memory, so that this rank has it or all learn that it has not. */
static int prepare(const struct making *m, const struct tb_info *info, struct tb_comm *parent,
                   struct tb_window_offer **offers, struct tb_win **made)
{
    struct tb_win *w = tb_handle_take(TB_OBJECT_WIN, sizeof *w);
    if (w == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for a window");
    *made = w;
    w->errhandler = tb_errhandler_hold(&tb_errhandler_fatal);
    w->flavor = m->flavor;
    w->model = MPI_WIN_UNIFIED;
    w->size = m->size;
    w->unit = tb_ints_result(m->unit);
    w->base = m->base;
    tb_win_hints_begin(&w->hints);
    if (info != NULL)
        tb_win_hints_take(&w->hints, info, true);
    w->parts = malloc(parent->size * sizeof *w->parts);
    w->epochs.ranks = calloc(parent->size, sizeof *w->epochs.ranks);
    *offers = calloc(parent->size, sizeof **offers);
    if (w->parts == NULL || w->epochs.ranks == NULL || *offers == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for a window of %u ranks", parent->size);
    struct tb_window_offer *mine = &(*offers)[parent->rank];
    *mine = (struct tb_window_offer){.base = (uintptr_t)m->base, .size = (uint64_t)m->size, .unit = (uint64_t)m->unit};
    int error = open_host(m, w, parent, mine);
    struct tb_comm_shape shape;
    if (error == TB_OK)
        error = tb_shape_copy(parent, &shape);
    return error == TB_OK ? tb_comm_new(&shape, parent, &w->comm) : error;
}

static void learn(struct tb_win *w, const struct tb_window_offer *offers)
{
    bool dynamic = w->flavor == MPI_WIN_FLAVOR_DYNAMIC;
    for (uint32_t i = 0; i < w->comm->size; i++) {
        w->parts[i] = (struct tb_win_part){.base = offers[i].base, .size = offers[i].size, .unit = offers[i].unit};
        if (dynamic)
            w->parts[i] = (struct tb_win_part){.size = UINT64_MAX, .unit = 1};
    }
}

/* The memory of everyone is known: ours is there, and can be accessed. */
static int enter(struct tb_win *w, const struct tb_window_offer *offers)
{
    int error = tb_window_host_enter(w->host, offers);
    if (error < 0)
        return error;
    learn(w, offers);
    w->hints.alignment = tb_window_host_settled(w->host)->alignment;
    if (w->flavor == MPI_WIN_FLAVOR_SHARED)
        w->hints.noncontig = !tb_window_host_settled(w->host)->contiguous;
    if (w->flavor == MPI_WIN_FLAVOR_ALLOCATE || w->flavor == MPI_WIN_FLAVOR_SHARED)
        w->base = tb_window_host_memory(w->host, w->comm->rank);
    const struct tb_window_config config = {
        .channel = w->comm->channel,
        .base = w->base,
        .size = (uint64_t)w->size,
        .dynamic = w->flavor == MPI_WIN_FLAVOR_DYNAMIC,
        .near = &tb_window_host_near,
        .near_context = w->host,
    };
    return tb_window_open(tb_self.engine, &config, &w->window);
}

/* The second and the third exchange. */
static int complete(struct tb_win *w, struct tb_window_offer *offers)
{
    uint64_t word = UINT64_MAX;
    struct tb_window_offer mine = offers[w->comm->rank];
    int error = tb_comm_exchange(w->comm, &mine, sizeof mine, offers);
    if (error < 0)
        return error;
    error = tb_comm_combine_or_refuse(w->comm, enter(w, offers), &word);
    if (error < 0)
        return error;
    tb_window_host_settle(w->host);
    if (!w->hints.no_locks && w->hints.standby)
        tb_window_watch(w->window);
    return TB_OK;
}

static int raise_making(const struct making *m, struct tb_comm *parent, int error)
{
    if (error == TB_ERR_FORBIDDEN)
        return tb_raise(parent, MPI_ERR_RMA_SHARED, m->call, "%s", tb_error_story());
    return tb_raise_below(parent, error, m->call);
}

static int make(const struct making *m, struct tb_comm *parent, const struct tb_info *info, int code)
{
    struct tb_win *w = NULL;
    struct tb_window_offer *offers = NULL;
    struct tb_comm *comm = NULL;
    int error = tb_comm_settle(parent); /* before anything here can fail for itself */
    if (error < 0)
        return tb_raise_below(parent, error, m->call);
    error = code == MPI_SUCCESS ? prepare(m, info, parent, &offers, &w)
                                : tb_error(TB_ERR_ARGUMENT, "the arguments of %s are wrong", m->call);
    if (w != NULL) {
        comm = w->comm;
        w->comm = NULL;
    }
    error = tb_comm_agree_new(parent, error, &comm);
    if (error == TB_OK && w != NULL) {
        w->comm = comm;
        comm->win = w;
        error = complete(w, offers);
    }
    free(offers);
    if (error < 0 && w != NULL)
        win_destroy(w);
    if (code != MPI_SUCCESS)
        return tb_raise_code(parent, code);
    if (error < 0 || w == NULL)
        return raise_making(m, parent, error);
    if (m->result != NULL)
        *(void **)m->result = w->base;
    *m->win = tb_win_handle(w);
    return MPI_SUCCESS;
}

/* All ranks find these alike, and none need be told. */
static int begin(const struct making *m)
{
    struct tb_comm *parent = tb_comm_find(m->comm);
    if (parent == NULL)
        return tb_raise_comm(m->call, m->comm_at, "comm", m->comm);
    if (parent->inter)
        return tb_raise_argument(parent, MPI_ERR_COMM, m->call, m->comm_at, "comm",
                                 "windows of an inter-communicator do not exist; merge it first");
    if (m->flavor == MPI_WIN_FLAVOR_SHARED) {
        uint32_t count;
        uint32_t *locals = find_locals(parent, &count);
        bool here = locals == NULL || count == parent->size; /* without memory the others hear of that */
        free(locals);
        if (!here)
            return tb_raise_argument(
                parent, MPI_ERR_RMA_SHARED, m->call, m->comm_at, "comm",
                "of its %u ranks %u are on this host and of this job, and neither hosts nor jobs share memory; "
                "MPI_Comm_split_type with MPI_COMM_TYPE_SHARED makes one that can",
                parent->size, count);
    }
    const struct tb_info *info;
    int code = check(m, &info);
    return make(m, parent, info, code);
}

/* ---- the calls that make one ------------------------------------------------------------------------------------- */

int tb_mpi_Win_create(void *base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    const struct making m = {.call = "MPI_Win_create",
                             .flavor = MPI_WIN_FLAVOR_CREATE,
                             .size_at = 2,
                             .unit_at = 3,
                             .info_at = 4,
                             .comm_at = 5,
                             .win_at = 6,
                             .base = base,
                             .size = size,
                             .unit = disp_unit,
                             .info = info,
                             .comm = comm,
                             .win = win};
    return begin(&m);
}

static int allocate(const char *call, int flavor, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm,
                    void *baseptr, MPI_Win *win)
{
    const struct making m = {.call = call,
                             .flavor = flavor,
                             .size_at = 1,
                             .unit_at = 2,
                             .info_at = 3,
                             .comm_at = 4,
                             .result_at = 5,
                             .win_at = 6,
                             .size = size,
                             .unit = unit,
                             .info = info,
                             .comm = comm,
                             .result = baseptr,
                             .win = win};
    return begin(&m);
}

int tb_mpi_Win_allocate(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win)
{
    return allocate("MPI_Win_allocate", MPI_WIN_FLAVOR_ALLOCATE, size, disp_unit, info, comm, baseptr, win);
}

int tb_mpi_Win_allocate_shared(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr,
                               MPI_Win *win)
{
    return allocate("MPI_Win_allocate_shared", MPI_WIN_FLAVOR_SHARED, size, disp_unit, info, comm, baseptr, win);
}

int tb_mpi_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    const struct making m = {.call = "MPI_Win_create_dynamic",
                             .flavor = MPI_WIN_FLAVOR_DYNAMIC,
                             .info_at = 1,
                             .comm_at = 2,
                             .win_at = 3,
                             .base = MPI_BOTTOM,
                             .unit = 1,
                             .info = info,
                             .comm = comm,
                             .win = win};
    return begin(&m);
}

/* ---- memory of dynamic windows ----------------------------------------------------------------------------------- */

static int check_dynamic(struct tb_win *w, const char *call)
{
    if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return MPI_SUCCESS;
    return tb_win_raise_argument(w, MPI_ERR_RMA_FLAVOR, call, 1, "win", "%s was not made by MPI_Win_create_dynamic",
                                 tb_win_name(w));
}

/* The engine knows what is attached. */
static int attached(struct tb_win *w, const char *call, int error)
{
    if (error == TB_OK)
        return MPI_SUCCESS;
    if (error == TB_ERR_ARGUMENT)
        return tb_win_raise_argument(w, MPI_ERR_RMA_ATTACH, call, 2, "base", "%s", tb_error_story());
    return tb_win_raise_below(w, error, call);
}

int tb_mpi_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
    static const char call[] = "MPI_Win_attach";
    struct tb_win *w = tb_win_find(win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    int code = check_dynamic(w, call);
    if (code != MPI_SUCCESS)
        return code;
    if (size < 0)
        return tb_win_raise_argument(w, MPI_ERR_SIZE, call, 3, "size", "%lld is negative", (long long)size);
    if (base == NULL && size > 0)
        return tb_win_raise_null(w, call, 2, "base");
    return attached(w, call, tb_window_attach(w->window, base, (uint64_t)size));
}

int tb_mpi_Win_detach(MPI_Win win, const void *base)
{
    static const char call[] = "MPI_Win_detach";
    struct tb_win *w = tb_win_find(win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    int code = check_dynamic(w, call);
    return code == MPI_SUCCESS ? attached(w, call, tb_window_detach(w->window, base)) : code;
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

/* The lowest rank that has some; the first, if none has. */
static uint32_t first_with_memory(const struct tb_win *w)
{
    uint32_t rank = 0;
    while (rank < w->comm->size && w->parts[rank].size == 0)
        rank++;
    return rank < w->comm->size ? rank : 0;
}

/* What cannot be reached by load and store has no bytes here. */
int tb_mpi_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *disp_unit, void *baseptr)
{
    static const char call[] = "MPI_Win_shared_query";
    struct tb_win *w = tb_win_find(win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return tb_win_raise_argument(w, MPI_ERR_RMA_FLAVOR, call, 1, "win",
                                     "%s is a dynamic one, whose memory only its own process knows", tb_win_name(w));
    if (rank != MPI_PROC_NULL && (uint32_t)rank >= w->comm->size)
        return tb_win_raise_argument(w, MPI_ERR_RANK, call, 2, "rank", "%d is not a rank of %s, which has %u", rank,
                                     tb_win_name(w), w->comm->size);
    if (size == NULL || disp_unit == NULL || baseptr == NULL)
        return tb_win_raise_null(w, call,
                                 size == NULL        ? 3
                                 : disp_unit == NULL ? 4
                                                     : 5,
                                 size == NULL        ? "size"
                                 : disp_unit == NULL ? "disp_unit"
                                                     : "baseptr");
    uint32_t whose = rank == MPI_PROC_NULL ? first_with_memory(w) : (uint32_t)rank;
    void *memory = tb_window_host_memory(w->host, whose);
    *size = memory != NULL ? (MPI_Aint)w->parts[whose].size : 0;
    *disp_unit = (MPI_Aint)w->parts[whose].unit;
    *(void **)baseptr = memory;
    return MPI_SUCCESS;
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

/* Not all have called: it is still there for all of them, who may call again. */
static bool is_kept(int error)
{
    return error == TB_ERR_MISMATCH || error == TB_ERR_EPOCH || (error == TB_ERR_GIVEN_UP && !tb_param.keep_going);
}

/* Nobody returns before all have called: nothing is under way to anybody then. What targets have refused since the last
 * synchronisation that has told so is told here. */
int tb_mpi_Win_free(MPI_Win *win)
{
    static const char call[] = "MPI_Win_free";
    tb_require_active(call);
    if (win == NULL)
        return tb_raise_null(NULL, call, 1, "win");
    struct tb_win *w = tb_win_find(*win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", *win);
    int code = tb_win_check_no_exposure(w, call);
    if (code == MPI_SUCCESS)
        code = tb_win_check_no_access(w, call, true);
    if (code != MPI_SUCCESS)
        return code;
    struct tb_bearer bearer = tb_win_bearer(w);
    code = tb_attributes_delete(&bearer);
    if (code != MPI_SUCCESS)
        return tb_win_raise_code(w, code);
    int refused = tb_window_flush(w->window, TB_ANY_RANK, call);
    if (refused != TB_OK)
        code = tb_win_code_below(w, refused, call);
    bool lasts = !w->comm->bonded && !w->comm->foreign;
    if (w->comm->bonded) {
        tb_comm_unbond(w->comm, false);
        tb_bonds_settle(call);
    }
    int error = tb_comm_meet(w->comm, TB_WINDOW_FREE, call);
    if (error < 0 && lasts && code == MPI_SUCCESS) /* else it does not matter who has ended after having come here */
        code = tb_win_code_below(w, error, call);
    if (code != MPI_SUCCESS)
        code = tb_win_raise_code(w, code);
    if (lasts && error < 0 && is_kept(error))
        return code;
    win_destroy(w);
    *win = MPI_WIN_NULL;
    return code;
}

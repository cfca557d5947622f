/* Accesses to windows (MPI-5.0, 12.3): arguments are checked here, and the engine does the rest (engine/access.h). */
#include "mpi/binding_decls.h"
#include "mpi/request.h"
#include "mpi/win_check.h"

/* A call, and what it is given. */
struct access {
    const char *call;
    MPI_Win win;
    uint8_t win_at, op_at;
    bool asks; /* it returns a request */
    MPI_Request *request;
    struct tb_win_data origin;        /* without a name: there is none */
    const struct tb_win_data *result; /* NULL: there is none */
    struct tb_win_target target;
    MPI_Op op;
};

/* What the checks have found. */
struct found {
    struct tb_win *win;
    struct tb_buffer from, into;
    struct tb_access_target to;
    const struct tb_op *with;
};

#define ORIGIN(a, c, t)                                                                                                \
    {                                                                                                                  \
        .name = "origin", .address = (a), .count = (c), .datatype = (t), .address_at = 1, .count_at = 2,               \
        .datatype_at = 3                                                                                               \
    }
#define TARGET(r, d, c, t, at)                                                                                         \
    {                                                                                                                  \
        .rank = (r), .displacement = (d), .count = (c), .datatype = (t), .rank_at = (at), .displacement_at = (at) + 1, \
        .count_at = (at) + 2, .datatype_at = (at) + 3                                                                  \
    }

/* All members are named where no request is returned: else the whole of it would be cleared first, which takes as long
 * as the rest of a short access. */
#define NO_REQUEST .asks = false, .request = NULL
#define NO_RESULT  .result = NULL
#define NO_OP      .op = MPI_OP_NULL, .op_at = 0

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static int check_window(const struct access *a, struct found *f)
{
    f->win = tb_win_find(a->win);
    if (__builtin_expect(f->win == NULL, 0))
        return tb_raise_win(a->call, a->win_at, "win", a->win);
    if (a->asks && a->request == NULL)
        return tb_win_raise_null(f->win, a->call, a->win_at + 1, "request");
    return MPI_SUCCESS;
}

/* Everything but the operation. The target's rank is not MPI_PROC_NULL. */
static int check_sides(const struct access *a, struct found *f)
{
    struct tb_win *w = f->win;
    int code = tb_win_check_target(w, a->call, &a->target, &f->to);
    if (code == MPI_SUCCESS)
        code = tb_win_check_epoch(w, a->call, a->target.rank, a->asks);
    if (code == MPI_SUCCESS && a->origin.name != NULL)
        code = tb_win_check_data(w, a->call, &a->origin, &f->from);
    if (code == MPI_SUCCESS && a->origin.name != NULL)
        code = tb_win_check_match(w, a->call, &f->from, a->origin.name, &f->to);
    if (code == MPI_SUCCESS && a->result != NULL)
        code = tb_win_check_data(w, a->call, a->result, &f->into);
    if (code == MPI_SUCCESS && a->result != NULL)
        code = tb_win_check_match(w, a->call, &f->into, a->result->name, &f->to);
    return code;
}

static int check_op(const struct access *a, struct found *f)
{
    return tb_win_check_op(f->win, a->call, a->op_at, a->op, a->result != NULL,
                           a->origin.name != NULL ? &f->from : NULL, &f->to, &f->with);
}

/* An error of an access that was told by its request. */
static int raise(MPI_Win win, int code)
{
    struct tb_win *w = tb_win_find(win);
    return w != NULL ? tb_win_raise_code(w, code) : tb_raise_code(NULL, code);
}

/* The request that a call returns; of one that does nothing it is done. NULL is no error if none is asked for. */
static int request_make(const struct access *a, const struct found *f, bool nothing, struct tb_request **core)
{
    *core = NULL;
    if (!a->asks)
        return MPI_SUCCESS;
    struct tb_pending *p = tb_pending_new(nothing ? TB_PENDING_NOTHING : TB_PENDING_ACCESS, f->win->comm);
    if (p == NULL)
        return tb_win_raise_below(f->win, TB_ERR_MEMORY, a->call);
    if (!nothing)
        p->access = (struct tb_pending_access){a->win, raise};
    if (nothing)
        tb_pending_set_done(p, true);
    *a->request = tb_pending_handle(p);
    *core = &p->core;
    return MPI_SUCCESS;
}

/* What all calls begin with, and all but one of them end with. */
static inline int begin(const struct access *a, void (*start)(const struct found *f, struct tb_request *core))
{
    struct tb_request *core;
    struct found f;
    int code = check_window(a, &f);
    bool nobody = a->target.rank == MPI_PROC_NULL;
    if (code == MPI_SUCCESS && !nobody)
        code = check_sides(a, &f);
    if (code == MPI_SUCCESS && !nobody && a->op_at > 0)
        code = check_op(a, &f);
    if (code == MPI_SUCCESS)
        code = request_make(a, &f, nobody, &core);
    if (code == MPI_SUCCESS && !nobody)
        start(&f, core);
    return code;
}

/* ---- put and get ------------------------------------------------------------------------------------------------- */

static void put(const struct found *f, struct tb_request *core)
{
    tb_access_put(f->win->window, &f->from, &f->to, core);
}

static void get(const struct found *f, struct tb_request *core)
{
    tb_access_get(f->win->window, &f->from, &f->to, core);
}

int tb_mpi_Put(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win)
{
    struct access a = {.call = "MPI_Put",
                       NO_REQUEST,
                       NO_RESULT,
                       NO_OP,
                       .win = win,
                       .win_at = 8,
                       .origin = ORIGIN(origin_addr, origin_count, origin_datatype),
                       .target = TARGET(target_rank, target_disp, target_count, target_datatype, 4)};
    return begin(&a, put);
}

int tb_mpi_Rput(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win,
                MPI_Request *request)
{
    struct access a = {.call = "MPI_Rput",
                       .win = win,
                       .win_at = 8,
                       .asks = true,
                       .request = request,
                       .origin = ORIGIN(origin_addr, origin_count, origin_datatype),
                       .target = TARGET(target_rank, target_disp, target_count, target_datatype, 4)};
    return begin(&a, put);
}

int tb_mpi_Get(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win)
{
    struct access a = {.call = "MPI_Get",
                       NO_REQUEST,
                       NO_RESULT,
                       NO_OP,
                       .win = win,
                       .win_at = 8,
                       .origin = ORIGIN(origin_addr, origin_count, origin_datatype),
                       .target = TARGET(target_rank, target_disp, target_count, target_datatype, 4)};
    return begin(&a, get);
}

int tb_mpi_Rget(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win,
                MPI_Request *request)
{
    struct access a = {.call = "MPI_Rget",
                       .win = win,
                       .win_at = 8,
                       .asks = true,
                       .request = request,
                       .origin = ORIGIN(origin_addr, origin_count, origin_datatype),
                       .target = TARGET(target_rank, target_disp, target_count, target_datatype, 4)};
    return begin(&a, get);
}

/* ---- what combines ----------------------------------------------------------------------------------------------- */

static void accumulate(const struct found *f, struct tb_request *core)
{
    tb_access_accumulate(f->win->window, &f->from, &f->to, f->with, core);
}

static void fetch(const struct found *f, struct tb_request *core)
{
    tb_access_fetch(f->win->window, &f->from, &f->into, &f->to, f->with, core);
}

static int begin_fetch(struct access *a)
{
    if (a->op == MPI_NO_OP)
        a->origin.name = NULL; /* nothing of it counts */
    return begin(a, fetch);
}

int tb_mpi_Accumulate(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                      MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op,
                      MPI_Win win)
{
    struct access a = {.call = "MPI_Accumulate",
                       NO_REQUEST,
                       NO_RESULT,
                       .win = win,
                       .win_at = 9,
                       .op = op,
                       .op_at = 8,
                       .origin = ORIGIN(origin_addr, origin_count, origin_datatype),
                       .target = TARGET(target_rank, target_disp, target_count, target_datatype, 4)};
    return begin(&a, accumulate);
}

int tb_mpi_Raccumulate(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                       MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op,
                       MPI_Win win, MPI_Request *request)
{
    struct access a = {.call = "MPI_Raccumulate",
                       .win = win,
                       .win_at = 9,
                       .op = op,
                       .op_at = 8,
                       .asks = true,
                       .request = request,
                       .origin = ORIGIN(origin_addr, origin_count, origin_datatype),
                       .target = TARGET(target_rank, target_disp, target_count, target_datatype, 4)};
    return begin(&a, accumulate);
}

#define RESULT(a, c, t)                                                                                                \
    {                                                                                                                  \
        .name = "result", .address = (a), .count = (c), .datatype = (t), .address_at = 4, .count_at = 5,               \
        .datatype_at = 6                                                                                               \
    }

int tb_mpi_Get_accumulate(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                          void *result_addr, MPI_Count result_count, MPI_Datatype result_datatype, int target_rank,
                          MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op,
                          MPI_Win win)
{
    struct tb_win_data result = RESULT(result_addr, result_count, result_datatype);
    struct access a = {.call = "MPI_Get_accumulate",
                       NO_REQUEST,
                       .win = win,
                       .win_at = 12,
                       .op = op,
                       .op_at = 11,
                       .origin = ORIGIN(origin_addr, origin_count, origin_datatype),
                       .result = &result,
                       .target = TARGET(target_rank, target_disp, target_count, target_datatype, 7)};
    return begin_fetch(&a);
}

int tb_mpi_Rget_accumulate(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                           void *result_addr, MPI_Count result_count, MPI_Datatype result_datatype, int target_rank,
                           MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op,
                           MPI_Win win, MPI_Request *request)
{
    struct tb_win_data result = RESULT(result_addr, result_count, result_datatype);
    struct access a = {.call = "MPI_Rget_accumulate",
                       .win = win,
                       .win_at = 12,
                       .op = op,
                       .op_at = 11,
                       .asks = true,
                       .request = request,
                       .origin = ORIGIN(origin_addr, origin_count, origin_datatype),
                       .result = &result,
                       .target = TARGET(target_rank, target_disp, target_count, target_datatype, 7)};
    return begin_fetch(&a);
}

/* ---- one item ---------------------------------------------------------------------------------------------------- */

static int check_predefined(const struct access *a, struct tb_win *w, MPI_Datatype datatype, bool compares)
{
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL)
        return MPI_SUCCESS; /* which is told with the other arguments */
    bool right = type->basic != TB_BASIC_DERIVED;
    if (right && compares)
        right = type->basic == TB_BASIC_INT || type->basic == TB_BASIC_UINT || type->basic == TB_BASIC_LOGICAL ||
                type->basic == TB_BASIC_BYTE || (datatype == MPI_CHAR && !tb_param.strict);
    if (right)
        return MPI_SUCCESS;
    return tb_win_raise_argument(w, MPI_ERR_TYPE, a->call, compares ? 4 : 3, "datatype",
                                 compares ? "only integers, truth values and bytes can be compared"
                                          : "it is not a predefined one");
}

int tb_mpi_Fetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
                        MPI_Aint target_disp, MPI_Op op, MPI_Win win)
{
    struct tb_win_data result = {"result", result_addr, 1, datatype, 2, 0, 3};
    struct found f;
    struct access a = {.call = "MPI_Fetch_and_op",
                       NO_REQUEST,
                       .win = win,
                       .win_at = 7,
                       .op = op,
                       .op_at = 6,
                       .origin = {"origin", origin_addr, 1, datatype, 1, 0, 3},
                       .result = &result,
                       .target = {target_rank, target_disp, 1, datatype, 4, 5, 0, 3}};
    int code = check_window(&a, &f);
    if (code == MPI_SUCCESS && target_rank != MPI_PROC_NULL)
        code = check_predefined(&a, f.win, datatype, false);
    return code == MPI_SUCCESS ? begin_fetch(&a) : code;
}

int tb_mpi_Compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype,
                            int target_rank, MPI_Aint target_disp, MPI_Win win)
{
    struct tb_win_data result = {"result", result_addr, 1, datatype, 3, 0, 4};
    struct found f;
    struct access a = {.call = "MPI_Compare_and_swap",
                       NO_REQUEST,
                       NO_OP,
                       .win = win,
                       .win_at = 7,
                       .origin = {"origin", origin_addr, 1, datatype, 1, 0, 4},
                       .result = &result,
                       .target = {target_rank, target_disp, 1, datatype, 5, 6, 0, 4}};
    int code = check_window(&a, &f);
    if (code != MPI_SUCCESS || target_rank == MPI_PROC_NULL)
        return code;
    code = check_predefined(&a, f.win, datatype, true);
    if (code == MPI_SUCCESS)
        code = check_sides(&a, &f);
    if (code == MPI_SUCCESS && compare_addr == NULL)
        code = tb_win_raise_argument(f.win, MPI_ERR_BUFFER, a.call, 2, "compare_addr", "the pointer is null");
    if (code == MPI_SUCCESS)
        tb_access_compare(f.win->window, origin_addr, compare_addr, result_addr, &f.to);
    return code;
}

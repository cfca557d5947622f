/* Reduction operations (MPI-5.0, section 6.9): making and asking them, and reducing without communication. */
#include "mpi/op.h"

#include "mpi/check.h"
#include "mpi/error.h"
#include "mpi/binding_decls.h"

/* The program's function is the context of its operation: nothing else needs to live as long. */
static void call_small(void *context, void *in, void *inout, int count, uintptr_t type)
{
    MPI_User_function *function = (MPI_User_function *)(uintptr_t)context;
    MPI_Datatype datatype = (MPI_Datatype)type;
    function(in, inout, &count, &datatype);
}

static void call_large(void *context, void *in, void *inout, int64_t count, uintptr_t type)
{
    MPI_User_function_c *function = (MPI_User_function_c *)(uintptr_t)context;
    MPI_Datatype datatype = (MPI_Datatype)type;
    MPI_Count length = count;
    function(in, inout, &length, &datatype);
}

const struct tb_op *tb_op_find(MPI_Op op)
{
    if (tb_handle_predefined(op))
        return tb_op_predefined((uintptr_t)op);
    const struct tb_user_op *user =
        tb_table_find(&tb_self.tables[TB_OBJECT_OP], TB_OBJECT_OP, sizeof(struct tb_user_op), op);
    return user != NULL ? user->op : NULL;
}

static __attribute__((cold)) int raise_op(struct tb_comm *comm, const char *call, int position, MPI_Op op)
{
    tb_require_active(call);
    return tb_raise_argument(comm, MPI_ERR_OP, call, position, "op", "%s",
                             op == MPI_OP_NULL ? "it is MPI_OP_NULL"
                                               : "this is no handle of an operation, or it has been freed");
}

int tb_op_get(struct tb_comm *comm, const char *call, int position, MPI_Op handle, const struct tb_type *type,
              const struct tb_op **op)
{
    const struct tb_op *found = tb_op_find(handle);
    if (found == NULL)
        return raise_op(comm, call, position, handle);
    if (found->one_sided)
        return tb_raise_argument(comm, MPI_ERR_OP, call, position, "op", "%s is for one-sided communication only",
                                 found->name);
    if (tb_op_check(found, type) != TB_OK)
        return tb_raise_argument(comm, MPI_ERR_OP, call, position, "op", "%s", tb_error_story());
    if (__builtin_expect(tb_self.job.mixed, 0) && comm != NULL && tb_op_orders_chars(found, type) &&
        !tb_are_alike(comm, TB_TRAIT_CHAR))
        return tb_raise_order(call, position, comm, found->name);
    *op = found;
    return MPI_SUCCESS;
}

int tb_mpi_Op_create(struct tb_callback user_fn, int commute, MPI_Op *op)
{
    static const char call[] = "MPI_Op_create";
    tb_require_active(call);
    if (user_fn.function == NULL || op == NULL)
        return tb_raise_null(NULL, call, user_fn.function == NULL ? 1 : 3, user_fn.function == NULL ? "user_fn" : "op");
    struct tb_user_op *user = tb_handle_take(TB_OBJECT_OP, sizeof *user);
    if (user == NULL)
        return tb_raise_below(NULL, TB_ERR_MEMORY, call);
    int error = tb_op_create(user_fn.large ? NULL : call_small, user_fn.large ? call_large : NULL,
                             (void *)(uintptr_t)user_fn.function, commute != 0, &user->op);
    if (error < 0) {
        tb_handle_give(TB_OBJECT_OP, user);
        return tb_raise_below(NULL, error, call);
    }
    *op = (MPI_Op)(uintptr_t)user->head.value;
    return MPI_SUCCESS;
}

int tb_mpi_Op_free(MPI_Op *op)
{
    static const char call[] = "MPI_Op_free";
    tb_require_active(call);
    if (op == NULL)
        return tb_raise_null(NULL, call, 1, "op");
    if (tb_handle_predefined(*op) && tb_op_find(*op) != NULL)
        return tb_raise_argument(NULL, MPI_ERR_OP, call, 1, "op", "%s is predefined and cannot be freed",
                                 tb_op_find(*op)->name);
    if (tb_op_find(*op) == NULL)
        return raise_op(NULL, call, 1, *op);
    struct tb_user_op *user =
        tb_table_find(&tb_self.tables[TB_OBJECT_OP], TB_OBJECT_OP, sizeof(struct tb_user_op), *op);
    tb_op_drop(user->op);
    tb_handle_give(TB_OBJECT_OP, user);
    *op = MPI_OP_NULL;
    return MPI_SUCCESS;
}

int tb_mpi_Op_commutative(MPI_Op op, int *commute)
{
    static const char call[] = "MPI_Op_commutative";
    const struct tb_op *found = tb_op_find(op);
    tb_require_active(call);
    if (found == NULL)
        return raise_op(NULL, call, 1, op);
    if (commute == NULL)
        return tb_raise_null(NULL, call, 2, "commute");
    *commute = found->commutative;
    return MPI_SUCCESS;
}

int tb_mpi_Op_toint(MPI_Op op)
{
    return tb_handle_to_int(op);
}

MPI_Op tb_mpi_Op_fromint(int op)
{
    return tb_handle_from_int(TB_OBJECT_OP, sizeof(struct tb_user_op), op, MPI_OP_NULL);
}

int tb_mpi_Reduce_local(const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op)
{
    static const struct tb_names in = {
        "MPI_Reduce_local", "inbuf", "count", "datatype", NULL, NULL, NULL, 1, 3, 4, 0, 0, 0};
    static const struct tb_names inout = {
        "MPI_Reduce_local", "inoutbuf", "count", "datatype", NULL, NULL, NULL, 2, 3, 4, 0, 0, 0};
    const struct tb_type *type = tb_type_find(datatype);
    const struct tb_op *found = NULL;
    tb_require_active(in.call);
    if (!tb_check_data(type, inbuf, count))
        return tb_raise_data(&in, NULL, inbuf, count, datatype);
    if (!tb_check_data(type, inoutbuf, count))
        return tb_raise_data(&inout, NULL, inoutbuf, count, datatype);
    if (inbuf == MPI_IN_PLACE || inoutbuf == MPI_IN_PLACE || (inbuf == inoutbuf && count > 0 && inbuf != MPI_BOTTOM))
        return tb_raise_argument(NULL, MPI_ERR_BUFFER, in.call, inoutbuf == MPI_IN_PLACE ? 2 : 1,
                                 inoutbuf == MPI_IN_PLACE ? "inoutbuf" : "inbuf", "the two buffers must be different");
    int code = tb_op_get(NULL, in.call, 5, op, type, &found);
    if (code != MPI_SUCCESS)
        return code;
    int error = tb_op_apply(found, inbuf, inoutbuf, (uint64_t)count, type);
    return error < 0 ? tb_raise_below(NULL, error, in.call) : MPI_SUCCESS;
}

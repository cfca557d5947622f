/*
 * The generated bindings, against implementations that only note what reaches them. The build runs bindings.py on this
 * file, so the calls below end in the functions below.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <tombolo.h>

#include "mpi/binding_decls.h"

static struct {
    int64_t count;       /* the count that arrived */
    struct tb_ints a, b; /* the arrays that arrived */
    struct tb_callback callback;
    struct tb_form form;
    const void *pointer; /* the result pointer that arrived */
    int64_t result;      /* what the implementation writes there */
    int code;            /* what it returns */
    const char *unsupported;
    MPI_Comm comm;
} seen;

int tb_mpi_unsupported(const char *call, MPI_Comm comm)
{
    seen.unsupported = call;
    seen.comm = comm;
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

static int answer(MPI_Count *result)
{
    seen.pointer = result;
    if (result)
        *result = seen.result;
    return seen.code;
}

int tb_mpi_Send(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    seen.count = count;
    seen.comm = comm;
    return seen.code;
}

int tb_mpi_Type_size(MPI_Datatype datatype, MPI_Count *size)
{
    return answer(size);
}

int tb_mpi_Pack(const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf, MPI_Count outsize,
                MPI_Count *position, MPI_Comm comm)
{
    seen.count = position ? *position : -1;
    return answer(position);
}

int tb_mpi_Type_get_extent(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
    seen.pointer = lb;
    *extent = seen.result;
    return seen.code;
}

int tb_mpi_Allgatherv(const struct tb_form *form, const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                      void *recvbuf, struct tb_ints recvcounts, struct tb_ints displs, MPI_Datatype recvtype,
                      MPI_Comm comm)
{
    seen.form = *form;
    seen.a = recvcounts;
    seen.b = displs;
    return seen.code;
}

int tb_mpi_Op_create(struct tb_callback user_fn, int commute, MPI_Op *op)
{
    seen.callback = user_fn;
    return seen.code;
}

int tb_mpi_Type_get_envelope_c(MPI_Datatype datatype, MPI_Count *num_integers, MPI_Count *num_addresses,
                               MPI_Count *num_large_counts, MPI_Count *num_datatypes, int *combiner)
{
    return answer(num_large_counts);
}

int tb_mpi_Comm_set_attr(MPI_Comm comm, int comm_keyval, void *attribute_val)
{
    seen.count = comm_keyval;
    return seen.code;
}

int tb_mpi_Pcontrol(const int level)
{
    seen.count = level;
    return seen.code;
}

double tb_mpi_Wtime(void)
{
    return 1.5;
}

MPI_Comm tb_mpi_Comm_fromint(int comm)
{
    return comm == 0x101 ? MPI_COMM_WORLD : MPI_COMM_NULL;
}

static int reset(void **state)
{
    memset(&seen, 0, sizeof seen);
    return 0;
}

static void test_counts_widen(void **state)
{
    seen.code = MPI_ERR_COUNT;
    assert_int_equal(MPI_Send(NULL, -7, MPI_INT, 0, 0, MPI_COMM_SELF), MPI_ERR_COUNT);
    assert_int_equal(seen.count, -7);
    assert_ptr_equal(seen.comm, MPI_COMM_SELF);
    MPI_Send_c(NULL, (MPI_Count)1 << 40, MPI_INT, 0, 0, MPI_COMM_WORLD);
    assert_int_equal(seen.count, (int64_t)1 << 40);
    PMPI_Send(NULL, 3, MPI_INT, 0, 0, MPI_COMM_WORLD);
    assert_int_equal(seen.count, 3);
}

static void test_results_narrow(void **state)
{
    int small = 11;
    MPI_Count large = 11;
    seen.result = INT_MAX;
    assert_int_equal(MPI_Type_size(MPI_INT, &small), MPI_SUCCESS);
    assert_int_equal(small, INT_MAX);
    seen.result = (int64_t)INT_MAX + 1;
    MPI_Type_size(MPI_INT, &small);
    assert_int_equal(small, MPI_UNDEFINED);
    MPI_Type_size_c(MPI_INT, &large);
    assert_int_equal(large, (int64_t)INT_MAX + 1);
    large = 0;
    MPI_Type_size_x(MPI_INT, &large);
    assert_int_equal(large, (int64_t)INT_MAX + 1);
    seen.result = MPI_UNDEFINED;
    MPI_Type_size(MPI_INT, &small);
    assert_int_equal(small, MPI_UNDEFINED);
}

static void test_results_stay_on_error(void **state)
{
    int small = 11;
    seen.result = 4;
    seen.code = MPI_ERR_TYPE;
    assert_int_equal(MPI_Type_size(MPI_DATATYPE_NULL, &small), MPI_ERR_TYPE);
    assert_int_equal(small, 11);
}

static void test_null_stays_null(void **state)
{
    seen.code = MPI_ERR_ARG;
    seen.pointer = &seen;
    assert_int_equal(MPI_Type_size(MPI_INT, NULL), MPI_ERR_ARG);
    assert_null(seen.pointer);
    MPI_Pack(NULL, 0, MPI_INT, NULL, 0, NULL, MPI_COMM_WORLD);
    assert_null(seen.pointer);
    assert_int_equal(seen.count, -1);
    MPI_Allgatherv(NULL, 0, MPI_INT, NULL, NULL, NULL, MPI_INT, MPI_COMM_WORLD);
    assert_null(seen.a.base);
    MPI_Op_create_c(NULL, 1, NULL);
    assert_null(seen.callback.function);
    assert_true(seen.callback.large);
}

static void test_position_goes_in_and_out(void **state)
{
    int position = 24;
    seen.result = 32;
    assert_int_equal(MPI_Pack(NULL, 1, MPI_INT, NULL, 100, &position, MPI_COMM_WORLD), MPI_SUCCESS);
    assert_int_equal(seen.count, 24);
    assert_int_equal(position, 32);
}

static void test_addresses_pass_through(void **state)
{
    MPI_Aint lb = 0, extent = 0;
    seen.result = INT64_MAX;
    MPI_Type_get_extent(MPI_INT, &lb, &extent);
    assert_ptr_equal(seen.pointer, &lb);
    assert_int_equal(extent, INT64_MAX);
}

static void test_arrays_are_viewed(void **state)
{
    const int counts[] = {1, -2, INT_MAX}, displs[] = {0, 5, INT_MIN};
    const MPI_Count large_counts[] = {1, -2, INT64_MAX};
    const MPI_Aint large_displs[] = {0, 5, INT64_MIN};
    MPI_Allgatherv(NULL, 0, MPI_INT, NULL, counts, displs, MPI_INT, MPI_COMM_WORLD);
    assert_ptr_equal(seen.a.base, counts);
    assert_int_equal(tb_ints_at(seen.a, 1), -2);
    assert_int_equal(tb_ints_at(seen.a, 2), INT_MAX);
    assert_int_equal(tb_ints_at(seen.b, 2), INT_MIN);
    MPI_Allgatherv_c(NULL, 0, MPI_INT, NULL, large_counts, large_displs, MPI_INT, MPI_COMM_WORLD);
    assert_ptr_equal(seen.b.base, large_displs);
    assert_int_equal(tb_ints_at(seen.a, 1), -2);
    assert_int_equal(tb_ints_at(seen.a, 2), INT64_MAX);
    assert_int_equal(tb_ints_at(seen.b, 2), INT64_MIN);
}

static void check_form(const char *call, enum tb_form_kind kind, const MPI_Request *request, int request_at)
{
    assert_string_equal(seen.form.call, call);
    assert_int_equal(seen.form.kind, kind);
    assert_ptr_equal(seen.form.request, request);
    assert_int_equal(seen.form.request_at, request_at);
}

static void test_forms_are_told_apart(void **state)
{
    const int counts[] = {1, 2};
    const MPI_Count large_counts[] = {3, 4};
    MPI_Request request;
    MPI_Info info = (MPI_Info)(uintptr_t)1234;
    MPI_Allgatherv(NULL, 0, MPI_INT, NULL, counts, counts, MPI_INT, MPI_COMM_WORLD);
    check_form("MPI_Allgatherv", TB_FORM_BLOCKING, NULL, 0);
    MPI_Iallgatherv(NULL, 0, MPI_INT, NULL, counts, counts, MPI_INT, MPI_COMM_WORLD, &request);
    check_form("MPI_Iallgatherv", TB_FORM_NONBLOCKING, &request, 9);
    assert_int_equal(tb_ints_at(seen.a, 1), 2);
    PMPI_Iallgatherv_c(NULL, 0, MPI_INT, NULL, large_counts, NULL, MPI_INT, MPI_COMM_WORLD, &request);
    check_form("MPI_Iallgatherv", TB_FORM_NONBLOCKING, &request, 9);
    assert_int_equal(tb_ints_at(seen.a, 1), 4);
    MPI_Allgatherv_init(NULL, 0, MPI_INT, NULL, counts, counts, MPI_INT, MPI_COMM_WORLD, info, &request);
    check_form("MPI_Allgatherv_init", TB_FORM_PERSISTENT, &request, 10);
    assert_ptr_equal(seen.form.info, info);
    MPI_Allgatherv_init_c(NULL, 0, MPI_INT, NULL, large_counts, NULL, MPI_INT, MPI_COMM_WORLD, info, NULL);
    check_form("MPI_Allgatherv_init", TB_FORM_PERSISTENT, NULL, 10);
    assert_int_equal(tb_ints_at(seen.a, 0), 3);
}

static void add_small(void *in, void *inout, int *len, MPI_Datatype *type) {}

static void add_large(void *in, void *inout, MPI_Count *len, MPI_Datatype *type) {}

static void test_callbacks_are_told_apart(void **state)
{
    MPI_Op op;
    MPI_Op_create(add_small, 1, &op);
    assert_false(seen.callback.large);
    assert_true((MPI_User_function *)seen.callback.function == add_small);
    MPI_Op_create_c(add_large, 1, &op);
    assert_true(seen.callback.large);
    assert_true((MPI_User_function_c *)seen.callback.function == add_large);
}

static void test_other_shapes(void **state)
{
    MPI_Count large = 0;
    int small = 0;
    assert_true(MPI_Wtime() == 1.5);
    assert_ptr_equal(MPI_Comm_fromint(0x101), MPI_COMM_WORLD);
    MPI_Pcontrol(2, "more", 3.5);
    assert_int_equal(seen.count, 2);
    MPI_Attr_put(MPI_COMM_SELF, 77, NULL);
    assert_int_equal(seen.count, 77);
    /* One of these two is implemented above; neither stands for the other. */
    seen.result = 9;
    assert_int_equal(MPI_Type_get_envelope_c(MPI_INT, NULL, NULL, &large, NULL, NULL), MPI_SUCCESS);
    assert_int_equal(large, 9);
    assert_int_equal(MPI_Type_get_envelope(MPI_INT, &small, &small, &small, &small), MPI_ERR_UNSUPPORTED_OPERATION);
}

static void test_unsupported_calls_say_so(void **state)
{
    int number;
    assert_int_equal(MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_SELF), MPI_ERR_UNSUPPORTED_OPERATION);
    assert_string_equal(seen.unsupported, "MPI_Bcast");
    assert_ptr_equal(seen.comm, MPI_COMM_SELF);
    PMPI_Bcast_c(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD);
    assert_string_equal(seen.unsupported, "MPI_Bcast_c");
    assert_int_equal(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_UNSUPPORTED_OPERATION);
    assert_ptr_equal(seen.comm, MPI_COMM_NULL);
    assert_ptr_equal(MPI_Type_fromint(0), MPI_DATATYPE_NULL);
    assert_ptr_equal(MPI_Win_fromint(0), MPI_WIN_NULL);
    seen.unsupported = NULL;
    assert_int_equal(MPI_T_cvar_get_num(&number), MPI_T_ERR_NOT_SUPPORTED);
    assert_null(seen.unsupported);
}

static bool is_listed(const char *name)
{
    for (const char *const *call = Tombolo_unimplemented(); *call; call++)
        if (strcmp(*call, name) == 0)
            return true;
    return false;
}

static void test_unimplemented_are_listed(void **state)
{
    size_t count = 0;
    while (Tombolo_unimplemented()[count])
        count++;
    assert_int_equal(count, tb_mpi_unimplemented_count);
    /* Of the calls: Send, Type_size (with _x), Pack, Type_get_extent (with _x), Allgatherv (in three forms) and
     * Op_create under both widths, Type_get_envelope_c, Comm_set_attr with Attr_put, Pcontrol, Wtime, Comm_fromint. */
    assert_int_equal(count, 664 - (2 + 3 + 2 + 3 + 6 + 2 + 1 + 2 + 1 + 1 + 1));
    assert_true(is_listed("MPI_Bcast_c"));
    assert_true(is_listed("MPI_T_init_thread"));
    assert_true(is_listed("MPI_Type_get_envelope"));
    assert_false(is_listed("MPI_Send"));
    assert_false(is_listed("MPI_Type_size_x"));
    assert_false(is_listed("MPI_Attr_put"));
    assert_string_equal(Tombolo_version(), TB_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_counts_widen, reset),
        cmocka_unit_test_setup(test_results_narrow, reset),
        cmocka_unit_test_setup(test_results_stay_on_error, reset),
        cmocka_unit_test_setup(test_null_stays_null, reset),
        cmocka_unit_test_setup(test_position_goes_in_and_out, reset),
        cmocka_unit_test_setup(test_addresses_pass_through, reset),
        cmocka_unit_test_setup(test_arrays_are_viewed, reset),
        cmocka_unit_test_setup(test_forms_are_told_apart, reset),
        cmocka_unit_test_setup(test_callbacks_are_told_apart, reset),
        cmocka_unit_test_setup(test_other_shapes, reset),
        cmocka_unit_test_setup(test_unsupported_calls_say_so, reset),
        cmocka_unit_test_setup(test_unimplemented_are_listed, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

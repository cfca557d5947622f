/* The binary interface: its version, sizes, and what is known of Fortran, at any time. */
#include "test.h"

static void expect_value(MPI_Info info, const char *key, const char *expected)
{
    char value[MPI_MAX_INFO_VAL] = "";
    int flag = 0, length = sizeof value;
    MPI_Info_get_string(info, key, &length, value, &flag);
    CHECK(flag && strcmp(value, expected) == 0, "%s is \"%s\", not %s", key, value, expected);
}

static void expect_sizes(void)
{
    MPI_Info info = MPI_INFO_NULL;
    int major = -1, minor = -1;
    MPI_Abi_get_version(&major, &minor);
    CHECK(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION, "version %d.%d", major, minor);
    CHECK_EQUAL(MPI_Abi_get_info(&info), MPI_SUCCESS);
    expect_value(info, "mpi_aint_size", sizeof(MPI_Aint) == 8 ? "8" : "4");
    expect_value(info, "mpi_count_size", "8");
    MPI_Info_free(&info);
}

/* A type is said to be there if it has a size. MPI is active. */
static void expect_support(MPI_Info info, const char *key, MPI_Datatype type)
{
    int size = 0;
    MPI_Type_size(type, &size);
    expect_value(info, key, size != MPI_UNDEFINED ? "true" : "false");
}

static void expect_fortran(bool active)
{
    MPI_Info info = MPI_INFO_NULL;
    int32_t yes = -7, no = -7;
    int is_set = -1;
    CHECK_EQUAL(MPI_Abi_get_fortran_info(&info), MPI_SUCCESS);
    expect_value(info, "mpi_logical_size", "4");
    expect_value(info, "mpi_integer_size", "4");
    expect_value(info, "mpi_real_size", "4");
    expect_value(info, "mpi_double_precision_size", "8");
    if (active) {
        expect_support(info, "mpi_integer8_supported", MPI_INTEGER8);
        expect_support(info, "mpi_real16_supported", MPI_REAL16);
        expect_support(info, "mpi_complex16_supported", MPI_COMPLEX16);
    }
    MPI_Info_free(&info);
    CHECK_EQUAL(MPI_Abi_get_fortran_booleans(4, &yes, &no, &is_set), MPI_SUCCESS);
    CHECK(is_set == 1 && yes == 1 && no == 0, "set %d, true %d, false %d", is_set, yes, no);
}

/* Reductions of logicals give the values that were told. */
static void expect_reduction(void)
{
    int32_t in = 1, out = -7;
    MPI_Allreduce(&in, &out, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD);
    CHECK_EQUAL(out, 1);
    in = 0;
    MPI_Allreduce(&in, &out, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD);
    CHECK_EQUAL(out, 0);
}

/* What agrees may be said once; what does not, never. */
static void set_fortran(void)
{
    MPI_Info info, wrong;
    int32_t yes = 1, no = 0, all = -1;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Abi_get_fortran_info(&info);
    MPI_Info_dup(info, &wrong);
    MPI_Info_set(wrong, "mpi_integer_size", "8");
    CHECK_CLASS(MPI_Abi_set_fortran_info(wrong), MPI_ERR_ABI);
    MPI_Info_delete(wrong, "mpi_integer_size");
    CHECK_CLASS(MPI_Abi_set_fortran_info(wrong), MPI_ERR_ABI);
    CHECK_CLASS(MPI_Abi_set_fortran_info(MPI_INFO_NULL), MPI_ERR_INFO);
    MPI_Info_set(info, "mpi_real16_supported", "false"); /* a compiler may have less */
    CHECK_EQUAL(MPI_Abi_set_fortran_info(info), MPI_SUCCESS);
    CHECK_CLASS(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI);
    MPI_Info_free(&info);
    MPI_Info_free(&wrong);
    CHECK_CLASS(MPI_Abi_set_fortran_booleans(8, &yes, &no), MPI_ERR_ABI);
    CHECK_CLASS(MPI_Abi_set_fortran_booleans(4, &all, &no), MPI_ERR_ABI);
    CHECK_CLASS(MPI_Abi_set_fortran_booleans(4, NULL, &no), MPI_ERR_ARG);
    CHECK_EQUAL(MPI_Abi_set_fortran_booleans(4, &yes, &no), MPI_SUCCESS);
    CHECK_CLASS(MPI_Abi_set_fortran_booleans(4, &yes, &no), MPI_ERR_ABI);
    CHECK_CLASS(MPI_Abi_get_fortran_booleans(4, &yes, &no, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Abi_get_fortran_info(NULL), MPI_ERR_ARG);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    expect_sizes();
    expect_fortran(false);
    test_begin(&argc, &argv);
    expect_sizes();
    expect_fortran(true);
    expect_reduction();
    set_fortran();
    expect_fortran(true);
    MPI_Finalize();
    expect_fortran(false);
    return test_verdict();
}

/* Algorithms by name: info keys on communicators choose what runs, and the results are the same as ever, for all sizes
 * of a class and for elements of any size. */
#include "test.h"

#define LARGEST 40000

/* A broadcast from every root and a sum. */
static void use(MPI_Comm comm, int count)
{
    static double values[LARGEST], sums[LARGEST];
    for (int root = 0; root < test_size; root++) {
        for (int i = 0; i < count; i++)
            values[i] = test_rank == root ? root * 1000.0 + i : -1;
        MPI_Bcast(values, count, MPI_DOUBLE, root, comm);
        for (int i = 0; i < count; i++)
            if (values[i] != root * 1000.0 + i) {
                CHECK(false, "element %d of %d from root %d is %g", i, count, root, values[i]);
                break;
            }
        MPI_Bcast(values, count * (int)sizeof(double), MPI_BYTE, root, comm);
        CHECK_EQUAL(count > 0 ? values[count - 1] : 0, count > 0 ? root * 1000.0 + count - 1 : 0);
    }
    for (int i = 0; i < count; i++)
        values[i] = test_rank + i;
    MPI_Allreduce(values, sums, count, MPI_DOUBLE, MPI_SUM, comm);
    double ranks = test_size * (test_size - 1) / 2.0;
    for (int i = 0; i < count; i++)
        if (sums[i] != ranks + (double)i * test_size) {
            CHECK(false, "element %d of %d is %g instead of %g", i, count, sums[i], ranks + (double)i * test_size);
            break;
        }
}

static void use_all(MPI_Comm comm)
{
    static const int counts[] = {0, 1, 3, 100, 127, 1000, 1023, 1100, 9999, LARGEST};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        use(comm, counts[i]);
}

/* The keys in force are returned as given, and none that nobody knows. */
static void check_info(MPI_Comm comm, const char *key, const char *expected)
{
    MPI_Info info;
    char value[64] = "";
    int flag, length = sizeof value;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get_string(info, key, &length, value, &flag);
    CHECK_EQUAL(flag, *expected != 0);
    CHECK(!flag || strcmp(value, expected) == 0, "\"%s\" for %s instead of \"%s\"", value, key, expected);
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    static const char *const keys[][2] = {{"chain:1k", "ring:4k"},
                                          {"binomial", "halving"},
                                          {"split-binary:2k", "chain:3000"},
                                          {"linear", "doubling"},
                                          {"", ""}};
    test_begin(&argc, &argv);
    MPI_Comm later;
    MPI_Comm_dup(MPI_COMM_WORLD, &later);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        MPI_Info info;
        MPI_Comm comm;
        MPI_Info_create(&info);
        MPI_Info_set(info, "tombolo_bcast", keys[i][0]);
        MPI_Info_set(info, "tombolo_allreduce", keys[i][1]);
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
        use_all(comm);
        check_info(comm, "tombolo_bcast", keys[i][0]);
        MPI_Comm_free(&comm);
        MPI_Info_set(info, "tombolo_juggle", "three balls");
        MPI_Comm_set_info(later, info);
        MPI_Info_free(&info);
        check_info(later, "tombolo_allreduce", keys[i][1]);
        check_info(later, "tombolo_juggle", "");
        check_info(MPI_COMM_WORLD, "tombolo_allreduce", "");
        use_all(later);
    }
    MPI_Comm_free(&later);
    return test_end();
}

/* How much of a datatype has arrived: MPI_Get_count and MPI_Get_elements after every possible length of a message, for
 * types of several basic elements, and MPI_Status_set_elements back again. */
#include "test.h"

#define BYTES 400 /* the longest message */

/* The sizes of the basic elements of one item, in order. */
struct sequence {
    const char *name;
    MPI_Datatype type;
    int sizes[32], count;
};

static int item_bytes(const struct sequence *s)
{
    int sum = 0;
    for (int i = 0; i < s->count; i++)
        sum += s->sizes[i];
    return sum;
}

/* Elements in the first `bytes` bytes; MPI_UNDEFINED if they end within one. */
static int elements_in(const struct sequence *s, int bytes)
{
    int elements = 0;
    for (int at = 0; at < bytes; elements++)
        at += s->sizes[elements % s->count];
    int sum = 0;
    for (int i = 0; i < elements; i++)
        sum += s->sizes[i % s->count];
    return sum == bytes ? elements : MPI_UNDEFINED;
}

static void check_length(const struct sequence *s, int bytes)
{
    static char out[BYTES], in[8192];
    MPI_Status status;
    int whole = item_bytes(s), count = -5, elements = -5;
    MPI_Count wide = -5;
    bool between = elements_in(s, bytes) != MPI_UNDEFINED; /* what ends within an element is no message of this type */
    MPI_Sendrecv(out, bytes, MPI_BYTE, test_next(), 4, in, between ? (BYTES + whole - 1) / whole : BYTES,
                 between ? s->type : MPI_BYTE, test_previous(), 4, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, s->type, &count);
    CHECK(count == (bytes % whole == 0 ? bytes / whole : MPI_UNDEFINED), "%s: count %d of %d bytes", s->name, count,
          bytes);
    MPI_Get_elements(&status, s->type, &elements);
    CHECK(elements == elements_in(s, bytes), "%s: %d elements in %d bytes", s->name, elements, bytes);
    MPI_Get_elements_x(&status, s->type, &wide);
    CHECK_EQUAL(wide, elements);
    MPI_Get_elements_c(&status, s->type, &wide);
    CHECK_EQUAL(wide, elements);
    if (elements == MPI_UNDEFINED)
        return;
    MPI_Status set;
    int again = -5;
    memset(&set, 0, sizeof set);
    MPI_Status_set_elements(&set, s->type, elements);
    MPI_Get_elements(&set, s->type, &again);
    CHECK_EQUAL(again, elements);
    MPI_Get_count(&set, MPI_BYTE, &again);
    CHECK_EQUAL(again, bytes);
}

static void test_sequences(void)
{
    MPI_Datatype ints, record, records, pairs, gaps, nested, types[4];
    const int lengths[] = {3, 1, 0, 2};
    const MPI_Aint places[] = {0, 8, 100, 16};
    MPI_Type_contiguous(3, MPI_INT, &ints);
    types[0] = MPI_CHAR, types[1] = MPI_DOUBLE, types[2] = MPI_INT, types[3] = MPI_SHORT;
    MPI_Type_create_struct(4, lengths, places, types, &record);
    MPI_Type_vector(2, 1, 2, record, &records);
    MPI_Type_vector(2, 2, 3, MPI_DOUBLE_INT, &pairs);
    MPI_Type_create_resized(MPI_SHORT_INT, -4, 40, &gaps);
    const int two[] = {1, 2};
    const MPI_Aint where[] = {0, 300};
    types[0] = records, types[1] = ints;
    MPI_Type_create_struct(2, two, where, types, &nested);
    struct sequence all[] = {
        {"int", MPI_INT, {4}, 1},
        {"double int", MPI_DOUBLE_INT, {8, 4}, 2},
        {"short int", MPI_SHORT_INT, {2, 4}, 2},
        {"complex", MPI_C_DOUBLE_COMPLEX, {16}, 1},
        {"contiguous", ints, {4, 4, 4}, 3},
        {"struct", record, {1, 1, 1, 8, 2, 2}, 6},
        {"vector of structs", records, {1, 1, 1, 8, 2, 2, 1, 1, 1, 8, 2, 2}, 12},
        {"vector of pairs", pairs, {8, 4, 8, 4, 8, 4, 8, 4}, 8},
        {"resized pair", gaps, {2, 4}, 2},
        {"struct of those", nested, {1, 1, 1, 8, 2, 2, 1, 1, 1, 8, 2, 2, 4, 4, 4, 4, 4, 4}, 18},
    };
    MPI_Datatype *made[] = {&ints, &record, &records, &pairs, &gaps, &nested};
    for (int i = 0; i < 6; i++)
        MPI_Type_commit(made[i]);
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        for (int bytes = 0; bytes <= BYTES; bytes += bytes < 130 ? 1 : 23)
            check_length(&all[k], bytes);
    for (int i = 0; i < 6; i++)
        MPI_Type_free(made[i]);
}

/* Types without data, and numbers that an int cannot hold. */
static void test_edges(void)
{
    MPI_Datatype empty, huge;
    MPI_Status status;
    int count = -5;
    MPI_Count wide = -5;
    char byte = 0;
    MPI_Type_contiguous(0, MPI_DOUBLE, &empty);
    MPI_Type_commit(&empty);
    MPI_Sendrecv(&byte, 5, empty, test_next(), 5, NULL, 3, empty, test_previous(), 5, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, empty, &count);
    CHECK_EQUAL(count, 0);
    MPI_Get_elements(&status, empty, &count);
    CHECK_EQUAL(count, 0);
    MPI_Sendrecv(&byte, 1, MPI_BYTE, test_next(), 6, &byte, 1, MPI_BYTE, test_previous(), 6, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, empty, &count);
    CHECK_EQUAL(count, MPI_UNDEFINED);
    MPI_Get_elements(&status, empty, &count);
    CHECK_EQUAL(count, MPI_UNDEFINED);
    memset(&status, 0, sizeof status);
    MPI_Type_contiguous(1 << 20, MPI_INT, &huge);
    MPI_Status_set_elements_c(&status, huge, (MPI_Count)1 << 40);
    MPI_Get_elements(&status, huge, &count);
    CHECK_EQUAL(count, MPI_UNDEFINED);
    MPI_Get_elements_c(&status, huge, &wide);
    CHECK_EQUAL(wide, (MPI_Count)1 << 40);
    MPI_Get_count(&status, huge, &count);
    CHECK_EQUAL(count, 1 << 20);
    MPI_Get_count_c(&status, MPI_BYTE, &wide);
    CHECK_EQUAL(wide, (MPI_Count)1 << 42);
    CHECK_CLASS(MPI_Status_set_elements_c(&status, huge, (MPI_Count)1 << 62), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Status_set_elements(&status, huge, -1), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Status_set_elements(&status, empty, 1), MPI_ERR_COUNT);
    MPI_Type_free(&empty);
    MPI_Type_free(&huge);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    test_sequences();
    test_edges();
    return test_end();
}

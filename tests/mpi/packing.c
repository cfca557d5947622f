/* MPI_Pack and its like: several pieces into one buffer and out of it, on the same rank and on another; errors; the
 * canonical form with known bytes; absolute addresses. */
#include "test.h"

#include <stddef.h>

struct item {
    char tag[2];
    double value;
    long number;
};

static MPI_Datatype item_type(void)
{
    const int lengths[] = {2, 1, 1};
    const MPI_Aint places[] = {offsetof(struct item, tag), offsetof(struct item, value), offsetof(struct item, number)};
    const MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_LONG};
    MPI_Datatype record, type;
    MPI_Type_create_struct(3, lengths, places, types, &record);
    MPI_Type_create_resized(record, 0, sizeof(struct item), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&record);
    return type;
}

static void test_pieces(MPI_Datatype type)
{
    enum { ROOM = 1000 };
    char packed[ROOM], received[ROOM];
    int at = 0, n = 7, m = 0, numbers[7], back[7];
    struct item items[3], copy[3];
    memset(items, 0, sizeof items);
    memset(copy, 0, sizeof copy);
    for (int i = 0; i < n; i++)
        numbers[i] = 100 * test_rank + i;
    for (int i = 0; i < 3; i++)
        items[i] = (struct item){{'a', (char)i}, test_rank + i * 0.5, 1000 + test_rank};
    MPI_Pack(&n, 1, MPI_INT, packed, ROOM, &at, MPI_COMM_WORLD);
    MPI_Pack(numbers, n, MPI_INT, packed, ROOM, &at, MPI_COMM_WORLD);
    MPI_Pack(items, 3, type, packed, ROOM, &at, MPI_COMM_WORLD);
    CHECK_EQUAL(at, 4 + 28 + 3 * 18);
    MPI_Status status;
    int count = -1;
    MPI_Sendrecv(packed, at, MPI_PACKED, test_next(), 1, received, ROOM, MPI_PACKED, test_previous(), 1, MPI_COMM_WORLD,
                 &status);
    MPI_Get_count(&status, MPI_PACKED, &count);
    CHECK_EQUAL(count, at);
    at = 0;
    MPI_Unpack(received, count, &at, &m, 1, MPI_INT, MPI_COMM_WORLD);
    CHECK_EQUAL(m, 7);
    MPI_Unpack(received, count, &at, back, m, MPI_INT, MPI_COMM_WORLD);
    MPI_Unpack(received, count, &at, copy, 3, type, MPI_COMM_WORLD);
    CHECK_EQUAL(at, count);
    for (int i = 0; i < 7; i++)
        CHECK_EQUAL(back[i], 100 * test_previous() + i);
    for (int i = 0; i < 3; i++)
        CHECK(copy[i].tag[1] == i && copy[i].value == test_previous() + i * 0.5 &&
                  copy[i].number == 1000 + test_previous(),
              "item %d is %c%d %g %ld", i, copy[i].tag[0], copy[i].tag[1], copy[i].value, copy[i].number);
    /* What was packed can be received as what it is, and the other way round. */
    MPI_Sendrecv(items, 3, type, test_next(), 2, received, ROOM, MPI_PACKED, test_previous(), 2, MPI_COMM_WORLD,
                 &status);
    at = 0;
    memset(copy, 0, sizeof copy);
    MPI_Unpack(received, 54, &at, copy, 3, type, MPI_COMM_WORLD);
    CHECK_EQUAL(copy[2].number, 1000 + test_previous());
}

static void test_errors(MPI_Datatype type)
{
    char packed[100];
    struct item items[3];
    int at = 50, size;
    MPI_Datatype open;
    memset(items, 0, sizeof items);
    CHECK_CLASS(MPI_Pack(items, 3, type, packed, 100, &at, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
    CHECK_EQUAL(at, 50);
    CHECK_CLASS(MPI_Unpack(packed, 100, &at, items, 3, type, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
    at = -1;
    CHECK_CLASS(MPI_Pack(items, 1, type, packed, 100, &at, MPI_COMM_WORLD), MPI_ERR_ARG);
    at = 101;
    CHECK_CLASS(MPI_Unpack(packed, 100, &at, items, 1, type, MPI_COMM_WORLD), MPI_ERR_ARG);
    at = 0;
    CHECK_CLASS(MPI_Pack(items, -1, type, packed, 100, &at, MPI_COMM_WORLD), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Pack(NULL, 1, type, packed, 100, &at, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Pack(items, 1, type, packed, 100, &at, MPI_COMM_NULL), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Pack(items, 1, MPI_DATATYPE_NULL, packed, 100, &at, MPI_COMM_WORLD), MPI_ERR_TYPE);
    MPI_Type_contiguous(2, type, &open);
    CHECK_CLASS(MPI_Pack(items, 1, open, packed, 100, &at, MPI_COMM_WORLD), MPI_ERR_TYPE);
    MPI_Pack_size(2, open, MPI_COMM_WORLD, &size);
    CHECK_EQUAL(size, 4 * 18);
    CHECK_CLASS(MPI_Pack_size(-1, type, MPI_COMM_WORLD, &size), MPI_ERR_COUNT);
    MPI_Pack(items, 0, type, packed, 0, &at, MPI_COMM_WORLD);
    CHECK_EQUAL(at, 0);
    MPI_Type_free(&open);
}

static void test_external(MPI_Datatype type)
{
    char packed[100];
    struct item items[2] = {{{'x', 'y'}, 1.0, -2}, {{'p', 'q'}, -2.0, 3}}, copy[2];
    MPI_Aint size = 0, at = 0;
    memset(copy, 0, sizeof copy);
    MPI_Pack_external_size("external32", 2, type, &size);
    CHECK_EQUAL(size, 2 * (2 + 8 + 4));
    MPI_Pack_external("external32", items, 2, type, packed, 100, &at);
    CHECK_EQUAL(at, size);
    CHECK(memcmp(packed, "xy\x3f\xf0\0\0\0\0\0\0\xff\xff\xff\xfepq\xc0\0\0\0\0\0\0\0\0\0\0\3", 28) == 0,
          "other bytes in the canonical form");
    at = 0;
    MPI_Unpack_external("external32", packed, size, &at, copy, 2, type);
    CHECK_EQUAL(at, size);
    for (int i = 0; i < 2; i++)
        CHECK(memcmp(copy[i].tag, items[i].tag, 2) == 0 && copy[i].value == items[i].value &&
                  copy[i].number == items[i].number,
              "item %d comes back as %g %ld", i, copy[i].value, copy[i].number);
    at = 0;
    CHECK_CLASS(MPI_Pack_external("native", items, 1, type, packed, 100, &at), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Pack_external("external32", items, 2, type, packed, 27, &at), MPI_ERR_TRUNCATE);
    CHECK_CLASS(MPI_Unpack_external("external32", packed, 27, &at, copy, 2, type), MPI_ERR_TRUNCATE);
    items[0].number = 1L << 40;
    CHECK_CLASS(MPI_Pack_external("external32", items, 2, type, packed, 100, &at), MPI_ERR_CONVERSION);
    CHECK_EQUAL(at, 0);
}

/* A type with absolute addresses, used with MPI_BOTTOM. */
static void test_addresses(void)
{
    int here = 7 + test_rank, number = -1;
    double there[3] = {1, 2, 3}, values[3] = {0, 0, 0};
    MPI_Aint places[2];
    const int lengths[] = {1, 3};
    const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
    MPI_Datatype out, in;
    MPI_Get_address(&here, &places[0]);
    MPI_Get_address(there, &places[1]);
    CHECK_EQUAL(MPI_Aint_add(places[1], MPI_Aint_diff(places[0], places[1])), places[0]);
    MPI_Type_create_struct(2, lengths, places, types, &out);
    MPI_Get_address(&number, &places[0]);
    MPI_Get_address(values, &places[1]);
    MPI_Type_create_struct(2, lengths, places, types, &in);
    MPI_Type_commit(&out);
    MPI_Type_commit(&in);
    MPI_Sendrecv(MPI_BOTTOM, 1, out, test_next(), 3, MPI_BOTTOM, 1, in, test_previous(), 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK_EQUAL(number, 7 + test_previous());
    CHECK(values[0] == 1 && values[1] == 2 && values[2] == 3, "%g %g %g", values[0], values[1], values[2]);
    char packed[28];
    int at = 0;
    MPI_Pack(MPI_BOTTOM, 1, out, packed, 28, &at, MPI_COMM_WORLD);
    CHECK_EQUAL(at, 28);
    number = -1;
    at = 0;
    MPI_Unpack(packed, 28, &at, MPI_BOTTOM, 1, in, MPI_COMM_WORLD);
    CHECK_EQUAL(number, here);
    MPI_Type_free(&out);
    MPI_Type_free(&in);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Datatype type = item_type();
    test_pieces(type);
    test_errors(type);
    test_external(type);
    test_addresses();
    MPI_Type_free(&type);
    return test_end();
}

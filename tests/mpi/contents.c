/* What the program can ask about a datatype: envelope and contents of every constructor and of its large twin, a copy
 * made from them, names, attributes with their functions, duplicates, conversions to integers. */
#include "test.h"

/* ---- envelopes --------------------------------------------------------------------------------------------------- */

struct recipe {
    MPI_Count integers, addresses, large, types;
    int combiner;
    int i[64];
    MPI_Aint a[64];
    MPI_Count c[64];
    MPI_Datatype t[64];
};

static bool predefined(MPI_Datatype type)
{
    int integers, addresses, types, combiner = -1;
    MPI_Count wide[4];
    if (MPI_Type_get_envelope_c(type, &wide[0], &wide[1], &wide[2], &wide[3], &combiner) != MPI_SUCCESS)
        MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

static void read_recipe(MPI_Datatype type, struct recipe *r)
{
    memset(r, 0, sizeof *r);
    MPI_Type_get_envelope_c(type, &r->integers, &r->addresses, &r->large, &r->types, &r->combiner);
    MPI_Type_get_contents_c(type, 64, 64, 64, 64, r->i, r->a, r->c, r->t);
}

static void expect(MPI_Datatype type, int combiner, int integers, int addresses, int large, int types)
{
    struct recipe r;
    read_recipe(type, &r);
    CHECK_EQUAL(r.combiner, combiner);
    CHECK_EQUAL(r.integers, integers);
    CHECK_EQUAL(r.addresses, addresses);
    CHECK_EQUAL(r.large, large);
    CHECK_EQUAL(r.types, types);
    int small[4] = {-1, -1, -1, -1};
    if (large == 0) {
        MPI_Type_get_envelope(type, &small[0], &small[1], &small[2], &small[3]);
        CHECK_EQUAL(small[0], integers);
        CHECK_EQUAL(small[1], addresses);
        CHECK_EQUAL(small[2], types);
        CHECK_EQUAL(small[3], combiner);
    } else {
        CHECK_CLASS(MPI_Type_get_envelope(type, &small[0], &small[1], &small[2], &small[3]), MPI_ERR_TYPE);
    }
    for (int i = 0; i < types; i++)
        if (!predefined(r.t[i]))
            MPI_Type_free(&r.t[i]);
}

/* The same type again, from what the library says about it. */
static MPI_Datatype remake_small(const struct recipe *r)
{
    MPI_Datatype made = MPI_DATATYPE_NULL;
    int n = r->i[0];
    switch (r->combiner) {
    case MPI_COMBINER_DUP:
        MPI_Type_dup(r->t[0], &made);
        break;
    case MPI_COMBINER_CONTIGUOUS:
        MPI_Type_contiguous(n, r->t[0], &made);
        break;
    case MPI_COMBINER_VECTOR:
        MPI_Type_vector(n, r->i[1], r->i[2], r->t[0], &made);
        break;
    case MPI_COMBINER_HVECTOR:
        MPI_Type_create_hvector(n, r->i[1], r->a[0], r->t[0], &made);
        break;
    case MPI_COMBINER_INDEXED:
        MPI_Type_indexed(n, r->i + 1, r->i + 1 + n, r->t[0], &made);
        break;
    case MPI_COMBINER_HINDEXED:
        MPI_Type_create_hindexed(n, r->i + 1, r->a, r->t[0], &made);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        MPI_Type_create_indexed_block(n, r->i[1], r->i + 2, r->t[0], &made);
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        MPI_Type_create_hindexed_block(n, r->i[1], r->a, r->t[0], &made);
        break;
    case MPI_COMBINER_STRUCT:
        MPI_Type_create_struct(n, r->i + 1, r->a, r->t, &made);
        break;
    case MPI_COMBINER_SUBARRAY:
        MPI_Type_create_subarray(n, r->i + 1, r->i + 1 + n, r->i + 1 + 2 * n, r->i[1 + 3 * n], r->t[0], &made);
        break;
    case MPI_COMBINER_DARRAY:
        n = r->i[2];
        MPI_Type_create_darray(r->i[0], r->i[1], n, r->i + 3, r->i + 3 + n, r->i + 3 + 2 * n, r->i + 3 + 3 * n,
                               r->i[3 + 4 * n], r->t[0], &made);
        break;
    case MPI_COMBINER_RESIZED:
        MPI_Type_create_resized(r->t[0], r->a[0], r->a[1], &made);
        break;
    default:
        CHECK(false, "combiner %d", r->combiner);
        break;
    }
    return made;
}

static MPI_Datatype remake_large(const struct recipe *r)
{
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Count n = r->c[0];
    int d = r->i[0];
    switch (r->combiner) {
    case MPI_COMBINER_CONTIGUOUS:
        MPI_Type_contiguous_c(n, r->t[0], &made);
        break;
    case MPI_COMBINER_VECTOR:
        MPI_Type_vector_c(n, r->c[1], r->c[2], r->t[0], &made);
        break;
    case MPI_COMBINER_HVECTOR:
        MPI_Type_create_hvector_c(n, r->c[1], r->c[2], r->t[0], &made);
        break;
    case MPI_COMBINER_INDEXED:
        MPI_Type_indexed_c(n, r->c + 1, r->c + 1 + n, r->t[0], &made);
        break;
    case MPI_COMBINER_HINDEXED:
        MPI_Type_create_hindexed_c(n, r->c + 1, r->c + 1 + n, r->t[0], &made);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        MPI_Type_create_indexed_block_c(n, r->c[1], r->c + 2, r->t[0], &made);
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        MPI_Type_create_hindexed_block_c(n, r->c[1], r->c + 2, r->t[0], &made);
        break;
    case MPI_COMBINER_STRUCT:
        MPI_Type_create_struct_c(n, r->c + 1, r->c + 1 + n, r->t, &made);
        break;
    case MPI_COMBINER_SUBARRAY:
        MPI_Type_create_subarray_c(d, r->c, r->c + d, r->c + 2 * d, r->i[1], r->t[0], &made);
        break;
    case MPI_COMBINER_DARRAY:
        d = r->i[2];
        MPI_Type_create_darray_c(r->i[0], r->i[1], d, r->c, r->i + 3, r->i + 3 + d, r->i + 3 + 2 * d, r->i[3 + 3 * d],
                                 r->t[0], &made);
        break;
    case MPI_COMBINER_RESIZED:
        MPI_Type_create_resized_c(r->t[0], r->c[0], r->c[1], &made);
        break;
    default:
        CHECK(false, "combiner %d", r->combiner);
        break;
    }
    return made;
}

/* Both take the same bytes from memory. */
static void expect_same(MPI_Datatype a, MPI_Datatype b, int combiner)
{
    enum { MIDDLE = 4096, ROOM = 8192 };
    static char memory[ROOM], packed[2][ROOM];
    test_fill(memory, ROOM, 3);
    int at[2] = {0, 0};
    MPI_Aint lower[2], extent[2];
    MPI_Type_commit(&a);
    MPI_Type_commit(&b);
    MPI_Type_get_extent(a, &lower[0], &extent[0]);
    MPI_Type_get_extent(b, &lower[1], &extent[1]);
    CHECK(lower[0] == lower[1] && extent[0] == extent[1], "other bounds, combiner %d", combiner);
    MPI_Pack(memory + MIDDLE, 2, a, packed[0], ROOM, &at[0], MPI_COMM_WORLD);
    MPI_Pack(memory + MIDDLE, 2, b, packed[1], ROOM, &at[1], MPI_COMM_WORLD);
    CHECK_EQUAL(at[0], at[1]);
    CHECK(at[0] > 0 && memcmp(packed[0], packed[1], (size_t)at[0]) == 0, "other bytes, combiner %d", combiner);
}

static void round_trip(MPI_Datatype type, int combiner, int integers, int addresses, int large, int types)
{
    struct recipe r;
    expect(type, combiner, integers, addresses, large, types);
    read_recipe(type, &r);
    MPI_Datatype again = large > 0 ? remake_large(&r) : remake_small(&r);
    expect(again, combiner, integers, addresses, large, types);
    expect_same(type, again, combiner);
    for (int i = 0; i < types; i++)
        if (!predefined(r.t[i]))
            MPI_Type_free(&r.t[i]);
    MPI_Type_free(&again);
    MPI_Type_free(&type);
}

static void test_small(MPI_Datatype old)
{
    MPI_Datatype type, members[3] = {old, MPI_INT, old};
    const int lengths[] = {2, 1, 3}, places[] = {4, -3, 9}, sizes[] = {4, 5}, subsizes[] = {2, 3}, starts[] = {1, 2};
    const int kinds[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, dargs[] = {2, MPI_DISTRIBUTE_DFLT_DARG};
    const int grid[] = {2, 2};
    const MPI_Aint bytes[] = {40, -30, 100};
    MPI_Type_dup(old, &type);
    round_trip(type, MPI_COMBINER_DUP, 0, 0, 0, 1);
    MPI_Type_contiguous(3, old, &type);
    round_trip(type, MPI_COMBINER_CONTIGUOUS, 1, 0, 0, 1);
    MPI_Type_vector(3, 2, 4, old, &type);
    round_trip(type, MPI_COMBINER_VECTOR, 3, 0, 0, 1);
    MPI_Type_create_hvector(3, 2, 50, old, &type);
    round_trip(type, MPI_COMBINER_HVECTOR, 2, 1, 0, 1);
    MPI_Type_indexed(3, lengths, places, old, &type);
    round_trip(type, MPI_COMBINER_INDEXED, 7, 0, 0, 1);
    MPI_Type_create_hindexed(3, lengths, bytes, old, &type);
    round_trip(type, MPI_COMBINER_HINDEXED, 4, 3, 0, 1);
    MPI_Type_create_indexed_block(3, 2, places, old, &type);
    round_trip(type, MPI_COMBINER_INDEXED_BLOCK, 5, 0, 0, 1);
    MPI_Type_create_hindexed_block(3, 2, bytes, old, &type);
    round_trip(type, MPI_COMBINER_HINDEXED_BLOCK, 2, 3, 0, 1);
    MPI_Type_create_struct(3, lengths, bytes, members, &type);
    round_trip(type, MPI_COMBINER_STRUCT, 4, 3, 0, 3);
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_FORTRAN, old, &type);
    round_trip(type, MPI_COMBINER_SUBARRAY, 8, 0, 0, 1);
    MPI_Type_create_darray(4, 1, 2, sizes, kinds, dargs, grid, MPI_ORDER_C, old, &type);
    round_trip(type, MPI_COMBINER_DARRAY, 12, 0, 0, 1);
    MPI_Type_create_resized(old, -8, 64, &type);
    round_trip(type, MPI_COMBINER_RESIZED, 0, 2, 0, 1);
}

static void test_large(MPI_Datatype old)
{
    MPI_Datatype type, members[3] = {old, MPI_INT, old};
    const MPI_Count lengths[] = {2, 1, 3}, places[] = {4, -3, 9}, sizes[] = {4, 5}, subsizes[] = {2, 3};
    const MPI_Count starts[] = {1, 2}, bytes[] = {40, -30, 100};
    const int kinds[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, dargs[] = {2, MPI_DISTRIBUTE_DFLT_DARG};
    const int grid[] = {2, 2};
    MPI_Type_contiguous_c(3, old, &type);
    round_trip(type, MPI_COMBINER_CONTIGUOUS, 0, 0, 1, 1);
    MPI_Type_vector_c(3, 2, 4, old, &type);
    round_trip(type, MPI_COMBINER_VECTOR, 0, 0, 3, 1);
    MPI_Type_create_hvector_c(3, 2, 50, old, &type);
    round_trip(type, MPI_COMBINER_HVECTOR, 0, 0, 3, 1);
    MPI_Type_indexed_c(3, lengths, places, old, &type);
    round_trip(type, MPI_COMBINER_INDEXED, 0, 0, 7, 1);
    MPI_Type_create_hindexed_c(3, lengths, bytes, old, &type);
    round_trip(type, MPI_COMBINER_HINDEXED, 0, 0, 7, 1);
    MPI_Type_create_indexed_block_c(3, 2, places, old, &type);
    round_trip(type, MPI_COMBINER_INDEXED_BLOCK, 0, 0, 5, 1);
    MPI_Type_create_hindexed_block_c(3, 2, bytes, old, &type);
    round_trip(type, MPI_COMBINER_HINDEXED_BLOCK, 0, 0, 5, 1);
    MPI_Type_create_struct_c(3, lengths, bytes, members, &type);
    round_trip(type, MPI_COMBINER_STRUCT, 0, 0, 7, 3);
    MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_C, old, &type);
    round_trip(type, MPI_COMBINER_SUBARRAY, 2, 0, 6, 1);
    MPI_Type_create_darray_c(4, 1, 2, sizes, kinds, dargs, grid, MPI_ORDER_C, old, &type);
    round_trip(type, MPI_COMBINER_DARRAY, 10, 0, 2, 1);
    MPI_Type_create_resized_c(old, -8, 64, &type);
    round_trip(type, MPI_COMBINER_RESIZED, 0, 0, 2, 1);
}

static void test_kinds(void)
{
    MPI_Datatype a, b, c;
    int i[2] = {0, 0}, size = 0;
    MPI_Aint address;
    MPI_Type_create_f90_real(10, 100, &a);
    MPI_Type_create_f90_real(10, 100, &b);
    CHECK(a == b, "two handles for the same kind");
    expect(a, MPI_COMBINER_F90_REAL, 2, 0, 0, 0);
    MPI_Type_get_contents(a, 2, 0, 0, i, &address, &c);
    CHECK_EQUAL(i[0], 10);
    CHECK_EQUAL(i[1], 100);
    MPI_Type_size(a, &size);
    CHECK_EQUAL(size, 8);
    MPI_Type_create_f90_complex(MPI_UNDEFINED, 20, &a);
    expect(a, MPI_COMBINER_F90_COMPLEX, 2, 0, 0, 0);
    MPI_Type_create_f90_integer(4, &a);
    expect(a, MPI_COMBINER_F90_INTEGER, 1, 0, 0, 0);
    MPI_Type_size(a, &size);
    CHECK_EQUAL(size, 2);
    CHECK_CLASS(MPI_Type_free(&a), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Type_create_f90_integer(1000, &a), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &a), MPI_ERR_ARG);
    MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &a);
    MPI_Type_size(a, &size);
    CHECK_EQUAL(size, 8);
    CHECK_CLASS(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 3, &a), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_match_size(7, 4, &a), MPI_ERR_ARG);
    MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &a);
    CHECK(a == MPI_DOUBLE_INT, "another pair of double and int");
    MPI_Type_get_value_index(MPI_CHAR, MPI_CHAR, &a);
    CHECK(a == MPI_DATATYPE_NULL, "a pair of chars");
}

/* ---- names, attributes, duplicates ------------------------------------------------------------------------------- */

static void expect_name(MPI_Datatype type, const char *expected)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length = -1;
    MPI_Type_get_name(type, name, &length);
    CHECK(strcmp(name, expected) == 0 && (size_t)length == strlen(expected), "name '%s'", name);
}

static void test_names(void)
{
    MPI_Datatype type, other;
    char name[2 * MPI_MAX_OBJECT_NAME];
    MPI_Type_contiguous(2, MPI_INT, &type);
    expect_name(type, "");
    MPI_Type_set_name(type, "pair of ints");
    expect_name(type, "pair of ints");
    MPI_Type_dup(type, &other);
    expect_name(other, "");
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    MPI_Type_set_name(other, name);
    name[MPI_MAX_OBJECT_NAME - 1] = 0;
    expect_name(other, name);
    expect_name(MPI_INT, "MPI_INT");
    MPI_Type_set_name(MPI_INT, "number");
    expect_name(MPI_INT, "number");
    expect_name(MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL");
    MPI_Type_free(&type);
    MPI_Type_free(&other);
}

static int copies, deletions, order[8];

static int copy(MPI_Datatype type, int key, void *extra, void *in, void *out, int *flag)
{
    (void)type, (void)key;
    copies++;
    if (*(int *)in < 0)
        return MPI_ERR_OTHER;
    *(void **)out = extra;
    *flag = *(int *)in != 0;
    return MPI_SUCCESS;
}

static int delete (MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)extra;
    order[deletions++ % 8] = *(int *)value;
    return *(int *)value == 99 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void test_attributes(void)
{
    int key, other, extra = 5, one = 1, two = 2, none = 0, bad = -1, stubborn = 99, flag = -1;
    int *value = NULL;
    MPI_Datatype type, dup = MPI_INT;
    MPI_Type_create_keyval(copy, delete, &key, &extra);
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, delete, &other, NULL);
    MPI_Type_vector(2, 1, 3, MPI_INT, &type);
    MPI_Type_get_attr(type, key, &value, &flag);
    CHECK_EQUAL(flag, 0);
    MPI_Type_set_attr(type, key, &one);
    MPI_Type_set_attr(type, other, &two);
    MPI_Type_dup(type, &dup);
    CHECK_EQUAL(copies, 1);
    MPI_Type_get_attr(dup, key, &value, &flag);
    CHECK(flag == 1 && value == &extra, "the copied value is another");
    MPI_Type_get_attr(dup, other, &value, &flag);
    CHECK(flag == 1 && value == &two, "the duplicated value is another");
    MPI_Type_free(&dup);
    CHECK_EQUAL(deletions, 2);
    MPI_Type_set_attr(type, key, &none); /* deletes the old value, and copies say no */
    CHECK_EQUAL(deletions, 3);
    MPI_Type_dup(type, &dup);
    MPI_Type_get_attr(dup, key, &value, &flag);
    CHECK_EQUAL(flag, 0);
    MPI_Type_free(&dup);
    MPI_Type_set_attr(type, key, &bad);
    dup = MPI_INT;
    CHECK_CLASS(MPI_Type_dup(type, &dup), MPI_ERR_OTHER);
    CHECK(dup == MPI_DATATYPE_NULL, "a failed duplicate has a handle");
    MPI_Type_set_attr(type, key, &stubborn);
    CHECK_CLASS(MPI_Type_free(&type), MPI_ERR_OTHER);
    CHECK(type != MPI_DATATYPE_NULL, "freed although an attribute would not go");
    stubborn = 3;
    MPI_Type_delete_attr(type, key);
    MPI_Type_free(&type);
    MPI_Type_set_attr(MPI_DOUBLE, key, &one);
    MPI_Type_get_attr(MPI_DOUBLE, key, &value, &flag);
    CHECK(flag == 1 && value == &one, "an attribute of a predefined type is another");
    MPI_Type_delete_attr(MPI_DOUBLE, key);
    MPI_Type_free_keyval(&key);
    MPI_Type_free_keyval(&other);
    CHECK_EQUAL(key, MPI_KEYVAL_INVALID);
}

static void test_integers(void)
{
    MPI_Datatype type, other;
    MPI_Type_contiguous(2, MPI_INT, &type);
    int number = MPI_Type_toint(type);
    CHECK(MPI_Type_fromint(number) == type, "another handle for %d", number);
    CHECK(MPI_Type_fromint(MPI_Type_toint(MPI_INT)) == MPI_INT, "another handle for MPI_INT");
    MPI_Type_free(&type);
    CHECK(type == MPI_DATATYPE_NULL, "the handle stays");
    CHECK(MPI_Type_fromint(number) == MPI_DATATYPE_NULL, "a handle for a freed type");
    MPI_Type_contiguous(2, MPI_INT, &other);
    MPI_Type_free(&other);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Datatype old;
    MPI_Type_vector(2, 1, 2, MPI_SHORT, &old);
    test_small(MPI_DOUBLE);
    test_small(old);
    test_large(MPI_DOUBLE);
    test_large(old);
    MPI_Type_free(&old);
    test_kinds();
    test_names();
    test_attributes();
    test_integers();
    return test_end();
}

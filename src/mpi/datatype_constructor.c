/* Making datatypes (MPI-5.0, 5.1, 19.1.5). The data layer checks the values and makes them; here handles are resolved.
 */
#include <stdlib.h>

#include "mpi/datatype.h"
#include "mpi/error.h"
#include "mpi/binding_decls.h"

static struct tb_numbers numbers(struct tb_ints ints)
{
    return (struct tb_numbers){.base = ints.base, .wide = ints.wide != 0};
}

static struct tb_numbers wide_numbers(const int64_t *base)
{
    return (struct tb_numbers){.base = base, .wide = true};
}

static struct tb_numbers narrow_numbers(const int *base)
{
    return (struct tb_numbers){.base = base, .wide = false};
}

/* What every constructor has: the handle of the old type and the place for the new one, and where they stand. */
struct construction {
    const char *call;
    MPI_Datatype oldtype;
    int old_at;
    MPI_Datatype *newtype;
    int new_at;
    const struct tb_type *old; /* set by construction_check */
};

static int construction_check(struct construction *f)
{
    f->old = tb_type_find(f->oldtype);
    if (f->old == NULL)
        return tb_raise_type(NULL, f->call, f->old_at, "oldtype", f->oldtype);
    if (f->newtype == NULL)
        return tb_raise_null(NULL, f->call, f->new_at, "newtype");
    return MPI_SUCCESS;
}

static int check_count(const char *call, MPI_Count count)
{
    if (count >= 0)
        return MPI_SUCCESS;
    return tb_raise_argument(NULL, MPI_ERR_COUNT, call, 1, "count", "%lld is negative", (long long)count);
}

static int check_array(const char *call, MPI_Count count, const void *array, int position, const char *name)
{
    return array != NULL || count <= 0 ? MPI_SUCCESS : tb_raise_null(NULL, call, position, name);
}

/* `error` is of the data layer; if there is none, `type` gets its handle. */
static int construction_close(const struct construction *f, int error, const struct tb_type *type)
{
    if (error < 0)
        return tb_raise_below(NULL, error, f->call);
    return tb_datatype_new(f->call, type, false, f->newtype);
}

/* ---- repeated blocks --------------------------------------------------------------------------------------------- */

static int contiguous(const char *call, MPI_Count count, MPI_Datatype oldtype, MPI_Datatype *newtype, bool large)
{
    struct construction f = {call, oldtype, 2, newtype, 3, NULL};
    struct tb_type *type = NULL;
    int code = check_count(call, count);
    if (code == MPI_SUCCESS)
        code = construction_check(&f);
    if (code != MPI_SUCCESS)
        return code;
    int error = tb_type_contiguous(count, f.old, large, &type);
    return construction_close(&f, error, type);
}

int tb_mpi_Type_contiguous(int count, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return contiguous("MPI_Type_contiguous", count, oldtype, newtype, false);
}

int tb_mpi_Type_contiguous_c(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return contiguous("MPI_Type_contiguous_c", count, oldtype, newtype, true);
}

static int vector(const char *call, MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                  MPI_Datatype *newtype, bool large, bool bytes)
{
    struct construction f = {call, oldtype, 4, newtype, 5, NULL};
    struct tb_type *type = NULL;
    int code = check_count(call, count);
    if (code == MPI_SUCCESS)
        code = construction_check(&f);
    if (code != MPI_SUCCESS)
        return code;
    int error = bytes ? tb_type_hvector(count, blocklength, stride, f.old, large, &type)
                      : tb_type_vector(count, blocklength, stride, f.old, large, &type);
    return construction_close(&f, error, type);
}

int tb_mpi_Type_vector(int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return vector("MPI_Type_vector", count, blocklength, stride, oldtype, newtype, false, false);
}

int tb_mpi_Type_vector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                         MPI_Datatype *newtype)
{
    return vector("MPI_Type_vector_c", count, blocklength, stride, oldtype, newtype, true, false);
}

int tb_mpi_Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return vector("MPI_Type_create_hvector", count, blocklength, stride, oldtype, newtype, false, true);
}

int tb_mpi_Type_create_hvector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                                 MPI_Datatype *newtype)
{
    return vector("MPI_Type_create_hvector_c", count, blocklength, stride, oldtype, newtype, true, true);
}

/* ---- lists of blocks --------------------------------------------------------------------------------------------- */

/* Both arrays of an indexed type, then what every constructor has. */
static int check_indexed(struct construction *f, MPI_Count count, struct tb_numbers lengths,
                         struct tb_numbers displacements)
{
    int code = check_count(f->call, count);
    if (code == MPI_SUCCESS)
        code = check_array(f->call, count, lengths.base, 2, "array_of_blocklengths");
    if (code == MPI_SUCCESS)
        code = check_array(f->call, count, displacements.base, 3, "array_of_displacements");
    return code == MPI_SUCCESS ? construction_check(f) : code;
}

int tb_mpi_Type_indexed(MPI_Count count, struct tb_ints array_of_blocklengths, struct tb_ints array_of_displacements,
                        MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    struct construction f = {"MPI_Type_indexed", oldtype, 4, newtype, 5, NULL};
    struct tb_numbers lengths = numbers(array_of_blocklengths), displacements = numbers(array_of_displacements);
    struct tb_type *type = NULL;
    int code = check_indexed(&f, count, lengths, displacements);
    if (code != MPI_SUCCESS)
        return code;
    int error = tb_type_indexed(count, lengths, displacements, f.old, lengths.wide, &type);
    return construction_close(&f, error, type);
}

int tb_mpi_Type_create_hindexed(MPI_Count count, struct tb_ints array_of_blocklengths,
                                const MPI_Count array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    struct construction f = {"MPI_Type_create_hindexed", oldtype, 4, newtype, 5, NULL};
    struct tb_numbers lengths = numbers(array_of_blocklengths), displacements = wide_numbers(array_of_displacements);
    struct tb_type *type = NULL;
    int code = check_indexed(&f, count, lengths, displacements);
    if (code != MPI_SUCCESS)
        return code;
    int error = tb_type_hindexed(count, lengths, displacements, f.old, lengths.wide, &type);
    return construction_close(&f, error, type);
}

static int check_blocks(struct construction *f, MPI_Count count, const void *displacements)
{
    int code = check_count(f->call, count);
    if (code == MPI_SUCCESS)
        code = check_array(f->call, count, displacements, 3, "array_of_displacements");
    return code == MPI_SUCCESS ? construction_check(f) : code;
}

int tb_mpi_Type_create_indexed_block(MPI_Count count, MPI_Count blocklength, struct tb_ints array_of_displacements,
                                     MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    struct construction f = {"MPI_Type_create_indexed_block", oldtype, 4, newtype, 5, NULL};
    struct tb_numbers displacements = numbers(array_of_displacements);
    struct tb_type *type = NULL;
    int code = check_blocks(&f, count, displacements.base);
    if (code != MPI_SUCCESS)
        return code;
    int error = tb_type_indexed_block(count, blocklength, displacements, f.old, displacements.wide, &type);
    return construction_close(&f, error, type);
}

static int hindexed_block(const char *call, MPI_Count count, MPI_Count blocklength, const int64_t *displacements,
                          MPI_Datatype oldtype, MPI_Datatype *newtype, bool large)
{
    struct construction f = {call, oldtype, 4, newtype, 5, NULL};
    struct tb_type *type = NULL;
    int code = check_blocks(&f, count, displacements);
    if (code != MPI_SUCCESS)
        return code;
    int error = tb_type_hindexed_block(count, blocklength, wide_numbers(displacements), f.old, large, &type);
    return construction_close(&f, error, type);
}

int tb_mpi_Type_create_hindexed_block(int count, int blocklength, const MPI_Aint array_of_displacements[],
                                      MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return hindexed_block("MPI_Type_create_hindexed_block", count, blocklength, array_of_displacements, oldtype,
                          newtype, false);
}

int tb_mpi_Type_create_hindexed_block_c(MPI_Count count, MPI_Count blocklength,
                                        const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                                        MPI_Datatype *newtype)
{
    return hindexed_block("MPI_Type_create_hindexed_block_c", count, blocklength, array_of_displacements, oldtype,
                          newtype, true);
}

/* The types of the members; NULL, and *code was raised, if one of them is none. Belongs to the caller. */
static const struct tb_type **find_members(const char *call, MPI_Count count, const MPI_Datatype handles[], int *code)
{
    size_t n = (size_t)count;
    const struct tb_type **types = NULL;
    if (n < SIZE_MAX / sizeof(void *) - 1)
        types = malloc((n + 1) * sizeof(void *)); /* one more, so that none is no error */
    if (types == NULL) {
        *code = tb_raise(NULL, MPI_ERR_NO_MEM, call, "out of memory for %lld members", (long long)count);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        types[i] = tb_type_find(handles[i]);
        if (types[i] == NULL) {
            free(types);
            *code = tb_raise_type(NULL, call, 4, "array_of_types", handles[i]);
            return NULL;
        }
    }
    return types;
}

int tb_mpi_Type_create_struct(MPI_Count count, struct tb_ints array_of_blocklengths,
                              const MPI_Count array_of_displacements[], const MPI_Datatype array_of_types[],
                              MPI_Datatype *newtype)
{
    struct construction f = {"MPI_Type_create_struct", MPI_BYTE, 4, newtype, 5, NULL};
    struct tb_numbers lengths = numbers(array_of_blocklengths), displacements = wide_numbers(array_of_displacements);
    struct tb_type *type = NULL;
    int code = check_indexed(&f, count, lengths, displacements);
    if (code == MPI_SUCCESS)
        code = check_array(f.call, count, array_of_types, 4, "array_of_types");
    const struct tb_type **types = code == MPI_SUCCESS ? find_members(f.call, count, array_of_types, &code) : NULL;
    if (types == NULL)
        return code;
    int error = tb_type_struct(count, lengths, displacements, types, lengths.wide, &type);
    free(types);
    return construction_close(&f, error, type);
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

int tb_mpi_Type_create_subarray(int ndims, struct tb_ints array_of_sizes, struct tb_ints array_of_subsizes,
                                struct tb_ints array_of_starts, int order, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    struct construction f = {"MPI_Type_create_subarray", oldtype, 6, newtype, 7, NULL};
    struct tb_type *type = NULL;
    int code = check_array(f.call, ndims, array_of_sizes.base, 2, "array_of_sizes");
    if (code == MPI_SUCCESS)
        code = check_array(f.call, ndims, array_of_subsizes.base, 3, "array_of_subsizes");
    if (code == MPI_SUCCESS)
        code = check_array(f.call, ndims, array_of_starts.base, 4, "array_of_starts");
    if (code == MPI_SUCCESS)
        code = construction_check(&f);
    if (code != MPI_SUCCESS)
        return code;
    int error = tb_type_subarray(ndims, numbers(array_of_sizes), numbers(array_of_subsizes), numbers(array_of_starts),
                                 order, f.old, array_of_sizes.wide != 0, &type);
    return construction_close(&f, error, type);
}

int tb_mpi_Type_create_darray(int size, int rank, int ndims, struct tb_ints array_of_gsizes,
                              const int array_of_distribs[], const int array_of_dargs[], const int array_of_psizes[],
                              int order, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    struct construction f = {"MPI_Type_create_darray", oldtype, 9, newtype, 10, NULL};
    struct tb_type *type = NULL;
    int code = check_array(f.call, ndims, array_of_gsizes.base, 4, "array_of_gsizes");
    if (code == MPI_SUCCESS)
        code = check_array(f.call, ndims, array_of_distribs, 5, "array_of_distribs");
    if (code == MPI_SUCCESS)
        code = check_array(f.call, ndims, array_of_dargs, 6, "array_of_dargs");
    if (code == MPI_SUCCESS)
        code = check_array(f.call, ndims, array_of_psizes, 7, "array_of_psizes");
    if (code == MPI_SUCCESS)
        code = construction_check(&f);
    if (code != MPI_SUCCESS)
        return code;
    int error = tb_type_darray(size, rank, ndims, numbers(array_of_gsizes), narrow_numbers(array_of_distribs),
                               narrow_numbers(array_of_dargs), narrow_numbers(array_of_psizes), order, f.old,
                               array_of_gsizes.wide != 0, &type);
    return construction_close(&f, error, type);
}

static int resized(const char *call, MPI_Datatype oldtype, int64_t lb, int64_t extent, MPI_Datatype *newtype,
                   bool large)
{
    struct construction f = {call, oldtype, 1, newtype, 4, NULL};
    struct tb_type *type = NULL;
    int code = construction_check(&f);
    if (code != MPI_SUCCESS)
        return code;
    int error = tb_type_resized(f.old, lb, extent, large, &type);
    return construction_close(&f, error, type);
}

int tb_mpi_Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *newtype)
{
    return resized("MPI_Type_create_resized", oldtype, lb, extent, newtype, false);
}

int tb_mpi_Type_create_resized_c(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype *newtype)
{
    return resized("MPI_Type_create_resized_c", oldtype, lb, extent, newtype, true);
}

/* ---- types by what they can hold --------------------------------------------------------------------------------- */

/* The one handle of a Fortran kind: equal arguments give the same. */
static int kind_handle(const char *call, int error, const struct tb_type *type, MPI_Datatype *newtype)
{
    return error < 0 ? tb_raise_below(NULL, error, call) : tb_datatype_new(call, type, true, newtype);
}

int tb_mpi_Type_create_f90_real(int p, int r, MPI_Datatype *newtype)
{
    static const char call[] = "MPI_Type_create_f90_real";
    const struct tb_type *type = NULL;
    tb_require_active(call);
    if (newtype == NULL)
        return tb_raise_null(NULL, call, 3, "newtype");
    int error = tb_type_f90_real(p, r, &type);
    return kind_handle(call, error, type, newtype);
}

int tb_mpi_Type_create_f90_complex(int p, int r, MPI_Datatype *newtype)
{
    static const char call[] = "MPI_Type_create_f90_complex";
    const struct tb_type *type = NULL;
    tb_require_active(call);
    if (newtype == NULL)
        return tb_raise_null(NULL, call, 3, "newtype");
    int error = tb_type_f90_complex(p, r, &type);
    return kind_handle(call, error, type, newtype);
}

int tb_mpi_Type_create_f90_integer(int r, MPI_Datatype *newtype)
{
    static const char call[] = "MPI_Type_create_f90_integer";
    const struct tb_type *type = NULL;
    tb_require_active(call);
    if (newtype == NULL)
        return tb_raise_null(NULL, call, 2, "newtype");
    int error = tb_type_f90_integer(r, &type);
    return kind_handle(call, error, type, newtype);
}

int tb_mpi_Type_match_size(int typeclass, int size, MPI_Datatype *datatype)
{
    static const char call[] = "MPI_Type_match_size";
    tb_require_active(call);
    if (typeclass != MPI_TYPECLASS_REAL && typeclass != MPI_TYPECLASS_INTEGER && typeclass != MPI_TYPECLASS_COMPLEX)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 1, "typeclass",
                                 "%d is none of MPI_TYPECLASS_REAL, MPI_TYPECLASS_INTEGER and MPI_TYPECLASS_COMPLEX",
                                 typeclass);
    if (datatype == NULL)
        return tb_raise_null(NULL, call, 3, "datatype");
    const struct tb_type *type = tb_type_match_size((enum tb_type_class)typeclass, size);
    if (type == NULL)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 2, "size", "no datatype of this class has %d bytes", size);
    *datatype = (MPI_Datatype)type->handle;
    return MPI_SUCCESS;
}

int tb_mpi_Type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype *pair_type)
{
    static const char call[] = "MPI_Type_get_value_index";
    const struct tb_type *value = tb_type_find(value_type), *index = tb_type_find(index_type);
    if (value == NULL)
        return tb_raise_type(NULL, call, 1, "value_type", value_type);
    if (index == NULL)
        return tb_raise_type(NULL, call, 2, "index_type", index_type);
    if (pair_type == NULL)
        return tb_raise_null(NULL, call, 3, "pair_type");
    const struct tb_type *pair = tb_type_value_index(value, index);
    *pair_type = pair != NULL ? (MPI_Datatype)pair->handle : MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

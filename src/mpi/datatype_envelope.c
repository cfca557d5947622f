/* How a datatype was made (MPI-5.0, 5.1.13). */
#include <string.h>

#include "mpi/datatype.h"
#include "mpi/error.h"
#include "mpi/binding_decls.h"

/* The recipe of a handle; NULL, and *code was raised, if there is none, or none that a small call can tell. */
static const struct tb_recipe *find(const char *call, MPI_Datatype datatype, bool large, int *code)
{
    const struct tb_type *type = tb_type_find(datatype);
    *code = MPI_SUCCESS;
    if (type == NULL) {
        *code = tb_raise_type(NULL, call, 1, "datatype", datatype);
        return NULL;
    }
    const struct tb_recipe *recipe = tb_type_envelope(type);
    if (large || recipe->large_count_count == 0)
        return recipe;
    *code = tb_raise_argument(NULL, MPI_ERR_TYPE, call, 1, "datatype",
                              "it was made by a large-count call, so that only %s_c can tell how", call);
    return NULL;
}

static int check_results(const char *call, void *const results[], int count)
{
    static const char *const small[] = {"num_integers", "num_addresses", "num_datatypes", "combiner"};
    static const char *const large[] = {"num_integers", "num_addresses", "num_large_counts", "num_datatypes",
                                        "combiner"};
    for (int i = 0; i < count; i++)
        if (results[i] == NULL)
            return tb_raise_null(NULL, call, i + 2, count == 4 ? small[i] : large[i]);
    return MPI_SUCCESS;
}

int tb_mpi_Type_get_envelope(MPI_Datatype datatype, int *num_integers, int *num_addresses, int *num_datatypes,
                             int *combiner)
{
    static const char call[] = "MPI_Type_get_envelope";
    int code;
    const struct tb_recipe *recipe = find(call, datatype, false, &code);
    if (recipe == NULL)
        return code;
    code = check_results(call, (void *const[]){num_integers, num_addresses, num_datatypes, combiner}, 4);
    if (code != MPI_SUCCESS)
        return code;
    *num_integers = tb_ints_result((int64_t)recipe->integer_count);
    *num_addresses = tb_ints_result((int64_t)recipe->address_count);
    *num_datatypes = tb_ints_result((int64_t)recipe->type_count);
    *combiner = (int)recipe->combiner;
    return MPI_SUCCESS;
}

int tb_mpi_Type_get_envelope_c(MPI_Datatype datatype, MPI_Count *num_integers, MPI_Count *num_addresses,
                               MPI_Count *num_large_counts, MPI_Count *num_datatypes, int *combiner)
{
    static const char call[] = "MPI_Type_get_envelope_c";
    int code;
    const struct tb_recipe *recipe = find(call, datatype, true, &code);
    if (recipe == NULL)
        return code;
    code =
        check_results(call, (void *const[]){num_integers, num_addresses, num_large_counts, num_datatypes, combiner}, 5);
    if (code != MPI_SUCCESS)
        return code;
    *num_integers = (MPI_Count)recipe->integer_count;
    *num_addresses = (MPI_Count)recipe->address_count;
    *num_large_counts = (MPI_Count)recipe->large_count_count;
    *num_datatypes = (MPI_Count)recipe->type_count;
    *combiner = (int)recipe->combiner;
    return MPI_SUCCESS;
}

/* One of the arrays that are filled: how much room the caller has, how much is needed. */
static int check_room(const char *call, int position, const char *name, int64_t room, uint64_t needed,
                      const void *array, int array_position, const char *array_name)
{
    if (room < 0 || (uint64_t)room < needed)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, position, name, "%lld is too small, there are %llu",
                                 (long long)room, (unsigned long long)needed);
    return needed > 0 && array == NULL ? tb_raise_null(NULL, call, array_position, array_name) : MPI_SUCCESS;
}

/* Predefined types are given as they are, others by a new handle. */
static int give_types(const char *call, const struct tb_recipe *recipe, MPI_Datatype *handles)
{
    for (uint64_t i = 0; i < recipe->type_count; i++) {
        const struct tb_type *type = recipe->types[i];
        int code = MPI_SUCCESS;
        if (__atomic_load_n((const uint32_t *)&type->users, __ATOMIC_RELAXED) == 0)
            handles[i] = (MPI_Datatype)type->handle;
        else
            code = tb_datatype_new(call, tb_type_hold(type), false, &handles[i]);
        if (code != MPI_SUCCESS)
            return code;
    }
    return MPI_SUCCESS;
}

static int raise_named(const char *call)
{
    return tb_raise_argument(NULL, MPI_ERR_TYPE, call, 1, "datatype", "a predefined datatype has no contents");
}

static void copy_numbers(void *to, const void *from, uint64_t count, size_t size)
{
    if (count > 0)
        memcpy(to, from, count * size);
}

int tb_mpi_Type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
                             int array_of_integers[], MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[])
{
    static const char call[] = "MPI_Type_get_contents";
    int code;
    const struct tb_recipe *recipe = find(call, datatype, false, &code);
    if (recipe == NULL)
        return code;
    if (recipe->combiner == TB_COMBINER_NAMED)
        return raise_named(call);
    code = check_room(call, 2, "max_integers", max_integers, recipe->integer_count, array_of_integers, 5,
                      "array_of_integers");
    if (code == MPI_SUCCESS)
        code = check_room(call, 3, "max_addresses", max_addresses, recipe->address_count, array_of_addresses, 6,
                          "array_of_addresses");
    if (code == MPI_SUCCESS)
        code = check_room(call, 4, "max_datatypes", max_datatypes, recipe->type_count, array_of_datatypes, 7,
                          "array_of_datatypes");
    if (code != MPI_SUCCESS)
        return code;
    copy_numbers(array_of_integers, recipe->integers, recipe->integer_count, sizeof(int));
    copy_numbers(array_of_addresses, recipe->addresses, recipe->address_count, sizeof(MPI_Aint));
    return give_types(call, recipe, array_of_datatypes);
}

int tb_mpi_Type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
                               MPI_Count max_large_counts, MPI_Count max_datatypes, int array_of_integers[],
                               MPI_Aint array_of_addresses[], MPI_Count array_of_large_counts[],
                               MPI_Datatype array_of_datatypes[])
{
    static const char call[] = "MPI_Type_get_contents_c";
    int code;
    const struct tb_recipe *recipe = find(call, datatype, true, &code);
    if (recipe == NULL)
        return code;
    if (recipe->combiner == TB_COMBINER_NAMED)
        return raise_named(call);
    code = check_room(call, 2, "max_integers", max_integers, recipe->integer_count, array_of_integers, 6,
                      "array_of_integers");
    if (code == MPI_SUCCESS)
        code = check_room(call, 3, "max_addresses", max_addresses, recipe->address_count, array_of_addresses, 7,
                          "array_of_addresses");
    if (code == MPI_SUCCESS)
        code = check_room(call, 4, "max_large_counts", max_large_counts, recipe->large_count_count,
                          array_of_large_counts, 8, "array_of_large_counts");
    if (code == MPI_SUCCESS)
        code = check_room(call, 5, "max_datatypes", max_datatypes, recipe->type_count, array_of_datatypes, 9,
                          "array_of_datatypes");
    if (code != MPI_SUCCESS)
        return code;
    copy_numbers(array_of_integers, recipe->integers, recipe->integer_count, sizeof(int));
    copy_numbers(array_of_addresses, recipe->addresses, recipe->address_count, sizeof(MPI_Aint));
    copy_numbers(array_of_large_counts, recipe->large_counts, recipe->large_count_count, sizeof(MPI_Count));
    return give_types(call, recipe, array_of_datatypes);
}

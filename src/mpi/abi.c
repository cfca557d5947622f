/* The binary interface (MPI-5.0, chapter 21): versions, sizes, and what is known of Fortran. The library itself is C;
 * it knows Fortran's types as common compilers have them without options. A program or a library of bindings may say
 * once what its compiler has, which is then compared: types cannot be changed. All of it works at any time, in any
 * thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/datatype.h"
#include "mpi/info.h"

#define LOGICAL_BYTES 4
#define LOGICAL_TRUE  1 /* what reductions write */
#define LOGICAL_FALSE 0

/* The types whose size a compiler can choose, and those that it may lack. */
static const struct fact {
    const char *key;
    MPI_Datatype type;
    bool optional;
} facts[] = {
    {"mpi_logical_size", MPI_LOGICAL, false},
    {"mpi_integer_size", MPI_INTEGER, false},
    {"mpi_real_size", MPI_REAL, false},
    {"mpi_double_precision_size", MPI_DOUBLE_PRECISION, false},
    {"mpi_logical1_supported", MPI_LOGICAL1, true},
    {"mpi_logical2_supported", MPI_LOGICAL2, true},
    {"mpi_logical4_supported", MPI_LOGICAL4, true},
    {"mpi_logical8_supported", MPI_LOGICAL8, true},
    {"mpi_logical16_supported", MPI_LOGICAL16, true},
    {"mpi_integer1_supported", MPI_INTEGER1, true},
    {"mpi_integer2_supported", MPI_INTEGER2, true},
    {"mpi_integer4_supported", MPI_INTEGER4, true},
    {"mpi_integer8_supported", MPI_INTEGER8, true},
    {"mpi_integer16_supported", MPI_INTEGER16, true},
    {"mpi_real2_supported", MPI_REAL2, true},
    {"mpi_real4_supported", MPI_REAL4, true},
    {"mpi_real8_supported", MPI_REAL8, true},
    {"mpi_real16_supported", MPI_REAL16, true},
    {"mpi_complex4_supported", MPI_COMPLEX4, true},
    {"mpi_complex8_supported", MPI_COMPLEX8, true},
    {"mpi_complex16_supported", MPI_COMPLEX16, true},
    {"mpi_complex32_supported", MPI_COMPLEX32, true},
    {"mpi_double_complex_supported", MPI_DOUBLE_COMPLEX, true},
};
#define FACT_COUNT (sizeof facts / sizeof facts[0])

#define VALUE_BYTES 16

static int null_pointer(const char *call, int position, const char *name)
{
    return tb_raise_argument(NULL, MPI_ERR_ARG, call, position, name, "the pointer is null");
}

int tb_mpi_Abi_get_version(int *abi_major, int *abi_minor)
{
    if (abi_major == NULL || abi_minor == NULL)
        return null_pointer("MPI_Abi_get_version", abi_major == NULL ? 1 : 2,
                            abi_major == NULL ? "abi_major" : "abi_minor");
    *abi_major = MPI_ABI_VERSION;
    *abi_minor = MPI_ABI_SUBVERSION;
    return MPI_SUCCESS;
}

/* An info object of so many keys; `print` writes the value of one. */
static int give_info(const char *call, size_t count, const char *(*print)(size_t at, char value[VALUE_BYTES]),
                     MPI_Info *info)
{
    if (info == NULL)
        return null_pointer(call, 1, "info");
    struct tb_info *made = tb_info_new();
    int error = made == NULL ? TB_ERR_MEMORY : TB_OK;
    for (size_t i = 0; i < count && error == TB_OK; i++) {
        char value[VALUE_BYTES];
        const char *key = print(i, value);
        error = tb_info_put(made, key, value);
    }
    if (error == TB_OK) {
        *info = tb_info_handle(made);
        return MPI_SUCCESS;
    }
    if (made != NULL)
        tb_info_free(made);
    return tb_raise(NULL, MPI_ERR_NO_MEM, call, "out of memory");
}

static const char *print_size(size_t at, char value[VALUE_BYTES])
{
    static const struct {
        const char *key;
        size_t bytes;
    } sizes[] = {{"mpi_aint_size", sizeof(MPI_Aint)},
                 {"mpi_count_size", sizeof(MPI_Count)},
                 {"mpi_offset_size", sizeof(MPI_Offset)}};
    snprintf(value, VALUE_BYTES, "%zu", sizes[at].bytes);
    return sizes[at].key;
}

int tb_mpi_Abi_get_info(MPI_Info *info)
{
    return give_info("MPI_Abi_get_info", 3, print_size, info);
}

/* ---- Fortran ----------------------------------------------------------------------------------------------------- */

static const char *print_fact(size_t at, char value[VALUE_BYTES])
{
    const struct fact *f = &facts[at];
    const struct tb_type *type = tb_type_predefined((uintptr_t)f->type);
    if (f->optional)
        snprintf(value, VALUE_BYTES, "%s", type != NULL ? "true" : "false");
    else
        snprintf(value, VALUE_BYTES, "%u", (unsigned)type->size);
    return f->key;
}

int tb_mpi_Abi_get_fortran_info(MPI_Info *info)
{
    return give_info("MPI_Abi_get_fortran_info", FACT_COUNT, print_fact, info);
}

/* Whether what a program says of a type agrees with the library. A type that only the library has does no harm. */
static bool agrees(const struct fact *f, const char *said, const char *known)
{
    return f->optional && strcmp(said, "false") == 0 ? true : strcmp(said, known) == 0;
}

/* Somebody has said so before; both calls know one. */
static bool said_before(bool *said)
{
    pthread_mutex_lock(&tb_self.anytime_lock);
    bool before = *said;
    *said = true;
    pthread_mutex_unlock(&tb_self.anytime_lock);
    return before;
}

int tb_mpi_Abi_set_fortran_info(MPI_Info info)
{
    static const char call[] = "MPI_Abi_set_fortran_info";
    const struct tb_info *i = tb_info_find(info);
    if (i == NULL)
        return tb_raise_info(NULL, call, 1, info);
    for (size_t at = 0; at < FACT_COUNT; at++) {
        char known[VALUE_BYTES];
        const char *value = tb_info_value(i, facts[at].key);
        print_fact(at, known);
        if (value == NULL && !facts[at].optional)
            return tb_raise_argument(NULL, MPI_ERR_ABI, call, 1, "info", "it does not say %s", facts[at].key);
        if (value != NULL && !agrees(&facts[at], value, known))
            return tb_raise_argument(
                NULL, MPI_ERR_ABI, call, 1, "info",
                "%s is %s, and %s in this library; compile without options that change the sizes of "
                "Fortran's types, or use types with a size in their name",
                facts[at].key, value, known);
    }
    if (said_before(&tb_self.fortran_info_said))
        return tb_raise(NULL, MPI_ERR_ABI, call, "that has been said already; see MPI_Abi_get_fortran_info");
    return MPI_SUCCESS;
}

static int check_logical(const char *call, int logical_size, const void *logical_true, const void *logical_false)
{
    if (logical_true == NULL || logical_false == NULL)
        return null_pointer(call, logical_true == NULL ? 2 : 3,
                            logical_true == NULL ? "logical_true" : "logical_false");
    if (logical_size != LOGICAL_BYTES)
        return tb_raise_argument(NULL, MPI_ERR_ABI, call, 1, "logical_size", "a LOGICAL has %d bytes here, not %d",
                                 LOGICAL_BYTES, logical_size);
    return MPI_SUCCESS;
}

int tb_mpi_Abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false, int *is_set)
{
    static const char call[] = "MPI_Abi_get_fortran_booleans";
    static const int32_t yes = LOGICAL_TRUE, no = LOGICAL_FALSE;
    int code = check_logical(call, logical_size, logical_true, logical_false);
    if (code != MPI_SUCCESS)
        return code;
    if (is_set == NULL)
        return null_pointer(call, 4, "is_set");
    memcpy(logical_true, &yes, sizeof yes);
    memcpy(logical_false, &no, sizeof no);
    *is_set = 1;
    return MPI_SUCCESS;
}

int tb_mpi_Abi_set_fortran_booleans(int logical_size, void *logical_true, void *logical_false)
{
    static const char call[] = "MPI_Abi_set_fortran_booleans";
    int32_t yes, no;
    int code = check_logical(call, logical_size, logical_true, logical_false);
    if (code != MPI_SUCCESS)
        return code;
    memcpy(&yes, logical_true, sizeof yes);
    memcpy(&no, logical_false, sizeof no);
    if (yes != LOGICAL_TRUE || no != LOGICAL_FALSE)
        return tb_raise(
            NULL, MPI_ERR_ABI, call,
            ".TRUE. is %d and .FALSE. is %d, and %d and %d in this library; compilers have options for that", yes, no,
            LOGICAL_TRUE, LOGICAL_FALSE);
    if (said_before(&tb_self.fortran_booleans_said))
        return tb_raise(NULL, MPI_ERR_ABI, call, "that has been said already; see MPI_Abi_get_fortran_booleans");
    return MPI_SUCCESS;
}

/* Enumerations of the tool information interface (MPI-5.0, 15.3.5): names for the values of variables. A handle is the
 * address of a row, which is only compared, never followed, before it is known to be one. */
#include <stdio.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/tool.h"

/* Item `index` is named; its value is its index. */
struct enum_row {
    const char *name;
    uint32_t (*count)(void);
    void (*item)(uint32_t index, char *name, size_t size);
};

static uint32_t truth_count(void)
{
    return 2;
}

static void truth_item(uint32_t index, char *name, size_t size)
{
    snprintf(name, size, "%s", index == 0 ? "no" : "yes");
}

static uint32_t operation_count(void)
{
    return TB_OPERATION_COUNT + 1;
}

static void operation_item(uint32_t index, char *name, size_t size)
{
    if (index == 0)
        snprintf(name, size, "none");
    else
        tb_operation_word((enum tb_operation)(index - 1), name, size);
}

static uint32_t algorithm_count(void)
{
    return tb_mpit_algorithms() + 1;
}

static void algorithm_item(uint32_t index, char *name, size_t size)
{
    if (index == 0) {
        snprintf(name, size, "none");
        return;
    }
    const struct tb_algorithm *a = tb_catalogue[index - 1];
    tb_operation_word(a->operation, name, size);
    size_t length = strlen(name);
    snprintf(name + length, size - length, " %s", a->name);
}

static uint32_t reason_count(void)
{
    return TB_REASON_COUNT + 1;
}

static void reason_item(uint32_t index, char *name, size_t size)
{
    snprintf(name, size, "%s", index == 0 ? "none" : tb_reason_text((enum tb_reason)(index - 1)));
}

static const struct enum_row rows[TB_MPIT_ENUMS] = {
    [TB_MPIT_TRUTH] = {"truth", truth_count, truth_item},
    [TB_MPIT_OPERATION] = {"operation", operation_count, operation_item},
    [TB_MPIT_ALGORITHM] = {"algorithm", algorithm_count, algorithm_item},
    [TB_MPIT_REASON] = {"reason", reason_count, reason_item},
};

MPI_T_enum tb_mpit_enum(enum tb_mpit_enum which)
{
    return (MPI_T_enum)(uintptr_t)&rows[which];
}

uint32_t tb_mpit_algorithms(void)
{
    uint32_t count = 0;
    while (tb_catalogue[count] != NULL)
        count++;
    return count;
}

uint32_t tb_mpit_algorithm(const struct tb_algorithm *algorithm)
{
    uint32_t at = 0;
    while (tb_catalogue[at] != NULL && tb_catalogue[at] != algorithm)
        at++;
    return at;
}

static const struct enum_row *row_find(MPI_T_enum enumtype)
{
    for (size_t i = 0; i < TB_MPIT_ENUMS; i++)
        if ((uintptr_t)enumtype == (uintptr_t)&rows[i])
            return &rows[i];
    return NULL;
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

int tb_mpi_T_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    const struct enum_row *row = row_find(enumtype);
    if (row == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID_HANDLE);
    tb_mpit_number(num, (int)row->count());
    tb_mpit_text(row->name, name, name_len);
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_enum_get_item(MPI_T_enum enumtype, int indx, int *value, char *name, int *name_len)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    const struct enum_row *row = row_find(enumtype);
    if (row == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID_HANDLE);
    if (indx < 0 || (uint32_t)indx >= row->count())
        return tb_mpit_leave(MPI_T_ERR_INVALID_INDEX);
    char text[TB_MPIT_NAME_BYTES];
    row->item((uint32_t)indx, text, sizeof text);
    tb_mpit_number(value, indx);
    tb_mpit_text(text, name, name_len);
    return tb_mpit_leave(MPI_SUCCESS);
}

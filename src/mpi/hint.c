/* Hints of communicators (MPI-5.0, 7.4.4): what a program asserts about its use of one. */
#include "mpi/hint.h"

#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/plan.h"

static const char *const hint_keys[] = {
    "mpi_assert_no_any_tag",
    "mpi_assert_no_any_source",
    "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
};
#define HINT_COUNT (sizeof hint_keys / sizeof hint_keys[0])

int tb_memory_kinds_put(struct tb_info *info, const struct tb_session *session)
{
    char offered[TB_MEMORY_KINDS_ROOM];
    const char *asked = session != NULL ? session->memory_kinds : NULL;
    tb_memory_kinds_offer(asked != NULL ? asked : tb_param.memory_alloc_kinds, offered);
    return tb_info_put(info, "mpi_memory_alloc_kinds", offered);
}

void tb_hints_take(struct tb_hints *hints, const struct tb_info *info)
{
    for (size_t i = 0; i < HINT_COUNT; i++) {
        const char *value = tb_info_value(info, hint_keys[i]);
        if (value != NULL && strcmp(value, "true") == 0)
            hints->set |= (uint8_t)(1u << i);
        if (value != NULL && strcmp(value, "false") == 0)
            hints->set &= (uint8_t) ~(1u << i);
    }
}

int tb_hints_check(struct tb_comm *comm, const char *call, int position, MPI_Info handle, const struct tb_info **info)
{
    *info = handle == MPI_INFO_NULL ? NULL : tb_info_find(handle);
    if (handle != MPI_INFO_NULL && *info == NULL)
        return tb_raise_info(comm, call, position, handle);
    return MPI_SUCCESS;
}

int tb_mpi_Comm_set_info(MPI_Comm comm, MPI_Info info)
{
    static const char call[] = "MPI_Comm_set_info";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    const struct tb_info *i = tb_info_find(info);
    if (i == NULL)
        return tb_raise_info(c, call, 2, info);
    tb_hints_take(&c->hints, i);
    tb_comm_prefer(c, i);
    return MPI_SUCCESS;
}

int tb_mpi_Comm_get_info(MPI_Comm comm, MPI_Info *info_used)
{
    static const char call[] = "MPI_Comm_get_info";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (info_used == NULL)
        return tb_raise_null(c, call, 2, "info_used");
    struct tb_info *made = tb_info_new();
    int error = made == NULL ? TB_ERR_MEMORY : TB_OK;
    char shape[256];
    for (size_t i = 0; i < HINT_COUNT && error == TB_OK; i++)
        error = tb_info_put(made, hint_keys[i], c->hints.set >> i & 1 ? "true" : "false");
    if (error == TB_OK)
        error = tb_memory_kinds_put(made, c->session);
    if (error == TB_OK)
        error = tb_comm_print_shape(c, shape, sizeof shape);
    if (error == TB_OK)
        error = tb_info_put(made, "tombolo_shape", shape);
    if (error == TB_OK)
        error = tb_comm_preferred(c, made);
    if (error < 0) {
        if (made != NULL)
            tb_info_free(made);
        return tb_raise_below(c, error, call);
    }
    *info_used = tb_info_handle(made);
    return MPI_SUCCESS;
}

/* Communicators from groups alone (MPI-5.0, 7.4.2). */
#include "mpi/creation.h"

#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/foreign.h"
#include "mpi/group.h"
#include "mpi/hint.h"
#include "mpi/subgroup.h"
#include "mpi/universe.h"

uint64_t tb_stringtag_number(const char *stringtag)
{
    uint64_t number = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char *c = stringtag; *c != 0; c++)
        number = (number ^ (unsigned char)*c) * 0x100000001b3u;
    return number;
}

int tb_raise_creation(const struct tb_creation *creation, int code)
{
    MPI_Comm none = MPI_COMM_NULL;
    return tb_raise_to(creation->errhandler, &none, code);
}

int tb_creation_check(struct tb_creation *creation, const char *stringtag, int position, MPI_Info info,
                      MPI_Errhandler errhandler, const MPI_Comm *result)
{
    const char *call = creation->call;
    tb_require_active(call);
    creation->errhandler = tb_errhandler_find(errhandler, TB_ERRHANDLER_COMM);
    if (creation->errhandler == NULL)
        return tb_raise_code(NULL, tb_errhandler_wrong(call, position + 2, errhandler, TB_ERRHANDLER_COMM));
    creation->hints = info != MPI_INFO_NULL ? tb_info_find(info) : NULL;
    int code = MPI_SUCCESS;
    if (stringtag == NULL)
        code = tb_error_code(MPI_ERR_ARG, call, "argument %d (stringtag): the pointer is null", position);
    else if (strnlen(stringtag, MPI_MAX_STRINGTAG_LEN) == MPI_MAX_STRINGTAG_LEN)
        code = tb_error_code(MPI_ERR_ARG, call, "argument %d (stringtag): it is longer than %d characters", position,
                             MPI_MAX_STRINGTAG_LEN - 1);
    else if (info != MPI_INFO_NULL && creation->hints == NULL)
        code = tb_error_code(MPI_ERR_INFO, call, "argument %d (info): this is no info object, or it has been freed",
                             position + 1);
    else if (result == NULL)
        code = tb_error_code(MPI_ERR_ARG, call, "argument %d (%s): the pointer is null", position + 3,
                             creation->result_name);
    return code == MPI_SUCCESS ? code : tb_raise_creation(creation, code);
}

int tb_creation_make(const struct tb_creation *creation, MPI_Group group, const char *name, uint64_t match,
                     struct tb_comm **made)
{
    const char *call = creation->call;
    const struct tb_group *g = tb_group_find(group);
    if (g == NULL)
        return tb_raise_creation(creation, tb_error_code(MPI_ERR_GROUP, call, "argument 1 (%s): %s", name,
                                                         group == MPI_GROUP_NULL
                                                             ? "it is MPI_GROUP_NULL"
                                                             : "this is no handle of a group, or it has been freed"));
    uint32_t mine = tb_subgroup_position(g->procs, g->size, tb_self.job.self.index);
    if (mine == g->size)
        return tb_raise_creation(
            creation, tb_error_code(MPI_ERR_GROUP, call, "argument 1 (%s): this process is not in the group", name));
    if (tb_foreign_among(g->procs, g->size))
        return tb_raise_creation(creation, tb_error_code(MPI_ERR_GROUP, call,
                                                         "argument 1 (%s): some of the group are of another job, and "
                                                         "only a communicator leads there",
                                                         name));
    struct tb_comm *universe;
    int error = tb_universe_own(&universe);
    if (error == TB_OK)
        error = tb_subgroup_listed(universe, g->procs, g->size, mine, match, made);
    if (error != TB_OK)
        return tb_raise_creation(creation, tb_error_code_below(error, call));
    tb_errhandler_replace(&(*made)->errhandler, creation->errhandler);
    (*made)->session = tb_session_hold(g->session);
    return MPI_SUCCESS;
}

int tb_mpi_Comm_create_from_group(MPI_Group group, const char *stringtag, MPI_Info info, MPI_Errhandler errhandler,
                                  MPI_Comm *newcomm)
{
    struct tb_creation creation = {.call = "MPI_Comm_create_from_group", .result_name = "newcomm"};
    struct tb_comm *made = NULL;
    int code = tb_creation_check(&creation, stringtag, 2, info, errhandler, newcomm);
    if (code != MPI_SUCCESS)
        return code;
    *newcomm = MPI_COMM_NULL;
    if (group == MPI_GROUP_EMPTY)
        return MPI_SUCCESS;
    code = tb_creation_make(&creation, group, "group",
                            tb_topic_match(TB_TOPIC_CREATE_FROM_GROUP, tb_stringtag_number(stringtag)), &made);
    if (code != MPI_SUCCESS || made == NULL)
        return code;
    if (creation.hints != NULL)
        tb_hints_take(&made->hints, creation.hints);
    *newcomm = tb_comm_handle(made);
    return MPI_SUCCESS;
}

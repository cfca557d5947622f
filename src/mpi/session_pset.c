/* The process sets of a session (MPI-5.0, 11.3.2), and groups of them. */
#include <stdio.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/group.h"
#include "mpi/info.h"
#include "mpi/pset.h"
#include "mpi/session_error.h"

/* The hints of a question about process sets: there are none that matter. */
static int check_info(struct tb_session *session, const char *call, MPI_Info info)
{
    if (info == MPI_INFO_NULL || tb_info_find(info) != NULL)
        return MPI_SUCCESS;
    return tb_raise_session(session, MPI_ERR_INFO, call, 2, "info", "this is no info object, or it has been freed");
}

int tb_mpi_Session_get_num_psets(MPI_Session session, MPI_Info info, int *npset_names)
{
    static const char call[] = "MPI_Session_get_num_psets";
    struct tb_session *s = tb_session_find(session);
    if (s == NULL)
        return tb_raise_no_session(call, session);
    if (npset_names == NULL)
        return tb_raise_session_null(s, call, 3, "npset_names");
    int code = check_info(s, call, info);
    if (code == MPI_SUCCESS)
        *npset_names = tb_pset_count();
    return code;
}

int tb_mpi_Session_get_nth_pset(MPI_Session session, MPI_Info info, int n, int *pset_len, char *pset_name)
{
    static const char call[] = "MPI_Session_get_nth_pset";
    struct tb_session *s = tb_session_find(session);
    if (s == NULL)
        return tb_raise_no_session(call, session);
    if (pset_len == NULL)
        return tb_raise_session_null(s, call, 4, "pset_len");
    if (*pset_len < 0)
        return tb_raise_session(s, MPI_ERR_ARG, call, 4, "pset_len", "%d is negative", *pset_len);
    if (pset_name == NULL && *pset_len > 0)
        return tb_raise_session_null(s, call, 5, "pset_name");
    if (n < 0 || n >= tb_pset_count())
        return tb_raise_session(s, MPI_ERR_ARG, call, 3, "n", "there are process sets 0 to %d, and no %d",
                                tb_pset_count() - 1, n);
    int code = check_info(s, call, info);
    if (code != MPI_SUCCESS)
        return code;
    const char *name = tb_pset_name(tb_pset_nth(n));
    if (*pset_len > 0)
        snprintf(pset_name, (size_t)*pset_len, "%s", name);
    *pset_len = (int)strlen(name) + 1;
    return MPI_SUCCESS;
}

static int raise_pset(struct tb_session *session, const char *call, const char *name)
{
    return tb_raise_session(
        session, MPI_ERR_ARG, call, 2, "pset_name",
        "this process is in no process set \"%.100s\"; MPI_Session_get_nth_pset tells which there are", name);
}

int tb_mpi_Session_get_pset_info(MPI_Session session, const char *pset_name, MPI_Info *info)
{
    static const char call[] = "MPI_Session_get_pset_info";
    struct tb_session *s = tb_session_find(session);
    if (s == NULL)
        return tb_raise_no_session(call, session);
    if (pset_name == NULL || info == NULL)
        return tb_raise_session_null(s, call, pset_name == NULL ? 2 : 3, pset_name == NULL ? "pset_name" : "info");
    enum tb_pset set = tb_pset_find(pset_name);
    if (set == TB_PSET_COUNT)
        return raise_pset(s, call, pset_name);
    char size[16];
    snprintf(size, sizeof size, "%u", tb_pset_procs(set, NULL));
    struct tb_info *made = tb_info_new();
    int error = made == NULL ? TB_ERR_MEMORY : tb_info_put(made, "mpi_size", size);
    if (error < 0) {
        if (made != NULL)
            tb_info_free(made);
        return tb_raise_session_code(s, tb_error_code_below(error, call));
    }
    *info = tb_info_handle(made);
    return MPI_SUCCESS;
}

int tb_mpi_Group_from_session_pset(MPI_Session session, const char *pset_name, MPI_Group *newgroup)
{
    static const char call[] = "MPI_Group_from_session_pset";
    struct tb_session *s = tb_session_find(session);
    if (s == NULL)
        return tb_raise_no_session(call, session);
    if (pset_name == NULL || newgroup == NULL)
        return tb_raise_session_null(s, call, pset_name == NULL ? 2 : 3, pset_name == NULL ? "pset_name" : "newgroup");
    *newgroup = MPI_GROUP_NULL;
    enum tb_pset set = tb_pset_find(pset_name);
    if (set == TB_PSET_COUNT)
        return raise_pset(s, call, pset_name);
    struct tb_group *made = tb_group_new(tb_pset_procs(set, NULL), s);
    if (made == NULL)
        return tb_raise_session(s, MPI_ERR_NO_MEM, call, 0, NULL, "out of memory for a group");
    tb_pset_procs(set, made->procs);
    *newgroup = tb_group_publish(made);
    return MPI_SUCCESS;
}

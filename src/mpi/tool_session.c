/* Performance variables: asking about them, sessions, handles, values (MPI-5.0, 15.3.7). A handle of a variable that
 * can be written remembers where its session's zero is, so that sessions do not disturb each other. */
#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/tool.h"

struct session {
    struct tb_list handles;
};

struct handle {
    struct tb_list in_session;
    struct session *session;
    MPI_T_pvar_handle self;
    uint32_t index;
    bool readonly;
    uint64_t zero; /* is taken off the count; wraps around */
};

/* ---- asking ------------------------------------------------------------------------------------------------------ */

int tb_mpi_T_pvar_get_num(int *num_pvar)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    tb_mpit_number(num_pvar, (int)tb_mpit_pvar_count());
    return tb_mpit_leave(num_pvar != NULL ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}

static bool is_pvar(int index)
{
    return index >= 0 && (uint32_t)index < tb_mpit_pvar_count();
}

int tb_mpi_T_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity, int *var_class,
                           MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind,
                           int *readonly, int *continuous, int *atomic)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (!is_pvar(pvar_index))
        return tb_mpit_leave(MPI_T_ERR_INVALID_INDEX);
    struct tb_mpit_pvar v;
    tb_mpit_pvar_describe((uint32_t)pvar_index, &v);
    tb_mpit_text(v.name, name, name_len);
    tb_mpit_text(v.description, desc, desc_len);
    tb_mpit_number(verbosity, tb_mpit_verbosity(tb_mpit_pvar_category((uint32_t)pvar_index)));
    tb_mpit_number(var_class, v.class);
    tb_mpit_number(bind, MPI_T_BIND_NO_OBJECT);
    tb_mpit_number(readonly, v.readonly);
    tb_mpit_number(continuous, 1);
    tb_mpit_number(atomic, !v.readonly);
    if (datatype != NULL)
        *datatype = v.datatype;
    if (enumtype != NULL)
        *enumtype = v.enumtype;
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (name == NULL || pvar_index == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    for (uint32_t i = 0; i < tb_mpit_pvar_count(); i++) {
        struct tb_mpit_pvar v;
        tb_mpit_pvar_describe(i, &v);
        if (v.class == var_class && strcmp(v.name, name) == 0) {
            *pvar_index = (int)i;
            return tb_mpit_leave(MPI_SUCCESS);
        }
    }
    return tb_mpit_leave(MPI_T_ERR_INVALID_NAME);
}

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

int tb_mpi_T_pvar_session_create(MPI_T_pvar_session *session)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (session == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    struct session *s = malloc(sizeof *s);
    if (s == NULL)
        return tb_mpit_leave(MPI_T_ERR_MEMORY);
    tb_list_init(&s->handles);
    void *made = tb_mpit_slot_take(&tb_self.mpit->sessions, TB_MPIT_SESSION, s);
    if (made == NULL) {
        free(s);
        return tb_mpit_leave(MPI_T_ERR_OUT_OF_SESSIONS);
    }
    *session = made;
    return tb_mpit_leave(MPI_SUCCESS);
}

static struct session *session_find(MPI_T_pvar_session session)
{
    return tb_mpit_slot_find(&tb_self.mpit->sessions, TB_MPIT_SESSION, session);
}

static void handle_free(struct handle *h)
{
    tb_list_remove(&h->in_session);
    tb_mpit_slot_give(&tb_self.mpit->pvars, h->self);
}

int tb_mpi_T_pvar_session_free(MPI_T_pvar_session *session)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (session == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    struct session *s = session_find(*session);
    if (s == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID_SESSION);
    while (!tb_list_empty(&s->handles))
        handle_free(TB_CONTAINER(s->handles.next, struct handle, in_session));
    tb_mpit_slot_give(&tb_self.mpit->sessions, *session);
    *session = MPI_T_PVAR_SESSION_NULL;
    return tb_mpit_leave(MPI_SUCCESS);
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

int tb_mpi_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void *obj_handle, MPI_T_pvar_handle *handle,
                               int *count)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    struct session *s = session_find(session);
    if (s == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID_SESSION);
    if (handle == NULL || count == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    if (!is_pvar(pvar_index))
        return tb_mpit_leave(MPI_T_ERR_INVALID_INDEX);
    struct handle *h = malloc(sizeof *h);
    if (h == NULL)
        return tb_mpit_leave(MPI_T_ERR_MEMORY);
    struct tb_mpit_pvar v;
    tb_mpit_pvar_describe((uint32_t)pvar_index, &v);
    *h = (struct handle){.session = s, .index = (uint32_t)pvar_index, .readonly = v.readonly};
    h->self = tb_mpit_slot_take(&tb_self.mpit->pvars, TB_MPIT_PVAR, h);
    if (h->self == NULL) {
        free(h);
        return tb_mpit_leave(MPI_T_ERR_OUT_OF_HANDLES);
    }
    tb_list_append(&s->handles, &h->in_session);
    *handle = h->self;
    *count = v.count;
    return tb_mpit_leave(MPI_SUCCESS);
}

/* The lock is held; unless the code is MPI_SUCCESS, nothing is found. */
static int handle_find(MPI_T_pvar_session session, MPI_T_pvar_handle handle, struct handle **found)
{
    const struct session *s = session_find(session);
    if (s == NULL)
        return MPI_T_ERR_INVALID_SESSION;
    struct handle *h = tb_mpit_slot_find(&tb_self.mpit->pvars, TB_MPIT_PVAR, handle);
    if (h == NULL || h->session != s)
        return MPI_T_ERR_INVALID_HANDLE;
    *found = h;
    return MPI_SUCCESS;
}

int tb_mpi_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (handle == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    struct handle *h = NULL;
    code = handle_find(session, *handle, &h);
    if (code == MPI_SUCCESS) {
        handle_free(h);
        *handle = MPI_T_PVAR_HANDLE_NULL;
    }
    return tb_mpit_leave(code);
}

/* All variables are continuous: none can be started or stopped, and of all handles together none needs to. */
static int start_or_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    struct handle *h = NULL;
    if (handle == MPI_T_PVAR_ALL_HANDLES)
        return tb_mpit_leave(session_find(session) != NULL ? MPI_SUCCESS : MPI_T_ERR_INVALID_SESSION);
    code = handle_find(session, handle, &h);
    return tb_mpit_leave(code == MPI_SUCCESS ? MPI_T_ERR_PVAR_NO_STARTSTOP : code);
}

int tb_mpi_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return start_or_stop(session, handle);
}

int tb_mpi_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return start_or_stop(session, handle);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* The count since MPI_Init of a variable that can be written. */
static uint64_t count_of(const struct handle *h)
{
    uint64_t now;
    TB_ASSERT(!h->readonly);
    tb_mpit_pvar_value(h->index, &now);
    return now;
}

int tb_mpi_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    struct handle *h = NULL;
    code = handle_find(session, handle, &h);
    if (code == MPI_SUCCESS && buf == NULL)
        code = MPI_T_ERR_INVALID;
    if (code != MPI_SUCCESS)
        return tb_mpit_leave(code);
    if (h->readonly)
        tb_mpit_pvar_value(h->index, buf);
    else
        *(uint64_t *)buf = count_of(h) - h->zero;
    return tb_mpit_leave(MPI_SUCCESS);
}

/* A handle for writing. The lock is held. */
static int handle_find_writable(MPI_T_pvar_session session, MPI_T_pvar_handle handle, struct handle **found)
{
    int code = handle_find(session, handle, found);
    return code == MPI_SUCCESS && (*found)->readonly ? MPI_T_ERR_PVAR_NO_WRITE : code;
}

int tb_mpi_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    struct handle *h = NULL;
    code = handle_find_writable(session, handle, &h);
    if (code == MPI_SUCCESS && buf == NULL)
        code = MPI_T_ERR_INVALID;
    if (code == MPI_SUCCESS)
        h->zero = count_of(h) - *(const uint64_t *)buf;
    return tb_mpit_leave(code);
}

static void reset_all(struct session *s)
{
    for (struct tb_list *at = s->handles.next; at != &s->handles; at = at->next) {
        struct handle *h = TB_CONTAINER(at, struct handle, in_session);
        if (!h->readonly)
            h->zero = count_of(h);
    }
}

int tb_mpi_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    struct handle *h = NULL;
    struct session *s = session_find(session);
    if (s != NULL && handle == MPI_T_PVAR_ALL_HANDLES) {
        reset_all(s);
        return tb_mpit_leave(MPI_SUCCESS);
    }
    code = handle_find_writable(session, handle, &h);
    if (code == MPI_SUCCESS)
        h->zero = count_of(h);
    return tb_mpit_leave(code);
}

int tb_mpi_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    struct handle *h = NULL;
    code = handle_find_writable(session, handle, &h);
    if (code == MPI_SUCCESS && buf == NULL)
        code = MPI_T_ERR_INVALID;
    if (code == MPI_SUCCESS) {
        uint64_t now = count_of(h);
        *(uint64_t *)buf = now - h->zero;
        h->zero = now;
    }
    return tb_mpit_leave(code);
}

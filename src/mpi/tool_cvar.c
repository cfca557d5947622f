/* Control variables (MPI-5.0, 15.3.6): the parameters, tombolo_<name>. They can be read, with the value that is in
 * force. They are settled for the whole job when it starts, so writing is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/tool.h"

#define PREFIX     "tombolo_"
#define TEXT_BYTES 4096 /* the longest value of a parameter, with its end */

struct cvar {
    const struct tb_param_row *row;
};

uint32_t tb_mpit_cvar_count(void)
{
    return (uint32_t)tb_param_count();
}

/* As its row says. */
enum tb_mpit_category tb_mpit_cvar_category(uint32_t index)
{
    switch (tb_param_subject(tb_param_row(index))) {
    case TB_PARAM_JOB:
        return TB_MPIT_JOB;
    case TB_PARAM_TRANSPORT:
        return TB_MPIT_TRANSPORT;
    case TB_PARAM_ENGINE:
        return TB_MPIT_ENGINE;
    case TB_PARAM_PLANNER:
        return TB_MPIT_PLANNER;
    case TB_PARAM_COLLECTIVES:
        return TB_MPIT_COLLECTIVES;
    default:
        return TB_MPIT_BASE;
    }
}

static MPI_Datatype datatype_of(enum tb_param_type type)
{
    switch (type) {
    case TB_PARAM_BOOL:
        return MPI_INT;
    case TB_PARAM_INT:
        return MPI_COUNT;
    case TB_PARAM_SIZE:
    case TB_PARAM_TIME:
        return MPI_UNSIGNED_LONG_LONG;
    case TB_PARAM_TEXT:
        break;
    }
    return MPI_CHAR;
}

static void value_read(const struct tb_param_row *row, void *buf)
{
    const char *field = tb_param_value(row);
    switch (row->type) {
    case TB_PARAM_BOOL:
        *(int *)buf = *(const bool *)field;
        break;
    case TB_PARAM_INT:
    case TB_PARAM_SIZE:
    case TB_PARAM_TIME:
        memcpy(buf, field, sizeof(uint64_t));
        break;
    case TB_PARAM_TEXT:
        snprintf(buf, TEXT_BYTES, "%s", *(const char *const *)field);
        break;
    }
}

static void describe(const struct tb_param_row *row, char *text, size_t size)
{
    const char *unit = row->type == TB_PARAM_SIZE ? " (bytes)" : row->type == TB_PARAM_TIME ? " (nanoseconds)" : "";
    snprintf(text, size, "%s%s", row->help, unit);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

int tb_mpi_T_cvar_get_num(int *num_cvar)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    tb_mpit_number(num_cvar, (int)tb_mpit_cvar_count());
    return tb_mpit_leave(num_cvar != NULL ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}

int tb_mpi_T_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity, MPI_Datatype *datatype,
                           MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *scope)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (cvar_index < 0 || (uint32_t)cvar_index >= tb_mpit_cvar_count())
        return tb_mpit_leave(MPI_T_ERR_INVALID_INDEX);
    const struct tb_param_row *row = tb_param_row((size_t)cvar_index);
    char text[TB_MPIT_DESC_BYTES];
    snprintf(text, sizeof text, PREFIX "%s", row->name);
    tb_mpit_text(text, name, name_len);
    describe(row, text, sizeof text);
    tb_mpit_text(text, desc, desc_len);
    tb_mpit_number(verbosity, tb_mpit_verbosity(tb_mpit_cvar_category((uint32_t)cvar_index)));
    tb_mpit_number(bind, MPI_T_BIND_NO_OBJECT);
    tb_mpit_number(scope, MPI_T_SCOPE_READONLY);
    if (datatype != NULL)
        *datatype = datatype_of(row->type);
    if (enumtype != NULL)
        *enumtype = row->type == TB_PARAM_BOOL ? tb_mpit_enum(TB_MPIT_TRUTH) : MPI_T_ENUM_NULL;
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_cvar_get_index(const char *name, int *cvar_index)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (name == NULL || cvar_index == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    bool ours = strncmp(name, PREFIX, strlen(PREFIX)) == 0;
    for (uint32_t i = 0; ours && i < tb_mpit_cvar_count(); i++) {
        if (strcmp(tb_param_row(i)->name, name + strlen(PREFIX)) == 0) {
            *cvar_index = (int)i;
            return tb_mpit_leave(MPI_SUCCESS);
        }
    }
    return tb_mpit_leave(MPI_T_ERR_INVALID_NAME);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

int tb_mpi_T_cvar_handle_alloc(int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle, int *count)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (handle == NULL || count == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    if (cvar_index < 0 || (uint32_t)cvar_index >= tb_mpit_cvar_count())
        return tb_mpit_leave(MPI_T_ERR_INVALID_INDEX);
    struct cvar *cvar = malloc(sizeof *cvar);
    if (cvar == NULL)
        return tb_mpit_leave(MPI_T_ERR_MEMORY);
    cvar->row = tb_param_row((size_t)cvar_index);
    void *made = tb_mpit_slot_take(&tb_self.mpit->cvars, TB_MPIT_CVAR, cvar);
    if (made == NULL) {
        free(cvar);
        return tb_mpit_leave(MPI_T_ERR_OUT_OF_HANDLES);
    }
    *handle = made;
    *count = cvar->row->type == TB_PARAM_TEXT ? TEXT_BYTES : 1;
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_cvar_handle_free(MPI_T_cvar_handle *handle)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (handle == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    if (tb_mpit_slot_find(&tb_self.mpit->cvars, TB_MPIT_CVAR, *handle) == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID_HANDLE);
    tb_mpit_slot_give(&tb_self.mpit->cvars, *handle);
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    const struct cvar *cvar = tb_mpit_slot_find(&tb_self.mpit->cvars, TB_MPIT_CVAR, handle);
    if (cvar == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID_HANDLE);
    if (buf == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    value_read(cvar->row, buf);
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    bool known = tb_mpit_slot_find(&tb_self.mpit->cvars, TB_MPIT_CVAR, handle) != NULL;
    return tb_mpit_leave(known ? MPI_T_ERR_CVAR_SET_NEVER : MPI_T_ERR_INVALID_HANDLE);
}

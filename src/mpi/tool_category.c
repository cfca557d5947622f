/* Categories (MPI-5.0, 15.3.9): the variables by the layer that they belong to. They never change. */
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/tool.h"

static const struct {
    const char *name, *description;
    int verbosity; /* of its variables */
} rows[TB_MPIT_CATEGORIES] = {
    [TB_MPIT_ALL] = {"tombolo", "all variables of Tombolo, by layer", MPI_T_VERBOSITY_USER_BASIC},
    [TB_MPIT_BASE] = {"tombolo_base", "what concerns everything", MPI_T_VERBOSITY_USER_BASIC},
    [TB_MPIT_JOB] = {"tombolo_job", "starting, watching and ending jobs", MPI_T_VERBOSITY_USER_DETAIL},
    [TB_MPIT_TRANSPORT] = {"tombolo_transport", "how frames move between ranks", MPI_T_VERBOSITY_TUNER_BASIC},
    [TB_MPIT_ENGINE] = {"tombolo_engine", "messages: protocols, matching, progress", MPI_T_VERBOSITY_TUNER_BASIC},
    [TB_MPIT_PLANNER] = {"tombolo_planner", "what is assumed about hosts and network, and which algorithms were chosen",
                         MPI_T_VERBOSITY_TUNER_DETAIL},
    [TB_MPIT_COLLECTIVES] = {"tombolo_collectives", "collectives and their algorithms", MPI_T_VERBOSITY_TUNER_BASIC},
};

int tb_mpit_verbosity(enum tb_mpit_category category)
{
    return rows[category].verbosity;
}

/* Members of a category, of one kind: writes the indices of at most `len` of them and returns how many there are. */
static int members(enum tb_mpit_category category, uint32_t count, enum tb_mpit_category (*category_of)(uint32_t index),
                   int len, int *indices)
{
    int found = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (category_of(i) != category)
            continue;
        if (found < len)
            indices[found] = (int)i;
        found++;
    }
    return found;
}

/* What a category of the top is in: itself, which is not listed. */
static enum tb_mpit_category parent_of(uint32_t index)
{
    return index == TB_MPIT_ALL ? TB_MPIT_CATEGORIES : TB_MPIT_ALL;
}

static bool is_category(int index)
{
    return index >= 0 && index < TB_MPIT_CATEGORIES;
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

int tb_mpi_T_category_get_num(int *num_cat)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    tb_mpit_number(num_cat, TB_MPIT_CATEGORIES);
    return tb_mpit_leave(num_cat != NULL ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}

int tb_mpi_T_category_get_info(int cat_index, char *name, int *name_len, char *desc, int *desc_len, int *num_cvars,
                               int *num_pvars, int *num_categories)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (!is_category(cat_index))
        return tb_mpit_leave(MPI_T_ERR_INVALID_INDEX);
    enum tb_mpit_category c = (enum tb_mpit_category)cat_index;
    tb_mpit_text(rows[c].name, name, name_len);
    tb_mpit_text(rows[c].description, desc, desc_len);
    tb_mpit_number(num_cvars, members(c, tb_mpit_cvar_count(), tb_mpit_cvar_category, 0, NULL));
    tb_mpit_number(num_pvars, members(c, tb_mpit_pvar_count(), tb_mpit_pvar_category, 0, NULL));
    tb_mpit_number(num_categories, members(c, TB_MPIT_CATEGORIES, parent_of, 0, NULL));
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_category_get_index(const char *name, int *cat_index)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (name == NULL || cat_index == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    for (int i = 0; i < TB_MPIT_CATEGORIES; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *cat_index = i;
            return tb_mpit_leave(MPI_SUCCESS);
        }
    }
    return tb_mpit_leave(MPI_T_ERR_INVALID_NAME);
}

/* The calls below differ in what they list. */
static int list_members(int cat_index, uint32_t count, enum tb_mpit_category (*category_of)(uint32_t index), int len,
                        int *indices)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (!is_category(cat_index))
        return tb_mpit_leave(MPI_T_ERR_INVALID_INDEX);
    if (len < 0 || (len > 0 && indices == NULL))
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    members((enum tb_mpit_category)cat_index, count, category_of, len, indices);
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_category_get_cvars(int cat_index, int len, int indices[])
{
    return list_members(cat_index, tb_mpit_cvar_count(), tb_mpit_cvar_category, len, indices);
}

int tb_mpi_T_category_get_pvars(int cat_index, int len, int indices[])
{
    return list_members(cat_index, tb_mpit_pvar_count(), tb_mpit_pvar_category, len, indices);
}

int tb_mpi_T_category_get_categories(int cat_index, int len, int indices[])
{
    return list_members(cat_index, TB_MPIT_CATEGORIES, parent_of, len, indices);
}

int tb_mpi_T_category_get_events(int cat_index, int len, int indices[])
{
    return list_members(cat_index, tb_mpit_event_count(), tb_mpit_event_category, len, indices);
}

int tb_mpi_T_category_get_num_events(int cat_index, int *num_events)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (!is_category(cat_index))
        return tb_mpit_leave(MPI_T_ERR_INVALID_INDEX);
    int count = 0;
    for (uint32_t i = 0; i < tb_mpit_event_count(); i++)
        count += tb_mpit_event_category(i) == (enum tb_mpit_category)cat_index;
    tb_mpit_number(num_events, count);
    return tb_mpit_leave(num_events != NULL ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}

int tb_mpi_T_category_changed(int *update_number)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    tb_mpit_number(update_number, 0);
    return tb_mpit_leave(update_number != NULL ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}

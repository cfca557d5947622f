/* Attributes of windows (MPI-5.0, 7.7.3), with those that exist from the start (12.2.6). */
#include "mpi/binding_decls.h"
#include "mpi/win.h"

int tb_mpi_Win_set_attr(MPI_Win win, int win_keyval, void *attribute_val)
{
    static const char call[] = "MPI_Win_set_attr";
    struct tb_win *w = tb_win_find(win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    struct tb_bearer bearer = tb_win_bearer(w);
    return tb_attribute_set(&bearer, call, win_keyval, attribute_val);
}

/* The value of an attribute that exists from the start, or NULL: it is none of these. */
static void *const *predefined_value(struct tb_win *w, int keyval, void **place)
{
    switch (keyval) {
    case MPI_WIN_BASE:
        *place = w->base;
        return place;
    case MPI_WIN_SIZE:
        *place = &w->size;
        return place;
    case MPI_WIN_DISP_UNIT:
        *place = &w->unit;
        return place;
    case MPI_WIN_CREATE_FLAVOR:
        *place = &w->flavor;
        return place;
    case MPI_WIN_MODEL:
        *place = &w->model;
        return place;
    default:
        return NULL;
    }
}

int tb_mpi_Win_get_attr(MPI_Win win, int win_keyval, void *attribute_val, int *flag)
{
    static const char call[] = "MPI_Win_get_attr";
    struct tb_win *w = tb_win_find(win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    void *place;
    void *const *value = predefined_value(w, win_keyval, &place);
    if (value != NULL && attribute_val != NULL && flag != NULL) {
        *(void **)attribute_val = *value;
        *flag = 1;
        return MPI_SUCCESS;
    }
    struct tb_bearer bearer = tb_win_bearer(w);
    return tb_attribute_get(&bearer, call, win_keyval, attribute_val, flag);
}

int tb_mpi_Win_delete_attr(MPI_Win win, int win_keyval)
{
    static const char call[] = "MPI_Win_delete_attr";
    struct tb_win *w = tb_win_find(win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    struct tb_bearer bearer = tb_win_bearer(w);
    return tb_attribute_delete(&bearer, call, win_keyval);
}

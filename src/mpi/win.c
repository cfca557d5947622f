/* Windows: what their handles name, and errors of calls on them. */
#include "mpi/win.h"

#include <stdio.h>

#include "mpi/binding_decls.h"
#include "mpi/group.h"

/* ---- errors ------------------------------------------------------------------------------------------------------ */

int tb_win_raise_code(struct tb_win *win, int code)
{
    MPI_Win handle = tb_win_handle(win);
    return tb_raise_at(&win->errhandler, &handle, code);
}

void tb_win_print(const struct tb_win *win, char *text, size_t size)
{
    if (win->name[0] != 0)
        snprintf(text, size, "window \"%s\"", win->name);
    else
        snprintf(text, size, "a window of %u ranks without a name", win->comm->size);
}

/* What a target has refused is outside of its memory: the engine knows no other argument to refuse. */
int tb_win_code_below(const struct tb_win *win, int error, const char *call)
{
    char name[MPI_MAX_OBJECT_NAME + 16];
    tb_win_print(win, name, sizeof name);
    if (error == TB_ERR_EPOCH || error == TB_ERR_MISMATCH || (error == TB_ERR_GIVEN_UP && !tb_param.keep_going))
        return tb_error_code_following(
            tb_error_code(MPI_ERR_RMA_SYNC, call, "%s: %s", name, tb_window_why(win->window, error)), error);
    if (error != TB_ERR_ARGUMENT)
        return tb_error_code_below(error, call);
    return tb_error_code(MPI_ERR_RMA_RANGE, call, "%s", tb_error_story());
}

int tb_win_raise_below(struct tb_win *win, int error, const char *call)
{
    return tb_win_raise_code(win, tb_win_code_below(win, error, call));
}

int tb_win_raise(struct tb_win *win, int class, const char *call, const char *format, ...)
{
    char text[MPI_MAX_ERROR_STRING];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tb_win_raise_code(win, tb_error_code(class, call, "%s", text));
}

int tb_win_raise_argument(struct tb_win *win, int class, const char *call, int position, const char *name,
                          const char *format, ...)
{
    char text[MPI_MAX_ERROR_STRING];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tb_win_raise_code(win, tb_error_code(class, call, "argument %d (%s): %s", position, name, text));
}

int tb_win_raise_null(struct tb_win *win, const char *call, int position, const char *name)
{
    return tb_win_raise_argument(win, MPI_ERR_ARG, call, position, name, "the pointer is null");
}

int tb_raise_win(const char *call, int position, const char *name, MPI_Win handle)
{
    tb_require_active(call);
    const char *what = "this is no handle of a window";
    if (handle == MPI_WIN_NULL)
        what = "it is MPI_WIN_NULL";
    else if ((uint64_t)(uintptr_t)handle >> 56 == TB_OBJECT_WIN)
        what = "the window has been freed";
    return tb_raise_argument(NULL, MPI_ERR_WIN, call, position, name, "%s", what);
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

void tb_wins_leave(const struct tb_session *session)
{
    uint32_t made = tb_self.tables[TB_OBJECT_WIN].made;
    for (uint32_t i = TB_HANDLE_FIRST; i < TB_HANDLE_FIRST + made; i++) {
        const struct tb_win *w = tb_handle_at(TB_OBJECT_WIN, sizeof *w, i);
        if (w != NULL && w->window != NULL && w->comm->session == session)
            tb_window_leave_for_good(w->window);
    }
}

/* ---- names and groups -------------------------------------------------------------------------------------------- */

const char *tb_win_name(const struct tb_win *win)
{
    return win->name[0] != 0 ? win->name : "the window";
}

int tb_mpi_Win_set_name(MPI_Win win, const char *win_name)
{
    static const char call[] = "MPI_Win_set_name";
    struct tb_win *w = tb_win_find(win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    if (win_name == NULL)
        return tb_win_raise_null(w, call, 2, "win_name");
    tb_self_lock();
    snprintf(w->name, sizeof w->name, "%s", win_name);
    tb_self_unlock();
    return MPI_SUCCESS;
}

int tb_mpi_Win_get_name(MPI_Win win, char *win_name, int *resultlen)
{
    static const char call[] = "MPI_Win_get_name";
    struct tb_win *w = tb_win_find(win);
    if (win == MPI_WIN_NULL && tb_self_active() && win_name != NULL && resultlen != NULL) {
        *resultlen = snprintf(win_name, MPI_MAX_OBJECT_NAME, "MPI_WIN_NULL");
        return MPI_SUCCESS;
    }
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    if (win_name == NULL || resultlen == NULL)
        return tb_win_raise_null(w, call, win_name == NULL ? 2 : 3, win_name == NULL ? "win_name" : "resultlen");
    tb_self_lock();
    *resultlen = snprintf(win_name, MPI_MAX_OBJECT_NAME, "%s", w->name);
    tb_self_unlock();
    return MPI_SUCCESS;
}

int tb_mpi_Win_get_group(MPI_Win win, MPI_Group *group)
{
    static const char call[] = "MPI_Win_get_group";
    struct tb_win *w = tb_win_find(win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    if (group == NULL)
        return tb_win_raise_null(w, call, 2, "group");
    struct tb_group *made = tb_group_new(w->comm->size, w->comm->session);
    if (made == NULL)
        return tb_win_raise(w, MPI_ERR_NO_MEM, call, "out of memory for a group of %u processes", w->comm->size);
    for (uint32_t i = 0; i < w->comm->size; i++)
        made->procs[i] = tb_comm_proc(w->comm, i);
    *group = tb_group_publish(made);
    return MPI_SUCCESS;
}

/* ---- handles as numbers ------------------------------------------------------------------------------------------ */

int tb_mpi_Win_toint(MPI_Win win)
{
    return tb_handle_to_int(win);
}

MPI_Win tb_mpi_Win_fromint(int win)
{
    return tb_handle_from_int(TB_OBJECT_WIN, sizeof(struct tb_win), win, MPI_WIN_NULL);
}

/* Hints of windows: taken from info objects of the program. */
#ifndef TB_MPI_WIN_HINT_H
#define TB_MPI_WIN_HINT_H

#include "mpi/info.h"
#include "mpi/win.h"

/* What holds before anything was said. */
void tb_win_hints_begin(struct tb_win_hints *hints);
/* Takes over the hints that are known; others, and values that make no sense, are left alone. `making`: also those that
 * cannot change any more once the window is there. */
void tb_win_hints_take(struct tb_win_hints *hints, const struct tb_info *info, bool making);

#endif

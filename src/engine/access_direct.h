/* Accesses to memory that this process has itself: its own window, and those of other ranks of the host as far as they
 * are mapped or can be copied to and from (struct tb_window_near). They are over when the call returns. Touched with
 * the engine locked. */
#ifndef TB_ENGINE_ACCESS_DIRECT_H
#define TB_ENGINE_ACCESS_DIRECT_H

#include "engine/access_state.h"

/* TB_AGAIN: there is no such way, frames have to carry it, or what is left of it (`sent`). TB_ERR_ARGUMENT: it is not
 * all in the window. */
int tb_access_direct(struct tb_access_walk *walk);

#endif

/* Accesses to memory that this process has itself: its own window, and those of other ranks of the host as far as they
 * are mapped or can be copied to and from (struct tb_window_near). They are over when the call returns. Touched with
 * the engine locked. */
#ifndef TB_ENGINE_ACCESS_DIRECT_H
#define TB_ENGINE_ACCESS_DIRECT_H

#include "engine/access_state.h"

/* TB_AGAIN: there is no such way, frames have to carry it, or what is left of it (`sent`). TB_ERR_ARGUMENT: it is not
 * all in the window. */
int tb_access_direct(struct tb_access_walk *walk);
/* What most accesses to memory of the same host are: all of it in one piece here and there, and nothing to be waited
 * for. False: it is not so; nothing was done. `element`: what all of the data is of. */
bool tb_access_move_at_once(struct tb_window *window, const struct tb_buffer *mine,
                            const struct tb_access_target *target, bool put);
bool tb_access_combine_at_once(struct tb_window *window, const struct tb_buffer *origin, const struct tb_buffer *result,
                               const struct tb_access_target *target, const struct tb_op *op,
                               const struct tb_type *element);

#endif

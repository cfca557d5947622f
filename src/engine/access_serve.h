/* What a target does with frames of one-sided access: the handlers of their kinds. Everything that they say is checked
 * before anything is touched. What makes no sense in itself ends the connection with whoever has sent it; what is
 * outside of the window's memory, or for a window that is gone, is refused and counted as applied. May run in a
 * standby: only predefined operations are carried out. */
#ifndef TB_ENGINE_ACCESS_SERVE_H
#define TB_ENGINE_ACCESS_SERVE_H

#include "engine/engine.h"
#include "wire/wire.h"

void tb_serve_put(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
void *tb_serve_place(struct tb_peer *p, const struct tb_message *m, size_t length); /* where a put goes */
void tb_serve_runs(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
/* FLUSH, LOCK, UNLOCK, COMPLETE; and to an origin APPLIED, LOCKED, POST. */
void tb_serve_word(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);

#endif

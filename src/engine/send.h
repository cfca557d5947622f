/* The sender's half of the protocols; see enum tb_kind. Short messages go at once while there is credit, and those
 * that are worth it as well (ahead.h); for all others the receiver is asked first. Called with the engine locked. */
#ifndef TB_ENGINE_SEND_H
#define TB_ENGINE_SEND_H

#include "engine/context.h"
#include "engine/engine.h"
#include "engine/part.h"
#include "wire/wire.h"

/* At once and without a request, or TB_AGAIN. */
int tb_send_try(struct tb_context *c, const struct tb_part *part, uint32_t to, uint64_t match, enum tb_mode mode);
void tb_send_start(struct tb_context *c, struct tb_request *r, const struct tb_part *part, uint32_t to, uint64_t match,
                   enum tb_mode mode);
int tb_send_envelope(struct tb_request *r); /* TB_OK: it is out; TB_AGAIN; or an error that ends it */
/* What the receiver says: handlers of frames (frames.h). */
void tb_send_cleared(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
void tb_send_matched(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
void tb_send_cancelled(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
/* What the transport says: a frame that it had accepted has left. */
void tb_send_left(struct tb_engine *e, uint64_t token, int error);
void tb_send_accepted(struct tb_request *r); /* and what the port says: all DATA was accepted */

#endif

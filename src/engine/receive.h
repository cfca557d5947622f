/* The receiver's half of the protocols; see enum tb_kind. Called with the engine locked. */
#ifndef TB_ENGINE_RECEIVE_H
#define TB_ENGINE_RECEIVE_H

#include "engine/context.h"
#include "engine/engine.h"
#include "engine/part.h"
#include "wire/wire.h"

void tb_receive_start(struct tb_context *c, struct tb_request *r, const struct tb_part *part, uint32_t from,
                      uint64_t match, uint64_t mask);
/* Handlers of frames (frames.h). */
void tb_receive_eager(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
void tb_receive_asked(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
void tb_receive_data(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
void *tb_receive_place(struct tb_peer *p, const struct tb_message *m, size_t length);
void tb_receive_forget(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
/* A receive gets a message of this process itself, straight from its buffer. */
void tb_receive_local(struct tb_request *r, const struct tb_message *m, const struct tb_part *part);
/* Whether a thread waits in tb_probe_wait, and what for. */
bool tb_probe_describe(const struct tb_waiter *waiter, struct tb_wait *wait);

#endif

/* Operations of an object: which are under way, which are over, and when something is due. */
#ifndef TB_LINK_MULTICAST_OPERATION_H
#define TB_LINK_MULTICAST_OPERATION_H

#include "link/multicast_state.h"

/* Something is due at this time. */
void tb_multicast_schedule(struct tb_multicast *m, uint64_t at);

/* The receive of a number that is under way. */
struct tb_multicast_operation *tb_multicast_operation_receive(const struct tb_multicast_context *c, uint64_t number);
uint32_t tb_multicast_operation_root(const struct tb_multicast_operation *o); /* process */
/* It is over; its end is told later. `blame`: the process that an error is about. */
void tb_multicast_operation_finish(struct tb_multicast *m, struct tb_multicast_operation *o, int error, uint32_t blame);
/* What comes of it from now on is late. */
void tb_multicast_operation_note(struct tb_multicast *m, const struct tb_multicast_operation *o);
/* It has everything. Whether datagrams of the root come here at all shows over several messages. */
void tb_multicast_operation_complete(struct tb_multicast *m, struct tb_multicast_operation *o);
/* Tells the ends. */
void tb_multicast_operation_tell(struct tb_multicast *m);
/* Whether a message of a context that is joined is over here, whatever became of it. */
bool tb_multicast_operation_was(const struct tb_multicast *m, const struct tb_multicast_context *c, uint64_t number);
/* The same of any context, `c` if it is known here. */
bool tb_multicast_operation_is_over(const struct tb_multicast *m, const struct tb_multicast_context *c,
                                    uint64_t context, uint64_t number);
/* A process that is gone, and without which the operation cannot end well; NOBODY: there is none. */
uint32_t tb_multicast_operation_hopeless(const struct tb_multicast *m, const struct tb_multicast_operation *o);
bool tb_multicast_is_lost(const struct tb_multicast *m, uint32_t process);

/* Datagrams of this root do not come here, as far as is known. */
bool tb_multicast_operation_is_deaf(const struct tb_multicast *m, const struct tb_multicast_operation *o);
/* Asks the root for what is missing before `end`, by a control message. */
bool tb_multicast_operation_ask(struct tb_multicast *m, struct tb_multicast_operation *o, uint8_t flags, uint32_t end,
                                bool whole);
struct tb_multicast_name tb_multicast_operation_name(const struct tb_multicast_operation *o);

/* Copies a part of a message out of it (gather) or into it. */
void tb_multicast_payload_copy(const struct tb_multicast_payload *p, uint64_t offset, void *bytes, size_t length,
                               bool gather);

#endif

/* The ledger: who has finished what in a context, so that roots know what they need not keep any more. Members form one
 * tree for all roots, with the first of them at its top; each knows its own floor, the number before which everything
 * is over for it, and those that its children have told. It tells its parent the least of them, when somebody has
 * asked: a root that wants to know sets a flag in its datagrams, which costs nothing, or, if that brought nothing,
 * tells the top, which asks down the tree. So one answer comes to a root for all that it keeps, whatever the number of
 * members.
 *
 * All of it is told again if it is asked for again, and a floor only rises: nothing has to be kept for a member that
 * has not joined yet, or when there is no memory. Whoever has left a context stays in its tree until all below it have
 * left it, and tells that, too; then nothing is left of it here. */
#ifndef TB_LINK_MULTICAST_LEDGER_H
#define TB_LINK_MULTICAST_LEDGER_H

#include "link/multicast_state.h"

int tb_multicast_ledger_join(struct tb_multicast *m, struct tb_multicast_context *c);
void tb_multicast_ledger_pass(struct tb_multicast *m, struct tb_multicast_context *c, uint64_t number);
/* The context may be gone then. */
void tb_multicast_ledger_leave(struct tb_multicast *m, struct tb_multicast_context *c);
/* A datagram says that its root wants to know when its message is everywhere. */
void tb_multicast_ledger_flag(struct tb_multicast *m, struct tb_multicast_context *c, uint32_t root, uint64_t number);
void tb_multicast_ledger_hear(struct tb_multicast *m, uint32_t from, const struct tb_multicast_confirm *c);
/* A process is gone: whoever was told by it, or told it, turns to another. */
void tb_multicast_ledger_lose(struct tb_multicast *m);
/* In contexts with this member nothing is kept by anybody any more, nor will be. */
void tb_multicast_ledger_close(struct tb_multicast *m, uint32_t process);
/* Does what is due. */
void tb_multicast_ledger_advance(struct tb_multicast *m);
/* Whether somebody below waits for this process to pass something on. */
bool tb_multicast_ledger_is_needed(const struct tb_multicast_context *c);

#endif

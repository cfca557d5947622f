/* Family: a member of a long message with those below it in the message's tree, whose reports it merges with its own
 * and passes to its parent. It reports when it has heard a mark of the root, and so have all below it: a fragment that
 * is the last of a window, or a poll. A fragment behind where the next mark should have been is one, too. If something
 * is missing that was not before, it first waits for what may have been overtaken. When it has everything, and so have
 * all below it, it says that and has finished.
 *
 * Marks get lost as anything else, and of many members somebody has always missed the last one. So a member that waits
 * for reports of those below it longer than usual polls them by control messages, each once for a mark.
 *
 * A poll may say that datagrams do not help: then what is missing is asked for by a control message. A member to which
 * datagrams do not come at all asks so for everything, and then nobody waits for its reports but for its last one.
 *
 * Whoever hears nothing for long, neither fragments nor polls, asks the root whether it has begun, and whether it is
 * over: that depends on no other member. */
#ifndef TB_LINK_MULTICAST_FAMILY_H
#define TB_LINK_MULTICAST_FAMILY_H

#include "link/multicast_state.h"

void tb_multicast_family_begin(struct tb_multicast *m, struct tb_multicast_operation *o);
/* A mark: the root had sent all fragments before `top`, and everything before this poll. */
void tb_multicast_family_mark(struct tb_multicast *m, struct tb_multicast_operation *o, uint32_t top, uint32_t poll);
/* A fragment was heard, and perhaps it is a mark. */
void tb_multicast_family_fragment(struct tb_multicast *m, struct tb_multicast_operation *o, uint32_t fragment,
                                  bool marked);
/* It was said that datagrams do not help, and everything comes by control messages. */
bool tb_multicast_family_is_excused(const struct tb_multicast_operation *o);
/* A fragment that was missing has come. */
void tb_multicast_family_progress(struct tb_multicast *m, struct tb_multicast_operation *o);
/* A report of one below. False: it is not. */
bool tb_multicast_family_hear(struct tb_multicast *m, struct tb_multicast_operation *o, uint32_t from,
                              const struct tb_multicast_report *report);
/* A poll of the parent by a control message. */
uint32_t tb_multicast_family_parent(const struct tb_multicast *m, const struct tb_multicast_operation *o);
void tb_multicast_family_poll(struct tb_multicast *m, struct tb_multicast_operation *o,
                              const struct tb_multicast_poll *poll);
/* Something has come by a control message; or only whether the root has begun: then what was asked for, and does not
 * come, is asked for again soon. */
void tb_multicast_family_rest(struct tb_multicast *m, struct tb_multicast_operation *o);
void tb_multicast_family_told(struct tb_multicast *m, struct tb_multicast_operation *o, bool begun);
/* Nobody is to wait for this member, nor for what it has heard of those below. */
void tb_multicast_family_leave(struct tb_multicast *m, struct tb_multicast_operation *o);
void tb_multicast_family_advance(struct tb_multicast *m, struct tb_multicast_operation *o);
void tb_multicast_family_end(struct tb_multicast_operation *o);
/* To whoever asks for a report of a message that is over here. */
void tb_multicast_family_say_complete(struct tb_multicast *m, uint32_t to, const struct tb_multicast_name *name);

#endif

/* The stranger log tells the user of connections that came to nothing, by whom they were, without a line for each: the
 * first one at once, then what has gathered, no more than once a minute. Whoever sees such connections owns one for
 * each kind of them. One thread. */
#ifndef TB_AGENT_STRANGER_LOG_H
#define TB_AGENT_STRANGER_LOG_H

#include "agent/member.h"

#define TB_STRANGER_LOG_NAMES 16u /* that are told apart in a minute */

enum tb_stranger_kind {
    TB_STRANGER_UNPROVED, /* from an address: did not prove the key */
    TB_STRANGER_NONSENSE  /* with a process of the job: it did not speak as it should, or said more than we can keep */
};

struct tb_stranger_log {
    const struct tb_member *member;
    enum tb_stranger_kind kind;
    struct tb_timer minute; /* since the last line */
    uint32_t total;         /* since then */
    uint32_t count;         /* of different names, of which the last may stand for all that follow */
    struct tb_stranger {
        char who[80];
        uint32_t times;
    } strangers[TB_STRANGER_LOG_NAMES];
    char why[256]; /* of the last; nonsense only */
};

void tb_stranger_log_open(struct tb_stranger_log *log, const struct tb_member *member, enum tb_stranger_kind kind);
void tb_stranger_log_close(struct tb_stranger_log *log); /* harmless on one that is all zero */
/* Where a connection came from. */
void tb_stranger_log_unproved(struct tb_stranger_log *log, const struct sockaddr_storage *from);
/* The story is why. */
void tb_stranger_log_nonsense(struct tb_stranger_log *log, struct tb_proc with);

#endif

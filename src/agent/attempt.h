/* One attempt to reach the agent of another host at one address: connecting, and proving the job key to each other. It
 * is embedded in what makes it, who is told by `event` how it goes, always from the loop. An event may close the
 * attempt, and free it. One thread. */
#ifndef TB_AGENT_ATTEMPT_H
#define TB_AGENT_ATTEMPT_H

#include "agent/member.h"

enum tb_attempt_event {
    TB_ATTEMPT_WELCOMED,  /* the right agent says yes: tb_attempt_confirm, or tb_attempt_close if that was all */
    TB_ATTEMPT_CONNECTED, /* the connection may be used: tb_attempt_take */
    /* The others end it; it is closed already. */
    TB_ATTEMPT_FAILED,   /* `error`, an errno, says why */
    TB_ATTEMPT_DROPPED,  /* it was closed while we were speaking; likewise */
    TB_ATTEMPT_CLOSED,   /* it was closed without a word */
    TB_ATTEMPT_REFUSED,  /* the right agent says no: handshake.welcome.status says why */
    TB_ATTEMPT_STRANGER, /* whoever answers does not know the key */
    TB_ATTEMPT_VERSION,  /* he does, but speaks another version */
    TB_ATTEMPT_NONSENSE, /* he was right, and then did not go on as he should */
    TB_ATTEMPT_TROUBLE   /* on our side; the story is in tb_error */
};

struct tb_attempt {
    struct tb_watch watch;
    struct tb_loop *loop;
    bool greeted;   /* hello was sent */
    bool confirmed; /* confirm was sent */
    int error;
    struct tb_handshake handshake;
    struct tb_proc source, destination; /* whose connection it is to become */
    const struct tb_key *key;
    uint32_t stream, features; /* of hello */
    bool small;                /* packets, since others do not pass */
    void (*event)(struct tb_attempt *attempt, enum tb_attempt_event event);
};

/* Begins. All of `attempt` but source, destination, stream, features, small and event is set here. TB_ERR_SYSTEM: errno
 * says why not; TB_ERR_LIMIT: the loop does not take it. No story. */
int tb_attempt_open(struct tb_attempt *attempt, const struct tb_member *member, const struct tb_address *address);
/* Of several attempts that were welcomed only one is confirmed: two would make two connections. False: it has been
 * closed by the other side, and is over. */
bool tb_attempt_confirm(struct tb_attempt *attempt);
int tb_attempt_take(struct tb_attempt *attempt); /* the socket, which is the caller's now */
bool tb_attempt_is_open(const struct tb_attempt *attempt);
void tb_attempt_close(struct tb_attempt *attempt); /* harmless when it is not open */

#endif

/* Dial wishes: connections that the dialer is to make, of which only so many are in the making at once. The others wait
 * here, in order: a rank may ask for a connection to each process of the job in one breath. They take no sockets, and
 * no time of theirs runs. Belongs to the dialer; one thread. */
#ifndef TB_AGENT_DIAL_WISHES_H
#define TB_AGENT_DIAL_WISHES_H

#include "agent/member.h"
#include "transport/transport.h"

#define TB_DIAL_WISHES_RUNNING 4096u

struct tb_dial_wish {
    struct tb_proc self, to; /* for whom; to whom, */
    uint32_t host;           /* which is there */
    enum tb_stream stream;
    uint32_t stripe;
    bool called; /* the other side has asked for it */
};

struct tb_dial_line {
    struct tb_list waiting;
    uint32_t count, running; /* that wait; that are in the making */
};

struct tb_dial_wishes {
    struct tb_dial_line lines[2]; /* our own; those that we were called for */
};

void tb_dial_wishes_open(struct tb_dial_wishes *wishes);
void tb_dial_wishes_close(struct tb_dial_wishes *wishes);
bool tb_dial_wishes_have_room(const struct tb_dial_wishes *wishes,
                              const struct tb_dial_wish *wish); /* it need not wait */
/* An error (with its story) if more wait than processes of the job can ask for. */
int tb_dial_wishes_add(struct tb_dial_wishes *wishes, const struct tb_member *member, const struct tb_dial_wish *wish);
/* The first one that waits and may begin now. */
bool tb_dial_wishes_take(struct tb_dial_wishes *wishes, struct tb_dial_wish *wish);
void tb_dial_wishes_forget(struct tb_dial_wishes *wishes, struct tb_proc self);

#endif

/* Attach: when the control stream of an agent is lost because the gateway that carried it is gone, or nothing comes by
 * it any more, the agent goes on by another one. It connects to an agent that its launcher has named beforehand (a
 * stand-in), proves the key, goes on with TLS, and both ends of the control stream tell which frame they expect next.
 * The stand-in's side of it is a tunnel (tunnels.h).
 *
 * Belongs to the uplink. Tries until somebody leads to the launcher or nobody can be left, then calls back once, from
 * inside of the loop. */
#ifndef TB_AGENT_ATTACH_H
#define TB_AGENT_ATTACH_H

#include "job/job.h"
#include "link/link.h"
#include "remote/remote.h"

#define TB_ATTACH_STAND_INS 64u

struct tb_attach_events {
    void *context;
    /* The socket is the callee's, and may have received something already; the launcher expects frame `next`. */
    void (*attached)(void *context, struct tb_tls_socket *socket, uint32_t next);
    void (*failed)(void *context);
};

enum tb_attach_stage { TB_ATTACH_CONNECTING, TB_ATTACH_PROVING, TB_ATTACH_SECURING, TB_ATTACH_COUNTING };

struct tb_attach {
    struct tb_loop *loop;
    struct tb_attach_events events;
    const struct tb_key *key;
    struct tb_proc self;
    const struct tb_address_book *book;
    uint32_t count, hosts[TB_ATTACH_STAND_INS];
    bool busy;         /* we try */
    uint32_t expected; /* the frame that we expect next */
    uint64_t patience; /* with the launcher, once a stand-in has told it of us; and with stand-ins that are unsure */
    uint64_t since;
    uint64_t hopeful;       /* when somebody did not refuse last; or `since` */
    uint32_t host, address; /* which one is being tried */
    uint32_t rounds;        /* in which nobody was even silent or unsure */
    bool refused;           /* by all so far in this round, */
    bool unsure;            /* but one or more only for now: the launcher is not heard there either */
    enum tb_attach_stage stage;
    struct tb_watch watch;
    struct tb_timer timer;
    struct tb_handshake handshake;
    struct tb_tls_socket *tls; /* has the socket from SECURING on; else NULL */
    size_t have;               /* bytes of `next` */
    uint8_t next[4];
};

void tb_attach_open(struct tb_attach *attach, struct tb_loop *loop, const struct tb_attach_events *events);
void tb_attach_close(struct tb_attach *attach);
/* Who can stand in; hosts of the address book, which must live as long, as must the key. At most TB_ATTACH_STAND_INS.
 */
void tb_attach_set_stand_ins(struct tb_attach *attach, const struct tb_key *key, struct tb_proc self,
                             const struct tb_address_book *book, const uint32_t *hosts, uint32_t count);
/* There is somebody who can stand in. The launcher gets so much time to answer by each. */
void tb_attach_begin(struct tb_attach *attach, uint32_t expected, uint64_t patience);
/* It goes on, if it is under way, as if it began now: everybody may have refused so far for a reason that is no more.
 */
void tb_attach_insist(struct tb_attach *attach, uint64_t patience);

#endif

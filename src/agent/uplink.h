/* Uplink: the control stream to the launcher, from whichever side it comes. It sends and hands up frames, says now and
 * then that it lives, notices when the launcher is silent, and goes on by another agent when the stream is lost and the
 * launcher has named somebody who can stand in (attach.h). Of a stream that is silent for a while it has doubts: it
 * looks for another one beside it, and goes on with the one that comes first.
 *
 * Belongs to the agent and its one thread. Frames are gathered and leave with tb_uplink_settle, which the owner calls
 * before each sleep. Callbacks come from inside of the loop and of tb_uplink_settle. */
#ifndef TB_AGENT_UPLINK_H
#define TB_AGENT_UPLINK_H

#include "agent/attach.h"

struct tb_uplink_events {
    void *context;
    void (*frame)(void *context, struct tb_control_frame *frame); /* valid during the call */
    void (*lost)(void *context, const char *why);                 /* for good; nothing comes afterwards */
};

struct tb_uplink {
    struct tb_loop *loop;
    struct tb_uplink_events events;
    struct tb_control_stream stream;
    struct tb_watch in, out;
    struct tb_tls_socket
        *tls; /* carries the stream, and `in` watches it; NULL: the descriptors that we began with do */
    struct tb_timer beat;
    uint32_t beats;
    uint32_t said;             /* frames that had been sent at the last PING or instead of it, */
    uint64_t said_at;          /* and when that was */
    struct tb_silence silence; /* of the launcher */
    bool judges;               /* its silence matters */
    bool suspended;            /* the launcher is stopped (Ctrl-Z) and will be silent */
    bool straight;             /* the stream comes from the launcher without a stand-in: its end is that of the job, */
    uint64_t doubted;          /* unless we had doubts of it then: the launcher may have let us in elsewhere */
    bool down;                 /* there is no stream; another one is looked for */
    bool warned;               /* that we could not go on by another one */
    bool final;                /* nobody stands in for a stream that is lost from now on */
    bool over;                 /* lost for good */
    struct tb_attach attach;
};

/* Takes the descriptors, and says the preamble. */
int tb_uplink_open(struct tb_uplink *uplink, struct tb_loop *loop, int in, int out,
                   const struct tb_uplink_events *events);
void tb_uplink_close(struct tb_uplink *uplink);

/* A frame is written between begin and end. */
struct tb_writer *tb_uplink_begin(struct tb_uplink *uplink, enum tb_control kind);
int tb_uplink_end(struct tb_uplink *uplink);
int tb_uplink_send(struct tb_uplink *uplink, enum tb_control kind); /* one without fields */
size_t tb_uplink_queued(const struct tb_uplink *uplink);            /* bytes that have not left */
/* TB_OK: everything has left. TB_AGAIN: it has not, or there is no stream at present. */
int tb_uplink_settle(struct tb_uplink *uplink);

/* What was sent is kept until the launcher has it, so that another stream can go on. From the beginning. */
int tb_uplink_keep(struct tb_uplink *uplink);
/* `judges`: a launcher that is silent for too long is gone; else only we say that we live. */
void tb_uplink_start_heartbeat(struct tb_uplink *uplink, bool judges);
void tb_uplink_suspend(struct tb_uplink *uplink, bool suspended);
/* As tb_attach_set_stand_ins; `straight`: the stream comes from the launcher itself. */
void tb_uplink_set_stand_ins(struct tb_uplink *uplink, const struct tb_key *key, struct tb_proc self,
                             const struct tb_address_book *book, const uint32_t *hosts, uint32_t count, bool straight);
void tb_uplink_make_final(struct tb_uplink *uplink); /* the job ends */
/* There is no stream at present; another one is looked for. */
static inline bool tb_uplink_is_down(const struct tb_uplink *uplink)
{
    return uplink->down;
}
/* Whether somebody else may count on our stream: it is there, and the launcher was heard a moment ago. */
bool tb_uplink_is_sure(const struct tb_uplink *uplink);

#endif

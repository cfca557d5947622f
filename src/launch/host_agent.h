/* The agent of a host as the launcher sees it: what leads to it (a shell of ours, a tunnel through the agent of another
 * host, or a TLS stream when somebody has started it by hand), its control stream, and how far it has come. It reports
 * by callback and knows nobody above it. Belongs to struct tb_host_agents; the one thread of the launcher.
 *
 * An agent of a grid whose stream is lost or silent may come by another one. If its parent is gone it is detached until
 * then, for as long as the parameter link_patience allows. */
#ifndef TB_LAUNCH_HOST_AGENT_H
#define TB_LAUNCH_HOST_AGENT_H

#include "job/job.h"
#include "launch/tls_stream.h"
#include "remote/remote.h"

enum tb_host_agent_phase {
    TB_HOST_AGENT_WAITING, /* nothing was started yet */
    TB_HOST_AGENT_SILENT,  /* started, has not said anything */
    TB_HOST_AGENT_SPOKEN,  /* the preamble is there */
    TB_HOST_AGENT_READY,   /* has told its addresses */
    TB_HOST_AGENT_TOLD,    /* in a grid: knows the others, and whom to turn to if its stream is lost */
    TB_HOST_AGENT_STARTED, /* its ranks run */
    TB_HOST_AGENT_GONE     /* has said that all is over, or is given up */
};

struct tb_host_agent;

/* What is reported. An agent may be given up from inside any of these. */
struct tb_host_agent_events {
    void *context;
    void (*frame)(void *context, struct tb_host_agent *agent, struct tb_control_frame *frame);
    /* Its shell says something on standard error, and the agent has spoken already. */
    void (*errors)(void *context, const char *bytes, size_t length);
    /* It did not come to life, and this is why; it is given up then. */
    void (*missed)(void *context, struct tb_host_agent *agent, const char *story);
    /* Its stream makes no sense (tb_error_story); it is given up then. */
    void (*damaged)(void *context, struct tb_host_agent *agent);
    /* The stream or the shell has ended without a goodbye; `exited`: with this status, as waitpid gives it. It is given
     * up then. */
    void (*lost)(void *context, struct tb_host_agent *agent, bool exited, int status);
};

/* Of all agents of a job, which share it. */
struct tb_host_agent_counts {
    uint32_t silent; /* that are */
    uint32_t ready;  /* that have been */
    uint32_t idle;
};

struct tb_host_agent {
    struct tb_loop *loop;
    const struct tb_host_agent_events *events;
    struct tb_host_agent_counts *counts;
    uint32_t host;              /* in the address book */
    const char *name, *cluster; /* of that host, in the address book; cluster "": none is known */
    uint32_t rank_count;        /* on it; of them: */
    uint32_t later_count;       /* that ranks have asked for while the job runs */
    uint32_t window;            /* bytes of output that it may have under way */
    struct tb_shell_target target;
    const char *origin; /* where the user has named the host: "hosts:3"; NULL: nowhere */
    enum tb_host_agent_phase phase;
    pid_t pid; /* of the shell; 0: not started, or collected */
    struct tb_control_stream control;
    struct tb_watch watch, errors;
    struct tb_timer patience; /* between the end of the stream and the end of the shell; or how long it is detached */
    char *tail;               /* the last that the shell has said on standard error before the agent spoke; or NULL */
    size_t tail_length;
    uint64_t heard;               /* when something came from it, */
    uint64_t resumed;             /* and when that ended a silence of more than half the heartbeat; 0: never */
    struct tb_silence silence;    /* of the heartbeat, as is: */
    uint32_t said;                /* how many frames it had been sent at the last PING or instead of it, */
    uint64_t said_at;             /* and when that was */
    uint32_t written;             /* bytes of output that it may send again */
    uint32_t ended;               /* of its ranks, by themselves */
    struct tb_host_agent *parent; /* whose agent starts it, and whose control stream carries its own; NULL: none */
    uint32_t depth;               /* how many there are between us and it */
    uint32_t round, served; /* of those behind it, who take turns in its stream; in which one of its parent's it was
                               its turn */
    bool waited;            /* somebody behind it has had its turn in this one, and has more; */
    bool refused;           /* somebody whose turn it is found its stream full */
    bool adopted;           /* it has come by that one, and knows the way */
    bool detached;          /* whoever carried its stream is gone; it is expected to come by another one */
    bool resuming;          /* it has come, and the number of the frame that it expects is still to come: */
    uint32_t next_have, next;
    bool returning;           /* it has come, but does not know yet that it was let in */
    bool idle;                /* nothing more comes from its ranks */
    bool spare;               /* it has none at first, and can be given more when all that it has had have ended */
    bool moved;               /* it has come by another agent, so how its shell ends does not matter */
    bool manual;              /* somebody starts its agent by hand */
    struct tb_tls_stream tls; /* open when such an agent has come */
};

/* The caller then sets what it knows of the host: name, cluster, rank_count, window, target, parent, manual. */
void tb_host_agent_open(struct tb_host_agent *agent, struct tb_loop *loop, uint32_t host,
                        const struct tb_host_agent_events *events, struct tb_host_agent_counts *counts);
void tb_host_agent_close(struct tb_host_agent *agent); /* frees what one that is gone has left */

/* Brings it to life: by its parent, by a shell whose signals are blocked as in `mask`; if it is started by hand, it is
 * only expected. */
int tb_host_agent_start(struct tb_host_agent *agent, const sigset_t *mask);
/* What leads to it is a process and its streams, which it owns from now on. */
int tb_host_agent_take_shell(struct tb_host_agent *agent, const struct tb_shell *shell);
/* Somebody has started it by hand, and it has come. After an error the socket stays the caller's. */
int tb_host_agent_take_socket(struct tb_host_agent *agent, int socket, const struct tb_key *secret);

/* What the frames of its parent say about it. */
void tb_host_agent_take_bytes(struct tb_host_agent *agent, const uint8_t *bytes, size_t length);
void tb_host_agent_take_errors(struct tb_host_agent *agent, const char *bytes, size_t length);
void tb_host_agent_take_end(struct tb_host_agent *agent, bool exited, int status);

/* Its own frames that change how far it has come. */
void tb_host_agent_take_ready(struct tb_host_agent *agent);
void tb_host_agent_take_told(struct tb_host_agent *agent);
void tb_host_agent_take_started(struct tb_host_agent *agent);
void tb_host_agent_take_idle(struct tb_host_agent *agent);
void tb_host_agent_wake(struct tb_host_agent *agent); /* a spare one gets ranks */

/* What it says makes no sense (tb_error_story): reported as damaged, and given up. */
void tb_host_agent_complain_damaged(struct tb_host_agent *agent);

void tb_host_agent_detach(struct tb_host_agent *agent);
/* It has come by this one, and what has led to it before is given up. */
void tb_host_agent_attach(struct tb_host_agent *agent, struct tb_host_agent *parent);

void tb_host_agent_stop(struct tb_host_agent *agent, bool now); /* its ranks are to be ended */
/* Nothing leads to it any more; one that still lives sees that and ends. */
void tb_host_agent_give_up(struct tb_host_agent *agent);
void tb_host_agent_kill(struct tb_host_agent *agent);                /* its shell, if that is still there */
void tb_host_agent_end(struct tb_host_agent *agent);                 /* its stream has ended, nobody knows why */
void tb_host_agent_collect(struct tb_host_agent *agent, int status); /* its shell has ended and was waited for */

/* Gathers what it should be told (window, frames that have come) for tb_host_agent_flush, which sends what is queued,
 * to a descriptor or into the stream of its parent. True: something was moved into that, or there is room again for
 * those behind it. */
void tb_host_agent_gather(struct tb_host_agent *agent);
bool tb_host_agent_flush(struct tb_host_agent *agent);
/* After all were flushed: what they are told at the start may be long, so those behind it get a piece each in turn,
 * lest one hears nothing until the others have all of it. True: those who had theirs may have another one. */
bool tb_host_agent_begin_round(struct tb_host_agent *agent);

/* Whether it is there and has told its addresses. */
static inline bool tb_host_agent_is_ready(const struct tb_host_agent *agent)
{
    return agent->phase >= TB_HOST_AGENT_READY && agent->phase < TB_HOST_AGENT_GONE;
}

/* Whether it can come by another one when its stream is lost. */
static inline bool tb_host_agent_is_told(const struct tb_host_agent *agent)
{
    return agent->phase >= TB_HOST_AGENT_TOLD && agent->phase < TB_HOST_AGENT_GONE;
}

/* Whether its stream goes through `parent`, or it is that one itself. */
static inline bool tb_host_agent_is_behind(const struct tb_host_agent *agent, const struct tb_host_agent *parent)
{
    while (agent != NULL && agent != parent)
        agent = agent->parent;
    return agent != NULL;
}

#endif

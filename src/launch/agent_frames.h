/* What agents tell the launcher: the one table from kinds of control frames to what reads them. A frame that makes
 * sense is reported by the callback of its kind; one that does not is left out, as is a kind that no agent sends. */
#ifndef TB_LAUNCH_AGENT_FRAMES_H
#define TB_LAUNCH_AGENT_FRAMES_H

#include "launch/host_agents.h"

struct tb_spawns;

/* TB_CONTROL_READY. A name that is too long is "". */
struct tb_agent_ready {
    char name[256];             /* of the host, as it knows itself */
    struct tb_host_where where; /* as told, not checked: told_places.h */
    uint32_t address_count;
    struct tb_address addresses[TB_HOST_ADDRESS_LIMIT];
    uint32_t machine; /* as tb_wire_machine says it */
    uint32_t seat_count;
    struct tb_seat seats[TB_HOST_RANKS_LIMIT]; /* of its ranks, by local index; none: they are not bound */
};

/* TB_CONTROL_ABORTED. */
struct tb_agent_abort {
    uint32_t rank, pid, code;
    enum tb_abort_reason reason;
    const char *text; /* not ended by 0 */
    size_t length;
    struct tb_abort_group group;
};

/* TB_CONTROL_LINK: how it stands with another host. */
struct tb_agent_link {
    uint32_t host;
    enum tb_link_report state;
    uint64_t time; /* ns for which that has been so */
    char why[320]; /* cut off if it is longer */
};

/* TB_CONTROL_REGISTRY: what a rank asks. */
struct tb_agent_wish {
    uint32_t rank, number;
    const void *bytes;
    size_t length;
};

/* Readers are those of the frame, behind the fields that were read. Ranks and hosts are not checked. What is in a
 * tunnel goes to the agent at its other end without being reported. */
struct tb_agent_frame_events {
    void *context;
    struct tb_host_agents *agents;
    struct tb_spawns *spawns; /* what ranks ask for while the job runs goes there; NULL: nobody takes it */
    void (*ready)(void *context, struct tb_host_agent *agent, const struct tb_agent_ready *ready);
    void (*told)(void *context, struct tb_host_agent *agent);
    void (*started)(void *context, struct tb_host_agent *agent, struct tb_reader *pids);
    void (*output)(void *context, struct tb_host_agent *agent, uint32_t rank, unsigned stream, const char *bytes,
                   size_t length);
    /* TB_CONTROL_ENDED: `over` of whichever world the process was, `unborn` if not all of that had joined when it
     * ended; `ended` unless it was unborn, since `spawns` says what follows then. */
    void (*over)(void *context, const struct tb_ended *ended, bool unborn);
    void (*ended)(void *context, struct tb_host_agent *agent, const struct tb_ended *ended);
    void (*aborted)(void *context, struct tb_host_agent *agent, const struct tb_agent_abort *abort);
    void (*trouble)(void *context, struct tb_host_agent *agent, uint32_t code, const char *text, size_t length);
    void (*note)(void *context, const char *text, size_t length);
    void (*input_window)(void *context, uint32_t bytes);
    void (*idle)(void *context, struct tb_host_agent *agent);
    void (*gone)(void *context, struct tb_host_agent *agent); /* it says that it ends; its phase is that before */
    void (*call)(void *context, uint32_t host, struct tb_reader *rest);
    void (*probed)(void *context, struct tb_host_agent *agent, struct tb_reader *results);
    /* An agent has come to this one, who is to carry its stream. */
    void (*attach)(void *context, struct tb_host_agent *agent, uint32_t host, uint32_t coming);
    void (*link)(void *context, struct tb_host_agent *agent, const struct tb_agent_link *link);
    /* TB_CONTROL_GROUP_STATE, _HEARD or _TROUBLE. */
    void (*group)(void *context, struct tb_host_agent *agent, enum tb_control kind, struct tb_reader *fields);
    void (*waits)(void *context, struct tb_host_agent *agent, struct tb_reader *answers);
    /* TB_CONTROL_REGISTRY: a rank asks the registry of the job; nothing was looked at yet. */
    void (*registry)(void *context, struct tb_host_agent *agent, const struct tb_agent_wish *wish);
};

void tb_agent_frames_dispatch(const struct tb_agent_frame_events *events, struct tb_host_agent *agent,
                              struct tb_control_frame *frame);

#endif

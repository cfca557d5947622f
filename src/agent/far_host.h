/* A far host: what the agent knows of the way to the agent of another host, to which ranks of this one send. How long
 * an answer takes, whether a question is out, how much may be under way where gateways lie between, and which of
 * several first hops lose what they are given. The replay owns it; one thread. */
#ifndef TB_AGENT_FAR_HOST_H
#define TB_AGENT_FAR_HOST_H

#include "agent/member.h"

#define TB_FAR_HOST_HOPS (TB_HOST_ROUTES_HOPS_LIMIT + 1u)

/* The agent that frames were given to, on their way to the far host. */
struct tb_far_hop {
    uint32_t host;
    uint64_t good_at;   /* when a frame was sent that has arrived */
    uint64_t shunned;   /* nothing arrives through it: until then it is used only if there is no other */
    uint64_t span;      /* how long it is shunned, or was the last time; 0: it has proved good since */
    uint64_t broken_at; /* a connection with it has ended; 0: never */
    size_t under_way;   /* bytes of long messages that it was given and that are not there yet */
};

struct tb_far_host {
    uint32_t host;
    struct tb_list busy;                   /* in the replay's list: something is not there yet */
    struct tb_list hungry;                 /* in the replay's list: something waits to be sent */
    struct tb_list sending;                /* pairs with something that is not there yet; the oldest first */
    struct tb_list turns[TB_STREAM_COUNT]; /* pairs with something that waits to be sent, by stream */
    uint32_t sending_count;

    uint64_t round_trip, variation; /* ns, from agent to agent and back; 0: not known */
    uint64_t slowest;               /* of the frames, whatever way they took; forgotten slowly */
    uint64_t asked_at;              /* the first question that has not been answered; 0: none */
    uint64_t last_asked, answered;  /* the time of the last question, and of the last one that was answered */
    uint32_t asks;                  /* questions since the last answer */
    uint64_t patience;              /* between two questions */
    uint64_t ask_at, check_at;      /* the next question; when something may be found to be lost; TB_NEVER */

    size_t under_way, room; /* bytes, for long messages where gateways lie between, which drop what does not fit */
    uint64_t narrowed_at;   /* when `room` became less; 0: never */
    size_t queued[TB_STREAM_COUNT]; /* bytes that wait in queues of this agent */

    uint32_t hop_count;
    struct tb_far_hop hops[TB_FAR_HOST_HOPS];
};

void tb_far_host_open(struct tb_far_host *host, uint32_t number);
/* Between the question and its answer lies `sample`. */
void tb_far_host_learn(struct tb_far_host *host, uint64_t sample);
/* A frame, whose way is not known, took so long until we heard of it. */
void tb_far_host_took(struct tb_far_host *host, uint64_t sample);
/* The time in which a frame arrives and the answer comes back, even if a TCP stream on its way had to wait for its own
 * timer. */
uint64_t tb_far_host_answer_time(const struct tb_far_host *host);
void tb_far_host_calm(struct tb_far_host *host); /* the next question comes as soon as it should at first */

/* A frame sent at that time was lost, or so many bytes have arrived: how much may be under way follows. */
void tb_far_host_narrow(struct tb_far_host *host, uint64_t sent_at, uint64_t now);
void tb_far_host_widen(struct tb_far_host *host, size_t bytes);

/* So many bytes of long messages leave through a hop; or they have arrived, or are lost. */
void tb_far_host_load(struct tb_far_host *host, uint32_t via, size_t bytes);
void tb_far_host_unload(struct tb_far_host *host, uint32_t via, size_t bytes);
size_t tb_far_host_loaded(const struct tb_far_host *host, uint32_t via);

/* What became of a frame that was sent through a hop. One that is lost though later ones have arrived says nothing
 * against it: a gateway that is full drops some. */
void tb_far_host_outcome(struct tb_far_host *host, uint32_t via, uint64_t sent_at, bool arrived, uint64_t now);
bool tb_far_host_shuns(const struct tb_far_host *host, uint32_t via, uint64_t now);
void tb_far_host_use(struct tb_far_host *host, uint32_t via); /* something was given to this hop */
bool tb_far_host_uses(const struct tb_far_host *host, uint32_t via);
/* A connection with this hop has ended: what was sent before may be gone. */
void tb_far_host_broken(struct tb_far_host *host, uint32_t via, uint64_t now);
uint64_t tb_far_host_broken_at(const struct tb_far_host *host, uint32_t via); /* 0: never */

#endif

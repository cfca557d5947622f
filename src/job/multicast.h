/* Multicast as a job knows it. Each cluster of the job may have one group; the launcher chooses it, the agents of its
 * hosts test it, and the launcher alone gives the verdict, once, so that it is the same on all ranks. A later test
 * gives another verdict, with a higher version. What stands here is what launcher, agents and ranks tell each other of
 * it; docs/wire.md has the frames. */
#ifndef TB_JOB_MULTICAST_H
#define TB_JOB_MULTICAST_H

#include "job/address.h"
#include "topology/topology.h"

#define TB_MULTICAST_PROBERS 64u                           /* hosts of a group that send something in a test */
#define TB_MULTICAST_PLACES  ((TB_PLACES_LIMIT + 7u) / 8u) /* bytes of a bit for each place of a job */

struct tb_address_book;

/* What parameters say of multicast, however they were set: words that mean nothing are refused. */
int tb_multicast_check_parameters(void);

/* ---- who tests --------------------------------------------------------------------------------------------------- */

/* The hosts with ranks that stand in a place, and those of them that send in a test: all, or of more than 64 as many,
 * evenly spread. All others hear whether these come through. So of each host it is known that it hears, which is what
 * switches and filters get wrong port by port; that the others are heard is known of a sample. */
struct tb_multicast_probers {
    uint32_t member_count;
    uint32_t count;
    uint32_t hosts[TB_MULTICAST_PROBERS]; /* of the address book, ascending */
};

void tb_multicast_probers_find(struct tb_multicast_probers *probers, const struct tb_address_book *book,
                               uint32_t place);
/* The same, of a list of all of them, ascending. */
void tb_multicast_probers_spread(struct tb_multicast_probers *probers, const uint32_t *hosts, uint32_t count);
/* Which of them a host is; TB_MULTICAST_PROBERS: none. */
uint32_t tb_multicast_probers_index(const struct tb_multicast_probers *probers, uint32_t host);
/* A bit for each. */
static inline uint64_t tb_multicast_probers_all(const struct tb_multicast_probers *probers)
{
    return probers->count < 64 ? (UINT64_C(1) << probers->count) - 1 : UINT64_MAX;
}

/* ---- what launcher and agents tell each other -------------------------------------------------------------------- */

/* TB_CONTROL_GROUP: the group that a host is to open. */
struct tb_multicast_order {
    uint32_t attempt;          /* counts the groups that were tried for this cluster, from 1; 0: the host is in none */
    uint32_t place;            /* whose hosts are in it */
    struct tb_address address; /* of the group, with its port */
    struct tb_address local;   /* of the host, by which it takes part */
    uint32_t ttl;
};

void tb_multicast_order_put(struct tb_writer *w, const struct tb_multicast_order *order);
int tb_multicast_order_get(struct tb_reader *r, struct tb_multicast_order *order); /* checks everything */

/* TB_CONTROL_GROUP_STATE: what became of it. */
enum tb_multicast_state {
    TB_MULTICAST_OPEN,
    TB_MULTICAST_CLOSED, /* it cannot be had on this host, and the text says why */
    TB_MULTICAST_TAKEN,  /* somebody else uses it: another one is to be tried */
    TB_MULTICAST_STATES
};

/* With TB_MULTICAST_OPEN: what the host takes. */
struct tb_multicast_fit {
    uint32_t piece;  /* payload bytes of a datagram */
    uint32_t buffer; /* bytes that its kernel holds for a socket, as it counts them; 0: not known */
};

/* TB_CONTROL_GROUP_TROUBLE: why a rank wants a group tested again. */
enum tb_multicast_trouble {
    TB_MULTICAST_UNHEARD,   /* too much does not come through */
    TB_MULTICAST_OTHER_JOB, /* another job uses it, too */
    TB_MULTICAST_TROUBLES
};

/* ---- what ranks know --------------------------------------------------------------------------------------------- */

/* The group of a host, with all that a process there needs to take part. */
struct tb_multicast_group {
    struct tb_address address;
    struct tb_address local;
    uint32_t interface; /* that has the local address: its index */
    uint32_t ttl;
    uint32_t piece;  /* payload bytes of the longest datagram that came through in the test, behind its header */
    uint32_t buffer; /* bytes that the kernel of each of its hosts holds for a socket; 0: not known */
    struct tb_siphash_key key;
};

enum tb_multicast_verdict {
    TB_MULTICAST_UNKNOWN, /* it will come, however the test ends */
    TB_MULTICAST_WORKS,
    TB_MULTICAST_FAILS /* or there is no group */
};

/* Owned by a rank's job, and by the agent of each host, in the same form. All zero at first: the job has no group. */
struct tb_multicast_facts {
    bool expected;                       /* the job has groups: a verdict will come, or has */
    uint32_t version;                    /* of the newest one, counting from 1; 0: none is here */
    uint8_t first[TB_MULTICAST_PLACES];  /* bit p: the group of place p works, as the first verdict says, */
    uint8_t newest[TB_MULTICAST_PLACES]; /* and as the newest does */
    bool grouped;                        /* this host's group works, and is this: */
    struct tb_multicast_group group;
};

/* Of bits as these, with place below TB_PLACES_LIMIT. */
static inline bool tb_multicast_bit(const uint8_t bits[TB_MULTICAST_PLACES], uint32_t place)
{
    return (bits[place / 8] >> place % 8 & 1) != 0;
}

/* The verdict that every rank of the job starts from, whenever it asks. */
enum tb_multicast_verdict tb_multicast_first(const struct tb_multicast_facts *multicast, uint32_t place);
/* Bits for the contexts of communicators that a process in this place makes up from now on: where it has worked, and
 * does not now. Whoever hears of such a context knows them, so that all ranks of the communicator choose alike,
 * whenever they hear of verdicts. */
uint64_t tb_multicast_uncast(const struct tb_multicast_facts *multicast, uint32_t place);
/* Where ranks of a communicator with this context, made up in that place, may multicast: where the first verdict says
 * so, but for that. Whether that is anywhere. */
bool tb_multicast_allowed(const struct tb_multicast_facts *multicast, uint64_t context, uint32_t place,
                          uint8_t places[static TB_MULTICAST_PLACES]);
/* Takes a verdict of the launcher's; `bits` as they travel, without zeros at their end. One that is not newer changes
 * nothing. */
int tb_multicast_learn(struct tb_multicast_facts *multicast, uint32_t version, const uint8_t *bits, size_t length);
/* The same, with the group of the host, from an agent to its ranks: TB_CONTROL_GROUP_VERDICT. */
void tb_multicast_put(struct tb_writer *w, const struct tb_multicast_facts *multicast);
int tb_multicast_get(struct tb_reader *r, struct tb_multicast_facts *multicast);

#endif

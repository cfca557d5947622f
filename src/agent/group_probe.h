/* A test of multicast as one host of the group sees it: what it has heard of the others, when it sends something
 * itself, and when it reports. No sockets, no clock: whoever owns it sends, and tells it the time and what has come.
 * Belongs to struct tb_host_group; one thread.
 *
 * All hosts of the group have opened it before anybody sends. Each prober sends a short and a long datagram at once,
 * and again 2, 10, 40, 55, 70 and 85 ms later, unless all others have said by then, in datagrams of theirs, that they
 * have heard it. A host reports when it has heard all; else 100 ms after it began, and once more should the rest come
 * later. */
#ifndef TB_AGENT_GROUP_PROBE_H
#define TB_AGENT_GROUP_PROBE_H

#include "job/job.h"

#define TB_GROUP_PROBE_BYTES 16u /* payload of the short datagram: what its sender has heard */

struct tb_group_probe {
    struct tb_multicast_probers probers;
    uint32_t self;           /* which of them this host is; TB_MULTICAST_PROBERS: it only listens */
    uint64_t all;            /* those that are to be heard: all but itself */
    uint32_t test;           /* its number; 0: there was none */
    uint64_t began;          /* when the word came */
    uint32_t rounds;         /* how often it has sent, */
    uint64_t sent;           /* and when last; before the first time, when that is due */
    uint64_t heard, longest; /* a bit for each prober: something has come, and the long datagram has */
    uint64_t confirmed;      /* probers that have heard all of this host */
    bool told;               /* the others, that all was heard, when something was sent last; */
    bool over;               /* the time is, and what was heard until then was reported; */
    bool whole;              /* all was heard, and reported */
};

enum tb_group_probe_act {
    TB_GROUP_PROBE_SEND = 1,  /* both datagrams */
    TB_GROUP_PROBE_REPORT = 2 /* to the launcher */
};

void tb_group_probe_open(struct tb_group_probe *probe, const struct tb_address_book *book, uint32_t place,
                         uint32_t host);
/* A test begins; what follows is due at once, or as tb_group_probe_due says. */
void tb_group_probe_begin(struct tb_group_probe *probe, uint32_t test, uint64_t now);
/* When something is to be done next; TB_NEVER: only when something comes. */
uint64_t tb_group_probe_due(const struct tb_group_probe *probe);
/* What is to be done now: bits of enum tb_group_probe_act. It counts as done. */
unsigned tb_group_probe_act(struct tb_group_probe *probe, uint64_t now);
/* A datagram of a host has come, in the test of that number: with what that host had heard. The same bits. */
unsigned tb_group_probe_hear(struct tb_group_probe *probe, uint32_t host, uint32_t test, bool is_long, uint64_t heard,
                             uint64_t longest);

#endif

/* Faults at the receiving socket, on purpose and by a seed: stands between a multicast group and its owner, and loses,
 * repeats and reorders datagrams that have come and are right. Belongs to the thread of its group.
 *
 * Specification: loss=1%,burst=3,repeat=1%,reorder=1%,deaf=4,members=50%,only=4,seed=1 in any order. `burst`: so many
 * datagrams in a row are lost each time, the share of what is lost being the same. `deaf`: this process hears nothing
 * at all. `members`: only about this share of the processes has faults, which ones says the seed. `only`: no other
 * than this process has them. What happens to the n-th right datagram that comes to a process depends on the seed, the
 * process and n alone, so a run whose datagrams are the same replays.
 *
 * What is held is copied, and comes when some later ones have come, or after a short time. */
#ifndef TB_TRANSPORT_MCAST_FAULTS_H
#define TB_TRANSPORT_MCAST_FAULTS_H

#include "transport/mcast/arrival.h"

#define TB_MCAST_HELD_LIMIT 64u /* beyond that datagrams pass unharmed */

struct tb_mcast_held;

struct tb_mcast_faults {
    double begin; /* share of datagrams with which a loss begins */
    double repeat, reorder;
    uint32_t burst, losing; /* how many are lost in a row, and still will be */
    bool deaf;
    struct tb_random random;
    const struct tb_clock *clock;
    struct tb_mcast_upcalls up; /* the owner's */
    struct tb_mcast_held *held[TB_MCAST_HELD_LIMIT];
    uint32_t held_count;
    uint64_t passed; /* datagrams that have come */
    uint64_t lost, repeated, reordered;
};

int tb_mcast_faults_open(struct tb_mcast_faults *f, const char *specification, uint32_t self,
                         const struct tb_clock *clock, const struct tb_mcast_upcalls *up);
void tb_mcast_faults_close(struct tb_mcast_faults *f);
/* As the owner's `datagram`, with `faults` as its context. */
void tb_mcast_faults_datagram(void *faults, const struct tb_mcast_arrival *arrival);
/* Hands up what is held no longer; TB_NEVER: all of it. */
void tb_mcast_faults_release(struct tb_mcast_faults *f, uint64_t now);
uint64_t tb_mcast_faults_deadline(const struct tb_mcast_faults *f); /* TB_NEVER: nothing is held */

#endif

/* Link states: which ways between hosts are cut, by what the agents at their ends tell. Pure: knows neither streams nor
 * plans; time is that of the loop. Belongs to the launcher; one thread.
 *
 * A way joins two hosts. Ways are judged together if they are cut together, since they cross one link of the grid file:
 *   up       nobody complains;
 *   suspect  somebody gets no answer. Messages go around at once, and the user is told nothing: it may be the other
 *            host, which is stopped or dead, and about which others decide;
 *   cut      both ends complain, or the other one has been heard by us for a while during the silence. The user is
 *            told, once; without a way around, for longer than the parameter link_patience, the job is ended;
 *   healing  everybody gets answers; after a while it is up again, and used again. The while grows with each relapse.
 */
#ifndef TB_LAUNCH_LINK_STATES_H
#define TB_LAUNCH_LINK_STATES_H

#include "job/job.h"
#include "remote/remote.h"

#define TB_LINK_STATES_MOST 4096u /* numbers of ways that are known at once */

struct tb_link_states_events {
    void *context;
    /* The number of a way; those that are cut together have one. *link: what the file calls it, NULL: nothing. */
    uint64_t (*way)(void *context, uint32_t a, uint32_t b, const char **link);
    /* Messages go around all ways with the number of this one, or need not any more. TB_ERR_UNSUPPORTED: they cannot.
     */
    int (*reroute)(void *context, uint32_t a, uint32_t b, bool cut);
    void (*say)(void *context, const char *text);
    void (*fail)(void *context, const char *text); /* once, the last that is told */
    /* It is about connections between ranks of hosts that do answer each other: nothing passes on them, and instead of
     * a reason the ranks are named. */
    bool connections;
};

struct tb_link_states {
    struct tb_loop *loop;
    const struct tb_address_book *book;
    struct tb_link_states_events events;
    struct tb_heard_host *hosts; /* by host of the address book */
    struct tb_list ways;
    uint32_t way_count;
    struct tb_timer tick;
    bool over; /* nothing is judged any more */
};

/* The address book must live as long. */
int tb_link_states_open(struct tb_link_states *states, struct tb_loop *loop, const struct tb_address_book *book,
                        const struct tb_link_states_events *events);
void tb_link_states_close(struct tb_link_states *states); /* a zeroed one too */
void tb_link_states_stop(struct tb_link_states *states);  /* the job is being ended */

/* Something has come from the agent of a host. */
void tb_link_states_heard(struct tb_link_states *states, uint32_t host);
/* The agent of `from` has had no answer from that of `to` for so long (ns), or has one again. A complaint is repeated
 * about once a second. */
void tb_link_states_report(struct tb_link_states *states, uint32_t from, uint32_t to, bool silent, uint64_t time,
                           const char *why);
/* The agent of a host is gone, and other routes have been made for that. */
void tb_link_states_forget(struct tb_link_states *states, uint32_t host);

#endif

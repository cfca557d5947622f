/* The grid plan: the grid of a job as its launcher sees it. Which hosts take part, which agent starts which, and the
 * routes by which messages get from one to another. Made before anything is started, changed when a gateway is lost.
 * Belongs to the launcher; one thread; the grid must outlive it. */
#ifndef TB_LAUNCH_GRID_PLAN_H
#define TB_LAUNCH_GRID_PLAN_H

#include "launch/launch.h"
#include "launch/reach_results.h"
#include "remote/remote.h"

struct tb_grid_plan {
    const struct tb_grid *grid;
    struct tb_connectivity connectivity;
    struct tb_routes routes;
    uint32_t here;             /* host of the grid on which we run; TB_GRID_NONE: we are outside */
    uint32_t version;          /* of the routes */
    bool with_helpers;         /* hosts without ranks take part too, in the hope that they lead on; set before settle */
    bool *missing;             /* by host of the grid: cannot take part; the caller's */
    const bool *ranked;        /* by host of the grid: gets ranks; the caller's. NULL: not known */
    bool *manual;              /* by host of the grid: its agent is started by hand */
    uint32_t *manual_clusters; /* by class: the cluster started by hand in which it is; TB_GRID_NONE: none */
    uint32_t *depths;          /* by class: agents between us and its hosts; TB_GRID_NONE: nobody can start them */
    uint32_t *book;            /* by host of the grid: its place in the address book; TB_GRID_NONE: takes no part */
    uint8_t *cuts;             /* [from * classes + to]: not to be used at the moment; NULL: none ever was */
    bool *relays;              /* by class: its hosts may be given what is meant for others */
    bool *avoided;             /* by link of the file: nobody is started across it; the caller's. NULL: none */
    uint32_t *parents;         /* by host of the address book: the one whose agent starts it; TB_GRID_NONE: we do */
    const struct tb_reach_results *results; /* NULL: nothing was tried */
};

/* `here` is the host of the grid on which we run, or TB_GRID_NONE; `missing` has an element for each host of the grid.
 */
int tb_grid_plan_open(struct tb_grid_plan *plan, const struct tb_options *options, uint32_t here, bool *missing);
/* The same for ranks on some hosts of the grid, of which `ranked` has an element for each: of a large grid only what
 * they need is looked at. */
int tb_grid_plan_open_for(struct tb_grid_plan *plan, const struct tb_options *options, uint32_t here, bool *missing,
                          const bool *ranked);
void tb_grid_plan_close(struct tb_grid_plan *plan);
/* Of tb_grid_plan_open: who reaches whom among the hosts that are looked at (plan_part.c). */
int tb_grid_plan_connect(struct tb_grid_plan *plan, const struct tb_options *options);
/* Whether all hosts with ranks are among those that are looked at. */
bool tb_grid_plan_covers(const struct tb_grid_plan *plan, const struct tb_placement *placement);

/* After the ranks have been placed: adds the hosts that others need to the address book, gives each its kind and its
 * parent. Errors name hosts that cannot be started, or have no route to each other. */
int tb_grid_plan_settle(struct tb_grid_plan *plan, const struct tb_options *options, struct tb_placement *placement);

/* Who is to try whom (plan_reach.c): all results are SAID or NO. A count of 0: nobody. */
int tb_grid_plan_ask(const struct tb_grid_plan *plan, const struct tb_placement *placement,
                     struct tb_reach_results *results);
/* What they have found out takes the place of what was supposed, and new routes are made. An error says who has no
 * route to whom. The results must outlive the grid plan. */
int tb_grid_plan_learn(struct tb_grid_plan *plan, struct tb_placement *placement,
                       const struct tb_reach_results *results);
/* Whether others than those of the address book could take part, and there is room for them. */
bool tb_grid_plan_has_more(const struct tb_grid_plan *plan);
/* Makes new routes, between the hosts of the address book that are there. An error says who has none to whom. */
int tb_grid_plan_reroute(struct tb_grid_plan *plan, const struct tb_placement *placement);

/* Whether all hosts with ranks could still be started and have routes to each other if this one were missing. */
bool tb_grid_plan_can_miss(const struct tb_grid_plan *plan, const struct tb_options *options,
                           const struct tb_placement *placement, uint32_t grid_host);
/* No agent is started across these links of the file, of which each has a place for both its directions. Before settle.
 */
void tb_grid_plan_avoid(struct tb_grid_plan *plan, bool *avoided);
/* The link of the file between two hosts of the grid, if all hosts with ranks could be started without it, and nobody
 * avoids it yet; else NULL. */
const struct tb_grid_link *tb_grid_plan_avoidable(const struct tb_grid_plan *plan, const struct tb_options *options,
                                                  const struct tb_placement *placement, uint32_t from, uint32_t to);
/* The host of the address book is gone: finds routes around it, across what is cut only if there is no other.
 * TB_ERR_PEER: there is none between some hosts with ranks. */
int tb_grid_plan_lose(struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host);

/* Hosts of the address book other than its parent whose agents can carry the control stream of this one, if it does not
 * come through the parent any more, or not straight from us; at most `room`. */
uint32_t tb_grid_plan_stand_ins(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host,
                                uint32_t room, uint32_t *stand_ins);
/* Fills in `relays` (plan_routes.c), with each change of the routes. */
int tb_grid_plan_find_relays(struct tb_grid_plan *plan);
/* Whether ranks of two classes may connect to each other (plan_routes.c). */
bool tb_grid_plan_is_open(const struct tb_grid_plan *plan, uint32_t a, uint32_t b);
/* The number of the way between two hosts of the address book (plan_cuts.c). Ways with one number are cut together:
 * those that cross one link of the file (*link is its name, else NULL), or join hosts of the same two classes. */
uint64_t tb_grid_plan_way(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t a, uint32_t b,
                          const char **link);
/* All ways with the number of this one are not to be used from now on, or may be again; makes new routes.
 * TB_ERR_UNSUPPORTED: there is no way around them, and nothing has changed. */
int tb_grid_plan_cut(struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t a, uint32_t b, bool cut);
/* The routes that a host of the address book is to know (plan_routes.c); allocated. */
int tb_grid_plan_routes(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host,
                        struct tb_host_routes *routes);

/* How a parent, or we, get to a host of the address book. What it points to is of the grid and the options. `program`
 * is the path of tombolo here. */
void tb_grid_plan_target(const struct tb_grid_plan *plan, const struct tb_options *options, const char *program,
                         const struct tb_placement *placement, uint32_t host, struct tb_shell_target *target);
/* What is different on a host of the address book: fills in `setup`, which is a copy of what holds for all; free with
 * tb_grid_plan_setup_close. */
int tb_grid_plan_setup(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host,
                       struct tb_setup *setup);
void tb_grid_plan_setup_close(struct tb_setup *setup);

#endif

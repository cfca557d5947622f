/* When bytes can pass a wire, private to this folder: each by one of several ways, on which it comes to the wire no
 * earlier than `before`, and must have left it `behind` before the end. A way that comes late and one that must leave
 * early are not one that does neither. */
#ifndef TB_PLANNER_BOUND_WINDOWS_H
#define TB_PLANNER_BOUND_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#define TB_BOUND_WINDOWS 8u /* of a wire; more become one that is as wide as all of them */

struct tb_bound_window {
    uint64_t before, behind;
    uint64_t more; /* the one or the other, of what goes on to another group */
};

struct tb_bound_windows {
    uint32_t count;
    struct tb_bound_window rows[TB_BOUND_WINDOWS];
};

/* One way more. */
void tb_bound_windows_add(struct tb_bound_windows *w, struct tb_bound_window window);
/* Of what goes on to another group: it comes later, or must leave earlier. */
void tb_bound_windows_narrow(struct tb_bound_windows *w, bool later);
/* For how long until `end` the wire cannot pass anything; TB_COST_NEVER: for all of it. Never longer for a later end,
 * nor, if the end is behind that, than the shortest of what single ways take. */
uint64_t tb_bound_windows_shut(const struct tb_bound_windows *w, uint64_t end);
/* The shortest of these; TB_COST_NEVER: there is no way. */
uint64_t tb_bound_windows_least(const struct tb_bound_windows *w);

#endif

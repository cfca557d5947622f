/* What hosts say themselves of where they are: TOMBOLO_SITE and TOMBOLO_CLUSTER in the environment in which their
 * agents start. It counts for a host of which neither a grid file nor the list of hosts says anything. Belongs to the
 * plan of a job; its one thread. */
#ifndef TB_LAUNCH_TOLD_PLACES_H
#define TB_LAUNCH_TOLD_PLACES_H

#include "job/job.h"

/* What hosts have said in vain, since a grid file says something else. All zero at first. */
struct tb_told_places {
    uint32_t unheard; /* hosts that did */
    uint32_t host;    /* the first of them, in the address book */
    char text[96];    /* NAME=value */
};

/* `where` becomes what the host tells, if it says nothing itself. An error if a name is none. */
int tb_told_places_take(struct tb_host_where *where, const struct tb_host_where *told, const char *host);
/* The same on a grid, whose file rules: only remembers whether the host says something else. */
void tb_told_places_pass_over(struct tb_told_places *places, const struct tb_host_where *where,
                              const struct tb_host_where *told, uint32_t host);
/* What an agent of this host would tell. A value that is too long becomes one that is no name. */
void tb_told_places_read_own(struct tb_host_where *told);
/* Keeps a text as it was told. One that is too long, or has a zero byte in it, becomes one that is no name. */
void tb_told_places_keep(char *to, size_t size, const char *bytes, size_t length);

#endif

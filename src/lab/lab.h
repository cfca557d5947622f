/* lab: a described grid on this machine, in namespaces. A lab is a process, its keeper, the first of a process
 * namespace: when it ends, by whatever cause, everything in the lab ends with it, and nothing is kept in files. Others
 * find it by an abstract Unix socket whose name carries the user and the lab's name, and which exists in the network of
 * whoever made the lab and in each of the lab's machines.
 *
 * Functions here belong to the one thread of a command. */
#ifndef TB_LAB_LAB_H
#define TB_LAB_LAB_H

#include "topology/topology.h"

#include <sys/types.h>

#define TB_LAB_NAME_BYTES 48
#define TB_LAB_VARIABLE   "TOMBOLO_LAB" /* names the lab in which a process runs */
#define TB_LAB_CONSOLE    "console"     /* the machine from which commands are run */
#define TB_LAB_PORT_QUEUE 262144u       /* bytes before a host's port in its switch, where the grid says nothing */
#define TB_LAB_LATENCY    "10us"        /* between two hosts of a switch, where it is not emulated, */
#define TB_LAB_OVERHEAD                                                                                                \
    "9us"                         /* and what a message takes of a rank's time: the kernel's work for the other        \
                                     machines, which have no cores of their own, is in it */
#define TB_LAB_PORT_BURST   2048u /* bytes that pass a port at once after it has rested, or more */
#define TB_LAB_NOTE_BYTES   512
#define TB_LAB_ANSWER_BYTES 131072 /* a report of the emulator, with longer names */

struct tb_lab_wish {
    const char *name;       /* NULL: after the file, with a number if that is taken */
    const char *congestion; /* TCP's congestion control on its machines; NULL: what the grid says, else cubic */
    bool stay;              /* it outlives this process; else it ends with it */
};

/* Builds a lab. The name that it has got goes to `got`, of TB_LAB_NAME_BYTES, and what the user should know, if
 * anything, to `note`, of TB_LAB_NOTE_BYTES. Nothing is left after an error. */
int tb_lab_up(const struct tb_grid *grid, const struct tb_lab_wish *wish, char *got, char *note);

/* Which lab is meant: `wanted`, or if NULL the one in which we are, or the only one. To `name`. */
int tb_lab_choose(const char *wanted, char *name);

/* Calls `each` for every lab of this user; `about` is one line on it. Returns how many. */
uint32_t tb_lab_list(void (*each)(void *context, const char *name, const char *about), void *context);

/* Ends a lab and waits until it is gone. */
int tb_lab_down(const char *name);

/* A request of several words ("cut", "venus-jupiter"); the answer, if any, is text. */
int tb_lab_ask(const char *name, const char *const *words, uint32_t count, char *answer, size_t room);

/* Runs `body` in a process of its own on a machine of the lab, passes signals on and waits for it; *status gets its
 * exit status as a shell would say it. `terminal`: it gets the terminal, if we have one, and a process group for it, as
 * shells want it. This process itself is afterwards inside of the lab. */
int tb_lab_enter(const char *name, const char *host, int (*body)(void *context), void *context, bool terminal,
                 int *status);

#endif

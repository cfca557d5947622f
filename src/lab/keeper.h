/* The keeper of a lab: the first process of its namespaces. It builds the network, then answers requests on its sockets
 * until it is told to end, or, unless it was told to stay, whoever started it is gone. One thread. */
#ifndef TB_LAB_KEEPER_H
#define TB_LAB_KEEPER_H

#include "lab/congestion.h"

#include <sys/types.h>

#define TB_KEEPER_REQUEST_BYTES 4096
#define TB_KEEPER_WORDS         32
#define TB_KEEPER_DESCRIPTORS   6 /* user, processes, mounts, network, host name, IPC */

struct tb_keeper_start {
    const struct tb_grid *grid;
    const char *name;
    int listener; /* made where the lab was asked for */
    int starter;  /* socket to who has started us: one message when built, "ok" with what the user should know in the
                     next line, or the story; its end is ours */
    bool stay;
    const char *congestion; /* TCP's congestion control */
    struct tb_congestion_permit permit;
    uid_t uid;
    gid_t gid;
};

/* Runs in the process that tb_space_fork has made. */
_Noreturn void tb_keeper_run(struct tb_keeper_start *start);

/* A listening socket with the name of a lab, in the network where we are. -1: errno says why. */
int tb_keeper_listen(const char *name);
/* The same, connected to the keeper of this lab; -1. */
int tb_keeper_connect(const char *name);
/* The namespaces of a machine, TB_KEEPER_DESCRIPTORS of them. */
int tb_lab_spaces(const char *name, const char *host, int *descriptors);
/* What the names of such sockets begin with in /proc/net/unix, "@tombolo-lab/UID/". */
void tb_keeper_prefix(char *text, size_t room);

#endif

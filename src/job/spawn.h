/* What a rank asks for when it wants processes (MPI_Comm_spawn), as it travels to its agent, on to the launcher, and to
 * the agents that start them. */
#ifndef TB_JOB_SPAWN_H
#define TB_JOB_SPAWN_H

#include "job/job.h"

struct tb_spawn_app {
    struct tb_app app; /* first_rank counts from the first of the new ones; variables: none */
    char *hosts;       /* where, names with commas between them; "": anywhere */
};

struct tb_spawn {
    uint32_t model;     /* the program of the job whose environment they get */
    uint32_t app_count; /* 1 to TB_APP_LIMIT */
    struct tb_spawn_app *apps;
    /* For the new ones, who they belong to; agents and launcher know nothing of what is in it. */
    size_t parent_bytes;
    void *parent;
};

uint32_t tb_spawn_size(const struct tb_spawn *spawn); /* processes of all its programs */
int tb_spawn_encode(const struct tb_spawn *spawn, struct tb_writer *w);
/* Allocates; checks everything. */
int tb_spawn_decode(struct tb_spawn *spawn, const void *bytes, size_t length);
void tb_spawn_close(struct tb_spawn *spawn);

#endif

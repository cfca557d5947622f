/* Rank input: the standard input of rank 0, as far as the launcher sends it. Keeps what does not fit into the pipe yet;
 * what the rank has taken is told, so that the launcher sends as much more. Belongs to the agent and its one thread. */
#ifndef TB_AGENT_RANK_INPUT_H
#define TB_AGENT_RANK_INPUT_H

#include "remote/remote.h"

struct tb_rank_input_events {
    void *context;
    void (*taken)(void *context, size_t bytes); /* by the rank, or by nobody when it does not read any more */
};

struct tb_rank_input {
    struct tb_loop *loop;
    struct tb_rank_input_events events;
    struct tb_watch watch; /* for room in the pipe */
    int descriptor;        /* -1: closed, or rank 0 is elsewhere */
    char *bytes;
    size_t start, end, room;
    bool last; /* nothing follows: close when empty */
};

void tb_rank_input_open(struct tb_rank_input *input, struct tb_loop *loop, const struct tb_rank_input_events *events);
void tb_rank_input_close(struct tb_rank_input *input);

void tb_rank_input_begin(struct tb_rank_input *input, int descriptor); /* rank 0 reads the other end; takes it */
/* 0 bytes: the end. TB_OK, or no memory. */
int tb_rank_input_add(struct tb_rank_input *input, const void *bytes, size_t length);

#endif

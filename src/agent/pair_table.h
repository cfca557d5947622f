/* A table by pairs of ranks, a source and a destination, for what an agent remembers of each: what is not there yet
 * (replay.h), and what has come (receipts.h). Each entry begins with a struct tb_pair; the table owns the entries until
 * it is closed, and none is taken out before. One thread. */
#ifndef TB_AGENT_PAIR_TABLE_H
#define TB_AGENT_PAIR_TABLE_H

#include "base/base.h"

#define TB_PAIR_TABLE_LIMIT (1u << 20)

struct tb_pair {
    uint32_t source, destination; /* ranks */
};

struct tb_pair_table {
    struct tb_pair **slots; /* open addressing; NULL: nobody */
    uint32_t count, room;
};

/* NULL: there is none. */
struct tb_pair *tb_pair_table_find(const struct tb_pair_table *table, uint32_t source, uint32_t destination);
/* The same; made if there is none, of `bytes` of zeros. NULL: no memory, or too many; the story is told. */
struct tb_pair *tb_pair_table_make(struct tb_pair_table *table, uint32_t source, uint32_t destination, size_t bytes);
/* Goes through all of them: *at begins with 0. NULL: that was the last one. */
struct tb_pair *tb_pair_table_next(const struct tb_pair_table *table, uint32_t *at);
void tb_pair_table_close(struct tb_pair_table *table); /* frees the entries too */

#endif

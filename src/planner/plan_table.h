/* The plan table: choices that the processes of a host share, so that a call is rated once a host. It is memory that
 * all of them have mapped, full of zeros at first, with as many entries as there are; nobody owns an entry for longer
 * than it takes to make a choice. Who looks for a choice that is not there makes it, and the others wait for it, but
 * not for long: as a choice is a pure function of its key, it does not matter whose is taken, or who has died over it.
 * What an entry says is checked, and what makes no sense is not there. Any thread, any process. */
#ifndef TB_PLANNER_PLAN_TABLE_H
#define TB_PLANNER_PLAN_TABLE_H

#include "planner/choice.h"

#define TB_PLAN_TABLE_ENTRIES 2048u
#define TB_PLAN_TABLE_BYTES   (TB_PLAN_TABLE_ENTRIES * 128u)
#define TB_PLAN_WORDS         8u

/* What a choice follows from, as a hash of it. */
struct tb_plan_key {
    uint64_t words[2];
};

/* Begins with what all keys have in common: this version of the library and its catalogue. */
void tb_plan_key_begin(struct tb_plan_key *key);
void tb_plan_key_number(struct tb_plan_key *key, uint64_t number);
void tb_plan_key_text(struct tb_plan_key *key, const char *text);

struct tb_plan_table {
    struct tb_plan_entry *entries; /* NULL: there is no table */
    uint32_t algorithm_count;      /* rows of the catalogue */
    uint64_t patience;             /* how long to wait for another process, ns */
};

/* `memory` stays the caller's: TB_PLAN_TABLE_BYTES, aligned to 8 bytes. */
void tb_plan_table_open(struct tb_plan_table *table, void *memory);
/* TB_OK: `choice` is filled in. TB_AGAIN: this process is to make it and to call tb_plan_table_put. */
int tb_plan_table_get(const struct tb_plan_table *table, const struct tb_plan_key *key, struct tb_choice *choice);
void tb_plan_table_put(const struct tb_plan_table *table, const struct tb_plan_key *key,
                       const struct tb_choice *choice);

#endif

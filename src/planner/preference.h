/* What the user wants to run instead of the cheapest: `bcast=chain:64k` as a parameter or an info key of a
 * communicator, or a rule `bcast ranks>=8 bytes<64k chain:16k`. Constant once read; any thread. */
#ifndef TB_PLANNER_PREFERENCE_H
#define TB_PLANNER_PREFERENCE_H

#include "collectives/collectives.h"

#define TB_RULES_LIMIT      64u
#define TB_CONDITIONS_LIMIT 6u

struct tb_preference {
    char name[32];     /* "": none */
    uint64_t argument; /* 0: the cheapest */
};

/* Reads NAME[:ARGUMENT]; the story of an error lists the names that there are. */
int tb_preference_read(struct tb_preference *preference, enum tb_operation operation, const char *text);
/* As tb_preference_read reads it. */
void tb_preference_print(const struct tb_preference *preference, char *text, size_t size);
/* The row of the catalogue, if it fits the call; else NULL. */
const struct tb_algorithm *tb_preference_find(const struct tb_preference *preference, const struct tb_collective *c);
/* "bcast", as parameters, rules and commands call the operation; tb_operation_read: TB_OPERATION_COUNT if unknown. */
void tb_operation_word(enum tb_operation operation, char *word, size_t size);
enum tb_operation tb_operation_read(const char *word, size_t length);

struct tb_rule {
    enum tb_operation operation;
    uint32_t condition_count;
    struct tb_condition {
        enum { TB_CONDITION_RANKS, TB_CONDITION_HOSTS, TB_CONDITION_BYTES } what;
        enum { TB_CONDITION_BELOW, TB_CONDITION_UPTO, TB_CONDITION_FROM, TB_CONDITION_ABOVE, TB_CONDITION_IS } how;
        uint64_t than;
    } conditions[TB_CONDITIONS_LIMIT];
    struct tb_preference preference;
};

struct tb_rules {
    uint32_t count;
    struct tb_rule rules[TB_RULES_LIMIT];
};

/* Rules are separated by line breaks or `;`, and # begins a comment. `file` is for messages. */
int tb_rules_read(struct tb_rules *rules, const char *text, const char *file);
/* The first one that holds; NULL: none does. */
const struct tb_preference *tb_rules_find(const struct tb_rules *rules, const struct tb_collective *c, uint32_t hosts,
                                          uint64_t bytes);
/* Where the parameter `rules` names a file, puts what is in it in its place, so that it can be sent to other hosts. */
int tb_rules_load(void);
/* What the parameters prefer, for each of TB_OPERATION_COUNT operations and in rules. An unknown name is an error, and
 * so is, if calls are to be reproducible, an algorithm that is not; rules for such do not hold then. */
int tb_preferences_read(struct tb_preference *wishes, struct tb_rules *rules);
/* The parameter `levels`: *skip gets those that collectives are to leave out, as in struct tb_collective. */
int tb_levels_read(uint8_t *skip);

#endif

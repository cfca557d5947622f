/* Which algorithm runs a collective, and why: a pure function of what all ranks know alike. Any thread. */
#ifndef TB_PLANNER_CHOICE_H
#define TB_PLANNER_CHOICE_H

#include "planner/preference.h"
#include "planner/rating.h"
#include "planner/size_class.h"

enum tb_reason {
    TB_REASON_ONLY,      /* no other one fits */
    TB_REASON_MODEL,     /* the cheapest, as the simulator says */
    TB_REASON_REFERENCE, /* what it would cost cannot be known: the first that fits */
    TB_REASON_RULE,
    TB_REASON_PARAMETER,
    TB_REASON_INFO,
    TB_REASON_PLAN,     /* a plan that the job follows says so (plan_follow.h) */
    TB_REASON_TRIAL,    /* the prediction was wrong: this one is measured now */
    TB_REASON_MEASURED, /* it was wrong, and this was the fastest */
    TB_REASON_COUNT
};

#define TB_ALIKE 50u /* times of an algorithm's arguments that differ by less than this part are taken for equal */

struct tb_choice {
    struct tb_candidate best; /* algorithm NULL: none fits */
    struct tb_candidate next; /* the runner-up; algorithm NULL: there is none */
    enum tb_reason reason;
    uint32_t rated; /* candidates that were rated to make it */
};

#define TB_CORRECTIONS_LIMIT 16u          /* algorithms of an operation */
#define TB_FACTOR_ONE        (1ull << 24) /* that a prediction is right */

/* By how much predictions of one kind of call are wrong, as measured and agreed on: a row for each algorithm that has
 * been tried. */
struct tb_corrections {
    uint32_t count;
    struct tb_correction {
        const struct tb_algorithm *algorithm;
        uint64_t factor; /* in parts of TB_FACTOR_ONE */
    } rows[TB_CORRECTIONS_LIMIT];
};

/* NULL: it has not been tried. */
const struct tb_correction *tb_corrections_find(const struct tb_corrections *corrections,
                                                const struct tb_algorithm *algorithm);

/* The facts that a choice depends on beside the call. */
struct tb_choice_facts {
    const struct tb_group_shape *shape; /* with its cost table */
    const struct tb_preference *wish;   /* goes before the rules; may be NULL */
    enum tb_reason wish_reason;
    const struct tb_rules *rules; /* may be NULL */
    /* NULL: none. With them, algorithms that may be worth it and have not been tried come first. */
    const struct tb_corrections *corrections;
};

/* Whether it has a root. A choice is made for all roots that nothing tells apart. */
bool tb_choice_rooted(enum tb_operation o);
int tb_choice_make(const struct tb_choice_facts *facts, const struct tb_collective *c, struct tb_choice *choice);
const char *tb_reason_text(enum tb_reason reason);

/* An argument as a number for users, of two lengths of pieces that of narrow stages; and as tb_argument_print has it.
 */
uint64_t tb_candidate_argument(const struct tb_candidate *candidate);
int tb_candidate_argument_print(const struct tb_candidate *candidate, char *text, size_t size);

#endif

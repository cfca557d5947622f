/* A plan as a job carries it: one piece of memory without pointers, which the launcher makes of the text and ships, and
 * every rank maps. Hosts are numbers in it, and a key for each says which one of the job is meant. In the byte order of
 * the machine: others are refused before it would be sent. The view is constant, and any thread may read it; the bytes
 * are the caller's. */
#ifndef TB_PLANNER_PLAN_IMAGE_H
#define TB_PLANNER_PLAN_IMAGE_H

#include "collectives/collectives.h"

#define TB_PLAN_IMAGE_MAGIC  0x5442504cu
#define TB_PLAN_IMAGE_FORMAT 1u
#define TB_PLAN_IMAGE_LIMIT  (64u << 20) /* bytes: every host has it in its memory */
#define TB_PLAN_WORD_BYTES   1024u       /* of the name of a host, or the names of its places */
#define TB_PLAN_NAME_BYTES   32u         /* of an algorithm, with the 0 behind it */

struct tb_plan;

struct tb_plan_head {
    uint32_t magic, format;
    uint64_t bytes;  /* of all */
    uint64_t digest; /* of its hosts, with their places and slots */
    uint32_t host_count, row_count;
    uint64_t hosts, rows, numbers; /* where they begin, multiples of 8 */
    uint64_t number_count;
};

/* What is to run for some calls: a cell of the text. Sorted by operation, root and sizes. */
struct tb_plan_row {
    uint64_t from, to; /* bytes */
    uint64_t argument; /* of the algorithm */
    uint64_t piece;    /* of the trees; 0: they carry whole shares */
    uint64_t first; /* of the numbers, if there are trees: their shares; of each host in each tree its parent, that of
                       the root itself; and of each likewise which child of its parent it is, counted in any way */
    uint32_t operation, root; /* as in struct tb_plan_cell */
    uint32_t trees, top;      /* how many, with which host as their root; 0: the algorithm */
    char name[TB_PLAN_NAME_BYTES];
};

struct tb_plan_image {
    const struct tb_plan_head *head;
    const uint64_t *hosts; /* keys */
    const struct tb_plan_row *rows;
    const uint32_t *numbers;
};

/* Which host is meant: its name, the names of the places around it as in struct tb_plan_host, and its slots. */
uint64_t tb_plan_host_key(const char *place, const char *name, uint32_t slots);
/* The digest of hosts: that of those before, or 0, and of one more. Their order does not matter. */
uint64_t tb_plan_digest_add(uint64_t digest, uint64_t key);
/* As struct tb_plan_host has it: a word, with _ for blanks and # in names. TB_ERR_LIMIT: it is too long. */
int tb_plan_place_print(const struct tb_places *places, uint32_t place, char *text, size_t size);

/* Whether trees can be planned for the operation. */
bool tb_plan_has_trees(enum tb_operation operation);

/* A malloc'd block. */
int tb_plan_image_make(const struct tb_plan *plan, void **bytes, size_t *length);
/* Looks at all of it, whoever it is from; that trees have no circles is seen when they are made. */
int tb_plan_image_open(struct tb_plan_image *image, const void *bytes, size_t length);
/* The row for a size, operation and root (a host, or TB_PLAN_ANY for rows that are for all); NULL: there is none. Sizes
 * of one class are one: the row that has the smallest of them holds, else the first that has any. */
const struct tb_plan_row *tb_plan_image_find(const struct tb_plan_image *image, enum tb_operation operation,
                                             uint32_t root, uint64_t bytes);

#endif

/* Calls of collectives on communicators of every size, and everyone's programs of them, for tests of the catalogue. */
#ifndef TB_COLLECTIVES_COLLECTIVES_TEST_H
#define TB_COLLECTIVES_COLLECTIVES_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collectives/hosts_test.h"

#define RANKS 64

/* A communicator and a call. Ranks are numbered through both groups of an intercommunicator. */
struct shape {
    const struct tb_algorithm *algorithm;
    uint32_t size, remote; /* of the first and the second group; 0: there is one group */
    uint32_t root;
    bool in_place, commutative;
    bool reproducible; /* whatever is commutative */
    uint64_t argument;
    uint64_t elements; /* that the program is made for, and those that it is used for */
    uint64_t bound;
    struct tb_program *programs[RANKS];
};

static uint32_t shape_ranks(const struct shape *s)
{
    return s->size + s->remote;
}

static bool shape_second(const struct shape *s, uint32_t rank)
{
    return rank >= s->size;
}

static uint32_t shape_number(const struct shape *s, uint32_t rank)
{
    return shape_second(s, rank) ? rank - s->size : rank;
}

static bool rooted(enum tb_operation o)
{
    return o == TB_OPERATION_BCAST || o == TB_OPERATION_GATHER || o == TB_OPERATION_GATHERV ||
           o == TB_OPERATION_SCATTER || o == TB_OPERATION_SCATTERV || o == TB_OPERATION_REDUCE;
}

static struct tb_collective shape_call(const struct shape *s, uint32_t rank)
{
    enum tb_operation o = s->algorithm->operation;
    bool second = shape_second(s, rank);
    struct tb_collective c = {
        .operation = o, .elements = s->elements, .element_bytes = 4, .commutative = s->commutative};
    c.argument = s->argument;
    c.size = second ? s->remote : s->size;
    c.remote_size = s->remote == 0 ? 0 : second ? s->size : s->remote;
    c.rank = shape_number(s, rank);
    c.inter = s->remote > 0;
    c.first = c.inter && !second;
    c.root = shape_number(s, s->root);
    if (c.inter && shape_second(s, s->root) == second)
        c.root = rank == s->root ? TB_ROOT_HERE : TB_ROOT_BESIDE;
    c.in_place = s->in_place && (!rooted(o) || rank == s->root);
    hosts_allow(&c, s->algorithm);
    if (s->reproducible)
        tb_collective_reproduce(&c);
    return c;
}

static void shape_make(struct shape *s)
{
    for (uint32_t rank = 0; rank < shape_ranks(s); rank++) {
        struct tb_collective c = shape_call(s, rank);
        if (s->algorithm->make(&c, &s->programs[rank]) != TB_OK)
            fail_msg("%s of %s, rank %u of %u: %s", s->algorithm->name, tb_operation_name(c.operation), rank, s->size,
                     tb_error_story());
    }
}

static void shape_free(struct shape *s)
{
    for (uint32_t rank = 0; rank < shape_ranks(s); rank++)
        tb_program_free(s->programs[rank]);
}

#endif

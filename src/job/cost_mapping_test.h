/* For unit tests: cost tables without a grid file, and memfds of them as agents make them. */
#ifndef TB_JOB_COST_MAPPING_TEST_H
#define TB_JOB_COST_MAPPING_TEST_H

#include "job/cost_mapping.h"
#include "topology/topology.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* The world, and clusters c1, c2, ... in it. */
static inline void costs_places(struct tb_places *places, uint32_t count)
{
    struct tb_places_builder *builder;
    uint32_t handle, *numbers = malloc(count * sizeof *numbers);
    assert_int_equal(tb_places_builder_open(&builder), TB_OK);
    for (uint32_t i = 1; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "c%u", i);
        assert_int_equal(tb_places_builder_add(builder, 0, TB_LEVEL_CLUSTER, name, &handle), TB_OK);
    }
    assert_int_equal(tb_places_builder_seal(builder, places, numbers), TB_OK);
    tb_places_builder_close(builder);
    free(numbers);
}

/* With the links that the parameter says. */
static inline struct tb_cost_head *costs_make(uint32_t place_count, uint32_t host_count, uint32_t version)
{
    struct tb_places places;
    void *bytes;
    size_t length;
    if (tb_param.links == NULL)
        assert_int_equal(tb_param_load(), TB_OK);
    costs_places(&places, place_count);
    assert_int_equal(tb_cost_table_make_plain(&places, host_count, &bytes, &length), TB_OK);
    tb_places_close(&places);
    struct tb_cost_head *head = bytes;
    head->version = version;
    assert_int_equal(head->bytes, length);
    return head;
}

static inline int costs_file(const void *bytes, size_t length)
{
    int descriptor = memfd_create("costs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, bytes, length), length);
    return descriptor;
}

static inline int costs_file_of(uint32_t place_count, uint32_t host_count, uint32_t version)
{
    struct tb_cost_head *head = costs_make(place_count, host_count, version);
    int descriptor = costs_file(head, (size_t)head->bytes);
    free(head);
    return descriptor;
}

#endif

/* What tests of derived types write often. */
#ifndef TB_DATA_DERIVED_TEST_H
#define TB_DATA_DERIVED_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data/layout.h"

#define INT    tb_type_predefined(0x209)
#define DOUBLE tb_type_predefined(0x214)
#define CHAR   tb_type_predefined(0x243)
#define SHORT  tb_type_predefined(0x208)

#define NARROW(...) ((struct tb_numbers){(const int32_t[]){__VA_ARGS__}, false})
#define WIDE(...)   ((struct tb_numbers){(const int64_t[]){__VA_ARGS__}, true})

static inline void check_bounds(const struct tb_type *type, uint64_t size, int64_t lower, int64_t extent,
                                int64_t true_lower, int64_t true_extent)
{
    assert_int_equal(type->size, size);
    assert_int_equal(type->lower_bound, lower);
    assert_int_equal(type->extent, extent);
    assert_int_equal(type->true_lower_bound, true_lower);
    assert_int_equal(type->true_extent, true_extent);
}

#endif

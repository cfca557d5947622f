/* For tests of what is told in pieces. */
#ifndef TB_AGENT_SEALED_STORE_TEST_H
#define TB_AGENT_SEALED_STORE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

/* A frame with `length` bytes from `at` on, of so many in all, for the reader; close the writer. */
static inline void store_frame(struct tb_writer *w, struct tb_reader *r, uint32_t version, uint64_t all, uint64_t at,
                               const void *bytes, size_t length)
{
    tb_writer_open(w);
    tb_put_u32(w, version);
    tb_put_u64(w, all);
    tb_put_u64(w, at);
    tb_put_bytes(w, bytes, length);
    assert_int_equal(w->error, TB_OK);
    tb_reader_open(r, w->bytes, w->length);
}

#endif

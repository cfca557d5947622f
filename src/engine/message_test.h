/* Messages between engines on the simulated network, for the tests of point-to-point. */
#ifndef TB_ENGINE_MESSAGE_TEST_H
#define TB_ENGINE_MESSAGE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "engine/loopback_test.h"

#define EXACT UINT64_MAX
#define BIG   100000u

static char out[BIG], in[BIG];

static inline struct tb_buffer bytes_of(void *base, uint64_t count)
{
    return (struct tb_buffer){base, count, &tb_type_byte};
}

static inline void fill(char *to, size_t length, uint32_t seed)
{
    for (size_t i = 0; i < length; i++)
        to[i] = (char)(seed + i * 7 + i / 251);
}

static inline struct tb_request *post_send(struct loop_net *net, struct tb_request *r, uint32_t from, uint32_t to,
                                           uint64_t tag, uint64_t length, enum tb_mode mode)
{
    struct tb_buffer b = bytes_of(out, length);
    r->complete = NULL;
    tb_send_post(net->channels[from], r, &b, to, tag, mode);
    return r;
}

static inline struct tb_request *post_receive(struct loop_net *net, struct tb_request *r, uint32_t at, uint32_t from,
                                              uint64_t tag, uint64_t mask, uint64_t room)
{
    struct tb_buffer b = bytes_of(in, room);
    r->complete = NULL;
    tb_receive_post(net->channels[at], r, &b, from, tag, mask);
    return r;
}

static inline void check_received(const struct tb_request *r, uint32_t source, uint64_t tag, uint64_t length)
{
    assert_true(tb_request_done(r));
    assert_int_equal(r->status.error, TB_OK);
    assert_int_equal(r->status.source, source);
    assert_int_equal(r->status.match, tag);
    assert_int_equal(r->status.bytes, length);
    assert_memory_equal(in, out, length);
}

static inline struct tb_counters count_of(struct loop_net *net, uint32_t i)
{
    struct tb_counters c;
    tb_engine_count(net->engines[i], &c);
    return c;
}

#endif

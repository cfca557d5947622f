/* Data and a pretended link for the tests of squeeze. */
#ifndef TB_LINK_SQUEEZE_DATA_TEST_H
#define TB_LINK_SQUEEZE_DATA_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "link/squeeze_press.h"

#define PAYLOAD 16384u
#define HEAD    TB_SQUEEZE_HEAD

/* Words that a generator makes up, the common ones often. */
static inline void make_text(uint8_t *to, size_t length, uint64_t seed)
{
    static char words[4096][12];
    struct tb_random random;
    tb_random_seed(&random, 4);
    for (size_t i = 0; i < 4096; i++) {
        size_t letters = 2 + tb_random_below(&random, 9);
        for (size_t k = 0; k < letters; k++)
            words[i][k] = (char)('a' + tb_random_below(&random, 26) * tb_random_below(&random, 26) / 26);
        words[i][letters] = '\0';
    }
    tb_random_seed(&random, seed);
    for (size_t at = 0; at < length;) {
        const char *word = words[(size_t)exp(tb_random_unit(&random) * log(4095))];
        for (; *word != '\0' && at < length; word++)
            to[at++] = (uint8_t)*word;
        if (at < length)
            to[at++] = tb_random_below(&random, 12) == 0 ? '\n' : ' ';
    }
}

/* A plate of 512 x 512 points, three edges of which are heated, after 1,000 steps. */
#define HEAT_POINTS 512
#define HEAT_BYTES  ((size_t)HEAT_POINTS * HEAT_POINTS * 8)
static inline void make_heat(double *plate)
{
    size_t n = HEAT_POINTS;
    static double plates[2][HEAT_POINTS * HEAT_POINTS];
    double *now = plates[0], *next = plates[1];
    memset(plates, 0, sizeof(plates));
    for (size_t i = 0; i < n; i++) {
        double angle = 3.14159265358979 * (double)i / (double)(n - 1);
        now[i] = 64 * sin(angle) + 64 * sin(3 * angle);
        now[(n - 1) * n + i] = 72 * sin(angle) - 24 * sin(3 * angle);
        now[i * n] += 60 * sin(angle);
    }
    memcpy(next, now, HEAT_BYTES);
    for (int step = 0; step < 1000; step++) {
        for (size_t y = 1; y < n - 1; y++)
            for (size_t x = 1; x < n - 1; x++)
                next[y * n + x] =
                    0.25 * (now[(y - 1) * n + x] + now[(y + 1) * n + x] + now[y * n + x - 1] + now[y * n + x + 1]);
        double *other = now;
        now = next;
        next = other;
    }
    memcpy(plate, now, HEAT_BYTES);
}

static inline void make_random(uint8_t *to, size_t length, uint64_t seed)
{
    struct tb_random random;
    tb_random_seed(&random, seed);
    for (size_t i = 0; i < length; i++)
        to[i] = (uint8_t)tb_random_next(&random);
}

/* A squeeze, a link of a given speed in virtual time, an unsqueeze. Everything that arrives is compared. */
struct line {
    struct tb_squeeze *squeeze;
    struct tb_unsqueeze *unsqueeze;
    struct tb_squeeze_group group;
    struct tb_clock clock;
    uint64_t now, tick; /* tick: what a look at the clock costs, which is how a slow processor is pretended, ... */
    bool first;         /* ... except for the first one of a frame */
    bool real;          /* what compressing takes comes on top as it is */
    double link;        /* nanoseconds a byte; 0: it takes everything at once */
    uint64_t busy;      /* until then the link carries the frame before */
    uint32_t sequence;
    uint8_t frame[HEAD + TB_SQUEEZE_PLAIN];
    size_t length, arrived;
};

static inline uint64_t line_now(void *context)
{
    struct line *line = context;
    line->now += line->first ? 0 : line->tick;
    line->first = false;
    return line->now + (line->real ? tb_clock_now_real() : 0);
}

static inline int line_take(void *context, char *bytes, size_t length)
{
    struct line *line = context;
    assert_true(length <= line->length - line->arrived);
    assert_memory_equal(bytes, line->frame + line->arrived, length);
    line->arrived += length;
    memset(bytes - HEAD, 0xee, HEAD + length); /* as it may */
    return TB_OK;
}

static inline void line_open(struct line *line, uint32_t features, int level, double link)
{
    memset(line, 0, sizeof(*line));
    line->clock = (struct tb_clock){line_now, line};
    line->link = link;
    const struct tb_squeeze_config config = {features, level, &line->clock, &line->clock, &line->group};
    assert_int_equal(tb_squeeze_open(&line->squeeze, &config), TB_OK);
    assert_int_equal(tb_unsqueeze_open(&line->unsqueeze, line_take, line), TB_OK);
}

static inline void line_close(struct line *line)
{
    tb_squeeze_close(line->squeeze);
    tb_unsqueeze_close(line->unsqueeze);
    assert_int_equal(line->group.active, 0);
}

/* Packs what is in line->frame; the block arrives in pieces of `piece` bytes. Returns its length. */
static inline size_t line_pass(struct line *line, size_t length, size_t piece)
{
    static char buffer[HEAD + TB_SQUEEZE_HEADER + TB_SQUEEZE_WIRE];
    const void *block;
    size_t wire;
    line->length = length;
    line->arrived = 0;
    line->first = true;
    bool full = line->busy > line->now;
    line->now = full ? line->busy : line->now;
    tb_squeeze_pack(line->squeeze, full ? TB_SQUEEZE_FULL : TB_SQUEEZE_IDLE, line->frame, length, &block, &wire);
    assert_true(wire <= length + TB_SQUEEZE_HEADER + 64);
    line->busy = line->now + (uint64_t)(line->link * (double)wire);
    for (size_t at = 0; at < wire; at += piece) {
        size_t part = wire - at < piece ? wire - at : piece;
        memcpy(buffer + HEAD, (const char *)block + at, part);
        assert_int_equal(tb_unsqueeze_feed(line->unsqueeze, buffer + HEAD, part), TB_OK);
    }
    assert_int_equal(line->arrived, length);
    return wire;
}

/* One frame with a head as gateways see it. */
static inline size_t line_send(struct line *line, const void *payload, size_t length, size_t piece)
{
    const struct tb_hop hop = {.version = TB_WIRE_VERSION,
                               .type = TB_HOP_ENVELOPE,
                               .length = (uint32_t)(sizeof(struct tb_envelope) + length),
                               .sequence = line->sequence};
    const struct tb_envelope envelope = {
        .routing = {.source = {77, 1}, .destination = {77, 9}, .sequence = line->sequence + 1, .acknowledge = 12},
        .message = {.match = 0x100000003,
                    .length = length,
                    .offset = (uint64_t)line->sequence * PAYLOAD,
                    .kind = TB_KIND_DATA,
                    .flags = TB_MESSAGE_ROUTED}};
    line->sequence++;
    tb_wire_put_hop(line->frame, &hop);
    tb_wire_put_envelope(line->frame + sizeof(hop), &envelope);
    memcpy(line->frame + HEAD, payload, length);
    return line_pass(line, HEAD + length, piece);
}

/* All of `bytes` in frames. Returns plain bytes of payload for each byte on the wire. */
static inline double line_send_all(struct line *line, const void *bytes, size_t length)
{
    size_t wire = 0;
    for (size_t at = 0; at < length; at += PAYLOAD)
        wire += line_send(line, (const char *)bytes + at, length - at < PAYLOAD ? length - at : PAYLOAD, SIZE_MAX / 2);
    return (double)length / (double)wire;
}

#define MBIT(rate) (8e3 / (rate)) /* nanoseconds a byte */

#endif

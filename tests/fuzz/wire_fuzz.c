/* Bytes of strangers against everything in wire that decodes. What is accepted must come out again as it went in;
 * nothing may be read behind the end (sanitizers watch).
 *
 * With libFuzzer: clang -g -fsanitize=fuzzer,address,undefined -DTB_FUZZ_LIBRARY -D_GNU_SOURCE -Isrc src/wire/[a-z]*.c
 * (without the tests), src/base likewise, tests/fuzz/wire_fuzz.c -ldl. Without it this is a program of its own: it
 * replays the files that it is given, or, given none, a fixed number of random inputs, always the same ones. */
#include "wire/wire.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* A copy of exactly `length` bytes, so that reading one more is seen. */
static uint8_t *exact_copy(const uint8_t *bytes, size_t length)
{
    uint8_t *copy = malloc(length > 0 ? length : 1);
    TB_ASSERT(copy != NULL);
    if (length > 0)
        memcpy(copy, bytes, length);
    return copy;
}

static void fuzz_hop(const uint8_t *bytes, size_t length)
{
    struct tb_hop hop;
    uint8_t again[sizeof(hop)];
    if (length < sizeof(hop) || tb_wire_get_hop(bytes, &hop) != TB_OK)
        return;
    tb_wire_put_hop(again, &hop);
    TB_ASSERT(memcmp(again, bytes, sizeof(again)) == 0);
    TB_ASSERT(hop.length <= TB_CONTROL_LIMIT);
}

static void fuzz_message(const uint8_t *bytes, size_t length)
{
    struct tb_message message;
    uint8_t again[sizeof(message)];
    if (length < sizeof(message) || tb_wire_get_message(bytes, &message) != TB_OK)
        return;
    tb_wire_put_message(again, &message);
    TB_ASSERT(memcmp(again, bytes, sizeof(again)) == 0);
    size_t payload = length - sizeof(message);
    if (tb_message_check(&message, payload) == TB_OK && message.kind == TB_KIND_DATA)
        TB_ASSERT(message.offset + payload >= message.offset);
}

static void fuzz_envelope(const uint8_t *bytes, size_t length)
{
    struct tb_envelope envelope;
    uint8_t again[sizeof(envelope)];
    if (length < sizeof(envelope) || tb_wire_get_envelope(bytes, &envelope) != TB_OK)
        return;
    tb_wire_put_envelope(again, &envelope);
    TB_ASSERT(memcmp(again, bytes, sizeof(again)) == 0);
}

/* Nobody guesses a proof: whatever arrives is refused. */
static void fuzz_hello(const uint8_t *bytes, size_t length)
{
    static const struct tb_key key = {{1, 2, 3}};
    struct tb_hello hello;
    if (length < sizeof(hello))
        return;
    tb_wire_get_hello(bytes, &hello);
    int error = tb_hello_verify(&hello, &key);
    TB_ASSERT(error == TB_ERR_FORBIDDEN || error == TB_ERR_UNSUPPORTED);
}

/* Nobody guesses the check either. With the right one, what is accepted comes out as it went in. */
static void fuzz_datagram(const uint8_t *bytes, size_t length)
{
    static const struct tb_siphash_key key = {{1, 2, 3}};
    struct tb_datagram d;
    uint8_t again[TB_DATAGRAM_BYTES];
    size_t header = length < sizeof(again) ? length : sizeof(again), payload = length - header;
    int error = tb_datagram_get(bytes, header, bytes + header, payload, &key, &d);
    TB_ASSERT(error == TB_ERR_FORBIDDEN || error == TB_ERR_PROTOCOL);
    if (error != TB_ERR_FORBIDDEN)
        return;
    tb_datagram_put(again, &d, &key, bytes + header, payload);
    TB_ASSERT(memcmp(again + 8, bytes + 8, sizeof(again) - 8) == 0);
    error = tb_datagram_get(again, sizeof(again), bytes + header, payload, &key, &d);
    TB_ASSERT(error == TB_OK || error == TB_ERR_PROTOCOL);
    if (error == TB_OK && d.type == TB_DATAGRAM_DATA)
        TB_ASSERT((uint64_t)d.fragment * d.piece + payload <= d.length);
}

/* The first bytes say which fields are expected, the rest is the frame. */
static void fuzz_reader(const uint8_t *bytes, size_t length)
{
    struct tb_reader r;
    size_t steps = length / 4, n;
    tb_reader_open(&r, bytes + steps, length - steps);
    for (size_t i = 0; i < steps; i++) {
        switch (bytes[i] % 5) {
        case 0:
            tb_get_u8(&r);
            break;
        case 1:
            tb_get_u32(&r);
            break;
        case 2:
            tb_get_u64(&r);
            break;
        case 3:
            if (tb_get_bytes(&r, &n) == NULL)
                TB_ASSERT(n == 0 && r.error != TB_OK);
            break;
        default:
            free(tb_get_text(&r));
            break;
        }
        TB_ASSERT(r.at <= r.length);
    }
    TB_ASSERT(tb_reader_end(&r) != TB_OK || r.at == r.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static void (*const targets[])(const uint8_t *, size_t) = {fuzz_hop,   fuzz_message, fuzz_envelope,
                                                               fuzz_hello, fuzz_reader,  fuzz_datagram};
    if (length < 1)
        return 0;
    uint8_t *copy = exact_copy(bytes + 1, length - 1);
    targets[bytes[0] % (sizeof(targets) / sizeof(targets[0]))](copy, length - 1);
    free(copy);
    return 0;
}

#if !defined(TB_FUZZ_LIBRARY)
#define INPUT_LIMIT 4096
#define ROUNDS      50000

static int replay(const char *path)
{
    uint8_t bytes[INPUT_LIMIT];
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    size_t length = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, length);
    return 0;
}

/* A plausible beginning, so that chance gets beyond the first check. */
static void seed_frame(uint8_t *bytes, size_t length, struct tb_random *random)
{
    struct tb_hop hop = {.version = TB_WIRE_VERSION, .type = TB_HOP_MESSAGE, .length = 64};
    struct tb_envelope envelope = {.message = {.kind = TB_KIND_DATA, .length = length / 2}};
    struct tb_hello hello = {.magic = {'t', 'o', 'm', 'b', 'o', 'l', 'o', '\n'}, .version = TB_WIRE_VERSION};
    const struct tb_siphash_key key = {{0}};
    struct tb_datagram datagram = {
        .type = TB_DATAGRAM_DATA, .piece = 50, .length = 120, .fragment = (uint32_t)tb_random_below(random, 4)};
    switch (bytes[0] % 6) {
    case 0:
        if (length > sizeof(hop))
            tb_wire_put_hop(bytes + 1, &hop);
        break;
    case 1:
        if (length > sizeof(envelope.message))
            tb_wire_put_message(bytes + 1, &envelope.message);
        break;
    case 2:
        envelope.message.flags = TB_MESSAGE_ROUTED;
        if (length > sizeof(envelope))
            tb_wire_put_envelope(bytes + 1, &envelope);
        break;
    case 3:
        if (length > sizeof(hello))
            tb_wire_put_hello(bytes + 1, &hello);
        break;
    case 4:
        for (size_t i = 1 + length / 4; i < length; i++) /* small numbers, so that lengths fit at times */
            bytes[i] = (uint8_t)(tb_random_below(random, 4) == 0 ? bytes[i] % 8 : 0);
        break;
    default:
        if (length > TB_DATAGRAM_BYTES)
            tb_datagram_put(bytes + 1, &datagram, &key, NULL, 0);
        break;
    }
    if (length > 1)
        bytes[1 + tb_random_below(random, length - 1)] ^= (uint8_t)(1u << tb_random_below(random, 8));
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= replay(argv[i]);
    if (argc > 1)
        return failed;
    struct tb_random random;
    tb_random_seed(&random, 1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint8_t bytes[200];
        size_t length = tb_random_below(&random, sizeof(bytes) + 1);
        for (size_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)tb_random_next(&random);
        if (length > 0)
            seed_frame(bytes, length, &random);
        LLVMFuzzerTestOneInput(bytes, length);
    }
    return 0;
}
#endif

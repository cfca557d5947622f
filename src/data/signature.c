/* Signatures: the sequence of basic elements of a type. Its hash is the value of a polynomial over the field of 2^61 -
 * 1 with the elements as coefficients, so that joining and repeating sequences is arithmetic on their hashes. */
#include "data/draft.h"

#define MODULUS ((1ull << 61) - 1)
#define POINT   0x123456789abcdefull /* where the polynomial is evaluated */

static uint64_t multiply(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    uint64_t sum = (uint64_t)(product & MODULUS) + (uint64_t)(product >> 61);
    return sum >= MODULUS ? sum - MODULUS : sum;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    uint64_t sum = a + b;
    return sum >= MODULUS ? sum - MODULUS : sum;
}

static uint64_t power(uint64_t exponent)
{
    uint64_t result = 1;
    for (uint64_t base = POINT; exponent > 0; exponent >>= 1, base = multiply(base, base))
        if (exponent & 1)
            result = multiply(result, base);
    return result;
}

uint64_t tb_signature_join(uint64_t first, uint64_t second, uint64_t second_elements)
{
    return add(multiply(first, power(second_elements)), second);
}

uint64_t tb_signature_repeat(uint64_t hash, uint64_t elements, uint64_t count)
{
    uint64_t result = 0;
    uint64_t shift = power(elements); /* of what `hash` stands for, which doubles each time */
    for (; count > 0; count >>= 1) {
        if (count & 1)
            result = add(multiply(result, shift), hash);
        hash = add(multiply(hash, shift), hash);
        shift = multiply(shift, shift);
    }
    return result;
}

static uint64_t hash_basic(const struct tb_type *type)
{
    uint64_t x = (uint64_t)type->basic << 32 | (uint64_t)type->size;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return 1 + (x ^ (x >> 31)) % (MODULUS - 1);
}

uint64_t tb_signature_hash(const struct tb_type *type)
{
    if (type->basic == TB_BASIC_DERIVED)
        return type->signature;
    if (type->basic == TB_BASIC_PAIR)
        return tb_signature_join(hash_basic(type->pair[0]), hash_basic(type->pair[1]), 1);
    return hash_basic(type);
}

struct tb_signature tb_signature_of(const struct tb_type *type, uint64_t count)
{
    return (struct tb_signature){.elements = count * type->elements,
                                 .bytes = count * type->size,
                                 .hash = tb_signature_repeat(tb_signature_hash(type), type->elements, count)};
}

bool tb_signature_equal(struct tb_signature a, struct tb_signature b)
{
    return a.elements == b.elements && a.bytes == b.bytes && a.hash == b.hash;
}

/* Going down to the member of a struct that holds a byte. */
static int64_t member_length(const struct tb_recipe *envelope, uint64_t i)
{
    return envelope->large ? envelope->large_counts[i + 1] : envelope->integers[i + 1];
}

/* Takes from *at the members of a struct that lie wholly before that byte, counts their elements, and returns the
 * member that holds it. */
static uint64_t skip_members(const struct tb_recipe *envelope, uint64_t *at, uint64_t *elements)
{
    for (uint64_t i = 0;; i++) {
        TB_ASSERT(i < envelope->type_count);
        uint64_t length = (uint64_t)member_length(envelope, i);
        uint64_t bytes = length * envelope->types[i]->size;
        if (*at < bytes)
            return i;
        *at -= bytes;
        *elements += length * envelope->types[i]->elements;
    }
}

int64_t tb_type_elements_in(const struct tb_type *type, uint64_t bytes)
{
    uint64_t elements = 0;
    while (bytes > 0) {
        if (type->size == 0)
            return -1;
        elements += bytes / type->size * type->elements;
        bytes %= type->size;
        if (bytes == 0)
            break;
        if (type->basic == TB_BASIC_PAIR && bytes == type->pair[0]->size) {
            elements++;
            break;
        }
        if (type->basic != TB_BASIC_DERIVED)
            return -1;
        /* All constructors but the struct repeat one type. */
        const struct tb_recipe *envelope = type->envelope;
        type =
            envelope->types[envelope->combiner == TB_COMBINER_STRUCT ? skip_members(envelope, &bytes, &elements) : 0];
    }
    return (int64_t)elements;
}

int64_t tb_type_bytes_of(const struct tb_type *type, uint64_t elements)
{
    uint64_t bytes = 0, part;
    while (elements > 0) {
        if (type->elements == 0)
            return -1;
        uint64_t whole = elements / type->elements;
        if (__builtin_mul_overflow(whole, type->size, &part) || __builtin_add_overflow(bytes, part, &bytes) ||
            bytes > INT64_MAX)
            return -1;
        elements -= whole * type->elements;
        if (elements == 0)
            break;
        if (type->basic == TB_BASIC_PAIR)
            return (int64_t)(bytes + type->pair[0]->size);
        const struct tb_recipe *envelope = type->envelope;
        uint64_t member = 0;
        for (; envelope->combiner == TB_COMBINER_STRUCT; member++) {
            part = (uint64_t)member_length(envelope, member) * envelope->types[member]->elements;
            if (elements < part)
                break;
            elements -= part;
            bytes += (uint64_t)member_length(envelope, member) * envelope->types[member]->size;
        }
        type = envelope->types[member];
    }
    return (int64_t)bytes;
}

const struct tb_type *tb_type_basic_at(const struct tb_type *type, uint64_t at, uint64_t *bytes)
{
    uint64_t room = UINT64_MAX; /* from `at` on, of what repeats `type` */
    uint64_t ignored = 0;
    TB_ASSERT(type->size > 0);
    while (type->basic == TB_BASIC_DERIVED) {
        const struct tb_recipe *envelope = type->envelope;
        if (envelope->combiner != TB_COMBINER_STRUCT) {
            type = envelope->types[0];
            continue;
        }
        at %= type->size;
        uint64_t member = skip_members(envelope, &at, &ignored);
        type = envelope->types[member];
        uint64_t rest = (uint64_t)member_length(envelope, member) * type->size - at;
        room = rest < room ? rest : room;
    }
    *bytes = room;
    return type;
}

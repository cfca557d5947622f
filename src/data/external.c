/* The standard's canonical form, external32: big-endian, IEEE, elements side by side. Most types have the size that
 * they have here; long has 32 bits, wchar_t 16, long double is the 128-bit format. */
#include "data/data.h"

#include <float.h>
#include <wchar.h>

#define STAGE_BYTES   4096 /* native bytes that are converted at a time */
#define STRUCTS_LIMIT 1000 /* structs within one another whose size is asked for */

#if LDBL_MANT_DIG == 113
typedef long double quad;
#else
typedef __float128 quad;
#endif

/* How a number is converted; a complex one is two numbers. */
enum form { FORM_SAME, FORM_LONG, FORM_UNSIGNED_LONG, FORM_WCHAR, FORM_LONG_DOUBLE };

struct rule {
    enum form form;
    uint32_t native, external; /* bytes of a number */
    uint32_t numbers;          /* in one element */
};

static struct rule rule_of(const struct tb_type *type)
{
    uint32_t numbers = type->basic == TB_BASIC_COMPLEX ? 2 : 1, bytes = (uint32_t)type->size / numbers;
    switch (type->code) { /* the low byte of the ABI's handle */
    case 0x0a:
        return (struct rule){FORM_LONG, sizeof(long), 4, 1};
    case 0x0e:
        return (struct rule){FORM_UNSIGNED_LONG, sizeof(long), 4, 1};
    case 0x3c:
        return (struct rule){FORM_WCHAR, sizeof(wchar_t), 2, 1};
    case 0x20:
    case 0x24:
    case 0x25:
        return (struct rule){FORM_LONG_DOUBLE, sizeof(long double), sizeof(quad), numbers};
    default:
        return (struct rule){FORM_SAME, bytes, bytes, numbers};
    }
}

/* From the native byte order to the canonical one, or back. */
static void swap(char *to, const char *from, uint32_t bytes, uint64_t count)
{
    if (bytes == 1 || __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) {
        memcpy(to, from, bytes * count);
        return;
    }
    for (uint64_t i = 0; i < count; i++, to += bytes, from += bytes)
        for (uint32_t k = 0; k < bytes; k++)
            to[k] = from[bytes - 1 - k];
}

static int too_large(const char *what)
{
    return tb_error(TB_ERR_ARGUMENT, "%s does not fit into external32", what);
}

/* One number of a form that is not the same. */
static int encode(enum form form, char *to, const char *from)
{
    long value;
    wchar_t character;
    long double wide;
    uint32_t word;
    uint16_t half;
    quad number;
    switch (form) {
    case FORM_LONG:
    case FORM_UNSIGNED_LONG:
        memcpy(&value, from, sizeof value);
        if (form == FORM_LONG ? value != (int32_t)value : (unsigned long)value > UINT32_MAX)
            return too_large(form == FORM_LONG ? "a value of MPI_LONG" : "a value of MPI_UNSIGNED_LONG");
        word = (uint32_t)value;
        swap(to, (const char *)&word, sizeof word, 1);
        break;
    case FORM_WCHAR:
        memcpy(&character, from, sizeof character);
        if ((uint64_t)character > UINT16_MAX)
            return too_large("a character of MPI_WCHAR");
        half = (uint16_t)character;
        swap(to, (const char *)&half, sizeof half, 1);
        break;
    default:
        memcpy(&wide, from, sizeof wide);
        number = (quad)wide;
        swap(to, (const char *)&number, sizeof number, 1);
        break;
    }
    return TB_OK;
}

static void decode(enum form form, char *to, const char *from)
{
    long value;
    wchar_t character;
    long double wide;
    uint32_t word;
    uint16_t half;
    quad number;
    switch (form) {
    case FORM_LONG:
    case FORM_UNSIGNED_LONG:
        swap((char *)&word, from, sizeof word, 1);
        value = form == FORM_LONG ? (long)(int32_t)word : (long)(unsigned long)word;
        memcpy(to, &value, sizeof value);
        break;
    case FORM_WCHAR:
        swap((char *)&half, from, sizeof half, 1);
        character = (wchar_t)half;
        memcpy(to, &character, sizeof character);
        break;
    default:
        swap((char *)&number, from, sizeof number, 1);
        memset(&wide, 0, sizeof wide); /* it may have bytes that no value uses */
        wide = (long double)number;
        memset(to, 0, sizeof wide); /* there may be bytes between one number and the next */
        memcpy(to, &wide, LDBL_MANT_DIG == 64 ? 10 : sizeof wide);
        break;
    }
}

/* `count` elements of a predefined type that is no pair. */
static int convert(const struct tb_type *type, char *native, char *external, uint64_t count, bool pack)
{
    struct rule rule = rule_of(type);
    uint64_t numbers = count * rule.numbers;
    if (rule.form == FORM_SAME) {
        swap(pack ? external : native, pack ? native : external, rule.native, numbers);
        return TB_OK;
    }
    for (uint64_t i = 0; i < numbers; i++, native += rule.native, external += rule.external) {
        if (!pack) {
            decode(rule.form, native, external);
            continue;
        }
        int code = encode(rule.form, external, native);
        if (code != TB_OK)
            return code;
    }
    return TB_OK;
}

static uint64_t external_bytes(const struct tb_type *type)
{
    if (type->basic == TB_BASIC_PAIR)
        return external_bytes(type->pair[0]) + external_bytes(type->pair[1]);
    struct rule rule = rule_of(type);
    return (uint64_t)rule.numbers * rule.external;
}

static int convert_items(const struct tb_type *type, char *native, char *external, uint64_t count, bool pack)
{
    if (type->basic != TB_BASIC_PAIR)
        return convert(type, native, external, count, pack);
    int code = TB_OK;
    for (uint64_t i = 0; i < count && code == TB_OK; i++)
        for (int k = 0; k < 2 && code == TB_OK; k++) {
            code = convert(type->pair[k], native, external, 1, pack);
            native += type->pair[k]->size;
            external += external_bytes(type->pair[k]);
        }
    return code;
}

/* The data is taken in the order of the type, some elements of one basic type at a time. */
static int convert_buffer(const struct tb_buffer *b, char *external, bool pack)
{
    char stage[STAGE_BYTES];
    struct tb_spans spans;
    uint64_t total = tb_buffer_bytes(b), run = 0;
    tb_buffer_spans(b, 0, total, &spans);
    for (uint64_t at = 0; at < total; at += run) {
        const struct tb_type *basic = tb_type_basic_at(b->type, at, &run);
        uint64_t most = STAGE_BYTES / basic->size * basic->size;
        run = run < total - at ? run : total - at;
        run = run < most ? run : most;
        uint64_t count = run / basic->size;
        if (pack)
            tb_spans_gather(&spans, stage, run);
        int code = convert_items(basic, stage, external, count, pack);
        if (code != TB_OK)
            return code;
        if (!pack)
            tb_spans_scatter(&spans, stage, run);
        external += count * external_bytes(basic);
    }
    return TB_OK;
}

int tb_external_pack(const struct tb_buffer *b, void *to)
{
    return convert_buffer(b, to, true);
}

void tb_external_unpack(const struct tb_buffer *b, const void *from)
{
    convert_buffer(b, (char *)from, false);
}

/* Adds the canonical bytes of `count` items. Only structs have members of different kinds, so only they branch. */
static int add_bytes(const struct tb_type *type, uint64_t count, int depth, uint64_t *bytes)
{
    uint64_t part;
    while (type->basic == TB_BASIC_DERIVED && type->size > 0) {
        const struct tb_recipe *recipe = type->envelope;
        if (recipe->combiner == TB_COMBINER_STRUCT)
            break;
        if (__builtin_mul_overflow(count, type->size / recipe->types[0]->size, &count))
            return tb_error(TB_ERR_LIMIT, "the size in external32 does not fit into 64 bits");
        type = recipe->types[0];
    }
    if (type->size == 0 || count == 0)
        return TB_OK;
    if (type->basic != TB_BASIC_DERIVED) {
        if (__builtin_mul_overflow(count, external_bytes(type), &part) || __builtin_add_overflow(*bytes, part, bytes) ||
            *bytes > INT64_MAX)
            return tb_error(TB_ERR_LIMIT, "the size in external32 does not fit into 64 bits");
        return TB_OK;
    }
    if (depth == STRUCTS_LIMIT)
        return tb_error(TB_ERR_LIMIT, "more than %d structs within one another", STRUCTS_LIMIT);
    const struct tb_recipe *recipe = type->envelope;
    int code = TB_OK;
    for (uint64_t i = 0; i < recipe->type_count && code == TB_OK; i++) {
        uint64_t length = recipe->large ? (uint64_t)recipe->large_counts[i + 1] : (uint64_t)recipe->integers[i + 1];
        if (__builtin_mul_overflow(count, length, &part))
            return tb_error(TB_ERR_LIMIT, "the size in external32 does not fit into 64 bits");
        code = add_bytes(recipe->types[i], part, depth + 1, bytes);
    }
    return code;
}

int tb_external_size(const struct tb_type *type, uint64_t count, uint64_t *bytes)
{
    *bytes = 0;
    return add_bytes(type, count, 0, bytes);
}

/* Basic elements of a type: how many some bytes of it are, how many bytes some of them are, and which one lies where.
 */
#include "data/draft.h"

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

const struct tb_type *tb_type_only_basic(const struct tb_type *type)
{
    while (type->basic == TB_BASIC_DERIVED && type->envelope->combiner != TB_COMBINER_STRUCT)
        type = type->envelope->types[0]; /* all others repeat one type */
    if (type->basic != TB_BASIC_DERIVED)
        return type;
    const struct tb_recipe *envelope = type->envelope;
    const struct tb_type *only = NULL, *before = NULL;
    for (uint64_t i = 0; i < envelope->type_count; i++) {
        const struct tb_type *member = envelope->types[i];
        if (member == before || member->size == 0 || member_length(envelope, i) == 0)
            continue;
        const struct tb_type *found = tb_type_only_basic(member);
        if (found == NULL || (only != NULL && found->code != only->code))
            return NULL;
        only = found;
        before = member;
    }
    return only;
}

/* A hash table with open addressing from whatever has a hash to numbers of things, which the owner keeps and compares.
 * Never more than half full; those with the same hash are found in the order in which they were added. Zeroed memory is
 * an empty one. Any thread, one at a time. */
#ifndef TB_BASE_HASH_TABLE_H
#define TB_BASE_HASH_TABLE_H

#include <stdint.h>

#define TB_HASH_NONE  UINT32_MAX
#define TB_HASH_BASIS UINT64_C(0xcbf29ce484222325)
#define TB_HASH_PRIME UINT64_C(0x100000001b3)

struct tb_hash_table {
    struct tb_hash_entry {
        uint32_t hash, value;
    } * entries;
    uint32_t room, used;
};

/* A hash begins as TB_HASH_BASIS, takes texts and numbers in, and is folded at the end. */
static inline uint64_t tb_hash_text(uint64_t hash, const char *text)
{
    for (; *text != 0; text++)
        hash = (hash ^ (unsigned char)*text) * TB_HASH_PRIME;
    return hash;
}

static inline uint64_t tb_hash_number(uint64_t hash, uint32_t number)
{
    return (hash ^ (hash >> 29) ^ number) * TB_HASH_PRIME;
}

static inline uint32_t tb_hash_fold(uint64_t hash)
{
    return (uint32_t)(hash ^ (hash >> 32));
}

int tb_hash_table_add(struct tb_hash_table *table, uint32_t hash, uint32_t value); /* a value below TB_HASH_NONE */
/* The next value with this hash; *at begins as the hash. TB_HASH_NONE: there are no more. */
uint32_t tb_hash_table_next(const struct tb_hash_table *table, uint32_t hash, uint32_t *at);
void tb_hash_table_close(struct tb_hash_table *table);

#endif

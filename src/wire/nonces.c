#include "wire/wire.h"

#include <stdlib.h>

#define ROOM_FIRST 1024u /* slots; half of them are used at most */
#define HALF       (TB_NONCES_MOST / 2)

static bool has(const struct tb_nonces_half *half, uint64_t value)
{
    for (uint32_t i = (uint32_t)value; half->room > 0; i++) {
        uint64_t slot = half->slots[i & (half->room - 1)];
        if (slot == value || slot == 0)
            return slot == value;
    }
    return false;
}

static void put(struct tb_nonces_half *half, uint64_t value)
{
    uint32_t i = (uint32_t)value;
    while (half->slots[i & (half->room - 1)] != 0)
        i++;
    half->slots[i & (half->room - 1)] = value;
    half->count++;
}

static int grow(struct tb_nonces_half *half)
{
    struct tb_nonces_half bigger = {.room = half->room > 0 ? half->room * 2 : ROOM_FIRST};
    bigger.slots = calloc(bigger.room, sizeof *bigger.slots);
    if (bigger.slots == NULL)
        return TB_ERR_MEMORY;
    for (uint32_t i = 0; i < half->room; i++)
        if (half->slots[i] != 0)
            put(&bigger, half->slots[i]);
    free(half->slots);
    *half = bigger;
    return TB_OK;
}

int tb_nonces_add(struct tb_nonces *nonces, const uint8_t nonce[static TB_NONCE_BYTES])
{
    uint64_t value;
    memcpy(&value, nonce, sizeof value);
    value |= value == 0;
    if (has(&nonces->young, value) || has(&nonces->old, value))
        return TB_ERR_FORBIDDEN;
    if (nonces->young.count == HALF) {
        free(nonces->old.slots);
        nonces->old = nonces->young;
        nonces->young = (struct tb_nonces_half){0};
    }
    if (nonces->young.count == nonces->young.room / 2 && grow(&nonces->young) != TB_OK)
        return TB_ERR_MEMORY;
    put(&nonces->young, value);
    return TB_OK;
}

void tb_nonces_close(struct tb_nonces *nonces)
{
    free(nonces->young.slots);
    free(nonces->old.slots);
    *nonces = (struct tb_nonces){0};
}

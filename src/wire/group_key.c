#include "wire/key.h"
#include "wire/order.h"

#include <string.h>

#define LABEL_BYTES 16

int tb_group_key_derive(struct tb_siphash_key *key, const struct tb_key *job, uint32_t group,
                        const uint8_t address[static 16], uint16_t port)
{
    uint8_t text[LABEL_BYTES + 4 + 16 + 2] = "multicast", proof[TB_PROOF_BYTES];
    tb_order_put32(text + LABEL_BYTES, group);
    memcpy(text + LABEL_BYTES + 4, address, 16);
    tb_order_put16(text + LABEL_BYTES + 20, port);
    int error = tb_key_prove(job, text, sizeof text, proof);
    if (error == TB_OK)
        memcpy(key->bytes, proof, sizeof key->bytes);
    explicit_bzero(proof, sizeof proof);
    return error;
}

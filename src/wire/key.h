/* The keyed hash: HMAC-SHA256 from OpenSSL's libcrypto, loaded on first use, because a process that proves nothing must
 * not pay for it. Any thread may call. Private to wire. */
#ifndef TB_WIRE_KEY_H
#define TB_WIRE_KEY_H

#include "wire/wire.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

struct tb_crypto {
    __typeof__(&HMAC) hmac;
    __typeof__(&EVP_sha256) sha256;
    char trouble[256]; /* why it could not be loaded; "" if it is there */
};

/* Loads `library` for good. On failure `trouble` says why and how to mend it. */
void tb_crypto_open(struct tb_crypto *crypto, const char *library);

/* proof = HMAC-SHA256(key, text). TB_ERR_UNSUPPORTED without libcrypto. */
int tb_key_prove(const struct tb_key *key, const void *text, size_t length, uint8_t proof[TB_PROOF_BYTES]);

/* Compares in a time that does not depend on where they differ. */
bool tb_key_equal(const uint8_t *a, const uint8_t *b, size_t length);

#endif

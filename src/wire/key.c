#include "wire/key.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct tb_crypto crypto; /* written once, by load */

void tb_crypto_open(struct tb_crypto *c, const char *library)
{
    memset(c, 0, sizeof(*c));
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL) {
        c->hmac = (__typeof__(c->hmac))dlsym(handle, "HMAC");
        c->sha256 = (__typeof__(c->sha256))dlsym(handle, "EVP_sha256");
    }
    if (c->hmac != NULL && c->sha256 != NULL)
        return;
    const char *why = dlerror();
    snprintf(c->trouble, sizeof(c->trouble),
             "connections between hosts need OpenSSL 3, but %s cannot be used (%s): install it (Debian and Ubuntu: "
             "libssl3 or libssl3t64)",
             library, why != NULL ? why : "no reason given");
    if (handle != NULL)
        dlclose(handle);
}

static void load(void)
{
    tb_crypto_open(&crypto, "libcrypto.so.3");
}

int tb_key_make(struct tb_key *key)
{
    return tb_random_secret(key->bytes, sizeof(key->bytes));
}

int tb_key_prove(const struct tb_key *key, const void *text, size_t length, uint8_t proof[TB_PROOF_BYTES])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (crypto.trouble[0] != '\0')
        return tb_error(TB_ERR_UNSUPPORTED, "%s", crypto.trouble);
    unsigned written = 0;
    if (crypto.hmac(crypto.sha256(), key->bytes, sizeof(key->bytes), text, length, proof, &written) == NULL ||
        written != TB_PROOF_BYTES)
        return tb_error(TB_ERR_UNSUPPORTED, "libcrypto refuses HMAC-SHA256: is SHA-256 switched off on this machine?");
    return TB_OK;
}

int tb_key_derive(struct tb_key *key, const char *secret)
{
    static const struct tb_key label = {"tombolo: a secret that is typed"};
    char text[256];
    size_t length = 0;
    for (; *secret != 0 && length < sizeof(text); secret++)
        if (isalnum((unsigned char)*secret))
            text[length++] = (char)tolower((unsigned char)*secret);
    int error = tb_key_prove(&label, text, length, key->bytes);
    explicit_bzero(text, sizeof(text));
    return error;
}

bool tb_key_equal(const uint8_t *a, const uint8_t *b, size_t length)
{
    volatile uint8_t differ = 0; /* volatile: the compiler may not stop at the first difference */
    for (size_t i = 0; i < length; i++)
        differ = (uint8_t)(differ | (a[i] ^ b[i]));
    return differ == 0;
}

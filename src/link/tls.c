#include "link/tls.h"
#include "link/tls_library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define READ_AHEAD (64u << 10)
#define RECORD     (1u << 14) /* bytes of one record at most */
/* AES-GCM is good for some 2^24 full records under one key; new keys come long before. */
#define RECORDS_A_KEY (1u << 16)

struct tb_tls {
    SSL *ssl;
    tb_tls_put *put;
    void *context;
    int error; /* of put */
    bool ready, broken;
    bool closed;      /* the other side has said that nothing more comes */
    uint32_t records; /* written under the present key */
    struct tb_key secret;
    const uint8_t *fed;
    size_t fed_length;
};

static struct tb_tls_library lib; /* these three are written once, by load */
static SSL_CTX *context;
static BIO_METHOD *method;

static const unsigned char identity[] = "tombolo";

/* ---- the owner as a BIO ------------------------------------------------------------------------------------------ */

static int owner_write(BIO *bio, const char *bytes, size_t length, size_t *written)
{
    struct tb_tls *tls = lib.BIO_get_data(bio);
    tls->error = tls->put(tls->context, bytes, length);
    *written = length;
    return tls->error == TB_OK;
}

static int owner_read(BIO *bio, char *bytes, size_t room, size_t *got)
{
    struct tb_tls *tls = lib.BIO_get_data(bio);
    lib.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    *got = room < tls->fed_length ? room : tls->fed_length;
    if (*got == 0) {
        lib.BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
        return 0;
    }
    memcpy(bytes, tls->fed, *got);
    tls->fed += *got;
    tls->fed_length -= *got;
    return 1;
}

/* Of the many things that OpenSSL asks, only flushing must be answered; it always is done. */
static long owner_control(BIO *bio, int command, long number, void *pointer)
{
    return command == BIO_CTRL_FLUSH;
}

/* ---- the pre-shared key ------------------------------------------------------------------------------------------ */

/* Both ciphers of ours have the hash of this one, so the key fits whichever is agreed. */
static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};

static SSL_SESSION *session_make(SSL *ssl)
{
    struct tb_tls *tls = lib.SSL_get_ex_data(ssl, 0);
    SSL_SESSION *session = lib.SSL_SESSION_new();
    if (session == NULL)
        return NULL;
    const SSL_CIPHER *cipher = lib.SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
    if (cipher != NULL && lib.SSL_SESSION_set_cipher(session, cipher) == 1 &&
        lib.SSL_SESSION_set1_master_key(session, tls->secret.bytes, sizeof(tls->secret.bytes)) == 1 &&
        lib.SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
        return session;
    lib.SSL_SESSION_free(session);
    return NULL;
}

static int connector_key(SSL *ssl, const EVP_MD *hash, const unsigned char **id, size_t *length, SSL_SESSION **session)
{
    *id = identity;
    *length = sizeof(identity) - 1;
    *session = session_make(ssl);
    return *session != NULL;
}

static int acceptor_key(SSL *ssl, const unsigned char *id, size_t length, SSL_SESSION **session)
{
    *session = NULL; /* with 1: no such key, and without a certificate that is the end of it */
    if (length != sizeof(identity) - 1 || memcmp(id, identity, length) != 0)
        return 1;
    *session = session_make(ssl);
    return *session != NULL;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

#if defined(__aarch64__)
#include <sys/auxv.h>
#define HAS_AES ((getauxval(AT_HWCAP) & HWCAP_AES) != 0)
#elif defined(__x86_64__)
#define HAS_AES __builtin_cpu_supports("aes")
#else
#define HAS_AES false
#endif

/* AES-GCM where the machine has instructions for it; if one of the two has none, ChaCha20: the connector's first wish
 * counts, unless the acceptor is the one who needs the other. */
static bool context_prefer(SSL_CTX *c)
{
    if (HAS_AES)
        return lib.SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") == 1;
    lib.SSL_CTX_set_options(c, SSL_OP_CIPHER_SERVER_PREFERENCE);
    return lib.SSL_CTX_set_ciphersuites(c, "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256") == 1;
}

static SSL_CTX *context_make(void)
{
    SSL_CTX *c = lib.SSL_CTX_new(lib.TLS_method());
    if (c == NULL)
        return NULL;
    lib.SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    lib.SSL_CTX_set_default_read_buffer_len(c, READ_AHEAD);
    lib.SSL_CTX_set_psk_use_session_callback(c, connector_key);
    lib.SSL_CTX_set_psk_find_session_callback(c, acceptor_key);
    lib.SSL_CTX_ctrl(c, SSL_CTRL_SET_READ_AHEAD, 1, NULL);
    lib.SSL_CTX_ctrl(c, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    if (context_prefer(c) && lib.SSL_CTX_set_num_tickets(c, 0) == 1 &&
        lib.SSL_CTX_ctrl(c, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, NULL) == 1)
        return c;
    lib.SSL_CTX_free(c);
    return NULL;
}

static void load(void)
{
    tb_tls_library_open(&lib, "libssl.so.3");
    if (lib.trouble[0] != '\0')
        return;
    method = lib.BIO_meth_new(BIO_TYPE_SOURCE_SINK, "tombolo");
    if (method != NULL && lib.BIO_meth_set_read_ex(method, owner_read) == 1 &&
        lib.BIO_meth_set_write_ex(method, owner_write) == 1 && lib.BIO_meth_set_ctrl(method, owner_control) == 1)
        context = context_make();
}

int tb_tls_is_usable(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (lib.trouble[0] != '\0')
        return tb_error(TB_ERR_UNSUPPORTED, "%s", lib.trouble);
    if (context == NULL)
        return tb_error(TB_ERR_UNSUPPORTED, "libssl refuses TLS 1.3 with AES-GCM or ChaCha20: is one of them switched "
                                            "off on this machine? (gateway_tls=no does without)");
    return TB_OK;
}

int tb_tls_open(struct tb_tls **tls, const struct tb_key *secret, bool connector, tb_tls_put *put, void *put_context)
{
    *tls = NULL;
    int rc = tb_tls_is_usable();
    if (rc != TB_OK)
        return rc;
    struct tb_tls *t = calloc(1, sizeof(*t));
    SSL *ssl = t != NULL ? lib.SSL_new(context) : NULL;
    BIO *bio = ssl != NULL ? lib.BIO_new(method) : NULL;
    if (bio == NULL || lib.SSL_set_ex_data(ssl, 0, t) != 1) {
        if (ssl != NULL)
            lib.SSL_free(ssl);
        free(t);
        return tb_error(TB_ERR_MEMORY, "no memory for an encrypted stream");
    }
    t->ssl = ssl;
    t->put = put;
    t->context = put_context;
    t->secret = *secret;
    lib.BIO_set_data(bio, t);
    lib.BIO_set_init(bio, 1);
    lib.SSL_set_bio(ssl, bio, bio);
    if (connector) {
        lib.SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL); /* no certificate is trusted: only the key counts */
        lib.SSL_set_connect_state(ssl);
    } else {
        lib.SSL_set_accept_state(ssl);
    }
    *tls = t;
    return TB_OK;
}

void tb_tls_close(struct tb_tls *tls)
{
    if (tls == NULL)
        return;
    lib.SSL_free(tls->ssl);
    explicit_bzero(&tls->secret, sizeof(tls->secret));
    free(tls);
}

/* ---- going on ---------------------------------------------------------------------------------------------------- */

/* OpenSSL tells apart why a call fails only if nothing is left of failures before it. Looking is cheaper than emptying,
 * and nearly always enough. */
static void forget_errors(void)
{
    if (lib.ERR_peek_error() != 0)
        lib.ERR_clear_error();
}

/* What a call that did not succeed means. */
static int verdict(struct tb_tls *tls, int result)
{
    int kind = tls->error == TB_OK ? lib.SSL_get_error(tls->ssl, result) : SSL_ERROR_SYSCALL;
    if (kind == SSL_ERROR_WANT_READ)
        return TB_AGAIN;
    if (kind == SSL_ERROR_ZERO_RETURN) {
        tls->closed = true;
        return TB_ERR_CLOSED;
    }
    tls->broken = true;
    unsigned long code = lib.ERR_get_error();
    const char *reason = code != 0 ? lib.ERR_reason_error_string(code) : NULL;
    lib.ERR_clear_error();
    if (tls->error != TB_OK)
        return tls->error;
    if (reason == NULL)
        reason = "no reason given";
    if (tls->ready)
        return tb_error(TB_ERR_PROTOCOL, "an encrypted stream is broken: its bytes were changed on the way (%s)",
                        reason);
    int number = ERR_GET_REASON(code);
    if (number == SSL_R_BINDER_DOES_NOT_VERIFY || number == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER ||
        number == SSL_R_TLSV1_ALERT_DECRYPT_ERROR || number == SSL_R_DIGEST_CHECK_FAILED ||
        number == SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM || number == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return tb_error(TB_ERR_FORBIDDEN, "the two ends of a stream hold different keys (TLS says: %s)", reason);
    return tb_error(TB_ERR_PROTOCOL, "no encrypted stream could be made with what the other end says (TLS says: %s)",
                    reason);
}

/* What the other side says, or what is made of it on the way, may come to any end at any moment; so whoever goes on
 * with a stream that is broken gets an answer. */
static int refuse(const struct tb_tls *tls)
{
    return tls->broken ? tb_error(TB_ERR_PROTOCOL, "an encrypted stream is broken, and is used no more")
                       : tb_error(TB_ERR_PROTOCOL, "an encrypted stream is used before its handshake is over");
}

void tb_tls_feed(struct tb_tls *tls, const void *bytes, size_t length)
{
    if (tls->fed_length > 0)
        tls->broken = true; /* some would be lost */
    tls->fed = bytes;
    tls->fed_length = tls->broken ? 0 : length;
}

int tb_tls_handshake(struct tb_tls *tls)
{
    if (tls->broken)
        return refuse(tls);
    if (tls->ready)
        return TB_OK;
    forget_errors();
    int result = lib.SSL_do_handshake(tls->ssl);
    if (result != 1)
        return verdict(tls, result);
    explicit_bzero(&tls->secret, sizeof(tls->secret));
    if (lib.SSL_session_reused(tls->ssl) != 1) {
        tls->broken = true;
        return tb_error(TB_ERR_FORBIDDEN, "the other end of a stream did not use the job's key");
    }
    tls->ready = true;
    return TB_OK;
}

static int record_write(struct tb_tls *tls, const void *bytes, size_t length)
{
    size_t written;
    if (++tls->records >= RECORDS_A_KEY) {
        tls->records = 0;
        if (lib.SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1)
            return verdict(tls, -1);
    }
    int result = lib.SSL_write_ex(tls->ssl, bytes, length, &written);
    if (result != 1)
        return verdict(tls, result);
    TB_ASSERT(written == length); /* put takes everything */
    return TB_OK;
}

int tb_tls_write(struct tb_tls *tls, const void *bytes, size_t length)
{
    if (!tls->ready || tls->broken)
        return refuse(tls);
    forget_errors();
    int rc = TB_OK;
    for (size_t at = 0; rc == TB_OK && at < length; at += RECORD)
        rc = record_write(tls, (const char *)bytes + at, length - at < RECORD ? length - at : RECORD);
    return rc;
}

int tb_tls_end(struct tb_tls *tls)
{
    if (!tls->ready || tls->broken)
        return refuse(tls);
    forget_errors();
    int result = lib.SSL_shutdown(tls->ssl);
    return result >= 0 ? TB_OK : verdict(tls, result);
}

int tb_tls_read(struct tb_tls *tls, void *bytes, size_t room, size_t *got)
{
    TB_ASSERT(room > 0);
    *got = 0;
    if (!tls->ready || tls->broken)
        return refuse(tls);
    if (tls->fed_length == 0 && !tls->closed && lib.SSL_has_pending(tls->ssl) == 0)
        return TB_AGAIN; /* what the call would find out, too, but not as fast */
    forget_errors();
    int result = lib.SSL_read_ex(tls->ssl, bytes, room, got);
    return result == 1 ? TB_OK : verdict(tls, result);
}

const char *tb_tls_cipher(const struct tb_tls *tls)
{
    return lib.SSL_CIPHER_get_name(lib.SSL_get_current_cipher(tls->ssl));
}

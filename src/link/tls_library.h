/* The calls of OpenSSL's libssl that TLS takes, loaded on first use: the library of MPI must not depend on it, and a
 * job on one host must not pay for it. Private to link. */
#ifndef TB_LINK_TLS_LIBRARY_H
#define TB_LINK_TLS_LIBRARY_H

#include "base/base.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

/* libssl brings libcrypto along, so the calls of both are found through it. */
#define TB_TLS_CALLS(CALL)                                                                                             \
    CALL(TLS_method)                                                                                                   \
    CALL(SSL_CTX_new)                                                                                                  \
    CALL(SSL_CTX_free)                                                                                                 \
    CALL(SSL_CTX_ctrl)                                                                                                 \
    CALL(SSL_CTX_set_options)                                                                                          \
    CALL(SSL_CTX_set_ciphersuites)                                                                                     \
    CALL(SSL_CTX_set_num_tickets)                                                                                      \
    CALL(SSL_set_verify)                                                                                               \
    CALL(SSL_CTX_set_default_read_buffer_len)                                                                          \
    CALL(SSL_CTX_set_psk_use_session_callback)                                                                         \
    CALL(SSL_CTX_set_psk_find_session_callback)                                                                        \
    CALL(SSL_new)                                                                                                      \
    CALL(SSL_free)                                                                                                     \
    CALL(SSL_set_bio)                                                                                                  \
    CALL(SSL_set_ex_data)                                                                                              \
    CALL(SSL_get_ex_data)                                                                                              \
    CALL(SSL_set_connect_state)                                                                                        \
    CALL(SSL_set_accept_state)                                                                                         \
    CALL(SSL_do_handshake)                                                                                             \
    CALL(SSL_session_reused)                                                                                           \
    CALL(SSL_get_error)                                                                                                \
    CALL(SSL_read_ex)                                                                                                  \
    CALL(SSL_has_pending)                                                                                              \
    CALL(SSL_write_ex)                                                                                                 \
    CALL(SSL_shutdown)                                                                                                 \
    CALL(SSL_key_update)                                                                                               \
    CALL(SSL_get_current_cipher)                                                                                       \
    CALL(SSL_CIPHER_get_name)                                                                                          \
    CALL(SSL_CIPHER_find)                                                                                              \
    CALL(SSL_SESSION_new)                                                                                              \
    CALL(SSL_SESSION_free)                                                                                             \
    CALL(SSL_SESSION_set1_master_key)                                                                                  \
    CALL(SSL_SESSION_set_cipher)                                                                                       \
    CALL(SSL_SESSION_set_protocol_version)                                                                             \
    CALL(BIO_meth_new)                                                                                                 \
    CALL(BIO_meth_set_read_ex)                                                                                         \
    CALL(BIO_meth_set_write_ex)                                                                                        \
    CALL(BIO_meth_set_ctrl)                                                                                            \
    CALL(BIO_new)                                                                                                      \
    CALL(BIO_set_data)                                                                                                 \
    CALL(BIO_get_data)                                                                                                 \
    CALL(BIO_set_init)                                                                                                 \
    CALL(BIO_set_flags)                                                                                                \
    CALL(BIO_clear_flags)                                                                                              \
    CALL(ERR_clear_error)                                                                                              \
    CALL(ERR_get_error)                                                                                                \
    CALL(ERR_peek_error)                                                                                               \
    CALL(ERR_reason_error_string)

#define TB_TLS_FIELD(name) __typeof__(&(name)) name;

struct tb_tls_library {
    TB_TLS_CALLS(TB_TLS_FIELD)
    char trouble[256]; /* why it could not be loaded; "" if it is there */
};

/* Loads `name` for good. On failure `trouble` says why and how to mend it. */
void tb_tls_library_open(struct tb_tls_library *library, const char *name);

#endif

#include "agent/codec.h"

#include <stdlib.h>
#include <time.h>

#define RECORD_BYTES (16u << 10) /* of TLS */

struct cipher {
    struct tb_codec codec;
    struct tb_hop_connection *connection; /* of the call that is going on */
    bool ready, broken;
    bool inside, closed; /* frames are being handed up; and meanwhile the connection was closed */
    uint32_t refused;    /* connection->refused at the last frame */
    struct tb_tls *tls;
    struct tb_squeeze *squeeze;
    struct tb_unsqueeze *unsqueeze;
    size_t plain; /* bytes of frames in `record`, which is to be filled */
    char record[RECORD_BYTES];
    char bytes[TB_FRAME_BUFFER_HEAD + RECORD_BYTES];
};

uint32_t tb_codec_features(const struct tb_member *member, struct tb_proc proc)
{
    uint32_t host = proc.index & ~TB_PROC_AGENT, features = 0;
    if (!tb_proc_is_agent(proc) || host >= member->book->host_count)
        return 0;
    if (tb_member_is_wide(member, host) && tb_squeeze_offer(tb_param.compress, &features) != TB_OK)
        tb_log(TB_LOG_WARN, "agent", "%s", tb_error_story());
    return features | (tb_member_encrypts(member, host) ? TB_FEATURE_TLS : 0);
}

/* ---- out --------------------------------------------------------------------------------------------------------- */

static int put(void *context, const void *bytes, size_t length)
{
    struct cipher *c = context;
    return tb_hop_connection_put(c->connection, bytes, length);
}

/* Records are filled across the ends of frames, since each costs both sides about the same, however little is in it.
 * `more`: what does not fill one may wait. */
static int write_records(struct cipher *c, const char *bytes, size_t length, bool more)
{
    int rc = TB_OK;
    for (size_t at = 0, part; rc == TB_OK && at < length; at += part) {
        part = RECORD_BYTES - c->plain < length - at ? RECORD_BYTES - c->plain : length - at;
        bool leaves = c->plain + part == RECORD_BYTES || (at + part == length && !more);
        if (c->plain == 0 && leaves) {
            rc = tb_tls_write(c->tls, bytes + at, part);
            continue;
        }
        memcpy(c->record + c->plain, bytes + at, part);
        c->plain += part;
        if (leaves) {
            rc = tb_tls_write(c->tls, c->record, c->plain);
            c->plain = 0;
        }
    }
    return rc;
}

static int encode(struct tb_codec *codec, struct tb_hop_connection *connection, const void *bytes, size_t length,
                  bool more)
{
    struct cipher *c = TB_CONTAINER(codec, struct cipher, codec);
    if (!c->ready || c->broken)
        return tb_error(TB_ERR_PEER, "an encrypted stream is not ready");
    c->connection = connection;
    if (c->squeeze != NULL) {
        enum tb_squeeze_link link = c->plain > 0 || connection->coded_at < connection->coded_end ? TB_SQUEEZE_MORE
                                    : connection->refused != c->refused                          ? TB_SQUEEZE_FULL
                                                                                                 : TB_SQUEEZE_IDLE;
        c->refused = connection->refused;
        tb_squeeze_pack(c->squeeze, link, bytes, length, &bytes, &length);
    }
    int rc = c->tls != NULL ? write_records(c, bytes, length, more) : tb_hop_connection_put(connection, bytes, length);
    c->broken = rc != TB_OK;
    return rc;
}

static bool is_ready(const struct tb_codec *codec)
{
    return TB_CONTAINER(codec, struct cipher, codec)->ready;
}

/* ---- in ---------------------------------------------------------------------------------------------------------- */

/* Frames, or pieces of them. Handing them up may close the connection, and us. */
static int take(void *context, char *bytes, size_t length)
{
    struct cipher *c = context;
    int rc = tb_hop_connection_take(c->connection, bytes, length);
    return c->closed ? TB_ERR_CANCELLED : rc;
}

static int blocks_take(struct cipher *c, char *bytes, size_t length)
{
    return c->unsqueeze != NULL ? tb_unsqueeze_feed(c->unsqueeze, bytes, length) : take(c, bytes, length);
}

static int shake(struct cipher *c)
{
    int rc = tb_tls_handshake(c->tls);
    if (rc != TB_OK)
        return rc;
    c->ready = true;
    tb_log(TB_LOG_DEBUG, "agent", "a stream with process 0x%x is encrypted with %s", c->connection->proc.index,
           tb_tls_cipher(c->tls));
    return TB_OK;
}

static int records_take(struct cipher *c, const char *bytes, size_t length)
{
    size_t got;
    tb_tls_feed(c->tls, bytes, length);
    int rc = c->ready ? TB_OK : shake(c);
    while (rc == TB_OK) {
        rc = tb_tls_read(c->tls, c->bytes + TB_FRAME_BUFFER_HEAD, RECORD_BYTES, &got);
        if (rc == TB_OK)
            rc = blocks_take(c, c->bytes + TB_FRAME_BUFFER_HEAD, got);
    }
    return rc == TB_AGAIN ? TB_OK : rc;
}

static void cipher_free(struct cipher *c)
{
    if (c->squeeze != NULL) {
        const struct tb_squeeze_counters *n = tb_squeeze_count(c->squeeze);
        tb_log(TB_LOG_DEBUG, "agent",
               "a stream has carried %llu bytes as %llu; of %llu frames %llu were compressed, %llu transposed, %llu "
               "tried, in %llu us, level %d",
               (unsigned long long)n->plain, (unsigned long long)n->wire, (unsigned long long)n->blocks,
               (unsigned long long)n->pressed, (unsigned long long)n->spread, (unsigned long long)n->tries,
               (unsigned long long)n->nanoseconds / 1000, n->level);
    }
    tb_tls_close(c->tls);
    tb_squeeze_close(c->squeeze);
    tb_unsqueeze_close(c->unsqueeze);
    free(c);
}

static int decode(struct tb_codec *codec, struct tb_hop_connection *connection, char *bytes, size_t length)
{
    struct cipher *c = TB_CONTAINER(codec, struct cipher, codec);
    if (c->broken)
        return tb_error(TB_ERR_PEER, "an encrypted stream is broken");
    c->connection = connection;
    c->inside = true;
    int rc = c->tls != NULL ? records_take(c, bytes, length) : blocks_take(c, bytes, length);
    c->inside = false;
    c->broken = rc != TB_OK;
    if (!c->closed)
        return rc;
    cipher_free(c);
    return TB_OK; /* whoever closed it has said why */
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static int begin(struct tb_codec *codec, struct tb_hop_connection *connection)
{
    struct cipher *c = TB_CONTAINER(codec, struct cipher, codec);
    c->connection = connection;
    int rc = c->ready ? TB_OK : shake(c);
    c->broken = rc != TB_OK && rc != TB_AGAIN;
    return c->broken ? rc : TB_OK;
}

static void cipher_close(struct tb_codec *codec)
{
    struct cipher *c = TB_CONTAINER(codec, struct cipher, codec);
    c->closed = true;
    if (!c->inside)
        cipher_free(c);
}

static uint64_t work_now(void *context)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const struct tb_clock work = {work_now, NULL};

static int stages_open(struct cipher *c, const struct tb_member *member, struct tb_squeeze_group *group,
                       const struct tb_connected *connected)
{
    uint32_t features = connected->welcome->features;
    int rc = TB_OK;
    if ((features & (TB_FEATURE_ZSTD | TB_FEATURE_LZ4)) != 0) {
        const struct tb_squeeze_config config = {.features = features,
                                                 .level = (int)tb_param.compress_level,
                                                 .clock = member->loop->clock,
                                                 .work = &work,
                                                 .group = group};
        rc = tb_squeeze_open(&c->squeeze, &config);
        if (rc == TB_OK)
            rc = tb_unsqueeze_open(&c->unsqueeze, take, c);
    }
    c->ready = (features & TB_FEATURE_TLS) == 0;
    if (rc != TB_OK || c->ready)
        return rc;
    struct tb_key secret;
    rc = tb_stream_secret(&secret, member->key, connected->hello, connected->welcome);
    if (rc == TB_OK)
        rc = tb_tls_open(&c->tls, &secret, connected->dialed, put, c);
    explicit_bzero(&secret, sizeof secret);
    return rc;
}

int tb_codec_open(const struct tb_member *member, struct tb_squeeze_group *group, const struct tb_connected *connected,
                  struct tb_codec **codec)
{
    *codec = NULL;
    if (connected->welcome == NULL)
        return TB_OK;
    uint32_t wanted = tb_codec_features(member, connected->proc), agreed = connected->welcome->features;
    if ((wanted & TB_FEATURE_TLS & ~agreed) != 0)
        return tb_error(TB_ERR_FORBIDDEN,
                        "the other side does not encrypt (gateway_tls=no on both sides does without)");
    if ((agreed & ~(wanted & connected->hello->features)) != 0)
        return tb_error(TB_ERR_PROTOCOL, "the other side grants what nobody asked for");
    if (agreed == 0)
        return TB_OK;
    struct cipher *c = calloc(1, sizeof *c);
    if (c == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a stream between gateways");
    c->codec =
        (struct tb_codec){.begin = begin, .encode = encode, .decode = decode, .ready = is_ready, .close = cipher_close};
    int rc = stages_open(c, member, group, connected);
    if (rc == TB_OK)
        *codec = &c->codec;
    else
        cipher_free(c);
    return rc;
}

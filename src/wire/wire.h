/* wire: every byte that crosses a network or a process boundary: all frame structs and limits, encoding, decoding,
 * sealing, verifying. No sockets here. The same facts in prose: docs/wire.md.
 *
 * Numbers on the wire are little-endian. The structs below have no padding and equal their wire form on a
 * little-endian machine; tb_wire_* functions convert on the others. */
#ifndef TB_WIRE_WIRE_H
#define TB_WIRE_WIRE_H

#include "base/base.h"

#define TB_WIRE_VERSION 8 /* of hop, hello and control frames; a difference ends the connection, with a story */

/* A process of any job that can meet ours. */
struct tb_proc {
    uint32_t job;   /* the job's number, random and nonzero */
    uint32_t index; /* its index in the job's world; TB_PROC_AGENT | host: the agent of that host in the address book */
};

#define TB_PROC_AGENT 0x80000000u /* world indices stay below 2^24, so that they fit a context id */

/* ---- the envelope ------------------------------------------------------------------------------------------------ */

/* Who to whom, and what makes a pair dependable end to end. Left out between two ranks that are connected directly by a
 * transport that is reliable and ordered. */
struct tb_routing {
    struct tb_proc source;
    struct tb_proc destination;
    uint32_t sequence;    /* counts the sequenced frames of this pair and direction, from 1; 0: not sequenced */
    uint32_t acknowledge; /* all sequence numbers up to this one have arrived here */
};

/* What it is. This half is always there. */
struct tb_message {
    uint64_t context;       /* which communicator and plane; 0 for kinds that need none */
    uint64_t match;         /* a tag; or collective number, operation and edge; or the message id of the other side */
    uint64_t length;        /* of the whole message in bytes, or as the kind says */
    uint64_t offset;        /* where a payload frame goes in its message, or the sender's message id */
    uint32_t source_rank;   /* the sender's rank in the communicator, or in its own group of an intercommunicator */
    uint8_t kind;           /* enum tb_kind: selects the handler */
    uint8_t representation; /* of the payload: byte order and sizes, see TB_REP_ */
    uint16_t flags;         /* enum tb_message_flags */
};

struct tb_envelope {
    struct tb_routing routing;
    struct tb_message message;
};

/* Message ids are chosen by whoever will receive them back. They are never 0 and not used again soon (a slot and a
 * generation), because a repeated or late frame must not find another message under the id it carries.
 *
 * 16 to 47 are for one-sided access (context: that of the window, source_rank: in its communicator), 48 to 55 for
 * failure and revocation (context: what is revoked), 56 to 63 for multicast and its repair. */
enum tb_kind {
    TB_KIND_EAGER = 1,   /* a whole message. offset: the sender's message id, 0 if nobody will ask for it */
    TB_KIND_REQUEST = 2, /* asks to send `length` bytes. offset: the sender's message id. With TB_MESSAGE_REMOTE the
                          * payload is one u64: the address in the sender where the receiver may read the bytes. With
                          * TB_MESSAGE_AHEAD nothing is asked: the bytes follow */
    TB_KIND_CLEAR = 3,  /* answer: send. match: the sender's message id; offset: the receiver's; length: bytes wanted */
    TB_KIND_DATA = 4,   /* a piece. match: the receiver's message id; offset: where it goes; length: of this piece. With
                         * TB_MESSAGE_AHEAD: match: the sender's message id; length: of the whole message */
    TB_KIND_DONE = 5,   /* to the sender: matched (synchronous mode) or read completely. match: its message id */
    TB_KIND_CANCEL = 6, /* to the receiver: forget the message. match: the sender's message id */
    TB_KIND_CANCELLED = 7, /* answer. match: the sender's message id; length: 1 forgotten, 0 too late */
    TB_KIND_CREDIT = 8,    /* length: bytes of payload that may be sent again without asking; offset: bytes more
                            * that may be under way so from now on */
    TB_KIND_LINK = 9,      /* of link alone. length: 0 acknowledgement, 1 goodbye, 2 its answer */
    TB_KIND_HOST = 10,     /* from agent to agent, about frames of their ranks. length: enum tb_host_frame; offset: of a
                            * question the time of its sender, of receipts that of the question they answer, or 0.
                            * payload: for each pair u32 source, u32 destination, u32 number, u8 flags, bytes. Of a
                            * question: the last number that was sent. Of receipts: all up to this number are here, in
                            * the bytes bit i says that the number i + 2 beyond is; flag 1: there is no room for more */
    TB_KIND_COUNT,
    /* One-sided access, from origin to target. The payload of the next four begins with a struct tb_access_head and the
     * runs that it counts, where the data lies in the window; match: the origin's message id, 0 if it wants no result;
     * length: bytes of data */
    TB_KIND_PUT_RUNS = 16,   /* then the data */
    TB_KIND_GET = 17,        /* answer with it */
    TB_KIND_ACCUMULATE = 18, /* then the operands, but none for MPI_NO_OP. With match: answer with what was there */
    TB_KIND_COMPARE = 19,    /* then what it is compared with, and what takes its place. Answer with what was there */
    TB_KIND_PUT = 20,        /* payload: the data. offset: where; length: of the payload */
    TB_KIND_FLUSH = 21,      /* answer as soon as `length` frames of kinds 16 to 20 from here have been applied */
    TB_KIND_LOCK = 22,       /* asks for the lock. length: enum tb_lock_mode */
    TB_KIND_UNLOCK = 23,     /* gives it back, as soon as `length` frames have been applied. Answer as to FLUSH */
    TB_KIND_COMPLETE = 24,   /* so many frames were sent; more will not come before the next POST */
    /* From target to origin */
    TB_KIND_GOT = 25,     /* a piece of a result. match: the origin's message id; offset: where; length: of it */
    TB_KIND_APPLIED = 26, /* length: as in the FLUSH or UNLOCK that it answers */
    TB_KIND_LOCKED = 27,  /* the lock is the origin's. length 1: one in the host's memory may be, look there */
    TB_KIND_POST = 28,    /* accesses may begin */
    TB_KIND_REFUSED = 29, /* a frame was not applied. match: its message id or 0; length: enum tb_refusal */
    /* Between processes that wait and those that they wait for (engine/deadlock.h) */
    TB_KIND_ASK = 30,    /* match: number of the question; length: what is demanded; offset: how often was asked */
    TB_KIND_ANSWER = 31, /* match: that number; length, source_rank and offset: the answer */
    TB_KIND_ACCESS_END,
    TB_KIND_FAILED = 48, /* a collective is given up by the sender. match: as of its messages, with edge 0; length: its
                          * places with drivers; offset: 1 not everybody was told: pass it on */
    /* From here on: of multicast, which does not go by datagrams (link/multicast.h says which is which). length: of the
     * payload */
    TB_KIND_MULTICAST = 56,
    TB_KIND_CAST = 61, /* to the receiver of a REQUEST that has said CLEAR: its data is multicast. match: its message
                        * id; payload: u64 sender's message id, u64 number of the multicast, u32 each of its members,
                        * the sender first */
    TB_KIND_MULTICAST_END = 62
};

static inline bool tb_kind_known(unsigned kind)
{
    return __builtin_expect(kind - TB_KIND_EAGER < TB_KIND_COUNT - TB_KIND_EAGER, 1) ||
           kind - TB_KIND_PUT_RUNS < TB_KIND_ACCESS_END - TB_KIND_PUT_RUNS || kind == TB_KIND_FAILED ||
           kind - TB_KIND_MULTICAST < TB_KIND_MULTICAST_END - TB_KIND_MULTICAST;
}

/* Kinds whose payload had better be read to where it belongs. */
static inline bool tb_kind_is_placed(unsigned kind)
{
    return kind == TB_KIND_DATA || kind == TB_KIND_PUT || kind == TB_KIND_GOT;
}

enum tb_host_frame { TB_HOST_FRAME_RECEIPTS, TB_HOST_FRAME_QUESTION };
#define TB_HOST_FRAME_FULL 1u

enum tb_message_flags {
    TB_MESSAGE_SYNC = 1,   /* the sender waits for DONE when the message is matched */
    TB_MESSAGE_REMOTE = 2, /* REQUEST: the payload says where the data can be read */
    TB_MESSAGE_ROUTED = 4, /* the routing half travels too */
    TB_MESSAGE_READY = 8,  /* ready mode: a receive must be posted already */
    TB_MESSAGE_AHEAD = 16, /* REQUEST, DATA: of a message that leaves without asking, at least TB_AHEAD_LEAST long */
    TB_MESSAGE_ALL = 31    /* every flag of this version; another one is a protocol error */
};

/* Shorter ones are eager or ask: so whoever keeps such messages for a sender has to look for one among few. */
#define TB_AHEAD_LEAST 4096u

/* A collective's match: its number on the communicator (which wraps), what it is, and the edge of its schedule. A
 * receiver that sees the right number with another operation has found ranks that call different collectives. */
static inline uint64_t tb_match_collective(uint32_t number, uint8_t operation, uint16_t edge)
{
    return (uint64_t)number << 32 | (uint64_t)operation << 24 | (uint64_t)edge << 8;
}
/* In its last byte: the number belongs to a persistent collective, for as long as that lives, and above it how often it
 * was started before. */
#define TB_MATCH_KEPT             1u
#define TB_MATCH_START(start)     (((start)&0x7fu) << 1)
#define TB_MATCH_NUMBER(match)    ((uint32_t)((match) >> 32))
#define TB_MATCH_OPERATION(match) ((uint8_t)((match) >> 24))
#define TB_MATCH_EDGE(match)      ((uint16_t)((match) >> 8))

/* ---- one-sided access -------------------------------------------------------------------------------------------- */

enum tb_lock_mode {
    TB_LOCK_NONE,
    TB_LOCK_SHARED,
    TB_LOCK_EXCLUSIVE,
    TB_LOCK_JOIN = 4 /* shared, of one who holds locks of other ranks: it passes those who wait, not who has it */
};
enum tb_refusal {
    TB_REFUSAL_RANGE = 1,  /* it is not all in the memory of the window */
    TB_REFUSAL_WINDOW = 2, /* there is no such window (any more) */
    TB_REFUSAL_LOCK = 3    /* one that had the lock is gone, and has not given it back; offset: its rank */
};

/* What an access does with the data of its runs. */
struct tb_access_head {
    uint8_t op;        /* of ACCUMULATE: enum tb_op_code; else 0 */
    uint8_t type;      /* of ACCUMULATE and COMPARE: the predefined type, the low byte of its handle; else 0 */
    uint16_t zero;     /* 0 */
    uint32_t runs;     /* that follow, at least one */
    uint64_t position; /* where a result belongs in what the origin asked for: offset of the answer */
};

/* `count` pieces of `bytes` bytes, the first at `at`, each `stride` further on than the one before. Where: bytes from
 * the base of the window, or the address in a dynamic one. Of a predefined type with gaps (a pair) `bytes` counts them,
 * while data has none. */
struct tb_access_run {
    uint64_t at;
    uint64_t stride; /* modulo 2^64 */
    uint32_t bytes;
    uint32_t count;
};

#define TB_ACCESS_HEAD_BYTES 16u
#define TB_ACCESS_RUN_BYTES  24u

void tb_wire_put_access_head(void *to, const struct tb_access_head *head);
void tb_wire_get_access_head(const void *from, struct tb_access_head *head);
void tb_wire_put_access_run(void *to, const struct tb_access_run *run);
void tb_wire_get_access_run(const void *from, struct tb_access_run *run);

/* ---- representation ---------------------------------------------------------------------------------------------- */

/* Representation of payload: how the sender's machine writes numbers. */
#define TB_REP_BIG_ENDIAN    0x01 /* byte order */
#define TB_REP_LONG4         0x02 /* long has 4 bytes, else 8 */
#define TB_REP_LDOUBLE_MASK  0x0c
#define TB_REP_LDOUBLE_QUAD  0x00 /* IEEE binary128 */
#define TB_REP_LDOUBLE_X87   0x04 /* 80 bits in 16 bytes */
#define TB_REP_LDOUBLE_PLAIN 0x08 /* the same as double */
#define TB_REP_LDOUBLE_PAIR  0x0c /* two doubles */
#define TB_REP_CHAR_UNSIGNED 0x10 /* char has no sign, else one */
#define TB_REP_CANONICAL     0x80 /* external32, as MPI_Pack writes in a mixed job */

/* Where machines of one job may differ: long double is not moved between those that write it differently, and char is
 * not compared. */
#define TB_REP_MAY_DIFFER (TB_REP_LDOUBLE_MASK | TB_REP_CHAR_UNSIGNED)

#define TB_REP_UNKNOWN 0xff /* in an address book that was made before its only host has told */

uint8_t tb_wire_representation(void); /* of this process */

/* How a machine writes numbers, for those who ask whether two can share a job: the representation in bits 0 to 7, then
 * four bits each for the bytes of a pointer, of wchar_t and of bool, and for the alignment of long long. */
#define TB_MACHINE_BYTES 96 /* of its description */
uint32_t tb_wire_machine(void);
/* "little-endian, long of 8 bytes, x87 long double, pointers of 8 bytes" */
void tb_wire_machine_print(uint32_t machine, char text[static TB_MACHINE_BYTES]);
const char *tb_wire_long_double(uint8_t representation); /* "IEEE binary128" */

#include "wire/context.h"

/* ---- the hop: framing on a byte stream --------------------------------------------------------------------------- */

struct tb_hop {
    uint8_t version;   /* TB_WIRE_VERSION */
    uint8_t type;      /* enum tb_hop_type */
    uint16_t flags;    /* TB_HOP_CHECKED, TB_HOP_SMALL */
    uint32_t length;   /* bytes behind this header: message or envelope, and payload */
    uint32_t sequence; /* of this connection and direction, from 0 */
    uint32_t credit;   /* of BYE: how many connections to this process the sender closes; of ENVELOPE: how many agents
                        * have had it, at most TB_HOP_PASSES_MOST; of PING and PONG: which; else 0 */
    uint32_t check;    /* with TB_HOP_CHECKED: CRC-32C of message or envelope, then of the fields before this one; of
                        * PING: TB_HOP_ABOUT or 0 */
    uint32_t reserved; /* 0 */
};

enum tb_hop_type {
    TB_HOP_MESSAGE = 1, /* struct tb_message, then payload */
    TB_HOP_ENVELOPE,    /* struct tb_envelope, then payload */
    TB_HOP_CONTROL,     /* u32 enum tb_control, then fields; launcher, agents, ranks */
    TB_HOP_BYE,         /* the last frame: this side sends nothing more and closes in good order */
    TB_HOP_PING = 5,    /* between agents: answer at once, and look after the way from there to the host of `check` */
    TB_HOP_PONG = 6     /* that answer, with the same `credit` */
};

/* In a PING: somebody waits for this host, which is behind the agent that gets it; so many agents have passed that on.
 */
#define TB_HOP_ABOUT(host, passed) (((host) + 1u) | (uint32_t)(passed) << 24)
#define TB_HOP_ABOUT_HOST(check)   (((check)&0xffffffu) - 1u) /* UINT32_MAX: none */
#define TB_HOP_ABOUT_PASSED(check) ((check) >> 24)

#define TB_HOP_CHECKED     1 /* between two ranks, or two agents: no changed header goes unnoticed */
#define TB_HOP_SMALL       2 /* of PING and PONG: only small packets pass between the two agents, as far as is known */
#define TB_HOP_PASSES_MOST 16u /* agents that pass a frame on; one that has had more runs in circles */

#define TB_FRAME_PAYLOAD_LIMIT (1u << 20) /* payload bytes of one frame on any transport */
#define TB_RELAY_PAYLOAD       (1u << 14) /* payload bytes of one frame that passes a gateway */
#define TB_CONTROL_LIMIT       (1u << 24) /* bytes of one control frame */
#define TB_SEALED_FRAME_BYTES                                                                                          \
    (1u << 20) /* of a cost table or a plan in one control frame, so that a heartbeat can pass */

/* What a rank may have out through agents at a time, all its peers together; its agent, which keeps a copy, counts too.
 * Each frame costs its payload and this. */
#define TB_RELAY_FRAME_COST 512u
static inline uint64_t tb_relay_share(uint32_t ranks_of_host)
{
    uint64_t share = (UINT64_C(256) << 20) / (ranks_of_host > 0 ? ranks_of_host : 1);
    return share > 48u << 20 ? 48u << 20 : share < 4u << 20 ? 4u << 20 : share;
}

/* ---- hello: proof of the job key --------------------------------------------------------------------------------- */

#define TB_KEY_BYTES   32
#define TB_NONCE_BYTES 16
#define TB_PROOF_BYTES 32

/* The connector speaks first. proof = HMAC-SHA256(key, "hello" and everything before proof). Size and meaning of hello
 * and welcome are the same in all versions, so that a different version can be told instead of guessed. */
struct tb_hello {
    uint8_t magic[8]; /* "tombolo\n" */
    uint32_t version;
    uint32_t stream;   /* which stream of the pair: TB_STREAM_ in bits 0 to 7, the stripe in bits 8 to 15 */
    uint32_t features; /* what the connector can and wants: enum tb_features */
    uint32_t reserved; /* 0 */
    struct tb_proc source;
    struct tb_proc destination;
    uint8_t nonce[TB_NONCE_BYTES];
    uint8_t proof[TB_PROOF_BYTES];
};

/* The acceptor's answer covers both nonces; nothing is sent to whoever did not prove the key. A wrong version is
 * answered only after the proof was right. proof = HMAC(key, "welcome", hello, everything before proof). */
struct tb_welcome {
    uint8_t magic[8];
    uint32_t version;
    uint32_t status;   /* 0, or why not: enum tb_welcome_status */
    uint32_t features; /* which of the connector's are granted */
    uint32_t reserved; /* 0 */
    uint8_t nonce[TB_NONCE_BYTES];
    uint8_t proof[TB_PROOF_BYTES];
};

enum tb_welcome_status {
    TB_WELCOME_OK,
    TB_WELCOME_VERSION,
    TB_WELCOME_NO_SUCH_PROCESS,
    TB_WELCOME_BUSY,
    TB_WELCOME_OTHER_HOST, /* the process is on another host than the one that answers */
    TB_WELCOME_BORDER      /* between these hosts only agents may connect, for their ranks */
};

/* The connector's last word: it is no replay. proof = HMAC(key, "confirm", hello, welcome). */
struct tb_confirm {
    uint8_t proof[TB_PROOF_BYTES];
};

/* The acceptor's last word: the confirm was right and the stream is kept. Until then the connector must not use it,
 * since an acceptor may close a connection at any time before. Then frames follow, both ways. */
#define TB_ACCEPTED 1
struct tb_accepted {
    uint8_t word; /* TB_ACCEPTED */
};

/* What a stream between two agents can have besides; a bit that one does not know is not granted. */
enum tb_features {
    TB_FEATURE_TLS = 1,  /* TLS 1.3 begins behind accepted, the connector being its client */
    TB_FEATURE_ZSTD = 2, /* frames travel in blocks (link/squeeze.h), which may be compressed with zstd */
    TB_FEATURE_LZ4 = 4   /* likewise, with LZ4 */
};

enum tb_stream { TB_STREAM_SHORT, TB_STREAM_BULK, TB_STREAM_COUNT };
#define TB_STREAM_CONTROL 0xffu /* between two agents: the control stream of the connector */
#define TB_STREAM_PROBE                                                                                                \
    0xfeu /* between two agents: no stream, only whether the other one is there; welcome ends it                       \
           */

/* Between a rank and its agent: what two ranks of a host share; asked for as the first, which is the socket of each.
 * The other is their memory, which is given to each before it. */
#define TB_STREAM_PAIR   0xfdu
#define TB_STREAM_MEMORY 0xfcu

/* The three of a handshake, in the order of this machine; tb_wire_put_* and tb_wire_get_* convert. Each verify returns
 * TB_OK, TB_ERR_FORBIDDEN (say nothing, close) or TB_ERR_PROTOCOL (another version, proved). They load libcrypto on
 * first use; TB_ERR_UNSUPPORTED with a story if it cannot be loaded. */
struct tb_key {
    uint8_t bytes[TB_KEY_BYTES];
};
int tb_key_make(struct tb_key *key);
/* From a secret that somebody types; blanks, dashes and the case of letters do not count. */
int tb_key_derive(struct tb_key *key, const char *secret);
int tb_hello_make(struct tb_hello *hello, const struct tb_key *key, struct tb_proc source, struct tb_proc destination,
                  enum tb_stream stream);
/* Sets the features of a hello (a welcome) that was made, and proves it anew. */
int tb_hello_offer(struct tb_hello *hello, const struct tb_key *key, uint32_t features);
int tb_welcome_grant(struct tb_welcome *welcome, const struct tb_key *key, const struct tb_hello *hello,
                     uint32_t features);
int tb_hello_verify(const struct tb_hello *hello, const struct tb_key *key);
int tb_welcome_make(struct tb_welcome *welcome, const struct tb_key *key, const struct tb_hello *hello,
                    uint32_t status);
int tb_welcome_verify(const struct tb_welcome *welcome, const struct tb_key *key, const struct tb_hello *hello);
int tb_confirm_make(struct tb_confirm *confirm, const struct tb_key *key, const struct tb_hello *hello,
                    const struct tb_welcome *welcome);
int tb_confirm_verify(const struct tb_confirm *confirm, const struct tb_key *key, const struct tb_hello *hello,
                      const struct tb_welcome *welcome);
/* The key of TLS on this connection: HMAC(key, "tls", hello, welcome). Both nonces are in it, so no two are alike. */
int tb_stream_secret(struct tb_key *secret, const struct tb_key *key, const struct tb_hello *hello,
                     const struct tb_welcome *welcome);

/* The key of a multicast group, for the datagrams of those who have it: HMAC(job key, "multicast", group, address,
 * port), its first 16 bytes. Nobody finds the job key, or that of another group, by it. `group` tells groups of a job
 * apart; of an IPv4 address the last 12 bytes are 0. */
int tb_group_key_derive(struct tb_siphash_key *key, const struct tb_key *job, uint32_t group,
                        const uint8_t address[static 16], uint16_t port);

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

void tb_wire_put_hop(void *to, const struct tb_hop *hop);  /* writes sizeof(struct tb_hop) bytes */
int tb_wire_get_hop(const void *from, struct tb_hop *hop); /* checks version, type, length and reserved */
/* Of a frame with TB_HOP_CHECKED: its first `length` bytes are the hop header and what stands before the payload. */
void tb_wire_seal_heads(void *frame, size_t length);
bool tb_wire_heads_intact(const void *frame, size_t length);
void tb_wire_put_message(void *to, const struct tb_message *message);
int tb_wire_get_message(const void *from, struct tb_message *message); /* checks kind and flags */
void tb_wire_put_envelope(void *to, const struct tb_envelope *envelope);
int tb_wire_get_envelope(const void *from, struct tb_envelope *envelope);
/* What the header promises and what came behind it agree, as the kind demands. */
int tb_message_check(const struct tb_message *message, size_t payload);
/* A right frame of kind EAGER: the most frequent one, for which whoever counts nanoseconds asks first. */
static inline bool tb_message_is_whole(const struct tb_message *message, size_t payload)
{
    return message->kind == TB_KIND_EAGER && (message->flags & (TB_MESSAGE_REMOTE | TB_MESSAGE_AHEAD)) == 0 &&
           message->length == payload;
}
/* `to` and `from` may be the struct itself. */
void tb_wire_put_hello(void *to, const struct tb_hello *hello);
void tb_wire_get_hello(const void *from, struct tb_hello *hello); /* checks nothing: tb_hello_verify does */
void tb_wire_put_welcome(void *to, const struct tb_welcome *welcome);
void tb_wire_get_welcome(const void *from, struct tb_welcome *welcome);

uint32_t tb_crc32c(uint32_t crc, const void *bytes, size_t length); /* start with 0; hardware where there is some */

/* Fields of control frames: appended and taken in order, bounds checked. A writer grows up to TB_CONTROL_LIMIT; after
 * an error every further call does nothing and the error is returned at the end. */
struct tb_writer {
    uint8_t *bytes;
    size_t length, room;
    int error;
};
void tb_writer_open(struct tb_writer *w);
void tb_writer_close(struct tb_writer *w); /* frees */
void tb_put_u8(struct tb_writer *w, uint8_t v);
void tb_put_u32(struct tb_writer *w, uint32_t v);
void tb_put_u64(struct tb_writer *w, uint64_t v);
void tb_put_bytes(struct tb_writer *w, const void *bytes, size_t length); /* u32 length, then bytes */
void tb_put_text(struct tb_writer *w, const char *text);                  /* as bytes, without the zero */
/* Fields that somebody else has written, as they are. */
void tb_put_raw(struct tb_writer *w, const void *fields, size_t length);

struct tb_reader {
    const uint8_t *bytes;
    size_t length, at;
    int error;
};
void tb_reader_open(struct tb_reader *r, const void *bytes, size_t length);
uint8_t tb_get_u8(struct tb_reader *r);
uint32_t tb_get_u32(struct tb_reader *r);
uint64_t tb_get_u64(struct tb_reader *r);
const void *tb_get_bytes(struct tb_reader *r, size_t *length); /* points into the frame */
char *tb_get_text(struct tb_reader *r);                        /* allocated, zero-terminated; NULL on error */
const void *tb_get_rest(struct tb_reader *r, size_t *length);  /* all that follows; points into the frame */
int tb_reader_end(const struct tb_reader *r);                  /* TB_OK if all was well and everything was taken */

/* ---- control frames ---------------------------------------------------------------------------------------------- */

/* Launcher and agents speak over the streams of the remote shell (or a socket pair), agents and ranks over a Unix
 * socket. Each frame: struct tb_hop (type CONTROL), then u32 enum tb_control, then fields as its sender writes
 * them; docs/wire.md lists them.
 *
 * A stream of a remote shell begins with the agent's preamble line (TB_AGENT_PREAMBLE in job.h), because a login script
 * may print something first. READY and SETUP keep their number and their first field, the version, for ever. */
enum tb_control {
    /* agent to launcher */
    TB_CONTROL_READY = 1, /* agent is up: version, host name, site, cluster, cores, count, addresses, machine, count,
                           * seats of its ranks */
    TB_CONTROL_STARTED,   /* all ranks of the host have been started: count, pids */
    TB_CONTROL_OUTPUT,    /* rank, stream (1, 2), bytes */
    TB_CONTROL_ENDED,     /* rank, pid, wait status, flags (enum tb_ended_flags in job.h) */
    TB_CONTROL_TROUBLE,   /* code, text: why this agent cannot go on */
    TB_CONTROL_ABORTED, /* rank, pid, code, u8 why (enum tb_abort_reason), text, count, ranges: MPI_Abort was called */
    TB_CONTROL_GONE,    /* all ranks have been reaped, everything is closed */
    /* launcher to agent */
    TB_CONTROL_SETUP = 32,   /* struct tb_setup: version, job, key, host index, ..., parameters, ..., what to start */
    TB_CONTROL_ADDRESS_BOOK, /* the address book; without a grid: start the ranks */
    TB_CONTROL_INPUT,        /* bytes for the rank that reads standard input; none: end of input */
    TB_CONTROL_SIGNAL,       /* a signal for all ranks */
    TB_CONTROL_STOP,         /* end all ranks: u8, whether at once, without the grace time */
    /* both ways */
    TB_CONTROL_PING = 64, /* alive */
    /* agent to rank */
    TB_CONTROL_WELCOME = 96, /* who you are; descriptors come along */
    TB_CONTROL_CONNECTION,   /* process, stream, code, text: 0 and the descriptor of a proved stream; or why not */
    TB_CONTROL_LOST, /* process, count, text: it and those behind it are gone, and why. From the launcher to agents,
                      * too, in a job that goes on without them */
    /* rank to agent */
    TB_CONTROL_HELLO = 128, /* pid: the process that is this rank; answered only on a socket found by its name */
    TB_CONTROL_CONNECT,     /* please connect me: process, stream */
    TB_CONTROL_ABORT,       /* MPI_Abort: code, u8 why, text, count, of each range: first, count; none: all are ended */
    TB_CONTROL_INITIALIZED,
    TB_CONTROL_FINALIZED,
    /* more of agent and launcher */
    TB_CONTROL_WINDOW, /* both ways: bytes of output (or input) that may be sent in addition */
    TB_CONTROL_NOTE,   /* agent to launcher: a line for the user */
    /* more of agent to rank */
    TB_CONTROL_DOORBELLS, /* how many have come before; descriptors that did not fit into the welcome */
    TB_CONTROL_TAKEN,     /* u8: run alone; text: this rank has its process already */
    /* grids */
    TB_CONTROL_ROUTES, /* launcher to agent: struct tb_host_routes of its host; agent to rank: the same in a memfd,
                        * again with each change */
    TB_CONTROL_CALL,   /* agent to launcher, and on to the agent of a host: that host is to open a connection, because
                        * ours cannot: host, process there, process here, stream */
    TB_CONTROL_SHELL,  /* launcher to agent: start an agent on another host: tunnel, host, user, port, command, program
                        * (as in struct tb_shell_target; empty: not given) */
    TB_CONTROL_TUNNEL, /* both ways: bytes of the standard input and output of what SHELL has started: tunnel, bytes */
    TB_CONTROL_TUNNEL_ERRORS, /* agent to launcher: its standard error: tunnel, bytes */
    TB_CONTROL_TUNNEL_END,    /* both ways: tunnel, u8, u32: no more bytes. From the agent: whether it has exited, its
                               * wait status. From the launcher: how to end it (enum tb_tunnel_end in job.h), 0 */
    TB_CONTROL_IDLE,          /* agent to launcher: the ranks of the host have ended and all their output was sent; the
                               * agent stays until STOP, since it may have to forward */
    TB_CONTROL_HEARD, /* both ways: the number of the frame that is expected next; those before it need not be kept */
    TB_CONTROL_STAND_INS, /* launcher to agent: count, hosts whose agents it may attach to when its stream is lost or
                           * silent; u8: 1 when the stream comes straight from the launcher, so that its end is the end
                           * of the job */
    TB_CONTROL_ATTACH,    /* agent to launcher: tunnel, number: an agent that has lost its stream is here; its bytes
                           * follow. From the launcher, the same: bytes for it follow. Both begin with a u32, the number
                           * of the frame that is expected next. The number tells repeated attempts from each other */
    TB_CONTROL_PROBE,     /* launcher to agent, before ROUTES and ADDRESS_BOOK: u64 ns, count, of each: host, count,
                           * addresses: which of these hosts can it connect to? */
    TB_CONTROL_PROBED,    /* agent to launcher, within that time: count, of each: host, u8, why not */
    /* Ways that pass nothing. */
    TB_CONTROL_LINK = 149, /* agent to launcher: host, u8 enum tb_link_report, u64 ns for which that has been so, text:
                            * why, or which ranks; again every second while something is wrong */
    TB_CONTROL_WAITING = 150, /* rank to agent: count, hosts: it waits for ranks there; 0: no longer; count, of each
                               * rank to which a connection passes nothing: rank, u64 ns since the last try */
    TB_CONTROL_ASK = 151,     /* launcher to agent to rank: number: what does each rank wait for? */
    TB_CONTROL_WAITS =
        152, /* rank to agent: number, count, of each wait: u64 ns, text. Agent to launcher: number,
              * how many such frames follow, count, of each: rank, pid, u8 enum tb_wait_answer, u64 ns, text */
    /* The start in a grid. */
    TB_CONTROL_TOLD = 153,     /* agent to launcher: ROUTES, COSTS, ADDRESS_BOOK and STAND_INS are here */
    TB_CONTROL_START = 154,    /* launcher to agent, when all have been told: start the ranks */
    TB_CONTROL_RANK_END = 155, /* launcher to agent, in a job that goes on: rank: end it */
    TB_CONTROL_COSTS = 160, /* launcher to agent, before ADDRESS_BOOK: u32 version, u64 bytes in all, u64 offset, bytes
                             * of the cost table, in order. Agent to rank, later versions: u32 version; a memfd comes
                             * along */
    TB_CONTROL_PLAN = 161,  /* launcher to agent, before ADDRESS_BOOK, if there is one: the same of a plan that the job
                             * follows, of version 1 */
    /* Multicast: structs and enums are in job/multicast.h. */
    TB_CONTROL_GROUP = 162,       /* launcher to agent, before ADDRESS_BOOK, if the job has groups; later if another one
                                   * is to be tried: struct tb_multicast_order */
    TB_CONTROL_GROUP_STATE = 163, /* agent to launcher: attempt, u8 enum tb_multicast_state, u32 payload bytes that fit
                                   * into a datagram, text: why not */
    TB_CONTROL_GROUP_TEST = 164,  /* launcher to agent, when all of a cluster have opened the group: attempt, test,
                                   * payload bytes of the longest datagram */
    TB_CONTROL_GROUP_HEARD = 165, /* agent to launcher: test, u64 probers that were heard, u64 those of them whose
                                   * longest datagrams were */
    TB_CONTROL_GROUP_VERDICT = 166, /* launcher to all agents: version, bits of places whose groups work, payload bytes
                                     * of the host's own. Agent to rank: struct tb_multicast_facts */
    TB_CONTROL_GROUP_TROUBLE = 167, /* rank to agent to launcher: version of the verdict that it holds, u8 enum
                                     * tb_multicast_trouble: the group should be tested again */
    TB_CONTROL_REGISTRY = 176, /* as SPAWN, of named groups and published names; both ways: job/registry_frames.h */
    /* Processes that are started while the job runs. */
    TB_CONTROL_SPAWN = 180, /* rank to agent: number, struct tb_spawn in a memfd. To launcher: rank, number, bytes */
    TB_CONTROL_WORLD = 181, /* launcher to all agents: count, of each range: first, count, host, job, home */
    TB_CONTROL_WORLD_TOLD = 182,  /* agent to launcher: first index of the world; its ranks find it */
    TB_CONTROL_WORLD_START = 183, /* launcher to agent: first, bytes of a struct tb_spawn: start those on your host */
    TB_CONTROL_WORLD_END = 184,   /* launcher to agent: first, u8 whether it runs: end it, as if all ended; else kill */
    TB_CONTROL_WORLD_FAILED = 185, /* agent to launcher: first, how many did not start, text why; others are ended */
    TB_CONTROL_JOINED = 186,       /* agent to launcher: rank: it has called MPI_Init */
    TB_CONTROL_ANSWER = 187, /* to agent: rank, number, code, text, bytes; to rank: without rank, bytes in a memfd */
    TB_CONTROL_MEET = 188,   /* as SPAWN, of what a rank wants of a port: struct tb_meeting */
    TB_CONTROL_BORDER = 189, /* launcher and agent, and agents of two jobs that meet: job/border.h */
    TB_CONTROL_BOND = 191 /* as SPAWN, of which worlds a rank is connected with: struct tb_bond. Number 0: no answer */
};

/* The structs are the wire. */
_Static_assert(sizeof(struct tb_routing) == 24, "routing half");
_Static_assert(sizeof(struct tb_message) == 40, "message half");
_Static_assert(sizeof(struct tb_envelope) == 64, "envelope");
_Static_assert(sizeof(struct tb_hop) == 24, "hop");
_Static_assert(sizeof(struct tb_hello) == 88, "hello");
_Static_assert(sizeof(struct tb_welcome) == 72, "welcome");
_Static_assert(sizeof(struct tb_confirm) == 32, "confirm");
_Static_assert(sizeof(struct tb_accepted) == 1, "accepted");

#include "wire/datagram.h"
#include "wire/handshake.h"
#include "wire/nonces.h"

#endif

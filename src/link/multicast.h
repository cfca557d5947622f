/* multicast: broadcasts by datagrams that reach all members of a group at once, made dependable. One object for each
 * process and group; it has neither sockets nor a clock. Its owner gives it datagrams that came (decoded and checked),
 * control messages of other members (which a dependable, ordered way carries, such as a connection), and time; it gives
 * its owner datagrams and control messages to send. So it runs in virtual time.
 *
 * A message is named by a context, which the owner joins with its members, and a number, which is never used twice in
 * that context. All members know its length and its root; one that expects another length than the root has sent takes
 * part like the others, keeps what it has room for, and ends with an error: TB_ERR_TRUNCATE if the message was longer,
 * TB_ERR_MISMATCH if it was shorter.
 *
 * Short messages (up to limits.short_bytes): the root keeps a copy, sends everything at once and has finished. Whoever
 * misses something asks for it, and who gets nothing that way is sent it as control messages. Copies go when all
 * members of the context have passed the message. Long ones: the root sends windows of fragments, members report along
 * a tree what is missing, the root sends it again; it has finished when all have everything, a member when all below it
 * have.
 *
 * What another has sent before this process has begun to receive it waits here, within a bound. A message that is there
 * is right: a datagram counts only if it is of the root, of this message, and a fragment that is missing.
 *
 * Calls that may not be made while another one is under way: all of them, but that `done` may call start, stop, pass,
 * join and leave. One thread at a time. `done` is called from feed, hear and advance only, the other calls of the owner
 * from all but those that ask; they must not call back. What one call has to send it sends before it returns, as far as
 * the owner takes it. */
#ifndef TB_LINK_MULTICAST_H
#define TB_LINK_MULTICAST_H

#include "link/multicast_holes.h"
#include "wire/wire.h"

#define TB_MULTICAST_ADDRESS_BYTES 18u         /* of IPv4 6, of IPv6 18: the port comes last, as networks have both */
#define TB_MULTICAST_BATCH         32u         /* datagrams that are offered together */
#define TB_MULTICAST_CONTROL_BYTES (64u << 10) /* of one control message, at most */

struct tb_multicast;
struct tb_multicast_context;
struct tb_multicast_kept;
struct tb_multicast_long;
struct tb_multicast_family;

struct tb_multicast_address {
    uint32_t length;
    uint8_t bytes[TB_MULTICAST_ADDRESS_BYTES];
};

/* A datagram that is to leave. */
struct tb_multicast_out {
    struct tb_datagram head;
    const void *payload;
    size_t length;
    const struct tb_multicast_address *to; /* NULL: all members of the group */
};

/* Kinds of control messages, as frames of the wire. */
enum tb_multicast_control {
    TB_MULTICAST_CONFIRM = 56, /* who has finished what, along the tree of a context */
    TB_MULTICAST_REPORT = 57,  /* what is missing of a long message, along its tree, upwards */
    TB_MULTICAST_ASK = 58,     /* to the root: what datagrams did not bring is wanted this way */
    TB_MULTICAST_REST = 59,    /* of the root: that, or how far it is */
    TB_MULTICAST_POLL = 60,    /* report now; along the tree, downwards */
    TB_MULTICAST_CONTROLS = 61
};

/* What the object asks its owner to do. */
struct tb_multicast_calls {
    void *owner;
    /* Sends datagrams, in this order. How many were taken; if not all, the others are offered again after
     * tb_multicast_writable. Header and payload are used before it returns. */
    uint32_t (*send)(void *owner, const struct tb_multicast_out *out, uint32_t count);
    /* Sends a control message: `head`, then `bytes`, as one. TB_OK; TB_AGAIN: nothing was taken, it is tried again
     * after tb_multicast_control_writable or a millisecond; an error: the process is gone, which
     * tb_multicast_lose will tell. Messages to one process arrive in order. */
    int (*control)(void *owner, uint32_t process, enum tb_multicast_control kind, const void *head, size_t head_length,
                   const void *bytes, size_t length);
    /* Of a context that is not joined: was it, and has been left? Otherwise it may be joined later. */
    bool (*is_gone)(void *owner, uint64_t context);
};

/* Who takes part, by index. */
struct tb_multicast_members {
    uint32_t count, self;
    uint32_t (*process)(const void *list, uint32_t index); /* NULL: the index is the process */
    const void *list;
};

/* Where the bytes of a message are. */
struct tb_multicast_payload {
    void *base; /* in one piece; or NULL, and they are copied: */
    void (*copy)(void *owner, uint64_t offset, void *bytes, size_t length, bool gather); /* out of the message, or in */
    void *owner;
};

/* Every bound, all of them with a default. Times in ns. */
struct tb_multicast_limits {
    uint64_t short_bytes;  /* the longest short message; in at most TB_MULTICAST_SPAN fragments */
    uint64_t keep;         /* bytes of copies that a root keeps, with what it notes of them; beyond it one a context */
    uint64_t early;        /* bytes that wait for this process to begin */
    uint32_t window_first; /* datagrams of a long message that are out at first without having been reported, */
    uint32_t window_most;  /* and at most, and no more than the socket of every member holds */
    uint32_t fan;          /* how many a member of a tree hears from */
    uint32_t asks;         /* in vain, then a member asks by a control message */
    uint32_t repairs;      /* of a fragment of a long message in vain, then it goes as a control message */
    uint32_t deaf;         /* messages in a row of which no datagram came, then a member asks at once */
    uint32_t peers;        /* processes that something is remembered of */
    uint32_t rests;        /* members that are sent something by control messages at a time */
    uint32_t rest_bytes;   /* of a message in one of those, at most; less than TB_MULTICAST_CONTROL_BYTES */
    uint64_t ask_spread;   /* a member waits a random time up to this for each member before it asks, */
    uint64_t settle;       /* and before that as long as fragments may overtake each other */
    uint64_t wait_first;   /* for the first datagram of a message, while nothing is known, before asking; */
    uint64_t wait_least;   /* afterwards mean and four deviations, but at least this */
    uint64_t wait_most;    /* and at most */
    uint64_t hold;         /* for which a root does not repeat again what it has repeated for all */
    uint64_t status_hold;  /* for which nobody need ask again a root that has not begun; doubles up to wait_most */
    uint64_t delay;        /* of a root before it sends a short message; 0: none, but for members that come late and */
    uint64_t delay_most; /* lose what they have no room for until then: at most this, and a quarter of its wire time */
    uint64_t quiet;      /* after which a root asks for confirmation of what it still keeps */
};

struct tb_multicast_config {
    const struct tb_clock *clock;
    struct tb_random *random;
    struct tb_multicast_calls calls;
    struct tb_multicast_limits limits;
    uint32_t job, self;     /* this process */
    uint8_t representation; /* of what it sends */
    uint16_t piece;         /* payload bytes of a fragment that it sends */
    uint32_t holds;         /* datagrams of that size that the socket of every member holds; 0: not known */
    uint64_t byte_time;     /* ps that a byte takes on the wire, roughly */
};

struct tb_multicast_counters {
    /* Datagrams. */
    uint64_t sent;     /* in all, repairs among them */
    uint64_t used;     /* fragments that were missing, among them those that had waited */
    uint64_t early;    /* that came before this process began to receive the message, and wait or have waited */
    uint64_t dropped;  /* early ones for which there was no room */
    uint64_t late;     /* of messages that had been finished */
    uint64_t foreign;  /* of messages that are for others, as far as that shows */
    uint64_t repeated; /* of fragments that were here */
    uint64_t rejected; /* of other roots, lengths or forms than they should be, or too old to count */
    uint64_t vain;     /* late, repeated or rejected ones of a message that control messages do not bring as a whole */
    uint64_t messages; /* that were received here, to their end */
    /* Repairs that were sent, and those that were used. */
    uint64_t repaired_all, repaired_one; /* datagrams to all, to one */
    uint64_t repaired_bytes;             /* by control messages */
    uint64_t mended;                     /* fragments that a repair brought, */
    uint64_t rested;                     /* and those of them that came by control messages */
    uint64_t asks_sent, asks_heard;      /* datagrams */
    uint64_t control_asks_sent, control_asks_heard;
    uint64_t status; /* datagrams that say that the root has not begun */
    uint64_t reports_sent, reports_heard;
    uint64_t polls;    /* datagrams */
    uint64_t confirms; /* that were heard */
    /* Skew: messages of which the first datagram came after, or before, this process began to receive; how long. */
    uint64_t waits, waited, early_begins, early_by;
    uint64_t kept, early_kept; /* bytes, now */
};

/* One that is being received, as its own part of an operation. */
struct tb_multicast_receive {
    uint64_t length; /* of the root's message; until something of it has come, what is expected here */
    struct tb_multicast_holes holes;
    uint32_t fragments; /* 0: nothing is known yet */
    uint32_t to;        /* one beyond the last fragment that has come */
    uint16_t piece;
    uint8_t asks;                  /* datagrams in a row without an answer */
    uint8_t control_asks;          /* likewise */
    uint8_t control_polls;         /* that have come */
    bool heard;                    /* a datagram of it that was no repair */
    bool begun;                    /* the root has sent all of it, as something else shows */
    bool certain;                  /* so says the root in a control message; of a long one: that it has begun */
    uint8_t wonders;               /* of a long one: how often in a row nothing was heard of the root for long */
    bool missed_early;             /* something of it came before and was dropped */
    uint64_t entered, first, last; /* when it was begun here; when something came first, and last; 0: never */
    uint64_t next;                 /* something is to be done then */
    uint64_t asked;                /* when it last asked, and nothing has come since; 0: it has not */
    uint64_t patient_until;        /* before then a root that has not begun is not asked by a control message */
    uint64_t alive;                /* of a long one: when anything was last heard of the root; 0: never */
    uint64_t quiet_at;             /* then it is asked, if nothing was heard for long */
    /* Of a long one: marks, how far the root has sent. As heard; waiting for what they may have overtaken; judged; as
     * told to the parent, with those of all below. */
    uint32_t top, settling, settled, told;
    uint32_t poll, polled, answered;
    uint64_t settle_at;
    uint32_t marked, spacing;           /* the last fragment that was a mark; how far it was from the one before */
    uint32_t loss;                      /* 1024ths, smoothed */
    uint32_t promised;                  /* what is missing before this one comes by control messages */
    struct tb_multicast_family *family; /* those below it in the tree */
};

/* A message that is sent or received here; it stands in memory of the owner until it is over. */
struct tb_multicast_operation {
    /* Set by the owner. */
    uint64_t context, number, length;
    struct tb_multicast_members members; /* who takes part: all of the context, or some of them */
    uint32_t root;                       /* index of whoever sends it */
    struct tb_multicast_payload payload;
    void (*done)(struct tb_multicast_operation *o, int error); /* it is over; the error's story says who is to blame */
    void *owner;
    /* Told at the end of a receive: of the root. */
    uint8_t representation;
    /* Told with an error, also by tb_multicast_start if it is TB_ERR_PEER: the process of which its story tells. */
    uint32_t blame;

    /* Its own. */
    struct tb_list of; /* what is under way in the context; or what is over and not told yet */
    struct tb_multicast_context *in;
    struct tb_multicast_kept *kept;
    struct tb_multicast_long *sending;
    struct tb_multicast_receive receive;
    bool is_long;
    int error;
};

/* Fragments that are expected next, for whoever would have them land where they belong: a row of them, one behind the
 * other. */
struct tb_multicast_row {
    uint64_t context, number, length;
    uint32_t sender;
    uint32_t fragment, count; /* the first one, and how many */
    uint16_t piece;
    void *at;
};

struct tb_multicast_limits tb_multicast_defaults(void);

int tb_multicast_open(const struct tb_multicast_config *config, struct tb_multicast **multicast);
void tb_multicast_close(struct tb_multicast *m); /* operations that are under way are forgotten */

/* A context that all its members join, before or after others send in it. The list is copied. */
int tb_multicast_join(struct tb_multicast *m, uint64_t context, const struct tb_multicast_members *members);
/* Nothing is under way in it here any more, and nothing will be begun. What others need of it lives on as long. */
void tb_multicast_leave(struct tb_multicast *m, uint64_t context);
/* All messages of the context with smaller numbers are over here, whether this process took part in them or not: its
 * owner has to say so in time, since roots keep copies until all members have. At most 1024 messages with larger
 * numbers may be over. */
void tb_multicast_pass(struct tb_multicast *m, uint64_t context, uint64_t number);

/* Sends if this process is the root, receives otherwise. TB_OK: it is over, `done` is not called; TB_PENDING; or an
 * error, and nothing was begun. */
int tb_multicast_start(struct tb_multicast *m, struct tb_multicast_operation *o);
/* It is given up here; `done` is not called any more. */
void tb_multicast_stop(struct tb_multicast *m, struct tb_multicast_operation *o);
/* Of a long message that is sent here: when its members last told that they have more of it, or when what was sent
 * since has left the wire, if that is later; 0: it has not begun for want of memory. One that does not go on stands
 * still there. */
uint64_t tb_multicast_moved(const struct tb_multicast_operation *o);

/* A datagram that was checked, of this job, not of this process, and where it came from. The payload may stand where
 * tb_multicast_expect has said that it belongs; otherwise it must not stand in room that was expected for others. */
void tb_multicast_feed(struct tb_multicast *m, const struct tb_datagram *head, const void *payload, size_t length,
                       const struct tb_multicast_address *from);
/* What is expected next; false: nothing is. Valid until the next call. */
bool tb_multicast_expect(const struct tb_multicast *m, struct tb_multicast_row *row);
/* A control message. */
void tb_multicast_hear(struct tb_multicast *m, uint32_t from, enum tb_multicast_control kind, const void *bytes,
                       size_t length);
void tb_multicast_writable(struct tb_multicast *m);
void tb_multicast_control_writable(struct tb_multicast *m);
/* Does what is due, after all datagrams that have come were given to it. */
void tb_multicast_advance(struct tb_multicast *m);
uint64_t tb_multicast_deadline(const struct tb_multicast *m);

/* Something has come lately of a message with a number of these that was not begun here: *number, and the process that
 * is its root. */
bool tb_multicast_overhear(const struct tb_multicast *m, uint64_t context, uint64_t first, uint64_t last,
                           uint64_t *number, uint32_t *root);

/* A process is gone. What needs it ends with an error that names it. */
void tb_multicast_lose(struct tb_multicast *m, uint32_t process);
/* The same of one that has left in good order. */
void tb_multicast_depart(struct tb_multicast *m, uint32_t process);
/* Before the end all members of all contexts meet, each with nothing kept any more; this process has come there. Who
 * departs from there has seen all of them come: from then on nobody asks or tells in these contexts who has finished
 * what, which would only look for processes that leave as well. Then: all have come, or it was given up. */
void tb_multicast_meet_last(struct tb_multicast *m);
void tb_multicast_part(struct tb_multicast *m, bool all);
/* From now on datagrams reach this process alone there, which others are told; NULL: nowhere. */
void tb_multicast_move(struct tb_multicast *m, const struct tb_multicast_address *address);
/* Datagrams are not to be relied on here, as in a flood of strange ones, or are again: meanwhile what is received here
 * is asked for by control messages, at once. What comes in datagrams all the same counts. */
void tb_multicast_deafen(struct tb_multicast *m, bool deaf);
/* From now on messages are cut into pieces of so many bytes, of which sockets hold so many, as in the configuration.
 * Without memory for that they are cut as before. */
void tb_multicast_cut(struct tb_multicast *m, uint16_t piece, uint32_t holds);
/* Everything that is kept is to be confirmed soon, as at the end of a job. */
void tb_multicast_flush(struct tb_multicast *m);
/* Others may need this object to be fed and advanced, though its owner may have no operation under way. */
bool tb_multicast_is_needed(const struct tb_multicast *m);
/* Whether copies are kept. */
bool tb_multicast_keeps(const struct tb_multicast *m);
void tb_multicast_count(const struct tb_multicast *m, struct tb_multicast_counters *counters);

#endif

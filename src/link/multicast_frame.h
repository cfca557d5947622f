/* What control messages and the datagrams that are no fragments carry, as fields; how they are written and read.
 * Numbers are little-endian. Whatever comes from a process of the job with the group's key may still be wrong: reading
 * returns false for what ends too early, is too long or contradicts itself. */
#ifndef TB_LINK_MULTICAST_FRAME_H
#define TB_LINK_MULTICAST_FRAME_H

#include "link/multicast.h"
#include "link/multicast_report.h"

#define TB_MULTICAST_ASK_BYTES (TB_MULTICAST_SPAN / 8u) /* of a list of missing fragments */

/* Of CONFIRM. */
enum tb_multicast_confirm_word {
    TB_MULTICAST_TELL,  /* to the parent: all numbers before `number` are finished here and below */
    TB_MULTICAST_WANT,  /* to a child: tell when all numbers before `number` are */
    TB_MULTICAST_ASKER, /* to the top: tell me when they are everywhere */
    TB_MULTICAST_GRANT, /* from the top: they are */
    TB_MULTICAST_CONFIRM_WORDS
};

struct tb_multicast_confirm {
    uint8_t word;
    uint64_t context, number;
};

/* Which message, of whom. Every other control message begins with it. */
struct tb_multicast_name {
    uint64_t context, number, length;
    uint32_t root; /* process */
    uint16_t piece;
};

/* Fragments: all from `base` on, or those of them whose bit is set. */
struct tb_multicast_wish {
    bool all;
    uint32_t base, bytes;
    uint8_t bits[TB_MULTICAST_ASK_BYTES];
};

/* Of a control ASK. */
enum tb_multicast_ask_flags {
    TB_MULTICAST_ASK_DEAF = 1,    /* send it as soon as there is something: datagrams do not come here */
    TB_MULTICAST_ASK_CERTAIN = 2, /* the root has said that it has begun, and still it is missing */
    TB_MULTICAST_ASK_FLAGS = 3
};

/* Of a REST. */
enum tb_multicast_rest_flags {
    TB_MULTICAST_REST_DATA = 1,  /* bytes of the message follow */
    TB_MULTICAST_REST_BEGUN = 2, /* else only this is told: whether it was sent */
    TB_MULTICAST_REST_GONE = 4,  /* or this: it is over at the root, which cannot send it any more */
    TB_MULTICAST_REST_FLAGS = 7
};

struct tb_multicast_rest_head {
    struct tb_multicast_name name;
    uint8_t flags, representation;
    uint64_t offset;
};

/* Of an ASK in a datagram. */
struct tb_multicast_question {
    uint64_t serial;  /* grows with each ASK of a process: repeated ones are known by it */
    uint32_t late_by; /* µs that the first datagram came before this process began, */
    bool overflow;    /* and some of them were dropped for that */
    struct tb_multicast_wish wish;
};
#define TB_MULTICAST_QUESTION_BYTES (18u + TB_MULTICAST_ASK_BYTES)

/* Of a STATUS: the message of the header is not begun. */
struct tb_multicast_status {
    uint64_t serial; /* grows with each STATUS of a process */
    uint64_t begun;  /* one more than the largest number that is */
    uint32_t hold;   /* µs for which nobody need ask */
};
#define TB_MULTICAST_STATUS_BYTES 20u

/* Of a POLL: a mark behind everything that was sent before it. */
struct tb_multicast_poll {
    uint32_t poll, top;
    bool rescue; /* datagrams do not help: ask for what is missing by control messages */
};
#define TB_MULTICAST_POLL_BYTES 8u /* in a datagram, which rescues nobody */

void tb_multicast_put_confirm(struct tb_writer *w, const struct tb_multicast_confirm *c);
bool tb_multicast_get_confirm(const void *bytes, size_t length, struct tb_multicast_confirm *c);
void tb_multicast_put_report(struct tb_writer *w, const struct tb_multicast_name *name,
                             const struct tb_multicast_report *r);
bool tb_multicast_get_report(const void *bytes, size_t length, struct tb_multicast_name *name,
                             struct tb_multicast_report *r);
void tb_multicast_put_control_ask(struct tb_writer *w, const struct tb_multicast_name *name, uint8_t flags,
                                  const struct tb_multicast_wish *wish);
bool tb_multicast_get_control_ask(const void *bytes, size_t length, struct tb_multicast_name *name, uint8_t *flags,
                                  struct tb_multicast_wish *wish);
/* The data stands behind it. */
void tb_multicast_put_rest(struct tb_writer *w, const struct tb_multicast_rest_head *rest);
bool tb_multicast_get_rest(const void *bytes, size_t length, struct tb_multicast_rest_head *rest, const void **data,
                           size_t *data_length);
void tb_multicast_put_control_poll(struct tb_writer *w, const struct tb_multicast_name *name,
                                   const struct tb_multicast_poll *poll);
bool tb_multicast_get_control_poll(const void *bytes, size_t length, struct tb_multicast_name *name,
                                   struct tb_multicast_poll *poll);

/* What a datagram carries; how many bytes were written. */
size_t tb_multicast_put_question(uint8_t to[static TB_MULTICAST_QUESTION_BYTES], const struct tb_multicast_question *q);
bool tb_multicast_get_question(const void *bytes, size_t length, struct tb_multicast_question *q);
size_t tb_multicast_put_status(uint8_t to[static TB_MULTICAST_STATUS_BYTES], const struct tb_multicast_status *s);
bool tb_multicast_get_status(const void *bytes, size_t length, struct tb_multicast_status *s);
size_t tb_multicast_put_poll(uint8_t to[static TB_MULTICAST_POLL_BYTES], const struct tb_multicast_poll *p);
bool tb_multicast_get_poll(const void *bytes, size_t length, struct tb_multicast_poll *p);

/* Of holes: everything that is missing up to and without `end`, at most a span of it. `whole`: that is the end of the
 * message, so that it can be said in a word if all of the rest is missing. */
void tb_multicast_wish_make(struct tb_multicast_wish *wish, const struct tb_multicast_holes *holes, uint32_t end,
                            bool whole);
bool tb_multicast_wish_has(const struct tb_multicast_wish *wish, uint32_t fragment);

#endif

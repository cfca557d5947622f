/* A link: the connection between the borders of two jobs, over TLS with a key that both have proved. It carries frames
 * of their processes, and what their launchers tell each other, in control frames (job/border.h). What comes is
 * believed only as far as the names go that our launcher has given (border_names.h); anything else ends the link. So
 * does a silence of the other side. Its end is told once, later, from the loop. One thread. */
#ifndef TB_AGENT_BORDER_LINK_H
#define TB_AGENT_BORDER_LINK_H

#include "agent/border_names.h"
#include "agent/member.h"
#include "link/link.h"

struct tb_border_link;

/* Why nothing is read. */
enum tb_border_held {
    TB_BORDER_HELD_FRAMES = 1, /* what has come waits to be taken by our processes, */
    TB_BORDER_HELD_WORDS = 2   /* or by our launcher */
};

struct tb_border_link_events {
    void *context;
    void (*up)(void *context, struct tb_border_link *link); /* the other side has proved itself by TLS, too */
    void (*told)(void *context, struct tb_border_link *link, const void *bytes, size_t length);
    /* A frame of a process that has this index here: envelope and payload, behind room for a struct tb_hop. An error
     * (with a story) ends the link. */
    int (*frame)(void *context, struct tb_border_link *link, uint32_t from, enum tb_stream stream, char *bytes,
                 size_t length);
    void (*eased)(void *context);                                               /* there is room again */
    void (*ended)(void *context, struct tb_border_link *link, const char *why); /* the owner closes it */
};

struct tb_border_link {
    struct tb_list node; /* the owner's */
    uint32_t number;     /* the owner's */
    const struct tb_member *member;
    struct tb_border_link_events events;
    struct tb_watch watch;
    struct tb_tls_socket *tls;
    struct tb_control_stream stream; /* without descriptors */
    struct tb_border_names names;
    struct tb_silence silence;
    struct tb_timer beat, end;
    bool up, spoken; /* spoken: the other launcher has said something */
    uint8_t held;    /* enum tb_border_held: nothing is read */
    uint64_t kept;   /* the owner's */
    char why[320];   /* "": it has not ended */
};

/* Takes the socket, unless there is an error. `connector`: we have opened the connection. */
int tb_border_link_open(struct tb_border_link **link, const struct tb_member *member, int socket,
                        const struct tb_key *secret, bool connector, const struct tb_border_link_events *events);
void tb_border_link_close(struct tb_border_link *link); /* what was said before still leaves, if there is room for it */
void tb_border_link_tell(struct tb_border_link *link, const void *bytes, size_t length);
/* A frame of one of ours for one of theirs: envelope and payload. What may not pass ends the link: who waits for it
 * would wait for ever. */
void tb_border_link_pass(struct tb_border_link *link, enum tb_stream stream, char *bytes, size_t length);
bool tb_border_link_is_full(const struct tb_border_link *link);
void tb_border_link_hold(struct tb_border_link *link, enum tb_border_held why, bool held);
void tb_border_link_settle(struct tb_border_link *link); /* before each sleep: what was said leaves */

#endif

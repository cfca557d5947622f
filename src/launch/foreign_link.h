/* A link to another job, from when on one of ours connects there, or somebody comes from there: how far it has come,
 * who waits for it, and what is said over it, to the other launcher or to our border. foreign_jobs.c owns them, and
 * knows what follows; the launcher's one thread. */
#ifndef TB_LAUNCH_FOREIGN_LINK_H
#define TB_LAUNCH_FOREIGN_LINK_H

#include "launch/agent_orders.h"
#include "launch/foreign_job.h"
#include "remote/remote.h"

/* What launchers say to each other, in TB_BORDER_TELL. */
enum tb_foreign_word {
    TB_FOREIGN_INTRODUCE, /* from who connects: as tb_foreign_alike_put has it, u64 generation in which we know you (0:
                           * none), bytes struct tb_meeting_party */
    TB_FOREIGN_ACCEPT,    /* job, u64 generation in which we meet, bytes struct tb_meeting_party */
    TB_FOREIGN_REFUSE,    /* text why */
    TB_FOREIGN_READY,     /* who has accepted is known to all here */
    TB_FOREIGN_LEFT,      /* all who had met you have left */
    TB_FOREIGN_LOST       /* process, count, text: it and those behind it that you know have died, and we go on */
};

enum tb_foreign_phase {
    TB_FOREIGN_DIALING,  /* connecting: there is no link yet; */
    TB_FOREIGN_ASKING,   /* we have introduced ourselves */
    TB_FOREIGN_COMING,   /* accepting: nothing is known of who comes; */
    TB_FOREIGN_WAITING,  /* at a port, for somebody to accept; */
    TB_FOREIGN_ANSWERED, /* the other one is told who we are */
    TB_FOREIGN_TELLING,  /* both: our agents are told of the others, */
    TB_FOREIGN_NAMING,   /* and then all borders with that job who is who */
    TB_FOREIGN_MET
};

enum tb_foreign_ending {
    TB_FOREIGN_OVER = 1,
    TB_FOREIGN_DIED = 2
}; /* of a process of ours; died: and our job goes on */

struct tb_foreign_link;

struct tb_foreign_links {
    struct tb_loop *loop;
    struct tb_host_agents *agents;
    struct tb_address_book *book;
    struct tb_list all;
    uint32_t next;                                 /* number */
    uint32_t meeting, telling;                     /* numbers of the last ones */
    void (*patience_over)(struct tb_timer *timer); /* `timer` of a link */
    uint8_t *ends;                                 /* by process of ours: enum tb_foreign_ending, added; those from */
    uint32_t ends_room;                            /* that one on live */
    /* One that waits at a port goes. */
    void *context;
    void (*dropped)(void *context, const struct tb_foreign_link *link);
};

struct tb_foreign_link {
    struct tb_list node;
    struct tb_foreign_links *links;
    struct tb_foreign_job *job; /* NULL: not known yet; TB_FOREIGN_ASKING: that to which it counts as pending */
    uint64_t generation;        /* accepting: in which they know us */
    enum tb_foreign_phase phase;
    uint32_t host, number; /* of the link at the border there */
    uint32_t port;         /* accepting: where it has come to */
    uint32_t asker, asked; /* the rank that waits for an answer, and to which question; */
    uint64_t until;        /* accepting: until when, or TB_NEVER */
    struct tb_timer timer; /* connecting: until somebody has accepted; accepting: until `until`, or less, until that is
                            * told; from then on link_patience */
    uint32_t port_job;     /* connecting: the job of the port; else 0 */
    uint32_t their_job;    /* accepting: as they say */
    void *mine, *their;    /* parties, as they were left */
    size_t mine_length, their_length;
    bool *untold; /* by host: its agent has not said that it knows of them */
    uint32_t untold_count, first;
    uint32_t telling, named; /* the last NAMES that were told its border, and that this has; */
    uint32_t first_telling;  /* and the first, or 0: of several at a host, frames take the one that had names first */
};

/* So many of ours, from one on, have ended. */
void tb_foreign_links_note_end(struct tb_foreign_links *links, uint32_t first, uint32_t count,
                               enum tb_foreign_ending end);
/* What concerns a border, at a host; NULL: its agent is not there any more. */
struct tb_writer *tb_foreign_border_begin(struct tb_foreign_links *links, uint32_t host, enum tb_border_word word,
                                          uint32_t number);
void tb_foreign_border_end(struct tb_foreign_links *links, uint32_t host);

struct tb_foreign_link *tb_foreign_link_new(struct tb_foreign_links *links, enum tb_foreign_phase phase, uint32_t host,
                                            uint32_t number);        /* NULL: no memory */
void tb_foreign_link_free(struct tb_foreign_link *link, bool close); /* the border is to close it, too */
struct tb_foreign_link *tb_foreign_link_find(const struct tb_foreign_links *links, uint32_t host, uint32_t number);
int tb_foreign_link_keep(const void *bytes, size_t length, void **to, size_t *to_length); /* a copy of a party */
int tb_foreign_link_dial(struct tb_foreign_link *link, const struct tb_key *key, const char *addresses,
                         uint64_t patience); /* TB_ERR_PEER: there is no agent to do it */
/* To the other launcher. */
void tb_foreign_link_tell(struct tb_foreign_link *link, const struct tb_writer *words);
void tb_foreign_link_tell_word(struct tb_foreign_link *link, enum tb_foreign_word word, const char *text);
void tb_foreign_link_tell_lost(struct tb_foreign_link *link, uint32_t first, uint32_t count, const char *text);
/* To whoever waits for it, if somebody still does. */
void tb_foreign_link_answer(struct tb_foreign_link *link, int error, const char *text, const void *bytes,
                            size_t length);

#endif

/* Contexts of an object: who is in each, what is under way in it, and what its members have told each other. */
#ifndef TB_LINK_MULTICAST_CONTEXT_H
#define TB_LINK_MULTICAST_CONTEXT_H

#include "link/multicast.h"

#define TB_MULTICAST_CONTEXT_BUCKETS 64u

/* A member below this one in the tree of the context. */
struct tb_multicast_child {
    uint32_t process;
    uint64_t floor; /* all numbers before this one are finished there and below */
};

/* Somebody to be told by the top of the tree when all numbers before one of these are finished everywhere. */
struct tb_multicast_asker {
    uint32_t process;
    uint64_t least, most;
};

struct tb_multicast_context {
    struct tb_list in_bucket, in_order;
    uint64_t id;
    struct tb_multicast_members members; /* with a list of its own */
    uint32_t *processes;                 /* NULL: the index is the process */
    bool left;
    bool closed; /* nobody keeps anything of it any more, nor wants to know */

    struct tb_list receives, sends;     /* operations */
    struct tb_list sources;             /* messages of this process that others may ask for */
    uint64_t begun;                     /* one more than the largest number that this process has sent */
    uint64_t turns;                     /* messages that it has begun to send */
    uint64_t status_hold, status_until; /* nobody asks before then, if the last status was heard */

    /* Who has finished what. */
    uint64_t floor;  /* here */
    uint64_t wanted; /* somebody wants to know when all have passed this; what was told to the parent: */
    uint64_t told;
    uint64_t tell_at; /* then also less than what is wanted */
    uint32_t parent;  /* process; NOBODY: this is the top */
    struct tb_multicast_child *children;
    uint32_t children_count, children_room;
    struct tb_multicast_asker *askers; /* of the top */
    uint32_t askers_count, askers_room;
    /* What this process keeps: its bytes, what it has asked confirmation for, and when it asks again. */
    uint64_t kept;
    uint64_t newest;  /* one more than the largest number that is kept */
    uint64_t unasked; /* bytes that were kept since it last asked */
    uint64_t asked;   /* for everything before this number */
    uint64_t granted; /* everything before this number */
    uint64_t ask_at, ask_wait;
    uint64_t children_at, children_wait; /* when those that have not told their last are asked for it */
};

struct tb_multicast_contexts {
    struct tb_list buckets[TB_MULTICAST_CONTEXT_BUCKETS];
    struct tb_list order;
};

void tb_multicast_contexts_open(struct tb_multicast_contexts *all);
struct tb_multicast_context *tb_multicast_contexts_find(const struct tb_multicast_contexts *all, uint64_t id);
/* NULL: there is no memory. */
struct tb_multicast_context *tb_multicast_contexts_add(struct tb_multicast_contexts *all, uint64_t id,
                                                       const struct tb_multicast_members *members);
void tb_multicast_contexts_remove(struct tb_multicast_context *c); /* and frees it */

#endif

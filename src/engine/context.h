/* A context as it appears on the wire: one plane of a channel, in which messages are matched. It may exist before its
 * channel, because a message has arrived that was sent by a process that is further; it ends with its channel.
 *
 * The engine's contexts stand in a hash table, touched with the engine locked. */
#ifndef TB_ENGINE_CONTEXT_H
#define TB_ENGINE_CONTEXT_H

#include "base/base.h"

#define TB_CONTEXTS_LIMIT   (1u << 20)
#define TB_CONTEXTS_RESERVE 16u

struct tb_channel;
struct tb_failures;
struct tb_peer;

struct tb_context {
    uint64_t id;
    struct tb_channel *channel;   /* NULL: not known yet */
    struct tb_peer *announcer;    /* whose message has made it before its channel was there, until it is; else NULL */
    struct tb_list arrivals;      /* in order of arrival */
    struct tb_list wild;          /* receives that leave source or match open, in order of posting */
    struct tb_list requests;      /* all unfinished ones */
    struct tb_failures *failures; /* collectives that were given up lately; NULL: none ever */
    struct tb_context *next;      /* in its bucket */
};

/* All zero is an empty table. */
struct tb_contexts {
    struct tb_context *recent; /* the one that was looked for last, or NULL */
    struct tb_context **buckets;
    uint32_t mask, used;
    struct tb_context *reserve[TB_CONTEXTS_RESERVE]; /* spare ones, of which there should be `wanted` */
    uint32_t reserved, wanted;
};

struct tb_context *tb_contexts_find(struct tb_contexts *t, uint64_t id); /* NULL if there is none */
/* Makes it, if it must be from the reserve; NULL: no memory. */
struct tb_context *tb_contexts_get(struct tb_contexts *t, uint64_t id);
/* So many are kept for messages of communicators that are not known here yet, which may come when there is no memory at
 * the moment. False: there is none now. */
bool tb_contexts_reserve(struct tb_contexts *t, uint32_t count);
/* The same in two steps, of which the second cannot fail. A spare one belongs to nobody: it is placed, or freed. */
struct tb_context *tb_contexts_spare(struct tb_contexts *t);
struct tb_context *tb_contexts_place(struct tb_contexts *t, uint64_t id, struct tb_context *spare);
/* Takes it out and frees it. Nothing arrives in it and no request is in it any more. */
void tb_contexts_remove(struct tb_contexts *t, struct tb_context *c);
struct tb_context *tb_contexts_first(const struct tb_contexts *t); /* any of them; NULL: there is none */
/* The one after it in no order in particular; NULL: it was the last. */
struct tb_context *tb_contexts_next(const struct tb_contexts *t, const struct tb_context *c);
/* After all were removed. */
void tb_contexts_close(struct tb_contexts *t);

#endif

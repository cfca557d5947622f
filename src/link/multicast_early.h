/* Early: what came before this process began to receive the message, bounded in bytes. There is one entry for each
 * message of a root; what does not fit is dropped, and asked for later as what is lost. An entry that nobody takes
 * gives way after a while when room is needed.
 *
 * Everybody on a group hears everything, also what is not for him. Of contexts that are not joined, which may be joined
 * soon or never, a quarter of the room is kept, the latest. And whoever is to receive a long message holds up its root
 * until he begins: if more of one comes than a root sends without a report, it is for others. */
#ifndef TB_LINK_MULTICAST_EARLY_H
#define TB_LINK_MULTICAST_EARLY_H

#include "link/multicast.h"

#define TB_MULTICAST_EARLY_BUCKETS 64u
#define TB_MULTICAST_UNTAKEN       16u

struct tb_multicast_early {
    struct tb_list buckets[TB_MULTICAST_EARLY_BUCKETS];
    struct tb_list order; /* entries, the oldest first */
    uint64_t bytes, limit;
    uint64_t unknown_bytes; /* of contexts that were not joined */
    uint64_t short_bytes;   /* of the longest message of which a root sends everything without a report; of a longer */
    uint32_t window;        /* one at most so many fragments */
    /* Messages of which something came that nobody took, lately: a ring. */
    struct tb_multicast_untaken {
        uint64_t context, number;
        uint32_t root;
    } untaken[TB_MULTICAST_UNTAKEN];
    uint32_t untaken_next;
};

struct tb_multicast_early_entry {
    struct tb_list in_bucket, in_order;
    uint64_t context, number, length;
    uint32_t root;
    uint16_t piece;
    uint8_t representation;
    bool rooted;        /* something of it came from its root itself, which counts more than what others say */
    bool unknown;       /* its context was not joined when it began */
    bool foreign;       /* it is for others, and nothing of it is kept */
    bool dropped;       /* something of it did not fit */
    bool heard;         /* a datagram of it that was no repair */
    uint64_t at;        /* when the first came */
    uint32_t top, poll; /* marks of a long message */
    uint32_t to;        /* one beyond the last fragment */
    uint32_t count;     /* of fragments */
    uint64_t bytes;
    struct tb_list fragments, controls;
};

struct tb_multicast_early_fragment {
    struct tb_list in_entry;
    uint32_t fragment, length;
    bool repair;
    char payload[];
};

/* A control message for it. */
struct tb_multicast_early_control {
    struct tb_list in_entry;
    uint32_t from;
    enum tb_multicast_control kind;
    size_t length;
    char bytes[];
};

void tb_multicast_early_open(struct tb_multicast_early *e, uint64_t limit, uint32_t window, uint64_t short_bytes);
void tb_multicast_early_close(struct tb_multicast_early *e);
struct tb_multicast_early_entry *tb_multicast_early_find(const struct tb_multicast_early *e, uint64_t context,
                                                         uint64_t number, uint32_t root);
/* Something came of a message when its number had been passed. */
void tb_multicast_early_miss(struct tb_multicast_early *e, uint64_t context, uint64_t number, uint32_t root);
/* A message with one of these numbers of which something has come and was not taken, or not yet. */
bool tb_multicast_early_among(const struct tb_multicast_early *e, uint64_t context, uint64_t first, uint64_t last,
                              struct tb_multicast_untaken *found);
void tb_multicast_early_drop(struct tb_multicast_early *e, struct tb_multicast_early_entry *entry);
/* Of a context all whose numbers are less. */
void tb_multicast_early_pass(struct tb_multicast_early *e, uint64_t context, uint64_t number);
/* Keeps a fragment; joined: its context is. FAR: there was no room. FOREIGN: it is for others. */
enum tb_multicast_arrival tb_multicast_early_take(struct tb_multicast_early *e, const struct tb_datagram *head,
                                                  const void *payload, size_t length, bool joined, uint64_t now);
/* Keeps the marks of a poll. */
void tb_multicast_early_poll(struct tb_multicast_early *e, const struct tb_datagram *head, uint32_t poll, uint32_t top,
                             bool joined, uint64_t now);
/* Keeps a control message, in place of an earlier one of the same kind and process. */
void tb_multicast_early_control(struct tb_multicast_early *e, const struct tb_datagram *head, uint32_t from,
                                enum tb_multicast_control kind, const void *bytes, size_t length, bool joined,
                                uint64_t now);

#endif

/* Matching: one hash table for exact receives and for arrivals, keyed by context, source rank and match; receives with
 * something open stand in a list of their context, and every arrival stands in one too. The order among equal keys is
 * the order in the bucket; between exact and open receives the number of posting decides.
 *
 * Part of the engine, touched with it locked. Requests and arrivals that stand in it belong to others. */
#ifndef TB_ENGINE_MATCH_H
#define TB_ENGINE_MATCH_H

#include "engine/arrival.h"

struct tb_bucket {
    struct tb_list posted;  /* exact receives */
    struct tb_list arrived; /* arrivals */
};

struct tb_matcher {
    struct tb_bucket *buckets;
    uint32_t mask, used;
    uint64_t orders; /* receives posted so far */
};

int tb_match_open(struct tb_matcher *m);
void tb_match_close(struct tb_matcher *m);
/* The earliest posted receive for a message; stays where it is. */
struct tb_request *tb_match_posted(struct tb_matcher *m, struct tb_context *c, uint32_t source, uint64_t match);
/* The earliest arrived message for a receive; stays where it is. */
struct tb_arrival *tb_match_arrived(struct tb_matcher *m, struct tb_context *c, uint32_t rank, uint64_t match,
                                    uint64_t mask);
void tb_match_post(struct tb_matcher *m, struct tb_context *c, struct tb_request *r);
void tb_match_unpost(struct tb_matcher *m, struct tb_request *r);
void tb_match_arrive(struct tb_matcher *m, struct tb_context *c, struct tb_arrival *a);
void tb_match_take(struct tb_matcher *m, struct tb_arrival *a);

#endif

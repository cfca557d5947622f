/* A sealed store: takes something long that the launcher tells in pieces, and makes one sealed memfd of it, which all
 * ranks of the host map. What it is, whoever owns the store knows; it may come in several versions. Owned by the agent;
 * one thread. */
#ifndef TB_AGENT_SEALED_STORE_H
#define TB_AGENT_SEALED_STORE_H

#include "job/job.h"

struct tb_sealed_store {
    const char *name; /* of the memfd */
    const char *what; /* it is, for messages */
    uint64_t limit;   /* bytes */
    int coming;       /* memfd; -1: nothing of it is here */
    uint32_t version;
    uint64_t bytes, have; /* in all, and so far */
};

void tb_sealed_store_init(struct tb_sealed_store *store, const char *name, const char *what, uint64_t limit);
/* A frame of the launcher's: u32 version, u64 bytes in all, u64 offset, bytes. The version must be above `newest`. When
 * it is whole, *descriptor is the caller's, sealed, and `version` and `bytes` are its; else it is -1. */
int tb_sealed_store_take(struct tb_sealed_store *store, struct tb_reader *r, uint32_t newest, int *descriptor);
void tb_sealed_store_close(struct tb_sealed_store *store); /* forgets what is not whole */

#endif

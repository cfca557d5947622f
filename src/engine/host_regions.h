/* Which memory a process has attached to a dynamic window, told to the other ranks of its host: a short list in memory
 * that they share, written by the one, read by all. What readers do not find there, because it does not fit, they do
 * not know of. One that comes while it is being changed looks again, but does not wait for long: whoever changes it may
 * be stopped. All zero it is empty. */
#ifndef TB_ENGINE_HOST_REGIONS_H
#define TB_ENGINE_HOST_REGIONS_H

#include <stdatomic.h>

#include "base/base.h"

#define TB_HOST_REGIONS 63u

struct tb_host_regions {
    _Atomic uint64_t changes; /* odd while one is made */
    _Atomic uint64_t count;
    struct {
        _Atomic uint64_t from, to; /* addresses; the latter of the first byte behind it */
    } regions[TB_HOST_REGIONS];
};

/* By the process itself, one thread at a time. False: it is one too many, and is left out. */
bool tb_host_regions_add(struct tb_host_regions *table, uint64_t from, uint64_t to);
void tb_host_regions_remove(struct tb_host_regions *table, uint64_t from);
/* Whether all of these bytes are in one of them, or in several that lie side by side. */
bool tb_host_regions_have(const struct tb_host_regions *table, uint64_t at, uint64_t length);

#endif

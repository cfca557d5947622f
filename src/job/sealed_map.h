/* What an agent keeps for all ranks of its host in a sealed memfd, as a rank sees it: mapped, read only. */
#ifndef TB_JOB_SEALED_MAP_H
#define TB_JOB_SEALED_MAP_H

#include "base/base.h"

/* Of 1 to `most` bytes. `what` it is, is for messages. The descriptor stays the caller's. */
int tb_sealed_map(int descriptor, uint64_t most, const char *what, void **bytes, size_t *length);
void tb_sealed_unmap(void *bytes, size_t length); /* NULL: nothing */

#endif

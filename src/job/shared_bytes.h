/* Bytes that are too many for a packet between agent and rank: a memfd travels along with it. */
#ifndef TB_JOB_SHARED_BYTES_H
#define TB_JOB_SHARED_BYTES_H

#include "base/base.h"

#define TB_SHARED_BYTES_LIMIT (8u << 20) /* they fit into a control frame, too */

int tb_shared_bytes_put(const void *bytes, size_t length, int *descriptor);
/* Allocated, as they are now: whoever sent them may still change them. The descriptor stays the caller's. */
int tb_shared_bytes_get(int descriptor, void **bytes, size_t *length);

#endif

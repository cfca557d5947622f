/* Memory that ranks of this host share and write to, as a file without a name. */
#ifndef TB_AGENT_RANK_MEMORY_H
#define TB_AGENT_RANK_MEMORY_H

#include "base/base.h"

/* Zero at first, and nobody can change its length. On error *descriptor may be one all the same. */
int tb_rank_memory_make(const char *name, uint64_t bytes, int *descriptor);
/* What two ranks share: for each a descriptor of their memory, and one of two connected sockets; all are the caller's.
 * On error there are none. `host` is the name of this one. */
int tb_rank_memory_pair(const char *host, int memories[2], int sockets[2]);

#endif

/* A lock in memory that processes of a host share, for what is done in no time: who wants it looks again and again, and
 * then sleeps until it is given back. All zero it is free. Whoever holds it is known by a number below 2^30, so that it
 * can be taken from one that has died with it. */
#ifndef TB_ENGINE_HOST_MUTEX_H
#define TB_ENGINE_HOST_MUTEX_H

#include <stdatomic.h>

#include "base/base.h"

/* `is_dead` is asked now and then, while somebody has it for long. */
void tb_host_mutex_enter(_Atomic uint32_t *mutex, uint32_t who, bool (*is_dead)(void *context, uint32_t who),
                         void *context);
void tb_host_mutex_leave(_Atomic uint32_t *mutex);

/* Whether a process of this host is there no more, or only until somebody asks how it ended. */
bool tb_host_mutex_is_dead(uint32_t process);

#endif

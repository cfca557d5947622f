/* Whether a host has memory for a window. Memory that processes share is found page by page when it is touched, and a
 * process that touches what is not there is ended; so what cannot be there is refused before. */
#ifndef TB_ENGINE_WINDOW_ROOM_H
#define TB_ENGINE_WINDOW_ROOM_H

#include "base/base.h"

/* Whether so many bytes more can be used here: they are not more than the host has available, nor than a group of
 * processes (cgroup) that this one is in may have at all. True if nobody can tell. What was promised before and has not
 * been touched is not known. */
bool tb_window_room_has(uint64_t bytes);

/* The same for files of that content, for a test: what `meminfo` says is available, and the limit that a file of a
 * group has; UINT64_MAX: it says none. */
uint64_t tb_window_room_available(const char *meminfo);
uint64_t tb_window_room_limit(const char *limit);

#endif

/* Which way a branch usually goes, on the paths of short messages. */
#ifndef TB_ENGINE_LIKELY_H
#define TB_ENGINE_LIKELY_H

#define TB_LIKELY(x)   __builtin_expect(!!(x), 1)
#define TB_UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif

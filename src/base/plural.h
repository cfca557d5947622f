/* Singular and plural in messages: "1 rank", "4 ranks". */
#ifndef TB_BASE_PLURAL_H
#define TB_BASE_PLURAL_H

#include <stdint.h>

static inline const char *tb_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

#endif

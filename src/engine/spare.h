/* Memory for what others send before it is received, when the process has none: a message that has come cannot be sent
 * back, and whoever sent it would be lost. It bridges a shortage that passes; credit bounds what may come at all.
 * Pages that nobody has needed cost nothing. Part of the engine, touched with it locked. */
#ifndef TB_ENGINE_SPARE_H
#define TB_ENGINE_SPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TB_SPARE_BYTES ((size_t)1 << 20)

struct tb_spare {
    char *memory; /* TB_SPARE_BYTES */
    size_t used;  /* from its beginning on; none again when nothing is out */
    uint32_t out;
};

bool tb_spare_open(struct tb_spare *spare); /* false: no memory */
void tb_spare_close(struct tb_spare *spare);
/* When malloc has had nothing; with any content. NULL: here is not as much, either. */
void *tb_spare_take(struct tb_spare *spare, uint64_t bytes);
void tb_spare_free(struct tb_spare *spare, void *memory); /* taken here, or from malloc; NULL is fine */

#endif

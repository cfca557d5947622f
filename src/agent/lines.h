/* Lines: gathers a rank's output into whole lines, so that lines of different ranks do not mix. Belongs to its output.
 */
#ifndef TB_AGENT_LINES_H
#define TB_AGENT_LINES_H

#include "base/base.h"

#define TB_LINES_LIMIT 65536u /* an unfinished line that is longer is passed on in pieces */

struct tb_lines {
    char *bytes; /* the unfinished line; NULL: none */
    size_t length, room;
    uint64_t since; /* when its first piece came, or its end was last seen to be under way */
};

/* Called with one or two pieces that belong together. */
typedef void tb_lines_emit(void *context, const char *first, size_t first_length, const char *second,
                           size_t second_length);

void tb_lines_add(struct tb_lines *lines, const char *bytes, size_t length, uint64_t now, tb_lines_emit *emit,
                  void *context);
void tb_lines_flush(struct tb_lines *lines, tb_lines_emit *emit, void *context); /* passes on what is unfinished */

#endif

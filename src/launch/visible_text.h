/* Visible text: what agents, ranks and remote shells say, as the launcher may print it in its own messages. Whoever
 * says something there must not be able to move the cursor, to change colours or to give the terminal orders. Keeps
 * nothing; any thread. */
#ifndef TB_LAUNCH_VISIBLE_TEXT_H
#define TB_LAUNCH_VISIBLE_TEXT_H

#include <stddef.h>

/* Of each byte of a text comes at most so many. */
#define TB_VISIBLE_TEXT_GROWTH 4u

/* Copies the text; control characters other than tab and newline, and bytes that are no UTF-8, become \xNN. Always ends
 * with a zero; what does not fit is left out, but nothing is cut in its midst. */
void tb_visible_text(const char *text, char *to, size_t size);

#endif

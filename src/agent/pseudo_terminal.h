/* Pseudo-terminal: a standard output that a rank takes for a terminal, for --pty. Bytes pass it unchanged. The two ends
 * are the caller's; reading from the agent's fails with EIO when nobody has the other one open any more. */
#ifndef TB_AGENT_PSEUDO_TERMINAL_H
#define TB_AGENT_PSEUDO_TERMINAL_H

#include "base/base.h"

/* ends[0] is the agent's, ends[1] the rank's; `size` as in struct tb_setup. TB_ERR_SYSTEM: errno says why, no story,
 * and what was opened stays in `ends`. */
int tb_pseudo_terminal_open(int ends[2], uint32_t size);

#endif

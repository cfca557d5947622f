/* Signals in messages. */
#ifndef TB_LAUNCH_SIGNAL_NAME_H
#define TB_LAUNCH_SIGNAL_NAME_H

#include <stddef.h>

void tb_signal_name(int number, char *text, size_t size); /* "signal 11 (SIGSEGV, segmentation fault)" */

#endif

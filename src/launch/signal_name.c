#include "launch/signal_name.h"

#include <stdio.h>
#include <string.h>

void tb_signal_name(int number, char *text, size_t size)
{
    const char *short_name = sigabbrev_np(number), *words = sigdescr_np(number);
    if (short_name != NULL && words != NULL)
        snprintf(text, size, "signal %d (SIG%s, %s)", number, short_name, words);
    else
        snprintf(text, size, "signal %d", number);
}

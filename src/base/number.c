#include "base/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

unsigned tb_number_shift(char unit)
{
    switch (tolower((unsigned char)unit)) {
    case 'k':
        return 10;
    case 'm':
        return 20;
    case 'g':
        return 30;
    default:
        return 0;
    }
}

const char *tb_number_read(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || errno != 0)
        return NULL;
    unsigned shift = tb_number_shift(*end);
    if (number > UINT64_MAX >> shift)
        return NULL;
    *value = (uint64_t)number << shift;
    return end + (shift > 0);
}

int tb_number_print(uint64_t value, char *text, size_t size)
{
    int unit = 0;
    for (; value > 0 && value % 1024 == 0 && unit < 3; unit++)
        value /= 1024;
    return snprintf(text, size, "%llu%.*s", (unsigned long long)value, unit > 0, &"-kmg"[unit]);
}

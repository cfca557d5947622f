#include "base/base.h"

#include <time.h>

uint64_t tb_clock_now_real(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now(void *context)
{
    return tb_clock_now_real();
}

const struct tb_clock tb_clock_real = {.now = now};

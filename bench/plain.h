/* What the small programs of this folder that use nothing but the system have in common. */
#ifndef BENCH_PLAIN_H
#define BENCH_PLAIN_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Seconds. */
static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif

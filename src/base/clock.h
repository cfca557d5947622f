/* Time in nanoseconds from a clock that only goes forward. Protocol code is given a struct tb_clock, so that it can run
 * in virtual time; tb_clock_real is the machine's. */
#ifndef TB_BASE_CLOCK_H
#define TB_BASE_CLOCK_H

#include <stdint.h>

#define TB_NEVER UINT64_MAX

struct tb_clock {
    uint64_t (*now)(void *context);
    void *context;
};

extern const struct tb_clock tb_clock_real;

uint64_t tb_clock_now_real(void);

static inline uint64_t tb_clock_now(const struct tb_clock *clock)
{
    return clock->now(clock->context);
}

#endif

/* How late frames came out: their number by microseconds, exact up to 10 ms. Owned by the emulator. */
#ifndef TB_LAB_EMULATOR_LATENESS_H
#define TB_LAB_EMULATOR_LATENESS_H

#include <stdint.h>

#define TB_LATENESS_STEPS 10000u
#define TB_LATENESS_BAR   300000u /* ns; a frame that is later makes what was measured doubtful */

struct tb_lateness {
    uint64_t count, over, max; /* over: later than the bar */
    uint64_t steps[TB_LATENESS_STEPS + 1];
};

void tb_lateness_note(struct tb_lateness *lateness, uint64_t ns);
/* Nanoseconds that so many of a thousand frames were not later than; rounded up to a microsecond, beyond the steps the
 * maximum. */
uint64_t tb_lateness_quantile(const struct tb_lateness *lateness, uint32_t of_a_thousand);

#endif

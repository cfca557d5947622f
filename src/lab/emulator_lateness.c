#include "lab/emulator_lateness.h"

void tb_lateness_note(struct tb_lateness *lateness, uint64_t ns)
{
    uint64_t step = ns / 1000;
    lateness->count++;
    lateness->steps[step < TB_LATENESS_STEPS ? step : TB_LATENESS_STEPS]++;
    if (ns > TB_LATENESS_BAR)
        lateness->over++;
    if (ns > lateness->max)
        lateness->max = ns;
}

uint64_t tb_lateness_quantile(const struct tb_lateness *lateness, uint32_t of_a_thousand)
{
    uint64_t seen = 0, wanted = (lateness->count * of_a_thousand + 999) / 1000;
    for (uint32_t i = 0; i < TB_LATENESS_STEPS; i++) {
        seen += lateness->steps[i];
        if (seen >= wanted)
            return wanted == 0 ? 0 : (i + 1) * (uint64_t)1000;
    }
    return lateness->max;
}

#include "transport/mcast/faults.h"

#include "transport/fault/fault_items.h"

#include <stdlib.h>

#define HOLD_NS     UINT64_C(2000000) /* what waits to be overtaken goes on after this */
#define BURST_LIMIT 64u
#define NOBODY      UINT64_MAX

struct tb_mcast_held {
    struct tb_mcast_arrival arrival;
    union tb_mcast_address from;
    uint64_t due;       /* when it goes on at the latest */
    uint64_t overtaken; /* it goes on when so many have come */
    uint8_t payload[];
};

/* What happens to a datagram. */
struct mcast_fate {
    bool lost;
    uint32_t late, again; /* it comes, or comes a second time, behind so many others; 0: at once, or only once */
};

int tb_mcast_faults_open(struct tb_mcast_faults *f, const char *specification, uint32_t self,
                         const struct tb_clock *clock, const struct tb_mcast_upcalls *up)
{
    double loss = 0, members = 1;
    uint64_t burst = 1, deaf = NOBODY, only = NOBODY, seed = 1;
    *f = (struct tb_mcast_faults){.clock = clock, .up = *up};
    const struct tb_fault_item items[] = {{"loss", .share = &loss},        {"burst", .number = &burst},
                                          {"repeat", .share = &f->repeat}, {"reorder", .share = &f->reorder},
                                          {"deaf", .number = &deaf},       {"members", .share = &members},
                                          {"only", .number = &only},       {"seed", .number = &seed}};
    int rc =
        tb_fault_items_read(items, sizeof items / sizeof items[0],
                            "loss=1%,burst=3,repeat=1%,reorder=1%,deaf=4,members=50%,only=4,seed=1", specification);
    if (rc != TB_OK)
        return rc;
    if (burst < 1 || burst > BURST_LIMIT)
        return tb_error(TB_ERR_ARGUMENT, "fault: burst is a number from 1 to %u", BURST_LIMIT);
    tb_random_seed(&f->random, seed * UINT64_C(0x9e3779b97f4a7c15) ^ self);
    bool spared = tb_random_unit(&f->random) >= members || (only != NOBODY && only != self);
    f->burst = (uint32_t)burst;
    /* With a share p of beginnings, one in 1/p + burst - 1 is one, and burst of these are lost. */
    f->begin = spared ? 0 : loss / ((double)burst - ((double)burst - 1) * loss);
    f->repeat = spared ? 0 : f->repeat;
    f->reorder = spared ? 0 : f->reorder;
    f->deaf = deaf == self;
    return TB_OK;
}

void tb_mcast_faults_close(struct tb_mcast_faults *f)
{
    for (uint32_t i = 0; i < f->held_count; i++)
        free(f->held[i]);
    f->held_count = 0;
}

/* Every datagram draws the same number of times, so that one fault's share does not change where another strikes. */
static struct mcast_fate fate_draw(struct tb_mcast_faults *f)
{
    struct tb_random *r = &f->random;
    bool begins = tb_random_unit(r) < f->begin, repeats = tb_random_unit(r) < f->repeat;
    bool reorders = tb_random_unit(r) < f->reorder;
    uint64_t dice = tb_random_next(r);
    if (f->losing == 0 && begins)
        f->losing = f->burst;
    bool loses = f->losing > 0;
    f->losing -= loses;
    return (struct mcast_fate){.lost = loses || f->deaf,
                               .late = reorders ? 1 + (uint32_t)(dice % 3) : 0,
                               .again = repeats ? 1 + (uint32_t)(dice / 3 % 4) : 0};
}

/* False: there is no room or no memory for it. */
static bool hold(struct tb_mcast_faults *f, const struct tb_mcast_arrival *arrival, uint32_t behind)
{
    struct tb_mcast_held *h = f->held_count < TB_MCAST_HELD_LIMIT ? malloc(sizeof *h + arrival->length) : NULL;
    if (h == NULL)
        return false;
    *h = (struct tb_mcast_held){.arrival = *arrival,
                                .from = *arrival->from,
                                .due = tb_clock_now(f->clock) + HOLD_NS,
                                .overtaken = f->passed + behind};
    if (arrival->length > 0)
        memcpy(h->payload, arrival->payload, arrival->length);
    h->arrival.payload = h->payload;
    h->arrival.from = &h->from;
    h->arrival.placed = false;
    f->held[f->held_count++] = h;
    return true;
}

void tb_mcast_faults_release(struct tb_mcast_faults *f, uint64_t now)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->held_count; i++) {
        struct tb_mcast_held *h = f->held[i];
        if (h->due > now && h->overtaken > f->passed) {
            f->held[kept++] = h;
            continue;
        }
        f->up.datagram(f->up.context, &h->arrival);
        free(h);
    }
    f->held_count = kept;
}

void tb_mcast_faults_datagram(void *faults, const struct tb_mcast_arrival *arrival)
{
    struct tb_mcast_faults *f = faults;
    struct mcast_fate fate = fate_draw(f);
    f->passed++;
    if (fate.lost) {
        f->lost++;
    } else {
        bool late = fate.late > 0 && hold(f, arrival, fate.late);
        f->reordered += late;
        f->repeated += fate.again > 0 && hold(f, arrival, fate.late + fate.again);
        if (!late)
            f->up.datagram(f->up.context, arrival);
    }
    if (f->held_count > 0)
        tb_mcast_faults_release(f, tb_clock_now(f->clock));
}

uint64_t tb_mcast_faults_deadline(const struct tb_mcast_faults *f)
{
    uint64_t due = TB_NEVER;
    for (uint32_t i = 0; i < f->held_count; i++)
        due = f->held[i]->due < due ? f->held[i]->due : due;
    return due;
}

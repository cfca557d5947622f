/* Drivers carry out composite steps: each is a table, and the engine has an array of them (driver.c), in the order of
 * enum tb_driver. What a driver needs on a channel it makes when that is opened. A drive is one composite step of one
 * run on its way; it stands in memory of whoever runs the step, which has room for any driver's. The executor, channels
 * and progress know no more of common memory, or whatever else a driver uses, than is here.
 *
 * Everything is called with the engine locked. */
#ifndef TB_ENGINE_DRIVER_H
#define TB_ENGINE_DRIVER_H

#include "engine/engine.h"

#define TB_DRIVERS_LIMIT 4u
#define TB_DRIVE_WORDS   64u /* room for a drive with what its driver adds */

struct tb_driver_table;
struct tb_failure;
struct tb_message;
struct tb_peer;

/* Places that a collective has with a driver: numbers, the same on all ranks, since they begin collectives in the same
 * order. It stands in memory of whoever runs the collective, and the driver refers to it until all are finished. */
struct tb_reserved {
    struct tb_list in_order;
    uint64_t first;
    uint32_t left; /* a bit for each place that is not finished here */
};

/* What whoever starts it sets, but for the last part. */
struct tb_drive {
    struct tb_channel *channel;
    const struct tb_program *program;
    const struct tb_step *step;
    const struct tb_binding *binding; /* stays until the end */
    uint32_t collective;              /* its number on the channel */
    uint32_t ready;                   /* items that may be begun, of those of the step */
    struct tb_reserved *reserved;     /* NULL: it is all of its collective, and takes the next place */
    /* `done` has grown, or `error` is set; called neither from start nor from extend. */
    void (*moved)(struct tb_drive *d);

    uint32_t done; /* items that are finished; when all are, it is over */
    int error;     /* then it is over, too */
    uint64_t place;
};

static inline bool tb_drive_over(const struct tb_drive *d)
{
    return d->error != TB_OK || d->done == d->step->items;
}

union tb_drive_room {
    struct tb_drive drive; /* with which the driver's own struct begins */
    uint64_t words[TB_DRIVE_WORDS];
};

struct tb_driver_table {
    const char *name;
    bool numbered; /* its places follow from the number of a collective: a program may have more than others count on */
    bool standby;  /* `advance` calls nothing of the program's, so that a standby may do it (standby.h) */
    bool meets;    /* by it the ranks of each host have steps among themselves */
    /* Whoever makes up a context does so for its channel before anybody hears of it, or takes it back; `first`: for one
     * that everyone on the host knows. NULL: it does nothing then, as with lose, hear and overhear below. */
    void (*claim)(struct tb_engine *e, uint64_t context, bool first);
    void (*unclaim)(struct tb_engine *e, uint64_t context);
    /* What it needs for a channel whose context is not known yet; NULL: nothing, and it carries out no step here. */
    int (*open)(struct tb_engine *e, const struct tb_channel_config *config, void **state);
    /* The context is known, and the channel is as large as when it was opened, or, if all of its ranks are on one host,
     * has fewer ranks. What turns out not to be needed is closed, *state is then NULL, as it may have been before.
     * Needs no memory. NULL: nothing is to be done. */
    void (*enter)(struct tb_engine *e, const struct tb_channel_config *config, void **state);
    /* It cannot be opened here, while others may have opened it. NULL: nothing is to be done. */
    void (*pass)(struct tb_engine *e, const struct tb_channel_config *config);
    /* If the ranks are on several hosts, or it is for a collective that is kept, it is proposed first: whether this
     * host has what that needs is asked of all ranks, and then all are told whether all hosts have it. If not, it is
     * closed. Without these calls nothing is proposed. */
    bool (*proposed)(const void *state);
    bool (*provides)(const void *state);
    int (*agree)(void *state, bool all);
    void (*close)(void *state);

    /* A collective of this number and operation begins, or is refused: takes so many places, of which all ranks take
     * the same. */
    void (*reserve)(void *state, struct tb_reserved *r, uint32_t places, uint32_t collective, uint8_t operation);
    /* These of them, a bit for each, will not be started here. */
    void (*forgo)(void *state, struct tb_reserved *r, uint32_t places);
    /* Steps of one collective are started in any order, when their first item is ready; `extend`: more of them are.
     * True: it is over; where the caller has nothing else to do (idle) that is worth a while of looking. */
    bool (*start)(struct tb_drive *d, void *state, bool idle);
    bool (*extend)(struct tb_drive *d, void *state);
    /* Not all of its items will be ready, because of this error. It is soon over. */
    void (*stop)(struct tb_drive *d, int error);
    /* Everything that is on its way; thorough: before a sleep. How much was done. */
    int (*advance)(struct tb_list *active, bool thorough);
    /* While something is on its way, what `advance` waits for besides frames: a descriptor that is readable when there
     * is something to do (-1: none), and the next timer (TB_NEVER: none). NULL: nothing. A driver with a descriptor
     * says tb_engine_stir when something is on its way again, and when it is another one, which was opened before the
     * first was closed. */
    int (*descriptor)(const struct tb_list *active);
    uint64_t (*deadline)(const struct tb_list *active);

    /* Before the end of the process: whether nothing that it has on its way is needed by others any more; and the end.
     * NULL: nothing ever is, and nothing is to be done. */
    bool (*flushed)(const struct tb_list *active);
    void (*end)(struct tb_list *active);

    void (*count)(const struct tb_list *active, struct tb_counters *counters); /* NULL: nothing */
    /* A process is gone, in good order too, whether or not a channel is left that has it. NULL: nothing is to be done.
     */
    void (*miss)(struct tb_list *active, const struct tb_peer *peer);

    /* Whether others must be told that it has failed: those who take part know, but there may be others. */
    bool (*concerns)(const struct tb_drive *d, const void *state);
    /* A process of the channel is gone. */
    void (*lose)(void *state, const struct tb_peer *peer);
    /* Another rank has given a collective up: its steps end. */
    void (*give_up)(void *state, const struct tb_failure *f);
    /* A message of a collective that nobody here waits for. */
    void (*hear)(void *state, const struct tb_message *m);
    /* Whether, as the collective of this number, in which this rank waits for a message, another one has called another
     * operation here: it may never send one. *rank, *theirs: who, and what. Then it has the same places as there. Asked
     * before a sleep. */
    bool (*overhear)(void *state, uint32_t collective, uint8_t operation, uint32_t *rank, uint8_t *theirs);
    /* Who holds it up. */
    void (*describe)(const struct tb_drive *d, struct tb_wait *wait);
};

extern const struct tb_driver_table *const tb_drivers[]; /* up to NULL */

/* Of a channel: a driver that has something there. */
struct tb_driven {
    const struct tb_driver_table *driver;
    void *state; /* NULL: it has not, and driver is NULL, too */
};

/* What drivers have for a collective of a channel that is kept: places of its own, since it may be started in another
 * order than on other ranks. */
struct tb_kept {
    struct tb_list in_channel;
    struct tb_channel *channel;
    struct tb_driven drivers[TB_DRIVERS_LIMIT], proposed[TB_DRIVERS_LIMIT];
};

void tb_kept_free(struct tb_kept *kept);

/* Of an engine. */
struct tb_driving {
    const struct tb_driver_table *const *tables;
    uint32_t count;
    struct tb_list active[TB_DRIVERS_LIMIT]; /* what each has on its way, as it likes */
};

void tb_driving_open(struct tb_driving *driving, const struct tb_driver_table *const *tables);

static inline int tb_driving_advance(struct tb_driving *driving, bool thorough)
{
    int n = 0;
    for (uint32_t i = 0; i < driving->count; i++)
        if (!tb_list_empty(&driving->active[i]))
            n += driving->tables[i]->advance(&driving->active[i], thorough);
    return n;
}

/* The descriptor of one of them, -1: none; and the next timer of all, or only of those that a standby may advance,
 * TB_NEVER: none. */
int tb_driving_descriptor(const struct tb_driving *driving, uint32_t driver);
uint64_t tb_driving_deadline(const struct tb_driving *driving, bool standby);

bool tb_driving_flushed(const struct tb_driving *driving);
void tb_driving_miss(struct tb_driving *driving, const struct tb_peer *peer);
void tb_driving_count(const struct tb_driving *driving, struct tb_counters *counters);
void tb_driving_end(struct tb_driving *driving);

/* All drivers of a channel, whose array of TB_DRIVERS_LIMIT it is, and a second one of what is only proposed. */
int tb_driven_open(struct tb_driven *all, struct tb_driven *proposed, const struct tb_driving *driving,
                   struct tb_engine *e, const struct tb_channel_config *config);
/* The context is known. Whether there is something in the first. */
bool tb_driven_enter(struct tb_driven *all, struct tb_driven *proposed, const struct tb_driving *driving,
                     struct tb_engine *e, const struct tb_channel_config *config);
void tb_driven_pass(const struct tb_driving *driving, struct tb_engine *e, const struct tb_channel_config *config);
void tb_driven_close(struct tb_driven *all);
/* A bit for each driver that has here what it has proposed, or has proposed nothing. Then, told the bits that everyone
 * has set, what was agreed on goes to the first array, and the rest is closed; *any: something was, here or elsewhere.
 */
uint64_t tb_driven_provides(const struct tb_driven *proposed, const struct tb_driving *driving);
int tb_driven_agree(struct tb_driven *all, struct tb_driven *proposed, const struct tb_driving *driving,
                    uint64_t agreed, bool *any);
/* Whether the ranks of each host meet by a driver that has something here, or by one of those that were agreed on. */
bool tb_driven_meets(const struct tb_driven *all);
bool tb_driving_meets(const struct tb_driving *driving, uint64_t agreed);
/* A collective of so many places begins, of which it uses some: bits for each driver. Then those that it will not start
 * after all. Arrays of TB_DRIVERS_LIMIT. */
void tb_driven_reserve(const struct tb_driven *all, struct tb_reserved *reserved, const struct tb_binding *binding,
                       uint32_t places, const uint32_t *used);
void tb_driven_forgo(const struct tb_driven *all, struct tb_reserved *reserved, const uint32_t *left);
/* A collective of so many is not begun here. */
void tb_driven_skip(const struct tb_driven *all, const struct tb_binding *binding, uint32_t places);
void tb_driven_lose(const struct tb_driven *all, const struct tb_peer *peer);
void tb_driven_give_up(const struct tb_driven *all, const struct tb_failure *f);
void tb_driven_hear(const struct tb_driven *all, const struct tb_message *m);
bool tb_driven_overhear(const struct tb_driven *all, uint32_t collective, uint8_t operation, uint32_t *rank,
                        uint8_t *theirs);

#endif

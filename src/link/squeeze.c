#include "link/squeeze_press.h"

#include <stdlib.h>

#define TRY_LEAST     1024u /* shorter frames say nothing about the data */
#define TRY_MOST      (16u << 10)
#define TRY_PAUSE     128u  /* times what a try has taken, at least; doubled each time that it brings nothing ... */
#define TRY_PAUSE_END 1024u /* ... up to this */
#define PAUSE_MOST    500000000u /* nanoseconds: a clock that shows others at work must not silence it for long */
#define OUTLIER       4.0        /* times what compressing takes usually: not its fault */
#define SHRINKS       0.95       /* of its length, or less: then data is worth compressing */
#define BETTER        0.97       /* of what the present width leaves: then another one is worth it */
#define BLUNT_END     4u         /* blocks that did not shrink, one after the other, until it stops */
#define IDLE_END      64u        /* blocks that did not wait for the link, likewise */
#define NEEDED        0.5        /* of the link's time, if frames went as they are: then it is needed */
#define STEADY        128u       /* blocks that it has been on for, until the next pause is a short one again */
#define LOOK_EVERY    128u       /* blocks until the width is chosen anew, */
#define LOOK_SOON     8u         /* or so many, if the data changes */
#define CHANGE        0.15       /* of the ratio */
#define LEVEL_QUICK   3
#define LEVEL_SMALL   6
/* What a quick try costs a byte, times this, is what the levels cost: roughly, until they have been measured. */
#define COST_QUICK 2.0
#define COST_SMALL 5.0
/* A link that takes so many times longer than the better level leaves the processor to others. */
#define SLOW_LINK 4.0

struct tb_squeeze {
    struct tb_squeeze_config config;
    const struct tb_press_table *table;
    void *press; /* made by the first try */
    bool on;
    bool fresh; /* the next compressed block begins a history */
    int level;
    uint8_t width; /* of elements that are transposed: 1 (not at all), 4 or 8 bytes */

    uint64_t mark;  /* since when `since` bytes have been packed while the link was busy */
    uint64_t since; /* bytes on the wire */
    double link;    /* nanoseconds that the link takes for a byte; 0: it has never refused */
    double cost;    /* nanoseconds that compressing takes for a plain byte */
    double ratio;   /* of late: bytes on the wire for a plain byte */
    uint64_t next_try, pause;
    uint64_t idle_since, idle_plain;      /* when idle was 0 last, and the plain bytes at that time */
    uint32_t blunt, idle, looked, steady; /* blocks, counted up */

    struct tb_squeeze_counters counters;
    uint8_t spread[TB_SQUEEZE_PLAIN];
    uint8_t block[TB_SQUEEZE_HEADER + TB_SQUEEZE_WIRE];
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

int tb_squeeze_offer(const char *wish, uint32_t *features)
{
    uint32_t zstd = tb_press_zstd() != NULL ? TB_FEATURE_ZSTD : 0, lz4 = tb_press_lz4() != NULL ? TB_FEATURE_LZ4 : 0;
    *features = 0;
    if (strcmp(wish, "off") == 0)
        return TB_OK;
    if (strcmp(wish, "auto") == 0)
        *features = zstd | lz4;
    else if (strcmp(wish, "zstd") == 0)
        *features = zstd;
    else if (strcmp(wish, "lz4") == 0)
        *features = lz4;
    else
        return tb_error(TB_ERR_ARGUMENT, "compress=%s: it can be auto, off, lz4 or zstd", wish);
    if (*features == 0 && strcmp(wish, "auto") != 0)
        return tb_error(TB_ERR_UNSUPPORTED, "compress=%s: this Tombolo was built without it", wish);
    return TB_OK;
}

int tb_squeeze_open(struct tb_squeeze **squeeze, const struct tb_squeeze_config *config)
{
    struct tb_squeeze *s = *squeeze = calloc(1, sizeof(*s));
    if (s == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a stream between gateways");
    s->config = *config;
    s->width = 1;
    if ((config->features & TB_FEATURE_ZSTD) != 0)
        s->table = tb_press_zstd();
    if (s->table == NULL && (config->features & TB_FEATURE_LZ4) != 0)
        s->table = tb_press_lz4();
    return TB_OK;
}

static void turn_off(struct tb_squeeze *s)
{
    if (!s->on)
        return;
    s->on = false;
    s->config.group->active--;
}

void tb_squeeze_close(struct tb_squeeze *s)
{
    if (s == NULL)
        return;
    turn_off(s);
    if (s->press != NULL)
        s->table->out_close(s->press);
    free(s);
}

const struct tb_squeeze_counters *tb_squeeze_count(const struct tb_squeeze *s)
{
    return &s->counters;
}

/* ---- trying ------------------------------------------------------------------------------------------------------ */

static double mean(double old, double sample, double weight)
{
    return old == 0 ? sample : old + (sample - old) * weight;
}

/* What a piece of payload shrinks to when elements of this width are transposed; its own length if not at all. */
static size_t try_width(struct tb_squeeze *s, const uint8_t *piece, size_t length, uint8_t width)
{
    if (width > 1) {
        tb_spread_do(s->spread, piece, length, width);
        piece = s->spread;
    }
    size_t size = s->table->out_try(s->press, piece, length, s->block, sizeof(s->block));
    return size > 0 && size < length ? size : length;
}

/* Chooses the width for data such as this frame's. Returns what is left of a byte, 1 if nothing is gained; *took: what
 * it has cost, *each: for a byte. */
static double try_frame(struct tb_squeeze *s, const uint8_t *frame, size_t length, uint64_t *took, double *each)
{
    static const uint8_t widths[] = {1, 4, 8};
    size_t head = length > TB_SQUEEZE_HEAD + TRY_LEAST ? TB_SQUEEZE_HEAD : 0;
    const uint8_t *piece = frame + head;
    length = length - head < TRY_MOST ? length - head : TRY_MOST;
    uint64_t begin = tb_clock_now(s->config.work);
    size_t sizes[3], best = s->width == 4 ? 1 : s->width == 8 ? 2 : 0;
    for (size_t i = 0; i < 3; i++)
        sizes[i] = try_width(s, piece, length, widths[i]);
    size_t present = sizes[best];
    for (size_t i = 0; i < 3; i++)
        if (sizes[i] < sizes[best] && (double)sizes[i] < BETTER * (double)present)
            best = i;
    s->width = widths[best];
    *took = tb_clock_now(s->config.work) - begin;
    *each = (double)*took / (double)(3 * length);
    s->counters.tries++;
    s->counters.nanoseconds += *took;
    return (double)sizes[best] / (double)length;
}

/* After a try that has brought nothing, or was not worth it. */
static void wait_longer(struct tb_squeeze *s, uint64_t now, uint64_t took)
{
    s->pause = s->pause < TRY_PAUSE ? TRY_PAUSE : s->pause < TRY_PAUSE_END ? 2 * s->pause : TRY_PAUSE_END;
    s->next_try = now + (s->pause * took < PAUSE_MOST ? s->pause * took : PAUSE_MOST);
}

static void turn_on(struct tb_squeeze *s, double left, double each)
{
    int level = s->config.level;
    if (level == 0)
        level =
            s->link * left > SLOW_LINK * COST_SMALL * each * (s->config.group->active + 1) ? LEVEL_SMALL : LEVEL_QUICK;
    if (s->level != level || s->fresh) {
        s->level = s->counters.level = level;
        s->fresh = true;
        if (s->table->out_restart(s->press, level) != 0)
            return;
    }
    s->on = true;
    s->config.group->active++;
    s->cost = COST_QUICK * each;
    s->ratio = left;
    s->blunt = s->idle = s->looked = s->steady = 0;
}

/* The link is full: would compressing help? */
static void consider(struct tb_squeeze *s, const uint8_t *frame, size_t length, uint64_t now)
{
    uint64_t took;
    double each;
    if (s->press == NULL) {
        s->press = s->table->out_open();
        s->fresh = true;
    }
    if (s->press == NULL) {
        s->table = NULL; /* no memory: from now on without */
        return;
    }
    double left = try_frame(s, frame, length, &took, &each);
    if (left <= SHRINKS && COST_QUICK * each * (s->config.group->active + 1) < s->link)
        turn_on(s, left, each);
    if (!s->on)
        wait_longer(s, now, took);
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

/* How long the link takes for a byte, seen only while it is busy all the time. */
static void watch_link(struct tb_squeeze *s, enum tb_squeeze_link link, uint64_t now)
{
    if (link == TB_SQUEEZE_MORE)
        return;
    if (link == TB_SQUEEZE_FULL && s->since > 0)
        s->link = mean(s->link, (double)(now - s->mark) / (double)s->since, 0.25);
    s->mark = now;
    s->since = 0;
    if (link == TB_SQUEEZE_FULL || s->idle == 0) {
        s->idle_since = now;
        s->idle_plain = s->counters.plain;
    }
    s->idle = link == TB_SQUEEZE_FULL ? 0 : s->idle + 1;
}

/* The link has taken everything at once for a while. Would it also without compression? Or does it only keep up because
 * of it? */
static bool is_unused(struct tb_squeeze *s, uint64_t now)
{
    if (s->idle < IDLE_END)
        return false;
    s->idle = 0;
    double raw = (double)(s->counters.plain - s->idle_plain) * s->link;
    return raw < NEEDED * (double)(now - s->idle_since);
}

/* The first look at the link was hasty: what it had room for went at once. Now both are measured. */
static void review_level(struct tb_squeeze *s)
{
    double room = s->link * s->ratio / s->config.group->active, change = COST_SMALL / COST_QUICK;
    int level = s->level;
    if (level == LEVEL_QUICK && room > SLOW_LINK * change * s->cost)
        level = LEVEL_SMALL;
    else if (level == LEVEL_SMALL && room < 1.5 * s->cost)
        level = LEVEL_QUICK;
    if (level == s->level)
        return;
    s->cost *= level == LEVEL_SMALL ? change : 1 / change;
    s->level = s->counters.level = level;
    s->fresh = true;
    if (s->table->out_restart(s->press, level) != 0)
        turn_off(s);
}

/* After a compressed block: was it worth it? */
static void review(struct tb_squeeze *s, size_t length, size_t wire, uint64_t now, uint64_t took)
{
    double left = (double)wire / (double)length;
    s->counters.nanoseconds += took;
    if (length >= TRY_LEAST) {
        double cost = (double)took / (double)length;
        if (s->cost > 0 && cost > OUTLIER * s->cost)
            cost = OUTLIER * s->cost;
        s->cost = mean(s->cost, cost, 0.125);
        s->blunt = left > SHRINKS ? s->blunt + 1 : 0;
        if ((left > s->ratio + CHANGE || left < s->ratio - CHANGE) && s->looked >= LOOK_SOON)
            s->looked = LOOK_EVERY;
        s->ratio = mean(s->ratio, left, 0.125);
        s->looked++;
        if (++s->steady == STEADY)
            s->pause = 0;
    }
    bool slow = s->link > 0 && s->cost * s->config.group->active > s->link;
    if (s->blunt >= BLUNT_END || slow || is_unused(s, now)) {
        turn_off(s);
        wait_longer(s, now, took);
    } else if (s->config.level == 0 && (s->steady == LOOK_SOON || s->steady % STEADY == 1)) {
        review_level(s);
    }
}

static void finish(struct tb_squeeze *s, size_t plain, size_t wire, uint8_t flags)
{
    for (int i = 0; i < 4; i++)
        s->block[i] = (uint8_t)(wire >> 8 * i);
    for (int i = 0; i < 3; i++)
        s->block[4 + i] = (uint8_t)(plain >> 8 * i);
    s->block[7] = flags;
    s->counters.blocks++;
    s->counters.plain += plain;
    s->counters.wire += TB_SQUEEZE_HEADER + wire;
    s->since += TB_SQUEEZE_HEADER + wire;
}

/* The length of the block; 0: it failed, and the frame must go as it is. */
static size_t press(struct tb_squeeze *s, const uint8_t *frame, size_t length, uint64_t now)
{
    uint64_t took;
    double each;
    if (s->looked > LOOK_EVERY && length >= TRY_LEAST) {
        try_frame(s, frame, length, &took, &each);
        s->looked = 0;
    }
    uint64_t begin = tb_clock_now(s->config.work);
    uint8_t flags = s->table->method | (s->fresh ? TB_SQUEEZE_RESTART : 0);
    const uint8_t *plain = frame;
    if (s->width > 1 && length >= TB_SQUEEZE_HEAD + TRY_LEAST) {
        memcpy(s->spread, frame, TB_SQUEEZE_HEAD);
        tb_spread_do(s->spread + TB_SQUEEZE_HEAD, frame + TB_SQUEEZE_HEAD, length - TB_SQUEEZE_HEAD, s->width);
        plain = s->spread;
        flags |= s->width == 4 ? TB_SQUEEZE_SPREAD4 : TB_SQUEEZE_SPREAD8;
        s->counters.spread++;
    }
    size_t wire = s->table->out_pack(s->press, plain, length, s->block + TB_SQUEEZE_HEADER, TB_SQUEEZE_WIRE);
    took = tb_clock_now(s->config.work) - begin;
    s->fresh = wire == 0;
    if (wire == 0) {
        turn_off(s);
        return 0;
    }
    finish(s, length, wire, flags);
    s->counters.pressed++;
    review(s, length, wire, now, took);
    return wire;
}

void tb_squeeze_pack(struct tb_squeeze *s, enum tb_squeeze_link link, const void *frame, size_t length,
                     const void **block, size_t *block_length)
{
    TB_ASSERT(length > 0 && length <= TB_SQUEEZE_PLAIN);
    uint64_t now = tb_clock_now(s->config.clock);
    watch_link(s, link, now);
    if (!s->on && link == TB_SQUEEZE_FULL && s->table != NULL && length >= TRY_LEAST && now >= s->next_try)
        consider(s, frame, length, now);
    size_t wire = s->on ? press(s, frame, length, now) : 0;
    if (wire == 0) {
        wire = length;
        memcpy(s->block + TB_SQUEEZE_HEADER, frame, length);
        finish(s, length, wire, TB_SQUEEZE_RAW);
    }
    *block = s->block;
    *block_length = TB_SQUEEZE_HEADER + wire;
}

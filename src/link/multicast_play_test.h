/* A play: what the hosts of a world do, one step after the other, all in the same order, each only what concerns it:
 * join a context, take part in a broadcast, leave. Every byte that comes is compared with what the root has sent. */
#ifndef TB_LINK_MULTICAST_PLAY_TEST_H
#define TB_LINK_MULTICAST_PLAY_TEST_H

#include "link/multicast_world_test.h"

#define PLAY_TABLE (17u << 20)
#define PLAY_SHIFT 65536u
#define PLAY_DEPTH 4u /* broadcasts that a host has begun and not finished, at most */

enum play_verb { PLAY_JOIN, PLAY_BROADCAST, PLAY_LEAVE };

struct play_step {
    enum play_verb verb;
    uint64_t context, number, length;
    uint32_t root;           /* host */
    const uint32_t *members; /* hosts, ascending; NULL: all */
    uint32_t members_count;
    uint64_t skew; /* ns that each host computes before it, at most */
    uint32_t late; /* a host that is this much later, or UINT32_MAX */
    uint64_t late_by;
};

struct play_operation {
    struct tb_multicast_operation operation;
    const struct play_step *step;
    struct play_host *host;
    char *buffer;
    uint64_t written;
    bool busy;
};

struct play_host {
    struct play *play;
    struct world_host *host;
    uint32_t at; /* the next step */
    bool waited; /* for its own time of it */
    uint32_t depth;
    bool over;
    struct play_operation operations[PLAY_DEPTH];
    uint64_t begun, ended; /* of the last broadcast */
};

struct play {
    struct world *world;
    const struct play_step *steps;
    uint32_t count;
    struct play_host *hosts;
    bool scattered; /* payload does not stand in one piece, and is compared as it comes */
    bool computing; /* skew is computing, and not just lateness */
    uint32_t depth; /* broadcasts that a host may have begun, 1: it waits for each */
    uint32_t left;  /* hosts that have steps to do */
    uint64_t done, failed, wrong;
    int error;      /* of the last that failed */
    uint64_t limit; /* virtual time at which it has failed */
};

/* There is time for more. Not so much of it where each step takes ten times as long. */
static inline bool play_is_long(void)
{
    const char *tier = getenv("TEST_TIER");
    return tier != NULL && strcmp(tier, "all") == 0;
}

static inline uint32_t play_amount(uint32_t quick, uint32_t all)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    all = all / 10 > quick ? all / 10 : quick;
#endif
    return play_is_long() ? all : quick;
}

static inline const char *play_bytes(uint64_t number)
{
    static char *table;
    if (table == NULL) {
        struct tb_random random;
        table = world_memory(NULL, PLAY_TABLE);
        tb_random_seed(&random, 1);
        for (size_t i = 0; i < PLAY_TABLE; i += 8) {
            uint64_t word = tb_random_next(&random);
            memcpy(table + i, &word, 8);
        }
    }
    return table + number * 977 % PLAY_SHIFT;
}

static inline bool play_takes_part(const struct play_step *s, uint32_t host, uint32_t *index, uint32_t *root)
{
    if (s->members == NULL) {
        *index = host;
        *root = s->root;
        return true;
    }
    bool found = false;
    for (uint32_t i = 0; i < s->members_count; i++) {
        if (s->members[i] == host) {
            found = true;
            *index = i;
        }
        if (s->members[i] == s->root)
            *root = i;
    }
    return found;
}

static inline uint32_t play_process(const void *list, uint32_t index)
{
    return ((const uint32_t *)list)[index];
}

static inline struct tb_multicast_members play_members(const struct play *p, const struct play_step *s, uint32_t self)
{
    if (s->members == NULL)
        return (struct tb_multicast_members){.count = p->world->count, .self = self};
    return (struct tb_multicast_members){s->members_count, self, play_process, s->members};
}

/* Scattered payload: reads from the table, compares what is written. */
static inline void play_copy(void *owner, uint64_t offset, void *bytes, size_t length, bool gather)
{
    struct play_operation *o = owner;
    const char *right = play_bytes(o->step->number) + offset;
    if (gather) {
        memcpy(bytes, right, length);
        return;
    }
    if (offset + length > o->step->length || memcmp(bytes, right, length) != 0)
        o->host->play->wrong++;
    o->written += length;
}

static inline void play_look(struct play_host *h)
{
    if (!h->over && h->at == h->play->count && h->depth == 0) {
        h->over = true;
        h->play->left--;
    }
}

static inline void play_over(struct play_operation *o, int error)
{
    struct play_host *h = o->host;
    struct play *p = h->play;
    bool root = o->step->root == h->host->index;
    if (error != TB_OK) {
        p->failed++;
        p->error = error;
    } else if (!root && o->buffer != NULL) {
        p->wrong += o->step->length > 0 && memcmp(o->buffer, play_bytes(o->step->number), o->step->length) != 0;
    } else if (!root && o->step->length != o->written) {
        p->wrong++;
    }
    p->done++;
    free(o->buffer);
    o->buffer = NULL;
    o->busy = false;
    h->ended = p->world->now;
    h->depth--;
    /* Everything before the oldest that is under way has been passed. */
    uint64_t floor = UINT64_MAX;
    for (uint32_t i = 0; i < PLAY_DEPTH; i++)
        if (h->operations[i].busy && h->operations[i].step->context == o->step->context &&
            h->operations[i].step->number < floor)
            floor = h->operations[i].step->number;
    if (floor == UINT64_MAX) {
        floor = o->step->number + 1;
        for (uint32_t i = 0; i < h->at; i++) /* of those that it has begun */
            if (p->steps[i].verb == PLAY_BROADCAST && p->steps[i].context == o->step->context)
                floor = p->steps[i].number + 1;
    }
    tb_multicast_pass(h->host->m, o->step->context, floor);
    play_look(h);
    world_wake(h->host, p->world->now);
}

static inline void play_done(struct tb_multicast_operation *operation, int error)
{
    play_over(TB_CONTAINER(operation, struct play_operation, operation), error);
}

static inline void play_broadcast(struct play_host *h, const struct play_step *s, uint32_t index, uint32_t root)
{
    struct play *p = h->play;
    struct play_operation *o = h->operations;
    while (o->busy)
        o++;
    bool is_root = index == root;
    *o = (struct play_operation){.step = s, .host = h, .busy = true};
    if (!is_root && !p->scattered)
        o->buffer = world_memory(NULL, s->length + 1);
    o->operation = (struct tb_multicast_operation){.context = s->context,
                                                   .number = s->number,
                                                   .length = s->length,
                                                   .members = play_members(p, s, index),
                                                   .root = root,
                                                   .payload = {.copy = play_copy, .owner = o},
                                                   .done = play_done};
    if (!p->scattered)
        o->operation.payload.base = is_root ? (char *)play_bytes(s->number) : o->buffer;
    h->depth++;
    h->begun = p->world->now;
    int result = tb_multicast_start(h->host->m, &o->operation);
    if (result != TB_PENDING)
        play_over(o, result);
}

/* Its own time before a step: it computes, or is simply not there yet. */
static inline uint64_t play_pause(const struct play_host *h, const struct play_step *s)
{
    uint64_t pause = s->skew > 0 ? tb_random_below(&h->host->random, s->skew) : 0;
    return pause + (s->late == h->host->index ? s->late_by : 0);
}

/* Does steps as far as it gets. Returns when it wants to be woken. */
static inline uint64_t play_awake(struct world_host *host)
{
    struct play *p = host->world->user;
    struct play_host *h = &p->hosts[host->index];
    uint32_t index, root = 0;
    while (h->at < p->count && h->depth < p->depth) {
        const struct play_step *s = &p->steps[h->at];
        if (!play_takes_part(s, host->index, &index, &root)) {
            h->at++;
            continue;
        }
        if (s->verb == PLAY_LEAVE && h->depth > 0)
            return TB_NEVER;
        uint64_t pause = h->waited ? 0 : play_pause(h, s);
        h->waited = true;
        if (pause > 0 && s->verb == PLAY_BROADCAST) {
            host->computes_until = host->world->now + pause;
            return host->computes_until;
        }
        h->waited = false;
        h->at++;
        if (s->verb == PLAY_JOIN) {
            struct tb_multicast_members members = play_members(p, s, index);
            int error = tb_multicast_join(host->m, s->context, &members);
            if (error != TB_OK) /* where the test lets one allocation fail, the next one does not */
                error = tb_multicast_join(host->m, s->context, &members);
            if (error != TB_OK)
                abort();
            host->context_states[s->context] = 1;
        } else if (s->verb == PLAY_LEAVE) {
            host->context_states[s->context] = 2;
            tb_multicast_leave(host->m, s->context);
        } else {
            play_broadcast(h, s, index, root);
        }
    }
    play_look(h);
    return TB_NEVER;
}

static inline void play_open(struct play *p, struct world *w, const struct play_step *steps, uint32_t count)
{
    *p = (struct play){.world = w, .steps = steps, .count = count, .depth = 1, .limit = 3600 * WORLD_SECOND};
    p->hosts = world_zeroed(w->count * sizeof *p->hosts);
    for (uint32_t i = 0; i < w->count; i++) {
        p->hosts[i].play = p;
        p->hosts[i].host = &w->hosts[i];
    }
    p->left = w->count;
    w->user = p;
    w->awake = play_awake;
    p->limit += w->now;
}

static inline void play_close(struct play *p)
{
    for (uint32_t i = 0; i < p->world->count; i++)
        for (uint32_t k = 0; k < PLAY_DEPTH; k++)
            free(p->hosts[i].operations[k].buffer);
    free(p->hosts);
}

/* Until all have done all steps. False: that took too long, or something was wrong. */
static inline bool play_run(struct play *p)
{
    struct world *w = p->world;
    while (p->left > 0 && p->failed == 0 && p->wrong == 0 && w->now <= p->limit && world_step(w))
        continue;
    if (p->left == 0 && p->failed == 0 && p->wrong == 0)
        return true;
    fprintf(stderr, "seed %llu: %llu wrong, %llu failed (%s), after %.6f s:", (unsigned long long)w->seed,
            (unsigned long long)p->wrong, (unsigned long long)p->failed, tb_error_name(p->error),
            (double)(w->now - 1000 * WORLD_SECOND) / 1e9);
    for (uint32_t i = 0; i < w->count && i < 20; i++)
        fprintf(stderr, " %u", p->hosts[i].at);
    fprintf(stderr, " of %u steps\n", p->count);
    return false;
}

/* Then everything that is kept is confirmed, as at the end of a job. */
static inline bool play_finish(struct play *p)
{
    struct world *w = p->world;
    for (uint32_t i = 0; i < w->count; i++) {
        tb_multicast_flush(w->hosts[i].m);
        world_wake(&w->hosts[i], w->now);
    }
    for (uint64_t until = w->now + 60 * WORLD_SECOND; w->now < until;) {
        bool kept = false;
        for (uint32_t i = 0; i < w->count; i++)
            kept = kept || tb_multicast_keeps(w->hosts[i].m);
        if (!kept)
            return true;
        for (int i = 0; i < 64; i++)
            world_step(w);
        if (w->heap_count == 0)
            break;
    }
    for (uint32_t i = 0; i < w->count; i++)
        if (tb_multicast_keeps(w->hosts[i].m)) {
            fprintf(stderr, "seed %llu: host %u keeps something\n", (unsigned long long)w->seed, i);
            return false;
        }
    return true;
}

static inline struct tb_multicast_counters play_sum(const struct play *p)
{
    struct tb_multicast_counters sum = {0}, one;
    for (uint32_t i = 0; i < p->world->count; i++) {
        tb_multicast_count(p->world->hosts[i].m, &one);
        for (size_t k = 0; k < sizeof sum / sizeof(uint64_t); k++)
            ((uint64_t *)&sum)[k] += ((uint64_t *)&one)[k];
    }
    return sum;
}

#endif

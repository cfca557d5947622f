#include "planner/planner.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define ALONE (__libc_single_threaded != 0) /* this process has one thread */
#else
#define ALONE false
#endif

#define KEPT_LEAST  4u  /* programs that a communicator has room for at first */
#define KEPT_LIMIT  64u /* and at most */
#define CALLS_LEAST 16u /* calls of which it is known which program they have: the same; powers of two */
#define CALLS_LIMIT 1024u
#define CALL_PLACES 4u /* in which one may be */

/* Everything that a program depends on and that may differ between calls on one communicator. */
struct key {
    uint32_t root;
    uint16_t size_class;
    uint8_t operation;
    uint8_t flags;
};

enum { KEY_COMMUTATIVE = 1, KEY_IN_PLACE = 2, KEY_COMMON = 4, KEY_REPRODUCIBLE = 8, KEY_CONNECTED = 16, KEY_LAST = 32 };

/* A program is kept once for all roots with which it is the same: those in one place far away, for example, or all
 * those from which what comes along a chain passes this rank in the same way. */
struct kept {
    struct key key;             /* of the first call that needed it; the root does not matter */
    struct tb_program *program; /* NULL: free */
    uint32_t users;
    uint32_t made;  /* its number among all that were made; 0: it is not found any more */
    uint64_t used;  /* when it was asked for last */
    uint64_t calls; /* that the cache does not know of */
    struct tb_choice choice;
};

/* Which program a call has: it holds while that is there. */
struct known_call {
    uint64_t key; /* as one number */
    uint32_t kept, made;
};

/* A program for which there was no place among the kept ones: it ends with its last user. */
struct loose {
    struct tb_program *program;
    struct loose *next;
};

struct tb_planner {
    struct tb_list in_cache;
    pthread_mutex_t lock; /* a nonblocking collective may be released by another thread than started it */
    bool locked;          /* it is held; not if there is only one thread */
    struct tb_plan_cache *cache;
    struct tb_shape_plans *plans;
    uint32_t size, rank;
    struct tb_preference *wishes; /* of the communicator's info object, for each operation; NULL: none */
    uint64_t ticks;
    struct known_call recent; /* the last one found: it is released next, and then asked for again */
    uint32_t kept_room;
    struct kept *kept;
    uint32_t makes; /* programs that were made to be kept */
    /* A loop asks for the same again, perhaps with changing roots, of which there may be many more than programs. */
    uint32_t call_room;
    struct known_call *calls;
    struct loose *loose;
    struct tb_feedback *feedback; /* NULL: not wanted */
};

int tb_planner_open(struct tb_plan_cache *cache, const struct tb_group_shape *shape, uint32_t size, uint32_t rank,
                    struct tb_planner **planner)
{
    struct tb_planner *p = calloc(1, sizeof *p);
    struct kept *kept = calloc(KEPT_LEAST, sizeof *kept);
    struct known_call *calls = calloc(CALLS_LEAST, sizeof *calls);
    int error = p != NULL && kept != NULL && calls != NULL
                    ? tb_shape_plans_get(cache, shape, &p->plans)
                    : tb_error(TB_ERR_MEMORY, "no memory for the plans of a communicator");
    if (error == TB_OK && tb_param.feedback > 0) {
        error = tb_feedback_open(&p->feedback, (uint32_t)tb_param.feedback);
        if (error != TB_OK)
            tb_shape_plans_release(cache, p->plans);
    }
    if (error != TB_OK) {
        free(p);
        free(kept);
        free(calls);
        return error;
    }
    p->kept = kept;
    p->kept_room = KEPT_LEAST;
    p->calls = calls;
    p->call_room = CALLS_LEAST;
    p->cache = cache;
    p->size = size;
    p->rank = rank;
    pthread_mutex_init(&p->lock, NULL);
    tb_plan_cache_enter(cache, &p->in_cache);
    *planner = p;
    return TB_OK;
}

const struct tb_group_shape *tb_planner_shape(const struct tb_planner *planner)
{
    return tb_shape_plans_shape(planner->plans);
}

/* A process of one thread, which most are, does without the lock: it costs more than finding a program. */
static void planner_lock(struct tb_planner *p)
{
    bool locked = !ALONE;
    if (locked)
        pthread_mutex_lock(&p->lock);
    p->locked = locked;
}

static void planner_unlock(struct tb_planner *p)
{
    if (p->locked)
        pthread_mutex_unlock(&p->lock);
}

/* Tells the cache how often a kept program has run. */
static void kept_count(struct tb_planner *p, struct kept *k)
{
    if (k->program == NULL || k->calls == 0 || (k->key.flags & KEY_LAST) != 0)
        return;
    struct tb_collective c = {.operation = (enum tb_operation)k->key.operation,
                              .size = p->size,
                              .elements = tb_size_class_least(k->key.size_class),
                              .element_bytes = 1};
    tb_plan_cache_count(p->cache, p->plans, &c, &k->choice, k->calls);
    k->calls = 0;
}

static void planner_flush(struct tb_planner *planner)
{
    planner_lock(planner);
    for (uint32_t i = 0; i < planner->kept_room; i++)
        kept_count(planner, &planner->kept[i]);
    planner_unlock(planner);
}

static void visit(struct tb_list *at)
{
    planner_flush(TB_CONTAINER(at, struct tb_planner, in_cache));
}

void tb_planner_flush_all(struct tb_plan_cache *cache)
{
    tb_plan_cache_visit(cache, visit);
}

void tb_planner_close(struct tb_planner *planner)
{
    if (planner == NULL)
        return;
    tb_plan_cache_leave(planner->cache, &planner->in_cache);
    planner_flush(planner);
    for (uint32_t i = 0; i < planner->kept_room; i++)
        tb_program_free(planner->kept[i].program);
    while (planner->loose != NULL) {
        struct loose *l = planner->loose;
        planner->loose = l->next;
        tb_program_free(l->program);
        free(l);
    }
    tb_shape_plans_release(planner->cache, planner->plans);
    tb_feedback_close(planner->feedback);
    pthread_mutex_destroy(&planner->lock);
    free(planner->wishes);
    free(planner->kept);
    free(planner->calls);
    free(planner);
}

static struct key key_of(const struct tb_collective *c)
{
    struct key k = {.operation = (uint8_t)c->operation,
                    .flags = (uint8_t)((c->common ? KEY_COMMON : 0) | (c->connected ? KEY_CONNECTED : 0) |
                                       (c->last ? KEY_LAST : 0))};
    if (c->operation == TB_OPERATION_BARRIER)
        return k;
    k.root = c->root;
    k.flags |= (uint8_t)((c->commutative ? KEY_COMMUTATIVE : 0) | (c->in_place ? KEY_IN_PLACE : 0) |
                         (c->reproducible ? KEY_REPRODUCIBLE : 0));
    k.size_class = (uint16_t)tb_size_class(tb_size_class_bytes(c));
    return k;
}

static uint64_t key_number(const struct key *k)
{
    return (uint64_t)k->root << 32 | (uint64_t)k->size_class << 16 | (uint64_t)k->operation << 8 | k->flags;
}

/* Where a key may be: here and in the few places that follow. Roots one after the other have places of their own. */
static struct known_call *call_place(const struct tb_planner *p, uint64_t key, uint32_t i)
{
    uint32_t hash = (uint32_t)(key >> 32) * 0x9e3779b1u + ((uint32_t)key * 0x85ebca6bu >> 16);
    return &p->calls[(hash + i) & (p->call_room - 1)];
}

static bool call_holds(const struct tb_planner *p, const struct known_call *call)
{
    return call->made != 0 && call->made == p->kept[call->kept].made;
}

/* NULL: which program it has is not known, or that is gone. */
static struct kept *kept_find(struct tb_planner *p, uint64_t key)
{
    if (p->recent.key == key && call_holds(p, &p->recent))
        return &p->kept[p->recent.kept];
    for (uint32_t i = 0; i < CALL_PLACES; i++) {
        const struct known_call *call = call_place(p, key, i);
        if (call->key == key && call_holds(p, call)) {
            p->recent = *call;
            return &p->kept[call->kept];
        }
    }
    return NULL;
}

/* A place that nothing is in which still holds; NULL: there is none. */
static struct known_call *call_free(const struct tb_planner *p, uint64_t key)
{
    for (uint32_t i = 0; i < CALL_PLACES; i++) {
        struct known_call *call = call_place(p, key, i);
        if (!call_holds(p, call))
            return call;
    }
    return NULL;
}

static bool calls_grow(struct tb_planner *p)
{
    struct known_call *before = p->calls, *grown = NULL;
    uint32_t room = p->call_room;
    if (room < CALLS_LIMIT)
        grown = calloc(2 * (size_t)room, sizeof *grown);
    if (grown == NULL)
        return false;
    p->calls = grown;
    p->call_room = 2 * room;
    for (uint32_t i = 0; i < room; i++) {
        struct known_call *call = call_holds(p, &before[i]) ? call_free(p, before[i].key) : NULL;
        if (call != NULL)
            *call = before[i];
    }
    free(before);
    return true;
}

/* From now on a call with this key is known to have that program. */
static void call_note(struct tb_planner *p, uint64_t key, const struct kept *k)
{
    struct known_call *call = call_free(p, key);
    while (call == NULL && calls_grow(p))
        call = call_free(p, key);
    if (call == NULL)
        call = call_place(p, key, 0);
    p->recent = *call = (struct known_call){.key = key, .kept = (uint32_t)(k - p->kept), .made = k->made};
}

/* The kept one that does the same for another root; NULL: there is none. */
static struct kept *kept_alike(struct tb_planner *p, const struct key *key, const struct tb_choice *choice,
                               const struct tb_program *made)
{
    for (uint32_t i = 0; i < p->kept_room; i++) {
        struct kept *k = &p->kept[i];
        if (k->program != NULL && k->made != 0 && k->key.operation == key->operation &&
            k->key.size_class == key->size_class && k->key.flags == key->flags &&
            k->choice.best.algorithm == choice->best.algorithm && k->choice.best.argument == choice->best.argument &&
            k->choice.reason == choice->reason && tb_program_same(k->program, made))
            return k;
    }
    return NULL;
}

static const struct tb_program *kept_use(struct tb_planner *p, struct kept *k)
{
    k->users++;
    k->calls++;
    k->used = ++p->ticks;
    return k->program;
}

static struct kept *kept_free(struct tb_planner *p)
{
    for (uint32_t i = 0; i < p->kept_room; i++)
        if (p->kept[i].program == NULL)
            return &p->kept[i];
    return NULL;
}

/* A free place, after making more of them if need be, or that of the program unused for longest; NULL if all of them
 * are running. */
static struct kept *kept_make_room(struct tb_planner *p)
{
    struct kept *k = kept_free(p);
    if (k == NULL && p->kept_room < KEPT_LIMIT) {
        struct kept *grown = realloc(p->kept, 2 * p->kept_room * sizeof *grown);
        if (grown != NULL) {
            k = &grown[p->kept_room];
            memset(k, 0, p->kept_room * sizeof *k);
            p->kept = grown;
            p->kept_room *= 2;
        }
    }
    for (uint32_t i = 0; i < p->kept_room && (k == NULL || k->program != NULL); i++) {
        struct kept *old = &p->kept[i];
        if (old->users == 0 && (k == NULL || old->used < k->used))
            k = old;
    }
    return k;
}

/* Puts a new program where it will be found again, if there is room, and unless it is there already. *program is the
 * one that runs. */
static int program_keep(struct tb_planner *p, const struct key *key, const struct tb_choice *choice,
                        struct tb_program *made, const struct tb_program **program)
{
    struct kept *k = kept_alike(p, key, choice, made);
    if (k != NULL) {
        tb_program_free(made);
        call_note(p, key_number(key), k);
        *program = kept_use(p, k);
        return TB_OK;
    }
    *program = made;
    k = kept_make_room(p);
    if (k != NULL) {
        kept_count(p, k);
        tb_program_free(k->program);
        p->makes = p->makes == UINT32_MAX ? 1 : p->makes + 1;
        *k = (struct kept){.key = *key, .program = made, .made = p->makes, .choice = *choice};
        call_note(p, key_number(key), k);
        kept_use(p, k);
        return TB_OK;
    }
    struct loose *l = malloc(sizeof *l);
    if (l == NULL) {
        tb_program_free(made);
        return tb_error(TB_ERR_MEMORY, "no memory for the plan of a collective");
    }
    *l = (struct loose){made, p->loose};
    p->loose = l;
    return TB_OK;
}

/* What the communicator's info object says; NULL: nothing. */
static const struct tb_preference *wish_of(const struct tb_planner *p, enum tb_operation operation)
{
    const struct tb_preference *wish = p->wishes != NULL ? &p->wishes[operation] : NULL;
    return wish != NULL && *wish->name != 0 ? wish : NULL;
}

/* What is measured of calls like this; NULL: nothing. */
static struct tb_feedback_kind *kind_of(const struct tb_planner *p, const struct tb_collective *c)
{
    if (p->feedback == NULL || c->inter || wish_of(p, c->operation) != NULL ||
        tb_shape_plans_planned(p->cache, p->plans, c))
        return NULL;
    return tb_feedback_find(p->feedback, tb_shape_plans_mark(p->plans, c));
}

/* *forest gets the planned trees, if there are some: the caller's. */
static int program_choose(struct tb_planner *p, const struct tb_collective *c, struct tb_choice *choice,
                          struct tb_forest **forest)
{
    int error = tb_shape_plans_follow(p->cache, p->plans, c, wish_of(p, c->operation), choice, forest);
    if (error != TB_OK || choice->best.algorithm != NULL)
        return error;
    const struct tb_feedback_kind *kind = kind_of(p, c);
    const struct tb_choice *measured = kind != NULL ? tb_feedback_choice(kind) : NULL;
    if (measured == NULL)
        return tb_shape_plans_choose(p->cache, p->plans, c, wish_of(p, c->operation), choice);
    *choice = *measured;
    return TB_OK;
}

/* From the smallest size of the class, never from that of the call. */
static int program_make(struct tb_planner *p, const struct tb_collective *c, struct tb_choice *choice,
                        struct tb_program **made)
{
    struct tb_collective call = tb_size_class_call(c);
    call.shape = tb_shape_plans_shape(p->plans);
    call.costs = call.shape->table;
    call.skip = tb_shape_plans_skip(p->plans);
    struct tb_forest *forest = NULL;
    int error = program_choose(p, c, choice, &forest);
    if (error != TB_OK)
        return error;
    if (choice->best.algorithm == NULL)
        return tb_error(TB_ERR_UNSUPPORTED, "no algorithm for %s on %u ranks", tb_operation_name(c->operation),
                        c->size);
    call.argument = choice->best.argument;
    call.forest = forest;
    error = choice->best.algorithm->make(&call, made);
    tb_forest_close(forest);
    return error;
}

int tb_planner_program(struct tb_planner *planner, const struct tb_collective *c, const struct tb_program **program)
{
    TB_ASSERT(c->size == planner->size && c->rank == planner->rank);
    struct key key = key_of(c);
    int error = TB_OK;
    planner_lock(planner);
    struct kept *k = kept_find(planner, key_number(&key));
    if (k != NULL) {
        *program = kept_use(planner, k);
    } else {
        struct tb_program *made = NULL;
        struct tb_choice choice;
        error = program_make(planner, c, &choice, &made);
        if (error == TB_OK)
            error = program_keep(planner, &key, &choice, made, program);
        if (error != TB_OK)
            *program = NULL;
    }
    planner_unlock(planner);
    return error;
}

int tb_planner_choice(struct tb_planner *planner, const struct tb_collective *c, struct tb_choice *choice)
{
    struct tb_forest *forest = NULL;
    planner_lock(planner);
    int error = program_choose(planner, c, choice, &forest);
    planner_unlock(planner);
    tb_forest_close(forest);
    return error;
}

/* Programs of an operation, of all sizes or one class, are not found any more; those that run go on to their end. */
static void kept_forget(struct tb_planner *p, enum tb_operation operation, const uint16_t *size_class)
{
    for (uint32_t i = 0; i < p->kept_room; i++) {
        struct kept *k = &p->kept[i];
        if (k->program == NULL || k->key.operation != operation ||
            (size_class != NULL && k->key.size_class != *size_class))
            continue;
        kept_count(p, k);
        k->made = 0;
        if (k->users == 0) {
            tb_program_free(k->program);
            k->program = NULL;
        }
    }
}

int tb_planner_prefer(struct tb_planner *planner, enum tb_operation operation, const char *text)
{
    struct tb_preference wish;
    int error = tb_preference_read(&wish, operation, text);
    if (error != TB_OK)
        return error;
    planner_lock(planner);
    if (planner->wishes == NULL)
        planner->wishes = calloc(TB_OPERATION_COUNT, sizeof *planner->wishes);
    if (planner->wishes != NULL) {
        planner->wishes[operation] = wish;
        kept_forget(planner, operation, NULL);
    } else {
        error = tb_error(TB_ERR_MEMORY, "no memory for the wishes of a communicator");
    }
    planner_unlock(planner);
    return error;
}

bool tb_planner_preferred(struct tb_planner *planner, enum tb_operation operation, char *text, size_t size)
{
    planner_lock(planner);
    const struct tb_preference *wish = wish_of(planner, operation);
    if (wish != NULL)
        tb_preference_print(wish, text, size);
    planner_unlock(planner);
    return wish != NULL;
}

/* ---- feedback ---------------------------------------------------------------------------------------------------- */

bool tb_planner_measures(const struct tb_planner *planner)
{
    return planner->feedback != NULL;
}

bool tb_planner_due(struct tb_planner *planner, const struct tb_collective *c)
{
    bool due = false;
    if (planner->feedback == NULL || c->inter || !tb_rating_possible(c))
        return false;
    planner_lock(planner);
    if (wish_of(planner, c->operation) == NULL && !tb_shape_plans_planned(planner->cache, planner->plans, c)) {
        struct tb_feedback_kind *kind = kind_of(planner, c);
        struct tb_choice choice;
        /* The program was made of it, so that it can be found again. */
        if (kind == NULL && tb_shape_plans_choose(planner->cache, planner->plans, c, NULL, &choice) == TB_OK)
            kind = tb_feedback_begin(planner->feedback, tb_shape_plans_mark(planner->plans, c), &choice);
        due = kind != NULL && tb_feedback_due(planner->feedback, kind);
    }
    planner_unlock(planner);
    return due;
}

bool tb_planner_note(struct tb_planner *planner, const struct tb_collective *c, uint64_t time, struct tb_trial *trial)
{
    planner_lock(planner);
    struct tb_feedback_kind *kind = kind_of(planner, c);
    bool full = kind != NULL && tb_feedback_note(kind, time, trial);
    planner_unlock(planner);
    return full;
}

int tb_planner_learn(struct tb_planner *planner, const struct tb_collective *c, const struct tb_trial *agreed)
{
    int error = TB_OK;
    planner_lock(planner);
    struct tb_feedback_kind *kind = kind_of(planner, c);
    if (kind != NULL && tb_feedback_learn(kind, agreed)) {
        struct tb_choice choice;
        struct key key = key_of(c);
        error = tb_shape_plans_choose_again(planner->cache, planner->plans, c, tb_feedback_corrections(kind), &choice);
        if (error == TB_OK)
            tb_feedback_choose(kind, &choice);
        kept_forget(planner, c->operation, &key.size_class);
    }
    planner_unlock(planner);
    return error;
}

static void loose_release(struct tb_planner *p, const struct tb_program *program)
{
    for (struct loose **at = &p->loose; *at != NULL; at = &(*at)->next) {
        struct loose *l = *at;
        if (l->program != program)
            continue;
        *at = l->next;
        tb_program_free(l->program);
        free(l);
        return;
    }
    TB_ASSERT(!"the program is the planner's");
}

void tb_planner_release(struct tb_planner *planner, const struct tb_program *program)
{
    planner_lock(planner);
    struct kept *recent = &planner->kept[planner->recent.kept];
    struct kept *found = recent->program == program ? recent : NULL;
    for (uint32_t i = 0; i < planner->kept_room && found == NULL; i++)
        if (planner->kept[i].program == program)
            found = &planner->kept[i];
    if (found != NULL) {
        TB_ASSERT(found->users > 0);
        found->users--;
    } else {
        loose_release(planner, program);
    }
    planner_unlock(planner);
}

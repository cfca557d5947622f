#include "planner/planner.h"
#include "planner/choice.h"

#include <pthread.h>
#include <stdlib.h>

#define KEPT_COUNT 64u

/* Everything that a program depends on and that may differ between calls on one communicator. */
struct key {
    uint32_t root;
    uint8_t operation;
    uint8_t size_class; /* 0: nothing, else 1 + log2 of the bytes */
    uint8_t flags;
};

enum { KEY_COMMUTATIVE = 1, KEY_IN_PLACE = 2 };

struct kept {
    struct key key;
    struct tb_program *program; /* NULL: free */
    uint32_t users;
    uint64_t used; /* when it was asked for last */
};

/* A program for which there was no place among the kept ones: it ends with its last user. */
struct loose {
    struct tb_program *program;
    struct loose *next;
};

struct tb_planner {
    pthread_mutex_t lock; /* a nonblocking collective may be released by another thread than started it */
    uint32_t size, rank;
    uint64_t ticks;
    struct kept *recent; /* the last one found: a loop asks for the same again */
    struct kept kept[KEPT_COUNT];
    struct loose *loose;
};

int tb_planner_open(uint32_t size, uint32_t rank, struct tb_planner **planner)
{
    struct tb_planner *p = calloc(1, sizeof *p);
    if (p == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the plans of a communicator");
    p->size = size;
    p->rank = rank;
    p->recent = &p->kept[0];
    pthread_mutex_init(&p->lock, NULL);
    *planner = p;
    return TB_OK;
}

void tb_planner_close(struct tb_planner *planner)
{
    if (planner == NULL)
        return;
    for (uint32_t i = 0; i < KEPT_COUNT; i++)
        tb_program_free(planner->kept[i].program);
    while (planner->loose != NULL) {
        struct loose *l = planner->loose;
        planner->loose = l->next;
        tb_program_free(l->program);
        free(l);
    }
    pthread_mutex_destroy(&planner->lock);
    free(planner);
}

static struct key key_of(const struct tb_collective *c)
{
    struct key k = {.operation = (uint8_t)c->operation};
    if (c->operation == TB_OPERATION_BARRIER)
        return k;
    uint64_t bytes = c->elements * c->element_bytes;
    k.root = c->root;
    k.flags = (uint8_t)((c->commutative ? KEY_COMMUTATIVE : 0) | (c->in_place ? KEY_IN_PLACE : 0));
    k.size_class = bytes == 0 ? 0 : (uint8_t)(64 - __builtin_clzll(bytes));
    return k;
}

static bool kept_is(const struct kept *k, const struct key *key)
{
    return k->program != NULL && k->key.root == key->root && k->key.operation == key->operation &&
           k->key.size_class == key->size_class && k->key.flags == key->flags;
}

static struct kept *kept_find(struct tb_planner *p, const struct key *key)
{
    if (kept_is(p->recent, key))
        return p->recent;
    for (uint32_t i = 0; i < KEPT_COUNT; i++)
        if (kept_is(&p->kept[i], key))
            return p->recent = &p->kept[i];
    return NULL;
}

/* A free place, or that of the program unused for longest; NULL if all of them are running. */
static struct kept *kept_room(struct tb_planner *p)
{
    struct kept *oldest = NULL;
    for (uint32_t i = 0; i < KEPT_COUNT; i++) {
        struct kept *k = &p->kept[i];
        if (k->program == NULL)
            return k;
        if (k->users == 0 && (oldest == NULL || k->used < oldest->used))
            oldest = k;
    }
    return oldest;
}

/* Puts a new program where it will be found again, if there is room. */
static int program_keep(struct tb_planner *p, const struct key *key, struct tb_program *made)
{
    struct kept *k = kept_room(p);
    if (k != NULL) {
        tb_program_free(k->program);
        *k = (struct kept){.key = *key, .program = made, .users = 1, .used = ++p->ticks};
        p->recent = k;
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

static int program_make(const struct tb_collective *c, struct tb_program **made)
{
    const struct tb_algorithm *algorithm = tb_choice_make(c);
    if (algorithm == NULL)
        return tb_error(TB_ERR_UNSUPPORTED, "no algorithm for %s on %u ranks", tb_operation_name(c->operation),
                        c->size);
    return algorithm->make(c, made);
}

int tb_planner_program(struct tb_planner *planner, const struct tb_collective *c, const struct tb_program **program)
{
    TB_ASSERT(c->size == planner->size && c->rank == planner->rank);
    struct key key = key_of(c);
    int error = TB_OK;
    pthread_mutex_lock(&planner->lock);
    struct kept *k = kept_find(planner, &key);
    if (k != NULL) {
        k->users++;
        k->used = ++planner->ticks;
        *program = k->program;
    } else {
        struct tb_program *made = NULL;
        error = program_make(c, &made);
        if (error == TB_OK)
            error = program_keep(planner, &key, made);
        *program = error == TB_OK ? made : NULL;
    }
    pthread_mutex_unlock(&planner->lock);
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
    pthread_mutex_lock(&planner->lock);
    struct kept *found = planner->recent->program == program ? planner->recent : NULL;
    for (uint32_t i = 0; i < KEPT_COUNT && found == NULL; i++)
        if (planner->kept[i].program == program)
            found = &planner->kept[i];
    if (found != NULL) {
        TB_ASSERT(found->users > 0);
        found->users--;
    } else {
        loose_release(planner, program);
    }
    pthread_mutex_unlock(&planner->lock);
}

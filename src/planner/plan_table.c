#include "planner/plan_table.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define PROBES      8u /* entries in which a key may be */
#define YIELDS      100u
#define NAP_NS      100000
#define PATIENCE_NS 50000000u /* rating takes less than half of it */

/* The state tells whether an entry is in use, how often it has been written, and, from the first moment on, for which
 * key: its last bits are the kind, the upper ones are those of the key. */
enum { EMPTY = 0, BEING_MADE = 1, READY = 2, KIND = 3 };
#define WRITING  4u /* one more */
#define NUMBERS  0xfffcu
#define TAG_MASK (~(uint64_t)0xffff)

enum { BEST, BEST_ARGUMENT, BEST_TIME, NEXT, NEXT_ARGUMENT, NEXT_TIME, REASON, CHECK };

struct tb_plan_entry {
    _Atomic uint64_t state;
    _Atomic uint64_t key[2];
    _Atomic uint64_t words[TB_PLAN_WORDS];
    uint64_t spare[5];
};
_Static_assert(sizeof(struct tb_plan_entry) * TB_PLAN_TABLE_ENTRIES == TB_PLAN_TABLE_BYTES, "entries fill the table");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a lock would be one of the process only");

/* ---- keys -------------------------------------------------------------------------------------------------------- */

void tb_plan_key_number(struct tb_plan_key *key, uint64_t number)
{
    uint64_t a = (key->words[0] ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t b = (key->words[1] ^ number) * UINT64_C(0xd6e8feb86659fd93);
    key->words[0] = a ^ (a >> 32);
    key->words[1] = b ^ (b >> 29);
}

void tb_plan_key_text(struct tb_plan_key *key, const char *text)
{
    for (; *text != 0; text++)
        tb_plan_key_number(key, (unsigned char)*text);
    tb_plan_key_number(key, UINT64_MAX);
}

void tb_plan_key_begin(struct tb_plan_key *key)
{
    *key = (struct tb_plan_key){{TB_HASH_BASIS, ~TB_HASH_BASIS}};
    tb_plan_key_text(key, TB_VERSION);
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        tb_plan_key_number(key, tb_catalogue[i]->operation);
        tb_plan_key_text(key, tb_catalogue[i]->name);
    }
}

/* ---- what an entry says ------------------------------------------------------------------------------------------ */

static uint64_t words_check(const struct tb_plan_key *key, const uint64_t words[CHECK])
{
    struct tb_plan_key sum = *key;
    for (int i = 0; i < CHECK; i++)
        tb_plan_key_number(&sum, words[i]);
    return sum.words[0];
}

/* Algorithms travel as places in the catalogue, counted from 1 on. */
static uint64_t place_of(const struct tb_algorithm *algorithm)
{
    uint64_t place = 0;
    while (algorithm != NULL && tb_catalogue[place++] != algorithm)
        TB_ASSERT(tb_catalogue[place] != NULL);
    return place;
}

static void candidate_decode(const uint64_t *words, struct tb_candidate *candidate)
{
    *candidate = (struct tb_candidate){
        .algorithm = words[0] > 0 ? tb_catalogue[words[0] - 1] : NULL, .argument = words[1], .time = words[2]};
}

/* Whether there is a choice for this key in the entry, whole and with sense. */
static bool entry_read(const struct tb_plan_table *t, struct tb_plan_entry *e, const struct tb_plan_key *key,
                       struct tb_choice *choice)
{
    uint64_t words[TB_PLAN_WORDS] = {0}, state = atomic_load_explicit(&e->state, memory_order_acquire);
    bool same = (state & KIND) == READY;
    for (int i = 0; i < 2; i++)
        same = same && atomic_load_explicit(&e->key[i], memory_order_acquire) == key->words[i];
    for (uint32_t i = 0; same && i < TB_PLAN_WORDS; i++)
        words[i] = atomic_load_explicit(&e->words[i], memory_order_acquire);
    if (!same || atomic_load_explicit(&e->state, memory_order_relaxed) != state ||
        words[CHECK] != words_check(key, words) || words[BEST] > t->algorithm_count ||
        words[NEXT] > t->algorithm_count || words[REASON] >= TB_REASON_COUNT)
        return false;
    *choice = (struct tb_choice){.reason = (enum tb_reason)words[REASON]};
    candidate_decode(&words[BEST], &choice->best);
    candidate_decode(&words[NEXT], &choice->next);
    return true;
}

static void entry_write(struct tb_plan_entry *e, const struct tb_plan_key *key, const struct tb_choice *choice)
{
    uint64_t words[TB_PLAN_WORDS] = {[BEST] = place_of(choice->best.algorithm),
                                     [BEST_ARGUMENT] = choice->best.argument,
                                     [BEST_TIME] = choice->best.time,
                                     [NEXT] = place_of(choice->next.algorithm),
                                     [NEXT_ARGUMENT] = choice->next.argument,
                                     [NEXT_TIME] = choice->next.time,
                                     [REASON] = choice->reason};
    words[CHECK] = words_check(key, words);
    for (int i = 0; i < 2; i++)
        atomic_store_explicit(&e->key[i], key->words[i], memory_order_relaxed);
    for (uint32_t i = 0; i < TB_PLAN_WORDS; i++)
        atomic_store_explicit(&e->words[i], words[i], memory_order_relaxed);
}

/* ---- where it is ------------------------------------------------------------------------------------------------- */

static struct tb_plan_entry *probe(const struct tb_plan_table *t, const struct tb_plan_key *key, uint64_t i)
{
    return &t->entries[(key->words[0] + i) % TB_PLAN_TABLE_ENTRIES];
}

static bool state_is_of(uint64_t state, const struct tb_plan_key *key)
{
    return (state & KIND) != EMPTY && ((state ^ key->words[0]) & TAG_MASK) == 0;
}

/* The key's own entry and its state; NULL: it has none. */
static struct tb_plan_entry *entry_find(const struct tb_plan_table *t, const struct tb_plan_key *key, uint64_t *state)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        struct tb_plan_entry *e = probe(t, key, i);
        *state = atomic_load_explicit(&e->state, memory_order_acquire);
        if (state_is_of(*state, key))
            return e;
    }
    return NULL;
}

/* Takes an entry that is not being made by anybody. */
static bool entry_take(struct tb_plan_entry *e, const struct tb_plan_key *key, uint64_t state)
{
    uint64_t mine = (key->words[0] & TAG_MASK) | ((state + WRITING) & NUMBERS) | BEING_MADE;
    return (state & KIND) != BEING_MADE &&
           atomic_compare_exchange_strong_explicit(&e->state, &state, mine, memory_order_acq_rel, memory_order_relaxed);
}

/* An empty entry, or, if all are in use, one of them. False: somebody was faster. */
static bool entry_make(const struct tb_plan_table *t, const struct tb_plan_key *key)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        struct tb_plan_entry *e = probe(t, key, i);
        uint64_t state = atomic_load_explicit(&e->state, memory_order_acquire);
        if ((state & KIND) == EMPTY)
            return entry_take(e, key, state);
        if (state_is_of(state, key))
            return false;
    }
    struct tb_plan_entry *e = probe(t, key, key->words[1] % PROBES);
    return entry_take(e, key, atomic_load_explicit(&e->state, memory_order_acquire));
}

/* Until it is not being made for this key any more, but not for too long. */
static uint64_t entry_wait(const struct tb_plan_table *t, struct tb_plan_entry *e, uint64_t state)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    uint64_t since = tb_clock_now_real(), now = state;
    for (uint32_t i = 0; now == state && (i < YIELDS || tb_clock_now_real() - since < t->patience); i++) {
        if (i < YIELDS)
            sched_yield();
        else
            nanosleep(&nap, NULL);
        now = atomic_load_explicit(&e->state, memory_order_acquire);
    }
    return now;
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

void tb_plan_table_open(struct tb_plan_table *table, void *memory)
{
    *table = (struct tb_plan_table){.entries = memory, .patience = PATIENCE_NS};
    while (tb_catalogue[table->algorithm_count] != NULL)
        table->algorithm_count++;
}

int tb_plan_table_get(const struct tb_plan_table *table, const struct tb_plan_key *key, struct tb_choice *choice)
{
    /* Whoever was faster has taken an entry for this key, or for one of a few others. */
    for (uint32_t i = 0; i < PROBES; i++) {
        uint64_t state;
        struct tb_plan_entry *e = entry_find(table, key, &state);
        if (e == NULL && entry_make(table, key))
            return TB_AGAIN;
        if (e == NULL)
            continue;
        if ((state & KIND) == BEING_MADE && entry_wait(table, e, state) == state)
            return TB_AGAIN;
        if (entry_read(table, e, key, choice))
            return TB_OK;
        if ((state & KIND) == READY && entry_take(e, key, state))
            return TB_AGAIN;
    }
    return TB_AGAIN;
}

void tb_plan_table_put(const struct tb_plan_table *table, const struct tb_plan_key *key, const struct tb_choice *choice)
{
    uint64_t state;
    struct tb_plan_entry *e = entry_find(table, key, &state);
    if (e == NULL || (state & KIND) != BEING_MADE)
        return;
    /* Another process that was tired of waiting may write the same. One that is very late may spoil what has taken its
     * place: then that is not whole, and is made once more. */
    entry_write(e, key, choice);
    atomic_compare_exchange_strong_explicit(&e->state, &state, (state & ~(uint64_t)KIND) | READY, memory_order_acq_rel,
                                            memory_order_relaxed);
}

#include "mpi/handle.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/self.h"

#define GENERATION_LAST 0xffffffu
#define SPARES_LIMIT    32 /* requests that a thread keeps */

static struct tb_handle *table_grow(struct tb_table *table, size_t size)
{
    uint32_t chunk = table->made / TB_TABLE_CHUNK;
    if (chunk == TB_TABLE_CHUNKS) {
        tb_error(TB_ERR_LIMIT, "there are %u objects of this kind already, which is the limit", table->made);
        return NULL;
    }
    char *objects = calloc(TB_TABLE_CHUNK, size);
    if (objects == NULL) {
        tb_error(TB_ERR_MEMORY, "out of memory for %u objects of %zu bytes", TB_TABLE_CHUNK, size);
        return NULL;
    }
    for (uint32_t i = TB_TABLE_CHUNK; i-- > 0;) {
        struct tb_handle *head = (struct tb_handle *)(void *)(objects + i * size);
        head->index = TB_HANDLE_FIRST + table->made + i;
        head->next = table->free;
        table->free = head;
    }
    __atomic_store_n(&table->chunks[chunk], objects, __ATOMIC_RELEASE);
    __atomic_store_n(&table->made, table->made + TB_TABLE_CHUNK, __ATOMIC_RELEASE);
    return table->free;
}

/* Whether threads may make and free objects of this kind at any level of threads. */
static inline bool kind_anytime(enum tb_object kind)
{
    return __builtin_expect(kind == TB_OBJECT_INFO || kind == TB_OBJECT_ERRHANDLER || kind == TB_OBJECT_SESSION, 0);
}

static inline void table_lock(enum tb_object kind)
{
    if (kind_anytime(kind))
        pthread_mutex_lock(&tb_self.anytime_lock);
    else
        tb_self_lock();
}

static inline void table_unlock(enum tb_object kind)
{
    if (kind_anytime(kind))
        pthread_mutex_unlock(&tb_self.anytime_lock);
    else
        tb_self_unlock();
}

/* Without a handle yet. The table is locked. */
static inline struct tb_handle *table_take_free(struct tb_table *table, size_t size)
{
    struct tb_handle *head = table->free;
    if (__builtin_expect(head == NULL, 0))
        head = table_grow(table, size);
    if (__builtin_expect(head != NULL, 1)) {
        table->free = head->next;
        table->used++;
    }
    return head;
}

static inline void *table_name(enum tb_object kind, struct tb_handle *head)
{
    head->generation = (head->generation + 1) & GENERATION_LAST;
    head->value = (uint64_t)kind << 56 | (uint64_t)head->generation << 32 | head->index;
    return head;
}

/* The table is locked. */
static inline struct tb_handle *table_take(enum tb_object kind, size_t size)
{
    struct tb_handle *head = table_take_free(&tb_self.tables[kind], size);
    return __builtin_expect(head != NULL, 1) ? table_name(kind, head) : NULL;
}

/* ---- spare requests ---------------------------------------------------------------------------------------------- */

/* Free requests that a thread keeps, so that threads seldom meet at the lock of the table, which counts them as used.
 * They go back when there are too many, and when the thread ends. */
struct spares {
    struct tb_handle *first;
    uint32_t count;
    bool kept; /* somebody gives them back at the end */
};

static _Thread_local struct spares spares;
static pthread_key_t spares_key;
static bool spares_possible;

static void spares_give_back(struct spares *s, uint32_t left)
{
    struct tb_table *table = &tb_self.tables[TB_OBJECT_REQUEST];
    tb_self_lock();
    for (; s->count > left; s->count--) {
        struct tb_handle *head = s->first;
        s->first = head->next;
        head->next = table->free;
        table->free = head;
        table->used--;
    }
    tb_self_unlock();
}

static void spares_end(void *ending)
{
    struct spares *s = ending;
    s->kept = false;
    spares_give_back(s, 0);
}

static void spares_begin(void)
{
    spares_possible = pthread_key_create(&spares_key, spares_end) == 0;
}

/* Threads may outlive the library, where that was loaded by hand. */
static __attribute__((destructor)) void spares_forget(void)
{
    if (spares_possible)
        pthread_key_delete(spares_key);
}

/* How many this thread may keep. */
static uint32_t spares_limit(struct spares *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (__builtin_expect(!s->kept, 0)) {
        pthread_once(&once, spares_begin);
        s->kept = spares_possible && pthread_setspecific(spares_key, s) == 0;
    }
    return s->kept ? SPARES_LIMIT : 0;
}

static __attribute__((noinline)) void spares_fill(struct spares *s, size_t size)
{
    uint32_t wanted = spares_limit(s) / 2;
    struct tb_table *table = &tb_self.tables[TB_OBJECT_REQUEST];
    tb_self_lock();
    do {
        struct tb_handle *head = table_take_free(table, size);
        if (head == NULL)
            break;
        head->next = s->first;
        s->first = head;
        s->count++;
    } while (s->count < wanted);
    tb_self_unlock();
}

static inline void *spares_take(struct spares *s, size_t size)
{
    if (__builtin_expect(s->count == 0, 0))
        spares_fill(s, size);
    struct tb_handle *head = s->first;
    if (__builtin_expect(s->count == 0, 0))
        return NULL;
    s->first = head->next;
    s->count--;
    return table_name(TB_OBJECT_REQUEST, head);
}

static inline void spares_give(struct spares *s, struct tb_handle *head)
{
    head->value = 0;
    head->next = s->first;
    s->first = head;
    if (__builtin_expect(++s->count > spares_limit(s), 0))
        spares_give_back(s, spares_limit(s) / 2);
}

/* ---- taking and giving ------------------------------------------------------------------------------------------- */

void *tb_handle_take_raw(enum tb_object kind, size_t size)
{
    if (kind == TB_OBJECT_REQUEST && __builtin_expect(!tb_self.single, 0))
        return spares_take(&spares, size);
    tb_self_lock();
    struct tb_handle *head = table_take(kind, size);
    tb_self_unlock();
    return head;
}

void *tb_handle_take(enum tb_object kind, size_t size)
{
    table_lock(kind);
    char *object = (char *)table_take(kind, size);
    table_unlock(kind);
    if (object != NULL)
        memset(object + sizeof(struct tb_handle), 0, size - sizeof(struct tb_handle));
    return object;
}

void tb_handle_give(enum tb_object kind, void *object)
{
    struct tb_table *table = &tb_self.tables[kind];
    struct tb_handle *head = object;
    TB_ASSERT(head->value >> 56 == (uint64_t)kind);
    if (kind == TB_OBJECT_REQUEST && __builtin_expect(!tb_self.single, 0)) {
        spares_give(&spares, head);
        return;
    }
    table_lock(kind);
    head->value = 0;
    table->used--;
    /* When generations start over, an old handle could be taken for a new one. Only requests are so many and live so
     * short that this is better than losing their place. */
    if (kind == TB_OBJECT_REQUEST || head->generation != GENERATION_LAST) {
        head->next = table->free;
        table->free = head;
    }
    table_unlock(kind);
}

void *tb_handle_at(enum tb_object kind, size_t size, uint32_t index)
{
    const struct tb_table *table = &tb_self.tables[kind];
    uint32_t at = index - TB_HANDLE_FIRST;
    if (index < TB_HANDLE_FIRST || at >= __atomic_load_n(&table->made, __ATOMIC_ACQUIRE))
        return NULL;
    struct tb_handle *head =
        (struct tb_handle *)(void *)((char *)table->chunks[at / TB_TABLE_CHUNK] + (at % TB_TABLE_CHUNK) * size);
    return head->value != 0 ? head : NULL;
}

int tb_handle_to_int(const void *handle)
{
    return (int)(uint32_t)(uintptr_t)handle;
}

void *tb_handle_from_int(enum tb_object kind, size_t size, int value, void *null)
{
    if (value >= 0 && (uint32_t)value < TB_HANDLE_FIRST)
        return (void *)(uintptr_t)value;
    const struct tb_handle *head = tb_handle_at(kind, size, (uint32_t)value);
    return head != NULL ? (void *)(uintptr_t)head->value : null;
}

/* Handles. The handles of the standard have its small values. Every other handle encodes the kind of the object, a
 * generation and the object's index in the table of its kind, so that a freed handle, a handle of another kind or
 * garbage is recognised without touching memory that is not ours:
 *
 *     bits 63..56 kind    bits 55..32 generation    bits 31..0 index, from TB_HANDLE_FIRST up
 *
 * The index is also what the integer conversions (MPI_Comm_toint...) return.
 *
 * A table owns the memory of its objects, in chunks that never move or go away, so lookups need no lock. Taking and
 * giving back is serialised when the process is threaded (of requests each thread keeps a few), and always for info
 * objects, error handlers and sessions, which threads may make and free at any level of threads (MPI-5.0, 12.4.1);
 * using an object while another thread frees it is the user's error. A table that is all zero is empty and ready for
 * use. */
#ifndef TB_MPI_HANDLE_H
#define TB_MPI_HANDLE_H

#include "base/base.h"

enum tb_object {
    TB_OBJECT_COMM = 1,
    TB_OBJECT_GROUP,
    TB_OBJECT_REQUEST,
    TB_OBJECT_MESSAGE,
    TB_OBJECT_ERRHANDLER,
    TB_OBJECT_INFO,
    TB_OBJECT_OP,
    TB_OBJECT_TYPE,
    TB_OBJECT_WIN,
    TB_OBJECT_FILE,
    TB_OBJECT_SESSION,
    TB_OBJECT_COUNT
};

#define TB_HANDLE_FIRST 4096u  /* smaller values are the standard's */
#define TB_TABLE_CHUNK  64u    /* objects that are allocated together */
#define TB_TABLE_CHUNKS 16384u /* of a table: the limit is a million objects of a kind */

/* The head of every object that has a handle. */
struct tb_handle {
    uint64_t value; /* the handle; 0 while the object is free */
    uint32_t index;
    uint32_t generation;
    struct tb_handle *next; /* in the list of free objects */
};

struct tb_table {
    uint32_t made; /* objects that exist, free ones included */
    uint32_t used;
    struct tb_handle *free;
    void *chunks[TB_TABLE_CHUNKS];
};

/* A new object of `size` bytes, zeroed behind its head, with its handle set. NULL: out of memory or at the limit; the
 * story is in tb_error. */
void *tb_handle_take(enum tb_object kind, size_t size);
/* As tb_handle_take, but the content behind the head is arbitrary. Not for info objects, error handlers and sessions.
 */
void *tb_handle_take_raw(enum tb_object kind, size_t size);
void tb_handle_give(enum tb_object kind, void *object);
/* The object of that index, NULL if there is none. */
void *tb_handle_at(enum tb_object kind, size_t size, uint32_t index);
/* For the conversions between handles and integers. */
int tb_handle_to_int(const void *handle);
void *tb_handle_from_int(enum tb_object kind, size_t size, int value, void *null);

static inline bool tb_handle_predefined(const void *handle)
{
    return (uintptr_t)handle < TB_HANDLE_FIRST;
}

/* The object of a handle that is not predefined, NULL if there is none. `size` is a constant at each caller. */
static inline void *tb_table_find(const struct tb_table *table, enum tb_object kind, size_t size, const void *handle)
{
    uint64_t value = (uint64_t)(uintptr_t)handle;
    uint32_t at = (uint32_t)value - TB_HANDLE_FIRST;
    if (__builtin_expect(at >= TB_TABLE_CHUNK * TB_TABLE_CHUNKS || value >> 56 != (uint64_t)kind, 0))
        return NULL;
    char *chunk = (char *)table->chunks[at / TB_TABLE_CHUNK];
    if (__builtin_expect(chunk == NULL, 0))
        return NULL;
    struct tb_handle *head = (struct tb_handle *)(void *)(chunk + (at % TB_TABLE_CHUNK) * size);
    return __builtin_expect(head->value == value, 1) ? head : NULL;
}

#endif

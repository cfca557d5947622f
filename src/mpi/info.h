/* Info objects: keys and values in the order in which they were first set. An object belongs to the program that made
 * it. MPI's calls on them may be made by several threads at a time, whatever the level of threads; within the library
 * one thread at a time uses an object. */
#ifndef TB_MPI_INFO_H
#define TB_MPI_INFO_H

#include "mpi/error.h"

#define TB_INFO_LIMIT 4096u /* keys of one object */

struct tb_info_pair {
    char *key, *value;
};

struct tb_info {
    struct tb_handle head;
    uint32_t count, room;
    struct tb_info_pair *pairs;
};

struct tb_info *tb_info_new(void); /* NULL: no memory */
int tb_info_put(struct tb_info *info, const char *key, const char *value);
void tb_info_free(struct tb_info *info);
struct tb_info *tb_info_find(MPI_Info handle);                          /* NULL if there is none */
const char *tb_info_value(const struct tb_info *info, const char *key); /* NULL if there is none */
/* A key whose value is a number of seconds, in nanoseconds, at most 1e18; *ns is left alone if there is none. */
int tb_info_seconds(const struct tb_info *info, const char *key, uint64_t *ns);
/* The handle of an info object, argument `position`, is not one: says why. */
int tb_raise_info(struct tb_comm *comm, const char *call, int position, MPI_Info handle) __attribute__((cold));

static inline MPI_Info tb_info_handle(const struct tb_info *info)
{
    return (MPI_Info)(uintptr_t)info->head.value;
}

#endif

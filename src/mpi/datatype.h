/* Datatypes as the MPI calls see them. A predefined type is found in a table by its handle. For every other handle
 * there is a struct tb_datatype, which holds a struct tb_type of the data layer and what the program has attached; it
 * lives until MPI_Type_free, or a little longer if reduction functions of the program will still be given the handle;
 * the type itself lives until the last request, handle or other type that uses it is gone. Any thread may look one up,
 * name it, commit it or attach to it. */
#ifndef TB_MPI_DATATYPE_H
#define TB_MPI_DATATYPE_H

#include "mpi/attribute.h"
#include "mpi/self.h"

struct tb_datatype {
    struct tb_handle head;      /* zero for the predefined ones */
    const struct tb_type *type; /* held */
    bool permanent;             /* the program cannot free it */
    bool freed;                 /* the program has done so; it is held, see tb_datatype_hold */
    uint32_t holders;
    bool named; /* `name` was set, which overrides the name of a predefined type */
    struct tb_attributes attributes;
    struct tb_list same; /* ring of all handles of the same type */
    char name[MPI_MAX_OBJECT_NAME];
};

/* The type of a handle, NULL if there is none. It may be uncommitted. */
static inline const struct tb_type *tb_type_find(MPI_Datatype datatype)
{
    uintptr_t at = (uintptr_t)datatype - (uintptr_t)MPI_DATATYPE_NULL;
    if (__builtin_expect(at < sizeof tb_self.types / sizeof tb_self.types[0], 1))
        return tb_self.types[at];
    const struct tb_datatype *d =
        tb_table_find(&tb_self.tables[TB_OBJECT_TYPE], TB_OBJECT_TYPE, sizeof(struct tb_datatype), datatype);
    return d != NULL ? d->type : NULL;
}

/* As long as something goes on with a type, it is kept alive, whatever the program frees meanwhile. Returns what
 * tb_type_let_go must be given in the end; NULL for types that live forever. */
static inline const struct tb_type *tb_type_keep(const struct tb_type *type)
{
    if (__builtin_expect(__atomic_load_n((const uint32_t *)&type->users, __ATOMIC_RELAXED) == 0, 1))
        return NULL;
    return tb_type_hold(type);
}

static inline void tb_type_let_go(const struct tb_type *kept)
{
    if (__builtin_expect(kept != NULL, 0))
        tb_type_release(kept);
}

void tb_types_open(void); /* fills tb_self.types */

/* The handle's object; NULL if there is none. For a predefined type it is made when it is first needed, and NULL may
 * also mean that there is no memory. */
struct tb_datatype *tb_datatype_find(MPI_Datatype datatype);
/* A handle for a type whose user it becomes; a permanent one is always the same. Raises errors; the type is then
 * released. */
int tb_datatype_new(const char *call, const struct tb_type *type, bool permanent, MPI_Datatype *handle);
void tb_datatype_free(struct tb_datatype *datatype);
/* As long as a reduction with a function of the program may go on, the handle that the function is given stays one,
 * whatever the program frees meanwhile. Types without users, such as the predefined ones, need that not. The type
 * itself must be kept for as long. */
void tb_datatype_hold(const struct tb_type *type);
void tb_datatype_let_go(const struct tb_type *type);

static inline struct tb_bearer tb_datatype_bearer(MPI_Datatype handle, struct tb_datatype *datatype)
{
    return (struct tb_bearer){TB_BEARER_TYPE, handle, &datatype->attributes, NULL, NULL};
}

/* How a type is called in messages: its name, or what it is. */
const char *tb_type_label(const struct tb_type *type);
/* Raises MPI_ERR_TYPE: says what is wrong with the handle, or that the type is not committed. */
int tb_raise_type(struct tb_comm *comm, const char *call, int position, const char *name, MPI_Datatype datatype)
    __attribute__((cold));

#endif

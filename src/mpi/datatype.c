/* Datatypes (MPI-5.0, chapter 5): handles and their life, sizes, extents, addresses. */
#include "mpi/datatype.h"

#include <stdlib.h>

#include "mpi/comm.h"
#include "mpi/error.h"
#include "mpi/binding_decls.h"

#define PREDEFINED_COUNT (sizeof tb_self.types / sizeof tb_self.types[0])

void tb_types_open(void)
{
    for (uintptr_t i = 1; i < PREDEFINED_COUNT; i++)
        tb_self.types[i] = tb_type_predefined((uintptr_t)MPI_DATATYPE_NULL + i);
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static struct tb_datatype *find_derived(MPI_Datatype datatype)
{
    return tb_table_find(&tb_self.tables[TB_OBJECT_TYPE], TB_OBJECT_TYPE, sizeof(struct tb_datatype), datatype);
}

struct tb_datatype *tb_datatype_find(MPI_Datatype datatype)
{
    uintptr_t at = (uintptr_t)datatype - (uintptr_t)MPI_DATATYPE_NULL;
    if (at >= PREDEFINED_COUNT)
        return find_derived(datatype);
    if (tb_self.types[at] == NULL)
        return NULL;
    tb_self_lock();
    if (tb_self.attached == NULL) {
        tb_self.attached = calloc(PREDEFINED_COUNT, sizeof *tb_self.attached);
        for (uintptr_t i = 0; tb_self.attached != NULL && i < PREDEFINED_COUNT; i++) {
            tb_self.attached[i].type = tb_self.types[i];
            tb_self.attached[i].permanent = true;
        }
    }
    tb_self_unlock();
    return tb_self.attached != NULL ? &tb_self.attached[at] : NULL;
}

/* The type is immutable but for this: which of its handles reduction functions are given. */
static void set_handle(const struct tb_type *type, uintptr_t handle)
{
    ((struct tb_type *)type)->handle = handle;
}

int tb_datatype_new(const char *call, const struct tb_type *type, bool permanent, MPI_Datatype *handle)
{
    struct tb_datatype *d = tb_handle_take(TB_OBJECT_TYPE, sizeof *d);
    if (d == NULL) {
        tb_type_release(type);
        return tb_raise_below(NULL, TB_ERR_MEMORY, call);
    }
    d->type = type;
    d->permanent = permanent;
    tb_list_init(&d->same);
    tb_self_lock();
    struct tb_datatype *other = find_derived((MPI_Datatype)type->handle);
    *handle = (MPI_Datatype)(uintptr_t)(permanent && other != NULL ? other : d)->head.value;
    if (other == NULL)
        set_handle(type, (uintptr_t)d->head.value);
    else if (!permanent)
        tb_list_append(&other->same, &d->same);
    tb_self_unlock();
    if (permanent && other != NULL)
        tb_handle_give(TB_OBJECT_TYPE, d);
    return MPI_SUCCESS;
}

/* Takes a freed handle that nobody holds from its type. False: it is not one. tb_self is locked. */
static bool handle_unlink(struct tb_datatype *d)
{
    const struct tb_type *type = d->type;
    if (!d->freed || d->holders > 0)
        return false;
    if (type->handle == (uintptr_t)d->head.value)
        set_handle(type, tb_list_empty(&d->same)
                             ? 0
                             : (uintptr_t)TB_CONTAINER(d->same.next, struct tb_datatype, same)->head.value);
    tb_list_remove(&d->same);
    return true;
}

static void handle_give(struct tb_datatype *d)
{
    const struct tb_type *type = d->type;
    tb_handle_give(TB_OBJECT_TYPE, d);
    tb_type_release(type);
}

void tb_datatype_free(struct tb_datatype *d)
{
    tb_self_lock();
    d->freed = true;
    bool gone = handle_unlink(d);
    tb_self_unlock();
    if (gone)
        handle_give(d);
}

/* Of the handles of a type it is the one that functions are given, which does not change while there are holders. */
void tb_datatype_hold(const struct tb_type *type)
{
    tb_self_lock();
    struct tb_datatype *d = find_derived((MPI_Datatype)type->handle);
    if (d != NULL)
        d->holders++;
    tb_self_unlock();
}

void tb_datatype_let_go(const struct tb_type *type)
{
    tb_self_lock();
    struct tb_datatype *d = find_derived((MPI_Datatype)type->handle);
    TB_ASSERT(d == NULL || d->holders > 0);
    if (d != NULL)
        d->holders--;
    bool gone = d != NULL && handle_unlink(d);
    tb_self_unlock();
    if (gone)
        handle_give(d);
}

const char *tb_type_label(const struct tb_type *type)
{
    const struct tb_datatype *d = find_derived((MPI_Datatype)type->handle);
    if (d != NULL && d->named)
        return d->name;
    return type->name[0] != 0 ? type->name : "a derived datatype";
}

int tb_raise_type(struct tb_comm *comm, const char *call, int position, const char *name, MPI_Datatype datatype)
{
    tb_require_active(call);
    const struct tb_type *type = tb_type_find(datatype);
    const char *what = "this is no handle of a datatype";
    if (type != NULL)
        what = "the datatype is not committed; see MPI_Type_commit";
    else if (datatype == MPI_DATATYPE_NULL)
        what = "it is MPI_DATATYPE_NULL";
    else if ((uint64_t)(uintptr_t)datatype >> 56 == TB_OBJECT_TYPE)
        what = "the datatype has been freed";
    return tb_raise_argument(comm, MPI_ERR_TYPE, call, position, name, "%s", what);
}

/* Predefined types have the standard's values. */
int tb_mpi_Type_toint(MPI_Datatype datatype)
{
    return tb_handle_to_int(datatype);
}

MPI_Datatype tb_mpi_Type_fromint(int datatype)
{
    return tb_handle_from_int(TB_OBJECT_TYPE, sizeof(struct tb_datatype), datatype, MPI_DATATYPE_NULL);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

int tb_mpi_Type_commit(MPI_Datatype *datatype)
{
    static const char call[] = "MPI_Type_commit";
    if (datatype == NULL)
        return tb_raise_null(NULL, call, 1, "datatype");
    const struct tb_type *type = tb_type_find(*datatype);
    if (type == NULL)
        return tb_raise_type(NULL, call, 1, "datatype", *datatype);
    if (!type->committed)
        tb_type_commit((struct tb_type *)type);
    return MPI_SUCCESS;
}

int tb_mpi_Type_free(MPI_Datatype *datatype)
{
    static const char call[] = "MPI_Type_free";
    if (datatype == NULL)
        return tb_raise_null(NULL, call, 1, "datatype");
    const struct tb_type *type = tb_type_find(*datatype);
    if (type == NULL)
        return tb_raise_type(NULL, call, 1, "datatype", *datatype);
    struct tb_datatype *d = find_derived(*datatype);
    if (d != NULL && d->freed)
        return tb_raise_argument(NULL, MPI_ERR_TYPE, call, 1, "datatype", "the datatype has been freed");
    if (d == NULL || d->permanent)
        return tb_raise_argument(NULL, MPI_ERR_TYPE, call, 1, "datatype", "%s is predefined and cannot be freed",
                                 tb_type_label(type));
    struct tb_bearer bearer = tb_datatype_bearer(*datatype, d);
    int code = tb_attributes_delete(&bearer);
    if (code != MPI_SUCCESS)
        return tb_raise_code(NULL, code);
    tb_datatype_free(d);
    *datatype = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

int tb_mpi_Type_dup(MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    static const char call[] = "MPI_Type_dup";
    struct tb_datatype *old = tb_datatype_find(oldtype);
    if (tb_type_find(oldtype) == NULL)
        return tb_raise_type(NULL, call, 1, "oldtype", oldtype);
    if (newtype == NULL)
        return tb_raise_null(NULL, call, 2, "newtype");
    if (old == NULL)
        return tb_raise(NULL, MPI_ERR_NO_MEM, call, "out of memory for attributes of datatypes");
    struct tb_type *type = NULL;
    MPI_Datatype handle = MPI_DATATYPE_NULL;
    int error = tb_type_dup(old->type, &type);
    if (error < 0)
        return tb_raise_below(NULL, error, call);
    int code = tb_datatype_new(call, type, false, &handle);
    if (code != MPI_SUCCESS)
        return code;
    struct tb_datatype *made = find_derived(handle);
    struct tb_bearer from = tb_datatype_bearer(oldtype, old), to = tb_datatype_bearer(handle, made);
    code = tb_attributes_copy(&from, to.attributes);
    if (code == MPI_SUCCESS) {
        *newtype = handle;
        return MPI_SUCCESS;
    }
    tb_attributes_delete(&to);
    tb_datatype_free(made);
    *newtype = MPI_DATATYPE_NULL;
    return tb_raise_code(NULL, code);
}

/* ---- size and extent --------------------------------------------------------------------------------------------- */

int tb_mpi_Type_size(MPI_Datatype datatype, MPI_Count *size)
{
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL)
        return tb_raise_type(NULL, "MPI_Type_size", 1, "datatype", datatype);
    if (size == NULL)
        return tb_raise_null(NULL, "MPI_Type_size", 2, "size");
    *size = (MPI_Count)type->size;
    return MPI_SUCCESS;
}

int tb_mpi_Type_get_extent(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
    static const char call[] = "MPI_Type_get_extent";
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL)
        return tb_raise_type(NULL, call, 1, "datatype", datatype);
    if (lb == NULL || extent == NULL)
        return tb_raise_null(NULL, call, lb == NULL ? 2 : 3, lb == NULL ? "lb" : "extent");
    *lb = type->lower_bound;
    *extent = type->extent;
    return MPI_SUCCESS;
}

int tb_mpi_Type_get_true_extent(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
    static const char call[] = "MPI_Type_get_true_extent";
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL)
        return tb_raise_type(NULL, call, 1, "datatype", datatype);
    if (true_lb == NULL || true_extent == NULL)
        return tb_raise_null(NULL, call, true_lb == NULL ? 2 : 3, true_lb == NULL ? "true_lb" : "true_extent");
    *true_lb = type->true_lower_bound;
    *true_extent = type->true_extent;
    return MPI_SUCCESS;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

int tb_mpi_Get_address(const void *location, MPI_Aint *address)
{
    if (address == NULL)
        return tb_raise_null(NULL, "MPI_Get_address", 2, "address");
    *address = (MPI_Aint)location;
    return MPI_SUCCESS;
}

MPI_Aint tb_mpi_Aint_add(MPI_Aint base, MPI_Aint disp)
{
    return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp);
}

MPI_Aint tb_mpi_Aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
    return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2);
}

/* Names of datatypes and the attributes of a program on them (MPI-5.0, 7.7.4 and 7.8). */
#include <stdio.h>

#include "mpi/datatype.h"
#include "mpi/error.h"
#include "mpi/binding_decls.h"

/* The object of a handle; NULL, and *code is what was raised, if there is none. */
static struct tb_datatype *find(const char *call, MPI_Datatype datatype, int *code)
{
    *code = MPI_SUCCESS;
    struct tb_datatype *d = tb_datatype_find(datatype);
    if (d != NULL)
        return d;
    if (tb_type_find(datatype) == NULL)
        *code = tb_raise_type(NULL, call, 1, "datatype", datatype);
    else
        *code = tb_raise(NULL, MPI_ERR_NO_MEM, call, "out of memory for names and attributes of datatypes");
    return NULL;
}

int tb_mpi_Type_set_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val)
{
    static const char call[] = "MPI_Type_set_attr";
    int code;
    struct tb_datatype *d = find(call, datatype, &code);
    if (d == NULL)
        return code;
    struct tb_bearer bearer = tb_datatype_bearer(datatype, d);
    return tb_attribute_set(&bearer, call, type_keyval, attribute_val);
}

int tb_mpi_Type_get_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val, int *flag)
{
    static const char call[] = "MPI_Type_get_attr";
    int code;
    struct tb_datatype *d = find(call, datatype, &code);
    if (d == NULL)
        return code;
    struct tb_bearer bearer = tb_datatype_bearer(datatype, d);
    return tb_attribute_get(&bearer, call, type_keyval, attribute_val, flag);
}

int tb_mpi_Type_delete_attr(MPI_Datatype datatype, int type_keyval)
{
    static const char call[] = "MPI_Type_delete_attr";
    int code;
    struct tb_datatype *d = find(call, datatype, &code);
    if (d == NULL)
        return code;
    struct tb_bearer bearer = tb_datatype_bearer(datatype, d);
    return tb_attribute_delete(&bearer, call, type_keyval);
}

int tb_mpi_Type_set_name(MPI_Datatype datatype, const char *type_name)
{
    static const char call[] = "MPI_Type_set_name";
    int code;
    struct tb_datatype *d = find(call, datatype, &code);
    if (d == NULL)
        return code;
    if (type_name == NULL)
        return tb_raise_null(NULL, call, 2, "type_name");
    tb_self_lock();
    snprintf(d->name, sizeof d->name, "%s", type_name);
    d->named = true;
    tb_self_unlock();
    return MPI_SUCCESS;
}

int tb_mpi_Type_get_name(MPI_Datatype datatype, char *type_name, int *resultlen)
{
    static const char call[] = "MPI_Type_get_name";
    static const struct tb_datatype null = {.named = true, .name = "MPI_DATATYPE_NULL"};
    int code = MPI_SUCCESS;
    tb_require_active(call);
    const struct tb_datatype *d = datatype == MPI_DATATYPE_NULL ? &null : find(call, datatype, &code);
    if (d == NULL)
        return code;
    if (type_name == NULL || resultlen == NULL)
        return tb_raise_null(NULL, call, type_name == NULL ? 2 : 3, type_name == NULL ? "type_name" : "resultlen");
    tb_self_lock();
    *resultlen = snprintf(type_name, MPI_MAX_OBJECT_NAME, "%s",
                          d->named             ? d->name
                          : d->head.value == 0 ? d->type->name
                                               : "");
    tb_self_unlock();
    return MPI_SUCCESS;
}

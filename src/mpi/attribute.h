/* Attributes: values that a program attaches to communicators, datatypes and windows under keys that it has made. The
 * mechanism is the same for the three kinds; a key serves one of them. An object that can bear attributes has a struct
 * tb_attributes, all zero at first. Any thread may make and free keys, and set, read and delete what an object bears:
 * its delete function is called once for each value, and no lock is held meanwhile. */
#ifndef TB_MPI_ATTRIBUTE_H
#define TB_MPI_ATTRIBUTE_H

#include "mpi/self.h"

enum tb_bearer_kind { TB_BEARER_COMM, TB_BEARER_TYPE, TB_BEARER_WIN };

struct tb_attribute;
struct tb_errhandler;

struct tb_attributes {
    struct tb_attribute *newest;
};

/* An object and its attributes, for the functions below. */
struct tb_bearer {
    enum tb_bearer_kind kind;
    void *handle; /* MPI_Comm, MPI_Datatype or MPI_Win, as the program's functions get it */
    struct tb_attributes *attributes;
    struct tb_comm *comm;             /* whose error handler gets what goes wrong; NULL: that of the process, or */
    struct tb_errhandler *errhandler; /* that of a window; else NULL */
};

/* The calls MPI_X_set_attr, get_attr and delete_attr for an object that exists, with the standard's arguments. They
 * raise errors and return MPI codes. */
int tb_attribute_set(const struct tb_bearer *bearer, const char *call, int keyval, void *value);
int tb_attribute_get(const struct tb_bearer *bearer, const char *call, int keyval, void *attribute_val, int *flag);
int tb_attribute_delete(const struct tb_bearer *bearer, const char *call, int keyval);

/* For duplicating an object: gives `to` what the keys' copy functions allow, oldest first. An MPI code that is not
 * raised; on an error `to` has what was copied before. */
int tb_attributes_copy(const struct tb_bearer *from, struct tb_attributes *to);
/* For freeing an object: calls the delete functions, newest first, and stops at the first that refuses. An MPI code
 * that is not raised. */
int tb_attributes_delete(const struct tb_bearer *bearer);

#endif

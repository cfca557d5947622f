/* In which of its three forms a collective is called: they have one implementation, which gets this from the generated
 * bindings (see bindings.py) and differs only in what becomes of a call whose arguments are right. A form owns nothing
 * and lives as long as the call. */
#ifndef TB_MPI_FORM_H
#define TB_MPI_FORM_H

#include <mpi.h>

enum tb_form_kind {
    TB_FORM_BLOCKING,    /* it runs to its end */
    TB_FORM_NONBLOCKING, /* it is started, and a request is returned */
    TB_FORM_PERSISTENT   /* a request is returned that starts it */
};

struct tb_form {
    const char *call; /* "MPI_Igather" */
    enum tb_form_kind kind;
    int request_at;       /* position of the request among the arguments; info comes right before it */
    MPI_Info info;        /* of a persistent one */
    MPI_Request *request; /* not of a blocking one */
};

#endif

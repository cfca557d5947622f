#include "mpi/session.h"

#include <stdlib.h>

#include "mpi/binding_decls.h"

struct tb_session *tb_session_hold(struct tb_session *session)
{
    if (session != NULL)
        __atomic_add_fetch(&session->references, 1, __ATOMIC_RELAXED);
    return session;
}

void tb_session_release(struct tb_session *session)
{
    if (session == NULL || __atomic_sub_fetch(&session->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    free(session->memory_kinds);
    session->memory_kinds = NULL;
    session->head.value = session->finalized;
    tb_handle_give(TB_OBJECT_SESSION, session);
}

int tb_mpi_Session_toint(MPI_Session session)
{
    return tb_handle_to_int(session);
}

MPI_Session tb_mpi_Session_fromint(int session)
{
    return tb_handle_from_int(TB_OBJECT_SESSION, sizeof(struct tb_session), session, MPI_SESSION_NULL);
}

/* Sessions (MPI-5.0, 11.3). A struct tb_session is what MPI_Session names: it keeps the library present in the job
 * (presence.h), and is what groups and the communicators made of them come from, which know it for its buffer. It lives
 * until the program has finalised it and the last of these is gone. Any thread. */
#ifndef TB_MPI_SESSION_H
#define TB_MPI_SESSION_H

#include "mpi/self.h"

struct tb_bsend;
struct tb_errhandler;

struct tb_session {
    struct tb_handle head;
    uint64_t finalized;               /* the handle, once the program has finalised it while something refers to it */
    uint32_t references;              /* the handle, groups and communicators */
    int thread_level;                 /* MPI_THREAD_ */
    struct tb_errhandler *errhandler; /* held until it is finalised */
    struct tb_bsend *bsend;           /* buffered.c: the buffer attached to this session */
    char *memory_kinds;               /* that the program has asked for; NULL: as at the start of the process */
};

static inline struct tb_session *tb_session_find(MPI_Session handle) /* NULL if there is none */
{
    return tb_table_find(&tb_self.tables[TB_OBJECT_SESSION], TB_OBJECT_SESSION, sizeof(struct tb_session), handle);
}

struct tb_session *tb_session_hold(struct tb_session *session); /* both: NULL is no session, and stays that */
void tb_session_release(struct tb_session *session);

#endif

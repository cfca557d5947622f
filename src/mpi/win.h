/* Windows of one-sided communication (MPI-5.0, chapter 12). A struct tb_win is what MPI_Win names: a communicator of
 * its own with the same ranks, what is known of the memory of each of them, what the program has attached, and the
 * engine's view of it, which serves accesses. It lives from the call that makes it, collectively, until all ranks have
 * freed it. Any thread may look one up. */
#ifndef TB_MPI_WIN_H
#define TB_MPI_WIN_H

#include <stdatomic.h>

#include "mpi/comm.h"

/* What a program says of its use of a window (win_hint.c). */
struct tb_win_hints {
    bool no_locks;
    bool same_size, same_unit;
    bool same_op;         /* accumulate_ops=same_op; else same_op_no_op */
    bool noncontig;       /* alloc_shared_noncontig: each rank's memory begins on a page of its own */
    bool standby;         /* tombolo_standby: accesses that need this process are served while it computes */
    uint8_t ordering;     /* accumulate_ordering: bits of enum tb_win_order */
    uint32_t granularity; /* mpi_accumulate_granularity; 0: not said */
    uint64_t alignment;   /* mpi_minimum_memory_alignment; 0: not said */
};

/* Accumulates of one origin to the same place stay in order: a read after a read, and so on. */
enum tb_win_order { TB_WIN_RAR = 1, TB_WIN_RAW = 2, TB_WIN_WAR = 4, TB_WIN_WAW = 8, TB_WIN_ORDERED = 15 };

/* The memory of one rank, as all know it. */
struct tb_win_part {
    uint64_t base; /* its address in that process; of a dynamic window 0: displacements are addresses */
    uint64_t size; /* bytes; of a dynamic window UINT64_MAX */
    uint64_t unit; /* bytes of a displacement */
};

/* In which epochs this rank is (win_check.h). Threads may access and lock ranks at the same time. */
struct tb_win_epochs {
    _Atomic bool fenced;     /* since a fence its ranks may be accessed, */
    _Atomic bool used;       /* and one was */
    bool posted;             /* the ranks of a group may access this one's memory */
    bool started;            /* this rank may access that of a group: */
    bool locked_all;         /* or of all, and */
    bool unchecked;          /* without asking for their locks */
    _Atomic uint32_t locked; /* or of so many, one by one */
    uint32_t group_size;
    uint32_t *group;        /* those that were started, or NULL */
    _Atomic uint8_t *ranks; /* bits TB_EPOCH_ of each rank */
};

struct tb_win {
    struct tb_handle head;
    struct tb_comm
        *comm; /* its own, which has this as `win`, for what the library tells itself; size and rank are the window's */
    struct tb_errhandler *errhandler; /* held */
    struct tb_attributes attributes;
    int flavor, model;           /* MPI_WIN_FLAVOR_, MPI_WIN_UNIFIED */
    int unit;                    /* of this rank, as the attribute MPI_WIN_DISP_UNIT gives it */
    MPI_Aint size;               /* of this rank, */
    void *base;                  /* and where it is; of a dynamic window MPI_BOTTOM */
    struct tb_win_part *parts;   /* of each rank */
    struct tb_window_host *host; /* what ranks of this host share for it */
    struct tb_window *window;    /* of the engine */
    struct tb_win_hints hints;
    struct tb_win_epochs epochs;
    char name[MPI_MAX_OBJECT_NAME];
};

static inline MPI_Win tb_win_handle(const struct tb_win *win)
{
    return (MPI_Win)(uintptr_t)win->head.value;
}

static inline struct tb_win *tb_win_find(MPI_Win handle) /* NULL if there is none, also when MPI is not active */
{
    if (!tb_self_active())
        return NULL;
    return tb_table_find(&tb_self.tables[TB_OBJECT_WIN], TB_OBJECT_WIN, sizeof(struct tb_win), handle);
}

/* Raises an error of a call on a window, with its error handler; the second: about one of its arguments. */
int tb_win_raise(struct tb_win *win, int class, const char *call, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));
int tb_win_raise_argument(struct tb_win *win, int class, const char *call, int position, const char *name,
                          const char *format, ...) __attribute__((format(printf, 6, 7), cold));
int tb_win_raise_null(struct tb_win *win, const char *call, int position, const char *name)
    __attribute__((cold)); /* a pointer for a result is NULL */
/* The same with a code that was made before, and for an error of the engine, whose story is in tb_error; the code for
 * such a one. */
int tb_win_raise_code(struct tb_win *win, int code) __attribute__((cold));
int tb_win_code_below(const struct tb_win *win, int error, const char *call) __attribute__((cold));
int tb_win_raise_below(struct tb_win *win, int error, const char *call) __attribute__((cold));
/* The handle of a window, argument `position`, is not one: says why. Also when MPI is not active. */
int tb_raise_win(const char *call, int position, const char *name, MPI_Win handle) __attribute__((cold));

/* A model or a session (NULL: the world model) has ended: what is left of its windows is not synchronised any more. */
void tb_wins_leave(const struct tb_session *session);

/* How the window is called in messages: its name, or what its handle is. */
const char *tb_win_name(const struct tb_win *win);
/* The same where it is not known which one is meant. */
void tb_win_print(const struct tb_win *win, char *text, size_t size);

static inline struct tb_bearer tb_win_bearer(struct tb_win *win)
{
    return (struct tb_bearer){TB_BEARER_WIN, tb_win_handle(win), &win->attributes, NULL, win->errhandler};
}

#endif

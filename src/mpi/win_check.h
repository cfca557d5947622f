/* Checks of calls on windows: their arguments, and the epochs in which they may come. An access needs an epoch that
 * covers its target: one between two fences, one that was started for a group, or a lock. What a program may not do is
 * told before anything is done; each function raises the error, with the window's error handler, and returns the code.
 * A window is used by one thread at a time where the standard says so; threads that access it, or lock different ranks
 * of it, may do so at the same time. */
#ifndef TB_MPI_WIN_CHECK_H
#define TB_MPI_WIN_CHECK_H

#include "mpi/win.h"

/* What this rank may do to another one: bits of struct tb_win_epochs' `ranks`. */
enum { TB_EPOCH_STARTED = 1, TB_EPOCH_LOCKED = 2, TB_EPOCH_UNCHECKED = 4 };

/* Data of the program in a call, and where it stands among the arguments. */
struct tb_win_data {
    const char *name; /* "origin": of its address, count and datatype */
    const void *address;
    MPI_Count count;
    MPI_Datatype datatype;
    uint8_t address_at, count_at, datatype_at;
};

/* Where in which window; positions from `rank_at` on are those of rank, displacement, count and datatype. */
struct tb_win_target {
    int rank;
    MPI_Aint displacement;
    MPI_Count count;
    MPI_Datatype datatype;
    uint8_t rank_at, displacement_at, count_at, datatype_at; /* 0: it is that of the origin */
};

int tb_win_check_data(struct tb_win *w, const char *call, const struct tb_win_data *data, struct tb_buffer *buffer);
/* Of a rank that is not MPI_PROC_NULL. */
int tb_win_check_target(struct tb_win *w, const char *call, const struct tb_win_target *target,
                        struct tb_access_target *found);
int tb_win_check_rank(struct tb_win *w, const char *call, int position, const char *name, int rank);
/* Both sides have as many bytes, which this machine and that of the rank write alike. */
int tb_win_check_match(struct tb_win *w, const char *call, const struct tb_buffer *origin, const char *name,
                       const struct tb_access_target *target);
/* The operation and the one predefined type that all is of; `other`, NULL if there is none, must be of the same. */
int tb_win_check_op(struct tb_win *w, const char *call, int position, MPI_Op handle, bool fetches,
                    const struct tb_buffer *other, const struct tb_access_target *target, const struct tb_op **op);
/* Only these bits may be set. */
int tb_win_check_assert(struct tb_win *w, const char *call, int position, int assert, int allowed);
/* There is an epoch for accesses to a rank; `passive`: one of a lock. */
int tb_win_check_epoch(struct tb_win *w, const char *call, int rank, bool passive);
/* None that would be in the way of another one; `locks`: locks of single ranks would be, too, which other threads may
 * take at any time. Fences after which nothing was accessed count for nothing. */
int tb_win_check_no_access(struct tb_win *w, const char *call, bool locks);
int tb_win_check_no_exposure(struct tb_win *w, const char *call);
void tb_win_epochs_close(struct tb_win_epochs *epochs);

#endif

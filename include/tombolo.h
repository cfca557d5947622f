/* tombolo.h: what Tombolo offers beyond the MPI standard. */
#ifndef TOMBOLO_H
#define TOMBOLO_H

#include <mpi.h>

#define TOMBOLO_VERSION_MAJOR 0
#define TOMBOLO_VERSION_MINOR 1
#define TOMBOLO_VERSION_PATCH 0

/* One number to compare with: major * 10000 + minor * 100 + patch. */
#define TOMBOLO_VERSION (TOMBOLO_VERSION_MAJOR * 10000 + TOMBOLO_VERSION_MINOR * 100 + TOMBOLO_VERSION_PATCH)

/*
 * Where the ranks of a communicator are: attributes that every communicator has from the start (MPI_Comm_get_attr).
 * They are arrays by rank, of an intercommunicator those of the local group:
 *
 *     int *depths, **colors, **levels, flag;
 *     MPI_Comm_get_attr(comm, TOMBOLO_TOPOLOGY_DEPTHS, &depths, &flag);
 *     MPI_Comm_get_attr(comm, TOMBOLO_TOPOLOGY_COLORS, &colors, &flag);
 *     MPI_Comm_get_attr(comm, TOMBOLO_TOPOLOGY_LEVELS, &levels, &flag);
 *
 * Rank r takes part in depths[r] levels, from 0, the world, inwards. levels[r][i] is what level i of rank r is, one of
 * TOMBOLO_LEVEL_ below, and colors[r][i] its group there: a and b are together at level i if i is less than both
 * depths and colors[a][i] == colors[b][i]. Colours of a level are 0, 1, 2 and so on, in the order of their first ranks.
 * The arrays must not be changed, and live as long as the communicator.
 */
#define TOMBOLO_TOPOLOGY_DEPTHS 4001
#define TOMBOLO_TOPOLOGY_COLORS 4002
#define TOMBOLO_TOPOLOGY_LEVELS 4003

#define TOMBOLO_LEVEL_WORLD   0 /* the whole job, which may span wide-area links */
#define TOMBOLO_LEVEL_SITE    1
#define TOMBOLO_LEVEL_CLUSTER 2 /* clusters in one another are a level each */
#define TOMBOLO_LEVEL_HOST    3 /* ranks with memory in common; below it, of ranks that are bound: */
#define TOMBOLO_LEVEL_PACKAGE 4
#define TOMBOLO_LEVEL_NUMA    5
#define TOMBOLO_LEVEL_CACHE   6 /* the outermost one that cores share */
#define TOMBOLO_LEVEL_CORE    7

/* Named groups, below: the longest name, with the 0 at its end; "all members"; and a wait without an end. */
#define TOMBOLO_MAX_GROUP_NAME 256
#define TOMBOLO_GROUP_ALL      (-1)
#define TOMBOLO_FOREVER        (-1.0)

/* Error classes of named groups, which MPI_Error_class gives besides those of the standard. */
#define TOMBOLO_ERR_TIMEOUT  200 /* what was waited for has not come in time */
#define TOMBOLO_ERR_NO_GROUP 201 /* there is no group of this name, or not any more */
#define TOMBOLO_ERR_MEMBER   202 /* the caller is a member already, or is none; or a thread of it is there */
#define TOMBOLO_ERR_FROZEN   203 /* nobody may join the group any more */

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Two functions that may be called at any time, also before MPI_Init and after MPI_Finalize, from any thread. What they
 * return is constant and never freed.
 */

/* The version of the library that the program runs with, such as "0.1.0"; it may be newer than the header. */
const char *Tombolo_version(void);

/* The names of the MPI calls that this library does not implement yet, in the order of mpi.h, ended by a null pointer.
 */
const char *const *Tombolo_unimplemented(void);

/*
 * Sends one message to `n` ranks of a communicator, of an intercommunicator to those of the remote group. Each of them
 * takes it by an ordinary receive, or finds it by a probe, as if the caller had called MPI_Send to one after the other:
 * with this tag, in order with everything else that the caller sends to that rank. The caller may be among them, and
 * has to have a receive for a long message then, as with MPI_Send; a rank that is named twice gets two messages, and
 * MPI_PROC_NULL gets none. Messages do not wait for each other: each rank gets its own when it has a receive for it.
 * When the call returns, the buffer may be used again. Nothing is sent if an argument is wrong; if a rank cannot be
 * reached, the others get the message all the same, and the error names the first that was not.
 */
int Tombolo_Multicast(const void *buffer, MPI_Count count, MPI_Datatype type, const int ranks[], int n, int tag,
                      MPI_Comm comm);

/*
 * Named groups. Processes of a job, whenever they were started, join a group by its name and leave it as they like;
 * each change makes a new generation of it, counted from 1. Whoever wants to communicate with the others asks for the
 * communicator of the present generation, in a call that all members make; those of earlier generations stay valid. A
 * group begins with its first member and ends when the last has left, or has finished MPI; the next of the same name is
 * another one. A process may be in many groups. Members are numbered from 0 in the order in which they joined, which
 * are their ranks in the communicator; who leaves makes the numbers behind its own smaller.
 *
 * These calls ask the launcher, by way of the agents, and may be made by any thread between MPI_Init (or
 * MPI_Session_init) and MPI_Finalize, by members and, where it says so, by others. A timeout is a number of seconds;
 * TOMBOLO_FOREVER waits without an end. Errors are raised as of calls without a communicator, on the error handler of
 * MPI_COMM_SELF, which ends the job unless the program sets another one. Besides those named with each call they are:
 *
 *     MPI_ERR_ARG            the name is null, empty or too long, or an argument makes no sense
 *     TOMBOLO_ERR_NO_GROUP   there is no such group
 *     TOMBOLO_ERR_MEMBER     the caller is no member, and has to be one
 *     TOMBOLO_ERR_TIMEOUT    the time is over
 *     MPI_ERR_PROC_ABORTED   a member has died
 *
 * When a member dies, the job ends, unless it was started with mpiexec --keep-going. Then the dead one is taken out of
 * its groups, which makes a new generation, and each member that was there hears of it once: as MPI_ERR_PROC_ABORTED
 * from the call that it waits in, or from its next Tombolo_Group_comm or Tombolo_Group_barrier. The text of the error
 * says who it was, Tombolo_Group_lost has all of them. Calling again goes on without the dead.
 */

/* Joins a group, which begins if there is none of this name. If `comm` is not null, the caller then waits for the
 * communicator as in Tombolo_Group_comm with these arguments; if it cannot be had, it is a member all the same, and may
 * ask again or leave. Else count and timeout do not matter, and nothing is waited for. TOMBOLO_ERR_MEMBER: it is a
 * member already. TOMBOLO_ERR_FROZEN: nobody may join. */
int Tombolo_Group_join(const char *name, int count, double timeout, MPI_Comm *comm);

/* Leaves a group; communicators that the caller has of it stay valid, its inbox is gone. */
int Tombolo_Group_leave(const char *name);

/* Gives all members a communicator of the present generation: when there are at least `count` of them, and all that
 * there are have called this (or Tombolo_Group_join with a communicator). Who joins or leaves meanwhile counts. Each
 * call gives another communicator, which is freed by MPI_Comm_free and has the error handler of MPI_COMM_WORLD.
 * MPI_ERR_NOT_SAME: a frozen group will never have as many. */
int Tombolo_Group_comm(const char *name, int count, double timeout, MPI_Comm *comm);

/* Anybody may ask these. Whether there is such a group; how many members it has; the caller's number in it,
 * MPI_UNDEFINED if it is no member; all members, in the order of their numbers, and which generation they are (a
 * pointer that is null is left alone); those members that have died since the group began. */
int Tombolo_Group_exists(const char *name, int *flag);
int Tombolo_Group_size(const char *name, int *size);
int Tombolo_Group_id(const char *name, int *id);
int Tombolo_Group_members(const char *name, int *generation, MPI_Group *members);
int Tombolo_Group_lost(const char *name, MPI_Group *lost);

/* Waits until the generation of a group is another than the one given, and tells it: somebody has joined, left or died.
 * Generation 0 waits until there is such a group, and returns at once if there is. Anybody may call.
 * TOMBOLO_ERR_NO_GROUP: the group has ended, or never was. */
int Tombolo_Group_watch(const char *name, int generation, double timeout, int *current);

/* From now on nobody may join; members may still leave. */
int Tombolo_Group_freeze(const char *name);

/* Waits until `count` members are in this call; TOMBOLO_GROUP_ALL: all that there are, whoever joins or leaves
 * meanwhile. MPI_ERR_NOT_SAME: others wait for another count, or a frozen group will never have as many. */
int Tombolo_Group_barrier(const char *name, int count, double timeout);

/* Sends a message to the member of this number, or, with TOMBOLO_GROUP_ALL, to all members but the caller; who these
 * are is asked when the call is made. Anybody may call, and need not be a member. Members take it from the group's
 * inbox by ordinary receives and probes: a communicator of all processes of the job, in which the rank of those that
 * the job has begun with is that in MPI_COMM_WORLD, and those that were started later follow; MPI_Comm_rank gives one's
 * own. It has those that there are when Tombolo_Group_inbox is called; of later ones messages come as well, by
 * MPI_ANY_SOURCE. The inbox is the same in each call of a process and belongs to the library; it is for messages, not
 * for collectives, and must not be freed (MPI_ERR_COMM). Errors of the message itself are raised on the inbox.
 * MPI_ERR_RANK: there is no member of this number. */
int Tombolo_Group_send(const void *buffer, MPI_Count count, MPI_Datatype type, int id, int tag, const char *name);
int Tombolo_Group_inbox(const char *name, MPI_Comm *inbox);

#ifdef __cplusplus
}
#endif

#endif /* TOMBOLO_H */

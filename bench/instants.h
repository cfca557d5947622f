/* How the measuring programs for grids begin calls: an ACK/GO barrier, all ranks send an ACK to rank 0, which then
 * sends them a GO, one after the other; it carries an instant of the clock that all ranks share, being on one machine,
 * at which they begin. */
#ifndef TB_BENCH_INSTANTS_H
#define TB_BENCH_INSTANTS_H

#include "operations.h"

#define DROPPED 1e9 /* the time of a call for which a rank came too late */
#define TRIES   5
#define AHEAD_S 2e-3

enum { ACK = 1, GO };

static double ahead; /* seconds until all have heard GO */

/* Returns the instant at which all begin. */
static double ack_barrier(double later)
{
    double instant;
    if (rank != 0) {
        MPI_Send(NULL, 0, MPI_CHAR, 0, ACK, MPI_COMM_WORLD);
        MPI_Recv(&instant, 1, MPI_DOUBLE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return instant;
    }
    for (int r = 1; r < size; r++)
        MPI_Recv(NULL, 0, MPI_CHAR, r, ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    instant = now() + later;
    for (int r = 1; r < size; r++)
        MPI_Send(&instant, 1, MPI_DOUBLE, r, GO, MPI_COMM_WORLD);
    return instant;
}

static void find_ahead(void)
{
    double most = 0;
    for (int i = 0; i < TRIES; i++) {
        double instant = ack_barrier(0); /* before the clock is read */
        double late = highest(now() - instant);
        most = i > 0 && late > most ? late : most; /* the first one connects */
    }
    ahead = 2 * most + AHEAD_S;
}

/* Cuts `text` at the next colon and returns what follows it. */
static char *next_field(char *text, const char *usage)
{
    char *colon = strchr(text, ':');
    if (!colon)
        fail(usage);
    *colon = 0;
    return colon + 1;
}

#endif

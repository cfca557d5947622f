/* What has become of the datagrams of multicast, at the end of a job that asks for it. */
#ifndef TB_MPI_MULTICAST_PRINT_H
#define TB_MPI_MULTICAST_PRINT_H

/* With the parameter mcast_statistics rank 0 prints the sums of all ranks. Collective. */
void tb_multicast_print(const char *call);

#endif

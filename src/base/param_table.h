/* The one table of parameters; see param.h. Included several times with different row macros, so no include guard. */
TB_PARAM_TEXT_ROW(log, "warn", TB_PARAM_BASE | TB_PARAM_LOCAL, "what is logged: error, warn, info, debug or trace")
TB_PARAM_TEXT_ROW(transports, "all", TB_PARAM_TRANSPORT,
                  "transports: shm on a host, pair there between worlds, tcp between hosts that can connect, relay "
                  "through gateways, or all")
TB_PARAM_TEXT_ROW(
    interfaces, "", TB_PARAM_TRANSPORT | TB_PARAM_LOCAL,
    "network interfaces or subnets to use (eth0,10.1.0.0/16); empty: all that look real; ^name leaves one out")
TB_PARAM_TEXT_ROW(ports, "0", TB_PARAM_TRANSPORT | TB_PARAM_LOCAL,
                  "TCP ports to listen on: 0 for any, or a range such as 20000-20100")
TB_PARAM_SIZE_ROW(eager_shm, "8k", 0, 1 << 20, TB_PARAM_ENGINE,
                  "longest message sent without asking, through shared memory")
TB_PARAM_SIZE_ROW(eager_tcp, "32k", 0, 1 << 20, TB_PARAM_ENGINE, "longest message sent without asking, over TCP")
TB_PARAM_SIZE_ROW(eager_memory, "16m", 1 << 16, INT64_MAX, TB_PARAM_ENGINE,
                  "memory of a rank for payload that has arrived before its receive, all peers together")
TB_PARAM_SIZE_ROW(ahead_memory, "16m", 0, INT64_MAX, TB_PARAM_ENGINE,
                  "memory of a rank beyond that for those peers whose long messages leave without asking")
TB_PARAM_TIME_ROW(spin, "50us", 0, TB_PARAM_LONGEST, TB_PARAM_ENGINE,
                  "how long a waiting rank looks before it yields and then sleeps, when the machine is not crowded")
TB_PARAM_BOOL_ROW(progress_thread, "no", TB_PARAM_ENGINE | TB_PARAM_LOCAL,
                  "a thread of the library makes progress while the program computes")
TB_PARAM_INT_ROW(
    lanes, "1", 1, 8, TB_PARAM_ENGINE | TB_PARAM_LOCAL,
    "parts of a process with MPI_THREAD_MULTIPLE, each with a lock of its own; 1: one lock for all threads")
TB_PARAM_TIME_ROW(connect_timeout, "20s", 100 * TB_PARAM_MS, TB_PARAM_LONGEST, TB_PARAM_TRANSPORT,
                  "how long a connection between two ranks of one cluster may take to be made")
TB_PARAM_TIME_ROW(link_timeout, "60s", 1000 * TB_PARAM_MS, TB_PARAM_LONGEST, TB_PARAM_TRANSPORT,
                  "silence after which a rank is taken for unreachable where frames must be repaired")
TB_PARAM_BOOL_ROW(forbid_direct, "no", TB_PARAM_TRANSPORT, "everything between hosts passes their agents, for tests")
TB_PARAM_TIME_ROW(link_patience, "120s", 0, TB_PARAM_LONGEST, TB_PARAM_TRANSPORT,
                  "how long a link between clusters may be down, with no way around, before the job is ended")
TB_PARAM_INT_ROW(gateway_streams, "0", 0, 16, TB_PARAM_TRANSPORT,
                 "parallel TCP streams between two gateways; 0: as bandwidth, latency and loss ask for")
TB_PARAM_SIZE_ROW(gateway_memory, "48m", 1 << 20, INT64_MAX, TB_PARAM_TRANSPORT,
                  "memory of a gateway for what waits there to be passed on; a sixth of it for one destination")
TB_PARAM_BOOL_ROW(gateway_tls, "yes", TB_PARAM_TRANSPORT,
                  "encrypt what agents of different clusters say to each other (TLS 1.3)")
TB_PARAM_TEXT_ROW(
    encrypt, "clusters", TB_PARAM_TRANSPORT,
    "what is encrypted: clusters (what crosses between clusters of a grid file) or all (whatever leaves a "
    "host)")
TB_PARAM_TEXT_ROW(compress, "auto", TB_PARAM_TRANSPORT,
                  "compress between gateways of different clusters where it pays: auto, off, lz4 or zstd")
TB_PARAM_INT_ROW(compress_level, "0", 0, 19, TB_PARAM_TRANSPORT,
                 "how hard to compress, from 1 (fast) to 19 (small); 0: as the speed of the link allows")
TB_PARAM_SIZE_ROW(relay_window, "4m", 1 << 16, 1 << 24, TB_PARAM_TRANSPORT,
                  "payload that may be on its way through gateways from one rank to another")
TB_PARAM_TEXT_ROW(mcast, "auto", TB_PARAM_TRANSPORT,
                  "multicast inside clusters: auto (where it is found to work) or off")
TB_PARAM_INT_ROW(mcast_hosts, "3", 2, 65536, TB_PARAM_TRANSPORT,
                 "smallest number of hosts with ranks for which a cluster has a multicast group")
TB_PARAM_INT_ROW(
    mcast_ttl, "1", 1, 255, TB_PARAM_TRANSPORT,
    "time to live of multicast datagrams; 1: they pass no router, and the hosts must have a subnet in common")
TB_PARAM_SIZE_ROW(mcast_piece, "0", 128, 9000, TB_PARAM_TRANSPORT | TB_PARAM_OR_ZERO,
                  "most payload bytes of a multicast datagram; 0: as many as the MTU allows")
TB_PARAM_SIZE_ROW(mcast_largest, "0", 0, INT64_MAX, TB_PARAM_TRANSPORT,
                  "longest message that is multicast, all blocks of a collective together; 0: as predictions say")
TB_PARAM_INT_ROW(mcast_priority, "102", 1, 10000, TB_PARAM_PLANNER,
                 "how much algorithms by multicast are preferred to others, in percent: 200 halves what is predicted")
TB_PARAM_TIME_ROW(mcast_delay, "0", 0, 1000 * TB_PARAM_MS, TB_PARAM_TRANSPORT,
                  "how long the root of a short multicast waits before it sends; 0: not at all, unless late ones lose "
                  "early datagrams")
TB_PARAM_TEXT_ROW(mcast_check, "siphash", TB_PARAM_TRANSPORT,
                  "check of multicast datagrams: siphash (with a key of the group) or none")
TB_PARAM_BOOL_ROW(mcast_statistics, "no", TB_PARAM_TRANSPORT, "print at the end what has become of multicast datagrams")
TB_PARAM_TIME_ROW(start_timeout, "30s", 100 * TB_PARAM_MS, TB_PARAM_LONGEST, TB_PARAM_JOB,
                  "how long hosts may take to answer at the start of a job")
TB_PARAM_TIME_ROW(
    try_timeout, "2s", 100 * TB_PARAM_MS, TB_PARAM_LONGEST, TB_PARAM_JOB | TB_PARAM_OR_ZERO,
    "how long the agents of a grid may try who can reach whom, where its file does not say; 0: not at all")
TB_PARAM_TIME_ROW(heartbeat, "9s", 1000 * TB_PARAM_MS, TB_PARAM_LONGEST, TB_PARAM_JOB | TB_PARAM_OR_ZERO,
                  "silence after which an agent is taken for dead; 0: never")
TB_PARAM_TIME_ROW(kill_grace, "500ms", 0, TB_PARAM_LONGEST, TB_PARAM_JOB,
                  "time between SIGTERM and SIGKILL when a job is ended")
TB_PARAM_TEXT_ROW(initial_errhandler, "mpi_errors_are_fatal", TB_PARAM_BASE | TB_PARAM_LOCAL,
                  "what MPI errors do at first: mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return")
TB_PARAM_TEXT_ROW(memory_alloc_kinds, "", TB_PARAM_BASE | TB_PARAM_LOCAL,
                  "kinds of memory that the program asks for (mpi_memory_alloc_kinds), such as system,mpi:alloc_mem")
TB_PARAM_BOOL_ROW(keep_going, "no", TB_PARAM_JOB,
                  "the job goes on when a rank dies: the others get errors of what they do with it")
TB_PARAM_TEXT_ROW(fault, "", TB_PARAM_TRANSPORT,
                  "faults to inject, for tests: loss=1%,repeat=1%,delay=5ms,corrupt=0.1%,seed=1")
TB_PARAM_TEXT_ROW(
    mcast_fault, "", TB_PARAM_TRANSPORT,
    "faults of multicast to inject, for tests: loss=1%,burst=3,repeat=1%,reorder=1%,deaf=4,members=50%,only=4,seed=1")
TB_PARAM_TEXT_ROW(stream_buffering, "line", TB_PARAM_BASE,
                  "when standard output of an MPI program comes: line by line, when a buffer is full, or none: at once")
TB_PARAM_TEXT_ROW(levels, "all", TB_PARAM_PLANNER,
                  "levels that collectives follow: all, none, or those of site, cluster and host that are named")
TB_PARAM_BOOL_ROW(bind_report, "no", TB_PARAM_JOB, "print where each rank is bound")
TB_PARAM_INT_ROW(cores, "0", 0, 65536, TB_PARAM_PLANNER,
                 "cores of a host, for predicting collectives; 0: as many as where the job was started")
TB_PARAM_TIME_ROW(shm_overhead, "80ns", 0, TB_PARAM_PREDICTED, TB_PARAM_PLANNER,
                  "predicted: a rank's time to send or receive on its host")
TB_PARAM_TIME_ROW(shm_latency, "100ns", 0, TB_PARAM_PREDICTED, TB_PARAM_PLANNER,
                  "predicted: until another rank of the host sees what was sent")
TB_PARAM_INT_ROW(shm_bandwidth, "96000", 1, 100000000, TB_PARAM_PLANNER, "predicted: Mbit/s of one rank that copies")
TB_PARAM_INT_ROW(memory_bandwidth, "300000", 0, 100000000, TB_PARAM_PLANNER,
                 "predicted: Mbit/s of all ranks of a host that copy at the same time; 0: no limit")
TB_PARAM_INT_ROW(reduce_bandwidth, "160000", 1, 100000000, TB_PARAM_PLANNER, "predicted: Mbit/s of a reduction")
TB_PARAM_TIME_ROW(change_time, "2us", 0, TB_PARAM_PREDICTED, TB_PARAM_PLANNER,
                  "predicted: until a core runs another rank, where ranks outnumber cores")
TB_PARAM_TEXT_ROW(shm_table, "", TB_PARAM_PLANNER,
                  "measured: BYTES:SEND:RECEIVE:GAP in ns, with commas between (tombolo probe writes it)")
TB_PARAM_TIME_ROW(ethernet_overhead, "5us", 0, TB_PARAM_PREDICTED, TB_PARAM_PLANNER,
                  "predicted: a rank's time to send or receive over TCP")
TB_PARAM_TIME_ROW(ethernet_latency, "20us", 0, TB_PARAM_PREDICTED, TB_PARAM_PLANNER,
                  "predicted: time on the wire between hosts of a cluster")
TB_PARAM_INT_ROW(ethernet_bandwidth, "1000", 1, 100000000, TB_PARAM_PLANNER, "predicted: Mbit/s of a host's port")
TB_PARAM_TEXT_ROW(ethernet_table, "", TB_PARAM_PLANNER, "measured, as shm_table")
TB_PARAM_SIZE_ROW(switch_queue, "64k", 0, 1 << 30, TB_PARAM_PLANNER,
                  "predicted: bytes that wait in a switch for one of its ports; more are lost; 0: no limit")
TB_PARAM_TIME_ROW(lab_latency, "0", 0, TB_PARAM_PREDICTED, TB_PARAM_PLANNER,
                  "predicted: the same where a lab does not emulate it (up to 0.2 ms); 0: as the grid file says")
TB_PARAM_SIZE_ROW(port_burst, "0", 0, 1 << 30, TB_PARAM_PLANNER,
                  "predicted: bytes, or what passes in 50 us, that pass a port at once after a rest, as in a lab")
TB_PARAM_TIME_ROW(loss_time, "200ms", 0, TB_PARAM_PREDICTED, TB_PARAM_PLANNER,
                  "predicted: until what was lost there because many sent at once is sent again")
TB_PARAM_TIME_ROW(wide_latency, "10ms", 0, TB_PARAM_PREDICTED, TB_PARAM_PLANNER,
                  "predicted: time on the wire between clusters")
TB_PARAM_INT_ROW(wide_bandwidth, "100", 1, 100000000, TB_PARAM_PLANNER, "predicted: Mbit/s between clusters")
TB_PARAM_TIME_ROW(agent_overhead, "10us", 0, TB_PARAM_PREDICTED, TB_PARAM_PLANNER,
                  "predicted: an agent's time to pass on a message between clusters")
TB_PARAM_INT_ROW(agent_bandwidth, "5000", 1, 100000000, TB_PARAM_PLANNER, "predicted: Mbit/s that an agent can pass on")
TB_PARAM_INT_ROW(shared_cores, "0", 0, 65536, TB_PARAM_PLANNER,
                 "predicted: cores that all hosts share, as in a lab; 0: each host has its own")
TB_PARAM_INT_ROW(wire_work, "0", 0, 1000000, TB_PARAM_PLANNER,
                 "predicted: ps that a shared core spends on each byte on each wire, as in a lab")
TB_PARAM_INT_ROW(ack_share, "29", 0, 1000, TB_PARAM_PLANNER,
                 "predicted: thousandths of what a port takes in that acknowledgements take of what it gives out")
TB_PARAM_TEXT_ROW(links, "", TB_PARAM_PLANNER,
                  "predicted: links by name: A/B:MBIT:MS both ways, A>B:MBIT:MS one way, A:MBIT:MS in a cluster")
TB_PARAM_SIZE_ROW(assumed_block, "4k", 1, 1 << 30, TB_PARAM_PLANNER,
                  "predicted: bytes of a block where ranks do not know each other's counts (gatherv and its like)")
TB_PARAM_TEXT_ROW(rules, "", TB_PARAM_PLANNER,
                  "file of rules that choose algorithms: lines such as bcast ranks>=8 bytes<64k chain:16k")
TB_PARAM_TEXT_ROW(plan, "", TB_PARAM_PLANNER,
                  "plan that collectives follow: a file that tombolo plan has written (mpiexec --plan)")
TB_PARAM_BOOL_ROW(
    reproducible, "no", TB_PARAM_PLANNER,
    "results of reductions depend on the number of ranks alone, not on where they are, at a price in time")
TB_PARAM_BOOL_ROW(strict, "no", TB_PARAM_BASE,
                  "refuse reductions and MPI_Compare_and_swap of MPI_CHAR, which the standard has for text only")
TB_PARAM_BOOL_ROW(explain, "no", TB_PARAM_PLANNER,
                  "print at the end which algorithms have run, how often, and why; and where multicast works")
TB_PARAM_INT_ROW(feedback, "0", 0, 1000000, TB_PARAM_PLANNER,
                 "measure every so many calls of a kind, and correct predictions that are wrong; 0: never")
TB_PARAM_TEXT_ROW(barrier, "", TB_PARAM_COLLECTIVES,
                  "algorithm of MPI_Barrier; empty: the cheapest (tombolo explain lists them)")
TB_PARAM_TEXT_ROW(bcast, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Bcast, and its argument, as in chain:64k")
TB_PARAM_TEXT_ROW(gather, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Gather")
TB_PARAM_TEXT_ROW(gatherv, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Gatherv")
TB_PARAM_TEXT_ROW(scatter, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Scatter")
TB_PARAM_TEXT_ROW(scatterv, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Scatterv")
TB_PARAM_TEXT_ROW(allgather, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Allgather")
TB_PARAM_TEXT_ROW(allgatherv, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Allgatherv")
TB_PARAM_TEXT_ROW(alltoall, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Alltoall")
TB_PARAM_TEXT_ROW(alltoallv, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Alltoallv")
TB_PARAM_TEXT_ROW(alltoallw, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Alltoallw")
TB_PARAM_TEXT_ROW(reduce, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Reduce")
TB_PARAM_TEXT_ROW(allreduce, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Allreduce")
TB_PARAM_TEXT_ROW(reduce_scatter, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Reduce_scatter")
TB_PARAM_TEXT_ROW(reduce_scatter_block, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Reduce_scatter_block")
TB_PARAM_TEXT_ROW(scan, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Scan")
TB_PARAM_TEXT_ROW(exscan, "", TB_PARAM_COLLECTIVES, "algorithm of MPI_Exscan")
#undef TB_PARAM_BOOL_ROW
#undef TB_PARAM_INT_ROW
#undef TB_PARAM_SIZE_ROW
#undef TB_PARAM_TIME_ROW
#undef TB_PARAM_TEXT_ROW

/* The one table of parameters; see param.h. Included several times with different row macros, so no include guard. */
TB_PARAM_TEXT_ROW(log, "warn", TB_PARAM_LOCAL, "what is logged: error, warn, info, debug or trace")
TB_PARAM_TEXT_ROW(transports, "shm,tcp", 0, "transports in order of preference")
TB_PARAM_TEXT_ROW(
    interfaces, "", TB_PARAM_LOCAL,
    "network interfaces or subnets to use (eth0,10.1.0.0/16); empty: all that look real; ^name leaves one out")
TB_PARAM_TEXT_ROW(ports, "0", TB_PARAM_LOCAL, "TCP ports to listen on: 0 for any, or a range such as 20000-20100")
TB_PARAM_SIZE_ROW(eager_shm, "8k", 0, 1 << 20, 0, "longest message sent without asking, through shared memory")
TB_PARAM_SIZE_ROW(eager_tcp, "32k", 0, 1 << 20, 0, "longest message sent without asking, over TCP")
TB_PARAM_SIZE_ROW(eager_memory, "16m", 1 << 16, INT64_MAX, 0,
                  "memory of a rank for payload that has arrived before its receive, all peers together")
TB_PARAM_SIZE_ROW(shm_ring, "128k", 1 << 13, 1 << 24, 0, "bytes of the ring between two ranks of a host")
TB_PARAM_SIZE_ROW(
    shm_single_copy, "0", 0, INT64_MAX, 0,
    "messages from this size on are copied once, straight from the sender's memory; 0: as measured for this machine")
TB_PARAM_BOOL_ROW(cross_memory, "yes", 0, "allow reading another rank's memory (cross-memory attach)")
TB_PARAM_SIZE_ROW(tcp_buffer, "0", 0, 1 << 30, 0, "socket buffers of TCP connections; 0 leaves them to the kernel")
TB_PARAM_TIME_ROW(spin, "50us", 0,
                  "how long a waiting rank looks before it yields and then sleeps, when the machine is not crowded")
TB_PARAM_TIME_ROW(connect_timeout, "20s", 0, "how long a connection between two ranks may take to be made")
TB_PARAM_TIME_ROW(link_timeout, "60s", 0,
                  "silence after which a rank is taken for unreachable where frames must be repaired")
TB_PARAM_TIME_ROW(start_timeout, "30s", 0, "how long hosts may take to answer at the start of a job")
TB_PARAM_TIME_ROW(heartbeat, "15s", 0, "silence after which an agent is taken for dead")
TB_PARAM_TIME_ROW(kill_grace, "500ms", 0, "time between SIGTERM and SIGKILL when a job is ended")
TB_PARAM_TEXT_ROW(fault, "", 0, "faults to inject, for tests: loss=1%,repeat=1%,delay=5ms,corrupt=0.1%,seed=1")
TB_PARAM_BOOL_ROW(bind_report, "no", 0, "print where each rank is bound")
#undef TB_PARAM_BOOL_ROW
#undef TB_PARAM_INT_ROW
#undef TB_PARAM_SIZE_ROW
#undef TB_PARAM_TIME_ROW
#undef TB_PARAM_TEXT_ROW

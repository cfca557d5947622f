/* What a rank asks for about ports (MPI_Open_port, MPI_Comm_accept…), and what those who meet leave for each other. */
#ifndef TB_JOB_MEETING_H
#define TB_JOB_MEETING_H

#include "wire/wire.h"

#define TB_PORT_NAME_BYTES 768u /* with the 0 at the end; less than MPI_MAX_PORT_NAME */

enum tb_meeting_wish {
    TB_MEETING_OPEN,    /* a new port: the answer is its name */
    TB_MEETING_CLOSE,   /* nobody meets there any more */
    TB_MEETING_ACCEPT,  /* the answer is what somebody who connects has left there, */
    TB_MEETING_CONNECT, /* or what somebody who accepts has */
    TB_MEETING_LEAVE    /* this rank has no communicator any more with a job that it has met; no answer */
};

struct tb_meeting {
    enum tb_meeting_wish wish;
    const char *name; /* of the port, not ended by 0; of OPEN: empty */
    size_t name_length;
    uint64_t patience; /* ns; 0: without end */
    const void *bytes; /* for the other side; of OPEN the name of the host where others come to, or none; of CLOSE
                        * none; of LEAVE two u32: the other job, and the last meeting with it */
    size_t length;
};

/* What each side leaves for the other one: the context, which is of who accepts, and a group. As it is in memory: hosts
 * of jobs that meet have one order of bytes. */
struct tb_meeting_party {
    uint64_t context;
    uint32_t size;
    uint32_t meeting; /* of those whom the launcher gives another job's: the number of the meeting; else 0 */
    uint32_t procs[]; /* index in the job of each */
};

bool tb_meeting_party_is_whole(const void *bytes, size_t length);
/* TB_ERR_ARGUMENT: a process is in both, and cannot be at both ends of a communicator. */
int tb_meeting_parties_differ(const void *one, size_t one_length, const void *other, size_t other_length);

void tb_meeting_put(struct tb_writer *w, const struct tb_meeting *meeting);
int tb_meeting_get(struct tb_reader *r, struct tb_meeting *meeting); /* points into the frame */

#endif

/* What a rank asks the launcher for about ports (MPI_Open_port, MPI_Comm_accept…): TB_CONTROL_MEET. */
#ifndef TB_JOB_MEETING_H
#define TB_JOB_MEETING_H

#include "job/job.h"

#define TB_PORT_NAME_BYTES 64u /* with the 0 at the end */

enum tb_meeting_wish {
    TB_MEETING_OPEN,   /* a new port: the answer is its name */
    TB_MEETING_CLOSE,  /* nobody meets there any more */
    TB_MEETING_ACCEPT, /* the answer is what somebody who connects has left there, */
    TB_MEETING_CONNECT /* or what somebody who accepts has */
};

struct tb_meeting {
    enum tb_meeting_wish wish;
    const char *name; /* of the port, not ended by 0; of OPEN: empty */
    size_t name_length;
    uint64_t patience; /* ns; 0: without end */
    const void *bytes; /* for the other side; of OPEN and CLOSE: none */
    size_t length;
};

void tb_meeting_put(struct tb_writer *w, const struct tb_meeting *meeting);
int tb_meeting_get(struct tb_reader *r, struct tb_meeting *meeting); /* points into the frame */

#endif

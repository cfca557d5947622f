/* What all agents of a job are told about it: its number and key, the parameters, the programs. */
#ifndef TB_LAUNCH_JOB_SETUP_H
#define TB_LAUNCH_JOB_SETUP_H

#include "launch/launch.h"

/* A new key and number, which goes to the address book too. The programs stay those of the placement. */
int tb_job_setup_make(struct tb_setup *setup, const struct tb_options *options, struct tb_placement *placement);
void tb_job_setup_forget(struct tb_setup *setup);

#endif

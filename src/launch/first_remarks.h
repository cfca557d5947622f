/* What the user is told before a job is started: what was asked for, what has no meaning here, and what may not be
 * meant. Functions; they own nothing. */
#ifndef TB_LAUNCH_FIRST_REMARKS_H
#define TB_LAUNCH_FIRST_REMARKS_H

#include "launch/job_plan.h"
#include "launch/job_report.h"

/* Returns an error if no job can follow. */
int tb_first_remarks_say(struct tb_job_report *report, const struct tb_job_plan *plan);

#endif

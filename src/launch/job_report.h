/* What the user sees of a job: the output of its ranks, what the launcher has to say, and the verdict at the end. Owns
 * both screens and the verdict. Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_JOB_REPORT_H
#define TB_LAUNCH_JOB_REPORT_H

#include "launch/launch.h"
#include "launch/screen.h"
#include "launch/verdict.h"

#define TB_JOB_REPORT_SAID 256

struct tb_job_report_events {
    void *context;
    struct tb_screen_events screen;   /* with a context of its own */
    void (*succeeded)(void *context); /* the verdict is good; the time for a last warning */
};

struct tb_job_report {
    struct tb_loop *loop;
    const char *name; /* of the command, which begins what is said */
    struct tb_job_report_events events;
    struct tb_screen screens[2];
    uint64_t said[TB_JOB_REPORT_SAID]; /* hashes of what was said last; nothing is said twice */
    uint32_t said_count;
    bool merged; /* standard error of the ranks goes where their standard output goes */
    struct tb_verdict verdict;
    bool given; /* the verdict was */
    struct tb_timer timer;
};

void tb_job_report_open(struct tb_job_report *report, struct tb_loop *loop, const char *name,
                        const struct tb_output_options *output, const struct tb_job_report_events *events);
int tb_job_report_expect(struct tb_job_report *report, uint32_t ranks); /* at the beginning of each attempt */
int tb_job_report_grow(struct tb_job_report *report, uint32_t ranks);   /* more have come: so many in all */
/* Of a rank on a host: stream 1 or 2. */
void tb_job_report_add(struct tb_job_report *report, unsigned stream, uint32_t rank, uint32_t host, const char *bytes,
                       size_t length);
/* Says it, unless the same was said before. */
void tb_job_report_say(struct tb_job_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
/* Says it even if the same was said before: somebody has asked. */
void tb_job_report_answer(struct tb_job_report *report, const char *text);
/* What the shell of an agent says. It has no window; when nobody reads for long, it is dropped. */
void tb_job_report_pass_errors(struct tb_job_report *report, const char *bytes, size_t length);
/* The job is over: what is left to show is shown, then the verdict, then the loop is stopped. Called again and again;
 * `hurried`: readers get little time from now on. */
void tb_job_report_finish(struct tb_job_report *report, bool hurried);

#endif

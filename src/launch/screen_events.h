/* What those who show the output of a job, or write it to files, tell their owner. */
#ifndef TB_LAUNCH_SCREEN_EVENTS_H
#define TB_LAUNCH_SCREEN_EVENTS_H

#include <stdint.h>

struct tb_screen_events {
    void *context;
    /* So many bytes of a host's window are free again. */
    void (*written)(void *context, uint32_t host, uint32_t bytes);
    /* Output of the job is lost: its exit code is to be this, and this why; NULL: a reader that has gone (`| head`)
     * ends the job as it would end any program, without a word. */
    void (*failed)(void *context, int code, const char *story);
    const char *(*host_name)(void *context, uint32_t host);
};

#endif

/* Standard input of a job, which goes to rank 0: read as far as the window allows, and handed on. The file is the
 * user's and stays as it is. Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_INPUT_H
#define TB_LAUNCH_INPUT_H

#include "remote/remote.h"

struct tb_input_events {
    void *context;
    void (*bytes)(void *context, const char *bytes, size_t length); /* a length of 0: it has ended */
};

struct tb_input {
    struct tb_loop *loop;
    struct tb_input_events events;
    struct tb_watch watch;
    bool open;
    bool always_ready; /* a file that cannot be waited for */
    int64_t window;    /* bytes that may still be read */
};

void tb_input_init(struct tb_input *input, struct tb_loop *loop, const struct tb_input_events *events);
void tb_input_open(struct tb_input *input); /* there is somebody to read it */
void tb_input_allow(struct tb_input *input, uint32_t bytes);
void tb_input_resume(struct tb_input *input); /* after we were stopped */
void tb_input_pump(struct tb_input *input);   /* before each sleep: a file that cannot be waited for */

#endif

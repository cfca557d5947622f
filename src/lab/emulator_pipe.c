#include "lab/emulator_state.h"

#include <stdlib.h>
#include <string.h>

int tb_emulator_pipe_make(struct tb_emulator *e, const char *name)
{
    if (e->pipe_count == TB_EMULATOR_PIPES)
        return tb_error(TB_ERR_LIMIT, "there are %u pipes already", e->pipe_count);
    struct tb_emulator_pipe *pipe = calloc(1, sizeof *pipe);
    if (!pipe)
        return tb_error(TB_ERR_MEMORY, "no memory for pipe %s", name);
    uint64_t seed = e->seed;
    for (const char *c = name; *c; c++)
        seed = (seed ^ (uint8_t)*c) * 0x100000001b3u;
    tb_pipe_init(&pipe->pipe, seed);
    strncpy(pipe->name, name, sizeof pipe->name - 1);
    e->pipes[e->pipe_count++] = pipe;
    return 0;
}

int tb_emulator_pipe_find(const struct tb_emulator *e, const char *name, uint32_t *index)
{
    for (uint32_t i = 1; i < e->pipe_count; i++)
        if (strcmp(e->pipes[i]->name, name) == 0) {
            *index = i;
            return 0;
        }
    return tb_error(TB_ERR_ARGUMENT, "there is no pipe %s", name);
}

#include "engine/common_channel.h"

#include "engine/engine_state.h"

#include <stdlib.h>

/* Shared memory itself, or NULL. */
static struct tb_transport *memory_of(const struct tb_engine *e)
{
    return e->local != NULL && (e->local->capabilities & TB_CAP_BOARDS) != 0 ? e->local : NULL;
}

void tb_common_claim(struct tb_engine *e, uint64_t context, bool first)
{
    if (memory_of(e) != NULL)
        tb_board_claim(memory_of(e), context, first);
}

void tb_common_unclaim(struct tb_engine *e, uint64_t context)
{
    if (memory_of(e) != NULL)
        tb_board_unclaim(memory_of(e), context);
}

/* Whether all of its ranks are on this host, and may have a board. */
static bool is_near(const struct tb_engine *e, const struct tb_channel_config *config)
{
    bool near = config->common && config->size > 1;
    for (uint32_t rank = 0; rank < config->size && near; rank++) {
        struct tb_proc proc = {e->config.transport.self.job, config->procs == NULL ? rank : config->procs[rank]};
        near = e->config.is_local != NULL && e->config.is_local(e->config.context, proc);
    }
    return near;
}

/* The board of ranks that are all on this host, if one was claimed; if they are not, it is not needed. */
int tb_common_open(struct tb_engine *e, const struct tb_channel_config *config, void **state)
{
    struct tb_transport *memory = memory_of(e);
    struct tb_board *board = NULL;
    *state = NULL;
    if (memory == NULL)
        return TB_OK;
    if (!is_near(e, config)) {
        if (tb_context_leader(config->context) == e->config.transport.self.index)
            tb_board_unclaim(memory, config->context);
        return TB_OK;
    }
    int error = tb_board_open(memory, config->context, config->size, config->rank, config->procs, &board);
    if (error != TB_OK || board == NULL)
        return error;
    struct tb_common *c = calloc(1, sizeof *c);
    if (c == NULL) {
        tb_board_close(board);
        return tb_error(TB_ERR_MEMORY, "no memory for the shared memory of a communicator");
    }
    *c = (struct tb_common){.transport = memory, .board = board, .active = &e->driving.active[TB_DRIVER_COMMON]};
    tb_list_init(&c->line);
    tb_list_init(&c->reserved);
    tb_list_init(&c->busy);
    *state = c;
    return TB_OK;
}

void tb_common_close(void *state)
{
    struct tb_common *c = state;
    tb_board_close(c->board);
    free(c);
}

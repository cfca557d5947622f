/* What collectives have that are kept to be started again and again. */
#include "engine/engine_state.h"

#include <stdlib.h>

int tb_channel_keep(struct tb_channel *channel, const struct tb_channel_config *config, uint32_t number,
                    struct tb_kept **kept)
{
    struct tb_engine *e = channel->engine;
    struct tb_channel_config wanted = {.context = tb_context_plane(channel->point->id, TB_PLANE_POINT),
                                       .size = channel->size,
                                       .rank = channel->rank,
                                       .procs = channel->procs,
                                       .common = true,
                                       .locals = config->locals,
                                       .local_count = config->local_count,
                                       .kept = (uint64_t)number + 1};
    struct tb_kept *k = calloc(1, sizeof *k);
    int error = k == NULL ? tb_error(TB_ERR_MEMORY, "no memory for a persistent collective") : TB_OK;
    tb_engine_lock(e);
    if (error == TB_OK) {
        k->channel = channel;
        tb_list_append(&channel->kept, &k->in_channel);
        error = tb_driven_open(k->drivers, k->proposed, &e->driving, e, &wanted);
        if (error == TB_OK) {
            tb_driven_enter(k->drivers, k->proposed, &e->driving, e, &wanted);
            *kept = k;
        } else {
            tb_kept_free(k);
        }
    }
    if (error != TB_OK)
        tb_driven_pass(&e->driving, e, &wanted);
    tb_engine_unlock(e);
    return error;
}

uint64_t tb_channel_kept_provides(struct tb_kept *kept)
{
    struct tb_engine *e = kept->channel->engine;
    tb_engine_lock(e);
    uint64_t word = tb_driven_provides(kept->proposed, &e->driving);
    tb_engine_unlock(e);
    return word;
}

int tb_channel_kept_agree(struct tb_kept *kept, uint64_t all, bool *agreed)
{
    struct tb_engine *e = kept->channel->engine;
    *agreed = false;
    tb_engine_lock(e);
    int error = tb_driven_agree(kept->drivers, kept->proposed, &e->driving, all, agreed);
    tb_engine_unlock(e);
    return error;
}

void tb_channel_kept_close(struct tb_kept *kept)
{
    struct tb_engine *e = kept->channel->engine;
    tb_engine_lock(e);
    tb_kept_free(kept);
    tb_engine_unlock(e);
}

#include "engine/common_channel.h"

#include "engine/engine_state.h"

#include <stdlib.h>

/* Shared memory itself, or NULL. */
static struct tb_transport *memory_of(const struct tb_engine *e)
{
    if (e->local == NULL || (e->local->capabilities & TB_CAP_BOARDS) == 0)
        return NULL;
    return e->lanes != NULL ? tb_lane_views.real(e->local) : e->local;
}

void tb_common_claim(struct tb_engine *e, uint64_t context, bool first)
{
    const struct tb_board_key key = {context, 0};
    tb_lane_ways.lock(e);
    if (memory_of(e) != NULL)
        tb_board_claim(memory_of(e), &key, first);
    tb_lane_ways.unlock(e);
}

void tb_common_unclaim(struct tb_engine *e, uint64_t context)
{
    const struct tb_board_key key = {context, 0};
    tb_lane_ways.lock(e);
    if (memory_of(e) != NULL)
        tb_board_unclaim(memory_of(e), &key);
    tb_lane_ways.unlock(e);
}

/* ---- who is here ------------------------------------------------------------------------------------------------- */

static uint32_t proc_of(const struct tb_channel_config *config, uint32_t rank)
{
    return config->procs == NULL ? rank : config->procs[rank];
}

static bool is_here(const struct tb_engine *e, const struct tb_channel_config *config, uint32_t rank)
{
    struct tb_proc proc = {e->config.transport.self.job, proc_of(config, rank)};
    return e->config.is_local != NULL && e->config.is_local(e->config.context, proc);
}

/* The first rank from `from` on that is on this host, where its position is `at`; the channel's size: none. */
static uint32_t here_next(const struct tb_engine *e, const struct tb_channel_config *config, uint32_t from, uint32_t at)
{
    if (config->locals != NULL)
        return at < config->local_count ? config->locals[at] : config->size;
    while (from < config->size && !is_here(e, config, from))
        from++;
    return from;
}

/* How many there are, and which of them this one is. Without memory, since a rank that has none must leave the board.
 */
static void here_count(const struct tb_engine *e, const struct tb_channel_config *config, uint32_t *count, uint32_t *at)
{
    *count = *at = 0;
    for (uint32_t rank = here_next(e, config, 0, 0); rank < config->size; ++*count) {
        *at = rank == config->rank ? *count : *at;
        rank = here_next(e, config, rank + 1, *count + 1);
    }
}

/* Their ranks and processes, where they are not all ranks of the channel. */
static int here_list(struct tb_common *c, const struct tb_engine *e, const struct tb_channel_config *config)
{
    uint32_t rank = here_next(e, config, 0, 0);
    c->lists = malloc(2 * sizeof *c->lists * c->size);
    if (c->lists == NULL)
        return TB_ERR_MEMORY;
    for (uint32_t i = 0; i < c->size; i++) {
        c->lists[i] = rank;
        c->lists[c->size + i] = proc_of(config, rank);
        rank = here_next(e, config, rank + 1, i + 1);
    }
    c->ranks = c->lists;
    c->procs = c->lists + c->size;
    return TB_OK;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void board_take(struct tb_common *c)
{
    c->board = tb_board_open(c->transport, &c->key, c->size, c->rank, c->procs, c->room);
    c->room = c->board != NULL ? NULL : c->room;
    c->left = false;
}

static int common_make(struct tb_common *c, struct tb_engine *e, const struct tb_channel_config *config)
{
    tb_list_init(&c->line);
    tb_list_init(&c->reserved);
    tb_list_init(&c->busy);
    c->active = &e->driving.active[TB_DRIVER_COMMON];
    if (c->transport != NULL) {
        c->room = tb_board_new(c->size);
        if (c->room == NULL)
            return TB_ERR_MEMORY;
    }
    return c->size < config->size ? here_list(c, e, config) : TB_OK;
}

/* Where others are to agree on it, it must be there to say that this host has no boards at all. */
int tb_common_open(struct tb_engine *e, const struct tb_channel_config *config, void **state)
{
    uint32_t count = 0, at = 0;
    *state = NULL;
    if (config->common)
        here_count(e, config, &count, &at);
    if (count < 2) /* a board is not needed here */
        return TB_OK;
    bool proposal = count < config->size || config->kept > 0;
    if (!proposal && memory_of(e) == NULL)
        return TB_OK;
    struct tb_common *c = calloc(1, sizeof *c);
    if (c == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the shared memory of a communicator");
    *c = (struct tb_common){
        .engine = e, .transport = memory_of(e), .size = count, .rank = at, .proposal = proposal, .left = true};
    if (common_make(c, e, config) != TB_OK) {
        tb_common_close(c);
        return tb_error(TB_ERR_MEMORY, "no memory for the shared memory of a communicator");
    }
    *state = c;
    return TB_OK;
}

static void claim_if_first(struct tb_transport *memory, const struct tb_board_key *key, uint32_t rank)
{
    if (rank == 0 && memory != NULL && !tb_board_claimed(memory, key))
        tb_board_claim(memory, key, false);
}

/* Whoever made up the context has claimed a board, which nobody needs. */
static void unclaim_if_leader(struct tb_engine *e, const struct tb_board_key *key)
{
    const struct tb_proc self = e->config.transport.self;
    if (memory_of(e) != NULL && tb_context_leader(key->context, self.job) == self.index)
        tb_board_unclaim(memory_of(e), key);
}

/* With the memory locked. True: it is needed. */
static bool common_enter(struct tb_engine *e, const struct tb_channel_config *config, struct tb_common *c)
{
    const struct tb_board_key key = {config->context, config->kept};
    if (c != NULL && c->proposal) {
        c->key = key;
        c->left = false;
        if (c->lists == NULL)
            c->procs = config->procs; /* which stay where they are, those of a channel */
        claim_if_first(c->transport, &key, c->rank);
        return true;
    }
    if (c == NULL || config->size < 2) {
        unclaim_if_leader(e, &key);
    } else if (tb_board_claimed(c->transport, &key)) {
        c->key = key;
        c->size = config->size;
        c->rank = config->rank;
        c->procs = config->procs;
        board_take(c);
        return true;
    }
    return false;
}

void tb_common_enter(struct tb_engine *e, const struct tb_channel_config *config, void **state)
{
    struct tb_common *c = *state;
    if (c != NULL) {
        c->engine = e;
        c->active = &e->driving.active[TB_DRIVER_COMMON];
    }
    tb_lane_ways.lock(e);
    bool needed = common_enter(e, config, c);
    tb_lane_ways.unlock(e);
    if (needed)
        return;
    if (c != NULL)
        tb_common_close(c);
    *state = NULL;
}

void tb_common_pass(struct tb_engine *e, const struct tb_channel_config *config)
{
    struct tb_transport *memory = memory_of(e);
    const struct tb_board_key key = {config->context, config->kept};
    uint32_t count = 0, at = 0;
    if (config->common)
        here_count(e, config, &count, &at);
    bool proposal = count < config->size || config->kept > 0;
    tb_lane_ways.lock(e);
    if (count < 2) {
        unclaim_if_leader(e, &key);
    } else if (memory != NULL) {
        if (proposal)
            claim_if_first(memory, &key, at);
        if (proposal || tb_board_claimed(memory, &key))
            tb_board_leave(memory, &key, count, at);
    }
    tb_lane_ways.unlock(e);
}

bool tb_common_proposed(const void *state)
{
    return ((const struct tb_common *)state)->proposal;
}

bool tb_common_provides(const void *state)
{
    const struct tb_common *c = state;
    return c->transport != NULL && (c->rank > 0 || tb_board_claimed(c->transport, &c->key));
}

int tb_common_agree(void *state, bool all)
{
    struct tb_common *c = state;
    if (!all) { /* whoever should have claimed it has tried to */
        c->left = c->transport == NULL || !tb_board_claimed(c->transport, &c->key);
        return TB_OK;
    }
    tb_lane_ways.lock(c->engine);
    board_take(c);
    tb_lane_ways.unlock(c->engine);
    TB_ASSERT(c->board != NULL);
    return TB_OK;
}

void tb_common_close(void *state)
{
    struct tb_common *c = state;
    tb_lane_ways.lock(c->engine);
    if (c->board != NULL)
        tb_board_close(c->board);
    else if (!c->left && c->transport != NULL)
        tb_board_leave(c->transport, &c->key, c->size, c->rank);
    tb_lane_ways.unlock(c->engine);
    free(c->room);
    free(c->lists);
    free(c);
}

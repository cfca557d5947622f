#include "launch/acceptances.h"

#include <stdlib.h>
#include <string.h>

struct waiting_acceptance {
    struct tb_list node;
    uint32_t port;
    struct tb_acceptance acceptance;
    char party[];
};

static void drop(struct waiting_acceptance *w)
{
    tb_list_remove(&w->node);
    free(w);
}

static void enter_all(struct tb_timer *timer)
{
    struct tb_acceptances *all = TB_CONTAINER(timer, struct tb_acceptances, timer);
    while (!tb_list_empty(&all->waiting)) {
        struct waiting_acceptance *w = TB_CONTAINER(all->waiting.next, struct waiting_acceptance, node);
        tb_list_remove(&w->node);
        all->enter(all->context, w->port, &w->acceptance);
        free(w);
    }
}

void tb_acceptances_init(struct tb_acceptances *all, struct tb_loop *loop, void *context,
                         void (*enter)(void *context, uint32_t port, const struct tb_acceptance *acceptance))
{
    *all = (struct tb_acceptances){.loop = loop, .context = context, .enter = enter};
    tb_list_init(&all->waiting);
    tb_timer_init(&all->timer, enter_all);
}

void tb_acceptances_close(struct tb_acceptances *all)
{
    struct waiting_acceptance *w;
    tb_timer_clear(&all->timer);
    TB_LIST_EACH (w, &all->waiting, struct waiting_acceptance, node)
        drop(w);
}

int tb_acceptances_add(struct tb_acceptances *all, uint32_t port, const struct tb_acceptance *acceptance)
{
    struct waiting_acceptance *w = malloc(sizeof *w + acceptance->length);
    if (w == NULL)
        return tb_error(TB_ERR_MEMORY, "mpiexec has no memory for one who accepts");
    w->port = port;
    w->acceptance = *acceptance;
    w->acceptance.party = w->party;
    memcpy(w->party, acceptance->party, acceptance->length);
    tb_list_append(&all->waiting, &w->node);
    tb_timer_set(all->loop, &all->timer, 0);
    return TB_OK;
}

void tb_acceptances_forget(struct tb_acceptances *all, uint32_t rank)
{
    struct waiting_acceptance *w;
    TB_LIST_EACH (w, &all->waiting, struct waiting_acceptance, node)
        if (w->acceptance.rank == rank)
            drop(w);
}

#include "launch/job_registry.h"

#include <stdio.h>

static void something_late(struct tb_timer *timer);

/* Parts of a long answer follow each other. */
static void tell(void *context, uint32_t proc, const struct tb_registry_answer *answer)
{
    struct tb_job_registry *registry = context;
    uint32_t first = 0;
    if (!tb_address_book_knows(registry->book, proc))
        return;
    struct tb_host_agent *agent = &registry->agents->all[tb_address_book_host_of(registry->book, proc)];
    if (!tb_host_agent_is_ready(agent))
        return;
    do {
        struct tb_writer *w = tb_control_stream_begin(&agent->control, TB_CONTROL_REGISTRY_ANSWER);
        tb_put_u32(w, proc);
        tb_registry_answer_put(w, answer, first);
        tb_control_stream_end(&agent->control);
        first += TB_REGISTRY_PART;
    } while (first < answer->member_count);
}

void tb_job_registry_init(struct tb_job_registry *registry, struct tb_loop *loop, struct tb_host_agents *agents,
                          const struct tb_job_registry_events *events)
{
    *registry = (struct tb_job_registry){.loop = loop, .agents = agents, .events = *events};
    tb_timer_init(&registry->timer, something_late);
    tb_registry_open(&registry->registry, tell, registry);
}

void tb_job_registry_begin(struct tb_job_registry *registry, const struct tb_address_book *book)
{
    tb_registry_close(&registry->registry);
    tb_registry_open(&registry->registry, tell, registry);
    tb_timer_clear(&registry->timer);
    registry->book = book;
}

static void set_timer(struct tb_job_registry *registry)
{
    uint64_t next = registry->registry.next, now = tb_loop_now(registry->loop);
    tb_timer_clear(&registry->timer);
    if (next != TB_NEVER)
        tb_timer_set(registry->loop, &registry->timer, next > now ? next - now : 0);
}

static void something_late(struct tb_timer *timer)
{
    struct tb_job_registry *registry = TB_CONTAINER(timer, struct tb_job_registry, timer);
    tb_registry_expire(&registry->registry, tb_loop_now(registry->loop));
    set_timer(registry);
}

void tb_job_registry_take(struct tb_job_registry *registry, const struct tb_host_agent *agent, uint32_t rank,
                          struct tb_reader *question)
{
    struct tb_registry_question asked;
    const struct tb_address_book *book = registry->book;
    if (!tb_address_book_knows(book, rank) || tb_address_book_host_of(book, rank) != agent->host ||
        tb_registry_question_get(question, &asked) != TB_OK)
        return;
    uint64_t before = registry->registry.next;
    tb_registry_ask(&registry->registry, rank, &asked, tb_loop_now(registry->loop));
    if (registry->registry.next != before)
        set_timer(registry);
}

void tb_job_registry_end(struct tb_job_registry *registry, const struct tb_ended *ended)
{
    bool died = (ended->flags & (TB_ENDED_FINALIZED | TB_ENDED_STOPPED)) == 0;
    char groups[512], text[600];
    if (died && tb_group_table_print(&registry->registry.groups, ended->rank, groups, sizeof groups) > 0) {
        snprintf(text, sizeof text, "rank %u was a member of the groups: %s", ended->rank, groups);
        registry->events.say(registry->events.context, text);
    }
    tb_registry_end(&registry->registry, ended->rank, died);
}

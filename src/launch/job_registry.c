#include "launch/job_registry.h"

#include "launch/agent_orders.h"

#include <stdio.h>
#include <stdlib.h>

static void something_late(struct tb_timer *timer);

static void tell(void *context, uint32_t proc, const struct tb_registry_answer *answer)
{
    const struct tb_job_registry *registry = context;
    void *bytes;
    size_t length;
    int rc = tb_registry_answer_pack(answer, &bytes, &length);
    tb_agent_orders_answer(
        registry->agents, registry->book, proc,
        &(struct tb_agent_answer){answer->number, rc, rc == TB_OK ? "" : tb_error_story(), bytes, length});
    free(bytes);
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

void tb_job_registry_take(struct tb_job_registry *registry, struct tb_host_agent *agent,
                          const struct tb_agent_wish *wish)
{
    const struct tb_address_book *book = registry->book;
    struct tb_registry_question asked;
    struct tb_reader r;
    tb_reader_open(&r, wish->bytes, wish->length);
    int rc = tb_registry_question_get(&r, &asked);
    if (rc == TB_OK && (book == NULL || !tb_address_book_knows(book, wish->rank) ||
                        tb_address_book_host_of(book, wish->rank) != agent->host))
        rc = tb_error(TB_ERR_PROTOCOL, "rank %u, which asks the registry of the job, is none of its host", wish->rank);
    if (rc != TB_OK) {
        tb_agent_orders_reply(agent, wish->rank,
                              &(struct tb_agent_answer){wish->number, rc, tb_error_story(), NULL, 0});
        return;
    }
    asked.number = wish->number;
    uint64_t before = registry->registry.next;
    tb_registry_ask(&registry->registry, wish->rank, &asked, tb_loop_now(registry->loop));
    if (registry->registry.next != before)
        set_timer(registry);
}

void tb_job_registry_tell(struct tb_job_registry *registry, uint32_t rank, const struct tb_registry_answer *answer)
{
    tell(registry, rank, answer);
}

void tb_job_registry_end(struct tb_job_registry *registry, const struct tb_ended *ended, bool unborn)
{
    bool died = (ended->flags & (TB_ENDED_FINALIZED | TB_ENDED_STOPPED)) == 0;
    char groups[512], text[600];
    if (died && !unborn && tb_group_table_print(&registry->registry.groups, ended->rank, groups, sizeof groups) > 0) {
        snprintf(text, sizeof text, "rank %u was a member of the groups: %s", ended->rank, groups);
        registry->events.say(registry->events.context, text);
    }
    tb_registry_end(&registry->registry, ended->rank, died);
}

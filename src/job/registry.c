#include "job/registry.h"

void tb_registry_open(struct tb_registry *registry, tb_registry_tell *tell, void *context)
{
    tb_group_table_open(&registry->groups, tell, context);
    tb_name_table_open(&registry->names, tell, context);
    registry->next = TB_NEVER;
}

void tb_registry_close(struct tb_registry *registry)
{
    tb_group_table_close(&registry->groups);
    tb_name_table_close(&registry->names);
}

void tb_registry_ask(struct tb_registry *registry, uint32_t proc, const struct tb_registry_question *question,
                     uint64_t now)
{
    uint64_t until = question->patience < TB_NEVER - now ? now + question->patience : TB_NEVER;
    if (question->kind == TB_REGISTRY_END)
        tb_registry_end(registry, proc, false);
    else if (question->kind < TB_REGISTRY_PUBLISH)
        tb_group_table_ask(&registry->groups, proc, question, until);
    else
        tb_name_table_ask(&registry->names, proc, question, until);
    if (until < registry->next)
        registry->next = until;
}

void tb_registry_end(struct tb_registry *registry, uint32_t proc, bool died)
{
    tb_group_table_end(&registry->groups, proc, died);
    tb_name_table_end(&registry->names, proc, proc);
}

void tb_registry_expire(struct tb_registry *registry, uint64_t now)
{
    uint64_t groups = tb_group_table_expire(&registry->groups, now);
    uint64_t names = tb_name_table_expire(&registry->names, now);
    registry->next = groups < names ? groups : names;
}

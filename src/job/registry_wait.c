#include "job/registry_wait.h"

#include <stdlib.h>
#include <string.h>

bool tb_registry_wait_add(struct tb_list *list, uint32_t *waits, uint32_t proc,
                          const struct tb_registry_question *question, uint64_t until)
{
    struct tb_registry_wait *wait = *waits < TB_REGISTRY_WAITS ? calloc(1, sizeof *wait) : NULL;
    if (wait == NULL)
        return false;
    wait->proc = proc;
    wait->number = question->number;
    wait->kind = question->kind;
    wait->count = question->count;
    wait->until = until;
    memcpy(wait->name, question->name, sizeof wait->name);
    tb_list_append(list, &wait->node);
    ++*waits;
    return true;
}

void tb_registry_wait_free(struct tb_registry_wait *wait, uint32_t *waits)
{
    tb_list_remove(&wait->node);
    --*waits;
    free(wait);
}

void tb_registry_waits_free(struct tb_list *list, uint32_t *waits)
{
    struct tb_registry_wait *wait;
    TB_LIST_EACH (wait, list, struct tb_registry_wait, node)
        tb_registry_wait_free(wait, waits);
}

void tb_registry_waits_free_of(struct tb_list *list, uint32_t *waits, uint32_t proc)
{
    struct tb_registry_wait *wait;
    TB_LIST_EACH (wait, list, struct tb_registry_wait, node)
        if (wait->proc == proc)
            tb_registry_wait_free(wait, waits);
}

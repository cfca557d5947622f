#include "job/name_table.h"

#include <stdlib.h>
#include <string.h>

struct tb_published_name {
    struct tb_list node;
    uint32_t publisher;
    char name[TB_REGISTRY_NAME_BYTES];
    char value[TB_REGISTRY_VALUE_BYTES];
};

void tb_name_table_open(struct tb_name_table *table, tb_registry_tell *tell, void *context)
{
    *table = (struct tb_name_table){.tell = tell, .context = context};
    tb_list_init(&table->names);
    tb_list_init(&table->awaited);
}

/* That of a process's job; in a table of one job it is not looked at. */
static struct tb_name_share *share_of(struct tb_name_table *table, uint32_t proc)
{
    uint32_t sharer = table->sharer_bits > 0 ? proc >> table->sharer_bits : 0;
    return &table->shares[sharer % TB_NAME_TABLE_SHARERS];
}

static bool may_have_more(const struct tb_name_table *table, uint32_t own, uint32_t count, uint32_t most)
{
    return table->sharer_bits == 0 || own < most - count;
}

static void forget(struct tb_name_table *table, struct tb_published_name *name)
{
    tb_list_remove(&name->node);
    share_of(table, name->publisher)->names--;
    table->name_count--;
    free(name);
}

static void wait_end(struct tb_name_table *table, struct tb_registry_wait *wait)
{
    share_of(table, wait->proc)->waits--;
    tb_registry_wait_free(wait, &table->wait_count);
}

void tb_name_table_close(struct tb_name_table *table)
{
    struct tb_published_name *name;
    TB_LIST_EACH (name, &table->names, struct tb_published_name, node)
        forget(table, name);
    tb_registry_waits_free(&table->awaited, &table->wait_count);
}

static struct tb_published_name *find(const struct tb_name_table *table, const char *text)
{
    struct tb_published_name *name;
    TB_LIST_EACH (name, &table->names, struct tb_published_name, node)
        if (strcmp(name->name, text) == 0)
            return name;
    return NULL;
}

static void answer(const struct tb_name_table *table, uint32_t proc, uint32_t number, enum tb_registry_result result,
                   const char *value)
{
    struct tb_registry_answer a = {.number = number, .result = result};
    memcpy(a.value, value, strlen(value) + 1);
    table->tell(table->context, proc, &a);
}

static enum tb_registry_result publish(struct tb_name_table *table, uint32_t proc,
                                       const struct tb_registry_question *question)
{
    struct tb_published_name *name = find(table, question->name);
    struct tb_registry_wait *wait;
    if (name != NULL && (question->flags & TB_REGISTRY_REPLACES) == 0)
        return TB_REGISTRY_TAKEN;
    if (name == NULL) {
        bool room = table->name_count < TB_NAME_TABLE_NAMES &&
                    may_have_more(table, share_of(table, proc)->names, table->name_count, TB_NAME_TABLE_NAMES);
        name = room ? calloc(1, sizeof *name) : NULL;
        if (name == NULL)
            return TB_REGISTRY_FULL;
        memcpy(name->name, question->name, sizeof name->name);
        tb_list_append(&table->names, &name->node);
        table->name_count++;
    } else {
        share_of(table, name->publisher)->names--;
    }
    share_of(table, proc)->names++;
    name->publisher = proc;
    memcpy(name->value, question->value, sizeof name->value);
    TB_LIST_EACH (wait, &table->awaited, struct tb_registry_wait, node)
        if (strcmp(wait->name, name->name) == 0) {
            answer(table, wait->proc, wait->number, TB_REGISTRY_DONE, name->value);
            wait_end(table, wait);
        }
    return TB_REGISTRY_DONE;
}

static enum tb_registry_result unpublish(struct tb_name_table *table, const struct tb_registry_question *question)
{
    struct tb_published_name *name = find(table, question->name);
    if (name == NULL)
        return TB_REGISTRY_UNKNOWN;
    if (strcmp(name->value, question->value) != 0)
        return TB_REGISTRY_OTHER;
    forget(table, name);
    return TB_REGISTRY_DONE;
}

static void look_up(struct tb_name_table *table, uint32_t proc, const struct tb_registry_question *question,
                    uint64_t until)
{
    const struct tb_published_name *name = find(table, question->name);
    if (name != NULL || question->patience == 0) {
        answer(table, proc, question->number, name != NULL ? TB_REGISTRY_DONE : TB_REGISTRY_UNKNOWN,
               name != NULL ? name->value : "");
        return;
    }
    struct tb_name_share *share = share_of(table, proc);
    bool room = may_have_more(table, share->waits, table->wait_count, TB_REGISTRY_WAITS);
    if (room && tb_registry_wait_add(&table->awaited, &table->wait_count, proc, question, until))
        share->waits++;
    else
        answer(table, proc, question->number, TB_REGISTRY_FULL, "");
}

void tb_name_table_ask(struct tb_name_table *table, uint32_t proc, const struct tb_registry_question *question,
                       uint64_t until)
{
    if (question->kind == TB_REGISTRY_LOOKUP)
        look_up(table, proc, question, until);
    else if (question->kind == TB_REGISTRY_PUBLISH)
        answer(table, proc, question->number, publish(table, proc, question), "");
    else
        answer(table, proc, question->number, unpublish(table, question), "");
}

void tb_name_table_end(struct tb_name_table *table, uint32_t first, uint32_t last)
{
    struct tb_published_name *name;
    struct tb_registry_wait *wait;
    TB_LIST_EACH (name, &table->names, struct tb_published_name, node)
        if (name->publisher >= first && name->publisher <= last)
            forget(table, name);
    TB_LIST_EACH (wait, &table->awaited, struct tb_registry_wait, node)
        if (wait->proc >= first && wait->proc <= last)
            wait_end(table, wait);
}

uint64_t tb_name_table_expire(struct tb_name_table *table, uint64_t now)
{
    uint64_t next = TB_NEVER;
    struct tb_registry_wait *wait;
    TB_LIST_EACH (wait, &table->awaited, struct tb_registry_wait, node)
        if (wait->until <= now) {
            answer(table, wait->proc, wait->number, TB_REGISTRY_LATE, "");
            wait_end(table, wait);
        } else if (wait->until < next) {
            next = wait->until;
        }
    return next;
}

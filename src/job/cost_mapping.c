#include "job/cost_mapping.h"

#include "job/sealed_map.h"

#include <stdlib.h>

static void forget(struct tb_cost_mapping *mapping)
{
    if (mapping->made)
        free(mapping->bytes);
    else
        tb_sealed_unmap(mapping->bytes, mapping->length);
    free(mapping);
}

/* Whether it has all that is known already: of the book, and of the version before it. */
static bool contains(const struct tb_cost_head *head, const struct tb_cost_mapping *before, uint32_t host_count,
                     uint32_t place_count)
{
    if (before == NULL)
        return head->host_count == host_count && head->place_count == place_count;
    const struct tb_cost_head *old = before->table.head;
    return head->host_count >= old->host_count && head->place_count >= old->place_count &&
           head->kind_count >= old->kind_count;
}

int tb_cost_mapping_add(struct tb_cost_mapping **newest, int descriptor, uint32_t host_count, uint32_t place_count)
{
    struct tb_cost_mapping *mapping = calloc(1, sizeof *mapping);
    if (mapping == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for what links cost");
    int rc =
        tb_sealed_map(descriptor, TB_COST_TABLE_LIMIT, "table of what links cost", &mapping->bytes, &mapping->length);
    if (rc == TB_OK && tb_cost_table_view(&mapping->table, mapping->bytes, mapping->length) != TB_OK)
        rc = tb_error(TB_ERR_PROTOCOL, "%s", tb_error_story());
    bool known = rc == TB_OK && *newest != NULL && mapping->table.head->version <= (*newest)->table.head->version;
    if (rc == TB_OK && !known && !contains(mapping->table.head, *newest, host_count, place_count))
        rc = tb_error(TB_ERR_PROTOCOL, "what links cost does not agree with the address book");
    if (rc != TB_OK || known) {
        forget(mapping);
        return rc;
    }
    mapping->older = *newest;
    *newest = mapping;
    return TB_OK;
}

int tb_cost_mapping_make(struct tb_cost_mapping **newest, const struct tb_places *places, uint32_t host_count)
{
    TB_ASSERT(*newest == NULL);
    struct tb_cost_mapping *mapping = calloc(1, sizeof *mapping);
    if (mapping == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for what links cost");
    int rc = tb_cost_table_make_plain(places, host_count, &mapping->bytes, &mapping->length);
    mapping->made = rc == TB_OK;
    if (rc == TB_OK)
        rc = tb_cost_table_view(&mapping->table, mapping->bytes, mapping->length);
    if (rc == TB_OK)
        *newest = mapping;
    else
        forget(mapping);
    return rc;
}

void tb_cost_mapping_close(struct tb_cost_mapping **newest)
{
    while (*newest != NULL) {
        struct tb_cost_mapping *mapping = *newest;
        *newest = mapping->older;
        forget(mapping);
    }
}

const struct tb_cost_table *tb_cost_mapping_first(const struct tb_cost_mapping *newest)
{
    while (newest != NULL && newest->older != NULL)
        newest = newest->older;
    return newest != NULL ? &newest->table : NULL;
}

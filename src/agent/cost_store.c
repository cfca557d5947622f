#include "agent/cost_store.h"

#include <sys/mman.h>
#include <unistd.h>

void tb_cost_store_init(struct tb_cost_store *store)
{
    *store = (struct tb_cost_store){.version = 0};
    tb_sealed_store_init(&store->coming, "tombolo-costs", "what links cost", TB_COST_TABLE_LIMIT);
}

void tb_cost_store_close(struct tb_cost_store *store)
{
    tb_sealed_store_close(&store->coming);
}

/* A later one has all of the one before, under the same numbers. */
static bool follows(const struct tb_cost_store *store, const struct tb_cost_head *head, uint32_t host_count)
{
    if (head->version != store->coming.version)
        return false;
    if (store->version == 0)
        return head->host_count == host_count;
    return head->host_count >= store->host_count && head->host_count <= TB_JOB_HOSTS_LIMIT &&
           head->place_count >= store->place_count && head->kind_count >= store->kind_count;
}

static int look(struct tb_cost_store *store, const void *bytes, size_t length, uint32_t host_count)
{
    struct tb_cost_table table;
    if (tb_cost_table_view(&table, bytes, length) != TB_OK ||
        tb_cost_table_check(&table, table.head->host_count) != TB_OK)
        return tb_error(TB_ERR_PROTOCOL, "%s", tb_error_story());
    if (!follows(store, table.head, host_count))
        return tb_error(TB_ERR_PROTOCOL, "what the launcher says of what links cost makes no sense");
    store->version = table.head->version;
    store->host_count = table.head->host_count;
    store->place_count = table.head->place_count;
    store->kind_count = table.head->kind_count;
    return TB_OK;
}

int tb_cost_store_take(struct tb_cost_store *store, struct tb_reader *r, uint32_t host_count, int *descriptor)
{
    int rc = tb_sealed_store_take(&store->coming, r, store->version, descriptor);
    if (rc != TB_OK || *descriptor < 0)
        return rc;
    size_t length = (size_t)store->coming.bytes;
    void *bytes = mmap(NULL, length, PROT_READ, MAP_SHARED, *descriptor, 0);
    rc = bytes != MAP_FAILED ? look(store, bytes, length, host_count) : tb_error_errno("cannot map what links cost");
    if (bytes != MAP_FAILED)
        munmap(bytes, length);
    if (rc != TB_OK) {
        close(*descriptor);
        *descriptor = -1;
    }
    return rc;
}

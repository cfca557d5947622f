#include "agent/cost_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

void tb_cost_store_init(struct tb_cost_store *store)
{
    *store = (struct tb_cost_store){.coming = -1};
}

void tb_cost_store_close(struct tb_cost_store *store)
{
    if (store->coming >= 0)
        close(store->coming);
    store->coming = -1;
    store->bytes = store->have = 0;
}

static int senseless(void)
{
    return tb_error(TB_ERR_PROTOCOL, "what the launcher says of what links cost makes no sense");
}

/* Memory grows with what comes, not with what is promised. */
static int append(struct tb_cost_store *store, const void *bytes, size_t length)
{
    if (store->coming < 0)
        store->coming = memfd_create("tombolo-costs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (store->coming < 0)
        return tb_error_errno("cannot make memory for what links cost");
    for (size_t at = 0; at < length;) {
        ssize_t n = write(store->coming, (const char *)bytes + at, length - at);
        if (n < 0)
            return tb_error_errno("cannot keep what links cost");
        at += (size_t)n;
    }
    store->have += length;
    return TB_OK;
}

/* A later one has all of the one before, under the same numbers. */
static bool follows(const struct tb_cost_store *store, const struct tb_cost_head *head, uint32_t host_count)
{
    if (head->version != store->coming_version)
        return false;
    if (store->version == 0)
        return head->host_count == host_count;
    return head->host_count >= store->host_count && head->host_count <= TB_JOB_HOSTS_LIMIT &&
           head->place_count >= store->place_count && head->kind_count >= store->kind_count;
}

static int look(struct tb_cost_store *store, const void *bytes, uint32_t host_count)
{
    struct tb_cost_table table;
    if (tb_cost_table_view(&table, bytes, (size_t)store->bytes) != TB_OK ||
        tb_cost_table_check(&table, table.head->host_count) != TB_OK)
        return tb_error(TB_ERR_PROTOCOL, "%s", tb_error_story());
    if (!follows(store, table.head, host_count))
        return senseless();
    store->version = table.head->version;
    store->host_count = table.head->host_count;
    store->place_count = table.head->place_count;
    store->kind_count = table.head->kind_count;
    return TB_OK;
}

/* Sealed first: nobody can change it after it was looked at. */
static int finish(struct tb_cost_store *store, uint32_t host_count)
{
    if (fcntl(store->coming, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return tb_error_errno("cannot seal what links cost");
    void *bytes = mmap(NULL, (size_t)store->bytes, PROT_READ, MAP_SHARED, store->coming, 0);
    if (bytes == MAP_FAILED)
        return tb_error_errno("cannot map what links cost");
    int rc = look(store, bytes, host_count);
    munmap(bytes, (size_t)store->bytes);
    return rc;
}

int tb_cost_store_take(struct tb_cost_store *store, struct tb_reader *r, uint32_t host_count, int *descriptor)
{
    uint32_t version = tb_get_u32(r);
    uint64_t all = tb_get_u64(r), offset = tb_get_u64(r);
    size_t length = 0;
    const void *bytes = tb_get_bytes(r, &length);
    *descriptor = -1;
    if (store->have == 0) {
        store->coming_version = version;
        store->bytes = all;
    }
    if (tb_reader_end(r) != TB_OK || version != store->coming_version || version <= store->version ||
        all != store->bytes || all > TB_COST_TABLE_LIMIT || offset != store->have || length == 0 ||
        length > TB_COSTS_FRAME_BYTES || length > all - offset)
        return senseless();
    int rc = append(store, bytes, length);
    if (rc != TB_OK || store->have < store->bytes)
        return rc;
    rc = finish(store, host_count);
    if (rc == TB_OK) {
        *descriptor = store->coming;
        store->coming = -1;
    }
    tb_cost_store_close(store);
    return rc;
}

#include "agent/sealed_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

void tb_sealed_store_init(struct tb_sealed_store *store, const char *name, const char *what, uint64_t limit)
{
    *store = (struct tb_sealed_store){.name = name, .what = what, .limit = limit, .coming = -1};
}

void tb_sealed_store_close(struct tb_sealed_store *store)
{
    if (store->coming >= 0)
        close(store->coming);
    store->coming = -1;
    store->bytes = store->have = 0;
}

/* Memory grows with what comes, not with what is promised. */
static int append(struct tb_sealed_store *store, const void *bytes, size_t length)
{
    if (store->coming < 0)
        store->coming = memfd_create(store->name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (store->coming < 0)
        return tb_error_errno("cannot make memory for %s", store->what);
    for (size_t at = 0; at < length;) {
        ssize_t n = write(store->coming, (const char *)bytes + at, length - at);
        if (n < 0)
            return tb_error_errno("cannot keep %s", store->what);
        at += (size_t)n;
    }
    store->have += length;
    return TB_OK;
}

int tb_sealed_store_take(struct tb_sealed_store *store, struct tb_reader *r, uint32_t newest, int *descriptor)
{
    uint32_t version = tb_get_u32(r);
    uint64_t all = tb_get_u64(r), offset = tb_get_u64(r);
    size_t length = 0;
    const void *bytes = tb_get_bytes(r, &length);
    *descriptor = -1;
    if (store->have == 0) {
        store->version = version;
        store->bytes = all;
    }
    if (tb_reader_end(r) != TB_OK || version != store->version || version <= newest || all != store->bytes ||
        all > store->limit || offset != store->have || length == 0 || length > TB_SEALED_FRAME_BYTES ||
        length > all - offset)
        return tb_error(TB_ERR_PROTOCOL, "what the launcher says of %s makes no sense", store->what);
    int rc = append(store, bytes, length);
    if (rc != TB_OK || store->have < store->bytes)
        return rc;
    /* Nobody can change it from now on, nor while it is looked at. */
    if (fcntl(store->coming, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return tb_error_errno("cannot seal %s", store->what);
    *descriptor = store->coming;
    store->coming = -1;
    store->have = 0;
    return TB_OK;
}

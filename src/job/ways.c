/* How a host gets something to the others. */
#include "job/job.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAY_BYTES_LEAST 23u /* of one way in a frame */

int tb_ways_encode(const struct tb_ways *ways, struct tb_writer *w)
{
    tb_put_u32(w, ways->version);
    tb_put_u32(w, ways->kind_count);
    for (uint32_t i = 0; i < ways->kind_count; i++) {
        const struct tb_way *way = &ways->ways[i];
        tb_put_u8(w, way->means);
        tb_put_u8(w, way->hop_count);
        tb_put_u8(w, way->near);
        for (uint32_t k = 0; k < way->hop_count; k++)
            tb_put_u32(w, way->hops[k]);
        tb_put_u64(w, way->latency);
        tb_put_u64(w, way->bandwidth);
        tb_put_u32(w, way->loss);
    }
    return w->error;
}

static bool take_way(struct tb_reader *r, struct tb_way *way, uint32_t host_count)
{
    way->means = tb_get_u8(r);
    way->hop_count = tb_get_u8(r);
    way->near = tb_get_u8(r);
    bool good = way->means <= TB_WAY_RELAYED && way->hop_count <= TB_WAYS_HOPS_LIMIT && way->near <= 1 &&
                (way->hop_count > 0) == (way->means == TB_WAY_RELAYED);
    for (uint32_t k = 0; good && k < way->hop_count; k++) {
        way->hops[k] = tb_get_u32(r);
        good = way->hops[k] < host_count;
    }
    way->latency = tb_get_u64(r);
    way->bandwidth = tb_get_u64(r);
    way->loss = tb_get_u32(r);
    return good && r->error == TB_OK;
}

int tb_ways_decode(struct tb_ways *ways, struct tb_reader *r, uint32_t host_count)
{
    *ways = (struct tb_ways){.version = tb_get_u32(r)};
    uint32_t kinds = tb_get_u32(r);
    size_t left = r->error == TB_OK ? r->length - r->at : 0;
    bool good = r->error == TB_OK && kinds <= TB_WAYS_KINDS_LIMIT && kinds <= left / WAY_BYTES_LEAST;
    if (good && kinds > 0) {
        ways->ways = calloc(kinds, sizeof *ways->ways);
        if (ways->ways == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for the ways to %u kinds of hosts", kinds);
    }
    for (uint32_t i = 0; good && i < kinds; i++)
        good = take_way(r, &ways->ways[i], host_count);
    if (!good) {
        tb_ways_close(ways);
        return tb_error(TB_ERR_PROTOCOL, "the ways between the hosts of the job make no sense");
    }
    ways->kind_count = kinds;
    return TB_OK;
}

void tb_ways_close(struct tb_ways *ways)
{
    free(ways->ways);
    *ways = (struct tb_ways){0};
}

const struct tb_way *tb_ways_to(const struct tb_ways *ways, const struct tb_book *book, uint32_t host)
{
    static const struct tb_way direct = {.means = TB_WAY_DIRECT, .near = 1}, none = {.means = TB_WAY_NONE};
    TB_ASSERT(host < book->host_count);
    if (ways->kind_count == 0)
        return &direct;
    uint32_t kind = book->hosts[host].kind;
    return kind < ways->kind_count ? &ways->ways[kind] : &none;
}

int tb_ways_share(const struct tb_ways *ways, int *descriptor)
{
    struct tb_writer w;
    tb_writer_open(&w);
    int rc = tb_ways_encode(ways, &w);
    int fd = rc == TB_OK ? memfd_create("tombolo-ways", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    if (rc == TB_OK && (fd < 0 || write(fd, w.bytes, w.length) != (ssize_t)w.length ||
                        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0))
        rc = tb_error_errno("cannot make memory for the ways between the hosts");
    tb_writer_close(&w);
    if (rc != TB_OK && fd >= 0)
        close(fd);
    else if (rc == TB_OK)
        *descriptor = fd;
    return rc;
}

int tb_ways_read(struct tb_ways *ways, int descriptor, uint32_t host_count)
{
    struct stat about;
    if (fstat(descriptor, &about) < 0 || about.st_size <= 0 || about.st_size > (off_t)TB_CONTROL_LIMIT)
        return tb_error(TB_ERR_PROTOCOL, "the ways between hosts that the agent gave make no sense");
    void *mapping = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapping == MAP_FAILED)
        return tb_error_errno("cannot map the ways between hosts");
    struct tb_reader r;
    tb_reader_open(&r, mapping, (size_t)about.st_size);
    int rc = tb_ways_decode(ways, &r, host_count);
    munmap(mapping, (size_t)about.st_size);
    return rc;
}

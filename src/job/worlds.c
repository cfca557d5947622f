#include "job/job.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORLDS_BYTES (sizeof(struct tb_worlds) + TB_JOB_RANKS_LIMIT * sizeof(struct tb_rank_range))

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

int tb_worlds_make(struct tb_address_book *book, int *descriptor)
{
    int fd = memfd_create("tombolo-worlds", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *memory = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)WORLDS_BYTES) == 0)
        memory = mmap(NULL, WORLDS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        int rc = tb_error_errno("cannot make memory for the places of processes that are started later");
        if (fd >= 0)
            close(fd);
        return rc;
    }
    /* Older kernels do not know how to keep others from writing to it. */
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0)
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    madvise(memory, WORLDS_BYTES, MADV_DONTDUMP);
    book->worlds = memory;
    if (descriptor != NULL)
        *descriptor = fd;
    else
        close(fd);
    return TB_OK;
}

int tb_worlds_map(struct tb_address_book *book, int descriptor)
{
    struct stat about;
    if (fstat(descriptor, &about) < 0 || about.st_size != (off_t)WORLDS_BYTES)
        return tb_error(TB_ERR_PROTOCOL, "what the agent gave for the places of later processes is something else");
    void *memory = mmap(NULL, WORLDS_BYTES, PROT_READ, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED)
        return tb_error_errno("cannot map the places of processes that are started later");
    madvise(memory, WORLDS_BYTES, MADV_DONTDUMP);
    book->worlds = memory;
    return TB_OK;
}

void tb_worlds_close(struct tb_address_book *book)
{
    if (book->worlds != NULL)
        munmap(book->worlds, WORLDS_BYTES);
    book->worlds = NULL;
}

uint32_t tb_worlds_processes(const struct tb_address_book *book)
{
    uint32_t processes =
        book->worlds != NULL ? atomic_load_explicit(&book->worlds->processes, memory_order_acquire) : 0;
    return processes > 0 ? processes : book->ranks;
}

static bool begins(const struct tb_worlds *w, uint32_t index)
{
    return atomic_load_explicit(&w->begins[index / 64], memory_order_relaxed) >> index % 64 & 1;
}

uint32_t tb_worlds_of(const struct tb_address_book *book, uint32_t index, uint32_t *end)
{
    uint32_t processes = tb_worlds_processes(book), first = index;
    if (index < book->ranks) {
        *end = book->ranks;
        return 0;
    }
    while (first > book->ranks && book->worlds != NULL && !begins(book->worlds, first))
        first--;
    for (*end = index + 1; *end < processes && !begins(book->worlds, *end);)
        ++*end;
    return first;
}

/* Who reads at the same time sees a range as it was, or as it is. */
static void append(struct tb_worlds *w, const struct tb_rank_range *range)
{
    uint32_t count = atomic_load_explicit(&w->count, memory_order_relaxed);
    struct tb_rank_range *last = count > 0 ? &w->ranges[count - 1] : NULL;
    bool follows =
        last != NULL && last->host == range->host && last->job == range->job && last->generation == range->generation;
    if (follows && (range->job == 0 || last->home + last->count == range->home)) {
        __atomic_store_n(&last->count, last->count + range->count, __ATOMIC_RELAXED);
    } else {
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): they are there from the beginning
        w->ranges[count] = *range;
        w->ranges[count].first_local = 0;
        atomic_store_explicit(&w->count, count + 1, memory_order_release);
    }
    atomic_store_explicit(&w->processes, range->first_rank + range->count, memory_order_release);
}

int tb_worlds_add(struct tb_address_book *book, const struct tb_rank_range *ranges, uint32_t count)
{
    uint32_t next = tb_worlds_processes(book);
    for (uint32_t i = 0; i < count; i++) {
        if (ranges[i].first_rank != next || ranges[i].count == 0 || ranges[i].count > TB_JOB_RANKS_LIMIT - next ||
            ranges[i].host >= book->host_count || (ranges[i].job != 0 && ranges[i].job == book->job) ||
            ranges[i].home > TB_JOB_RANKS_LIMIT - ranges[i].count)
            return tb_error(TB_ERR_PROTOCOL, "what was told of new processes makes no sense");
        next += ranges[i].count;
    }
    int rc = book->worlds != NULL ? TB_OK : tb_worlds_make(book, NULL);
    if (rc == TB_OK && count > 0)
        atomic_fetch_or_explicit(&book->worlds->begins[ranges[0].first_rank / 64],
                                 (uint64_t)1 << ranges[0].first_rank % 64, memory_order_relaxed);
    for (uint32_t i = 0; i < count && rc == TB_OK; i++)
        append(book->worlds, &ranges[i]);
    return rc;
}

void tb_worlds_put(struct tb_writer *w, const struct tb_rank_range *ranges, uint32_t count)
{
    tb_put_u32(w, count);
    for (uint32_t i = 0; i < count; i++) {
        tb_put_u32(w, ranges[i].first_rank);
        tb_put_u32(w, ranges[i].count);
        tb_put_u32(w, ranges[i].host);
        tb_put_u32(w, ranges[i].job);
        tb_put_u32(w, ranges[i].home);
        tb_put_u32(w, ranges[i].generation);
    }
}

int tb_worlds_get(struct tb_reader *r, struct tb_rank_range **ranges, uint32_t *count)
{
    *ranges = NULL;
    *count = tb_get_u32(r);
    if (r->error != TB_OK || *count == 0 || *count > (r->length - r->at) / 24)
        return tb_error(TB_ERR_PROTOCOL, "what was told of new processes makes no sense");
    *ranges = calloc(*count, sizeof **ranges);
    if (*ranges == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u ranges of processes", *count);
    for (uint32_t i = 0; i < *count; i++) {
        (*ranges)[i].first_rank = tb_get_u32(r);
        (*ranges)[i].count = tb_get_u32(r);
        (*ranges)[i].host = tb_get_u32(r);
        (*ranges)[i].job = tb_get_u32(r);
        (*ranges)[i].home = tb_get_u32(r);
        (*ranges)[i].generation = tb_get_u32(r);
    }
    return TB_OK;
}

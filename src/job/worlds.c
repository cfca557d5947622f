#include "job/worlds.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MORE_BYTES (TB_JOB_RANKS_LIMIT * sizeof(struct tb_rank_range)) /* reserved; what is used becomes memory */

uint32_t tb_worlds_processes(const struct tb_address_book *book)
{
    uint32_t processes = __atomic_load_n(&book->processes, __ATOMIC_ACQUIRE);
    return processes > 0 ? processes : book->ranks;
}

static int reserve(struct tb_address_book *book)
{
    if (book->more != NULL)
        return TB_OK;
    void *memory = mmap(NULL, MORE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return tb_error(TB_ERR_MEMORY, "no memory for the processes that are started while the job runs");
    book->more = memory;
    return TB_OK;
}

/* Who reads at the same time sees a range as it was, or as it is. */
static void append(struct tb_address_book *book, const struct tb_rank_range *range)
{
    uint32_t count = book->more_count;
    struct tb_rank_range *last = count > 0 ? &book->more[count - 1] : NULL;
    if (last != NULL && last->host == range->host) {
        __atomic_store_n(&last->count, last->count + range->count, __ATOMIC_RELAXED);
    } else {
        book->more[count] =
            (struct tb_rank_range){.first_rank = range->first_rank, .count = range->count, .host = range->host};
        __atomic_store_n(&book->more_count, count + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&book->processes, range->first_rank + range->count, __ATOMIC_RELEASE);
}

int tb_worlds_add(struct tb_address_book *book, const struct tb_rank_range *ranges, uint32_t count)
{
    uint32_t next = tb_worlds_processes(book);
    for (uint32_t i = 0; i < count; i++) {
        if (ranges[i].first_rank != next || ranges[i].count == 0 || ranges[i].count > TB_JOB_RANKS_LIMIT - next ||
            ranges[i].host >= book->host_count)
            return tb_error(TB_ERR_PROTOCOL, "what was told of new processes makes no sense");
        next += ranges[i].count;
    }
    int rc = reserve(book);
    for (uint32_t i = 0; i < count && rc == TB_OK; i++)
        append(book, &ranges[i]);
    return rc;
}

void tb_worlds_close(struct tb_address_book *book)
{
    if (book->more != NULL)
        munmap(book->more, MORE_BYTES);
    book->more = NULL;
    book->more_count = book->processes = 0;
}

void tb_worlds_put(struct tb_writer *w, const struct tb_rank_range *ranges, uint32_t count)
{
    tb_put_u32(w, count);
    for (uint32_t i = 0; i < count; i++) {
        tb_put_u32(w, ranges[i].first_rank);
        tb_put_u32(w, ranges[i].count);
        tb_put_u32(w, ranges[i].host);
    }
}

int tb_worlds_get(struct tb_reader *r, struct tb_rank_range **ranges, uint32_t *count)
{
    *ranges = NULL;
    *count = tb_get_u32(r);
    if (r->error != TB_OK || *count == 0 || *count > (r->length - r->at) / 12)
        return tb_error(TB_ERR_PROTOCOL, "what was told of new processes makes no sense");
    *ranges = calloc(*count, sizeof **ranges);
    if (*ranges == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u ranges of processes", *count);
    for (uint32_t i = 0; i < *count; i++) {
        (*ranges)[i].first_rank = tb_get_u32(r);
        (*ranges)[i].count = tb_get_u32(r);
        (*ranges)[i].host = tb_get_u32(r);
    }
    return TB_OK;
}

/* ---- between agent and rank -------------------------------------------------------------------------------------- */

int tb_worlds_share(const struct tb_address_book *book, int *descriptor)
{
    size_t bytes = book->more_count * sizeof *book->more;
    int fd = memfd_create("tombolo-worlds", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || write(fd, book->more, bytes) != (ssize_t)bytes ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0) {
        int rc = tb_error_errno("cannot make memory for the places of %u ranges of processes", book->more_count);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    *descriptor = fd;
    return TB_OK;
}

/* What of a range is not known yet. */
static bool is_news(const struct tb_address_book *book, struct tb_rank_range *range)
{
    uint32_t known = tb_worlds_processes(book);
    if (range->first_rank >= known)
        return true;
    uint32_t old = known - range->first_rank;
    if (old >= range->count)
        return false;
    range->first_rank = known;
    range->count -= old;
    return true;
}

int tb_worlds_read(struct tb_address_book *book, int descriptor)
{
    struct stat about;
    if (fstat(descriptor, &about) < 0 || about.st_size <= 0 || about.st_size > (off_t)MORE_BYTES ||
        about.st_size % (off_t)sizeof(struct tb_rank_range) != 0)
        return tb_error(TB_ERR_PROTOCOL, "what the agent told of new processes has the wrong size");
    size_t bytes = (size_t)about.st_size;
    const struct tb_rank_range *ranges = mmap(NULL, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (ranges == MAP_FAILED)
        return tb_error_errno("cannot map the places of new processes");
    int rc = TB_OK;
    for (size_t i = 0; i < bytes / sizeof *ranges && rc == TB_OK; i++) {
        struct tb_rank_range range = ranges[i];
        if (is_news(book, &range))
            rc = tb_worlds_add(book, &range, 1);
    }
    munmap((void *)ranges, bytes);
    return rc;
}

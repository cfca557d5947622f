/* The address book. */
#include "job/job.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct tb_rank_range *range_of(const struct tb_address_book *book, uint32_t rank)
{
    TB_ASSERT(rank < book->ranks);
    uint32_t low = 0, high = book->range_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (book->ranges[middle].first_rank <= rank)
            low = middle;
        else
            high = middle;
    }
    return &book->ranges[low];
}

uint32_t tb_address_book_host_of(const struct tb_address_book *book, uint32_t rank)
{
    return range_of(book, rank)->host;
}

const char *tb_host_long_double(const struct tb_host *host)
{
    return tb_wire_long_double(host->representation);
}

bool tb_host_char_is_unsigned(const struct tb_host *host)
{
    return (host->representation & TB_REP_CHAR_UNSIGNED) != 0;
}

bool tb_hosts_share(const struct tb_host *a, const struct tb_host *b, enum tb_trait trait)
{
    int bits = trait == TB_TRAIT_CHAR ? TB_REP_CHAR_UNSIGNED : TB_REP_LDOUBLE_MASK;
    return ((a->representation ^ b->representation) & bits) == 0;
}

uint32_t tb_address_book_local_index(const struct tb_address_book *book, uint32_t rank)
{
    const struct tb_rank_range *range = range_of(book, rank);
    return range->first_local + (rank - range->first_rank);
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

void tb_address_put(struct tb_writer *w, const struct tb_address *address)
{
    tb_put_u8(w, address->family);
    tb_put_u8(w, address->prefix);
    tb_put_u32(w, address->port);
    tb_put_u32(w, address->scope);
    tb_put_bytes(w, address->bytes, address->family == 4 ? 4 : 16);
}

int tb_address_get(struct tb_reader *r, struct tb_address *address)
{
    *address = (struct tb_address){.family = tb_get_u8(r)};
    address->prefix = tb_get_u8(r);
    uint32_t port = tb_get_u32(r);
    address->port = (uint16_t)port;
    address->scope = tb_get_u32(r);
    size_t length = 0;
    const void *bytes = tb_get_bytes(r, &length);
    if (r->error != TB_OK)
        return r->error;
    bool good = (address->family == 4 && length == 4 && address->prefix <= 32) ||
                (address->family == 6 && length == 16 && address->prefix <= 128);
    if (!good || port > UINT16_MAX) {
        r->error = TB_ERR_PROTOCOL;
        return tb_error(TB_ERR_PROTOCOL, "a network address in a control message makes no sense");
    }
    memcpy(address->bytes, bytes, length);
    return TB_OK;
}

void tb_address_print(const struct tb_address *address, char *text, size_t size)
{
    char plain[INET6_ADDRSTRLEN] = "?";
    if (address->family == 4) {
        inet_ntop(AF_INET, address->bytes, plain, sizeof plain);
        snprintf(text, size, "%s:%u", plain, (unsigned)address->port);
    } else {
        inet_ntop(AF_INET6, address->bytes, plain, sizeof plain);
        snprintf(text, size, "[%s]:%u", plain, (unsigned)address->port);
    }
}

socklen_t tb_address_socket(const struct tb_address *address, struct sockaddr_storage *to)
{
    memset(to, 0, sizeof *to);
    if (address->family == 4) {
        struct sockaddr_in *in = (struct sockaddr_in *)to;
        in->sin_family = AF_INET;
        in->sin_port = htons(address->port);
        memcpy(&in->sin_addr, address->bytes, 4);
        return sizeof *in;
    }
    struct sockaddr_in6 *in = (struct sockaddr_in6 *)to;
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(address->port);
    in->sin6_scope_id = address->scope;
    memcpy(&in->sin6_addr, address->bytes, 16);
    return sizeof *in;
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

int tb_address_book_encode(const struct tb_address_book *book, struct tb_writer *w)
{
    tb_put_u32(w, book->job);
    tb_put_u32(w, book->ranks);
    tb_put_u32(w, book->host_count);
    tb_put_u32(w, book->range_count);
    for (uint32_t i = 0; i < book->host_count; i++) {
        const struct tb_host *host = &book->hosts[i];
        tb_put_text(w, host->name);
        tb_put_text(w, host->place.site);
        tb_put_text(w, host->place.cluster);
        tb_put_text(w, host->place.host);
        tb_put_u8(w, host->representation);
        tb_put_u32(w, host->kind);
        tb_put_u32(w, host->first_rank);
        tb_put_u32(w, host->rank_count);
        tb_put_u32(w, host->address_count);
        for (uint32_t k = 0; k < host->address_count; k++)
            tb_address_put(w, &host->addresses[k]);
    }
    for (uint32_t i = 0; i < book->range_count; i++) {
        tb_put_u32(w, book->ranges[i].first_rank);
        tb_put_u32(w, book->ranges[i].count);
        tb_put_u32(w, book->ranges[i].host);
        tb_put_u32(w, book->ranges[i].first_local);
    }
    return w->error;
}

static void take_text(struct tb_reader *r, char *to, size_t size)
{
    size_t length = 0;
    const char *bytes = tb_get_bytes(r, &length);
    if (r->error != TB_OK)
        return;
    if (length >= size || memchr(bytes, 0, length) != NULL) {
        r->error = TB_ERR_PROTOCOL;
        return;
    }
    memcpy(to, bytes, length);
    to[length] = 0;
}

static void take_host(struct tb_reader *r, struct tb_host *host)
{
    take_text(r, host->name, sizeof host->name);
    take_text(r, host->place.site, sizeof host->place.site);
    take_text(r, host->place.cluster, sizeof host->place.cluster);
    take_text(r, host->place.host, sizeof host->place.host);
    host->representation = tb_get_u8(r);
    host->kind = tb_get_u32(r);
    host->first_rank = tb_get_u32(r);
    host->rank_count = tb_get_u32(r);
    host->address_count = tb_get_u32(r);
    if (host->address_count > TB_HOST_ADDRESS_LIMIT)
        r->error = TB_ERR_PROTOCOL;
    for (uint32_t k = 0; k < host->address_count && r->error == TB_OK; k++)
        tb_address_get(r, &host->addresses[k]);
}

/* Ranges cover every rank once, in order; each host's local indices count from 0 without gaps. */
static bool is_consistent(const struct tb_address_book *book)
{
    uint32_t *seen = calloc(book->host_count, sizeof *seen);
    if (seen == NULL)
        return false;
    bool good = true;
    uint32_t next = 0;
    for (uint32_t i = 0; i < book->range_count && good; i++) {
        const struct tb_rank_range *range = &book->ranges[i];
        good = range->host < book->host_count && range->count > 0 && range->count <= TB_HOST_RANKS_LIMIT &&
               range->first_rank == next && range->first_local == seen[range->host];
        if (!good)
            break;
        const struct tb_host *host = &book->hosts[range->host];
        if (range->first_local == 0)
            good = host->first_rank == range->first_rank;
        next += range->count;
        seen[range->host] += range->count;
        good = good && next <= book->ranks && seen[range->host] <= TB_HOST_RANKS_LIMIT;
    }
    good = good && next == book->ranks;
    for (uint32_t i = 0; i < book->host_count && good; i++)
        good = seen[i] == book->hosts[i].rank_count;
    free(seen);
    return good;
}

int tb_address_book_decode(struct tb_address_book *book, struct tb_reader *r)
{
    *book = (struct tb_address_book){.job = tb_get_u32(r)};
    book->ranks = tb_get_u32(r);
    uint32_t hosts = tb_get_u32(r), ranges = tb_get_u32(r);
    /* Each entry takes some bytes, so a count beyond what has arrived is a lie that must not cost memory. */
    size_t left = r->error == TB_OK ? r->length - r->at : 0;
    if (r->error != TB_OK || book->job == 0 || book->ranks == 0 || book->ranks > TB_JOB_RANKS_LIMIT || hosts == 0 ||
        hosts > TB_JOB_HOSTS_LIMIT || ranges == 0 || ranges > book->ranks || hosts > left / 32 || ranges > left / 16)
        goto nonsense;
    book->hosts = calloc(hosts, sizeof *book->hosts);
    book->ranges = calloc(ranges, sizeof *book->ranges);
    if (book->hosts == NULL || book->ranges == NULL) {
        tb_address_book_close(book);
        return tb_error(TB_ERR_MEMORY, "no memory for an address book of %u hosts", hosts);
    }
    book->host_count = hosts;
    book->range_count = ranges;
    for (uint32_t i = 0; i < hosts && r->error == TB_OK; i++)
        take_host(r, &book->hosts[i]);
    for (uint32_t i = 0; i < ranges && r->error == TB_OK; i++) {
        book->ranges[i].first_rank = tb_get_u32(r);
        book->ranges[i].count = tb_get_u32(r);
        book->ranges[i].host = tb_get_u32(r);
        book->ranges[i].first_local = tb_get_u32(r);
    }
    if (r->error == TB_OK && is_consistent(book))
        return TB_OK;
nonsense:
    tb_address_book_close(book);
    return tb_error(TB_ERR_PROTOCOL, "the address book of the job makes no sense");
}

void tb_address_book_close(struct tb_address_book *book)
{
    if (book->mapping != NULL) {
        munmap(book->mapping, book->mapping_bytes);
    } else {
        free(book->hosts);
        free(book->ranges);
    }
    *book = (struct tb_address_book){0};
}

/* ---- the host's copy --------------------------------------------------------------------------------------------- */

/* What the memfd begins with; the hosts and then the ranges follow. */
struct shared_book {
    uint32_t job, ranks, host_count, range_count;
};

static size_t shared_bytes(const struct shared_book *head)
{
    return sizeof *head + head->host_count * sizeof(struct tb_host) + head->range_count * sizeof(struct tb_rank_range);
}

static int write_all(int descriptor, const void *bytes, size_t length)
{
    const char *from = bytes;
    while (length > 0) {
        ssize_t n = write(descriptor, from, length);
        if (n < 0)
            return tb_error_errno("cannot write the address book to memory");
        from += n;
        length -= (size_t)n;
    }
    return TB_OK;
}

int tb_address_book_share(const struct tb_address_book *book, int *descriptor)
{
    int fd = memfd_create("tombolo-book", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return tb_error_errno("cannot make memory for the address book");
    struct shared_book head = {book->job, book->ranks, book->host_count, book->range_count};
    int rc = write_all(fd, &head, sizeof head);
    if (rc == TB_OK)
        rc = write_all(fd, book->hosts, book->host_count * sizeof *book->hosts);
    if (rc == TB_OK)
        rc = write_all(fd, book->ranges, book->range_count * sizeof *book->ranges);
    if (rc == TB_OK && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        rc = tb_error_errno("cannot seal the address book");
    if (rc != TB_OK) {
        close(fd);
        return rc;
    }
    *descriptor = fd;
    return TB_OK;
}

int tb_address_book_map(struct tb_address_book *book, int descriptor)
{
    struct stat about;
    *book = (struct tb_address_book){0};
    if (fstat(descriptor, &about) < 0 || about.st_size < (off_t)sizeof(struct shared_book))
        return tb_error(TB_ERR_PROTOCOL, "the address book that the agent gave is no address book");
    void *mapping = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapping == MAP_FAILED)
        return tb_error_errno("cannot map the address book");
    madvise(mapping, (size_t)about.st_size, MADV_DONTDUMP);
    const struct shared_book *head = mapping;
    if (shared_bytes(head) != (size_t)about.st_size || head->range_count == 0) {
        munmap(mapping, (size_t)about.st_size);
        return tb_error(TB_ERR_PROTOCOL, "the address book that the agent gave has the wrong size");
    }
    book->job = head->job;
    book->ranks = head->ranks;
    book->host_count = head->host_count;
    book->range_count = head->range_count;
    book->hosts = (struct tb_host *)((char *)mapping + sizeof *head);
    book->ranges = (struct tb_rank_range *)(book->hosts + head->host_count);
    book->mapping = mapping;
    book->mapping_bytes = (size_t)about.st_size;
    return TB_OK;
}

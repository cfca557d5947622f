/* The address book. */
#include "job/job.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOK_MAGIC  0x5442424bu
#define BOOK_FORMAT 3u

/* What the parts of a book take at least in a frame. */
#define HOST_BYTES_LEAST  29u
#define RANGE_BYTES       16u
#define PLACE_BYTES_LEAST 10u
#define SEAT_BYTES        8u

#define PATTERNS_COMPARED 64u /* hosts that are alike have one of the first patterns */

/* The last one that begins at or before a rank. */
static const struct tb_rank_range *find_range(const struct tb_rank_range *ranges, uint32_t count, uint32_t rank)
{
    uint32_t low = 0, high = count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (ranges[middle].first_rank <= rank)
            low = middle;
        else
            high = middle;
    }
    return &ranges[low];
}

const struct tb_rank_range *tb_address_book_range(const struct tb_address_book *book, uint32_t rank)
{
    TB_ASSERT(tb_address_book_knows(book, rank));
    if (rank < book->ranks)
        return find_range(book->ranges, book->range_count, rank);
    return find_range(book->worlds->ranges, atomic_load_explicit(&book->worlds->count, memory_order_acquire), rank);
}

bool tb_address_book_knows(const struct tb_address_book *book, uint32_t index)
{
    return index < book->ranks || index < tb_worlds_processes(book);
}

uint32_t tb_address_book_host_of(const struct tb_address_book *book, uint32_t rank)
{
    return tb_address_book_range(book, rank)->host;
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

const char *tb_address_book_cluster(const struct tb_address_book *book, uint32_t host)
{
    uint32_t place = book->hosts[host].place;
    return place < book->places.count && book->places.rows[place].level == TB_LEVEL_CLUSTER
               ? tb_places_name(&book->places, place)
               : "";
}

uint32_t tb_address_book_local_index(const struct tb_address_book *book, uint32_t rank)
{
    const struct tb_rank_range *range = tb_address_book_range(book, rank);
    return range->first_local + (rank - range->first_rank);
}

/* ---- seats ------------------------------------------------------------------------------------------------------- */

const struct tb_seat *tb_address_book_seats(const struct tb_address_book *book, uint32_t host)
{
    uint32_t pattern = book->hosts[host].pattern;
    return pattern > 0 ? book->seats + book->pattern_firsts[pattern - 1] : NULL;
}

/* The pattern, + 1, that is just so; 0: none is. */
static uint32_t pattern_find(const struct tb_address_book *book, const struct tb_seat *seats, uint32_t count)
{
    for (uint32_t i = 0; i < book->pattern_count && i < PATTERNS_COMPARED; i++) {
        uint32_t first = book->pattern_firsts[i];
        if (book->pattern_firsts[i + 1] - first == count &&
            memcmp(book->seats + first, seats, count * sizeof *seats) == 0)
            return i + 1;
    }
    return 0;
}

int tb_address_book_seat(struct tb_address_book *book, uint32_t host, const struct tb_seat *seats, uint32_t count)
{
    struct tb_host *to = &book->hosts[host];
    to->pattern = count > 0 ? pattern_find(book, seats, count) : 0;
    if (count == 0 || to->pattern > 0)
        return TB_OK;
    uint32_t n = book->pattern_count, used = n > 0 ? book->pattern_firsts[n] : 0;
    uint32_t *firsts = reallocarray(book->pattern_firsts, n + 2u, sizeof *firsts);
    book->pattern_firsts = firsts != NULL ? firsts : book->pattern_firsts;
    struct tb_seat *grown = reallocarray(book->seats, (size_t)used + count, sizeof *grown);
    book->seats = grown != NULL ? grown : book->seats;
    if (firsts == NULL || grown == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the seats of %u ranks", count);
    memcpy(grown + used, seats, count * sizeof *seats);
    firsts[n] = used;
    firsts[n + 1] = used + count;
    to->pattern = ++book->pattern_count;
    return TB_OK;
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

int tb_address_book_encode(const struct tb_address_book *book, struct tb_writer *w)
{
    const struct tb_places *places = &book->places;
    TB_ASSERT(places->count > 0);
    tb_put_u32(w, BOOK_FORMAT);
    tb_put_u32(w, book->version);
    tb_put_u32(w, book->job);
    tb_put_u32(w, book->ranks);
    tb_put_u32(w, book->universe);
    tb_put_u32(w, book->host_count);
    tb_put_u32(w, book->range_count);
    tb_put_u32(w, places->count);
    tb_put_u32(w, book->pattern_count);
    for (uint32_t i = 1; i < places->count; i++) {
        tb_put_u32(w, places->rows[i].parent);
        tb_put_u8(w, places->rows[i].level);
        tb_put_text(w, tb_places_name(places, i));
    }
    for (uint32_t i = 0; i < book->pattern_count; i++) {
        tb_put_u32(w, book->pattern_firsts[i + 1] - book->pattern_firsts[i]);
        for (uint32_t k = book->pattern_firsts[i]; k < book->pattern_firsts[i + 1]; k++)
            tb_put_u64(w, tb_seat_pack(&book->seats[k]));
    }
    for (uint32_t i = 0; i < book->host_count; i++) {
        const struct tb_host *host = &book->hosts[i];
        tb_put_text(w, host->name);
        tb_put_u32(w, host->place);
        tb_put_u8(w, host->representation);
        tb_put_u32(w, host->kind);
        tb_put_u32(w, host->pattern);
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
    host->place = tb_get_u32(r);
    host->representation = tb_get_u8(r);
    host->kind = tb_get_u32(r);
    host->pattern = tb_get_u32(r);
    host->first_rank = tb_get_u32(r);
    host->rank_count = tb_get_u32(r);
    host->address_count = tb_get_u32(r);
    if (host->address_count > TB_HOST_ADDRESS_LIMIT)
        r->error = TB_ERR_PROTOCOL;
    for (uint32_t k = 0; k < host->address_count && r->error == TB_OK; k++)
        tb_address_get(r, &host->addresses[k]);
}

/* All ranks of a host have seats, or none has. */
static bool is_seated(const struct tb_address_book *book, const struct tb_host *host)
{
    return host->pattern == 0 ||
           (host->pattern <= book->pattern_count &&
            book->pattern_firsts[host->pattern] - book->pattern_firsts[host->pattern - 1] == host->rank_count);
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
        good = seen[i] == book->hosts[i].rank_count && book->hosts[i].place < book->places.count &&
               is_seated(book, &book->hosts[i]);
    free(seen);
    return good;
}

/* One that stands where its number says: behind what is around it, and told once. */
static bool take_place(struct tb_reader *r, struct tb_places_builder *builder, uint32_t number)
{
    char name[TB_PLACE_NAME_BYTES];
    uint32_t parent = tb_get_u32(r), handle = TB_PLACE_NONE;
    uint8_t level = tb_get_u8(r);
    take_text(r, name, sizeof name);
    if (r->error != TB_OK || parent >= number || *name == 0 ||
        (level == TB_LEVEL_SITE ? parent != 0 : level != TB_LEVEL_CLUSTER))
        return false;
    return tb_places_builder_add(builder, parent, (enum tb_level)level, name, &handle) == TB_OK && handle == number;
}

static int take_places(struct tb_reader *r, uint32_t count, struct tb_places *places)
{
    struct tb_places_builder *builder;
    uint32_t *numbers = malloc(count * sizeof *numbers);
    int rc = tb_places_builder_open(&builder);
    bool good = true;
    if (rc == TB_OK && numbers == NULL)
        rc = tb_error(TB_ERR_MEMORY, "no memory for the places of a job");
    for (uint32_t i = 1; i < count && good && rc == TB_OK; i++)
        good = take_place(r, builder, i);
    if (rc == TB_OK && good)
        rc = tb_places_builder_seal(builder, places, numbers);
    for (uint32_t i = 0; i < count && good && rc == TB_OK; i++)
        good = numbers[i] == i; /* everything in a place stands behind it without a gap */
    tb_places_builder_close(builder);
    free(numbers);
    return good ? rc : TB_ERR_PROTOCOL;
}

/* Each has at least one seat, so that they take no more memory than what has arrived. */
static int take_patterns(struct tb_reader *r, uint32_t count, struct tb_address_book *book)
{
    size_t most = (r->length - r->at) / SEAT_BYTES;
    uint32_t used = 0;
    if (count == 0)
        return TB_OK;
    book->pattern_firsts = calloc(count + 1u, sizeof *book->pattern_firsts);
    book->seats = malloc((most + 1) * sizeof *book->seats);
    if (book->pattern_firsts == NULL || book->seats == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the seats of a job");
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++) {
        uint32_t seats = tb_get_u32(r);
        if (seats == 0 || seats > TB_HOST_RANKS_LIMIT || seats > most - used)
            return TB_ERR_PROTOCOL;
        for (uint32_t k = 0; k < seats; k++)
            book->seats[used++] = tb_seat_unpack(tb_get_u64(r));
        book->pattern_firsts[i + 1] = used;
    }
    book->pattern_count = count;
    return r->error == TB_OK ? TB_OK : TB_ERR_PROTOCOL;
}

int tb_address_book_decode(struct tb_address_book *book, struct tb_reader *r)
{
    uint32_t format = tb_get_u32(r);
    *book = (struct tb_address_book){.version = tb_get_u32(r)};
    book->job = tb_get_u32(r);
    book->ranks = tb_get_u32(r);
    book->universe = tb_get_u32(r);
    uint32_t hosts = tb_get_u32(r), ranges = tb_get_u32(r), places = tb_get_u32(r), patterns = tb_get_u32(r);
    /* Each entry takes some bytes, so a count beyond what has arrived is a lie that must not cost memory. */
    size_t left = r->error == TB_OK ? r->length - r->at : 0;
    if (r->error != TB_OK || format != BOOK_FORMAT || book->version == 0 || book->job == 0 || book->ranks == 0 ||
        book->ranks > TB_JOB_RANKS_LIMIT || hosts == 0 || hosts > TB_JOB_HOSTS_LIMIT || ranges == 0 ||
        ranges > book->ranks || places == 0 || places > TB_PLACES_LIMIT || hosts > left / HOST_BYTES_LEAST ||
        ranges > left / RANGE_BYTES || places - 1 > left / PLACE_BYTES_LEAST || patterns > left / SEAT_BYTES)
        goto nonsense;
    int rc = take_places(r, places, &book->places);
    if (rc == TB_OK)
        rc = take_patterns(r, patterns, book);
    if (rc == TB_ERR_PROTOCOL)
        goto nonsense;
    if (rc != TB_OK) {
        tb_address_book_close(book);
        return rc;
    }
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
    if (tb_reader_end(r) == TB_OK && is_consistent(book))
        return TB_OK;
nonsense:
    tb_address_book_close(book);
    return tb_error(TB_ERR_PROTOCOL, "the address book of the job makes no sense");
}

void tb_address_book_close(struct tb_address_book *book)
{
    tb_worlds_close(book);
    if (book->mapping != NULL) {
        munmap(book->mapping, book->mapping_bytes);
    } else {
        free(book->hosts);
        free(book->ranges);
        free(book->pattern_firsts);
        free(book->seats);
        tb_places_close(&book->places);
    }
    *book = (struct tb_address_book){0};
}

/* ---- the host's copy --------------------------------------------------------------------------------------------- */

/* What the memfd begins with; the rows of the places, their names, the hosts, the ranges, where patterns begin and
 * their seats follow, each aligned to 8. */
struct shared_book {
    uint32_t magic, format, version, job;
    uint32_t ranks, host_count, range_count, place_count;
    uint32_t name_bytes, pattern_count, seat_count, universe;
};

#define SHARED_PARTS 6

static size_t padded(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

/* Where each part begins; the last is the end. */
static void shared_parts(const struct shared_book *head, size_t at[SHARED_PARTS + 1])
{
    at[0] = sizeof *head;
    at[1] = padded(at[0] + head->place_count * sizeof(struct tb_place_row));
    at[2] = padded(at[1] + head->name_bytes);
    at[3] = padded(at[2] + head->host_count * sizeof(struct tb_host));
    at[4] = padded(at[3] + head->range_count * sizeof(struct tb_rank_range));
    at[5] = padded(at[4] + (head->pattern_count > 0 ? head->pattern_count + (size_t)1 : 0) * sizeof(uint32_t));
    at[6] = at[5] + head->seat_count * sizeof(struct tb_seat);
}

static int write_at(int descriptor, size_t offset, const void *bytes, size_t length)
{
    const char *from = bytes;
    while (length > 0) {
        ssize_t n = pwrite(descriptor, from, length, (off_t)offset);
        if (n < 0)
            return tb_error_errno("cannot write the address book to memory");
        from += n;
        offset += (size_t)n;
        length -= (size_t)n;
    }
    return TB_OK;
}

int tb_address_book_share(const struct tb_address_book *book, int *descriptor)
{
    int fd = memfd_create("tombolo-book", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return tb_error_errno("cannot make memory for the address book");
    const struct tb_places *places = &book->places;
    uint32_t patterns = book->pattern_count;
    struct shared_book head = {.magic = BOOK_MAGIC,
                               .format = BOOK_FORMAT,
                               .version = book->version,
                               .job = book->job,
                               .ranks = book->ranks,
                               .host_count = book->host_count,
                               .range_count = book->range_count,
                               .place_count = places->count,
                               .name_bytes = places->name_bytes,
                               .pattern_count = patterns,
                               .seat_count = patterns > 0 ? book->pattern_firsts[patterns] : 0,
                               .universe = book->universe};
    size_t at[SHARED_PARTS + 1];
    shared_parts(&head, at);
    const struct {
        const void *bytes;
        size_t length;
    } parts[SHARED_PARTS] = {{places->rows, places->count * sizeof *places->rows},
                             {places->names, places->name_bytes},
                             {book->hosts, book->host_count * sizeof *book->hosts},
                             {book->ranges, book->range_count * sizeof *book->ranges},
                             {book->pattern_firsts, patterns > 0 ? (patterns + (size_t)1) * sizeof(uint32_t) : 0},
                             {book->seats, head.seat_count * sizeof *book->seats}};
    int rc = write_at(fd, 0, &head, sizeof head);
    for (size_t i = 0; i < SHARED_PARTS && rc == TB_OK; i++)
        rc = write_at(fd, at[i], parts[i].bytes, parts[i].length);
    /* Without seats the last parts are empty, and the file is to end where they do. */
    if (rc == TB_OK && ftruncate(fd, (off_t)at[SHARED_PARTS]) < 0)
        rc = tb_error_errno("cannot make memory for the address book");
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
    size_t length = (size_t)about.st_size, at[SHARED_PARTS + 1];
    char *mapping = mmap(NULL, length, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapping == MAP_FAILED)
        return tb_error_errno("cannot map the address book");
    madvise(mapping, length, MADV_DONTDUMP);
    const struct shared_book *head = (const void *)mapping;
    shared_parts(head, at);
    if (head->magic != BOOK_MAGIC || head->format != BOOK_FORMAT || at[SHARED_PARTS] != length ||
        head->range_count == 0 || head->place_count == 0 || head->name_bytes == 0 ||
        mapping[at[1] + head->name_bytes - 1] != 0) {
        munmap(mapping, length);
        return tb_error(TB_ERR_PROTOCOL, "the address book that the agent gave has the wrong size");
    }
    *book = (struct tb_address_book){.version = head->version,
                                     .job = head->job,
                                     .ranks = head->ranks,
                                     .universe = head->universe,
                                     .host_count = head->host_count,
                                     .range_count = head->range_count,
                                     .places = {.count = head->place_count,
                                                .name_bytes = head->name_bytes,
                                                .rows = (void *)(mapping + at[0]),
                                                .names = mapping + at[1]},
                                     .hosts = (void *)(mapping + at[2]),
                                     .ranges = (void *)(mapping + at[3]),
                                     .pattern_count = head->pattern_count,
                                     .pattern_firsts = (void *)(mapping + at[4]),
                                     .seats = (void *)(mapping + at[5]),
                                     .mapping = mapping,
                                     .mapping_bytes = length};
    return TB_OK;
}

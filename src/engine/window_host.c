#include "engine/window_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/engine_state.h"
#include "engine/host_mutex.h"
#include "engine/window.h"
#include "engine/window_room.h"

#define NOWHERE UINT32_MAX

/* The file begins with a page of its own. */
struct file_head {
    uint64_t token;
};

enum { COPIES_UNKNOWN, COPIES_YES, COPIES_NO };

/* Another rank of this host. */
struct member {
    uint32_t rank;
    uint32_t process;
    uint64_t token, token_address;
    uint64_t base, size; /* of what the program has brought along, in that process */
    uint8_t copies;      /* whether its memory can be read and written from here */
    struct tb_window_line *line;
    struct tb_host_lock lock;
    _Atomic uint32_t *users; /* of that lock, by member: how often it has it or waits for it; each writes its own */
    bool gone;
    struct tb_host_regions *regions; /* of a dynamic window */
    char *memory;                    /* NULL: it is not to be had here */
};

struct tb_window_host {
    struct tb_window_host_config config; /* without `locals` */
    uint32_t *places;                    /* of each rank of the window: its member, or NOWHERE */
    uint32_t count, mine;
    uint32_t gone;  /* members that are */
    uint32_t page;  /* bytes */
    uint64_t token; /* where others look for it */
    int descriptor; /* of the memory that this rank gives; -1 */
    char *mapping;
    size_t mapping_bytes;
    struct member members[];
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

bool tb_window_host_is_wanted(const struct tb_engine *engine)
{
    return engine->local != NULL && (engine->local->capabilities & TB_CAP_BOARDS) != 0;
}

/* The file that the others map; -1: there is none, and they do without. */
static int make_file(uint64_t token, struct tb_window_offer *offer)
{
    struct stat what;
    const struct file_head head = {.token = token};
    int descriptor = memfd_create("tombolo-window", MFD_CLOEXEC);
    if (descriptor < 0)
        return -1;
    if (write(descriptor, &head, sizeof head) != (ssize_t)sizeof head || fstat(descriptor, &what) != 0) {
        close(descriptor);
        return -1;
    }
    offer->device = (uint64_t)what.st_dev;
    offer->file = (uint64_t)what.st_ino;
    return descriptor;
}

/* Memory for so many ranks of this host can be had. */
static int check_room(uint64_t bytes, uint32_t ranks)
{
    if (tb_window_room_has(bytes))
        return TB_OK;
    if (ranks == 1)
        return tb_error(TB_ERR_MEMORY, "%llu bytes of a window are more than this host can have now",
                        (unsigned long long)bytes);
    return tb_error(TB_ERR_MEMORY,
                    "%llu bytes of a window, for the %u ranks on this host together, are more than it can have now",
                    (unsigned long long)bytes, ranks);
}

/* Who asks for too much alone says so here: when all know what all have asked for, each that shares memory with it
 * would, and others could not tell which of them it was. */
int tb_window_host_open(const struct tb_window_host_config *config, struct tb_window_offer *offer,
                        struct tb_window_host **host)
{
    uint32_t count = config->local_count;
    int error = config->allocates ? check_room(offer->size, 1) : TB_OK;
    if (error < 0)
        return error;
    struct tb_window_host *h = calloc(1, sizeof *h + count * sizeof h->members[0]);
    uint32_t *places = malloc(config->size * sizeof *places);
    if (h == NULL || places == NULL) {
        free(h);
        free(places);
        return tb_error(TB_ERR_MEMORY, "out of memory for a window of %u ranks", config->size);
    }
    h->config = *config;
    h->config.locals = NULL;
    h->page = (uint32_t)sysconf(_SC_PAGESIZE);
    if (h->config.alignment < h->page)
        h->config.alignment = h->page;
    h->places = places;
    h->count = count;
    h->descriptor = -1;
    memset(places, 0xff, config->size * sizeof *places);
    for (uint32_t i = 0; i < count; i++) {
        TB_ASSERT(config->locals[i] < config->size);
        h->members[i].rank = config->locals[i];
        places[config->locals[i]] = i;
    }
    h->mine = places[config->rank];
    TB_ASSERT(h->mine != NOWHERE);
    error = tb_random_secret(&h->token, sizeof h->token);
    if (error < 0) {
        tb_window_host_close(h);
        return error;
    }
    offer->token = h->token;
    offer->token_address = (uintptr_t)&h->token;
    offer->process = (uint32_t)getpid();
    offer->alignment = h->config.alignment;
    offer->apart = !config->contiguous;
    if (count > 1 && h->mine == 0)
        h->descriptor = make_file(h->token, offer);
    offer->descriptor = h->descriptor;
    *host = h;
    return TB_OK;
}

/* ---- entering ---------------------------------------------------------------------------------------------------- */

/* Opens what the first rank gives, if it is that: nothing else of a process that happens to have the same number is
 * touched. -1: it is not to be had. */
static int open_file(const struct tb_window_offer *offer)
{
    char path[64];
    struct stat what;
    struct file_head head = {.token = 0};
    if (offer->descriptor < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/%u/fd/%d", offer->process, offer->descriptor);
    if (stat(path, &what) != 0 || !S_ISREG(what.st_mode) || (uint64_t)what.st_dev != offer->device ||
        (uint64_t)what.st_ino != offer->file)
        return -1;
    int descriptor = open(path, O_RDWR | O_CLOEXEC);
    if (descriptor < 0)
        return -1;
    if (pread(descriptor, &head, sizeof head, 0) == (ssize_t)sizeof head && head.token == offer->token)
        return descriptor;
    close(descriptor);
    return -1;
}

static bool add_up(uint64_t *at, uint64_t bytes, uint64_t alignment)
{
    uint64_t sum;
    if (__builtin_add_overflow(*at, bytes, &sum) || sum > (uint64_t)INT64_MAX - alignment)
        return false;
    *at = (sum + alignment - 1) / alignment * alignment;
    return true;
}

/* Where everything of `count` members from `first` on stands, as distances from the mapping, and how much that is. The
 * same on all ranks that share it. False: it is too much. */
static bool lay_out(struct tb_window_host *h, uint32_t first, uint32_t count, uint64_t *bytes)
{
    uint64_t at = h->page, alignment = h->config.alignment;
    TB_ASSERT(count <= UINT32_MAX / 4);
    for (uint32_t i = first; i < first + count; i++) {
        h->members[i].line = (struct tb_window_line *)(uintptr_t)at; /* not yet a pointer */
        at += sizeof(struct tb_window_line);
    }
    uint32_t tickets = tb_host_lock_places(2 * count); /* of each rank, for itself and for those whom it serves */
    for (uint32_t i = first; i < first + count; i++) {
        h->members[i].lock.mask = tickets - 1;
        h->members[i].lock.waiting = (_Atomic uint64_t *)(uintptr_t)at;
        at += tickets * sizeof(uint64_t);
    }
    for (uint32_t i = first; i < first + count; i++) {
        h->members[i].users = (_Atomic uint32_t *)(uintptr_t)at;
        at += (h->count + 15) / 16 * 16 * sizeof(uint32_t); /* all of them, also for one that is alone */
    }
    for (uint32_t i = first; i < first + count && h->config.dynamic; i++) {
        h->members[i].regions = (struct tb_host_regions *)(uintptr_t)at;
        at += sizeof(struct tb_host_regions);
    }
    if (!add_up(&at, 0, alignment))
        return false;
    for (uint32_t i = first; i < first + count && h->config.allocates; i++) {
        h->members[i].memory = (char *)(uintptr_t)at;
        if (!add_up(&at, h->members[i].size, h->config.contiguous ? 1 : alignment))
            return false;
    }
    *bytes = at;
    return add_up(bytes, 0, h->page);
}

/* An address that can be divided by the alignment, and `bytes` from there on; -1: anonymous memory. A file grows for
 * whoever comes first, to what is the same for all; and its memory is found when it is touched, too late to be told
 * that there is none. */
static int map(struct tb_window_host *h, int descriptor, uint64_t bytes)
{
    uint64_t alignment = h->config.alignment;
    uint64_t room = bytes + (alignment > h->page ? alignment : 0);
    int flags = descriptor >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    char *place = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        return tb_error(TB_ERR_MEMORY, "out of memory for %llu bytes of a window", (unsigned long long)bytes);
    char *at = (char *)(((uintptr_t)place + alignment - 1) / alignment * alignment);
    if (at > place)
        munmap(place, (size_t)(at - place));
    if (place + room > at + bytes)
        munmap(at + bytes, (size_t)(place + room - (at + bytes)));
    if ((descriptor >= 0 && ftruncate(descriptor, (off_t)bytes) != 0) ||
        mmap(at, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, descriptor, 0) == MAP_FAILED) {
        int error = tb_error(TB_ERR_MEMORY, "no memory for %llu bytes of a window: %s", (unsigned long long)bytes,
                             strerror(errno));
        munmap(at, bytes);
        return error;
    }
    h->mapping = at;
    h->mapping_bytes = bytes;
    return TB_OK;
}

/* Distances become addresses. */
static void stand(struct tb_window_host *h, uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        struct member *m = &h->members[i];
        m->line = (struct tb_window_line *)(void *)(h->mapping + (uintptr_t)m->line);
        m->lock.words = &m->line->lock;
        m->lock.waiting = (_Atomic uint64_t *)(void *)(h->mapping + (uintptr_t)m->lock.waiting);
        m->users = (_Atomic uint32_t *)(void *)(h->mapping + (uintptr_t)m->users);
        if (h->config.dynamic)
            m->regions = (struct tb_host_regions *)(void *)(h->mapping + (uintptr_t)m->regions);
        if (h->config.allocates)
            m->memory = h->mapping + (uintptr_t)m->memory;
    }
    struct member *own = &h->members[h->mine];
    if (!h->config.allocates && !h->config.dynamic)
        own->memory = (char *)(uintptr_t)own->base;
    atomic_store_explicit(&own->line->entered, 1, memory_order_release);
}

static int map_alone(struct tb_window_host *h)
{
    uint64_t bytes;
    for (uint32_t i = 0; i < h->count; i++)
        if (i != h->mine)
            h->places[h->members[i].rank] = NOWHERE;
    if (!lay_out(h, h->mine, 1, &bytes))
        return tb_error(TB_ERR_MEMORY, "%llu bytes are more than a window can have",
                        (unsigned long long)h->members[h->mine].size);
    int error = check_room(bytes, 1);
    if (error == TB_OK)
        error = map(h, -1, bytes);
    if (error == TB_OK)
        stand(h, h->mine, 1);
    return error;
}

int tb_window_host_enter(struct tb_window_host *host, const struct tb_window_offer *offers)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < host->count; i++) {
        struct member *m = &host->members[i];
        const struct tb_window_offer *offer = &offers[m->rank];
        m->process = offer->process;
        m->token = offer->token;
        m->token_address = offer->token_address;
        m->base = offer->base;
        m->size = offer->size;
    }
    for (uint32_t i = 0; i < host->count; i++) {
        const struct tb_window_offer *offer = &offers[host->members[i].rank];
        if (offer->alignment > host->config.alignment)
            host->config.alignment = offer->alignment;
        host->config.contiguous &= !offer->apart;
    }
    if (host->count == 1)
        return map_alone(host);
    bool fits = lay_out(host, 0, host->count, &bytes);
    if (!fits)
        return tb_error(TB_ERR_MEMORY, "the memory of %u ranks is more than a window can have", host->count);
    int error = check_room(bytes, host->count); /* before a file is looked for that may be gone for the same reason */
    if (error < 0)
        return error;
    int descriptor = host->mine == 0 ? host->descriptor : open_file(&offers[host->members[0].rank]);
    if (descriptor < 0 && host->config.whole)
        return tb_error(TB_ERR_FORBIDDEN,
                        "memory of rank %u cannot be shared: this process cannot open the files of process %u (another "
                        "PID namespace, or no permission)",
                        host->members[0].rank, host->members[0].process);
    if (descriptor < 0)
        return map_alone(host);
    error = map(host, descriptor, bytes);
    if (descriptor != host->descriptor)
        close(descriptor);
    if (error == TB_OK)
        stand(host, 0, host->count);
    return error;
}

void tb_window_host_settle(struct tb_window_host *host)
{
    if (host->descriptor >= 0)
        close(host->descriptor);
    host->descriptor = -1;
    for (uint32_t i = 0; i < host->count; i++) {
        const struct member *m = &host->members[i];
        if (host->places[m->rank] != NOWHERE && atomic_load_explicit(&m->line->entered, memory_order_acquire) == 0)
            host->places[m->rank] = NOWHERE;
    }
}

void tb_window_host_close(struct tb_window_host *host)
{
    if (host == NULL)
        return;
    if (host->descriptor >= 0)
        close(host->descriptor);
    if (host->mapping != NULL)
        munmap(host->mapping, host->mapping_bytes);
    free(host->places);
    free(host);
}

/* ---- what leads to the memory of others -------------------------------------------------------------------------- */

static struct member *member_of(const struct tb_window_host *h, uint32_t rank)
{
    uint32_t place = h->places[rank];
    return place != NOWHERE ? (struct member *)&h->members[place] : NULL;
}

const struct tb_window_host_config *tb_window_host_settled(const struct tb_window_host *host)
{
    return &host->config;
}

void *tb_window_host_memory(const struct tb_window_host *host, uint32_t rank)
{
    const struct member *m = member_of(host, rank);
    bool none = m == NULL || (m->size == 0 && host->config.allocates && !host->config.contiguous);
    return none ? NULL : m->memory;
}

static bool is_inside(const struct member *m, uint64_t at, uint64_t length)
{
    return at <= m->size && length <= m->size - at;
}

static void *near_map(void *context, uint32_t rank, uint64_t at, uint64_t length)
{
    const struct member *m = member_of(context, rank);
    return m != NULL && m->memory != NULL && is_inside(m, at, length) ? m->memory + at : NULL;
}

/* The first time it is looked whether the process is the right one. */
static bool may_copy(const struct tb_window_host *h, struct member *m)
{
    if (m->copies == COPIES_UNKNOWN) {
        bool may = tb_cross_memory_is_allowed() &&
                   tb_cross_memory_verify((pid_t)m->process, m->token_address, m->token) == TB_OK;
        m->copies = may ? COPIES_YES : COPIES_NO;
    }
    return m->copies == COPIES_YES;
}

static bool piece_is_inside(const struct tb_window_host *h, const struct member *m, const struct tb_spans *piece)
{
    uint64_t at = (uintptr_t)piece->base;
    return h->config.dynamic ? tb_host_regions_have(m->regions, at, piece->length) : is_inside(m, at, piece->length);
}

/* The way that leads there: TB_OK, TB_AGAIN or TB_ERR_ARGUMENT. Nothing is copied before all of it is known to be
 * there.
 */
static int find_way(const struct tb_window_host *h, uint32_t rank, struct tb_spans there, struct member **member)
{
    struct member *m = member_of(h, rank);
    *member = m;
    if (m == NULL || (m->memory == NULL && !may_copy(h, m)))
        return TB_AGAIN;
    while (there.left > 0) {
        bool inside = piece_is_inside(h, m, &there); /* asked once: the target may be attaching other memory */
        if (!inside && h->config.dynamic)
            return TB_AGAIN; /* the target knows more */
        if (!inside)
            return tb_error(TB_ERR_ARGUMENT,
                            "%llu bytes from byte %llu on are not in the window of rank %u, which has %llu",
                            (unsigned long long)there.length, (unsigned long long)(uintptr_t)there.base, rank,
                            (unsigned long long)m->size);
        tb_spans_skip(&there, there.length);
    }
    return TB_OK;
}

/* Memory that is mapped here is found by `map`, so this is for what is not; but it works for both. */
static int copy(void *context, uint32_t rank, enum tb_cross_memory_direction direction, struct tb_spans *there,
                struct tb_spans *here, uint64_t length)
{
    struct member *m;
    TB_ASSERT(there->left == length);
    int error = find_way(context, rank, *there, &m);
    if (error != TB_OK)
        return error;
    struct tb_spans before = *here;
    if (m->memory == NULL)
        error = tb_cross_memory_move(direction, (pid_t)m->process, m->base, there, here, length);
    while (m->memory != NULL && there->left > 0) {
        char *at = m->memory + (uintptr_t)there->base;
        if (direction == TB_CROSS_MEMORY_READ)
            tb_spans_scatter(here, at, there->length);
        else
            tb_spans_gather(here, at, there->length);
        tb_spans_skip(there, there->length);
    }
    if (error != TB_OK)
        *here = before;
    if (error == TB_ERR_FORBIDDEN) { /* perhaps only one of the two; then the other is not tried again, either */
        m->copies = COPIES_NO;
        error = TB_AGAIN;
    }
    return error;
}

static int near_write(void *context, uint32_t rank, struct tb_spans *there, struct tb_spans *from, uint64_t length)
{
    return copy(context, rank, TB_CROSS_MEMORY_WRITE, there, from, length);
}

static int near_read(void *context, uint32_t rank, struct tb_spans *there, struct tb_spans *into, uint64_t length)
{
    return copy(context, rank, TB_CROSS_MEMORY_READ, there, into, length);
}

static int near_way(void *context, uint32_t rank, const struct tb_spans *there)
{
    struct member *m;
    return find_way(context, rank, *there, &m);
}

static bool near_reaches(void *context, uint32_t rank)
{
    struct member *m = member_of(context, rank);
    return m != NULL && (m->memory != NULL || may_copy(context, m));
}

static bool near_attach(void *context, uint64_t from, uint64_t to)
{
    const struct tb_window_host *h = context;
    return tb_host_regions_add(h->members[h->mine].regions, from, to) || h->count == 1;
}

static void near_detach(void *context, uint64_t from)
{
    const struct tb_window_host *h = context;
    tb_host_regions_remove(h->members[h->mine].regions, from);
}

/* ---- combining --------------------------------------------------------------------------------------------------- */

static bool member_is_dead(void *context, uint32_t who)
{
    const struct tb_window_host *h = context;
    return who < h->count && tb_host_mutex_is_dead(h->members[who].process);
}

static void near_enter(void *context, uint32_t rank)
{
    const struct tb_window_host *h = context;
    struct member *m = member_of(h, rank);
    TB_ASSERT(m != NULL);
    tb_host_mutex_enter(&m->line->combining, h->mine, member_is_dead, context);
}

static void near_leave(void *context, uint32_t rank)
{
    struct member *m = member_of(context, rank);
    TB_ASSERT(m != NULL);
    tb_host_mutex_leave(&m->line->combining);
}

/* ---- locks of passive target ------------------------------------------------------------------------------------- */

/* This process has begun to use the lock of a member once more, or once less; nobody else writes that, and the engine
 * is locked. Others look at it when it has died. */
static void use(const struct tb_window_host *h, const struct member *m, bool more)
{
    uint32_t users = atomic_load_explicit(&m->users[h->mine], memory_order_relaxed);
    atomic_store_explicit(&m->users[h->mine], users + (more ? 1 : UINT32_MAX), memory_order_release);
}

static int near_queue(void *context, uint32_t rank, bool again, uint32_t *ticket)
{
    const struct tb_window_host *h = context;
    const struct member *m = member_of(h, rank);
    if (m == NULL)
        return TB_AGAIN;
    use(h, m, true);
    if (!again || !tb_host_lock_return(&m->lock, *ticket, h->config.rank))
        *ticket = tb_host_lock_come(&m->lock);
    return TB_OK;
}

static bool near_turn(void *context, uint32_t rank, uint32_t ticket, bool exclusive, bool joins, uint32_t *wake)
{
    const struct tb_window_host *h = context;
    uint32_t who = h->config.rank | (joins ? TB_HOST_LOCK_JOINS : 0);
    return tb_host_lock_turn(&member_of(h, rank)->lock, ticket, exclusive, who, wake);
}

static uint32_t near_joiner(void *context, uint32_t rank, uint32_t *from)
{
    return tb_host_lock_joiner(&member_of(context, rank)->lock, from);
}

static bool near_join(void *context, uint32_t rank)
{
    const struct member *m = member_of(context, rank);
    use(context, m, true);
    bool joined = tb_host_lock_join(&m->lock);
    if (!joined)
        use(context, m, false);
    return joined;
}

static uint32_t near_pass(void *context, uint32_t rank, uint32_t ticket)
{
    const struct member *m = member_of(context, rank);
    uint32_t next = tb_host_lock_pass(&m->lock, ticket);
    use(context, m, false);
    return next;
}

static uint32_t near_unlock(void *context, uint32_t rank, bool exclusive)
{
    const struct member *m = member_of(context, rank);
    uint32_t next = tb_host_lock_leave(&m->lock, exclusive);
    use(context, m, false);
    return next;
}

static void near_bury(void *context, uint32_t rank)
{
    struct tb_window_host *h = context;
    struct member *m = member_of(h, rank);
    if (m == NULL || m->gone)
        return;
    m->gone = true;
    h->gone++;
}

static bool near_uses(void *context, uint32_t rank, uint32_t by)
{
    const struct tb_window_host *h = context;
    const struct member *m = member_of(h, rank);
    uint32_t place = h->places[by];
    return m != NULL && place != NOWHERE && atomic_load(&m->users[place]) > 0;
}

static uint32_t near_blocker(void *context, uint32_t rank)
{
    const struct tb_window_host *h = context;
    const struct member *m = h->gone > 0 ? member_of(h, rank) : NULL;
    for (uint32_t i = 0; m != NULL && i < h->count; i++)
        if (h->members[i].gone && atomic_load(&m->users[i]) > 0)
            return h->members[i].rank;
    return TB_ANY_RANK;
}

const struct tb_window_near tb_window_host_near = {.map = near_map,
                                                   .write = near_write,
                                                   .read = near_read,
                                                   .way = near_way,
                                                   .reaches = near_reaches,
                                                   .attach = near_attach,
                                                   .detach = near_detach,
                                                   .enter = near_enter,
                                                   .leave = near_leave,
                                                   .queue = near_queue,
                                                   .turn = near_turn,
                                                   .joiner = near_joiner,
                                                   .join = near_join,
                                                   .pass = near_pass,
                                                   .bury = near_bury,
                                                   .uses = near_uses,
                                                   .blocker = near_blocker,
                                                   .unlock = near_unlock};

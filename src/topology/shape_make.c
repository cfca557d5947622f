/* Making a shape: runs of ranks become ranges and hosts, hosts lead to places, and all of it becomes one block. */
#include <stdlib.h>
#include <string.h>

#include "topology/shape_alike.h"

#define DIRECT_HOSTS 4u /* times as many hosts as ranks of a group are worth an array, and no more */

/* Elements that grow in number. */
struct rows {
    void *data;
    uint32_t count, room;
};

struct shape_maker {
    const struct tb_shape_source *source;
    struct rows ranges;  /* struct tb_shape_range; the last one is being continued */
    struct rows hosts;   /* struct tb_shape_host; `place` is that of the job, and then that of the shape */
    struct rows numbers; /* of each host, as the source calls it */
    struct rows casts;   /* bool of each host: multicast reaches all of its place */
    struct rows places;  /* struct tb_shape_place in the order of meeting, without what is counted */
    struct rows family;  /* struct family of each of them */
    uint32_t *direct;    /* by what the source calls a host: its number + 1, 0: not met. NULL: they are found by hash */
    struct tb_hash_table known; /* hosts, by number */
    struct tb_hash_table known_places;
    uint32_t blocks;              /* of the last range */
    bool round, short_block;      /* its cycle is known; its last block is shorter than the others */
    uint32_t run_host, run_count; /* ranks on one host that have not become part of a range */
    uint32_t *next, next_count;
    uint32_t most;
    struct tb_seat *seats; /* of each rank, as the source has them; NULL: nobody is bound */
};

/* Children in the order of meeting. */
struct family {
    uint32_t child, last, sibling;
};

/* One more element, zeroed; NULL: no memory. */
static void *rows_add(struct rows *rows, size_t size)
{
    if (rows->count == rows->room) {
        uint32_t room = rows->room == 0 ? 16 : 2 * rows->room;
        void *grown = realloc(rows->data, room * size);
        if (grown == NULL)
            return NULL;
        rows->data = grown;
        rows->room = room;
    }
    return memset((char *)rows->data + rows->count++ * size, 0, size);
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

/* Whether ranks that come next continue the last range, with a whole block or the last one. */
static bool range_continues(struct shape_maker *m, struct tb_shape_range *range, uint32_t host, uint32_t count)
{
    if (m->short_block || count > range->block)
        return false;
    if (!m->round && m->blocks > 1 && host == range->host) {
        m->round = true;
    } else if (host != range->host + (m->round ? m->blocks % range->cycle : m->blocks)) {
        return false;
    }
    range->cycle += !m->round;
    m->blocks++;
    m->short_block = count < range->block;
    return true;
}

/* What was gathered of ranks on one host goes into a range. */
static bool run_end(struct shape_maker *m, uint32_t behind)
{
    uint32_t count = m->run_count;
    struct tb_shape_range *ranges = m->ranges.data;
    if (m->ranges.count > 0 && range_continues(m, &ranges[m->ranges.count - 1], m->run_host, count))
        return true;
    struct tb_shape_range *range = rows_add(&m->ranges, sizeof *range);
    if (range == NULL)
        return false;
    *range = (struct tb_shape_range){
        .first = behind - count, .host = m->run_host, .block = count, .cycle = 1, .next = TB_PLACE_NONE};
    m->blocks = 1;
    m->round = m->short_block = false;
    return true;
}

/* In which later ranges the hosts of each range are again. */
static bool ranges_chain(struct shape_maker *m)
{
    struct tb_shape_range *ranges = m->ranges.data;
    uint64_t all = 0;
    for (uint32_t i = 0; i < m->ranges.count; i++)
        all += ranges[i].cycle;
    uint32_t *later = malloc(m->hosts.count * sizeof *later);
    // NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): a range has a host at least
    m->next = malloc(all * sizeof *m->next);
    if (later == NULL || m->next == NULL) {
        free(later);
        return false;
    }
    memset(later, 0xff, m->hosts.count * sizeof *later);
    for (uint32_t i = m->ranges.count; i-- > 0;) {
        struct tb_shape_range *r = &ranges[i];
        bool any = false;
        for (uint32_t k = 0; k < r->cycle; k++) {
            m->next[m->next_count + k] = later[r->host + k];
            any = any || later[r->host + k] != TB_PLACE_NONE;
            later[r->host + k] = i;
        }
        r->next = any ? m->next_count : TB_PLACE_NONE;
        m->next_count += any ? r->cycle : 0;
    }
    free(later);
    return true;
}

/* ---- hosts ------------------------------------------------------------------------------------------------------- */

static uint32_t host_hash(uint32_t number)
{
    return number * 2654435761u;
}

/* TB_HASH_NONE: it has not been met. */
static uint32_t host_find(const struct shape_maker *m, uint32_t host)
{
    if (m->direct != NULL)
        return m->direct[host] - 1;
    uint32_t hash = host_hash(host), at = hash, found;
    while ((found = tb_hash_table_next(&m->known, hash, &at)) != TB_HASH_NONE)
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): what is in the table is in the array
        if (((const uint32_t *)m->numbers.data)[found] == host)
            break;
    return found;
}

/* The host of a run, which is added if it is new; TB_HASH_NONE: no memory. */
static uint32_t host_number(struct shape_maker *m, const struct tb_shape_run *run, uint32_t rank)
{
    uint32_t number = host_find(m, run->host);
    if (number != TB_HASH_NONE)
        return number;
    number = m->hosts.count;
    struct tb_shape_host *host = rows_add(&m->hosts, sizeof *host);
    uint32_t *name = m->direct == NULL ? rows_add(&m->numbers, sizeof *name) : &m->direct[run->host];
    bool *casts = rows_add(&m->casts, sizeof *casts);
    if (host == NULL || name == NULL || casts == NULL ||
        (m->direct == NULL && tb_hash_table_add(&m->known, host_hash(run->host), number) != TB_OK))
        return TB_HASH_NONE;
    *host = (struct tb_shape_host){.place = run->place, .kind = run->kind, .who = run->who, .first_rank = rank};
    *name = m->direct == NULL ? run->host : number + 1;
    *casts = run->multicast;
    return number;
}

/* The seats of a run; false: no memory. */
static bool seats_take(struct shape_maker *m, uint32_t rank, uint32_t count, const struct tb_seat *seats)
{
    if (seats == NULL && m->seats == NULL)
        return true;
    if (m->seats == NULL) {
        m->seats = malloc(m->source->size * sizeof *m->seats);
        for (uint32_t i = 0; i < rank && m->seats != NULL; i++)
            m->seats[i] = tb_seat_none;
    }
    for (uint32_t i = 0; i < count && m->seats != NULL; i++)
        m->seats[rank + i] = seats != NULL ? seats[i] : tb_seat_none;
    return m->seats != NULL;
}

static bool ranks_take(struct shape_maker *m)
{
    const struct tb_shape_source *source = m->source;
    if (source->host_limit / DIRECT_HOSTS <= source->size)
        m->direct = calloc(source->host_limit, sizeof *m->direct); /* NULL: the others are found as well */
    uint32_t last = TB_PLACE_NONE, number = TB_PLACE_NONE;
    for (uint32_t rank = 0; rank < source->size;) {
        struct tb_shape_run run = {.who = TB_COST_NONE};
        source->run(source->context, rank, &run);
        TB_ASSERT(run.host < source->host_limit && run.count > 0);
        uint32_t count = run.count < source->size - rank ? run.count : source->size - rank;
        if (run.host != last)
            number = host_number(m, &run, rank);
        if (number == TB_HASH_NONE || !seats_take(m, rank, count, run.seats))
            return false;
        last = run.host;
        struct tb_shape_host *host = (struct tb_shape_host *)m->hosts.data + number;
        host->rank_count += count;
        m->most = host->rank_count > m->most ? host->rank_count : m->most;
        if (m->run_count > 0 && m->run_host != number) {
            if (!run_end(m, rank))
                return false;
            m->run_count = 0;
        }
        m->run_host = number;
        m->run_count += count;
        rank += count;
    }
    return run_end(m, source->size);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static uint32_t place_find(const struct shape_maker *m, uint32_t place)
{
    uint32_t hash = host_hash(place), at = hash, found;
    while ((found = tb_hash_table_next(&m->known_places, hash, &at)) != TB_HASH_NONE)
        if (((const struct tb_shape_place *)m->places.data)[found].place == place)
            break;
    return found;
}

static bool place_add(struct shape_maker *m, uint32_t place, uint32_t parent)
{
    uint32_t number = m->places.count;
    struct tb_shape_place *row = rows_add(&m->places, sizeof *row);
    struct family *family = rows_add(&m->family, sizeof *family);
    if (row == NULL || family == NULL || tb_hash_table_add(&m->known_places, host_hash(place), number) != TB_OK)
        return false;
    *row = (struct tb_shape_place){.place = place, .parent = parent, .cluster = TB_PLACE_NONE};
    if (m->source->table != NULL) {
        row->depth = m->source->table->places[place].depth;
        row->level = m->source->table->places[place].level;
    }
    *family = (struct family){TB_PLACE_NONE, TB_PLACE_NONE, TB_PLACE_NONE};
    if (parent == TB_PLACE_NONE)
        return true;
    struct tb_shape_place *around = (struct tb_shape_place *)m->places.data + parent;
    struct family *families = m->family.data;
    if (around->child_count++ == 0)
        families[parent].child = number;
    else
        families[families[parent].last].sibling = number;
    families[parent].last = number;
    return true;
}

/* All places around hosts, in the order in which ranks meet them; hosts get these numbers. */
static bool places_take(struct shape_maker *m)
{
    const struct tb_cost_table *table = m->source->table;
    struct tb_shape_host *hosts = m->hosts.data;
    if (!place_add(m, 0, TB_PLACE_NONE))
        return false;
    for (uint32_t i = 0; i < m->hosts.count; i++) {
        uint32_t path[TB_PLACES_DEPTH_LIMIT], steps = 0, at = hosts[i].place, found;
        TB_ASSERT(table != NULL ? at < table->head->place_count : at == 0);
        while ((found = place_find(m, at)) == TB_HASH_NONE) {
            path[steps++] = at;
            at = table->places[at].parent;
        }
        while (steps > 0) {
            if (!place_add(m, path[--steps], found))
                return false;
            found = m->places.count - 1;
        }
        hosts[i].place = found;
        ((struct tb_shape_place *)m->places.data)[found].multicast = ((const bool *)m->casts.data)[i];
    }
    return true;
}

/* Numbers places in preorder. */
static bool places_order(struct shape_maker *m, struct tb_shape_place *rows)
{
    const struct tb_shape_place *met = m->places.data;
    const struct family *families = m->family.data;
    uint32_t *numbers = malloc(m->places.count * sizeof *numbers), count = 0, at = 0;
    if (numbers == NULL)
        return false;
    while (at != TB_PLACE_NONE) {
        numbers[at] = count;
        rows[count] = met[at];
        if (at > 0)
            rows[count].parent = numbers[met[at].parent];
        rows[count].end = count + 1;
        count++;
        if (families[at].child != TB_PLACE_NONE) {
            at = families[at].child;
            continue;
        }
        while (at != TB_PLACE_NONE && families[at].sibling == TB_PLACE_NONE) {
            at = met[at].parent;
            if (at != TB_PLACE_NONE)
                rows[numbers[at]].end = count;
        }
        at = at != TB_PLACE_NONE ? families[at].sibling : at;
    }
    struct tb_shape_host *hosts = m->hosts.data;
    for (uint32_t i = 0; i < m->hosts.count; i++)
        hosts[i].place = numbers[hosts[i].place];
    free(numbers);
    return true;
}

/* What is in each place: those of a place itself stand before those of its children. */
static void places_count(struct tb_group_shape *s, struct tb_shape_place *places, uint32_t *order)
{
    uint32_t before = 0;
    for (uint32_t i = s->host_count; i-- > 0;) {
        struct tb_shape_place *place = &places[s->hosts[i].place];
        place->hosts++;
        place->rank_count += s->hosts[i].rank_count;
        place->first_rank = s->hosts[i].first_rank; /* hosts are in the order of these */
    }
    for (uint32_t i = 0; i < s->place_count; i++) {
        places[i].host = before;
        before += places[i].hosts;
        s->depth = places[i].depth > s->depth ? places[i].depth : s->depth;
    }
    for (uint32_t i = 0; i < s->host_count; i++) {
        struct tb_shape_place *place = &places[s->hosts[i].place];
        order[place->host++] = i;
        if (place->cluster == TB_PLACE_NONE)
            place->cluster = s->cluster_count++;
    }
    for (uint32_t i = 0; i < s->place_count; i++)
        places[i].host -= places[i].hosts;
    for (uint32_t i = s->place_count; i-- > 1;) {
        struct tb_shape_place *parent = &places[places[i].parent];
        if (parent->rank_count == 0 || places[i].first_rank < parent->first_rank)
            parent->first_rank = places[i].first_rank;
        parent->hosts += places[i].hosts;
        parent->rank_count += places[i].rank_count;
    }
}

/* ---- the block --------------------------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* The next part of the block. */
static void *part_take(char **at, size_t bytes)
{
    char *part = *at;
    *at += aligned(bytes);
    return part;
}

static void ranks_spread(const struct shape_maker *m, uint32_t size, uint32_t *dense, uint32_t *next)
{
    const struct tb_shape_range *ranges = m->ranges.data;
    for (uint32_t i = 0; i < m->ranges.count; i++) {
        const struct tb_shape_range *r = &ranges[i];
        uint32_t end = i + 1 < m->ranges.count ? ranges[i + 1].first : size;
        for (uint32_t rank = r->first; rank < end; rank++)
            dense[rank] = r->host + (rank - r->first) / r->block % r->cycle;
    }
    const struct tb_shape_host *hosts = m->hosts.data;
    uint32_t *last = m->next; /* of each host so far; it has room for all hosts, and ranges are not needed any more */
    for (uint32_t rank = 0; rank < size; rank++) {
        next[rank] = TB_PLACE_NONE;
        if (rank != hosts[dense[rank]].first_rank)
            next[last[dense[rank]]] = rank;
        last[dense[rank]] = rank;
    }
}

/* What the numbers of the source stand for on a host, in the order of meeting. */
struct seat_names {
    uint32_t host[TB_SEAT_LEVELS][TB_SEAT_NONE]; /* + 1, on which a number was met last, */
    uint16_t name[TB_SEAT_LEVELS][TB_SEAT_NONE]; /* and its new one */
};

/* Seats get numbers that do not depend on which packages and cores they are, so that groups that look alike have equal
 * shapes. */
static bool seats_name(const struct shape_maker *m, const struct tb_group_shape *s, struct tb_seat *seats)
{
    struct seat_names *names = calloc(1, sizeof *names); /* of which little is touched */
    for (uint32_t host = 0; host < s->host_count && names != NULL; host++) {
        uint16_t met[TB_SEAT_LEVELS] = {0};
        for (uint32_t rank = s->hosts[host].first_rank; rank != TB_PLACE_NONE; rank = tb_group_shape_next(s, rank))
            for (int i = 0; i < TB_SEAT_LEVELS; i++) {
                uint16_t number = m->seats[rank].at[i];
                seats[rank].at[i] = TB_SEAT_NONE;
                if (number == TB_SEAT_NONE)
                    continue;
                if (names->host[i][number] != host + 1) {
                    names->host[i][number] = host + 1;
                    names->name[i][number] = met[i]++;
                }
                seats[rank].at[i] = names->name[i][number];
            }
    }
    bool done = names != NULL;
    free(names);
    return done;
}

/* Two lanes, so that the sixteen bytes can stand for the shape. */
static void key_make(struct tb_group_shape *s)
{
    const uint32_t counts[] = {s->size,        s->split,       s->host_count,
                               s->place_count, s->range_count, s->table != NULL ? s->table->head->version : 0};
    uint64_t a = TB_HASH_BASIS, b = ~TB_HASH_BASIS, word;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        a = (a ^ (a >> 31) ^ counts[i]) * UINT64_C(0x9e3779b97f4a7c15);
        b = (b ^ (b >> 29) ^ counts[i]) * UINT64_C(0xd6e8feb86659fd93);
    }
    for (size_t at = 0; at < s->bytes; at += sizeof word) {
        memcpy(&word, (const char *)(s + 1) + at, sizeof word);
        a = (a ^ (a >> 31) ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        b = (b ^ (b >> 29) ^ word) * UINT64_C(0xd6e8feb86659fd93);
    }
    s->key[0] = a ^ (a >> 32);
    s->key[1] = b ^ (b >> 32);
}

static struct tb_group_shape *shape_seal(struct shape_maker *m)
{
    uint32_t size = m->source->size, host_count = m->hosts.count, place_count = m->places.count;
    size_t range_bytes = aligned(m->ranges.count * sizeof(struct tb_shape_range));
    size_t next_bytes = aligned(m->next_count * sizeof(uint32_t)), dense_bytes = aligned(size * sizeof(uint32_t));
    bool dense = range_bytes + next_bytes > 2 * dense_bytes;
    size_t bytes = (dense ? 2 * dense_bytes : range_bytes + next_bytes) +
                   aligned(host_count * sizeof(struct tb_shape_host)) +
                   aligned(place_count * sizeof(struct tb_shape_place)) + aligned(host_count * sizeof(uint32_t)) +
                   (m->seats != NULL ? size * sizeof(struct tb_seat) : 0);
    struct tb_group_shape *s = calloc(1, sizeof *s + bytes);
    if (s == NULL)
        return NULL;
    char *at = (char *)(s + 1);
    *s = (struct tb_group_shape){.users = 1,
                                 .size = size,
                                 .split = m->source->split,
                                 .host_count = host_count,
                                 .place_count = place_count,
                                 .most = m->most,
                                 .range_count = dense ? 0 : m->ranges.count,
                                 .bytes = bytes,
                                 .table = m->source->table};
    uint32_t *next;
    if (dense) {
        uint32_t *spread = part_take(&at, dense_bytes);
        next = part_take(&at, dense_bytes);
        ranks_spread(m, size, spread, next);
        s->dense = spread;
    } else {
        s->ranges = memcpy(part_take(&at, range_bytes), m->ranges.data, m->ranges.count * sizeof *s->ranges);
        next = memcpy(part_take(&at, next_bytes), m->next, m->next_count * sizeof *next);
    }
    s->next = next;
    struct tb_shape_host *hosts = part_take(&at, host_count * sizeof *hosts);
    struct tb_shape_place *places = part_take(&at, place_count * sizeof *places);
    uint32_t *order = part_take(&at, host_count * sizeof *order);
    s->hosts = hosts;
    s->places = places;
    s->order = order;
    bool whole = places_order(m, places);
    if (whole)
        memcpy(hosts, m->hosts.data, host_count * sizeof *hosts);
    if (whole && m->seats != NULL) {
        struct tb_seat *seats = part_take(&at, size * sizeof *seats);
        whole = seats_name(m, s, seats);
        s->seats = seats;
    }
    if (whole) {
        places_count(s, places, order);
        whole = tb_shape_alike_find(s, hosts, places) == TB_OK;
    }
    if (!whole) {
        free(s);
        return NULL;
    }
    key_make(s);
    return s;
}

int tb_group_shape_make(const struct tb_group_shape **shape, const struct tb_shape_source *source)
{
    struct shape_maker maker = {.source = source};
    struct tb_group_shape *made = NULL;
    TB_ASSERT(source->size > 0 && source->split < source->size);
    if (ranks_take(&maker) && ranges_chain(&maker) && places_take(&maker))
        made = shape_seal(&maker);
    free(maker.ranges.data);
    free(maker.hosts.data);
    free(maker.numbers.data);
    free(maker.casts.data);
    free(maker.places.data);
    free(maker.family.data);
    free(maker.next);
    free(maker.direct);
    free(maker.seats);
    tb_hash_table_close(&maker.known);
    tb_hash_table_close(&maker.known_places);
    *shape = made;
    return made != NULL ? TB_OK
                        : tb_error(TB_ERR_MEMORY, "no memory for the shape of a group of %u ranks", source->size);
}

struct even {
    uint32_t size, hosts;
    bool multicast;
};

static void even_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct even *e = context;
    run->host = (uint32_t)((uint64_t)rank * e->hosts / e->size);
    run->multicast = e->multicast;
    run->count = 1;
}

int tb_group_shape_even(const struct tb_group_shape **shape, uint32_t size, uint32_t hosts, bool multicast,
                        const struct tb_cost_table *table)
{
    const struct even even = {size, hosts < size ? hosts : size, multicast};
    return tb_group_shape_make(
        shape, &(struct tb_shape_source){
                   .size = size, .host_limit = even.hosts, .table = table, .run = even_run, .context = &even});
}

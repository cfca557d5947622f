/* Which rank goes where. */
#include "launch/host_names.h"
#include "launch/launch.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A place for ranks while they are dealt out. */
struct seat {
    int entry; /* in the list of all hosts; -1: this host */
    uint32_t slots;
    uint32_t used; /* of this round */
};

/* Adds hosts that only a section names, so that one list has them all. */
static int gather_hosts(struct tb_options *options)
{
    for (uint32_t i = 0; i < options->section_count; i++) {
        const struct tb_host_list *own = &options->sections[i].hosts;
        for (uint32_t k = 0; k < own->count; k++) {
            const struct tb_host_entry *entry = &own->entries[k];
            if (tb_host_list_find(&options->hosts, entry->name, entry->user, entry->port) >= 0)
                continue;
            char text[600];
            /* Brackets keep the colons of an IPv6 address apart from the one before the slots. */
            snprintf(text, sizeof text, "%s%s[%s]:%u", entry->user != NULL ? entry->user : "",
                     entry->user != NULL ? "@" : "", entry->name, entry->slots);
            int rc = tb_host_list_parse(&options->hosts, text, "-H");
            if (rc != TB_OK)
                return rc;
        }
    }
    return TB_OK;
}

static uint32_t count_cpus(void)
{
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? (uint32_t)CPU_COUNT(&cpus) : 1;
}

/* The seats that a section may use. */
static uint32_t list_seats(const struct tb_options *options, const struct tb_section *section, struct seat *seats)
{
    const struct tb_host_list *list = section->hosts.count > 0 ? &section->hosts : &options->hosts;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct tb_host_entry *entry = &list->entries[i];
        seats[i] = (struct seat){.entry = tb_host_list_find(&options->hosts, entry->name, entry->user, entry->port),
                                 .slots = entry->slots > 0 && options->per_host > 0 ? options->per_host : entry->slots};
        if (options->avoids_this_host && tb_host_names_is_here(entry->name))
            seats[i].slots = 0;
    }
    if (list->count > 0)
        return list->count;
    uint32_t slots = options->oversubscribes ? TB_LAUNCH_SLOTS_LIMIT : count_cpus();
    seats[0] = (struct seat){.entry = -1, .slots = options->avoids_this_host ? 0 : slots};
    return 1;
}

/* Without -n: all slots of the hosts named, or all processors of this one; with several programs, one rank each. */
static int count_ranks(const struct tb_options *options, const struct tb_section *section, const struct seat *seats,
                       uint32_t seat_count, uint32_t *count)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < seat_count; i++)
        total += seats[i].slots;
    if (total == 0)
        return tb_error(TB_ERR_ARGUMENT, options->avoids_this_host
                                             ? "--nolocal: no other host has a slot for a rank; -H or -f names some"
                                             : "none of the hosts has a slot for a rank");
    if (options->rank_file.count > 0)
        total = options->rank_file.count;
    else if (options->map == TB_MAP_LINES && options->hosts.line_count > 0)
        total = options->hosts.line_count;
    else if (seats[0].entry < 0 && options->per_host > 0)
        total = options->per_host;
    else if (seats[0].entry < 0)
        total = count_cpus();
    if (section->hosts.count == 0 && options->section_count > 1)
        total = 1;
    *count = section->count > 0 ? section->count : total > TB_JOB_RANKS_LIMIT ? TB_JOB_RANKS_LIMIT : (uint32_t)total;
    return TB_OK;
}

/* What is shared between sections that use the same hosts: how full each host is. */
struct dealer {
    struct tb_placement *placement;
    struct tb_options *options;
    uint32_t *used;   /* by entry + 1: ranks in this round */
    int32_t *in_book; /* by entry + 1: host of the address book, -1: none yet */
    uint32_t range_room;
};

static uint32_t append_host(struct tb_placement *placement, const struct tb_options *options, int entry)
{
    struct tb_address_book *book = &placement->book;
    uint32_t host = book->host_count++;
    placement->entries[host] = entry;
    struct tb_host *made = &book->hosts[host];
    *made = (struct tb_host){.first_rank = book->ranks};
    if (entry >= 0) {
        const struct tb_host_entry *from = &options->hosts.entries[entry];
        snprintf(made->name, sizeof made->name, "%s", from->name);
        snprintf(placement->wheres[host].cluster, sizeof placement->wheres[host].cluster, "%s", from->cluster);
        snprintf(placement->wheres[host].site, sizeof placement->wheres[host].site, "%s", from->site);
    } else if (gethostname(made->name, sizeof made->name - 1) < 0) {
        snprintf(made->name, sizeof made->name, "localhost");
    }
    return host;
}

void tb_placement_add(struct tb_placement *placement, const struct tb_options *options, uint32_t entry, uint32_t *host)
{
    TB_ASSERT(entry < options->hosts.count && placement->book.host_count <= options->hosts.count);
    *host = append_host(placement, options, (int)entry);
}

static int add_ranks(struct dealer *dealer, int entry, uint32_t count)
{
    struct tb_address_book *book = &dealer->placement->book;
    if (dealer->in_book[entry + 1] < 0 && book->host_count == TB_JOB_HOSTS_LIMIT)
        return tb_error(TB_ERR_LIMIT, "ranks on more than %u hosts; start fewer ranks, or more on each",
                        TB_JOB_HOSTS_LIMIT);
    if (dealer->in_book[entry + 1] < 0)
        dealer->in_book[entry + 1] = (int32_t)append_host(dealer->placement, dealer->options, entry);
    uint32_t host = (uint32_t)dealer->in_book[entry + 1];
    struct tb_host *to = &book->hosts[host];
    if (to->rank_count + count > TB_HOST_RANKS_LIMIT)
        return tb_error(TB_ERR_LIMIT, "host %s would get more than %u ranks; name more hosts or start fewer ranks",
                        to->name, TB_HOST_RANKS_LIMIT);
    uint32_t most = entry >= 0 ? dealer->options->hosts.entries[entry].most : 0;
    if (most > 0 && to->rank_count + count > most)
        return tb_error(TB_ERR_ARGUMENT, "host %s takes %u rank%s at most (max_slots), and more are to run there",
                        to->name, most, tb_plural(most));
    struct tb_rank_range *last = book->range_count > 0 ? &book->ranges[book->range_count - 1] : NULL;
    if (last != NULL && last->host == host) {
        last->count += count;
    } else {
        if (book->range_count == dealer->range_room) {
            uint32_t room = dealer->range_room > 0 ? dealer->range_room * 2 : 16;
            struct tb_rank_range *grown = realloc(book->ranges, room * sizeof *grown);
            if (grown == NULL)
                return tb_error(TB_ERR_MEMORY, "no memory for the places of the ranks");
            book->ranges = grown;
            dealer->range_room = room;
        }
        TB_ASSERT(book->ranges != NULL);
        book->ranges[book->range_count++] = (struct tb_rank_range){
            .first_rank = book->ranks, .count = count, .host = host, .first_local = to->rank_count};
    }
    to->rank_count += count;
    book->ranks += count;
    return TB_OK;
}

/* A cluster's name counts within its site. */
static bool is_same_cluster(const struct tb_host_entry *a, const struct tb_host_entry *b)
{
    return strcmp(a->cluster, b->cluster) == 0 && strcmp(a->site, b->site) == 0;
}

/* The next cluster behind that of seat `at` gets one rank, on its first host that has room. Returns the seat, or
 * seat_count: there is no room anywhere. */
static uint32_t choose_by_cluster(const struct dealer *dealer, const struct seat *seats, uint32_t seat_count,
                                  uint32_t at)
{
    const struct tb_host_entry *entries = dealer->options->hosts.entries;
    for (uint32_t step = 1; step <= seat_count; step++) {
        uint32_t i = (at + step) % seat_count, first = i;
        const struct tb_host_entry *entry = &entries[seats[i].entry];
        /* Only where a cluster begins, so that each has one turn a round. */
        for (uint32_t k = 0; k < i && first == i; k++)
            if (is_same_cluster(&entries[seats[k].entry], entry))
                first = k;
        for (uint32_t k = i; k < seat_count && first == i; k++)
            if (is_same_cluster(&entries[seats[k].entry], entry) && dealer->used[seats[k].entry + 1] < seats[k].slots)
                return k;
    }
    return seat_count;
}

/* More ranks than slots, though the user does not want that. */
static int refuse_more(const struct seat *seats, uint32_t seat_count, uint32_t ranks)
{
    uint64_t slots = 0;
    for (uint32_t i = 0; i < seat_count; i++)
        slots += seats[i].slots;
    return tb_error(TB_ERR_ARGUMENT, "%u rank%s more than the %llu slot%s of the hosts, and --nooversubscribe is given",
                    ranks, tb_plural(ranks), (unsigned long long)slots, tb_plural(slots));
}

/* One rank a cluster in turn. */
static int deal_by_cluster(struct dealer *dealer, const struct seat *seats, uint32_t seat_count, uint32_t count)
{
    uint32_t turn = seat_count - 1; /* where the cluster begins that had the last rank */
    const struct tb_host_entry *entries = dealer->options->hosts.entries;
    while (count > 0) {
        uint32_t chosen = choose_by_cluster(dealer, seats, seat_count, turn);
        if (chosen == seat_count && !dealer->options->oversubscribes)
            return refuse_more(seats, seat_count, count);
        if (chosen == seat_count) {
            for (uint32_t i = 0; i < seat_count; i++)
                dealer->used[seats[i].entry + 1] = 0;
            continue;
        }
        int rc = add_ranks(dealer, seats[chosen].entry, 1);
        if (rc != TB_OK)
            return rc;
        dealer->used[seats[chosen].entry + 1]++;
        count--;
        for (turn = 0; !is_same_cluster(&entries[seats[turn].entry], &entries[seats[chosen].entry]);)
            turn++;
    }
    return TB_OK;
}

/* The entry of the host that a rankfile names; beside a grid file they are counted as they were named, not as in the
 * grid. */
static int entry_by_file(const struct tb_options *options, uint32_t rank, int *entry)
{
    *entry = options->rank_file.places[rank].entry;
    if (options->chosen.count == 0)
        return TB_OK;
    const char *name = options->chosen.entries[*entry].name;
    *entry = tb_host_list_find(&options->hosts, name, NULL, 0);
    if (*entry >= 0 && options->hosts.entries[*entry].slots > 0)
        return TB_OK;
    return tb_error(TB_ERR_ARGUMENT, "the rankfile %s wants rank %u on host %s, which is not there",
                    options->rank_file_name != NULL ? options->rank_file_name : "", rank, name);
}

/* Rank by rank where a rankfile, or the lines of the host file, say. */
static int deal_by_list(struct dealer *dealer, uint32_t count)
{
    const struct tb_options *options = dealer->options;
    int rc = TB_OK;
    for (uint32_t i = 0; i < count && rc == TB_OK; i++) {
        uint32_t rank = dealer->placement->book.ranks;
        int entry = -1;
        if (options->rank_file.count == 0)
            entry = (int)options->hosts.lines[rank % options->hosts.line_count];
        else if (rank < options->rank_file.count)
            rc = entry_by_file(options, rank, &entry);
        else
            rc = tb_error(TB_ERR_ARGUMENT, "the rankfile %s does not say where rank %u goes",
                          options->rank_file_name != NULL ? options->rank_file_name : "", rank);
        if (rc == TB_OK)
            rc = add_ranks(dealer, entry, 1);
    }
    return rc;
}

/* Deals `count` ranks to the seats, round after round when there are more ranks than slots. */
static int deal(struct dealer *dealer, const struct seat *seats, uint32_t seat_count, uint32_t count)
{
    const struct tb_options *options = dealer->options;
    if (options->rank_file.count > 0 || (options->map == TB_MAP_LINES && options->hosts.line_count > 0))
        return deal_by_list(dealer, count);
    if (options->map == TB_MAP_CLUSTER && seats[0].entry >= 0)
        return deal_by_cluster(dealer, seats, seat_count, count);
    bool one_by_one = options->map == TB_MAP_NODE;
    while (count > 0) {
        bool moved = false;
        for (uint32_t i = 0; i < seat_count && count > 0; i++) {
            uint32_t *used = &dealer->used[seats[i].entry + 1];
            uint32_t left = *used < seats[i].slots ? seats[i].slots - *used : 0;
            uint32_t now = one_by_one && left > 1 ? 1 : left;
            now = now < count ? now : count;
            if (now == 0)
                continue;
            int rc = add_ranks(dealer, seats[i].entry, now);
            if (rc != TB_OK)
                return rc;
            *used += now;
            count -= now;
            moved = true;
        }
        if (!moved && !options->oversubscribes)
            return refuse_more(seats, seat_count, count);
        for (uint32_t i = 0; i < seat_count && !moved; i++)
            dealer->used[seats[i].entry + 1] = 0;
    }
    return TB_OK;
}

static int add_app(struct tb_placement *placement, const struct tb_section *section, uint32_t first_rank,
                   uint32_t ranks)
{
    struct tb_app *app = &placement->apps[placement->app_count++];
    *app = (struct tb_app){.first_rank = first_rank,
                           .ranks = ranks,
                           .argument_count = section->argument_count,
                           .variable_count = section->variable_count,
                           .bare = section->bare ? 1 : 0,
                           .directory = strdup(section->directory != NULL ? section->directory : "")};
    app->arguments = calloc((size_t)section->argument_count + 1, sizeof(char *));
    app->variables = calloc((size_t)section->variable_count + 1, sizeof(char *));
    if (app->directory == NULL || app->arguments == NULL || app->variables == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the command line");
    bool made = true;
    for (uint32_t i = 0; i < section->argument_count && made; i++)
        made = (app->arguments[i] = strdup(section->arguments[i])) != NULL;
    for (uint32_t i = 0; i < section->variable_count && made; i++)
        made = (app->variables[i] = strdup(section->variables[i])) != NULL;
    return made ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the command line");
}

static int place_section(struct dealer *dealer, const struct tb_section *section, struct seat *seats)
{
    struct tb_address_book *book = &dealer->placement->book;
    uint32_t seat_count = list_seats(dealer->options, section, seats);
    uint32_t count = 0, first = book->ranks;
    int rc = count_ranks(dealer->options, section, seats, seat_count, &count);
    if (rc != TB_OK)
        return rc;
    /* What a section asks for itself does not depend on what the others left. */
    for (uint32_t i = 0; i < seat_count && section->hosts.count > 0; i++)
        dealer->used[seats[i].entry + 1] = 0;
    if (count > TB_JOB_RANKS_LIMIT - first)
        return tb_error(TB_ERR_LIMIT, "more than %u ranks", TB_JOB_RANKS_LIMIT);
    rc = deal(dealer, seats, seat_count, count);
    return rc == TB_OK ? add_app(dealer->placement, section, first, count) : rc;
}

bool tb_placement_is_spare(const struct tb_placement *placement, uint32_t host)
{
    return host - placement->spare_first < placement->spare_count;
}

bool tb_placement_carries(const struct tb_placement *placement, uint32_t host)
{
    return placement->book.hosts[host].rank_count > 0 || tb_placement_is_spare(placement, host);
}

static uint32_t entry_slots(const struct tb_options *options, int entry)
{
    return entry < 0 ? count_cpus() : options->per_host > 0 ? options->per_host : options->hosts.entries[entry].slots;
}

/* As many as a job without -n would have on these hosts, and not fewer than this one has. */
static uint32_t count_universe(const struct tb_placement *placement, const struct tb_options *options)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < placement->book.host_count; i++) {
        uint32_t ranks = placement->book.hosts[i].rank_count, slots = entry_slots(options, placement->entries[i]);
        total += slots > ranks ? slots : ranks;
    }
    return total < TB_JOB_RANKS_LIMIT ? (uint32_t)total : TB_JOB_RANKS_LIMIT;
}

/* Hosts that have no rank take part too until there is room for as many processes as the user has spoken of. */
static int add_spares(struct dealer *dealer)
{
    struct tb_placement *placement = dealer->placement;
    const struct tb_options *options = dealer->options;
    uint64_t room = count_universe(placement, options);
    placement->spare_first = placement->book.host_count;
    for (uint32_t i = 0; i < options->hosts.count && room < options->universe; i++) {
        const struct tb_host_entry *entry = &options->hosts.entries[i];
        if (dealer->in_book[i + 1] >= 0 || entry->slots == 0 ||
            (options->avoids_this_host && tb_host_names_is_here(entry->name)))
            continue;
        if (placement->book.host_count == TB_JOB_HOSTS_LIMIT)
            return tb_error(TB_ERR_LIMIT, "-usize: more than %u hosts would take part", TB_JOB_HOSTS_LIMIT);
        append_host(placement, options, (int)i);
        placement->spare_count++;
        room += entry_slots(options, (int)i);
    }
    return TB_OK;
}

int tb_placement_make(struct tb_placement *placement, struct tb_options *options)
{
    *placement = (struct tb_placement){0};
    int rc = gather_hosts(options);
    if (rc != TB_OK)
        return rc;
    size_t hosts = (size_t)options->hosts.count + 1, most = hosts;
    /* Several entries of a section may be the same host of the list of all. */
    for (uint32_t i = 0; i < options->section_count; i++)
        most = options->sections[i].hosts.count > most ? options->sections[i].hosts.count : most;
    struct dealer dealer = {.placement = placement, .options = options};
    struct seat *seats = calloc(most, sizeof *seats);
    dealer.used = calloc(hosts, sizeof *dealer.used);
    dealer.in_book = malloc(hosts * sizeof *dealer.in_book);
    placement->book.hosts = calloc(hosts, sizeof *placement->book.hosts);
    placement->entries = calloc(hosts, sizeof *placement->entries);
    placement->wheres = calloc(hosts, sizeof *placement->wheres);
    placement->apps = calloc((size_t)options->section_count + 1, sizeof *placement->apps);
    if (seats == NULL || dealer.used == NULL || dealer.in_book == NULL || placement->book.hosts == NULL ||
        placement->entries == NULL || placement->wheres == NULL || placement->apps == NULL)
        rc = tb_error(TB_ERR_MEMORY, "no memory for the places of the ranks");
    for (size_t i = 0; rc == TB_OK && i < hosts; i++)
        dealer.in_book[i] = -1;
    for (uint32_t i = 0; rc == TB_OK && i < options->section_count; i++)
        rc = place_section(&dealer, &options->sections[i], seats);
    uint32_t universe = options->universe;
    if (rc == TB_OK && universe > 0)
        rc = add_spares(&dealer);
    free(seats);
    free(dealer.used);
    free(dealer.in_book);
    if (rc == TB_OK && universe > 0 && universe < placement->book.ranks)
        rc = tb_error(TB_ERR_ARGUMENT, "-usize %u: the job has %u ranks, and the universe has them all", universe,
                      placement->book.ranks);
    if (rc == TB_OK)
        placement->book.universe = universe > 0 ? universe : count_universe(placement, options);
    if (rc != TB_OK)
        tb_placement_close(placement);
    return rc;
}

/* The ranges of each host: its first one, and behind each range the next one of its host; UINT32_MAX: none. */
static void chain_ranges(const struct tb_address_book *book, uint32_t *first, uint32_t *next)
{
    for (uint32_t host = 0; host < book->host_count; host++)
        first[host] = UINT32_MAX;
    for (uint32_t i = book->range_count; i-- > 0;) {
        next[i] = first[book->ranges[i].host];
        first[book->ranges[i].host] = i;
    }
}

char *tb_placement_print(const struct tb_placement *placement)
{
    const struct tb_address_book *book = &placement->book;
    uint32_t *first = malloc(book->host_count * sizeof *first + 1);
    uint32_t *next = malloc(book->range_count * sizeof *next + 1);
    char *text = NULL;
    size_t length = 0;
    FILE *to = first != NULL && next != NULL ? open_memstream(&text, &length) : NULL;
    if (to == NULL)
        goto out;
    chain_ranges(book, first, next);
    fprintf(to, "where the ranks go:");
    for (uint32_t host = 0; host < book->host_count; host++) {
        uint32_t count = book->hosts[host].rank_count;
        fprintf(to, "\n  host %s: %s", book->hosts[host].name, count == 0 ? "none" : count == 1 ? "rank" : "ranks");
        for (uint32_t i = first[host]; i != UINT32_MAX; i = next[i]) {
            const struct tb_rank_range *range = &book->ranges[i];
            fprintf(to, "%s%u", i != first[host] ? "," : " ", range->first_rank);
            if (range->count > 1)
                fprintf(to, "-%u", range->first_rank + range->count - 1);
        }
    }
    if (fclose(to) != 0) {
        free(text);
        text = NULL;
    }
out:
    free(first);
    free(next);
    return text;
}

void tb_placement_close(struct tb_placement *placement)
{
    for (uint32_t i = 0; i < placement->app_count; i++)
        tb_app_close(&placement->apps[i]);
    free(placement->apps);
    free(placement->entries);
    free(placement->wheres);
    tb_address_book_close(&placement->book);
    *placement = (struct tb_placement){0};
}

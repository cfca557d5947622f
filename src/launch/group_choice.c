#include "launch/group_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ports below those that kernels give to whoever asks for any. */
#define PORT_FIRST 10000u
#define PORT_LAST  32767u

#define KINDS_MOST 64u /* of hosts in one cluster */

/* ---- which clusters ---------------------------------------------------------------------------------------------- */

struct by_place {
    uint32_t place, host;
};

static int compare_places(const void *a, const void *b)
{
    const struct by_place *x = a, *y = b;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->host < y->host ? -1 : x->host > y->host;
}

/* Those that are enough, in the order of their places. */
static int find_clusters(struct tb_group_choices *choices, const struct tb_address_book *book)
{
    uint32_t count = 0, least = (uint32_t)tb_param.mcast_hosts;
    struct by_place *sorted = malloc((book->host_count + 1u) * sizeof *sorted);
    choices->all = calloc(book->host_count / least + 1u, sizeof *choices->all);
    choices->hosts = malloc((book->host_count + 1u) * sizeof *choices->hosts);
    choices->addresses = calloc(book->host_count + 1u, sizeof *choices->addresses);
    if (sorted == NULL || choices->all == NULL || choices->hosts == NULL || choices->addresses == NULL) {
        free(sorted);
        return tb_error(TB_ERR_MEMORY, "no memory for the multicast groups of %u hosts", book->host_count);
    }
    for (uint32_t i = 0; i < book->host_count; i++)
        if (book->hosts[i].rank_count > 0)
            sorted[count++] = (struct by_place){.place = book->hosts[i].place, .host = i};
    qsort(sorted, count, sizeof *sorted, compare_places);
    for (uint32_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && sorted[end].place == sorted[first].place; end++)
            choices->hosts[end] = sorted[end].host;
        if (end - first >= least)
            choices->all[choices->count++] = (struct tb_group_choice){
                .place = sorted[first].place, .count = end - first, .hosts = choices->hosts + first};
    }
    free(sorted);
    return TB_OK;
}

/* ---- who reaches whom -------------------------------------------------------------------------------------------- */

static bool is_direct(const struct tb_routes *routes, uint32_t from, uint32_t to)
{
    return tb_routes_between(routes, from, to)->hops == 1 && tb_routes_between(routes, to, from)->hops == 1;
}

/* Hosts of a cluster that reach each other only through others have no group: what a datagram does not bring is asked
 * for, and sent, over connections of the ranks. Of a cluster with more kinds of hosts than anybody has seen some pairs
 * are not looked at, and the test finds out. */
static bool reach_each_other(struct tb_group_choice *choice, const struct tb_address_book *book,
                             const struct tb_grid_plan *plan)
{
    const struct tb_host *known[KINDS_MOST]; /* one of each kind */
    uint32_t known_count = 0;
    for (uint32_t i = 0; i < choice->count && plan != NULL; i++) {
        const struct tb_host *host = &book->hosts[choice->hosts[i]];
        bool is_new = true;
        for (uint32_t k = 0; k < known_count && is_new; k++)
            is_new = known[k]->kind != host->kind;
        for (uint32_t k = 0; k < known_count && is_new; k++)
            if (!is_direct(&plan->routes, known[k]->kind, host->kind)) {
                snprintf(choice->why, sizeof choice->why, "hosts %.120s and %.120s cannot connect to each other",
                         known[k]->name, host->name);
                return false;
            }
        if (is_new && known_count < KINDS_MOST)
            known[known_count++] = host;
    }
    return true;
}

/* A grid file may say that there is none, which spares the test. */
static bool is_wanted(struct tb_group_choice *choice, const struct tb_address_book *book,
                      const struct tb_grid_plan *plan)
{
    const struct tb_grid *grid = plan != NULL ? plan->grid : NULL;
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without an error there are hosts
    uint32_t host = grid != NULL ? tb_grid_host_find(grid, book->hosts[choice->hosts[0]].name) : TB_GRID_NONE;
    if (host == TB_GRID_NONE || !grid->clusters[grid->hosts[host].cluster].no_multicast)
        return true;
    snprintf(choice->why, sizeof choice->why, "the grid file says so");
    return false;
}

/* ---- by which addresses ------------------------------------------------------------------------------------------ */

static bool is_loopback(const struct tb_address *address)
{
    static const uint8_t one[16] = {[15] = 1};
    return address->family == 4 ? address->bytes[0] == 127 : memcmp(address->bytes, one, sizeof one) == 0;
}

/* One that the host has itself, and by which it sees a network. */
static bool is_usable(const struct tb_address *address)
{
    return !is_loopback(address) && address->prefix > 0 && address->prefix < (address->family == 4 ? 32 : 128);
}

/* The first address of a host that is in the same subnet, or with `wide` of the same family. */
static bool find_address(const struct tb_host *host, const struct tb_address *like, bool wide, uint8_t *index)
{
    for (uint32_t i = 0; i < host->address_count; i++) {
        const struct tb_address *address = &host->addresses[i];
        if (is_usable(address) && address->family == like->family && (wide || tb_address_same_subnet(address, like))) {
            *index = (uint8_t)i;
            return true;
        }
    }
    return false;
}

struct numbered_address {
    uint8_t bytes[16];
    uint32_t host;
};

static int compare_addresses(const void *a, const void *b)
{
    const struct numbered_address *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, sizeof x->bytes);
    return order != 0 ? order : x->host < y->host ? -1 : x->host > y->host;
}

/* Two hosts with one address are one machine under two names, or that network is another one on each of them. */
static int are_distinct(struct tb_group_choice *choice, const struct tb_address_book *book, const uint8_t *addresses,
                        bool *distinct)
{
    struct numbered_address *sorted = calloc(choice->count + 1u, sizeof *sorted);
    if (sorted == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the addresses of %u hosts", choice->count);
    for (uint32_t i = 0; i < choice->count; i++) {
        sorted[i].host = choice->hosts[i];
        memcpy(sorted[i].bytes, book->hosts[choice->hosts[i]].addresses[addresses[choice->hosts[i]]].bytes, 16);
    }
    qsort(sorted, choice->count, sizeof *sorted, compare_addresses);
    *distinct = true;
    for (uint32_t i = 1; i < choice->count && *distinct; i++) {
        *distinct = memcmp(sorted[i].bytes, sorted[i - 1].bytes, sizeof sorted->bytes) != 0;
        if (!*distinct)
            snprintf(choice->why, sizeof choice->why, "hosts %.120s and %.120s have the same address",
                     book->hosts[sorted[i - 1].host].name, book->hosts[sorted[i].host].name);
    }
    free(sorted);
    return TB_OK;
}

/* What all hosts have in common with this address of the first one. */
static int try_address(struct tb_group_choice *choice, const struct tb_address_book *book, uint8_t *addresses,
                       uint32_t index, bool wide)
{
    const struct tb_address *like = &book->hosts[choice->hosts[0]].addresses[index];
    bool distinct = false;
    for (uint32_t i = 0; i < choice->count; i++)
        if (!find_address(&book->hosts[choice->hosts[i]], like, wide, &addresses[choice->hosts[i]]))
            return TB_OK;
    addresses[choice->hosts[0]] = (uint8_t)index;
    int rc = are_distinct(choice, book, addresses, &distinct);
    if (rc == TB_OK && distinct)
        choice->family = like->family;
    return rc;
}

/* A subnet that all have in common, of IPv4 before IPv6; where datagrams may pass routers, a family is enough. */
static int choose_addresses(struct tb_group_choice *choice, const struct tb_address_book *book, uint8_t *addresses)
{
    TB_ASSERT(choice->hosts != NULL && choice->count > 0);
    const struct tb_host *first = &book->hosts[choice->hosts[0]];
    int rc = TB_OK;
    for (unsigned wide = 0; wide <= (tb_param.mcast_ttl > 1); wide++)
        for (uint8_t family = 4; family <= 6; family = (uint8_t)(family + 2))
            for (uint32_t i = 0; i < first->address_count && rc == TB_OK && choice->family == 0; i++)
                if (first->addresses[i].family == family && is_usable(&first->addresses[i]))
                    rc = try_address(choice, book, addresses, i, wide > 0);
    if (rc == TB_OK && choice->family == 0 && *choice->why == 0)
        snprintf(choice->why, sizeof choice->why, "its hosts have no subnet in common");
    return rc;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

int tb_group_choices_make(struct tb_group_choices *choices, const struct tb_address_book *book,
                          const struct tb_grid_plan *plan)
{
    *choices = (struct tb_group_choices){.count = 0};
    if (!tb_param_multicasts())
        return TB_OK;
    int rc = find_clusters(choices, book);
    for (uint32_t i = 0; i < choices->count && rc == TB_OK; i++)
        if (is_wanted(&choices->all[i], book, plan) && reach_each_other(&choices->all[i], book, plan))
            rc = choose_addresses(&choices->all[i], book, choices->addresses);
    return rc;
}

void tb_group_choices_close(struct tb_group_choices *choices)
{
    free(choices->all);
    free(choices->hosts);
    free(choices->addresses);
    *choices = (struct tb_group_choices){.count = 0};
}

/* ---- which group ------------------------------------------------------------------------------------------------- */

/* Of IPv4 only 23 bits reach Ethernet's address, so those are what is drawn, in the half of the administratively scoped
 * range that nobody has given a meaning (239.0.0.0/9). Left out are those that look on the wire like 224.0.0.x, which
 * switches pass to every port, and like 239.255.255.x, where services announce themselves. */
static void draw_ipv4(struct tb_random *random, struct tb_address *group)
{
    uint32_t low;
    do
        low = (uint32_t)tb_random_below(random, 1u << 23);
    while (low >> 8 == 0 || low >> 8 == 0x7fff);
    const uint8_t bytes[4] = {239, (uint8_t)(low >> 16), (uint8_t)(low >> 8), (uint8_t)low};
    memcpy(group->bytes, bytes, sizeof bytes);
}

/* Of IPv6 32 bits do; RFC 3307 leaves the upper half of them to groups that are made up. Those that begin with ff are
 * where hosts look for their neighbours. The group is transient, and of the site, or of the link where hosts have
 * nothing but addresses of it. */
static void draw_ipv6(struct tb_random *random, bool link_local, struct tb_address *group)
{
    uint32_t low = 0x80000000u + (uint32_t)tb_random_below(random, 0x7f000000u);
    group->bytes[0] = 0xff;
    group->bytes[1] = link_local ? 0x12 : 0x15;
    for (unsigned i = 0; i < 4; i++)
        group->bytes[12 + i] = (uint8_t)(low >> (24 - 8 * i));
}

void tb_group_choice_draw(struct tb_random *random, const struct tb_address *local, struct tb_address *group)
{
    uint16_t low = 0, high = 0;
    *group = (struct tb_address){.family = local->family};
    if (tb_ports_parse(tb_param.ports, &low, &high) != TB_OK || low == 0) {
        low = PORT_FIRST;
        high = PORT_LAST;
    }
    group->port = (uint16_t)(low + tb_random_below(random, (uint64_t)high - low + 1));
    if (local->family == 4)
        draw_ipv4(random, group);
    else
        draw_ipv6(random, local->scope != 0, group);
}

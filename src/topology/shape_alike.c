/* A host looks as its wires, the number of its ranks, their order and their seats do, and a place as its own wires and
 * links do (the cost table has a hash of them) together with all that is in it. Sums of hashes stand for what is in a
 * place, as its order does not count. All of it is a function of numbers that all ranks have alike. */
#include "topology/shape_alike.h"

#include <stdlib.h>

static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ (hash >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    hash = (hash ^ (hash >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ (hash >> 32);
}

static uint64_t mix_in(uint64_t hash, uint32_t a, uint32_t b)
{
    return mix(hash ^ ((uint64_t)a << 32 | b));
}

static bool is_consecutive(const struct tb_group_shape *s, uint32_t host)
{
    uint32_t last = s->hosts[host].first_rank + s->hosts[host].rank_count - 1;
    return last < s->size && tb_group_shape_host(s, last) == host && tb_group_shape_next(s, last) == TB_PLACE_NONE;
}

/* How many ranks of a host are in the first of two groups. */
static uint32_t first_group(const struct tb_group_shape *s, const struct tb_shape_host *host)
{
    uint32_t count = 0;
    for (uint32_t rank = host->first_rank; rank < s->split; rank = tb_group_shape_next(s, rank))
        count++;
    return count;
}

/* The wires of a kind of host, and how far it reaches. */
static uint64_t kind_look(const struct tb_cost_table *t, uint32_t number)
{
    const struct tb_cost_kind *kind = &t->kinds[number];
    uint64_t look = mix_in(kind->flags, kind->port, t->places[kind->reach].depth);
    look = mix_in(look, kind->gate_of != TB_COST_NONE ? 1 + t->places[kind->gate_of].depth : 0, kind->feet);
    for (uint32_t i = 0; i < kind->feet; i++) {
        const struct tb_cost_foot *foot = &t->feet[kind->foot + i];
        look = mix_in(look, t->places[foot->place].look, 0);
        look = mix_in(look, t->places[foot->leave].depth, t->places[foot->enter].depth);
    }
    return look;
}

static uint64_t host_look(const struct tb_group_shape *s, uint32_t number)
{
    const struct tb_shape_host *host = &s->hosts[number];
    uint64_t look = mix_in(1 + (uint64_t)is_consecutive(s, number), host->rank_count, first_group(s, host));
    for (uint32_t rank = host->first_rank; s->seats != NULL && rank != TB_PLACE_NONE;
         rank = tb_group_shape_next(s, rank))
        look = mix(look ^ tb_seat_pack(&s->seats[rank]));
    if (s->table == NULL)
        return look;
    /* Hosts that are ends of links differ by these. */
    if (host->who != TB_COST_NONE && (s->table->head->constants.flags & TB_COSTS_HOST_LINKS) != 0)
        look = mix_in(look, host->who, 0);
    return mix(look ^ kind_look(s->table, host->kind));
}

/* The first with the same hash; `at`, which is entered, if it is the first itself. TB_HASH_NONE: no memory. */
static uint32_t first_of(struct tb_hash_table *known, const uint64_t *hashes, uint32_t at)
{
    uint32_t hash = tb_hash_fold(hashes[at]), step = hash, found;
    while ((found = tb_hash_table_next(known, hash, &step)) != TB_HASH_NONE)
        if (hashes[found] == hashes[at])
            return found;
    return tb_hash_table_add(known, hash, at) == TB_OK ? at : TB_HASH_NONE;
}

/* What places look like, from inside to outside; then, in their place, all the way up to the world. */
static void places_hash(const struct tb_group_shape *s, const uint64_t *host_looks, uint64_t *looks)
{
    for (uint32_t i = 0; i < s->place_count; i++)
        looks[i] = 0;
    for (uint32_t i = 0; i < s->host_count; i++)
        looks[s->hosts[i].place] += mix(host_looks[i]);
    for (uint32_t i = s->place_count; i-- > 0;) {
        const struct tb_shape_place *place = &s->places[i];
        uint32_t look = s->table != NULL ? s->table->places[place->place].look : 0;
        looks[i] = mix(mix_in(2u + place->multicast, look, place->level) ^ looks[i]);
        if (i > 0)
            looks[place->parent] += mix(looks[i] + 1);
    }
    for (uint32_t i = 1; i < s->place_count; i++)
        looks[i] = mix(looks[i] ^ looks[s->places[i].parent]);
}

int tb_shape_alike_find(const struct tb_group_shape *s, struct tb_shape_host *hosts, struct tb_shape_place *places)
{
    uint64_t *host_looks = malloc(s->host_count * sizeof *host_looks);
    uint64_t *looks = malloc(s->place_count * sizeof *looks), *own = malloc(s->place_count * sizeof *own);
    struct tb_hash_table known = {0}, known_hosts = {0};
    bool room = host_looks != NULL && looks != NULL && own != NULL;
    for (uint32_t i = 0; i < s->host_count && room; i++)
        host_looks[i] = host_look(s, i);
    if (room)
        places_hash(s, host_looks, looks);
    for (uint32_t i = 0; i < s->place_count && room; i++) {
        own[i] = i > 0 ? mix_in(looks[i], places[i].parent, 0) : looks[i]; /* of siblings */
        places[i].alike = first_of(&known, own, i);
        room = places[i].alike != TB_HASH_NONE;
    }
    for (uint32_t i = 0; i < s->host_count && room; i++) {
        host_looks[i] = mix(host_looks[i] ^ looks[hosts[i].place]);
        hosts[i].alike = first_of(&known_hosts, host_looks, i);
        room = hosts[i].alike != TB_HASH_NONE;
    }
    tb_hash_table_close(&known);
    tb_hash_table_close(&known_hosts);
    free(host_looks);
    free(looks);
    free(own);
    return room ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory to compare %u hosts", s->host_count);
}

#include "topology/places.h"

#include <stdlib.h>
#include <string.h>

struct node {
    uint32_t parent, level;
    uint32_t name;        /* offset in the names */
    uint32_t next;        /* sibling that was added after it; TB_PLACE_NONE */
    uint32_t first, last; /* children; TB_PLACE_NONE */
    uint32_t depth;
};

struct tb_places_builder {
    uint32_t count, room;
    struct node *nodes;
    uint32_t name_bytes, name_room;
    char *names;
    uint32_t *index; /* handles by hash; TB_PLACE_NONE: free. Never more than half full */
    uint32_t index_room;
};

static int no_memory(void)
{
    return tb_error(TB_ERR_MEMORY, "no memory for the places of a job");
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static uint32_t hash_of(uint32_t parent, uint32_t level, const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ ((uint64_t)parent << 8 | level);
    hash *= UINT64_C(0x100000001b3);
    for (; *name != 0; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash ^ (hash >> 32));
}

/* Where in the index it is, or would be. */
static uint32_t slot_of(const struct tb_places_builder *b, uint32_t parent, uint32_t level, const char *name)
{
    uint32_t at = hash_of(parent, level, name) & (b->index_room - 1);
    while (b->index[at] != TB_PLACE_NONE) {
        const struct node *node = &b->nodes[b->index[at]];
        if (node->parent == parent && node->level == level && strcmp(b->names + node->name, name) == 0)
            break;
        at = (at + 1) & (b->index_room - 1);
    }
    return at;
}

static int index_grow(struct tb_places_builder *b)
{
    if (2 * (b->count + 1) <= b->index_room)
        return TB_OK;
    uint32_t room = b->index_room != 0 ? 2 * b->index_room : 64;
    uint32_t *grown = malloc(room * sizeof *grown);
    if (grown == NULL)
        return no_memory();
    memset(grown, 0xff, room * sizeof *grown);
    free(b->index);
    b->index = grown;
    b->index_room = room;
    for (uint32_t i = 0; i < b->count; i++) {
        const struct node *node = &b->nodes[i];
        b->index[slot_of(b, node->parent, node->level, b->names + node->name)] = i;
    }
    return TB_OK;
}

/* ---- growing ----------------------------------------------------------------------------------------------------- */

static int room_for(struct tb_places_builder *b, size_t name_bytes)
{
    if (b->count == b->room) {
        uint32_t room = b->room != 0 ? 2 * b->room : 32;
        struct node *grown = reallocarray(b->nodes, room, sizeof *grown);
        if (grown == NULL)
            return no_memory();
        b->nodes = grown;
        b->room = room;
    }
    if (b->name_bytes + name_bytes > b->name_room) {
        uint32_t room = 2 * b->name_room + (uint32_t)name_bytes + 256;
        char *grown = realloc(b->names, room);
        if (grown == NULL)
            return no_memory();
        b->names = grown;
        b->name_room = room;
    }
    return index_grow(b);
}

static int append(struct tb_places_builder *b, uint32_t parent, uint32_t level, uint32_t depth, const char *name)
{
    size_t bytes = strlen(name) + 1;
    int rc = room_for(b, bytes);
    if (rc != TB_OK)
        return rc;
    uint32_t handle = b->count, slot = slot_of(b, parent, level, name);
    memcpy(b->names + b->name_bytes, name, bytes);
    b->nodes[handle] = (struct node){.parent = parent,
                                     .level = level,
                                     .name = b->name_bytes,
                                     .next = TB_PLACE_NONE,
                                     .first = TB_PLACE_NONE,
                                     .last = TB_PLACE_NONE,
                                     .depth = depth};
    b->name_bytes += (uint32_t)bytes;
    b->index[slot] = handle;
    b->count++;
    return TB_OK;
}

int tb_places_builder_open(struct tb_places_builder **builder)
{
    *builder = calloc(1, sizeof **builder);
    if (*builder == NULL)
        return no_memory();
    int rc = append(*builder, TB_PLACE_NONE, TB_LEVEL_WORLD, 0, "");
    if (rc != TB_OK) {
        tb_places_builder_close(*builder);
        *builder = NULL;
    }
    return rc;
}

int tb_places_builder_add(struct tb_places_builder *b, uint32_t parent, enum tb_level level, const char *name,
                          uint32_t *handle)
{
    TB_ASSERT(parent < b->count);
    TB_ASSERT(level == TB_LEVEL_SITE ? parent == 0 : level == TB_LEVEL_CLUSTER);
    uint32_t same = b->index[slot_of(b, parent, level, name)];
    if (same != TB_PLACE_NONE) {
        *handle = same;
        return TB_OK;
    }
    uint32_t depth = b->nodes[parent].depth + 1, before = b->nodes[parent].last;
    if (b->count == TB_PLACES_LIMIT)
        return tb_error(TB_ERR_LIMIT, "%s is one place too many; a job has at most %u sites and clusters", name,
                        TB_PLACES_LIMIT - 1);
    if (depth >= TB_PLACES_DEPTH_LIMIT)
        return tb_error(TB_ERR_LIMIT, "%s nests too deep; expected at most %u levels", name, TB_PLACES_DEPTH_LIMIT);
    int rc = append(b, parent, level, depth, name);
    if (rc != TB_OK)
        return rc;
    *handle = b->count - 1;
    if (before != TB_PLACE_NONE)
        b->nodes[before].next = *handle;
    else
        b->nodes[parent].first = *handle;
    b->nodes[parent].last = *handle;
    return TB_OK;
}

uint32_t tb_places_builder_count(const struct tb_places_builder *b)
{
    return b->count;
}

/* ---- numbering --------------------------------------------------------------------------------------------------- */

static void place_row(const struct tb_places_builder *b, struct tb_places *places, uint32_t *numbers, uint32_t handle)
{
    const struct node *node = &b->nodes[handle];
    numbers[handle] = places->count;
    places->rows[places->count++] =
        (struct tb_place_row){.parent = node->parent != TB_PLACE_NONE ? numbers[node->parent] : TB_PLACE_NONE,
                              .name = node->name,
                              .depth = (uint8_t)node->depth,
                              .level = (uint8_t)node->level};
}

int tb_places_builder_seal(const struct tb_places_builder *b, struct tb_places *places, uint32_t *numbers)
{
    size_t rows = b->count * sizeof *places->rows;
    char *block = malloc(rows + b->name_bytes);
    if (block == NULL)
        return no_memory();
    *places = (struct tb_places){.name_bytes = b->name_bytes, .rows = (void *)block, .names = block + rows};
    memcpy(places->names, b->names, b->name_bytes);
    /* Down to the first child, else on to the next sibling, of the place or of those around it. */
    for (uint32_t handle = 0; handle != TB_PLACE_NONE;) {
        place_row(b, places, numbers, handle);
        uint32_t next = b->nodes[handle].first;
        while (next == TB_PLACE_NONE && handle != TB_PLACE_NONE) {
            places->rows[numbers[handle]].end = places->count;
            next = b->nodes[handle].next;
            handle = b->nodes[handle].parent;
        }
        handle = next;
    }
    return TB_OK;
}

void tb_places_builder_close(struct tb_places_builder *b)
{
    if (b == NULL)
        return;
    free(b->nodes);
    free(b->names);
    free(b->index);
    free(b);
}

void tb_places_close(struct tb_places *places)
{
    free(places->rows);
    *places = (struct tb_places){0};
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

uint32_t tb_places_meet(const struct tb_places *places, uint32_t a, uint32_t b)
{
    while (!tb_places_within(places, b, a))
        a = places->rows[a].parent;
    return a;
}

uint32_t tb_places_up(const struct tb_places *places, uint32_t place, uint32_t depth)
{
    while (places->rows[place].depth > depth)
        place = places->rows[place].parent;
    return place;
}

uint32_t tb_places_outermost(const struct tb_places *places, uint32_t place)
{
    while (places->rows[place].level == TB_LEVEL_CLUSTER &&
           places->rows[places->rows[place].parent].level == TB_LEVEL_CLUSTER)
        place = places->rows[place].parent;
    return place;
}

uint32_t tb_places_site(const struct tb_places *places, uint32_t place)
{
    uint32_t outer = tb_places_up(places, place, 1);
    return places->rows[outer].level == TB_LEVEL_SITE ? outer : TB_PLACE_NONE;
}

uint32_t tb_places_nesting(const struct tb_places *places, uint32_t place)
{
    if (places->rows[place].level != TB_LEVEL_CLUSTER)
        return 0;
    return places->rows[place].depth - places->rows[tb_places_outermost(places, place)].depth + 1u;
}

uint32_t tb_places_cluster(const struct tb_places *places, uint32_t place, uint32_t number)
{
    uint32_t all = tb_places_nesting(places, place);
    return number >= 1 && number <= all ? tb_places_up(places, place, places->rows[place].depth - all + number)
                                        : TB_PLACE_NONE;
}

uint32_t tb_places_find(const struct tb_places *places, const char *name, size_t length)
{
    for (uint32_t i = 1; i < places->count; i++) {
        const char *other = tb_places_name(places, i);
        if (strlen(other) == length && memcmp(other, name, length) == 0)
            return i;
    }
    return TB_PLACE_NONE;
}

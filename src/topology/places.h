/* The tree of places of a job: sites, and clusters nested to any depth. Hosts are no places; each stands in one. Place
 * 0 is the world. A parent has a smaller number than its children, and everything in a place stands behind it without
 * a gap (preorder). Constant once sealed; any thread may read it; whoever sealed it frees its one block. */
#ifndef TB_TOPOLOGY_PLACES_H
#define TB_TOPOLOGY_PLACES_H

#include "base/base.h"

/* Where something is, from wide to near. The tree has the first three; below them shapes have hosts, and seats. */
enum tb_level {
    TB_LEVEL_WORLD,
    TB_LEVEL_SITE,
    TB_LEVEL_CLUSTER,
    TB_LEVEL_HOST,
    TB_LEVEL_PACKAGE,
    TB_LEVEL_NUMA,
    TB_LEVEL_CACHE,
    TB_LEVEL_CORE
};

#define TB_PLACES_LIMIT       32769u /* 16,384 clusters, as many sites, the world */
#define TB_PLACES_DEPTH_LIMIT 18u    /* the world, a site, 16 clusters in one another */
#define TB_PLACE_NONE         UINT32_MAX

struct tb_place_row {
    uint32_t parent; /* of the world: TB_PLACE_NONE */
    uint32_t end;    /* behind its subtree */
    uint32_t name;   /* offset in the names; that of the world is empty */
    uint8_t depth, level;
    uint16_t zero;
};

struct tb_places {
    uint32_t count, name_bytes;
    struct tb_place_row *rows; /* the block; the names stand behind the rows */
    char *names;
};

/* Grows, and finds by parent, level and name. */
struct tb_places_builder;
int tb_places_builder_open(struct tb_places_builder **builder);
/* The same handle for the same three; that of the world is 0. A site stands below the world, a cluster below the
 * world, a site or a cluster. */
int tb_places_builder_add(struct tb_places_builder *builder, uint32_t parent, enum tb_level level, const char *name,
                          uint32_t *handle);
/* How many handles there are. */
uint32_t tb_places_builder_count(const struct tb_places_builder *builder);
/* Numbers them in preorder, siblings in the order in which they were added; numbers[handle] is the place's. */
int tb_places_builder_seal(const struct tb_places_builder *builder, struct tb_places *places, uint32_t *numbers);
void tb_places_builder_close(struct tb_places_builder *builder);
void tb_places_close(struct tb_places *places);

static inline const char *tb_places_name(const struct tb_places *places, uint32_t place)
{
    return places->names + places->rows[place].name;
}

/* Whether one lies in the other, or is it. */
static inline bool tb_places_within(const struct tb_places *places, uint32_t inner, uint32_t outer)
{
    return inner >= outer && inner < places->rows[outer].end;
}

/* The innermost place that has both in it, or is one of them. */
uint32_t tb_places_meet(const struct tb_places *places, uint32_t a, uint32_t b);
/* The one around it at this depth; the place itself if it is not deeper. */
uint32_t tb_places_up(const struct tb_places *places, uint32_t place, uint32_t depth);
/* The cluster around it that nests in no cluster; the place itself if it is no cluster. */
uint32_t tb_places_outermost(const struct tb_places *places, uint32_t place);
/* The site around a place; TB_PLACE_NONE: it is in none. */
uint32_t tb_places_site(const struct tb_places *places, uint32_t place);
/* How many clusters are around each other there; 0: it is in none. */
uint32_t tb_places_nesting(const struct tb_places *places, uint32_t place);
/* Of the clusters around it the one with this number, the outermost being 1; TB_PLACE_NONE: there are fewer. */
uint32_t tb_places_cluster(const struct tb_places *places, uint32_t place, uint32_t number);
/* The first of this name, in the order of their numbers; TB_PLACE_NONE. */
uint32_t tb_places_find(const struct tb_places *places, const char *name, size_t length);

#endif

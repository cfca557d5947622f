/* The traffic of an algorithm as text: for each level who sends how much to whom, in the order in which it leaves; as a
 * tree from its root, where it is one. Of ranks that do alike things only a few are shown unless all are asked for. */
#include "explain_tree.h"

#include <stdio.h>
#include <stdlib.h>

#define ALIKE_SHOWN  3u  /* of those that do alike */
#define LINES_SHOWN  12u /* of a level */
#define PEERS_SHOWN  8u  /* of a rank */
#define RANKS_SHOWN  16u /* with their times: if there are more, the last few that end */
#define LATEST_SHOWN 4u
#define CLASSES_MOST 64u
#define INDENT_MOST  10u
#define NODE_NONE    UINT32_MAX
#define UNLIKE       100u /* a time that differs from the table's by more than this part is another one */

/* A rank that sends something on a level, or, where data come together, that gets something. */
struct tree_node {
    uint32_t rank, first, count; /* flows in the index */
    uint32_t depth;
    uint64_t messages, bytes;
};

struct level_tree {
    const struct explain_tree *e;
    const struct tb_traffic_level *level;
    uint32_t *index; /* flows: by node, in the order in which they leave */
    struct tree_node *nodes;
    uint32_t node_count;
    uint32_t *sequence; /* nodes in the order in which they are shown */
    uint32_t *node_of;  /* by rank */
    uint32_t *parents;  /* of each rank: how many nodes have it at the other end */
};

static const struct tb_flow_row *flow_at(const struct level_tree *l, uint32_t i)
{
    return &l->e->traffic.flows[l->index[i]];
}

static uint32_t head_of(const struct level_tree *l, const struct tb_flow_row *f)
{
    return l->e->traffic.up ? f->to : f->from;
}

static uint32_t tail_of(const struct level_tree *l, const struct tb_flow_row *f)
{
    return l->e->traffic.up ? f->from : f->to;
}

/* ---- the tree of a level ----------------------------------------------------------------------------------------- */

static int head_compare(const void *a, const void *b, void *context)
{
    const struct level_tree *l = context;
    const struct tb_flow_row *one = &l->e->traffic.flows[*(const uint32_t *)a];
    const struct tb_flow_row *other = &l->e->traffic.flows[*(const uint32_t *)b];
    uint32_t x = head_of(l, one), y = head_of(l, other);
    if (x != y)
        return x < y ? -1 : 1;
    return one->order < other->order ? -1 : one->order > other->order;
}

static int first_compare(const void *a, const void *b, void *context)
{
    const struct level_tree *l = context;
    uint32_t x = flow_at(l, l->nodes[*(const uint32_t *)a].first)->order;
    uint32_t y = flow_at(l, l->nodes[*(const uint32_t *)b].first)->order;
    return x < y ? -1 : x > y;
}

static void nodes_fill(struct level_tree *l)
{
    for (uint32_t i = 0; i < l->level->flows; i++)
        l->index[i] = l->level->flow + i;
    qsort_r(l->index, l->level->flows, sizeof *l->index, head_compare, l);
    for (uint32_t i = 0; i < l->level->flows; i++) {
        const struct tb_flow_row *f = flow_at(l, i);
        uint32_t rank = head_of(l, f);
        if (l->node_of[rank] == NODE_NONE) {
            l->node_of[rank] = l->node_count;
            l->nodes[l->node_count++] = (struct tree_node){.rank = rank, .first = i};
        }
        struct tree_node *n = &l->nodes[l->node_of[rank]];
        n->count++;
        n->messages += f->messages;
        n->bytes = tb_cost_add(n->bytes, f->bytes);
        l->parents[tail_of(l, f)]++;
    }
}

/* Every node below the one at its other end. `stack` has room for all of them. False: there is no such order. */
static bool sequence_trees(struct level_tree *l, uint32_t *stack)
{
    uint32_t height = 0, count = 0;
    for (uint32_t i = 0; i < l->level->flows; i++)
        if (l->parents[tail_of(l, flow_at(l, i))] > 1)
            return false;
    for (uint32_t i = l->node_count; i-- > 0;)
        if (l->parents[l->nodes[i].rank] == 0)
            stack[height++] = i;
    while (height > 0) {
        const struct tree_node *n = &l->nodes[stack[--height]];
        l->sequence[count++] = (uint32_t)(n - l->nodes);
        for (uint32_t k = n->count; k-- > 0;) {
            uint32_t child = l->node_of[tail_of(l, flow_at(l, n->first + k))];
            if (child == NODE_NONE)
                continue;
            l->nodes[child].depth = n->depth + 1;
            stack[height++] = child;
        }
    }
    return count == l->node_count;
}

static void level_close(struct level_tree *l)
{
    free(l->index);
    free(l->nodes);
    free(l->sequence);
    free(l->node_of);
    free(l->parents);
}

/* Close it also after an error. */
static int level_open(struct level_tree *l, const struct explain_tree *e, const struct tb_traffic_level *level)
{
    uint32_t size = e->traffic.shape->size, *stack = calloc((size_t)size + 1, sizeof *stack);
    *l = (struct level_tree){.e = e, .level = level};
    l->index = calloc((size_t)level->flows + 1, sizeof *l->index);
    l->nodes = calloc((size_t)size + 1, sizeof *l->nodes);
    l->sequence = calloc((size_t)size + 1, sizeof *l->sequence);
    l->node_of = malloc(((size_t)size + 1) * sizeof *l->node_of);
    l->parents = calloc((size_t)size + 1, sizeof *l->parents);
    bool enough = stack != NULL && l->index != NULL && l->nodes != NULL && l->sequence != NULL && l->node_of != NULL &&
                  l->parents != NULL;
    for (uint32_t i = 0; i < size && enough; i++)
        l->node_of[i] = NODE_NONE;
    if (enough) {
        nodes_fill(l);
        if (!sequence_trees(l, stack)) {
            for (uint32_t i = 0; i < l->node_count; i++) {
                l->sequence[i] = i;
                l->nodes[i].depth = 0;
            }
            qsort_r(l->sequence, l->node_count, sizeof *l->sequence, first_compare, l);
        }
    }
    free(stack);
    return enough ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory to show who sends what to whom");
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void amount_print(uint64_t messages, uint64_t bytes, const char *each)
{
    printf("%llu byte%s%s", (unsigned long long)bytes, tb_plural(bytes), each);
    if (messages > 1)
        printf(" in %llu messages", (unsigned long long)messages);
}

static const char *host_name(const struct explain_tree *e, uint32_t rank)
{
    return e->names[tb_group_shape_host(e->traffic.shape, rank)];
}

/* Those who get as much as each other, one after the other, stand together. */
static void node_print(const struct level_tree *l, const struct tree_node *n)
{
    const struct explain_tree *e = l->e;
    uint32_t shown = e->all || n->count <= PEERS_SHOWN + 1 ? n->count : PEERS_SHOWN, alike = 0;
    uint32_t indent = n->depth < INDENT_MOST ? n->depth : INDENT_MOST;
    printf("  %*s%u (%s) %s ", (int)(2 * indent), "", n->rank, host_name(e, n->rank), e->traffic.up ? "from" : "to");
    for (uint32_t i = 0; i < shown; i++) {
        const struct tb_flow_row *f = flow_at(l, n->first + i);
        const struct tb_flow_row *next = i + 1 < shown ? flow_at(l, n->first + i + 1) : NULL;
        uint32_t peer = tail_of(l, f);
        printf("%u", peer);
        if (l->level->kind != TB_SPAN_INSIDE)
            printf(" (%s)", host_name(e, peer));
        alike++;
        if (next != NULL && next->messages == f->messages && next->bytes == f->bytes) {
            printf(", ");
            continue;
        }
        printf(": ");
        amount_print(f->messages, f->bytes, alike > 1 ? " each" : "");
        printf("%s", next != NULL ? "; " : "");
        alike = 0;
    }
    if (shown < n->count)
        printf("; and %u more, %llu bytes in all", n->count - shown, (unsigned long long)n->bytes);
    puts("");
}

/* Ranks that do alike on a level: as many messages and bytes to as many others. */
struct alike_class {
    const struct tree_node *example;
    uint32_t shown, more;
};

static struct alike_class *class_find(struct alike_class *classes, uint32_t *count, const struct tree_node *n)
{
    for (uint32_t i = 0; i < *count; i++) {
        const struct tree_node *o = classes[i].example;
        if (o->count == n->count && o->messages == n->messages && o->bytes == n->bytes)
            return &classes[i];
    }
    if (*count == CLASSES_MOST)
        return NULL;
    classes[*count] = (struct alike_class){.example = n};
    return &classes[(*count)++];
}

static void nodes_print(const struct level_tree *l)
{
    struct alike_class classes[CLASSES_MOST];
    uint32_t count = 0, lines = 0, others = 0;
    for (uint32_t i = 0; i < l->node_count; i++) {
        const struct tree_node *n = &l->nodes[l->sequence[i]];
        struct alike_class *c = class_find(classes, &count, n);
        if (l->e->all || (c != NULL && c->shown < ALIKE_SHOWN && lines < LINES_SHOWN)) {
            node_print(l, n);
            lines++;
            if (c != NULL)
                c->shown++;
        } else if (c != NULL && c->shown > 0) {
            c->more++;
        } else {
            others++;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        if (classes[i].more > 0)
            printf("  and %u more like %u\n", classes[i].more, classes[i].example->rank);
    if (others > 0)
        printf("  and %u rank%s more: --all\n", others, tb_plural(others));
}

static const char *place_name(const struct explain_tree *e, uint32_t place)
{
    const char *name = tb_places_name(e->places, e->traffic.shape->places[place].place);
    return name[0] != 0 ? name : "the others";
}

static int level_print(const struct explain_tree *e, uint32_t number)
{
    const struct tb_traffic_level *level = &e->traffic.levels[number];
    struct level_tree l;
    char name[TB_TRAFFIC_NAME_BYTES];
    printf("%s: %llu message%s, %llu byte%s\n", tb_traffic_level_name(&e->traffic, number, name),
           (unsigned long long)level->messages, tb_plural(level->messages), (unsigned long long)level->bytes,
           tb_plural(level->bytes));
    uint32_t shown = e->all || level->pairs <= LINES_SHOWN + 1 ? level->pairs : LINES_SHOWN;
    for (uint32_t i = 0; i < shown; i++) {
        const struct tb_place_traffic *p = &e->traffic.pairs[level->pair + i];
        printf("  %s to %s: ", place_name(e, p->from), place_name(e, p->to));
        amount_print(p->messages, p->bytes, "");
        puts("");
    }
    if (shown < level->pairs)
        printf("  and between %u more pairs of places: --all\n", level->pairs - shown);
    int error = level_open(&l, e, level);
    if (error == TB_OK)
        nodes_print(&l);
    level_close(&l);
    puts("");
    return error;
}

/* ---- common memory ----------------------------------------------------------------------------------------------- */

static bool meetings_alike(const struct tb_traffic_meeting *a, const struct tb_traffic_meeting *b)
{
    return a->composite == b->composite && a->members == b->members && a->items == b->items && a->bytes == b->bytes;
}

static void meeting_print(const struct explain_tree *e, const struct tb_traffic_meeting *m)
{
    printf("  %s: %s among %u rank%s", e->names[m->host], tb_composite_name(m->composite), m->members,
           tb_plural(m->members));
    if (tb_composite_rooted(m->composite))
        printf(" with root %u", m->root);
    if (m->composite != TB_COMPOSITE_BARRIER)
        printf(", %llu byte%s", (unsigned long long)m->bytes, tb_plural(m->bytes));
    if (m->items > 1)
        printf(" in %u parts", m->items);
    puts("");
}

static void meetings_print(const struct explain_tree *e)
{
    const struct tb_traffic *t = &e->traffic;
    uint32_t more = 0, lines = 0;
    if (t->meeting_count == 0)
        return;
    printf("in memory that ranks of a host share: %u step%s\n", t->meeting_count, tb_plural(t->meeting_count));
    for (uint32_t i = 0; i < t->meeting_count; i++) {
        const struct tb_traffic_meeting *m = &t->meetings[i];
        uint32_t alike = 0;
        for (uint32_t k = i; k-- > 0 && alike < ALIKE_SHOWN && !e->all;)
            alike += meetings_alike(&t->meetings[k], m);
        if (alike < ALIKE_SHOWN && (e->all || lines < LINES_SHOWN)) {
            meeting_print(e, m);
            lines++;
        } else {
            more++;
        }
    }
    if (more > 0)
        printf("  and %u more like these\n", more);
    puts("");
}

/* ---- multicast --------------------------------------------------------------------------------------------------- */

static void cast_print(const struct explain_tree *e, const struct tb_traffic_cast *c)
{
    const char *place = tb_places_name(e->places, e->traffic.shape->places[c->place].place);
    printf("  %s%s", place, place[0] != 0 ? ": " : "");
    if (tb_composite_rooted(c->composite))
        printf("%u (%s) to %u other host%s: ", c->root, host_name(e, c->root), c->members - 1,
               tb_plural(c->members - 1));
    else
        printf("each of %u hosts to the others in turn: ", c->members);
    amount_print(c->sends, c->sent_bytes, "");
    puts(", sent once");
}

static void casts_print(const struct explain_tree *e)
{
    const struct tb_traffic *t = &e->traffic;
    uint32_t shown = e->all || t->cast_count <= LINES_SHOWN + 1 ? t->cast_count : LINES_SHOWN;
    if (t->cast_count == 0)
        return;
    printf("by multicast: %u step%s\n", t->cast_count, tb_plural(t->cast_count));
    for (uint32_t i = 0; i < shown; i++)
        cast_print(e, &t->casts[i]);
    if (shown < t->cast_count)
        printf("  and %u more: --all\n", t->cast_count - shown);
    puts("");
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

static int end_compare(const void *a, const void *b, void *context)
{
    const struct tb_traffic *t = context;
    uint64_t x = t->ends[*(const uint32_t *)a], y = t->ends[*(const uint32_t *)b];
    if (x != y)
        return x > y ? -1 : 1;
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static void times_row(const struct explain_tree *e, uint32_t rank)
{
    char first[32] = "-";
    if (e->traffic.firsts[rank] != TB_COST_NEVER)
        snprintf(first, sizeof first, "%.3f us", (double)e->traffic.firsts[rank] / 1e6);
    printf("  %6u %-16s %18s %15.3f us\n", rank, host_name(e, rank), first, (double)e->traffic.ends[rank] / 1e6);
}

/* When each rank has got something for the first time, and is done. */
static int times_print(const struct explain_tree *e)
{
    const struct tb_traffic *t = &e->traffic;
    uint32_t size = t->shape->size;
    bool whole = e->all || size <= RANKS_SHOWN;
    if (t->time == TB_COST_NEVER)
        return TB_OK;
    uint32_t *ranks = calloc((size_t)size + 1, sizeof *ranks);
    if (ranks == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for times of ranks");
    for (uint32_t i = 0; i < size; i++)
        ranks[i] = i;
    if (!whole)
        qsort_r(ranks, size, sizeof *ranks, end_compare, (void *)(uintptr_t)t);
    printf("  %6s %-16s %18s %18s\n", "rank", "host", "first gets", "is done");
    for (uint32_t i = 0; i < (whole ? size : LATEST_SHOWN); i++)
        times_row(e, ranks[i]);
    if (!whole)
        printf("  and %u ranks that are done before: --all\n", size - LATEST_SHOWN);
    free(ranks);
    return TB_OK;
}

static void title_print(const struct explain_tree *e)
{
    uint64_t time = e->traffic.time, rated = e->rated;
    printf("\n%s: who sends what to whom", e->title);
    if (time == TB_COST_NEVER) {
        printf(" (too many messages to simulate them all)\n\n");
        return;
    }
    printf("; done after %.3f us", (double)time / 1e6);
    if (e->bound > 0)
        printf(", %.2f times the bound", (double)time / (double)e->bound);
    puts("");
    if (rated != TB_COST_NEVER && (time > rated ? time - rated : rated - time) > rated / UNLIKE)
        puts("  All of it is simulated here; what the table says is continued from fewer ranks or pieces.");
    puts("");
}

int tb_explain_tree_print(const struct explain_tree *e)
{
    const struct tb_traffic *t = &e->traffic;
    int error = TB_OK;
    title_print(e);
    if (t->flow_count == 0)
        printf("no messages%s\n\n",
               t->meeting_count + t->cast_count == 0 ? ": nobody gets anything from another rank" : "");
    for (uint32_t i = 0; i < t->level_count && error == TB_OK; i++)
        error = level_print(e, i);
    casts_print(e);
    meetings_print(e);
    return error == TB_OK ? times_print(e) : error;
}

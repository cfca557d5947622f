/* The traffic of an algorithm for programs: all of it. */
#include "explain_tree.h"
#include "json_text.h"

#include <stdio.h>

/* What is not known is left out. */
static void time_print(const char *name, uint64_t time)
{
    if (time != TB_COST_NEVER)
        printf(", \"%s\": %.12f", name, (double)time / 1e12);
}

static const char *comma(uint32_t i)
{
    return i > 0 ? ",\n" : "";
}

static void level_json(const struct explain_tree *e, uint32_t number)
{
    const struct tb_traffic *t = &e->traffic;
    const struct tb_traffic_level *level = &t->levels[number];
    char name[TB_TRAFFIC_NAME_BYTES];
    printf("%s  {\"level\": \"%s\", \"messages\": %llu, \"bytes\": %llu, \"places\": [", comma(number),
           tb_traffic_level_name(t, number, name), (unsigned long long)level->messages,
           (unsigned long long)level->bytes);
    for (uint32_t i = 0; i < level->pairs; i++) {
        const struct tb_place_traffic *p = &t->pairs[level->pair + i];
        printf("%s{\"from\": ", i > 0 ? ", " : "");
        tb_json_text(tb_places_name(e->places, t->shape->places[p->from].place));
        printf(", \"to\": ");
        tb_json_text(tb_places_name(e->places, t->shape->places[p->to].place));
        printf(", \"messages\": %llu, \"bytes\": %llu}", (unsigned long long)p->messages, (unsigned long long)p->bytes);
    }
    printf("], \"flows\": [\n");
    for (uint32_t i = 0; i < level->flows; i++) {
        const struct tb_flow_row *f = &t->flows[level->flow + i];
        printf("%s    {\"from\": %u, \"to\": %u, \"order\": %u, \"messages\": %llu, \"bytes\": %llu", comma(i), f->from,
               f->to, f->order, (unsigned long long)f->messages, (unsigned long long)f->bytes);
        time_print("begins", f->begin);
        time_print("arrives", f->there);
        printf("}");
    }
    printf("]}");
}

void tb_explain_argument_json(uint64_t argument)
{
    uint64_t piece = tb_argument_piece(argument);
    uint64_t narrow = piece * tb_argument_narrow(argument), wide = piece * tb_argument_wide(argument);
    printf("\"argument\": %llu", (unsigned long long)narrow);
    if (wide != narrow)
        printf(", \"wide\": %llu", (unsigned long long)wide);
}

static void cast_json(const struct explain_tree *e, uint32_t number)
{
    const struct tb_traffic_cast *c = &e->traffic.casts[number];
    printf("%s  {\"place\": ", comma(number));
    tb_json_text(tb_places_name(e->places, e->traffic.shape->places[c->place].place));
    printf(
        ", \"operation\": \"%s\", \"first_rank\": %u, \"hosts\": %u, \"parts\": %u, \"sends\": %llu, \"sent_bytes\": "
        "%llu, \"receives\": %llu, \"received_bytes\": %llu",
        tb_composite_name(c->composite), c->first, c->members, c->items, (unsigned long long)c->sends,
        (unsigned long long)c->sent_bytes, (unsigned long long)c->receives, (unsigned long long)c->received_bytes);
    if (tb_composite_rooted(c->composite))
        printf(", \"root\": %u", c->root);
    time_print("begins", c->begin);
    time_print("first_done", c->done);
    printf("}");
}

void tb_explain_tree_json(const struct explain_tree *e)
{
    const struct tb_traffic *t = &e->traffic;
    printf(", \"tree\": {\"algorithm\": \"%s\", ", e->algorithm->name);
    tb_explain_argument_json(e->call.argument);
    time_print("seconds", t->time);
    printf(", \"levels\": [\n");
    for (uint32_t i = 0; i < t->level_count; i++)
        level_json(e, i);
    printf("],\n \"multicast\": [\n");
    for (uint32_t i = 0; i < t->cast_count; i++)
        cast_json(e, i);
    printf("],\n \"common\": [\n");
    for (uint32_t i = 0; i < t->meeting_count; i++) {
        const struct tb_traffic_meeting *m = &t->meetings[i];
        printf("%s  {\"host\": ", comma(i));
        tb_json_text(e->names[m->host]);
        printf(", \"operation\": \"%s\", \"first_rank\": %u, \"ranks\": %u, \"parts\": %u, \"bytes\": %llu",
               tb_composite_name(m->composite), m->first, m->members, m->items, (unsigned long long)m->bytes);
        if (tb_composite_rooted(m->composite))
            printf(", \"root\": %u", m->root);
        time_print("begins", m->begin);
        time_print("first_done", m->done);
        printf("}");
    }
    printf("],\n \"ranks\": [\n");
    for (uint32_t i = 0; i < t->shape->size; i++) {
        printf("%s  {\"rank\": %u, \"host\": ", comma(i), i);
        tb_json_text(e->names[tb_group_shape_host(t->shape, i)]);
        time_print("first", t->firsts[i]);
        time_print("done", t->ends[i]);
        printf("}");
    }
    printf("]}\n");
}

/* The picture of who sends what to whom: an arrow for each two ranks of which one sends to the other, in the colour of
 * the level that it crosses, as wide as it is loaded. Where a level has too many of them, arrows go from place to
 * place, or, where there are no places, from one rank only. */
#include "picture/traffic_layout.h"

#include <math.h>
#include <string.h>

#define MARGIN      28.0
#define TOP         96.0
#define LINE        20.0
#define LEGEND_W    620.0
#define FLOWS_TOP   150u /* of a level; more are drawn from place to place, or from one rank */
#define ARROWS_TOP  600u /* of the picture */
#define NUMBERS_TOP 60u  /* more arrows get no numbers, only hints under the mouse */
#define HEAD        8.0  /* of an arrow */

static const char style[] =
    ".site{fill:#f3f6fa;stroke:#c5d0de}.cluster{fill:#fff;stroke:#4a6f9c;stroke-width:1.6}"
    ".inner{fill:#fafcfe;stroke:#7d9cc0;stroke-width:1.2}.host{fill:#e6effa;stroke:#9db8d9}"
    ".rank{fill:#fff;stroke:#55708f;stroke-width:1.4}.common{fill:none;stroke:#2f7d4f;stroke-width:2;"
    "stroke-dasharray:5 3;stroke-linejoin:round}.cast{fill:none;stroke:#2f5f9c;stroke-width:2.4;stroke-dasharray:9 4;"
    "stroke-linejoin:round}"
    ".head{font-size:20px;font-weight:bold;fill:#22303f}.name{font-size:16px;font-weight:bold;fill:#22303f}"
    ".small{font-size:11.5px;fill:#5c6b7c}.chip{font-size:12px;fill:#22303f}.label{font-size:13px;fill:#22303f}"
    ".number{font-size:11px;font-weight:bold;fill:#22303f;paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".a0,.a1,.a2,.a3{fill:none;stroke-opacity:.8}.a0{stroke:#c0392b}.a1{stroke:#cf7a1c}.a2{stroke:#2f5f9c}"
    ".a3{stroke:#2f7d4f}.h0{fill:#c0392b}.h1{fill:#cf7a1c}.h2{fill:#2f5f9c}.h3{fill:#2f7d4f}"
    ".w0{stroke-width:1.2}.w1{stroke-width:2}.w2{stroke-width:3}.w3{stroke-width:4.2}";

struct drawing {
    FILE *to;
    const struct tb_traffic_picture *picture;
    const struct tb_traffic *traffic;
    struct tb_traffic_layout layout;
    double x, y; /* of the layout */
    uint64_t most;
    uint32_t arrows; /* drawn so far */
    uint32_t flows;  /* that they stand for */
    bool numbers;
};

static struct tb_svg_rect moved(const struct drawing *d, struct tb_svg_rect r)
{
    return (struct tb_svg_rect){r.x + d->x, r.y + d->y, r.w, r.h};
}

/* ---- boxes ------------------------------------------------------------------------------------------------------- */

static void place_draw(const struct drawing *d, uint32_t place)
{
    const struct tb_shape_place *p = &d->traffic->shape->places[place];
    struct tb_svg_rect box = moved(d, d->layout.places[place]);
    const char *name = tb_places_name(d->picture->places, p->place);
    char note[64];
    bool inner = p->level == TB_LEVEL_CLUSTER && d->traffic->shape->places[p->parent].level == TB_LEVEL_CLUSTER;
    if (*name != 0) {
        tb_svg_box(d->to, p->level == TB_LEVEL_SITE ? "site" : inner ? "inner" : "cluster", box, 10);
        tb_svg_text(d->to, "name", box.x + 14, box.y + 24, TB_SVG_START, name);
    }
    if (d->layout.hidden_parts[place] > 0) {
        snprintf(note, sizeof note, "and %u more like these", d->layout.hidden_parts[place]);
        tb_svg_text(d->to, "small", box.x + 14, box.y + box.h - 8, TB_SVG_START, note);
    }
}

static void rank_draw(const struct drawing *d, uint32_t rank)
{
    struct tb_svg_rect dot = moved(d, d->layout.ranks[rank]);
    char number[16];
    snprintf(number, sizeof number, "%u", rank);
    tb_svg_box(d->to, "rank", dot, TB_DOT / 2);
    tb_svg_text(d->to, rank < 1000 ? "chip" : "small", dot.x + dot.w / 2, dot.y + dot.h / 2 + 4, TB_SVG_MIDDLE, number);
}

static void host_draw(const struct drawing *d, uint32_t host)
{
    const struct tb_group_shape *s = d->traffic->shape;
    struct tb_svg_rect box = moved(d, d->layout.hosts[host]);
    char note[64];
    tb_svg_box(d->to, "host", box, 6);
    tb_svg_text(d->to, "chip", box.x + box.w / 2, box.y + 16, TB_SVG_MIDDLE, d->picture->hosts[host]);
    for (uint32_t r = s->hosts[host].first_rank; r != TB_PLACE_NONE; r = tb_group_shape_next(s, r))
        if (d->layout.ranks[r].w > 0)
            rank_draw(d, r);
    if (d->layout.hidden_ranks[host] > 0) {
        snprintf(note, sizeof note, "and %u more", d->layout.hidden_ranks[host]);
        tb_svg_text(d->to, "small", box.x + box.w / 2, box.y + box.h - 7, TB_SVG_MIDDLE, note);
    }
}

/* A frame around the ranks of a host that share memory. */
static void meeting_draw(const struct drawing *d, const struct tb_traffic_meeting *m)
{
    struct tb_svg_rect box = moved(d, d->layout.hosts[m->host]);
    char hint[160];
    if (d->layout.hosts[m->host].w <= 0)
        return;
    snprintf(hint, sizeof hint, "%s among %u rank%s, %llu byte%s", tb_composite_name(m->composite), m->members,
             tb_plural(m->members), (unsigned long long)m->bytes, tb_plural(m->bytes));
    double low = box.x + 3, high = box.x + box.w - 3, top = box.y + 20, bottom = box.y + box.h - 3;
    tb_svg_line(d->to, "common", (double[]){low, high, high, low, low}, (double[]){top, top, bottom, bottom, top}, 5,
                hint);
}

/* A frame around the hosts that hear a multicast. */
static void cast_draw(const struct drawing *d, const struct tb_traffic_cast *c)
{
    struct tb_svg_rect box = moved(d, d->layout.places[c->place]);
    char hint[160];
    if (d->layout.places[c->place].w <= 0)
        return;
    snprintf(hint, sizeof hint, "%s by multicast among %u host%s, %llu byte%s", tb_composite_name(c->composite),
             c->members, tb_plural(c->members), (unsigned long long)c->sent_bytes, tb_plural(c->sent_bytes));
    double low = box.x + 4, high = box.x + box.w - 4, top = box.y + 4, bottom = box.y + box.h - 4;
    tb_svg_line(d->to, "cast", (double[]){low, high, high, low, low}, (double[]){top, top, bottom, bottom, top}, 5,
                hint);
}

/* ---- arrows ------------------------------------------------------------------------------------------------------ */

static struct tb_svg_rect centre(struct tb_svg_rect r)
{
    return (struct tb_svg_rect){r.x + r.w / 2, r.y + r.h / 2, 0, 0};
}

/* How much of the way from its centre is in the box. */
static double part_inside(struct tb_svg_rect r, double dx, double dy)
{
    double x = fabs(dx) > 0 ? r.w / 2 / fabs(dx) : 1, y = fabs(dy) > 0 ? r.h / 2 / fabs(dy) : 1;
    return x < y ? x : y;
}

static uint32_t weight_of(const struct drawing *d, uint64_t bytes)
{
    uint32_t weight = 3;
    for (uint64_t part = bytes; weight > 0 && part < d->most; weight--)
        part = part > UINT64_MAX / 8 ? UINT64_MAX : part * 8;
    return weight;
}

/* From box to box, bent to one side so that both directions can be seen. */
static void arrow_draw(struct drawing *d, struct tb_svg_rect from, struct tb_svg_rect to, enum tb_span_kind kind,
                       uint64_t bytes, const char *hint, const char *number)
{
    struct tb_svg_rect a = centre(from), b = centre(to);
    double dx = b.x - a.x, dy = b.y - a.y, length = sqrt(dx * dx + dy * dy);
    double out = part_inside(from, dx, dy), in = part_inside(to, dx, dy);
    if (length < 1 || out + in >= 1)
        return;
    double bend = (length > 400 ? 40 : length / 10) + 4, nx = -dy / length * bend, ny = dx / length * bend;
    double x[4] = {a.x + dx * out, 0, 0, b.x - dx * in}, y[4] = {a.y + dy * out, 0, 0, b.y - dy * in};
    for (int i = 1; i < 3; i++) {
        x[i] = x[0] + (x[3] - x[0]) * i / 3 + nx;
        y[i] = y[0] + (y[3] - y[0]) * i / 3 + ny;
    }
    double hx = x[3] - x[2], hy = y[3] - y[2], h = sqrt(hx * hx + hy * hy);
    char name[16];
    if (h < 1)
        return;
    hx *= HEAD / h;
    hy *= HEAD / h;
    snprintf(name, sizeof name, "a%d w%u", (int)kind, weight_of(d, bytes));
    tb_svg_curve(d->to, name, x, y, hint);
    snprintf(name, sizeof name, "h%d", (int)kind);
    tb_svg_line(d->to, name, (double[]){x[3], x[3] - hx - hy / 2, x[3] - hx + hy / 2},
                (double[]){y[3], y[3] - hy + hx / 2, y[3] - hy - hx / 2}, 3, hint);
    if (number != NULL)
        tb_svg_text(d->to, "number", 0.2 * x[0] + 0.5 * x[1] + 0.3 * x[2], 0.2 * y[0] + 0.5 * y[1] + 0.3 * y[2] + 4,
                    TB_SVG_MIDDLE, number);
    d->arrows++;
}

static bool is_drawn(const struct drawing *d, const struct tb_flow_row *f)
{
    return d->layout.ranks[f->from].w > 0 && d->layout.ranks[f->to].w > 0;
}

static void flow_draw(struct drawing *d, const struct tb_flow_row *f)
{
    const struct tb_group_shape *s = d->traffic->shape;
    char hint[512], number[16], when[96] = "";
    if (!is_drawn(d, f) || d->arrows >= ARROWS_TOP)
        return;
    if (f->there != TB_COST_NEVER)
        snprintf(when, sizeof when, "; begins after %.3f us, first there after %.3f us", (double)f->begin / 1e6,
                 (double)f->there / 1e6);
    snprintf(hint, sizeof hint, "%u. rank %u (%s) to rank %u (%s): %llu byte%s in %llu message%s%s", f->order + 1,
             f->from, d->picture->hosts[tb_group_shape_host(s, f->from)], f->to,
             d->picture->hosts[tb_group_shape_host(s, f->to)], (unsigned long long)f->bytes, tb_plural(f->bytes),
             (unsigned long long)f->messages, tb_plural(f->messages), when);
    snprintf(number, sizeof number, "%u", f->order + 1);
    arrow_draw(d, moved(d, d->layout.ranks[f->from]), moved(d, d->layout.ranks[f->to]),
               d->traffic->levels[f->level].kind, f->bytes, hint, d->numbers ? number : NULL);
    d->flows++;
}

static void pair_draw(struct drawing *d, const struct tb_place_traffic *p)
{
    const struct tb_shape_place *places = d->traffic->shape->places;
    char hint[512];
    if (d->layout.places[p->from].w <= 0 || d->layout.places[p->to].w <= 0 || d->arrows >= ARROWS_TOP)
        return;
    snprintf(hint, sizeof hint, "%s to %s: %llu byte%s in %llu message%s",
             tb_places_name(d->picture->places, places[p->from].place),
             tb_places_name(d->picture->places, places[p->to].place), (unsigned long long)p->bytes, tb_plural(p->bytes),
             (unsigned long long)p->messages, tb_plural(p->messages));
    arrow_draw(d, moved(d, d->layout.places[p->from]), moved(d, d->layout.places[p->to]),
               d->traffic->levels[p->level].kind, p->bytes, hint, NULL);
}

static bool goes_by_place(const struct tb_traffic_level *level)
{
    return level->flows > FLOWS_TOP && level->pairs > 0;
}

/* The only rank whose arrows of a level are drawn; TB_PLACE_NONE: all are. */
static uint32_t only_sender(const struct drawing *d, const struct tb_traffic_level *level)
{
    const struct tb_flow_row *flows = &d->traffic->flows[level->flow];
    uint32_t count = 0, first = TB_PLACE_NONE;
    for (uint32_t i = 0; i < level->flows; i++) {
        count += is_drawn(d, &flows[i]);
        if (count == 1 && first == TB_PLACE_NONE)
            first = flows[i].from;
    }
    return count > FLOWS_TOP ? first : TB_PLACE_NONE;
}

static void level_draw(struct drawing *d, const struct tb_traffic_level *level)
{
    const struct tb_flow_row *flows = &d->traffic->flows[level->flow];
    if (goes_by_place(level)) {
        for (uint32_t k = 0; k < level->pairs; k++)
            pair_draw(d, &d->traffic->pairs[level->pair + k]);
        d->flows += level->flows;
        return;
    }
    uint32_t only = only_sender(d, level);
    for (uint32_t k = 0; k < level->flows; k++)
        if (only == TB_PLACE_NONE || flows[k].from == only)
            flow_draw(d, &flows[k]);
}

static void arrows_draw(struct drawing *d)
{
    const struct tb_traffic *t = d->traffic;
    uint32_t arrows = 0;
    for (uint32_t i = 0; i < t->flow_count; i++) {
        bool drawn = is_drawn(d, &t->flows[i]) && !goes_by_place(&t->levels[t->flows[i].level]);
        arrows += drawn;
        if (drawn && t->flows[i].bytes > d->most)
            d->most = t->flows[i].bytes;
    }
    for (uint32_t i = 0; i < t->pair_count; i++)
        if (goes_by_place(&t->levels[t->pairs[i].level]) && t->pairs[i].bytes > d->most)
            d->most = t->pairs[i].bytes;
    d->numbers = arrows <= NUMBERS_TOP;
    for (uint32_t i = 0; i < t->level_count; i++)
        level_draw(d, &t->levels[i]);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static double legend_line(const struct drawing *d, const char *line, const char *text, double y)
{
    if (line != NULL)
        tb_svg_line(d->to, line, (double[]){MARGIN, MARGIN + 36}, (double[]){y - 4, y - 4}, 2, text);
    tb_svg_text(d->to, "label", MARGIN + (line != NULL ? 46 : 0), y, TB_SVG_START, text);
    return y + LINE;
}

static void legend_draw(const struct drawing *d, double y)
{
    const struct tb_traffic *t = d->traffic;
    char name[TB_TRAFFIC_NAME_BYTES], text[TB_TRAFFIC_NAME_BYTES + 160], kind[16], which[64];
    for (uint32_t i = 0; i < t->level_count; i++) {
        const struct tb_traffic_level *l = &t->levels[i];
        uint32_t only = only_sender(d, l);
        snprintf(which, sizeof which, "%s", goes_by_place(l) ? ", drawn from place to place" : "");
        if (which[0] == 0 && only != TB_PLACE_NONE)
            snprintf(which, sizeof which, ", drawn for rank %u only", only);
        snprintf(text, sizeof text, "%s: %llu message%s, %llu byte%s%s", tb_traffic_level_name(t, i, name),
                 (unsigned long long)l->messages, tb_plural(l->messages), (unsigned long long)l->bytes,
                 tb_plural(l->bytes), which);
        snprintf(kind, sizeof kind, "a%d w2", (int)l->kind);
        y = legend_line(d, kind, text, y);
    }
    if (t->cast_count > 0) {
        snprintf(text, sizeof text, "by multicast, to all hosts of a cluster: %u step%s", t->cast_count,
                 tb_plural(t->cast_count));
        y = legend_line(d, "cast", text, y);
    }
    if (t->meeting_count > 0) {
        snprintf(text, sizeof text, "in memory that ranks of a host share: %u step%s", t->meeting_count,
                 tb_plural(t->meeting_count));
        y = legend_line(d, "common", text, y);
    }
    if (t->flow_count + t->meeting_count + t->cast_count == 0)
        y = legend_line(d, NULL, "nobody gets anything from another rank", y);
    if (d->numbers && d->arrows > 0)
        y = legend_line(d, NULL, "numbers: the order in which first messages leave", y);
    if (d->layout.drawn < t->shape->size || d->flows < t->flow_count) {
        snprintf(text, sizeof text, "drawn are %u of %u ranks; arrows stand for %u of %u pairs of ranks that send",
                 d->layout.drawn, t->shape->size, d->flows, t->flow_count);
        legend_line(d, NULL, text, y);
    }
}

int tb_picture_traffic(FILE *to, const struct tb_traffic_picture *picture)
{
    const struct tb_traffic *t = picture->traffic;
    struct drawing d = {.to = to, .picture = picture, .traffic = t, .x = MARGIN, .y = TOP, .most = 1};
    int error = tb_traffic_layout_open(&d.layout, picture);
    if (error == TB_OK) {
        double legend = (t->level_count + 5) * LINE, width = 2 * MARGIN + d.layout.width;
        double least = 2 * MARGIN + tb_svg_width(picture->title, 20);
        width = width < LEGEND_W ? LEGEND_W : width;
        tb_svg_open(to, width < least ? least : width, TOP + d.layout.height + 3 * MARGIN + legend, picture->title,
                    style);
        tb_svg_text(to, "head", MARGIN, 38, TB_SVG_START, picture->title);
        for (int i = 0; i < 2; i++)
            tb_svg_text(to, "label", MARGIN, 60 + i * 18, TB_SVG_START, picture->lines[i]);
        for (uint32_t i = 0; i < t->shape->place_count; i++)
            if (d.layout.places[i].w > 0)
                place_draw(&d, i);
        for (uint32_t i = 0; i < t->shape->host_count; i++)
            if (d.layout.hosts[i].w > 0)
                host_draw(&d, i);
        for (uint32_t i = 0; i < t->cast_count; i++)
            cast_draw(&d, &t->casts[i]);
        for (uint32_t i = 0; i < t->meeting_count; i++)
            meeting_draw(&d, &t->meetings[i]);
        arrows_draw(&d);
        legend_draw(&d, TOP + d.layout.height + 2 * MARGIN);
        tb_svg_close(to);
        error = fflush(to) == 0 && !ferror(to) ? TB_OK : tb_error_errno("cannot write the picture");
    }
    tb_traffic_layout_close(&d.layout);
    return error;
}

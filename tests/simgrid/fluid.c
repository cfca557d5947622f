/* Everyone's programs in SimGrid, in its plain fluid model: wires are links, and a flow gets what max-min fairness
 * gives it.
 *
 * SimGrid's are the wires, how they are shared, and the time. What the simulator of src/planner assumes besides is said
 * here again, in SimGrid's words: items start as the program says; a rank does one thing after the other; a stream
 * passes its messages in order, in chunks, each through the first wire, with which the sender is through then, and
 * a latency later through all other wires of the hop at once; an agent passes on what it has; at most a window is
 * under way; long messages ask. Latencies are waited for, and not those of links, since SimGrid gives flows whose links
 * have a latency a share by that, which is a correction of its own.
 *
 * Everything that happens is an actor: an item of a step, from when it may start until it is done, and a chunk of a
 * message, from when it has passed the first wire until the sender knows that it is there. SimGrid runs one of them at
 * a time, until it calls SimGrid. */
#include "fluid.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <simgrid/actor.h>
#include <simgrid/cond.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/mutex.h>

#include "base/frame_size.h"
#include "planner/item_bytes.h"

#define PS_PER_S    1e12
#define FLOPS       1e9        /* of a host in a second, of which one thing at a time has all */
#define ASK_ABOVE   (2u << 20) /* bytes: longer messages ask first */
#define HOPS_MOST   8u
#define CHUNKS      32u    /* of a message at most, */
#define CHUNK_LEAST 1024u /* but none is shorter than this, */
#define CHUNK_MOST  32768u /* or longer than this, bytes */

struct fluid_step {
    const struct tb_step *about;
    uint32_t rank;
    uint32_t started, done;
    uint32_t posted, arrived; /* receives, and messages for them */
    struct fluid_step *partner;
    sg_cond_t asked; /* of a receive: senders wait until it is posted */
};

/* From one agent to the next, or to the receiver. The first one begins behind the first wire of the way. */
struct fluid_hop {
    sg_host_t from, to;
    bool bare;      /* no wire is left between them */
    double latency; /* seconds */
    sg_mutex_t way; /* one chunk at a time comes along */
};

/* What one rank sends to another. */
struct fluid_stream {
    sg_host_t from;
    uint32_t hop_count;
    struct fluid_hop hops[HOPS_MOST];
    double latency; /* of all hops, seconds */
    uint64_t window, sent, known;
    sg_mutex_t port; /* one message at a time goes out */
    sg_mutex_t hold;
    sg_cond_t heard; /* that more is there */
};

struct fluid_item {
    struct fluid_step *step;
    uint32_t number;
};

struct fluid_chunk {
    struct fluid_stream *stream;
    struct fluid_step *receive; /* NULL: it is not the last of its message */
    uint64_t bytes;
    double flow;
};

static struct {
    const struct tb_simulation *run;
    struct tb_item_data data;
    uint32_t ranks, step_count;
    uint32_t *firsts; /* step of each rank, and the end */
    struct fluid_step *steps;
    struct fluid_stream **streams; /* by both ranks; NULL: nothing is sent */
    sg_mutex_t *processors;
    sg_mutex_t posting;
    uint64_t undone; /* items */
    double end;
} f;

static void item_done(struct fluid_step *s);

static void give_up(const char *why)
{
    fprintf(stderr, "fluid: %s\n", why);
    exit(1);
}

static void *room(size_t count, size_t size)
{
    void *at = calloc(count + 1, size);
    if (at == NULL)
        give_up("no memory");
    return at;
}

/* ---- actors ------------------------------------------------------------------------------------------------------ */

/* `about` is freed by it. */
static void actor_begin(sg_host_t host, void (*code)(int, char **), void *about)
{
    sg_actor_t actor = sg_actor_init("a", host);
    sg_actor_set_data(actor, about);
    sg_actor_start(actor, code, 0, NULL);
}

static uint32_t host_of(uint32_t rank)
{
    return tb_group_shape_host(f.run->ways->shape, rank);
}

static sg_host_t place_of(uint32_t rank)
{
    char name[32];
    snprintf(name, sizeof name, "h%u", host_of(rank));
    return sg_host_by_name(name);
}

static uint64_t item_bytes(const struct fluid_step *s, uint32_t item)
{
    return tb_item_bytes(&f.data, f.run->programs[s->rank], s->about, item);
}

/* Until the rank has done all that came before. */
static void processor_take(uint32_t rank, double seconds)
{
    sg_mutex_lock(f.processors[rank]);
    if (seconds > 0)
        sg_actor_execute(seconds * FLOPS);
    sg_mutex_unlock(f.processors[rank]);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void receive_go(int argc, char **argv)
{
    struct fluid_item *item = sg_actor_self_get_data();
    processor_take(item->step->rank, 0);
    item_done(item->step);
    free(item);
}

static void receive_begin(struct fluid_step *s)
{
    struct fluid_item *item = room(1, sizeof *item);
    *item = (struct fluid_item){.step = s};
    actor_begin(place_of(s->rank), receive_go, item);
}

/* With the headers of the frames in which so many bytes are on a wire. */
static double wire_bytes(uint64_t bytes)
{
    const struct tb_wire wire = {.bandwidth = 8000000, .curve = TB_COST_NONE};
    return (double)tb_wire_time(f.run->ways->table, &wire, bytes) / 1e6;
}

static void chunk_go(int argc, char **argv)
{
    struct fluid_chunk *c = sg_actor_self_get_data();
    struct fluid_stream *s = c->stream;
    for (uint32_t i = 0; i < s->hop_count; i++) {
        const struct fluid_hop *hop = &s->hops[i];
        sg_actor_sleep_for(hop->latency);
        sg_mutex_lock(hop->way);
        if (!hop->bare)
            sg_host_sendto(hop->from, hop->to, c->flow);
        sg_mutex_unlock(hop->way);
    }
    if (c->receive != NULL && ++c->receive->arrived <= c->receive->posted)
        receive_begin(c->receive);
    sg_actor_sleep_for(s->latency);
    s->known += c->bytes;
    sg_cond_notify_all(s->heard);
    free(c);
}

static void message_send(struct fluid_stream *s, struct fluid_step *receive, uint64_t bytes)
{
    uint64_t each = bytes / CHUNKS < CHUNK_LEAST  ? CHUNK_LEAST
                    : bytes / CHUNKS > CHUNK_MOST ? CHUNK_MOST
                                                  : bytes / CHUNKS;
    sg_mutex_lock(s->port);
    uint64_t at = 0;
    do {
        uint64_t length = bytes - at < each ? bytes - at : each;
        sg_mutex_lock(s->hold);
        while (s->sent + length > s->known + s->window)
            sg_cond_wait(s->heard, s->hold);
        sg_mutex_unlock(s->hold);
        s->sent += length;
        struct fluid_chunk *c = room(1, sizeof *c);
        *c = (struct fluid_chunk){.stream = s,
                                  .receive = at + length == bytes ? receive : NULL,
                                  .bytes = length,
                                  .flow = wire_bytes(at + length) - (at > 0 ? wire_bytes(at) : 0)};
        sg_host_sendto(s->from, s->hops[0].from, c->flow);
        actor_begin(s->from, chunk_go, c);
        at += length;
    } while (at < bytes);
    sg_mutex_unlock(s->port);
}

/* A question, and when the receive is posted an answer. */
static void message_ask(const struct fluid_stream *s, const struct fluid_step *receive, uint32_t item)
{
    sg_actor_sleep_for(s->latency);
    sg_mutex_lock(f.posting);
    while (receive->posted <= item)
        sg_cond_wait(receive->asked, f.posting);
    sg_mutex_unlock(f.posting);
    sg_actor_sleep_for(s->latency);
}

static void send_go(int argc, char **argv)
{
    struct fluid_item *item = sg_actor_self_get_data();
    struct fluid_step *step = item->step;
    struct fluid_stream *s = f.streams[step->rank * f.ranks + step->about->peer];
    uint64_t bytes = item_bytes(step, item->number);
    processor_take(step->rank, 0);
    if (bytes > ASK_ABOVE)
        message_ask(s, step->partner, item->number);
    message_send(s, step->partner, bytes);
    item_done(step);
    free(item);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void work_go(int argc, char **argv)
{
    struct fluid_item *item = sg_actor_self_get_data();
    struct fluid_step *s = item->step;
    const struct tb_cost_constants *c = &f.run->ways->table->head->constants;
    const struct tb_cost_curve *curve = s->about->kind == TB_STEP_COPY ? &c->copy : &c->reduce;
    processor_take(s->rank, (double)tb_cost_at(curve, item_bytes(s, item->number)) / PS_PER_S);
    item_done(s);
    free(item);
}

static bool item_ready(const struct fluid_step *s)
{
    const struct tb_step *t = s->about;
    const struct tb_program *p = f.run->programs[s->rank];
    if (s->started == t->items || s->started - s->done >= t->window)
        return false;
    for (uint32_t i = 0; i < t->after_count; i++) {
        const struct tb_after *a = &p->after[t->after + i];
        if (f.steps[f.firsts[s->rank] + a->step].done < tb_step_needs(t, a, &p->steps[a->step], s->started))
            return false;
    }
    return true;
}

static void item_start(struct fluid_step *s)
{
    uint32_t number = s->started++;
    if (s->about->kind == TB_STEP_COMPOSITE)
        give_up("a step is no message");
    bool message = s->about->kind == TB_STEP_SEND || s->about->kind == TB_STEP_RECEIVE;
    if (item_bytes(s, number) == 0 && (!message || (s->about->slice.count > 0 && !s->about->upto))) {
        item_done(s);
        return;
    }
    if (s->about->kind == TB_STEP_RECEIVE) {
        if (++s->posted <= s->arrived)
            receive_begin(s);
        sg_cond_notify_all(s->asked);
        return;
    }
    struct fluid_item *item = room(1, sizeof *item);
    *item = (struct fluid_item){s, number};
    actor_begin(place_of(s->rank), message ? send_go : work_go, item);
}

static void rank_advance(uint32_t rank)
{
    for (uint32_t i = f.firsts[rank]; i < f.firsts[rank + 1]; i++)
        while (item_ready(&f.steps[i]))
            item_start(&f.steps[i]);
}

static void item_done(struct fluid_step *s)
{
    s->done++;
    f.undone--;
    f.end = simgrid_get_clock();
    rank_advance(s->rank);
}

static void all_begin(int argc, char **argv)
{
    for (uint32_t i = 0; i < f.ranks; i++)
        rank_advance(i);
}

/* ---- what there is ----------------------------------------------------------------------------------------------- */

static struct fluid_step *partner_find(const struct fluid_step *s)
{
    for (uint32_t i = f.firsts[s->about->peer]; i < f.firsts[s->about->peer + 1]; i++) {
        const struct tb_step *t = f.steps[i].about;
        if (t->kind == TB_STEP_RECEIVE && t->peer == s->rank && t->edge == s->about->edge)
            return &f.steps[i];
    }
    give_up("a send has no receive");
    return NULL;
}

static void steps_open(const struct tb_simulation *run)
{
    f.run = run;
    f.data = (struct tb_item_data){run->bytes, run->blocks};
    f.ranks = run->ways->shape->size;
    f.firsts = room(f.ranks + (size_t)1, sizeof *f.firsts);
    for (uint32_t i = 0; i < f.ranks; i++)
        f.firsts[i + 1] = f.firsts[i] + run->programs[i]->step_count;
    f.step_count = f.firsts[f.ranks];
    f.steps = room(f.step_count, sizeof *f.steps);
    for (uint32_t rank = 0; rank < f.ranks; rank++)
        for (uint32_t i = f.firsts[rank]; i < f.firsts[rank + 1]; i++) {
            f.steps[i] = (struct fluid_step){.about = &run->programs[rank]->steps[i - f.firsts[rank]], .rank = rank};
            f.undone += f.steps[i].about->items;
        }
    f.streams = room((size_t)f.ranks * f.ranks, sizeof(struct fluid_stream *));
    for (uint32_t i = 0; i < f.step_count; i++) {
        struct fluid_step *s = &f.steps[i];
        if (s->about->kind != TB_STEP_SEND)
            continue;
        s->partner = partner_find(s);
        uint32_t pair = s->rank * f.ranks + s->about->peer;
        if (f.streams[pair] == NULL)
            f.streams[pair] = room(1, sizeof(struct fluid_stream));
    }
}

static const struct tb_way *way_of(uint32_t pair)
{
    return tb_ways_between(f.run->ways, host_of(pair / f.ranks), host_of(pair % f.ranks));
}

/* The name of where a hop of a way begins; behind the last one it is the host. */
static const char *node_name(char name[32], uint32_t pair, uint32_t hop, uint32_t hops)
{
    if (hop < hops)
        snprintf(name, 32, "n%u-%u", pair, hop);
    else
        snprintf(name, 32, "h%u", host_of(pair % f.ranks));
    return name;
}

static void route_write(FILE *out, uint32_t pair)
{
    struct tb_ways *ways = f.run->ways;
    uint32_t from = host_of(pair / f.ranks), to = host_of(pair % f.ranks);
    const struct tb_way *way = tb_ways_between(ways, from, to);
    char name[32], next[32];
    for (uint32_t h = 0; h < way->hop_count; h++) {
        const struct tb_way_hop *hop = &ways->hops[way->first_hop + h];
        uint32_t k = 0;
        node_name(name, pair, h, way->hop_count);
        if (h == 0)
            fprintf(out, "<route src=\"h%u\" dst=\"%s\" symmetrical=\"NO\"><link_ctn id=\"w%u\"/></route>\n", from,
                    name, tb_way_wire(ways, hop, k++, from, to));
        if (k == hop->wire_count)
            continue;
        fprintf(out, "<route src=\"%s\" dst=\"%s\" symmetrical=\"NO\">", name,
                node_name(next, pair, h + 1, way->hop_count));
        for (; k < hop->wire_count; k++)
            fprintf(out, "<link_ctn id=\"w%u\"/>", tb_way_wire(ways, hop, k, from, to));
        fprintf(out, "</route>\n");
    }
}

static void platform_write(FILE *out)
{
    struct tb_ways *ways = f.run->ways;
    fprintf(out, "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                 "<platform version=\"4.1\"><zone id=\"grid\" routing=\"Full\">\n");
    for (uint32_t i = 0; i < ways->shape->host_count; i++)
        fprintf(out, "<host id=\"h%u\" speed=\"%.0ff\"/>\n", i, FLOPS);
    for (uint32_t i = 0; i < f.ranks * f.ranks; i++)
        if (f.streams[i] != NULL)
            for (uint32_t h = 0; h < way_of(i)->hop_count; h++)
                fprintf(out, "<host id=\"n%u-%u\" speed=\"1f\"/>\n", i, h);
    for (uint32_t i = 0; i < ways->wire_count; i++)
        fprintf(out, "<link id=\"w%u\" bandwidth=\"%.3fBps\" latency=\"0s\"/>\n", i,
                (double)ways->wires[i].wire->bandwidth / 8);
    for (uint32_t i = 0; i < f.ranks * f.ranks; i++)
        if (f.streams[i] != NULL)
            route_write(out, i);
    fprintf(out, "</zone></platform>\n");
}

static void stream_open(uint32_t pair)
{
    struct fluid_stream *s = f.streams[pair];
    const struct tb_ways *ways = f.run->ways;
    const struct tb_way *way = way_of(pair);
    char name[32];
    if (way->hop_count > HOPS_MOST)
        give_up("a way has too many hops");
    *s = (struct fluid_stream){.from = place_of(pair / f.ranks),
                               .hop_count = way->hop_count,
                               .latency = (double)way->latency / PS_PER_S,
                               .window = tb_window_bytes(way->latency, way->slowest),
                               .port = sg_mutex_init(),
                               .hold = sg_mutex_init(),
                               .heard = sg_cond_init()};
    for (uint32_t i = 0; i < way->hop_count; i++) {
        const struct tb_way_hop *hop = &ways->hops[way->first_hop + i];
        struct fluid_hop *h = &s->hops[i];
        uint64_t agent = way->agents > 0 ? ways->table->head->constants.agent_latency : 0;
        h->from = sg_host_by_name(node_name(name, pair, i, way->hop_count));
        h->to = sg_host_by_name(node_name(name, pair, i + 1, way->hop_count));
        h->latency = (double)(hop->latency + (i == 0 ? 2 : 1) * agent) / PS_PER_S;
        h->way = sg_mutex_init();
        h->bare = hop->wire_count == (i == 0 ? 1 : 0);
    }
}

/* Through a file without a name. */
static void platform_load(void)
{
    char name[64];
    int file = memfd_create("platform", MFD_CLOEXEC);
    FILE *out = file >= 0 ? fdopen(file, "w") : NULL;
    if (out == NULL)
        give_up("no file for the platform");
    for (uint32_t i = 0; i < f.ranks * f.ranks; i++)
        if (f.streams[i] != NULL)
            way_of(i); /* so that all wires are known */
    platform_write(out);
    fflush(out);
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    simgrid_load_platform(name);
    fclose(out);
}

/* What the actors share. */
static void actors_open(void)
{
    for (uint32_t i = 0; i < f.ranks * f.ranks; i++)
        if (f.streams[i] != NULL)
            stream_open(i);
    f.processors = room(f.ranks, sizeof *f.processors);
    for (uint32_t i = 0; i < f.ranks; i++)
        f.processors[i] = sg_mutex_init();
    for (uint32_t i = 0; i < f.step_count; i++)
        f.steps[i].asked = sg_cond_init();
    f.posting = sg_mutex_init();
}

static double simulate(const struct tb_simulation *run)
{
    static char *words[] = {"fluid",
                            "--log=root.thres:critical",
                            "--cfg=network/model:CM02",
                            "--cfg=network/bandwidth-factor:1",
                            "--cfg=network/latency-factor:1",
                            "--cfg=network/weight-S:0",
                            "--cfg=network/crosstraffic:0",
                            "--cfg=contexts/stack-size:64",
                            NULL};
    int count = sizeof words / sizeof words[0] - 1;
    steps_open(run);
    simgrid_init(&count, words);
    platform_load();
    actors_open();
    actor_begin(place_of(0), all_begin, NULL);
    simgrid_run();
    return f.undone == 0 ? f.end : -1;
}

double fluid_time(const struct tb_simulation *run)
{
    int ends[2];
    double seconds = -1;
    if (pipe(ends) != 0)
        give_up("no pipe");
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        give_up("no process");
    if (child == 0) {
        seconds = simulate(run);
        _exit(write(ends[1], &seconds, sizeof seconds) == sizeof seconds ? 0 : 1);
    }
    close(ends[1]);
    if (read(ends[0], &seconds, sizeof seconds) != sizeof seconds)
        seconds = -1;
    close(ends[0]);
    waitpid(child, NULL, 0);
    return seconds;
}

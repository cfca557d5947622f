/* Everyone's programs in SimGrid, in its plain fluid model: wires are links, and flows share them evenly.
 *
 * SimGrid's are the wires, how they are shared, and the time. What the simulator of src/planner assumes besides is said
 * here again, in SimGrid's words: items start as the program says; a rank does one thing after the other; a stream
 * passes its messages in order, in chunks, one wire after the other, and has one chunk at a time on each; a sender is
 * through with a message when it has passed the first wire; an agent passes on what it has; at most a window is under
 * way; long messages ask. Latencies are waited for, and not those of links, since SimGrid gives flows whose links have
 * a latency a share by that, which is a correction of its own.
 *
 * A flow crosses one wire, since in front of each there is a queue. Flows across several would pass them all at the
 * pace of the slowest, and keep busy what others could use, where streams leave a fast port for a slow link, say; but
 * what does not fit into the link waits in front of it, as much as a window has.
 *
 * Everything that happens is an actor: an item of a step, from when it may start until it is done; and a stage of a
 * stream, which chunks pass in order. SimGrid runs one of them at a time, until it calls SimGrid. */
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
#include <simgrid/semaphore.h>

#include "base/frame_size.h"
#include "planner/item_bytes.h"

#define PS_PER_S    1e12
#define FLOPS       1e9        /* of a host in a second, of which one thing at a time has all */
#define ASK_ABOVE   (2u << 20) /* bytes: longer messages ask first */
#define STAGES_MOST 32u
#define CHUNKS      64u   /* of a message at most, */
#define CHUNK_LEAST 1024u /* but none is shorter than this, */
#define CHUNK_MOST  4096u /* or longer than this, bytes */

struct fluid_step {
    const struct tb_step *about;
    uint32_t rank;
    uint32_t started, done;
    uint32_t posted, arrived; /* receives, and messages for them */
    struct fluid_step *partner;
    sg_cond_t asked; /* of a receive: senders wait until it is posted */
};

struct fluid_chunk {
    struct fluid_step *receive; /* NULL: it is not the last of its message */
    uint64_t bytes;
    double flow;  /* bytes on a wire */
    double ready; /* when it comes to the next stage */
    struct fluid_chunk *next;
};

/* A wire on the way of a stream. Behind the last one there are two more, the receiver, and the sender, which hears that
 * a chunk is there. */
struct fluid_stage {
    struct fluid_stream *stream;
    sg_host_t end;  /* of the wire; NULL: there is none */
    double latency; /* behind it, seconds */
    struct fluid_chunk *head, *tail;
    sg_sem_t waiting; /* chunks */
};

/* What one rank sends to another. */
struct fluid_stream {
    uint32_t wires; /* stages that are */
    struct fluid_stage stages[STAGES_MOST];
    uint64_t window, sent, known;
    double latency;  /* of all, seconds */
    sg_mutex_t port; /* one message at a time goes out */
    sg_mutex_t hold;
    sg_cond_t heard; /* that more is there */
};

struct fluid_item {
    struct fluid_step *step;
    uint32_t number;
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
    sg_host_t begin; /* of all wires */
    uint64_t undone; /* items */
    sg_cond_t over;
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

static sg_actor_t actor_begin(sg_host_t host, void (*code)(int, char **), void *about)
{
    sg_actor_t actor = sg_actor_init("a", host);
    sg_actor_set_data(actor, about);
    sg_actor_start(actor, code, 0, NULL);
    return actor;
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

static void chunk_add(struct fluid_stage *stage, struct fluid_chunk *c, double ready)
{
    c->ready = ready;
    c->next = NULL;
    if (stage->head == NULL)
        stage->head = c;
    else
        stage->tail->next = c;
    stage->tail = c;
    sg_sem_release(stage->waiting);
}

static struct fluid_chunk *chunk_take(struct fluid_stage *stage)
{
    sg_sem_acquire(stage->waiting);
    struct fluid_chunk *c = stage->head;
    stage->head = c->next;
    sg_actor_sleep_until(c->ready);
    return c;
}

static void wire_cross(const struct fluid_stage *stage, const struct fluid_chunk *c)
{
    if (stage->end != NULL)
        sg_host_sendto(f.begin, stage->end, c->flow);
}

static void wire_go(int argc, char **argv)
{
    struct fluid_stage *stage = sg_actor_self_get_data();
    for (;;) {
        struct fluid_chunk *c = chunk_take(stage);
        wire_cross(stage, c);
        chunk_add(stage + 1, c, simgrid_get_clock() + stage->latency);
    }
}

static void receiver_go(int argc, char **argv)
{
    struct fluid_stage *stage = sg_actor_self_get_data();
    for (;;) {
        struct fluid_chunk *c = chunk_take(stage);
        if (c->receive != NULL && ++c->receive->arrived <= c->receive->posted)
            receive_begin(c->receive);
        chunk_add(stage + 1, c, simgrid_get_clock() + stage->latency);
    }
}

static void sender_go(int argc, char **argv)
{
    struct fluid_stage *stage = sg_actor_self_get_data();
    for (;;) {
        struct fluid_chunk *c = chunk_take(stage);
        stage->stream->known += c->bytes;
        sg_cond_notify_all(stage->stream->heard);
        free(c);
    }
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
        *c = (struct fluid_chunk){.receive = at + length == bytes ? receive : NULL,
                                  .bytes = length,
                                  .flow = wire_bytes(at + length) - (at > 0 ? wire_bytes(at) : 0)};
        wire_cross(&s->stages[0], c);
        chunk_add(&s->stages[1], c, simgrid_get_clock() + s->stages[0].latency);
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
    if (f.undone == 0)
        sg_cond_notify_all(f.over);
}

/* Stages do not end, and SimGrid does when nobody else is left. */
static void all_go(int argc, char **argv)
{
    for (uint32_t i = 0; i < f.ranks; i++)
        rank_advance(i);
    sg_mutex_lock(f.posting);
    while (f.undone > 0)
        sg_cond_wait(f.over, f.posting);
    sg_mutex_unlock(f.posting);
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

/* Every wire leads from one place to one of its own. */
static void platform_write(FILE *out)
{
    const struct tb_ways *ways = f.run->ways;
    fprintf(out, "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                 "<platform version=\"4.1\"><zone id=\"grid\" routing=\"Full\">\n<host id=\"begin\" speed=\"1f\"/>\n");
    for (uint32_t i = 0; i < ways->shape->host_count; i++)
        fprintf(out, "<host id=\"h%u\" speed=\"%.0ff\"/>\n", i, FLOPS);
    for (uint32_t i = 0; i < ways->wire_count; i++)
        fprintf(out, "<host id=\"w%u\" speed=\"1f\"/>\n", i);
    for (uint32_t i = 0; i < ways->wire_count; i++)
        fprintf(out, "<link id=\"l%u\" bandwidth=\"%.3fBps\" latency=\"0s\"/>\n", i,
                (double)ways->wires[i].wire->bandwidth / 8);
    for (uint32_t i = 0; i < ways->wire_count; i++)
        fprintf(out, "<route src=\"begin\" dst=\"w%u\" symmetrical=\"NO\"><link_ctn id=\"l%u\"/></route>\n", i, i);
    fprintf(out, "</zone></platform>\n");
}

static void stage_open(struct fluid_stream *s, uint32_t wire, uint64_t latency)
{
    char name[32];
    if (s->wires + 2 == STAGES_MOST)
        give_up("a way has too many wires");
    snprintf(name, sizeof name, "w%u", wire);
    s->stages[s->wires++] = (struct fluid_stage){.end = wire != TB_COST_NONE ? sg_host_by_name(name) : NULL,
                                                 .latency = (double)latency / PS_PER_S};
}

/* The latency of a hop is behind the wire from which on it is far away, that of the agent which it leads to behind its
 * last one, and that of the sender's agent behind the first of all. */
static void stages_open(struct fluid_stream *s, uint32_t pair)
{
    const struct tb_ways *ways = f.run->ways;
    const struct tb_way *way = way_of(pair);
    uint64_t agent = way->agents > 0 ? ways->table->head->constants.agent_latency : 0;
    for (uint32_t i = 0; i < way->hop_count; i++) {
        const struct tb_way_hop *hop = &ways->hops[way->first_hop + i];
        uint32_t count = hop->wire_count > 0 ? hop->wire_count : 1, far = tb_way_hop_far(ways, hop);
        for (uint32_t k = 0; k < count; k++)
            stage_open(s,
                       hop->wire_count > 0 ? tb_way_wire(ways, hop, k, host_of(pair / f.ranks), host_of(pair % f.ranks))
                                           : TB_COST_NONE,
                       (k == far ? hop->latency : 0) + (k + 1 == count ? agent : 0) + (i + k == 0 ? agent : 0));
    }
}

static void stream_open(uint32_t pair)
{
    struct fluid_stream *s = f.streams[pair];
    const struct tb_way *way = way_of(pair);
    *s = (struct fluid_stream){.latency = (double)way->latency / PS_PER_S,
                               .window = tb_window_bytes(way->latency, way->slowest),
                               .port = sg_mutex_init(),
                               .hold = sg_mutex_init(),
                               .heard = sg_cond_init()};
    stages_open(s, pair);
    s->stages[s->wires].latency = s->latency;
    for (uint32_t i = 1; i < s->wires + 2; i++) {
        s->stages[i].stream = s;
        s->stages[i].waiting = sg_sem_init(0);
        sg_actor_daemonize(actor_begin(place_of(pair / f.ranks),
                                       i < s->wires    ? wire_go
                                       : i == s->wires ? receiver_go
                                                       : sender_go,
                                       &s->stages[i]));
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
    f.over = sg_cond_init();
    f.begin = sg_host_by_name("begin");
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
    actor_begin(place_of(0), all_go, NULL);
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

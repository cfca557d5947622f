#include "agent/border_ranks.h"

#include "agent/hop_frame.h"
#include "agent/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TURN_READS 16u        /* of one connection, before others have their turn */
#define ENDS_MOST  (1u << 18) /* connections; each takes two descriptors of the agent, which has both ends */

/* One of the connections between such a rank and the agent. Each side may have opened one of a stream. */
struct border_end {
    struct tb_list node;
    struct tb_watch watch;
    struct tb_border_rank *rank;
    enum tb_stream stream;
    uint32_t sequence_in, sequence_out;
    bool asked;  /* it was the other job that has needed it */
    size_t have; /* of `in` */
    char *out;   /* what waits */
    size_t out_start, out_end, out_room;
    char in[TB_FRAME_BUFFER_LIMIT];
};

struct tb_border_rank {
    struct tb_border_ranks *ranks;
    uint32_t index;
    bool paused; /* the owner has no room for what it is sent */
    void *by;    /* by whom its last frame has come */
    struct tb_list ends;
};

/* ---- those who are there ----------------------------------------------------------------------------------------- */

static uint32_t position(const struct tb_border_ranks *r, uint32_t index)
{
    uint32_t low = 0, high = r->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (r->all[middle]->index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* NULL: no memory. */
static struct tb_border_rank *find(struct tb_border_ranks *r, uint32_t index)
{
    uint32_t at = position(r, index);
    if (at < r->count && r->all[at]->index == index)
        return r->all[at];
    struct tb_border_rank *rank = calloc(1, sizeof *rank);
    struct tb_border_rank **grown = r->all;
    if (rank != NULL && r->count == r->room)
        grown = reallocarray(r->all, 2u * r->room + 8u, sizeof *grown);
    if (rank == NULL || grown == NULL) {
        free(rank);
        return NULL;
    }
    r->room = r->count == r->room ? 2u * r->room + 8u : r->room;
    r->all = grown;
    memmove(&grown[at + 1], &grown[at], (r->count - at) * sizeof(struct tb_border_rank *));
    grown[at] = rank;
    r->count++;
    rank->ranks = r;
    rank->index = index;
    rank->paused = !r->events.has_room(r->events.context, index);
    tb_list_init(&rank->ends);
    return rank;
}

static void end_close(struct border_end *end)
{
    struct tb_border_ranks *r = end->rank->ranks;
    int socket = end->watch.descriptor;
    tb_loop_unwatch(r->loop, &end->watch);
    close(socket);
    r->ends -= end->asked;
    tb_list_remove(&end->node);
    free(end->out);
    free(end);
}

static void rank_close(struct tb_border_rank *rank)
{
    struct border_end *end;
    TB_LIST_EACH (end, &rank->ends, struct border_end, node)
        end_close(end);
    free(rank);
}

/* ---- what the agent hands over ----------------------------------------------------------------------------------- */

static uint32_t wanted(const struct border_end *end)
{
    return (end->rank->paused ? 0u : (uint32_t)EPOLLIN) | (end->out_end > end->out_start ? (uint32_t)EPOLLOUT : 0u);
}

/* Frames that are whole. TB_ERR_CLOSED: the agent has said goodbye. */
static int take_frames(struct border_end *end)
{
    const struct tb_border_ranks *r = end->rank->ranks;
    const struct tb_proc nobody = {0};
    size_t at = 0;
    int rc = TB_OK;
    while (rc == TB_OK && end->have - at >= sizeof(struct tb_hop)) {
        struct tb_hop hop;
        rc = tb_hop_frame_look(end->in + at, nobody, end->sequence_in, &hop);
        if (rc == TB_OK && (hop.type != TB_HOP_ENVELOPE || hop.length < sizeof(struct tb_envelope) ||
                            hop.length > TB_FRAME_BUFFER_LIMIT - sizeof hop))
            rc = TB_ERR_CLOSED;
        if (rc != TB_OK || end->have - at < sizeof hop + hop.length)
            break;
        end->sequence_in++;
        rc = r->events.frame(r->events.context, end->rank->index, end->stream, end->in + at + sizeof hop, hop.length);
        at += sizeof hop + hop.length;
    }
    end->have -= at;
    memmove(end->in, end->in + at, end->have);
    return rc;
}

static int read_end(struct border_end *end)
{
    for (uint32_t i = 0; i < TURN_READS && !end->rank->paused; i++) {
        ssize_t n = recv(end->watch.descriptor, end->in + end->have, sizeof end->in - end->have, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return TB_OK;
        if (n <= 0)
            return TB_ERR_CLOSED;
        end->have += (size_t)n;
        int rc = take_frames(end);
        if (rc != TB_OK)
            return rc;
    }
    return TB_OK;
}

/* ---- what such a rank says --------------------------------------------------------------------------------------- */

static int write_end(struct border_end *end)
{
    while (end->out_end > end->out_start) {
        ssize_t n = send(end->watch.descriptor, end->out + end->out_start, end->out_end - end->out_start,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return TB_OK;
        if (n < 0)
            return TB_ERR_CLOSED;
        end->out_start += (size_t)n;
    }
    free(end->out);
    end->out = NULL;
    end->out_start = end->out_end = end->out_room = 0;
    return TB_OK;
}

static void end_ready(struct tb_watch *watch, uint32_t events)
{
    struct border_end *end = TB_CONTAINER(watch, struct border_end, watch);
    struct tb_border_ranks *r = end->rank->ranks;
    int rc = (events & EPOLLOUT) != 0 ? write_end(end) : TB_OK;
    if (rc == TB_OK && (events & ~(uint32_t)EPOLLOUT) != 0)
        rc = read_end(end);
    if (rc != TB_OK)
        end_close(end);
    else
        tb_loop_change(r->loop, &end->watch, wanted(end));
}

static int keep(struct border_end *end, const char *bytes, size_t length)
{
    size_t queued = end->out_end - end->out_start;
    if (end->out_room - end->out_end < length) {
        size_t room = 2 * (queued + length);
        char *grown = malloc(room);
        if (grown == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for messages of another job");
        if (queued > 0)
            memcpy(grown, end->out + end->out_start, queued);
        free(end->out);
        end->out = grown;
        end->out_room = room;
        end->out_start = 0;
        end->out_end = queued;
    }
    memcpy(end->out + end->out_end, bytes, length);
    end->out_end += length;
    return TB_OK;
}

static struct border_end *end_of(const struct tb_border_rank *rank, enum tb_stream stream)
{
    struct border_end *end;
    TB_LIST_EACH (end, &rank->ends, struct border_end, node)
        if (end->stream == stream)
            return end;
    return NULL;
}

/* Whether one more connection may be opened for what has come by somebody. */
static bool may_open(const struct tb_border_ranks *r, const void *by)
{
    const struct border_end *end;
    uint32_t own = 0;
    for (uint32_t i = 0; i < r->count && r->ends >= r->ends_most / 2; i++)
        if (r->all[i]->by == by)
            TB_LIST_EACH (end, &r->all[i]->ends, const struct border_end, node)
                own += end->asked;
    return r->ends < r->ends_most && own < r->ends_most / 4 * 3;
}

/* With a story. */
static int end_make(struct tb_border_rank *rank, enum tb_stream stream, struct border_end **end)
{
    struct tb_border_ranks *r = rank->ranks;
    if (!may_open(r, rank->by))
        return tb_error(TB_ERR_LIMIT, "so many of its processes send something that the agent has no descriptors left");
    r->events.connect(r->events.context, rank->index, stream);
    *end = end_of(rank, stream);
    if (*end == NULL)
        return tb_error(TB_ERR_PEER, "the agent could not pass a message of it on");
    (*end)->asked = true;
    r->ends++;
    return TB_OK;
}

int tb_border_ranks_send(struct tb_border_ranks *r, uint32_t index, void *by, enum tb_stream stream, char *bytes,
                         size_t length)
{
    struct tb_border_rank *rank = find(r, index);
    if (rank == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a process of another job");
    rank->by = by;
    struct border_end *end = end_of(rank, stream);
    int rc = end != NULL ? TB_OK : end_make(rank, stream, &end);
    if (rc != TB_OK)
        return rc;
    char *frame = bytes - sizeof(struct tb_hop);
    tb_wire_put_hop(frame,
                    &(struct tb_hop){.version = TB_WIRE_VERSION, .type = TB_HOP_ENVELOPE, .length = (uint32_t)length});
    tb_hop_frame_number(frame, end->sequence_out++, false);
    rc = keep(end, frame, sizeof(struct tb_hop) + length);
    if (rc == TB_OK && write_end(end) != TB_OK)
        rc = tb_error(TB_ERR_CLOSED, "the agent could not pass a message of it on");
    if (rc != TB_OK)
        end_close(end);
    else
        tb_loop_change(r->loop, &end->watch, wanted(end));
    return rc;
}

void tb_border_ranks_weigh(const struct tb_border_ranks *r, void (*each)(void *by, uint64_t bytes))
{
    const struct border_end *end;
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->all[i]->by == NULL)
            continue;
        uint64_t bytes = r->events.kept(r->events.context, r->all[i]->index);
        TB_LIST_EACH (end, &r->all[i]->ends, const struct border_end, node)
            bytes += end->out_end - end->out_start;
        each(r->all[i]->by, bytes);
    }
}

void tb_border_ranks_part(struct tb_border_ranks *r, const void *by)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->all[i]->by == by)
            r->all[i]->by = NULL;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

void tb_border_ranks_adopt(struct tb_border_ranks *r, uint32_t index, enum tb_stream stream, int socket)
{
    struct tb_border_rank *rank = find(r, index);
    struct border_end *end = rank != NULL ? calloc(1, sizeof *end) : NULL;
    if (end == NULL || tb_loop_watch(r->loop, &end->watch, socket, EPOLLIN, end_ready) != TB_OK) {
        free(end);
        close(socket);
        return;
    }
    end->rank = rank;
    end->stream = stream;
    tb_list_append(&rank->ends, &end->node);
    tb_loop_change(r->loop, &end->watch, wanted(end));
}

void tb_border_ranks_review(struct tb_border_ranks *r)
{
    struct border_end *end;
    for (uint32_t i = 0; i < r->count; i++) {
        struct tb_border_rank *rank = r->all[i];
        bool paused = !r->events.has_room(r->events.context, rank->index);
        if (rank->paused == paused)
            continue;
        rank->paused = paused;
        TB_LIST_EACH (end, &rank->ends, struct border_end, node)
            tb_loop_change(r->loop, &end->watch, wanted(end));
    }
}

void tb_border_ranks_keep(struct tb_border_ranks *r, bool (*known)(void *context, uint32_t rank), void *context)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (known(context, r->all[i]->index))
            r->all[kept++] = r->all[i];
        else
            rank_close(r->all[i]);
    }
    r->count = kept;
}

void tb_border_ranks_open(struct tb_border_ranks *r, struct tb_loop *loop, const struct tb_border_ranks_events *events)
{
    struct rlimit limit;
    bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < ENDS_MOST;
    *r = (struct tb_border_ranks){
        .loop = loop, .events = *events, .ends_most = known ? (uint32_t)(limit.rlim_cur / 4) : ENDS_MOST};
}

void tb_border_ranks_close(struct tb_border_ranks *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        rank_close(r->all[i]);
    free(r->all);
    *r = (struct tb_border_ranks){0};
}

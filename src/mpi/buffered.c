/* Buffered mode (MPI-5.0, 3.6). */
#include "mpi/buffered.h"

#include <stdlib.h>

#include "mpi/point.h"

#define AUTOMATIC_LIMIT (UINT64_C(1) << 32) /* bytes that MPI_BUFFER_AUTOMATIC may take */
#define ALIGNMENT       16u

/* A message in the buffer: this head, then the data. The request keeps the channel alive, so nothing else needs to. */
struct tb_segment {
    struct tb_list list; /* of the buffer, by address in the program's memory, by age in our own */
    uint64_t serial;
    uint64_t bytes;            /* head included */
    bool own;                  /* in memory of our own */
    bool pinned;               /* it is being cancelled just now, and stays whatever becomes of it */
    struct tb_pending *holder; /* may want to cancel it; NULL: nobody */
    struct tb_request request;
};
#define HEAD ((sizeof(struct tb_segment) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1))

_Static_assert(HEAD + 2 * ALIGNMENT <= MPI_BSEND_OVERHEAD, "MPI_BSEND_OVERHEAD must cover the head of a message");

struct tb_bsend {
    void *base; /* as attached */
    int64_t size;
    bool automatic;
    uint32_t references; /* one for being attached, one of each that waits for it to be flushed */
    uint64_t used;       /* bytes of all segments */
    uint64_t serial;
    struct tb_list segments;
};

/* ---- segments: all of these are called with the lock ------------------------------------------------------------- */

/* Which messages that have left are forgotten: those that nobody holds; those that could only still be cancelled; also
 * those that are being cancelled, once that is decided. */
enum forget { FORGET_LOOSE, FORGET_HELD, FORGET_ALL };

/* The message is no longer there for its holder, which keeps what became of it. */
static void part(struct tb_segment *s)
{
    if (s->holder == NULL)
        return;
    s->holder->core.status.cancelled = s->holder->cancelling && s->request.status.cancelled;
    s->holder->segment = NULL;
    s->holder = NULL;
}

static void forget_gone(struct tb_bsend *bsend, enum forget which)
{
    struct tb_segment *s;
    TB_LIST_EACH (s, &bsend->segments, struct tb_segment, list) {
        enum forget held = s->holder == NULL ? FORGET_LOOSE : s->holder->cancelling ? FORGET_ALL : FORGET_HELD;
        if (s->pinned || !tb_request_done(&s->request) || held > which)
            continue;
        part(s);
        tb_list_remove(&s->list);
        bsend->used -= s->bytes;
        if (s->own)
            free(s);
    }
}

/* The first gap in the program's memory that is long enough. `before` gets the place in the list. */
static struct tb_segment *find_gap(struct tb_bsend *bsend, uint64_t bytes, struct tb_list **before)
{
    uintptr_t at = ((uintptr_t)bsend->base + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
    uintptr_t end = (uintptr_t)bsend->base + (uintptr_t)bsend->size;
    *before = &bsend->segments;
    struct tb_segment *s;
    TB_LIST_EACH (s, &bsend->segments, struct tb_segment, list) {
        if (s->own)
            continue;
        if ((uintptr_t)s - at >= bytes) {
            *before = &s->list;
            return (struct tb_segment *)at;
        }
        at = (uintptr_t)s + s->bytes;
    }
    return end >= at && end - at >= bytes ? (struct tb_segment *)at : NULL;
}

/* Whether a message may be in our own memory. The program attaches as much as the standard's model of a circular buffer
 * needs (MPI-5.0, 3.6.1). Messages that leave in another order may have cut the free bytes of ours into smaller pieces
 * than the model has; as long as all messages together fit, that is nothing the program has to know of. */
static bool may_own(const struct tb_bsend *bsend, uint64_t bytes)
{
    uint64_t limit = bsend->automatic ? AUTOMATIC_LIMIT : (uint64_t)bsend->size;
    return bytes <= limit && bsend->used <= limit - bytes;
}

/* Room for a message of `data` bytes, entered in the list and not done; NULL: there is none. The holder is told at
 * once: as soon as the message has left, another thread may forget it. */
static struct tb_segment *take_segment(struct tb_bsend *bsend, uint64_t data, struct tb_pending *holder)
{
    uint64_t bytes = HEAD + ((data + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1));
    struct tb_list *before = &bsend->segments;
    struct tb_segment *s = NULL;
    for (int pass = 0; pass < 2 && s == NULL; pass++) {
        forget_gone(bsend, pass == 0 ? FORGET_LOOSE : FORGET_HELD);
        if (!bsend->automatic)
            s = find_gap(bsend, bytes, &before);
        else if (may_own(bsend, bytes))
            s = malloc(bytes);
    }
    bool own = bsend->automatic;
    if (s == NULL && !own && may_own(bsend, bytes)) {
        s = malloc(bytes);
        own = true;
    }
    if (s == NULL)
        return NULL;
    s->own = own;
    s->pinned = false;
    s->bytes = bytes;
    s->serial = ++bsend->serial;
    s->holder = holder;
    if (holder != NULL)
        holder->segment = s;
    bsend->used += bytes;
    tb_request_prepare(&s->request);
    __atomic_store_n((uint32_t *)&s->request.done, 0, __ATOMIC_RELAXED);
    tb_list_append(before, &s->list);
    return s;
}

static bool flushed(const struct tb_bsend *bsend, uint64_t serial)
{
    const struct tb_segment *s;
    TB_LIST_EACH (s, (struct tb_list *)&bsend->segments, struct tb_segment, list) {
        if (s->serial <= serial && (s->pinned || !tb_request_done(&s->request)))
            return false;
    }
    return true;
}

/* ---- sending and waiting ----------------------------------------------------------------------------------------- */

/* The buffer of the communicator, else of its session, else of the process. */
static struct tb_bsend *bsend_for(const struct tb_comm *comm)
{
    if (comm->bsend != NULL)
        return comm->bsend;
    return comm->session != NULL && comm->session->bsend != NULL ? comm->session->bsend : tb_self.bsend;
}

/* Looked up together with the room, since other threads attach and detach: the message keeps the buffer. `size` gets
 * that of the buffer, -1: there is none. */
static struct tb_segment *find_room(const struct tb_comm *comm, uint64_t data, struct tb_pending *holder, int64_t *size)
{
    tb_self_lock();
    struct tb_bsend *bsend = bsend_for(comm);
    struct tb_segment *s = bsend != NULL ? take_segment(bsend, data, holder) : NULL;
    *size = bsend != NULL ? bsend->size : -1;
    tb_self_unlock();
    return s;
}

/* Whether a message could be put into a buffer, however full. */
static bool has_buffer(const struct tb_comm *comm)
{
    tb_self_lock();
    bool there = bsend_for(comm) != NULL;
    tb_self_unlock();
    return there;
}

int tb_bsend_send(struct tb_comm *comm, const struct tb_buffer *buffer, uint32_t to, uint64_t match,
                  struct tb_pending *holder, const char *call)
{
    if (holder == NULL && has_buffer(comm) && tb_send_now(comm->channel, buffer, to, match, TB_MODE_STANDARD) == TB_OK)
        return MPI_SUCCESS;
    int64_t size;
    uint64_t data = tb_buffer_bytes(buffer);
    struct tb_segment *s = find_room(comm, data, holder, &size);
    if (s == NULL && size >= 0) {
        tb_engine_progress(tb_self.engine);
        s = find_room(comm, data, holder, &size);
    }
    if (s == NULL && size < 0)
        return tb_raise(comm, MPI_ERR_BUFFER, call, "no buffer is attached; see MPI_Buffer_attach");
    if (s == NULL)
        return tb_raise(comm, MPI_ERR_BUFFER, call,
                        "the attached buffer of %lld bytes has no room for a message of %llu bytes", (long long)size,
                        (unsigned long long)data);
    struct tb_buffer packed;
    tb_buffer_pack(buffer, (char *)s + HEAD, &packed);
    tb_send_post(comm->channel, &s->request, &packed, to, match, TB_MODE_STANDARD);
    return MPI_SUCCESS;
}

void tb_bsend_let_go(struct tb_pending *holder)
{
    tb_self_lock();
    if (holder->segment != NULL)
        part(holder->segment);
    tb_self_unlock();
}

/* First `cancelling`, so that the message stays in the buffer until its end is known. */
void tb_bsend_cancel(struct tb_pending *holder)
{
    tb_self_lock();
    struct tb_segment *s = holder->segment;
    holder->cancelling = s != NULL;
    if (s != NULL)
        s->pinned = true;
    tb_self_unlock();
    if (s == NULL)
        return;
    tb_request_cancel(&s->request);
    tb_self_lock();
    s->pinned = false;
    tb_self_unlock();
    if (!tb_self.single) /* somebody may wait for the buffer to be flushed */
        tb_engine_kick(tb_self.engine);
}

bool tb_bsend_cancel_decided(const struct tb_pending *holder)
{
    tb_self_lock();
    bool decided = holder->segment == NULL || tb_request_done(&holder->segment->request);
    tb_self_unlock();
    return decided;
}

bool tb_bsend_cancelled(const struct tb_pending *holder)
{
    tb_self_lock();
    const struct tb_request *message = holder->segment != NULL ? &holder->segment->request : &holder->core;
    bool cancelled = message->status.cancelled;
    tb_self_unlock();
    return cancelled;
}

bool tb_bsend_flushed(struct tb_bsend *bsend, uint64_t serial)
{
    tb_self_lock();
    bool done = flushed(bsend, serial);
    tb_self_unlock();
    return done;
}

/* Who waits for it holds the buffer. */
struct flush {
    struct tb_bsend *bsend;
    uint64_t serial;
};

static bool flush_ready(void *context)
{
    const struct flush *f = context;
    return tb_bsend_flushed(f->bsend, f->serial);
}

static void flush_wait(struct flush *f)
{
    if (!flush_ready(f))
        tb_engine_wait_in(tb_self.engine, flush_ready, f, "MPI_Buffer_flush or MPI_Buffer_detach");
}

void tb_bsend_flush(struct tb_bsend *const *place)
{
    struct flush f;
    f.bsend = tb_bsend_hold(place, &f.serial);
    if (f.bsend == NULL)
        return;
    flush_wait(&f);
    tb_bsend_release(f.bsend);
}

struct tb_bsend *tb_bsend_new(void *base, int64_t size, bool automatic)
{
    struct tb_bsend *bsend = calloc(1, sizeof *bsend);
    if (bsend == NULL)
        return NULL;
    bsend->base = base;
    bsend->size = size;
    bsend->automatic = automatic;
    bsend->references = 1;
    tb_list_init(&bsend->segments);
    return bsend;
}

bool tb_bsend_attach(struct tb_bsend **place, struct tb_bsend *bsend)
{
    tb_self_lock();
    bool empty = *place == NULL;
    if (empty)
        *place = bsend;
    tb_self_unlock();
    return empty;
}

struct tb_bsend *tb_bsend_hold(struct tb_bsend *const *place, uint64_t *serial)
{
    tb_self_lock();
    struct tb_bsend *bsend = *place;
    if (bsend != NULL)
        bsend->references++;
    *serial = bsend != NULL ? bsend->serial : 0;
    tb_self_unlock();
    return bsend;
}

void *tb_bsend_memory(const struct tb_bsend *bsend, MPI_Count *size)
{
    *size = bsend->size;
    return bsend->base;
}

/* First out of its place, so that no more messages come in. */
struct tb_bsend *tb_bsend_detach(struct tb_bsend **place)
{
    struct flush f = {.serial = UINT64_MAX};
    tb_self_lock();
    f.bsend = *place;
    *place = NULL;
    tb_self_unlock();
    if (f.bsend == NULL)
        return NULL;
    for (bool empty = false; !empty;) { /* one that has left may be cancelled just now, and is there again then */
        flush_wait(&f);
        tb_self_lock();
        forget_gone(f.bsend, FORGET_ALL);
        empty = tb_list_empty(&f.bsend->segments);
        tb_self_unlock();
    }
    return f.bsend;
}

void tb_bsend_close(struct tb_bsend **place)
{
    struct tb_bsend *bsend = tb_bsend_detach(place);
    if (bsend != NULL)
        tb_bsend_release(bsend);
}

void tb_bsend_release(struct tb_bsend *bsend)
{
    tb_self_lock();
    bool last = --bsend->references == 0;
    tb_self_unlock();
    if (last)
        free(bsend);
}

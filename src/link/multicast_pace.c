#include "link/multicast_pace.h"

#define PART           256u /* of a datagram, in which the window is counted */
#define WINDOW_LEAST   4u
#define HELD           96u /* datagrams in queues at which a window stops growing if nothing was lost for want of room, */
#define DOUBLED        64u               /* or stops doubling */
#define CROWDED        24u               /* datagrams in queues from which on a loss is for want of room */
#define OTHERS         UINT64_C(2000000) /* ns, and half of what the window takes, from which on others are in the queue */
#define HEAVY          128u              /* 1024ths that one member loses from which on it is, too */
#define WINDOW_LOSSY   16u
#define LEAST_FOR      192u              /* datagrams after which it shows whether a small window helps */
#define LOSSY          8u                /* 1024ths from which on a mark may well be lost, too */
#define QUICKEST       UINT64_C(1000000) /* ns that an answer takes at most in one network if nothing is queued */
#define QUICKEST_LEAST UINT64_C(200000)  /* and at least; less is a wrong idea of when a mark was sent */
#define PATIENCE_FIRST UINT64_C(20000000)
#define PATIENCE_LEAST UINT64_C(2000000)
#define PATIENCE_MOST  UINT64_C(200000000)

void tb_multicast_pace_open(struct tb_multicast_pace *p, uint32_t first, uint32_t most, uint64_t each)
{
    uint32_t least = most < WINDOW_LEAST ? most : WINDOW_LEAST;
    first = first < least ? least : first > most ? most : first;
    *p = (struct tb_multicast_pace){
        .window = first * PART, .most = most * PART, .each = each, .doubling = true, .quickest = QUICKEST};
}

static void note_time(struct tb_multicast_pace *p, uint64_t took)
{
    p->quickest = took < p->quickest ? took : p->quickest;
    p->quickest = p->quickest > QUICKEST_LEAST ? p->quickest : QUICKEST_LEAST;
    if (p->usual == 0) {
        p->usual = took;
        p->deviation = took / 2;
        return;
    }
    uint64_t apart = took > p->usual ? took - p->usual : p->usual - took;
    p->deviation = p->deviation - p->deviation / 4 + apart / 4;
    p->usual = p->usual - p->usual / 8 + took / 8;
}

static void grow(struct tb_multicast_pace *p, uint32_t covered, uint32_t queued)
{
    if (p->doubling && queued > DOUBLED)
        p->doubling = false;
    if (p->doubling)
        p->window += covered * PART;
    else if (p->crowded || queued < HELD)
        p->window += (uint32_t)((uint64_t)covered * PART * PART / p->window);
    if (p->window > p->most)
        p->window = p->most;
}

/* Much is lost, and a smaller window may help. */
static bool is_heavy(struct tb_multicast_pace *p, uint32_t covered)
{
    if (p->loss < HEAVY || p->immune)
        return false;
    p->least_for = p->window < 2 * WINDOW_LEAST * PART ? p->least_for + covered : 0;
    if (p->least_for < LEAST_FOR)
        return true;
    p->immune = true;
    p->window = WINDOW_LOSSY * PART < p->most ? WINDOW_LOSSY * PART : p->most;
    return false;
}

static void shrink(struct tb_multicast_pace *p)
{
    uint32_t least = WINDOW_LEAST * PART;
    p->window = p->window / 2;
    if (p->window < least)
        p->window = least;
    if (p->window > p->most)
        p->window = p->most;
    p->crowded = true;
}

/* So many of its datagrams are in queues when something is lost. */
static bool is_crowded(const struct tb_multicast_pace *p, const struct tb_multicast_pace_report *r, uint64_t waited,
                       uint32_t queued)
{
    uint64_t own = p->window / PART * p->each, others = waited > own ? waited - own : 0;
    return queued >= CROWDED && (p->each == 0 || 2 * r->several >= r->lost || others > own / 2 + OTHERS);
}

void tb_multicast_pace_report(struct tb_multicast_pace *p, const struct tb_multicast_pace_report *r)
{
    if (r->covered == 0)
        return;
    if (r->took > 0)
        note_time(p, r->took);
    p->loss = r->worst;
    uint64_t waited = r->took > p->quickest ? r->took - p->quickest : 0;
    uint32_t queued = (uint32_t)((unsigned __int128)(p->window / PART) * waited / (r->took > 0 ? r->took : 1));
    if (r->lost == 0) {
        grow(p, r->covered, queued);
        return;
    }
    p->doubling = false;
    if (!is_crowded(p, r, waited, queued) && !is_heavy(p, r->covered)) {
        grow(p, r->covered, queued);
    } else if (r->mark > p->round) {
        shrink(p);
        p->round = r->sent;
    }
}

uint32_t tb_multicast_pace_window(const struct tb_multicast_pace *p)
{
    return p->window / PART;
}

uint32_t tb_multicast_pace_mark(const struct tb_multicast_pace *p)
{
    uint32_t every = p->window / PART / (p->crowded ? 8 : p->loss > LOSSY ? 4 : 2);
    return every > 0 ? every : 1;
}

uint64_t tb_multicast_pace_patience(const struct tb_multicast_pace *p)
{
    uint64_t first = HELD * p->each > PATIENCE_FIRST ? HELD * p->each : PATIENCE_FIRST;
    uint64_t patience = p->usual == 0 ? first : p->usual + 4 * p->deviation;
    return patience < PATIENCE_LEAST ? PATIENCE_LEAST : patience > PATIENCE_MOST ? PATIENCE_MOST : patience;
}

#include "agent/replay.h"

#include <stdlib.h>

#define MS           UINT64_C(1000000)
#define PAUSE_MOST   (2000 * MS) /* between two questions without an answer */
#define ASK_AGAIN    (1000 * MS) /* while everything arrives, so that the round trip stays known */
#define EVERYWHERE   (1000 * MS) /* without an answer; then questions take all ways */
#define QUEUED_MOST  (1u << 20)  /* bytes for one host in queues */
#define QUEUED_SHARE 4u          /* all of them may fill so much of the pool */
#define ITEM_BYTES   17u         /* of a question */

static bool is_own(const struct tb_replay *r, const struct tb_far_host *host)
{
    return host->host == r->member->host;
}

static void wake(struct tb_replay *r, uint64_t when)
{
    if (when < r->due)
        r->due = when;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* Something of this pair waits. */
static void hunger(struct tb_replay *r, struct tb_replay_pair *p)
{
    for (int i = 0; i < TB_STREAM_COUNT && !p->full; i++) {
        if (tb_list_empty(&p->waiting[i]))
            continue;
        if (tb_list_empty(&p->turn[i]))
            tb_list_append(&p->host->turns[i], &p->turn[i]);
        if (tb_list_empty(&p->host->hungry))
            tb_list_append(&r->hungry, &p->host->hungry);
    }
}

/* Each host may have one frame in a queue, whatever the others have. Short ones are few, and somebody waits for them:
 * they need no room on their way. */
static bool may_send(const struct tb_replay *r, const struct tb_far_host *host, const struct tb_frame_buffer *b)
{
    size_t queued = host->queued[b->stream];
    if (is_own(r, host))
        return true;
    if (queued > 0 &&
        (queued + b->weight > QUEUED_MOST || r->queued[b->stream] + b->weight > r->pool->limit / QUEUED_SHARE))
        return false;
    bool relayed = tb_member_route(r->member, host->host)->means == TB_HOST_ROUTE_RELAYED;
    return b->stream == TB_STREAM_SHORT || !relayed || host->under_way == 0 ||
           host->under_way + b->weight <= host->room;
}

static void count_queued(struct tb_replay *r, struct tb_far_host *host, const struct tb_frame_buffer *b, bool in)
{
    host->queued[b->stream] += in ? b->weight : -(size_t)b->weight;
    r->queued[b->stream] += in ? b->weight : -(size_t)b->weight;
}

static void count_in(struct tb_replay *r, struct tb_far_host *host, const struct tb_frame_buffer *b)
{
    if (b->stream == TB_STREAM_BULK)
        tb_far_host_load(host, b->via, b->weight);
    if (b->state != TB_FRAME_OUT)
        count_queued(r, host, b, true);
}

/* Takes it out of what is under way and queued. */
static void take_back(struct tb_replay *r, struct tb_far_host *host, const struct tb_frame_buffer *b)
{
    if (b->state == TB_FRAME_WAITS)
        return;
    if (b->stream == TB_STREAM_BULK)
        tb_far_host_unload(host, b->via, b->weight);
    if (b->state != TB_FRAME_OUT)
        count_queued(r, host, b, false);
}

/* It is there, or need not be. */
static void let_go(struct tb_replay *r, struct tb_replay_pair *p, struct tb_frame_buffer *b)
{
    take_back(r, p->host, b);
    p->account->all -= tb_replay_cost(b);
    p->account->shared -= b->charge == TB_FRAME_SHARED ? tb_replay_cost(b) : 0;
    p->data -= b->charge != TB_FRAME_LINK;
    r->kept -= b->weight;
    *tb_replay_pair_slot(p, b->number) = NULL;
    tb_frame_buffer_release(r->pool, b);
}

/* Nothing is missing of this pair. */
static void pair_rest(struct tb_replay_pair *p)
{
    struct tb_far_host *host = p->host;
    if (p->first != p->next || tb_list_empty(&p->sending))
        return;
    tb_list_remove(&p->sending);
    host->sending_count--;
    if (!tb_list_empty(&host->sending))
        return;
    tb_list_remove(&host->busy);
    host->ask_at = host->check_at = TB_NEVER;
    host->asked_at = 0;
    host->asks = 0;
    tb_far_host_calm(host);
}

static void advance(struct tb_replay_pair *p)
{
    tb_replay_pair_advance(p);
    pair_rest(p);
}

static bool send_first(struct tb_replay *r, struct tb_replay_pair *p, enum tb_stream stream)
{
    struct tb_far_host *host = p->host;
    struct tb_frame_buffer *b = TB_CONTAINER(p->waiting[stream].next, struct tb_frame_buffer, node);
    if (!may_send(r, host, b))
        return false;
    tb_list_remove(&b->node);
    b->state = TB_FRAME_OUT;
    if (!r->events.send(r->events.context, host, b)) {
        b->state = TB_FRAME_WAITS;
        tb_list_prepend(&p->waiting[stream], &b->node);
        return false;
    }
    if (is_own(r, host)) { /* whoever has it there hands it over, and nothing can get lost */
        uint32_t number = b->number;
        count_in(r, host, b);
        let_go(r, p, b);
        tb_replay_pair_note(p, number);
        advance(p);
        return true;
    }
    uint64_t now = tb_loop_now(r->member->loop);
    tb_far_host_use(host, b->via);
    r->repeated += b->sends > 0;
    b->sends += b->sends < UINT8_MAX;
    b->sent_at = now;
    b->first_at = b->first_at != 0 ? b->first_at : now;
    count_in(r, host, b);
    return true;
}

static uint32_t length_of(const struct tb_list *list)
{
    uint32_t count = 0;
    for (const struct tb_list *l = list->next; l != list; l = l->next)
        count++;
    return count;
}

/* Sending may end connections and bring others back to wait here: nothing is held across it, but for those whose rank
 * of this host takes nothing; others of them may. */
static void feed_stream(struct tb_replay *r, struct tb_far_host *host, enum tb_stream stream)
{
    struct tb_list *turns = &host->turns[stream], passed_over;
    tb_list_init(&passed_over);
    while (!tb_list_empty(turns)) {
        struct tb_replay_pair *p = TB_CONTAINER(turns->next, struct tb_replay_pair, turn[stream]);
        bool sent = tb_list_empty(&p->waiting[stream]) || send_first(r, p, stream);
        if (!sent && !is_own(r, host))
            break;
        tb_list_remove(&p->turn[stream]); /* the others, too */
        if (!tb_list_empty(&p->waiting[stream]) && !p->full)
            tb_list_append(sent ? turns : &passed_over, &p->turn[stream]);
    }
    while (!tb_list_empty(&passed_over)) {
        struct tb_list *first = passed_over.next;
        tb_list_remove(first);
        tb_list_append(turns, first);
    }
}

static void feed(struct tb_replay *r, struct tb_far_host *host)
{
    feed_stream(r, host, TB_STREAM_SHORT);
    feed_stream(r, host, TB_STREAM_BULK);
    if (tb_list_empty(&host->turns[TB_STREAM_SHORT]) && tb_list_empty(&host->turns[TB_STREAM_BULK]))
        tb_list_remove(&host->hungry);
}

static void feed_all(struct tb_replay *r)
{
    uint32_t count = length_of(&r->hungry);
    while (count-- > 0 && !tb_list_empty(&r->hungry)) {
        struct tb_far_host *host = TB_CONTAINER(r->hungry.next, struct tb_far_host, hungry);
        tb_list_remove(&host->hungry);
        tb_list_append(&r->hungry, &host->hungry);
        feed(r, host);
    }
}

/* ---- keeping ----------------------------------------------------------------------------------------------------- */

static struct tb_far_host *host_find(struct tb_replay *r, uint32_t number)
{
    if (r->hosts == NULL) {
        r->hosts = calloc(r->member->book->host_count, sizeof(struct tb_far_host *));
        r->host_count = r->hosts != NULL ? r->member->book->host_count : 0;
    }
    if (number >= r->host_count)
        return NULL;
    if (r->hosts[number] == NULL && (r->hosts[number] = malloc(sizeof(struct tb_far_host))) != NULL)
        tb_far_host_open(r->hosts[number], number);
    return r->hosts[number];
}

static struct tb_replay_pair *pair_find(struct tb_replay *r, uint32_t source, uint32_t destination,
                                        struct tb_replay_account *account)
{
    struct tb_replay_pair *p =
        (struct tb_replay_pair *)tb_pair_table_make(&r->pairs, source, destination, sizeof(struct tb_replay_pair));
    if (p == NULL || p->host != NULL)
        return p;
    struct tb_far_host *host = host_find(r, tb_address_book_host_of(r->member->book, destination));
    if (host == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for what rank %u sends to rank %u", source, destination);
        return NULL;
    }
    tb_replay_pair_open(p, host, account);
    return p;
}

static void pair_begin(struct tb_replay *r, struct tb_replay_pair *p)
{
    struct tb_far_host *host = p->host;
    if (!tb_list_empty(&p->sending))
        return;
    tb_list_append(&host->sending, &p->sending);
    host->sending_count++;
    if (!tb_list_empty(&host->busy) || is_own(r, host))
        return;
    tb_list_append(&r->busy, &host->busy);
    uint64_t now = tb_loop_now(r->member->loop);
    host->ask_at = host->round_trip == 0 ? now : now + host->patience;
    wake(r, host->ask_at);
}

/* A rank may send the only frame of a pair, and those of kind LINK, though others have used up its share. So a frame is
 * charged to that only if another one of its pair is kept: whichever of the two was sent later was sent when there was
 * room for both, and whatever this agent has let go, or reads late of the other stream, makes the sum no larger. */
static int charge(struct tb_replay_pair *p, const struct tb_message *message, struct tb_frame_buffer *b, uint64_t most)
{
    bool link = message->kind == TB_KIND_LINK && b->length == TB_FRAME_BUFFER_HEAD;
    b->charge = link ? TB_FRAME_LINK : p->data == 0 ? TB_FRAME_ONLY : TB_FRAME_SHARED;
    uint64_t cost = tb_replay_cost(b), shared = b->charge == TB_FRAME_SHARED ? cost : 0;
    if (shared > 0 && p->account->shared + shared > most)
        return tb_error(TB_ERR_PROTOCOL, "rank %u sent nonsense to its agent: more than may be on its way",
                        b->source.index);
    p->account->all += cost;
    p->account->shared += shared;
    p->data += !link;
    return TB_OK;
}

int tb_replay_keep(struct tb_replay *r, const struct tb_envelope *envelope, struct tb_frame_buffer *b,
                   struct tb_replay_account *account, uint64_t most)
{
    uint32_t number = envelope->routing.sequence;
    struct tb_replay_pair *p = pair_find(r, b->source.index, b->destination.index, account);
    int rc = p == NULL ? TB_ERR_MEMORY : TB_OK;
    int32_t ahead = p != NULL ? tb_replay_distance(p->first, number) : 0;
    if (rc == TB_OK && ahead >= (int32_t)TB_REPLAY_WINDOW)
        rc = tb_error(TB_ERR_PROTOCOL, "a frame that is too far ahead of those before it");
    bool known = rc == TB_OK && (ahead < 0 || tb_replay_pair_has(p, number));
    if (rc == TB_OK && !known && !tb_replay_pair_make_room(p, number))
        rc = tb_error(TB_ERR_MEMORY, "no memory for what rank %u sends", b->source.index);
    known = known || (rc == TB_OK && *tb_replay_pair_slot(p, number) != NULL);
    if (rc == TB_OK && !known)
        rc = charge(p, &envelope->message, b, most);
    if (rc != TB_OK || known) {
        tb_frame_buffer_free(r->pool, b);
        return rc;
    }
    b->number = number;
    b->keeper = p;
    b->state = TB_FRAME_WAITS;
    *tb_replay_pair_slot(p, number) = b;
    if (tb_replay_distance(p->next, number) >= 0)
        p->next = number + 1;
    r->kept += b->weight;
    r->kept_most = r->kept > r->kept_most ? r->kept : r->kept_most;
    pair_begin(r, p);
    tb_list_append(&p->waiting[b->stream], &b->node);
    hunger(r, p);
    feed(r, p->host);
    return TB_OK;
}

void tb_replay_return(struct tb_replay *r, struct tb_frame_buffer *b)
{
    struct tb_replay_pair *p = b->keeper;
    take_back(r, p->host, b);
    b->state = TB_FRAME_WAITS;
    tb_list_remove(&b->node);
    tb_list_append(&p->waiting[b->stream], &b->node);
    hunger(r, p);
}

void tb_replay_move(struct tb_replay *r, struct tb_frame_buffer *b, uint32_t via)
{
    struct tb_far_host *host = b->keeper->host;
    if (b->stream == TB_STREAM_BULK) {
        tb_far_host_unload(host, b->via, b->weight);
        tb_far_host_load(host, via, b->weight);
    }
    tb_far_host_use(host, via);
    b->via = via;
}

/* What has left its queue, or was dropped from it, was sent just now. */
static void count_left(struct tb_replay *r)
{
    uint64_t now = tb_list_empty(&r->pool->left) ? 0 : tb_loop_now(r->member->loop);
    while (!tb_list_empty(&r->pool->left)) {
        struct tb_frame_buffer *b = TB_CONTAINER(r->pool->left.next, struct tb_frame_buffer, node);
        tb_list_remove(&b->node);
        count_queued(r, b->keeper->host, b, false);
        b->state = TB_FRAME_OUT;
        b->sent_at = now;
    }
}

void tb_replay_settle(struct tb_replay *r)
{
    count_left(r);
    if (!tb_list_empty(&r->hungry))
        feed_all(r);
}

/* ---- what has arrived -------------------------------------------------------------------------------------------- */

/* One number is there; `heard`: its agent says so, just now. */
static void one_arrived(struct tb_replay *r, struct tb_replay_pair *p, uint32_t number, bool heard, uint64_t now)
{
    struct tb_frame_buffer *b = p->room > 0 ? *tb_replay_pair_slot(p, number) : NULL;
    if (b == NULL || b->number != number)
        return;
    struct tb_far_host *host = p->host;
    if (b->sends == 1)
        tb_far_host_outcome(host, b->via, b->sent_at, true, now);
    /* One that was sent again may have been late only, which shows if its last sending cannot have been answered. */
    if (heard && host->asks < 2 && b->sends > 0 && (b->sends == 1 || now - b->sent_at < host->round_trip / 2))
        tb_far_host_took(host, now - b->first_at);
    if (b->state == TB_FRAME_WAITS)
        tb_list_remove(&b->node);
    tb_far_host_widen(host, b->weight);
    let_go(r, p, b);
}

static void all_arrived(struct tb_replay *r, struct tb_replay_pair *p, uint32_t up_to, bool heard, uint64_t now)
{
    if (tb_replay_distance(p->first, up_to) < 0 || tb_replay_distance(up_to, p->next) <= 0)
        return; /* an old one, or one that cannot be */
    for (uint32_t s = p->first; tb_replay_distance(s, up_to) >= 0; s++)
        one_arrived(r, p, s, heard, now);
    tb_replay_pair_advance_to(p, up_to);
    if (tb_replay_distance(p->latest, up_to) > 0)
        p->latest = up_to;
}

void tb_replay_arrived(struct tb_replay *r, uint32_t source, uint32_t destination, uint32_t up_to)
{
    struct tb_replay_pair *p = (struct tb_replay_pair *)tb_pair_table_find(&r->pairs, source, destination);
    if (p == NULL || p->host == NULL || p->first == p->next)
        return;
    all_arrived(r, p, up_to, false, tb_loop_now(r->member->loop));
    advance(p);
}

/* Bit i stands for the number i + 2 beyond `up_to`, as the next one is not there. */
static void some_arrived(struct tb_replay *r, struct tb_replay_pair *p, uint32_t up_to, const uint8_t *bits,
                         size_t length, uint64_t now)
{
    for (size_t i = 0; i < 8 * length; i++) {
        uint32_t number = up_to + 2 + (uint32_t)i;
        if ((bits[i / 8] >> i % 8 & 1) == 0 || tb_replay_distance(p->first, number) < 0)
            continue;
        if (tb_replay_distance(number, p->next) <= 0)
            return;
        one_arrived(r, p, number, true, now);
        tb_replay_pair_note(p, number);
        if (tb_replay_distance(p->latest, number) > 0)
            p->latest = number;
    }
}

/* When a frame that is on its way counts as lost; TB_NEVER: nothing speaks for that yet. */
static uint64_t lost_at(const struct tb_replay_pair *p, const struct tb_frame_buffer *b)
{
    uint64_t broken = tb_far_host_broken_at(p->host, b->via);
    if (broken >= b->sent_at && p->proved > broken)
        return 0;
    if (tb_replay_distance(b->number, p->latest) > 0 || b->sent_at < p->proved)
        return p->host->round_trip > 0 ? b->sent_at + tb_far_host_answer_time(p->host) : TB_NEVER;
    return TB_NEVER;
}

/* What is lost is to go again, before what has not been sent yet. */
static void find_lost(struct tb_replay *r, struct tb_replay_pair *p, uint64_t now)
{
    struct tb_far_host *host = p->host;
    struct tb_list lost;
    if (p->full || p->first == p->next)
        return;
    tb_list_init(&lost);
    for (uint32_t s = p->first; s != p->next; s++) {
        struct tb_frame_buffer *b = *tb_replay_pair_slot(p, s);
        if (b == NULL || b->state != TB_FRAME_OUT)
            continue;
        uint64_t when = lost_at(p, b);
        if (when > now) {
            host->check_at = when < host->check_at ? when : host->check_at;
            continue;
        }
        tb_far_host_outcome(host, b->via, b->sent_at, false, now);
        tb_far_host_narrow(host, b->sent_at, now);
        take_back(r, host, b);
        b->state = TB_FRAME_WAITS;
        tb_list_append(&lost, &b->node);
    }
    wake(r, host->check_at);
    while (!tb_list_empty(&lost)) {
        struct tb_list *last = lost.prev;
        tb_list_remove(last);
        tb_list_prepend(&p->waiting[TB_CONTAINER(last, struct tb_frame_buffer, node)->stream], last);
    }
    hunger(r, p);
}

static void take_item(struct tb_replay *r, struct tb_far_host *host, uint64_t echo, struct tb_reader *items,
                      uint64_t now)
{
    uint32_t source = tb_get_u32(items), destination = tb_get_u32(items), up_to = tb_get_u32(items);
    uint8_t flags = tb_get_u8(items);
    size_t length = 0;
    const uint8_t *bits = tb_get_bytes(items, &length);
    struct tb_replay_pair *p =
        items->error == TB_OK ? (struct tb_replay_pair *)tb_pair_table_find(&r->pairs, source, destination) : NULL;
    if (p == NULL || p->host != host || p->first == p->next)
        return; /* nothing is missing */
    if (echo > p->proved)
        p->proved = echo;
    all_arrived(r, p, up_to, true, now);
    some_arrived(r, p, up_to, bits, length, now);
    advance(p);
    p->full = (flags & TB_HOST_FRAME_FULL) != 0;
    for (int i = 0; i < TB_STREAM_COUNT && p->full; i++)
        tb_list_remove(&p->turn[i]);
    hunger(r, p);
    find_lost(r, p, now);
}

void tb_replay_take(struct tb_replay *r, uint32_t number, uint64_t echo, struct tb_reader *items)
{
    struct tb_far_host *host = number < r->host_count ? r->hosts[number] : NULL;
    if (host == NULL)
        return;
    uint64_t now = tb_loop_now(r->member->loop);
    if (echo > host->last_asked)
        echo = 0; /* no question of ours */
    if (echo > host->answered) {
        host->answered = echo;
        tb_far_host_learn(host, now - echo);
        host->asked_at = 0;
        host->asks = 0;
        tb_far_host_calm(host);
    }
    while (items->error == TB_OK && items->at < items->length)
        take_item(r, host, echo, items, now);
    if (!tb_list_empty(&host->busy) && host->asks == 0) {
        uint64_t again = host->last_asked + ASK_AGAIN > now ? host->last_asked + ASK_AGAIN : now;
        host->ask_at = now + host->patience < again ? now + host->patience : again;
        wake(r, host->ask_at);
    }
    if (!tb_list_empty(&host->hungry))
        feed(r, host);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

/* The stream that the oldest one took, so that the question comes behind it. */
static enum tb_stream oldest_stream(const struct tb_far_host *host)
{
    const struct tb_replay_pair *p = TB_CONTAINER(host->sending.next, struct tb_replay_pair, sending);
    for (uint32_t s = p->first; s != p->next; s++) {
        const struct tb_frame_buffer *b = *tb_replay_pair_slot(p, s);
        if (b != NULL)
            return (enum tb_stream)b->stream;
    }
    return TB_STREAM_SHORT;
}

static void ask(struct tb_replay *r, struct tb_far_host *host, uint64_t now)
{
    const struct tb_replay_pair *p;
    struct tb_writer items;
    bool everywhere = host->asks >= 2 && now - host->asked_at > EVERYWHERE;
    enum tb_stream stream = oldest_stream(host);
    host->last_asked = now;
    host->asked_at = host->asks == 0 ? now : host->asked_at;
    host->patience = host->asks == 0 ? host->patience : 2 * host->patience;
    host->patience = host->patience < PAUSE_MOST ? host->patience : PAUSE_MOST;
    host->asks++;
    host->ask_at = now + host->patience;
    wake(r, host->ask_at);
    r->questions++;
    tb_writer_open(&items);
    TB_LIST_EACH (p, &host->sending, struct tb_replay_pair, sending) {
        tb_put_u32(&items, p->pair.source);
        tb_put_u32(&items, p->pair.destination);
        tb_put_u32(&items, p->next - 1);
        tb_put_u8(&items, 0);
        tb_put_bytes(&items, NULL, 0);
        if (items.length + ITEM_BYTES <= TB_RELAY_PAYLOAD)
            continue;
        r->events.ask(r->events.context, host, stream, everywhere, now, &items);
        items.length = 0;
    }
    if (items.length > 0 && items.error == TB_OK)
        r->events.ask(r->events.context, host, stream, everywhere, now, &items);
    tb_writer_close(&items);
}

static void check(struct tb_replay *r, struct tb_far_host *host, uint64_t now)
{
    struct tb_replay_pair *p;
    host->check_at = TB_NEVER;
    TB_LIST_EACH (p, &host->sending, struct tb_replay_pair, sending)
        find_lost(r, p, now);
}

void tb_replay_tick(struct tb_replay *r)
{
    uint64_t now = tb_loop_now(r->member->loop);
    struct tb_far_host *host;
    TB_LIST_EACH (host, &r->busy, struct tb_far_host, busy) {
        if (host->check_at <= now)
            check(r, host, now);
        if (host->ask_at <= now)
            ask(r, host, now);
    }
    r->due = TB_NEVER;
    TB_LIST_EACH (host, &r->busy, struct tb_far_host, busy) {
        wake(r, host->ask_at);
        wake(r, host->check_at);
    }
    feed_all(r);
}

void tb_replay_hurry(struct tb_replay *r, uint32_t via, bool broken)
{
    uint64_t now = tb_loop_now(r->member->loop);
    struct tb_far_host *host;
    count_left(r); /* what has left before has been sent before */
    TB_LIST_EACH (host, &r->busy, struct tb_far_host, busy) {
        if (via != TB_REPLAY_ALL && !tb_far_host_uses(host, via))
            continue;
        if (broken)
            tb_far_host_broken(host, via, now);
        tb_far_host_calm(host);
        host->ask_at = now + 1;
        wake(r, host->ask_at);
    }
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

int tb_replay_open(struct tb_replay *r, const struct tb_member *member, struct tb_frame_pool *pool,
                   const struct tb_replay_events *events)
{
    *r = (struct tb_replay){.member = member, .pool = pool, .events = *events, .due = TB_NEVER};
    tb_list_init(&r->busy);
    tb_list_init(&r->hungry);
    return TB_OK;
}

void tb_replay_close(struct tb_replay *r)
{
    struct tb_pair *pair;
    for (uint32_t i = 0; (pair = tb_pair_table_next(&r->pairs, &i)) != NULL;) {
        struct tb_replay_pair *p = (struct tb_replay_pair *)pair;
        for (uint32_t s = p->first; s != p->next; s++) {
            struct tb_frame_buffer *b = *tb_replay_pair_slot(p, s);
            if (b != NULL)
                tb_frame_buffer_release(r->pool, b);
        }
        tb_replay_pair_close(p);
    }
    tb_pair_table_close(&r->pairs);
    for (uint32_t i = 0; i < r->host_count; i++)
        free(r->hosts[i]);
    free(r->hosts);
    *r = (struct tb_replay){0};
}

#include "agent/receipts.h"

#include "wire/wire.h"

#include <stdlib.h>

#define DELAY_NS    2000000u     /* so long others may join a receipt; */
#define FRAMES_MOST 128u         /* not when it stands for so many frames */
#define BYTES_MOST  (512u << 10) /* or bytes */
#define ITEM_BYTES  (17u + TB_RECEIPTS_WINDOW / 8)

struct tb_receipt_pair {
    struct tb_pair pair;
    struct tb_list owed;                    /* in the host's list: it is to be told */
    struct tb_list refused;                 /* in the list of all: there was no room */
    uint32_t up_to;                         /* all up to this number are here */
    uint32_t beyond;                        /* how many later ones are */
    uint64_t here[TB_RECEIPTS_WINDOW / 64]; /* which: bits by number */
};

struct tb_receipt_host {
    uint32_t host;
    struct tb_list owing; /* in the list of all */
    struct tb_list pairs; /* about which something is owed */
    uint32_t frames;
    size_t bytes;
    uint64_t by;
};

static bool is_here(const struct tb_receipt_pair *p, uint32_t number)
{
    return (p->here[number % TB_RECEIPTS_WINDOW / 64] >> number % 64 & 1) != 0;
}

static struct tb_receipt_host *host_find(struct tb_receipts *r, uint32_t number)
{
    if (r->hosts == NULL) {
        r->hosts = calloc(r->member->book->host_count, sizeof(struct tb_receipt_host *));
        r->host_count = r->hosts != NULL ? r->member->book->host_count : 0;
    }
    if (number >= r->host_count)
        return NULL;
    if (r->hosts[number] != NULL)
        return r->hosts[number];
    struct tb_receipt_host *host = calloc(1, sizeof *host);
    if (host == NULL)
        return NULL;
    host->host = number;
    tb_list_init(&host->owing);
    tb_list_init(&host->pairs);
    return r->hosts[number] = host;
}

static struct tb_receipt_pair *pair_look(const struct tb_receipts *r, uint32_t source, uint32_t destination)
{
    return (struct tb_receipt_pair *)tb_pair_table_find(&r->pairs, source, destination);
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

/* Bit i stands for the number i + 2 beyond `up_to`, as the next one is not here. */
static void put_item(struct tb_writer *items, uint32_t source, uint32_t destination, const struct tb_receipt_pair *p)
{
    uint8_t bits[TB_RECEIPTS_WINDOW / 8] = {0};
    size_t length = 0;
    uint32_t seen = 0;
    for (uint32_t i = 0; p != NULL && seen < p->beyond && i < TB_RECEIPTS_WINDOW - 1; i++)
        if (is_here(p, p->up_to + 2 + i)) {
            bits[i / 8] = (uint8_t)(bits[i / 8] | 1u << i % 8);
            length = i / 8 + 1;
            seen++;
        }
    tb_put_u32(items, source);
    tb_put_u32(items, destination);
    tb_put_u32(items, p != NULL ? p->up_to : 0);
    tb_put_u8(items, p != NULL && !tb_list_empty(&p->refused) ? TB_HOST_FRAME_FULL : 0);
    tb_put_bytes(items, bits, length);
}

static void tell_some(struct tb_receipts *r, uint32_t host, uint64_t echo, struct tb_writer *items, size_t most)
{
    if (items->length <= most || items->error != TB_OK)
        return;
    r->told++;
    r->events.tell(r->events.context, host, echo, items);
    items->length = 0;
}

static void tell_owed(struct tb_receipts *r, struct tb_receipt_host *host)
{
    struct tb_writer items;
    tb_writer_open(&items);
    while (!tb_list_empty(&host->pairs)) {
        struct tb_receipt_pair *p = TB_CONTAINER(host->pairs.next, struct tb_receipt_pair, owed);
        tb_list_remove(&p->owed);
        put_item(&items, p->pair.source, p->pair.destination, p);
        tell_some(r, host->host, 0, &items, TB_RELAY_PAYLOAD - ITEM_BYTES);
    }
    tell_some(r, host->host, 0, &items, 0);
    tb_writer_close(&items);
    tb_list_remove(&host->owing);
    host->frames = 0;
    host->bytes = 0;
}

static void owe(struct tb_receipts *r, struct tb_receipt_pair *p, uint32_t bytes)
{
    struct tb_receipt_host *host = host_find(r, tb_address_book_host_of(r->member->book, p->pair.source));
    if (host == NULL)
        return; /* it will be asked for */
    if (tb_list_empty(&p->owed))
        tb_list_append(&host->pairs, &p->owed);
    if (tb_list_empty(&host->owing)) {
        tb_list_append(&r->owing, &host->owing);
        host->by = tb_loop_now(r->member->loop) + DELAY_NS;
        r->due = host->by < r->due ? host->by : r->due;
    }
    host->frames++;
    host->bytes += bytes;
    if (host->frames >= FRAMES_MOST || host->bytes >= BYTES_MOST)
        tell_owed(r, host);
}

void tb_receipts_tick(struct tb_receipts *r)
{
    uint64_t now = tb_loop_now(r->member->loop);
    struct tb_receipt_host *host;
    r->due = TB_NEVER;
    TB_LIST_EACH (host, &r->owing, struct tb_receipt_host, owing) {
        if (host->by <= now)
            tell_owed(r, host);
        else if (host->by < r->due)
            r->due = host->by;
    }
}

void tb_receipts_answer(struct tb_receipts *r, uint32_t host, uint64_t clock, struct tb_reader *asked)
{
    const struct tb_address_book *book = r->member->book;
    struct tb_writer items;
    tb_writer_open(&items);
    while (asked->error == TB_OK && asked->at < asked->length) {
        uint32_t source = tb_get_u32(asked), destination = tb_get_u32(asked);
        tb_get_u32(asked);
        tb_get_u8(asked);
        size_t length;
        tb_get_bytes(asked, &length);
        if (asked->error != TB_OK || !tb_address_book_knows(book, source) ||
            tb_address_book_host_of(book, source) != host)
            continue;
        struct tb_receipt_pair *p = pair_look(r, source, destination);
        if (p != NULL)
            tb_list_remove(&p->owed);
        put_item(&items, source, destination, p);
        tell_some(r, host, clock, &items, TB_RELAY_PAYLOAD - ITEM_BYTES);
    }
    tell_some(r, host, clock, &items, 0);
    tb_writer_close(&items);
}

/* ---- what has come ----------------------------------------------------------------------------------------------- */

enum tb_receipt_news tb_receipts_look(struct tb_receipts *r, uint32_t source, uint32_t destination, uint32_t number)
{
    struct tb_receipt_pair *p = pair_look(r, source, destination);
    int32_t ahead = (int32_t)(number - (p != NULL ? p->up_to : 0) - 1);
    if (ahead >= (int32_t)TB_RECEIPTS_WINDOW)
        return TB_RECEIPT_BEYOND;
    if (p == NULL)
        return ahead < 0 ? TB_RECEIPT_BEYOND : TB_RECEIPT_NEW;
    if (ahead >= 0 && !is_here(p, number))
        return TB_RECEIPT_NEW;
    r->twice++;
    owe(r, p, 0);
    return TB_RECEIPT_KNOWN;
}

/* Made if there is none. NULL: no memory. */
static struct tb_receipt_pair *pair_find(struct tb_receipts *r, uint32_t source, uint32_t destination)
{
    struct tb_receipt_pair *p = pair_look(r, source, destination);
    if (p != NULL)
        return p;
    p = (struct tb_receipt_pair *)tb_pair_table_make(&r->pairs, source, destination, sizeof *p);
    if (p != NULL) {
        tb_list_init(&p->owed);
        tb_list_init(&p->refused);
    }
    return p;
}

void tb_receipts_refuse(struct tb_receipts *r, uint32_t source, uint32_t destination)
{
    struct tb_receipt_pair *p = pair_find(r, source, destination);
    if (p == NULL)
        return;
    if (tb_list_empty(&p->refused))
        tb_list_append(&r->refused, &p->refused);
    owe(r, p, 0);
}

void tb_receipts_settle(struct tb_receipts *r)
{
    struct tb_receipt_pair *p;
    TB_LIST_EACH (p, &r->refused, struct tb_receipt_pair, refused)
        if (r->events.has_room(r->events.context, p->pair.destination)) {
            tb_list_remove(&p->refused);
            owe(r, p, BYTES_MOST); /* at once */
        }
}

int tb_receipts_note(struct tb_receipts *r, uint32_t source, uint32_t destination, uint32_t number, uint32_t bytes)
{
    struct tb_receipt_pair *p = pair_find(r, source, destination);
    if (p == NULL)
        return TB_ERR_MEMORY;
    p->here[number % TB_RECEIPTS_WINDOW / 64] |= UINT64_C(1) << number % 64;
    p->beyond++;
    while (p->beyond > 0 && is_here(p, p->up_to + 1)) {
        p->up_to++;
        p->beyond--;
        p->here[p->up_to % TB_RECEIPTS_WINDOW / 64] &= ~(UINT64_C(1) << p->up_to % 64);
    }
    owe(r, p, bytes);
    return TB_OK;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

void tb_receipts_open(struct tb_receipts *r, const struct tb_member *member, const struct tb_receipts_events *events)
{
    *r = (struct tb_receipts){.member = member, .events = *events, .due = TB_NEVER};
    tb_list_init(&r->owing);
    tb_list_init(&r->refused);
}

void tb_receipts_close(struct tb_receipts *r)
{
    tb_pair_table_close(&r->pairs);
    for (uint32_t i = 0; i < r->host_count; i++)
        free(r->hosts[i]);
    free(r->hosts);
    *r = (struct tb_receipts){0};
}

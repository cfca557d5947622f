#include "transport/shm/board.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transport/shm/doorbell.h"
#include "transport/shm/segment.h"
#include "transport/transport.h"

_Static_assert(sizeof(struct tb_board_member) == TB_BOARD_CELLS_AT, "cells come behind what was done");
_Static_assert(sizeof(struct tb_board_line) * TB_BOARD_COLUMNS * TB_BOARD_COUNTERS ==
                   TB_BOARD_COUNTERS_END - TB_BOARD_COUNTERS_AT,
               "counters come behind the cells");
_Static_assert(TB_BOARD_SLOTS == 16, "four bits tell a slot, and a word those of as many fragments");

static void debts_pay(struct tb_transport *transport);

/* ---- claiming ---------------------------------------------------------------------------------------------------- */

static struct tb_board_head *heads_of(const struct tb_transport_config *config)
{
    return (struct tb_board_head *)tb_shm_boards_of(config->segment, config->local_count);
}

static bool head_claim(struct tb_board_head *head, const struct tb_board_key *key)
{
    uint64_t nobody = 0;
    if (atomic_load_explicit(&head->context, memory_order_relaxed) != 0)
        return false;
    if (key->kept == 0)
        return atomic_compare_exchange_strong(&head->context, &nobody, key->context);
    if (!atomic_compare_exchange_strong(&head->context, &nobody, TB_BOARD_TAKING))
        return false;
    atomic_store_explicit(&head->kept, key->kept, memory_order_relaxed);
    atomic_store_explicit(&head->context, key->context, memory_order_release);
    return true;
}

void tb_board_claim(struct tb_transport *transport, const struct tb_board_key *key, bool first)
{
    const struct tb_transport_config *config = tb_shm_config(transport);
    struct tb_board_head *heads = heads_of(config);
    uint32_t count = tb_shm_board_count(config->local_count);
    uint32_t from = first ? 0 : key->kept == 0 ? 1 : count / 2, to = first ? 1 : count;
    debts_pay(transport);
    for (uint32_t i = from; i < to; i++)
        if (head_claim(&heads[i], key))
            return;
}

static struct tb_board_head *head_find(const struct tb_transport_config *config, const struct tb_board_key *key)
{
    struct tb_board_head *heads = heads_of(config);
    for (uint32_t i = 0; i < tb_shm_board_count(config->local_count); i++)
        if (atomic_load_explicit(&heads[i].context, memory_order_acquire) == key->context &&
            atomic_load_explicit(&heads[i].kept, memory_order_relaxed) == key->kept)
            return &heads[i];
    return NULL;
}

bool tb_board_claimed(struct tb_transport *transport, const struct tb_board_key *key)
{
    return head_find(tb_shm_config(transport), key) != NULL;
}

static void head_free(struct tb_board_head *head)
{
    atomic_store_explicit(&head->kept, 0, memory_order_relaxed);
    atomic_store_explicit(&head->context, 0, memory_order_release);
}

void tb_board_unclaim(struct tb_transport *transport, const struct tb_board_key *key)
{
    struct tb_board_head *head = head_find(tb_shm_config(transport), key);
    if (head != NULL)
        head_free(head);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

/* The number of a process on this host; most communicators have them in order. */
static uint32_t local_find(const struct tb_transport_config *config, uint32_t proc, uint32_t from)
{
    for (uint32_t i = 0; i < config->local_count; i++) {
        uint32_t local = (from + i) % config->local_count;
        if (config->local_procs[local] == proc)
            return local;
    }
    return UINT32_MAX;
}

/* As it was at first: empty, and without memory where the kernel can take that back. Nobody else is here any more. */
static void board_clear(struct tb_board *b)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bool whole = (uintptr_t)b->members % page == 0 && b->bytes % page == 0; /* no page belongs to another board */
    /* An emulated kernel may only say that it has done so. */
    struct tb_board_line *sign = &tb_board_member_of(b, 0)->done;
    atomic_store_explicit(&sign->value, UINT64_MAX, memory_order_relaxed);
    if (whole && madvise(b->members, b->bytes, MADV_REMOVE) == 0 &&
        atomic_load_explicit(&sign->value, memory_order_relaxed) == 0)
        return;
    for (uint32_t rank = 0; rank < b->size; rank++) {
        struct tb_board_member *m = tb_board_member_of(b, rank);
        atomic_store_explicit(&m->done.value, 0, memory_order_relaxed);
        for (uint32_t i = 0; i < TB_BOARD_COLUMNS; i++) {
            atomic_store_explicit(&m->finished[i], 0, memory_order_relaxed);
            atomic_store_explicit(&tb_board_cell_of(b, rank, i)->number, 0, memory_order_relaxed);
            for (int k = 0; k < TB_BOARD_COUNTERS; k++)
                atomic_store_explicit(&tb_board_line_of(b, rank, (enum tb_board_counter)k, i)->value, 0,
                                      memory_order_relaxed);
        }
    }
}

/* One rank less; the last one leaves it as it was found. */
static void board_leave(struct tb_board *b)
{
    struct tb_board_head *head = b->head;
    if (atomic_fetch_add(&head->closed, 1) + 1 == b->size) {
        board_clear(b);
        atomic_store_explicit(&head->closed, 0, memory_order_relaxed);
        head_free(head);
    }
}

static void board_place(struct tb_board *b, const struct tb_transport_config *config, struct tb_board_head *head,
                        uint32_t size)
{
    struct tb_board_head *heads = heads_of(config);
    b->head = head;
    b->members = (char *)heads + tb_shm_heads_bytes(config->local_count) +
                 (size_t)(head - heads) * tb_shm_board_bytes(config->local_count);
    b->bytes = tb_shm_board_bytes(config->local_count);
    b->size = size;
}

/* As if it had been opened and closed. False: nobody has claimed it. */
static bool board_pass(struct tb_transport *transport, const struct tb_board_debt *owed)
{
    const struct tb_transport_config *config = tb_shm_config(transport);
    struct tb_board_head *head = head_find(config, &owed->key);
    struct tb_board nobody;
    if (head == NULL)
        return false;
    board_place(&nobody, config, head, owed->size);
    atomic_store_explicit(&tb_board_member_of(&nobody, owed->rank)->done.value, TB_BOARD_LEFT, memory_order_release);
    board_leave(&nobody);
    return true;
}

static void debts_pay(struct tb_transport *transport)
{
    struct tb_board_debts *debts = tb_shm_debts(transport);
    uint32_t left = 0;
    for (uint32_t i = 0; i < debts->count; i++)
        if (!board_pass(transport, &debts->owed[i]))
            debts->owed[left++] = debts->owed[i];
    debts->count = left;
}

/* Of too many the oldest is forgotten: most likely whoever should have claimed it had no memory either. */
void tb_board_leave(struct tb_transport *transport, const struct tb_board_key *key, uint32_t size, uint32_t rank)
{
    struct tb_board_debts *debts = tb_shm_debts(transport);
    const struct tb_board_debt mine = {*key, size, rank};
    debts_pay(transport);
    if (board_pass(transport, &mine))
        return;
    if (debts->count == TB_BOARD_DEBTS)
        memmove(debts->owed, debts->owed + 1, --debts->count * sizeof *debts->owed);
    debts->owed[debts->count++] = mine;
}

struct tb_board *tb_board_new(uint32_t size)
{
    struct tb_board *b;
    return calloc(1, sizeof *b + size * sizeof *b->bells);
}

struct tb_board *tb_board_open(struct tb_transport *transport, const struct tb_board_key *key, uint32_t size,
                               uint32_t rank, const uint32_t *procs, struct tb_board *b)
{
    const struct tb_transport_config *config = tb_shm_config(transport);
    struct tb_board_head *head = head_find(config, key);
    debts_pay(transport);
    if (head == NULL || size > config->local_count)
        return NULL;
    board_place(b, config, head, size);
    b->rank = rank;
    b->registered = tb_shm_registered(transport);
    uint32_t local = UINT32_MAX;
    for (uint32_t i = 0; i < size; i++) {
        local = local_find(config, procs != NULL ? procs[i] : i, local + 1);
        TB_ASSERT(local < config->local_count);
        b->bells[i] = (struct tb_board_bell){&tb_shm_page_of(config->segment, local)->state, config->doorbells[local]};
    }
    return b;
}

void tb_board_close(struct tb_board *board)
{
    if (board == NULL)
        return;
    atomic_store_explicit(&tb_board_member_of(board, board->rank)->done.value, TB_BOARD_LEFT, memory_order_release);
    tb_board_wake(board);
    board_leave(board);
    free(board);
}

/* ---- using it ---------------------------------------------------------------------------------------------------- */

void tb_board_wake_slow(const struct tb_board *board)
{
    __sync_synchronize();
    for (uint32_t i = 0; i < board->size; i++)
        if (i != board->rank &&
            atomic_load_explicit(board->bells[i].state, memory_order_relaxed) == TB_DOORBELL_SLEEPING)
            tb_doorbell_ring(board->bells[i].state, board->bells[i].descriptor);
}

bool tb_board_look(struct tb_board *board, uint64_t number)
{
    uint64_t least = UINT64_MAX;
    bool all = true;
    for (uint32_t i = 0; i < board->size; i++) {
        if (i == board->rank)
            continue;
        uint64_t has = atomic_load_explicit(&tb_board_member_of(board, i)->done.value, memory_order_acquire);
        least = has < least ? has : least;
        all = all && (has > number || tb_board_passed(board, i, number));
    }
    board->least = least;
    return all;
}

void tb_board_renew(struct tb_board *board, uint64_t number)
{
    if (number < TB_BOARD_AGE)
        return; /* there is nothing older */
    for (int i = 0; i < TB_BOARD_COUNTERS; i++) {
        enum tb_board_counter which = (enum tb_board_counter)i;
        uint64_t value =
            atomic_load_explicit(&tb_board_line_of(board, board->rank, which, number)->value, memory_order_relaxed);
        /* What was counted at this place, others may still need; where nothing was, that is what they read. */
        if ((uint32_t)(value >> 32) != (uint32_t)(number + 1))
            tb_board_count(board, which, number, 0);
    }
}

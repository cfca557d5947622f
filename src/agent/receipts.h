/* Receipts: what has come for ranks of this host from other hosts, so that each frame is handed over once however often
 * it comes, and the agent of its source's host can be told. A receipt of a pair says up to which number all are here,
 * and which ones beyond. They go together, one frame for all pairs of two hosts, soon after something has come, and at
 * once when that agent asks. What a rank takes no more of is refused, which its sender hears, too.
 *
 * The crossing owns it, and sends for it. Pure logic but for its call; one thread. */
#ifndef TB_AGENT_RECEIPTS_H
#define TB_AGENT_RECEIPTS_H

#include "agent/member.h"
#include "agent/pair_table.h"

#define TB_RECEIPTS_WINDOW 2048u /* numbers beyond the first that is missing */

struct tb_receipt_host;

struct tb_receipts_events {
    void *context;
    bool (*has_room)(void *context, uint32_t destination); /* for what had to be refused */
    /* Tells the agent of a host; `echo`: the time in the question that this answers, or 0. */
    void (*tell)(void *context, uint32_t host, uint64_t echo, const struct tb_writer *items);
};

struct tb_receipts {
    const struct tb_member *member;
    struct tb_receipts_events events;
    struct tb_pair_table pairs;
    struct tb_receipt_host **hosts; /* by number; NULL: nothing has come from there */
    uint32_t host_count;
    struct tb_list owing;   /* hosts to be told something */
    struct tb_list refused; /* pairs for whose destination there was no room */
    uint64_t due;           /* when tb_receipts_tick is to be called; TB_NEVER */
    uint64_t told, twice;   /* counts: frames of receipts; arrivals that had come before */
};

void tb_receipts_open(struct tb_receipts *receipts, const struct tb_member *member,
                      const struct tb_receipts_events *events);
void tb_receipts_close(struct tb_receipts *receipts);

enum tb_receipt_news { TB_RECEIPT_NEW, TB_RECEIPT_KNOWN, TB_RECEIPT_BEYOND };
/* Has this one come before? Then its sender is told again. BEYOND: no honest sender is so far ahead. */
enum tb_receipt_news tb_receipts_look(struct tb_receipts *receipts, uint32_t source, uint32_t destination,
                                      uint32_t number);
/* It is new, and has been handed over: its sender may forget it. An error: it is as if it had not come, and will come
 * again. */
int tb_receipts_note(struct tb_receipts *receipts, uint32_t source, uint32_t destination, uint32_t number,
                     uint32_t bytes);
/* There is no room for it: it is as if it had not come, and its sender hears when there is room again. */
void tb_receipts_refuse(struct tb_receipts *receipts, uint32_t source, uint32_t destination);
void tb_receipts_settle(struct tb_receipts *receipts); /* there may be room */
/* The agent of a host asks about some pairs, at that time of its clock. */
void tb_receipts_answer(struct tb_receipts *receipts, uint32_t host, uint64_t clock, struct tb_reader *items);
void tb_receipts_tick(struct tb_receipts *receipts);

#endif

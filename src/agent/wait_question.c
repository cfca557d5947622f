#include "agent/wait_question.h"

#include "agent/process_state.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS 500000000u

static pid_t pid_of(const struct tb_port_rank *rank)
{
    return rank->joined > 0 ? rank->joined : rank->pid;
}

/* Without memory for it, the launcher is told less. */
static struct tb_job_wait *add_entry(struct tb_wait_question *q, const struct tb_port_rank *rank,
                                     enum tb_wait_answer what)
{
    if (q->entry_count == q->entry_room) {
        uint32_t room = q->entry_room > 0 ? 2 * q->entry_room : q->port->count;
        struct tb_wait_entry *more = realloc(q->entries, room * sizeof *more);
        if (more == NULL)
            return NULL;
        q->entries = more;
        q->entry_room = room;
    }
    struct tb_wait_entry *entry = &q->entries[q->entry_count++];
    *entry = (struct tb_wait_entry){.rank = rank, .what = what};
    return &entry->wait;
}

/* How it stands with one that has not answered, or cannot. */
static enum tb_wait_answer look_at(const struct tb_port_rank *rank)
{
    if (rank->pid == 0)
        return TB_WAIT_ENDED;
    char state = tb_process_state(pid_of(rank));
    if (state == 0 || state == 'Z' || state == 'X')
        return TB_WAIT_ENDED;
    if (state == 'T')
        return TB_WAIT_STOPPED;
    if (rank->finalized)
        return TB_WAIT_FINALIZED;
    if (!rank->initialized)
        return TB_WAIT_BEFORE;
    return state == 'R' ? TB_WAIT_OUTSIDE : TB_WAIT_SLEEPS;
}

static void forget(struct tb_wait_question *q)
{
    tb_timer_clear(&q->timer);
    free(q->answered);
    free(q->entries);
    q->answered = NULL;
    q->entries = NULL;
    q->entry_count = q->entry_room = 0;
}

static void answer(struct tb_wait_question *q)
{
    for (uint32_t i = 0; i < q->port->count; i++)
        if (!q->answered[i])
            add_entry(q, &q->port->ranks[i], look_at(&q->port->ranks[i]));
    struct tb_writer *w = tb_uplink_begin(q->uplink, TB_CONTROL_WAITS);
    tb_put_u32(w, q->number);
    tb_put_u32(w, q->others != NULL && *q->others > 0 ? --*q->others : 0);
    tb_put_u32(w, q->entry_count);
    for (uint32_t i = 0; i < q->entry_count; i++) {
        const struct tb_wait_entry *entry = &q->entries[i];
        tb_put_u32(w, entry->rank->rank);
        tb_put_u32(w, (uint32_t)pid_of(entry->rank));
        tb_put_u8(w, (uint8_t)entry->what);
        tb_put_u64(w, entry->wait.time);
        tb_put_text(w, entry->wait.text);
    }
    tb_uplink_end(q->uplink);
    forget(q);
}

/* Nothing more is expected of this one. The last one answers the question. */
static void conclude(struct tb_wait_question *q, uint32_t local)
{
    q->answered[local] = true;
    if (--q->left == 0)
        answer(q);
}

static void settle(struct tb_wait_question *q, uint32_t local, enum tb_wait_answer what)
{
    add_entry(q, &q->port->ranks[local], what);
    conclude(q, local);
}

static void patience_over(struct tb_timer *timer)
{
    answer(TB_CONTAINER(timer, struct tb_wait_question, timer));
}

void tb_wait_question_open(struct tb_wait_question *q, struct tb_loop *loop, struct tb_uplink *uplink,
                           struct tb_rank_port *port)
{
    *q = (struct tb_wait_question){.loop = loop, .uplink = uplink, .port = port};
    tb_timer_init(&q->timer, patience_over);
}

void tb_wait_question_close(struct tb_wait_question *q)
{
    if (q->answered != NULL)
        answer(q);
}

void tb_wait_question_ask(struct tb_wait_question *q, uint32_t number)
{
    if (q->answered != NULL)
        forget(q);
    if (q->port->count == 0)
        return;
    q->answered = calloc(q->port->count, sizeof *q->answered);
    if (q->answered == NULL)
        return; /* the launcher says that this host does not answer */
    q->number = number;
    q->left = q->port->count;
    tb_timer_set(q->loop, &q->timer, PATIENCE_NS);
    for (uint32_t i = 0; i < q->port->count && q->answered != NULL; i++) {
        enum tb_wait_answer what = look_at(&q->port->ranks[i]);
        if (what != TB_WAIT_OUTSIDE && what != TB_WAIT_SLEEPS)
            settle(q, i, what);
        else
            tb_rank_port_ask(q->port, i, number);
    }
}

void tb_wait_question_take(struct tb_wait_question *q, uint32_t local, uint32_t number, uint32_t count,
                           struct tb_reader *waits)
{
    const struct tb_port_rank *rank = &q->port->ranks[local];
    if (q->answered == NULL || number != q->number || q->answered[local])
        return;
    uint32_t taken = 0;
    for (; taken < count; taken++) {
        uint64_t time = tb_get_u64(waits);
        size_t length = 0;
        const char *text = tb_get_bytes(waits, &length);
        struct tb_job_wait *wait =
            waits->error == TB_OK && length < TB_WAIT_TEXT ? add_entry(q, rank, TB_WAIT_TOLD) : NULL;
        if (wait == NULL)
            break;
        wait->time = time;
        memcpy(wait->text, text, length);
    }
    if (taken == 0)
        add_entry(q, rank, rank->finalized ? TB_WAIT_FINALIZED : TB_WAIT_BUSY);
    conclude(q, local);
}

void tb_wait_question_ended(struct tb_wait_question *q, uint32_t local)
{
    if (q->answered != NULL && !q->answered[local])
        settle(q, local, TB_WAIT_ENDED);
}

#include "agent/dial_wishes.h"

#include "agent/pair_table.h"

#include <stdlib.h>

struct waiting_wish {
    struct tb_list node;
    struct tb_dial_wish wish;
};

static void end_wish(struct tb_dial_wishes *wishes, struct waiting_wish *w)
{
    tb_list_remove(&w->node);
    wishes->lines[w->wish.called].count--;
    free(w);
}

void tb_dial_wishes_open(struct tb_dial_wishes *wishes)
{
    *wishes = (struct tb_dial_wishes){0};
    for (int called = 0; called < 2; called++)
        tb_list_init(&wishes->lines[called].waiting);
}

/* NULL: of all. */
static void end_those_of(struct tb_dial_wishes *wishes, const struct tb_proc *self)
{
    struct waiting_wish *w;
    for (int called = 0; called < 2; called++)
        TB_LIST_EACH (w, &wishes->lines[called].waiting, struct waiting_wish, node)
            if (self == NULL || w->wish.self.index == self->index)
                end_wish(wishes, w);
}

void tb_dial_wishes_close(struct tb_dial_wishes *wishes)
{
    end_those_of(wishes, NULL);
}

void tb_dial_wishes_forget(struct tb_dial_wishes *wishes, struct tb_proc self)
{
    end_those_of(wishes, &self);
}

bool tb_dial_wishes_have_room(const struct tb_dial_wishes *wishes, const struct tb_dial_wish *wish)
{
    const struct tb_dial_line *line = &wishes->lines[wish->called];
    return line->count == 0 && line->running < TB_DIAL_WISHES_RUNNING;
}

/* Each pair of processes has each stream once, from either side. */
static uint64_t most_of(const struct tb_member *member)
{
    uint64_t processes = tb_worlds_processes(member->book) + (uint64_t)member->book->host_count;
    uint64_t pairs = processes * processes;
    return TB_STREAM_COUNT * (pairs < TB_PAIR_TABLE_LIMIT ? pairs : TB_PAIR_TABLE_LIMIT);
}

int tb_dial_wishes_add(struct tb_dial_wishes *wishes, const struct tb_member *member, const struct tb_dial_wish *wish)
{
    struct tb_dial_line *line = &wishes->lines[wish->called];
    if (line->count >= most_of(member))
        return tb_error(TB_ERR_LIMIT, "host %s is asked for more connections than there are pairs of processes",
                        member->name);
    struct waiting_wish *w = calloc(1, sizeof *w);
    if (w == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a connection");
    w->wish = *wish;
    tb_list_append(&line->waiting, &w->node);
    line->count++;
    return TB_OK;
}

bool tb_dial_wishes_take(struct tb_dial_wishes *wishes, struct tb_dial_wish *wish)
{
    for (int called = 0; called < 2; called++) {
        const struct tb_dial_line *line = &wishes->lines[called];
        if (line->count == 0 || line->running >= TB_DIAL_WISHES_RUNNING)
            continue;
        struct waiting_wish *w = TB_CONTAINER(line->waiting.next, struct waiting_wish, node);
        *wish = w->wish;
        end_wish(wishes, w);
        return true;
    }
    return false;
}

#include "agent/replay_pair.h"

#include <stdlib.h>

#define ROOM_FIRST 16u

void tb_replay_pair_open(struct tb_replay_pair *p, struct tb_far_host *host, struct tb_replay_account *account)
{
    p->host = host;
    p->account = account;
    p->first = p->next = 1;
    tb_list_init(&p->sending);
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        tb_list_init(&p->turn[i]);
        tb_list_init(&p->waiting[i]);
    }
}

void tb_replay_pair_close(struct tb_replay_pair *p)
{
    free(p->kept);
    p->kept = NULL;
    p->room = 0;
}

bool tb_replay_pair_make_room(struct tb_replay_pair *p, uint32_t number)
{
    uint32_t room = p->room == 0 ? ROOM_FIRST : p->room;
    while (number - p->first >= room)
        room *= 2;
    if (room == p->room)
        return true;
    struct tb_frame_buffer **kept = calloc(room, sizeof(struct tb_frame_buffer *));
    if (kept == NULL)
        return false;
    for (uint32_t s = p->first; s != p->next; s++)
        kept[s & (room - 1)] = *tb_replay_pair_slot(p, s);
    free(p->kept);
    p->kept = kept;
    p->room = room;
    return true;
}

void tb_replay_pair_note(struct tb_replay_pair *p, uint32_t number)
{
    p->there[number % TB_REPLAY_WINDOW / 64] |= UINT64_C(1) << number % 64;
}

static void step(struct tb_replay_pair *p)
{
    p->there[p->first % TB_REPLAY_WINDOW / 64] &= ~(UINT64_C(1) << p->first % 64);
    p->first++;
}

/* A long list is not kept for what is next. */
void tb_replay_pair_advance(struct tb_replay_pair *p)
{
    while (p->first != p->next && tb_replay_pair_has(p, p->first))
        step(p);
    if (p->first == p->next && p->room > ROOM_FIRST)
        tb_replay_pair_close(p);
}

void tb_replay_pair_advance_to(struct tb_replay_pair *p, uint32_t up_to)
{
    while (tb_replay_distance(p->first, up_to) >= 0)
        step(p);
}

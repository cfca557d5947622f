#include "job/group_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 8u

/* What is known of a member besides who it is. */
struct tb_group_place {
    uint32_t heard;     /* of the group's dead, so many were told it or died before it came */
    bool meets, stands; /* it waits for the next round, at a barrier */
};

struct tb_named_group {
    struct tb_list node;
    uint32_t id, generation, rounds;
    bool frozen;
    uint32_t count, room;
    uint32_t *members; /* in the order in which they came */
    struct tb_group_place *places;
    uint32_t dead_count, dead_room;
    uint32_t *dead;        /* members that have died */
    struct tb_list waits;  /* struct tb_registry_wait */
    uint32_t meet_count;   /* of them: those who meet, */
    uint32_t meet_least;   /* how many members these want at least, */
    uint32_t stand_count;  /* those at the barrier, */
    uint32_t stand_wanted; /* and how many it wants; 0: all */
    char name[TB_REGISTRY_NAME_BYTES];
};

void tb_group_table_open(struct tb_group_table *table, tb_registry_tell *tell, void *context)
{
    *table = (struct tb_group_table){.tell = tell, .context = context};
    tb_list_init(&table->groups);
    tb_list_init(&table->awaited);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static struct tb_named_group *find(const struct tb_group_table *table, const char *name)
{
    struct tb_named_group *group;
    TB_LIST_EACH (group, &table->groups, struct tb_named_group, node)
        if (strcmp(group->name, name) == 0)
            return group;
    return NULL;
}

/* Where it stands among the members; their number: nowhere. */
static uint32_t position(const struct tb_named_group *group, uint32_t proc)
{
    uint32_t at = 0;
    while (at < group->count && group->members[at] != proc)
        at++;
    return at;
}

static struct tb_named_group *begin_group(struct tb_group_table *table, const char *name)
{
    struct tb_named_group *group = table->group_count < TB_GROUP_TABLE_GROUPS ? calloc(1, sizeof *group) : NULL;
    if (group == NULL)
        return NULL;
    group->id = ++table->last_id;
    memcpy(group->name, name, strlen(name) + 1);
    tb_list_init(&group->waits);
    tb_list_append(&table->groups, &group->node);
    table->group_count++;
    return group;
}

static void free_group(struct tb_group_table *table, struct tb_named_group *group)
{
    tb_list_remove(&group->node);
    table->group_count--;
    free(group->members);
    free(group->places);
    free(group->dead);
    free(group);
}

static bool add_member(struct tb_named_group *group, uint32_t proc)
{
    if (group->count == TB_REGISTRY_MEMBERS)
        return false;
    if (group->count == group->room) {
        uint32_t room = group->room > 0 ? 2 * group->room : FIRST_ROOM;
        uint32_t *members = realloc(group->members, room * sizeof *members);
        if (members == NULL)
            return false;
        group->members = members;
        struct tb_group_place *places = realloc(group->places, room * sizeof *places);
        if (places == NULL)
            return false;
        group->places = places;
        group->room = room;
    }
    group->members[group->count] = proc;
    group->places[group->count++] = (struct tb_group_place){.heard = group->dead_count};
    group->generation++;
    return true;
}

static void remove_member(struct tb_named_group *group, uint32_t at)
{
    uint32_t behind = --group->count - at;
    memmove(group->members + at, group->members + at + 1, behind * sizeof *group->members);
    memmove(group->places + at, group->places + at + 1, behind * sizeof *group->places);
    group->generation++;
}

/* Without memory for it nobody is told of this death; it is no member any more all the same. */
static bool add_dead(struct tb_named_group *group, uint32_t proc)
{
    if (group->dead_count == group->dead_room) {
        uint32_t room = group->dead_room > 0 ? 2 * group->dead_room : FIRST_ROOM;
        uint32_t *dead = realloc(group->dead, room * sizeof *dead);
        if (dead == NULL)
            return false;
        group->dead = dead;
        group->dead_room = room;
    }
    group->dead[group->dead_count++] = proc;
    return true;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void tell(const struct tb_group_table *table, uint32_t proc, uint32_t number, enum tb_registry_result result)
{
    table->tell(table->context, proc, &(struct tb_registry_answer){.number = number, .result = result});
}

/* With everything that is to be known of the group. */
static void tell_group(const struct tb_group_table *table, const struct tb_named_group *group, uint32_t proc,
                       uint32_t number)
{
    table->tell(table->context, proc,
                &(struct tb_registry_answer){.number = number,
                                             .result = TB_REGISTRY_DONE,
                                             .frozen = group->frozen,
                                             .id = group->id,
                                             .generation = group->generation,
                                             .round = group->rounds,
                                             .member_count = group->count,
                                             .members = group->members});
}

/* Those members that have died and of whom this one was not told yet. */
static void tell_dead(const struct tb_group_table *table, struct tb_named_group *group, uint32_t at, uint32_t number)
{
    struct tb_group_place *place = &group->places[at];
    table->tell(table->context, group->members[at],
                &(struct tb_registry_answer){.number = number,
                                             .result = TB_REGISTRY_DEAD,
                                             .id = group->id,
                                             .generation = group->generation,
                                             .who = group->dead[place->heard],
                                             .more = group->dead_count - place->heard - 1});
    place->heard = group->dead_count;
}

/* ---- waits ------------------------------------------------------------------------------------------------------- */

/* What those who still meet want. */
static void count_least(struct tb_named_group *group)
{
    const struct tb_registry_wait *wait;
    group->meet_least = 0;
    TB_LIST_EACH (wait, &group->waits, const struct tb_registry_wait, node)
        if (wait->kind == TB_REGISTRY_MEET && wait->count > group->meet_least)
            group->meet_least = wait->count;
}

/* One of the group is over. */
static void end_wait(struct tb_group_table *table, struct tb_named_group *group, struct tb_registry_wait *wait)
{
    uint32_t at = position(group, wait->proc);
    enum tb_registry_kind kind = wait->kind;
    tb_registry_wait_free(wait, &table->wait_count);
    if (kind == TB_REGISTRY_MEET) {
        group->meet_count--;
        if (at < group->count)
            group->places[at].meets = false;
        count_least(group);
    } else if (kind == TB_REGISTRY_BARRIER) {
        group->stand_count--;
        if (at < group->count)
            group->places[at].stands = false;
    }
}

/* All of a kind get what they wait for, and know the same. */
static void complete(struct tb_group_table *table, struct tb_named_group *group, enum tb_registry_kind kind)
{
    struct tb_registry_wait *wait;
    TB_LIST_EACH (wait, &group->waits, struct tb_registry_wait, node)
        if (wait->kind == kind) {
            tell_group(table, group, wait->proc, wait->number);
            tb_registry_wait_free(wait, &table->wait_count);
        }
    for (uint32_t i = 0; i < group->count; i++)
        if (kind == TB_REGISTRY_MEET)
            group->places[i].meets = false;
        else
            group->places[i].stands = false;
}

/* Whether those who meet, or stand at the barrier, have come to the end. */
static void settle(struct tb_group_table *table, struct tb_named_group *group)
{
    uint32_t wanted = group->stand_wanted > 0 ? group->stand_wanted : group->count;
    if (group->meet_count > 0 && group->meet_count == group->count && group->count >= group->meet_least) {
        group->rounds++;
        group->meet_count = group->meet_least = 0;
        complete(table, group, TB_REGISTRY_MEET);
    }
    if (group->stand_count > 0 && group->stand_count >= wanted) {
        group->stand_count = 0;
        complete(table, group, TB_REGISTRY_BARRIER);
    }
}

/* What can never be is told now: so many members a frozen group will not have. */
static void give_up(struct tb_group_table *table, struct tb_named_group *group)
{
    struct tb_registry_wait *wait;
    TB_LIST_EACH (wait, &group->waits, struct tb_registry_wait, node)
        if (group->frozen && wait->kind != TB_REGISTRY_WATCH && wait->count > group->count) {
            tell(table, wait->proc, wait->number, TB_REGISTRY_UNEQUAL);
            end_wait(table, group, wait);
        }
}

/* There is another generation, or none any more. */
static void change(struct tb_group_table *table, struct tb_named_group *group)
{
    struct tb_registry_wait *wait;
    TB_LIST_EACH (wait, &group->waits, struct tb_registry_wait, node)
        if (wait->kind == TB_REGISTRY_WATCH && wait->count != group->generation) {
            if (group->count > 0)
                tell_group(table, group, wait->proc, wait->number);
            else
                tell(table, wait->proc, wait->number, TB_REGISTRY_NO_GROUP);
            tb_registry_wait_free(wait, &table->wait_count);
        }
    if (group->count == 0) {
        free_group(table, group);
        return;
    }
    give_up(table, group);
    settle(table, group);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static void join(struct tb_group_table *table, struct tb_named_group *group, uint32_t proc,
                 const struct tb_registry_question *question)
{
    struct tb_registry_wait *wait;
    bool new = group == NULL;
    enum tb_registry_result result = TB_REGISTRY_DONE;
    if (new)
        group = begin_group(table, question->name);
    if (group == NULL)
        result = TB_REGISTRY_FULL;
    else if (position(group, proc) < group->count)
        result = TB_REGISTRY_MEMBER;
    else if (group->frozen)
        result = TB_REGISTRY_FROZEN;
    else if (!add_member(group, proc))
        result = TB_REGISTRY_FULL;
    if (result != TB_REGISTRY_DONE) {
        if (new &&group != NULL)
            free_group(table, group);
        tell(table, proc, question->number, result);
        return;
    }
    tell_group(table, group, proc, question->number);
    TB_LIST_EACH (wait, &table->awaited, struct tb_registry_wait, node)
        if (strcmp(wait->name, group->name) == 0) {
            tell_group(table, group, wait->proc, wait->number);
            tb_registry_wait_free(wait, &table->wait_count);
        }
    change(table, group);
}

/* It is no member any more, and what it waits for as one is over. */
static void take_out(struct tb_group_table *table, struct tb_named_group *group, uint32_t at, bool told)
{
    uint32_t proc = group->members[at];
    struct tb_registry_wait *wait;
    TB_LIST_EACH (wait, &group->waits, struct tb_registry_wait, node)
        if (wait->proc == proc && (!told || wait->kind != TB_REGISTRY_WATCH)) {
            if (told)
                tell(table, proc, wait->number, TB_REGISTRY_STRANGER);
            end_wait(table, group, wait);
        }
    remove_member(group, at);
}

static void look(const struct tb_group_table *table, const struct tb_named_group *group, uint32_t proc,
                 const struct tb_registry_question *question)
{
    if (question->kind == TB_REGISTRY_LOOK) {
        tell_group(table, group, proc, question->number);
        return;
    }
    table->tell(table->context, proc,
                &(struct tb_registry_answer){.number = question->number,
                                             .result = TB_REGISTRY_DONE,
                                             .frozen = group->frozen,
                                             .id = group->id,
                                             .generation = group->generation,
                                             .member_count = group->dead_count,
                                             .members = group->dead});
}

static void watch(struct tb_group_table *table, struct tb_named_group *group, uint32_t proc,
                  const struct tb_registry_question *question, uint64_t until)
{
    if (group != NULL && question->count != group->generation)
        tell_group(table, group, proc, question->number);
    else if (group == NULL && question->count != 0)
        tell(table, proc, question->number, TB_REGISTRY_NO_GROUP);
    else if (!tb_registry_wait_add(group != NULL ? &group->waits : &table->awaited, &table->wait_count, proc, question,
                                   until))
        tell(table, proc, question->number, TB_REGISTRY_FULL);
}

/* MEET and BARRIER: of a member, which has heard of all the dead. */
static void gather(struct tb_group_table *table, struct tb_named_group *group, uint32_t at,
                   const struct tb_registry_question *question, uint64_t until)
{
    uint32_t proc = group->members[at];
    struct tb_group_place *place = &group->places[at];
    bool meets = question->kind == TB_REGISTRY_MEET;
    enum tb_registry_result result = TB_REGISTRY_DONE;
    if (meets ? place->meets : place->stands)
        result = TB_REGISTRY_BUSY;
    else if ((group->frozen && question->count > group->count) ||
             (!meets && group->stand_count > 0 && group->stand_wanted != question->count))
        result = TB_REGISTRY_UNEQUAL;
    else if (!tb_registry_wait_add(&group->waits, &table->wait_count, proc, question, until))
        result = TB_REGISTRY_FULL;
    if (result != TB_REGISTRY_DONE) {
        tell(table, proc, question->number, result);
        return;
    }
    if (meets) {
        place->meets = true;
        group->meet_count++;
        if (question->count > group->meet_least)
            group->meet_least = question->count;
    } else {
        place->stands = true;
        group->stand_count++;
        group->stand_wanted = question->count;
    }
    settle(table, group);
}

/* Of a member, where only they may ask. */
static void ask_member(struct tb_group_table *table, struct tb_named_group *group, uint32_t at,
                       const struct tb_registry_question *question, uint64_t until)
{
    uint32_t proc = group->members[at];
    if (question->kind == TB_REGISTRY_LEAVE) {
        take_out(table, group, at, true);
        table->tell(
            table->context, proc,
            &(struct tb_registry_answer){.number = question->number, .result = TB_REGISTRY_DONE, .id = group->id});
        change(table, group);
    } else if (question->kind == TB_REGISTRY_FREEZE) {
        group->frozen = true;
        tell_group(table, group, proc, question->number);
        give_up(table, group);
    } else if (group->places[at].heard < group->dead_count) {
        tell_dead(table, group, at, question->number);
    } else {
        gather(table, group, at, question, until);
    }
}

void tb_group_table_ask(struct tb_group_table *table, uint32_t proc, const struct tb_registry_question *question,
                        uint64_t until)
{
    struct tb_named_group *group = find(table, question->name);
    uint32_t at = group != NULL ? position(group, proc) : 0;
    if (question->kind == TB_REGISTRY_JOIN)
        join(table, group, proc, question);
    else if (question->kind == TB_REGISTRY_WATCH)
        watch(table, group, proc, question, until);
    else if (group == NULL)
        tell(table, proc, question->number, TB_REGISTRY_NO_GROUP);
    else if (question->kind == TB_REGISTRY_LOOK || question->kind == TB_REGISTRY_MISSED)
        look(table, group, proc, question);
    else if (at == group->count)
        tell(table, proc, question->number, TB_REGISTRY_STRANGER);
    else
        ask_member(table, group, at, question, until);
}

/* ---- processes that end, and time -------------------------------------------------------------------------------- */

/* Everybody who waits for what the dead one would have taken part in is told of it instead. */
static void mourn(struct tb_group_table *table, struct tb_named_group *group, uint32_t proc)
{
    struct tb_registry_wait *wait;
    if (!add_dead(group, proc))
        return;
    TB_LIST_EACH (wait, &group->waits, struct tb_registry_wait, node)
        if (wait->kind != TB_REGISTRY_WATCH) {
            uint32_t at = position(group, wait->proc), number = wait->number;
            end_wait(table, group, wait);
            if (group->places[at].heard < group->dead_count)
                tell_dead(table, group, at, number);
            else /* it also waits for something else, and has just been told */
                table->tell(table->context, group->members[at],
                            &(struct tb_registry_answer){.number = number, .result = TB_REGISTRY_DEAD, .who = proc});
        }
}

void tb_group_table_end(struct tb_group_table *table, uint32_t proc, bool died)
{
    struct tb_named_group *group;
    tb_registry_waits_free_of(&table->awaited, &table->wait_count, proc);
    TB_LIST_EACH (group, &table->groups, struct tb_named_group, node) {
        uint32_t at = position(group, proc);
        if (at == group->count) {
            tb_registry_waits_free_of(&group->waits, &table->wait_count, proc); /* it has only watched */
            continue;
        }
        take_out(table, group, at, false);
        if (died)
            mourn(table, group, proc);
        change(table, group);
    }
}

static uint64_t expire_list(struct tb_group_table *table, struct tb_named_group *group, struct tb_list *list,
                            uint64_t now)
{
    uint64_t next = TB_NEVER;
    struct tb_registry_wait *wait;
    TB_LIST_EACH (wait, list, struct tb_registry_wait, node)
        if (wait->until <= now) {
            tell(table, wait->proc, wait->number, TB_REGISTRY_LATE);
            if (group != NULL)
                end_wait(table, group, wait);
            else
                tb_registry_wait_free(wait, &table->wait_count);
        } else if (wait->until < next) {
            next = wait->until;
        }
    return next;
}

uint64_t tb_group_table_expire(struct tb_group_table *table, uint64_t now)
{
    uint64_t next = expire_list(table, NULL, &table->awaited, now);
    struct tb_named_group *group;
    TB_LIST_EACH (group, &table->groups, struct tb_named_group, node) {
        uint64_t first = expire_list(table, group, &group->waits, now);
        next = first < next ? first : next;
    }
    return next;
}

uint32_t tb_group_table_print(const struct tb_group_table *table, uint32_t proc, char *text, size_t size)
{
    const struct tb_named_group *group;
    uint32_t count = 0;
    size_t used = 0;
    text[0] = 0;
    TB_LIST_EACH (group, &table->groups, const struct tb_named_group, node) {
        if (position(group, proc) == group->count)
            continue;
        bool fits = used + strlen(group->name) + sizeof ", , ..." < size;
        if (fits)
            used += (size_t)snprintf(text + used, size - used, "%s%s", count > 0 ? ", " : "", group->name);
        else if (used + sizeof ", ..." < size && strstr(text, "...") == NULL)
            used += (size_t)snprintf(text + used, size - used, "%s...", count > 0 ? ", " : "");
        count++;
    }
    return count;
}

void tb_group_table_close(struct tb_group_table *table)
{
    struct tb_named_group *group;
    tb_registry_waits_free(&table->awaited, &table->wait_count);
    TB_LIST_EACH (group, &table->groups, struct tb_named_group, node) {
        tb_registry_waits_free(&group->waits, &table->wait_count);
        free_group(table, group);
    }
}

#include "launch/group_story.h"

#include <stdarg.h>
#include <stdio.h>

#define NAMES_MOST 4u /* of hosts in a row */

/* A line that is written bit by bit and cut off at its end. */
struct story {
    char *text;
    size_t size, at;
};

static void add(struct story *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct story *s, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int n = vsnprintf(s->text + s->at, s->size - s->at, format, rest);
    va_end(rest);
    s->at += n > 0 ? (size_t)n : 0;
    s->at = s->at < s->size ? s->at : s->size - 1;
}

static const char *name_of(const struct tb_address_book *book, uint32_t host)
{
    return book->hosts[host].name;
}

/* "h1, h2 and 7 others" */
static void add_probers(struct story *s, const struct tb_tested_group *group, const struct tb_address_book *book,
                        uint64_t which)
{
    uint32_t count = 0, all = (uint32_t)__builtin_popcountll(which);
    for (uint32_t i = 0; i < group->probers.count && count < NAMES_MOST; i++)
        if (which >> i & 1)
            add(s, "%s%s", count++ > 0 ? ", " : "", name_of(book, group->probers.hosts[i]));
    if (all > count)
        add(s, " and %u other%s", all - count, tb_plural(all - count));
}

/* Probers that no other living host has heard. */
static uint64_t find_mute(const struct tb_tested_group *group, bool longest)
{
    uint64_t mute = group->probing;
    for (uint32_t i = 0; i < group->choice->count; i++) {
        uint32_t own = tb_multicast_probers_index(&group->probers, group->choice->hosts[i]);
        uint64_t self = own < TB_MULTICAST_PROBERS ? UINT64_C(1) << own : 0;
        if (!group->hosts[i].gone)
            mute &= tb_tested_group_misses(group, i, longest) | self;
    }
    return mute;
}

void tb_group_story_unheard(const struct tb_tested_group *group, const struct tb_address_book *book, bool longest,
                            char *text, size_t size)
{
    struct story s = {.text = text, .size = size};
    uint64_t mute = find_mute(group, longest);
    uint32_t told = 0, left_out = 0;
    char what[80] = "multicast";
    *text = 0;
    if (longest)
        snprintf(what, sizeof what, "multicast of %u bytes", group->piece);
    if (mute == group->probing) {
        add(&s, "%s reaches nobody", what);
        return;
    }
    if (mute != 0) {
        add(&s, "%s reaches nobody from ", what);
        add_probers(&s, group, book, mute);
    }
    for (uint32_t i = 0; i < group->choice->count; i++) {
        uint64_t missed = tb_tested_group_misses(group, i, longest) & ~mute;
        if (missed == 0)
            continue;
        if (told == NAMES_MOST) {
            left_out++;
            continue;
        }
        if (told++ == 0)
            add(&s, "%s%s does not reach ", mute != 0 ? "; " : "", mute != 0 ? "it" : what);
        else
            add(&s, ", ");
        add(&s, "%s from ", name_of(book, group->choice->hosts[i]));
        add_probers(&s, group, book, missed);
    }
    if (left_out > 0)
        add(&s, ", and not all of %u other%s", left_out, tb_plural(left_out));
}

/* "cluster venus" between these; nothing where there are no places. */
static void add_cluster(struct story *s, const struct tb_group_choice *choice, const struct tb_address_book *book,
                        const char *before, const char *after)
{
    const char *name = tb_places_name(&book->places, choice->place);
    bool is_site = book->places.rows[choice->place].level == TB_LEVEL_SITE;
    if (*name != 0)
        add(s, "%s%s %s%s", before, is_site ? "site" : "cluster", name, after);
}

void tb_group_story_verdict(const struct tb_tested_group *group, const struct tb_address_book *book, char *text,
                            size_t size)
{
    struct story s = {.text = text, .size = size};
    char address[80];
    *text = 0;
    tb_address_print(&group->address, address, sizeof address);
    if (group->works) {
        add(&s, "multicast reaches all %u hosts", group->choice->count);
        add_cluster(&s, group->choice, book, " of ", "");
        add(&s, "%s", group->has_failed ? " again" : "");
        add(&s, " (group %s, %u bytes a datagram)", address, group->piece);
    } else {
        add(&s, "%s", group->why);
        add_cluster(&s, group->choice, book, " (", ")");
        add(&s, group->has_worked ? ": connections are used instead, and by new communicators other algorithms"
                                  : ": other algorithms are used");
    }
}

void tb_group_story_none(const struct tb_group_choice *choice, const struct tb_address_book *book, char *text,
                         size_t size)
{
    struct story s = {.text = text, .size = size};
    *text = 0;
    add(&s, "no multicast among the %u hosts", choice->count);
    add_cluster(&s, choice, book, " of ", "");
    add(&s, ": %s", choice->why);
}

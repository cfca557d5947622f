#include "mpi/place_type.h"

#include "mpi/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char site_name[] = "tombolo://site", cluster_name[] = "tombolo://cluster";

int tb_place_type_find(const char *name)
{
    size_t length = sizeof cluster_name - 1;
    if (strcasecmp(name, site_name) == 0)
        return TB_PLACE_TYPE_SITE;
    if (strncasecmp(name, cluster_name, length) != 0)
        return TB_PLACE_TYPE_NONE;
    const char *digits = name + length + 1;
    if (name[length] == 0)
        return TB_PLACE_TYPE_INNERMOST;
    if (name[length] != '/' || *digits < '1' || *digits > '9' || strspn(digits, "0123456789") != strlen(digits))
        return TB_PLACE_TYPE_NONE;
    long number = strtol(digits, NULL, 10);
    return number < (long)TB_PLACE_TYPE_LIMIT ? (int)number : TB_PLACE_TYPE_NONE;
}

void tb_place_type_print(int type, char name[TB_PLACE_TYPE_BYTES])
{
    if (type == TB_PLACE_TYPE_SITE)
        snprintf(name, TB_PLACE_TYPE_BYTES, "%s", site_name);
    else if (type == TB_PLACE_TYPE_INNERMOST)
        snprintf(name, TB_PLACE_TYPE_BYTES, "%s", cluster_name);
    else
        snprintf(name, TB_PLACE_TYPE_BYTES, "%s/%d", cluster_name, type);
}

/* Around a place of the job. */
static uint32_t around(uint32_t place, int type)
{
    const struct tb_places *places = &tb_self.job.book.places;
    if (type == TB_PLACE_TYPE_SITE)
        return tb_places_site(places, place);
    uint32_t number = type == TB_PLACE_TYPE_INNERMOST ? tb_places_nesting(places, place) : (uint32_t)type;
    return tb_places_cluster(places, place, number);
}

uint32_t tb_place_type_of(int type, uint32_t proc)
{
    const struct tb_address_book *book = &tb_self.job.book;
    return around(book->hosts[tb_address_book_host_of(book, proc)].place, type);
}

uint32_t tb_place_type_own(int type)
{
    return tb_place_type_of(type, tb_self.job.self.index);
}

/* The place of the job around a host of a shape. */
static uint32_t host_around(const struct tb_group_shape *s, uint32_t host, int type)
{
    return around(s->places[s->hosts[host].place].place, type);
}

/* Whether the hosts are not all in the same place of this type. */
static bool divides(const struct tb_group_shape *s, int type)
{
    uint32_t first = host_around(s, 0, type);
    for (uint32_t i = 1; i < s->host_count; i++)
        if (host_around(s, i, type) != first)
            return true;
    return false;
}

/* Whether no host is in a further cluster within the one of this number. */
static bool is_innermost(const struct tb_group_shape *s, int number)
{
    for (uint32_t i = 0; i < s->host_count; i++)
        if (host_around(s, i, number + 1) != TB_PLACE_NONE)
            return false;
    return true;
}

int tb_place_type_widest(struct tb_comm *comm, int *type)
{
    *type = TB_PLACE_TYPE_NONE;
    int error = tb_comm_open_shape(comm);
    if (error < 0 || comm->shape->place_count == 1)
        return error;
    for (int i = 0; i < (int)TB_PLACE_TYPE_LIMIT && *type == TB_PLACE_TYPE_NONE; i++)
        if (divides(comm->shape, i))
            *type = i > 0 && is_innermost(comm->shape, i) ? TB_PLACE_TYPE_INNERMOST : i;
    return TB_OK;
}

#include "launch/told_places.h"

#include "topology/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char site_variable[] = "TOMBOLO_SITE", cluster_variable[] = "TOMBOLO_CLUSTER";

static int check_name(const char *name, const char *variable, const char *host)
{
    if (*name == 0 || tb_grid_is_name(name, strlen(name)))
        return TB_OK;
    return tb_error(TB_ERR_ARGUMENT,
                    "host %s says %s=%s, which is no name: at most %zu letters, digits, '.', '_' and '-', of which the "
                    "first is a letter or digit. Correct it there, or say in a host file where the host is",
                    host, variable, name, sizeof((struct tb_host_where *)0)->site - 1);
}

int tb_told_places_take(struct tb_host_where *where, const struct tb_host_where *told, const char *host)
{
    if (*where->site != 0 || *where->cluster != 0)
        return TB_OK;
    int rc = check_name(told->site, site_variable, host);
    if (rc == TB_OK)
        rc = check_name(told->cluster, cluster_variable, host);
    if (rc == TB_OK)
        *where = *told;
    return rc;
}

/* Whether something is told that is not so. */
static bool differs(const char *told, const char *is)
{
    return *told != 0 && strcmp(told, is) != 0;
}

void tb_told_places_pass_over(struct tb_told_places *places, const struct tb_host_where *where,
                              const struct tb_host_where *told, uint32_t host)
{
    bool site = differs(told->site, where->site);
    if (!site && !differs(told->cluster, where->cluster))
        return;
    if (places->unheard++ > 0)
        return;
    places->host = host;
    snprintf(places->text, sizeof places->text, "%s=%s", site ? site_variable : cluster_variable,
             site ? told->site : told->cluster);
}

void tb_told_places_keep(char *to, size_t size, const char *bytes, size_t length)
{
    static const char mark[] = " ...";
    bool whole = length < size && memchr(bytes, 0, length) == NULL;
    snprintf(to, size, "%.*s%s", (int)(whole ? length : size - sizeof mark), bytes, whole ? "" : mark);
}

void tb_told_places_read_own(struct tb_host_where *told)
{
    const char *site = getenv(site_variable), *cluster = getenv(cluster_variable);
    *told = (struct tb_host_where){{0}, {0}};
    if (site != NULL)
        tb_told_places_keep(told->site, sizeof told->site, site, strlen(site));
    if (cluster != NULL)
        tb_told_places_keep(told->cluster, sizeof told->cluster, cluster, strlen(cluster));
}

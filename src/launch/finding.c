/* What the agents of a realm are to try, and what follows from what they have found out. */
#include "launch/realm.h"

#include <stdlib.h>
#include <string.h>

#define EACH    2u   /* where there are more hosts than TB_FINDINGS_HOSTS, so many of each class stand for it, */
#define CLASSES 512u /* and one of each, if there are more classes than this */

void tb_findings_close(struct tb_findings *findings)
{
    for (size_t i = 0; findings->stories != NULL && i < (size_t)findings->count * findings->count; i++)
        free(findings->stories[i]);
    free(findings->hosts);
    free(findings->results);
    free(findings->stories);
    *findings = (struct tb_findings){0};
}

static int compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

bool tb_findings_find(const struct tb_findings *findings, uint32_t host, uint32_t *index)
{
    if (findings->count == 0)
        return false;
    const uint32_t *found = bsearch(&host, findings->hosts, findings->count, sizeof host, compare);
    *index = found != NULL ? (uint32_t)(found - findings->hosts) : 0;
    return found != NULL;
}

static uint32_t class_of(const struct tb_realm *realm, const struct tb_placement *placement, uint32_t host)
{
    return realm->connectivity.classes.of[placement->entries[host]];
}

static bool is_open(const struct tb_realm *realm, uint32_t from, uint32_t to)
{
    const struct tb_connectivity *c = &realm->connectivity;
    return from != to && tb_connectivity_reaches(c, from, to) &&
           tb_grid_supposes(realm->grid, tb_host_classes_member(&c->classes, from, 0),
                            tb_host_classes_member(&c->classes, to, 0));
}

/* Chooses who tries and is tried: hosts of the book, ascending. `sizes` has the number of hosts in the book of each
 * class, and becomes 0 for those about which there is no question. */
static void choose(const struct tb_realm *realm, const struct tb_placement *placement, uint32_t *sizes,
                   struct tb_findings *findings)
{
    uint32_t n = realm->connectivity.classes.class_count, hosts = 0, classes = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool asked = false;
        for (uint32_t k = 0; k < n && sizes[i] > 0 && !asked; k++)
            asked = sizes[k] > 0 && (is_open(realm, i, k) || is_open(realm, k, i));
        hosts += asked ? sizes[i] : 0;
        classes += asked;
        sizes[i] = asked ? sizes[i] : 0; /* nobody who has a question loses it by this: it is about two */
    }
    uint32_t most = hosts <= TB_FINDINGS_HOSTS ? TB_FINDINGS_HOSTS : classes <= CLASSES ? EACH : 1;
    for (uint32_t i = 0; i < n; i++)
        sizes[i] = sizes[i] < most ? sizes[i] : most;
    findings->all = hosts <= TB_FINDINGS_HOSTS;
    for (uint32_t i = 0; i < placement->book.host_count; i++) {
        uint32_t class = class_of(realm, placement, i);
        if (sizes[class] == 0)
            continue;
        sizes[class]--;
        findings->hosts[findings->count++] = i;
    }
}

int tb_realm_ask(const struct tb_realm *realm, const struct tb_placement *placement, struct tb_findings *findings)
{
    uint32_t host_count = placement->book.host_count;
    uint32_t *sizes = calloc(realm->connectivity.classes.class_count + 1u, sizeof *sizes);
    *findings = (struct tb_findings){.hosts = calloc(host_count + 1u, sizeof *findings->hosts)};
    bool enough = sizes != NULL && findings->hosts != NULL;
    for (uint32_t i = 0; enough && i < host_count; i++)
        sizes[class_of(realm, placement, i)]++;
    if (enough)
        choose(realm, placement, sizes, findings);
    free(sizes);
    uint32_t n = findings->count;
    findings->results = enough ? calloc((size_t)n * n + 1, sizeof *findings->results) : NULL;
    findings->stories = enough ? calloc((size_t)n * n + 1, sizeof *findings->stories) : NULL;
    if (findings->results == NULL || findings->stories == NULL) {
        findings->count = 0;
        tb_findings_close(findings);
        return tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", realm->grid->file);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            if (is_open(realm, class_of(realm, placement, findings->hosts[i]),
                        class_of(realm, placement, findings->hosts[k])))
                findings->results[(size_t)i * n + k] = TB_FINDING_NO;
    return TB_OK;
}

/* Whether the same was found out about two hosts, in both directions. */
static bool are_alike(const struct tb_findings *findings, uint32_t a, uint32_t b)
{
    uint32_t n = findings->count;
    if (memcmp(findings->results + (size_t)a * n, findings->results + (size_t)b * n, n) != 0)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (findings->results[(size_t)i * n + a] != findings->results[(size_t)i * n + b])
            return false;
    return true;
}

/* Those of a class that are alike get the number of the first of them; those who were not asked take no part, or stand
 * with the first of their class. */
static int split(struct tb_realm *realm, const struct tb_placement *placement, const struct tb_findings *findings)
{
    const struct tb_host_classes *classes = &realm->connectivity.classes;
    uint32_t host_count = realm->grid->host_count, old = classes->class_count;
    uint32_t *labels = calloc(host_count + 1u, sizeof *labels), *origins = calloc(host_count + 1u, sizeof *origins);
    uint32_t *firsts = calloc(old + 1u, sizeof *firsts), *values = calloc(2 * (host_count + 1u), sizeof *values);
    int rc = labels != NULL && origins != NULL && firsts != NULL && values != NULL
                 ? TB_OK
                 : tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", realm->grid->file);
    for (uint32_t i = findings->count; rc == TB_OK && i-- > 0;)
        firsts[class_of(realm, placement, findings->hosts[i])] = i;
    for (uint32_t i = 0; rc == TB_OK && i < host_count; i++)
        labels[i] = firsts[classes->of[i]];
    for (uint32_t i = 0; rc == TB_OK && i < findings->count; i++) {
        uint32_t k = 0;
        while (class_of(realm, placement, findings->hosts[k]) != class_of(realm, placement, findings->hosts[i]) ||
               !are_alike(findings, i, k))
            k++;
        labels[placement->entries[findings->hosts[i]]] = k;
    }
    if (rc == TB_OK)
        rc = tb_connectivity_split(&realm->connectivity, labels, origins);
    uint32_t n = rc == TB_OK ? classes->class_count : 0;
    for (uint32_t i = 0; i < n; i++) {
        values[i] = realm->guards[origins[i]];
        values[n + i] = realm->depths[origins[i]];
    }
    uint32_t *guards = n > old ? reallocarray(realm->guards, n + 1u, sizeof *guards) : realm->guards;
    realm->guards = guards != NULL ? guards : realm->guards;
    uint32_t *depths = n > old ? reallocarray(realm->depths, n + 1u, sizeof *depths) : realm->depths;
    realm->depths = depths != NULL ? depths : realm->depths;
    if (rc == TB_OK && (guards == NULL || depths == NULL))
        rc = tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", realm->grid->file);
    for (uint32_t i = 0; i < n && rc == TB_OK; i++) {
        realm->guards[i] = values[i];
        realm->depths[i] = values[n + i];
    }
    free(labels);
    free(origins);
    free(firsts);
    free(values);
    return rc;
}

int tb_realm_learn(struct tb_realm *realm, struct tb_placement *placement, const struct tb_findings *findings)
{
    uint32_t n = findings->count;
    int rc = findings->all ? split(realm, placement, findings) : TB_OK;
    if (rc != TB_OK)
        return rc;
    for (int yes = 0; yes <= 1; yes++) /* one that reaches another stands for its class */
        for (size_t i = 0; i < (size_t)n * n; i++)
            if (findings->results[i] == (yes ? TB_FINDING_YES : TB_FINDING_NO))
                tb_connectivity_set(&realm->connectivity, class_of(realm, placement, findings->hosts[i / n]),
                                    class_of(realm, placement, findings->hosts[i % n]), yes != 0);
    for (uint32_t i = 0; i < placement->book.host_count; i++)
        placement->book.hosts[i].kind = class_of(realm, placement, i);
    realm->findings = findings;
    return tb_realm_reroute(realm, placement);
}

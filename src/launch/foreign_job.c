#include "launch/foreign_job.h"

#include <stdlib.h>
#include <string.h>

struct tb_foreign_job *tb_foreign_job_new(uint32_t number, uint64_t generation)
{
    struct tb_foreign_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return NULL;
    job->number = number;
    job->generation = generation;
    tb_list_init(&job->node);
    return job;
}

void tb_foreign_job_free(struct tb_foreign_job *job)
{
    tb_list_remove(&job->node);
    free(job->ranges);
    free(job->members);
    free(job);
}

bool tb_foreign_job_find(const struct tb_foreign_job *job, uint32_t home, uint32_t *index)
{
    uint32_t low = 0, high = job->range_count; /* the first range that begins behind it */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (job->ranges[middle].home <= home)
            low = middle + 1;
        else
            high = middle;
    }
    const struct tb_rank_range *range = low > 0 ? &job->ranges[low - 1] : NULL;
    if (range == NULL || home - range->home >= range->count)
        return false;
    *index = range->first_rank + (home - range->home);
    return true;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* In order, and nobody twice. */
static int sort(const uint32_t *homes, uint32_t count, uint32_t **sorted)
{
    *sorted = malloc(count * sizeof **sorted);
    if (*sorted == NULL)
        return tb_error(TB_ERR_MEMORY, "mpiexec has no memory for %u processes of another job", count);
    memcpy(*sorted, homes, count * sizeof **sorted);
    qsort(*sorted, count, sizeof **sorted, compare);
    for (uint32_t i = 0; i < count; i++)
        if ((*sorted)[i] >= TB_JOB_RANKS_LIMIT || (i > 0 && (*sorted)[i] == (*sorted)[i - 1])) {
            return tb_error(TB_ERR_PROTOCOL, "what the other job says of its processes makes no sense");
        }
    return TB_OK;
}

/* What both sides know it by; nobody finds the generation, which is a secret, by it. */
static uint32_t mark_of(uint64_t generation)
{
    static const struct tb_siphash_key key = {{0}};
    struct tb_siphash hash;
    tb_siphash_begin(&hash, &key);
    tb_siphash_add(&hash, &generation, sizeof generation);
    uint32_t mark = (uint32_t)tb_siphash_end(&hash);
    return mark != 0 ? mark : 1;
}

int tb_foreign_job_place(const struct tb_foreign_job *job, const uint32_t *homes, uint32_t count, uint32_t next,
                         uint32_t host, struct tb_rank_range **ranges, uint32_t *range_count)
{
    uint32_t *sorted = NULL, known, mark = mark_of(job->generation);
    *range_count = 0;
    *ranges = calloc(count, sizeof **ranges);
    int rc = *ranges != NULL ? sort(homes, count, &sorted)
                             : tb_error(TB_ERR_MEMORY, "mpiexec has no memory for %u processes of another job", count);
    for (uint32_t i = 0; rc == TB_OK && i < count; i++) {
        struct tb_rank_range *last = *range_count > 0 ? &(*ranges)[*range_count - 1] : NULL;
        if (tb_foreign_job_find(job, sorted[i], &known))
            continue;
        if (next == TB_JOB_RANKS_LIMIT)
            rc = tb_error(TB_ERR_LIMIT,
                          "a job can know %u processes in all, those of other jobs that it has met included, and %u "
                          "more of another one are too many",
                          TB_JOB_RANKS_LIMIT, count);
        else if (last != NULL && last->home + last->count == sorted[i])
            last->count++;
        else
            (*ranges)[(*range_count)++] = (struct tb_rank_range){.first_rank = next,
                                                                 .count = 1,
                                                                 .host = host,
                                                                 .job = job->number,
                                                                 .home = sorted[i],
                                                                 .generation = mark};
        next++;
    }
    free(sorted);
    if (rc != TB_OK) {
        free(*ranges);
        *ranges = NULL;
    }
    return rc;
}

static int by_home(const void *a, const void *b)
{
    const struct tb_rank_range *x = a, *y = b;
    return x->home < y->home ? -1 : x->home > y->home;
}

int tb_foreign_job_add(struct tb_foreign_job *job, const struct tb_rank_range *ranges, uint32_t count)
{
    struct tb_rank_range *grown = reallocarray(job->ranges, job->range_count + count + 1u, sizeof *grown);
    if (grown == NULL)
        return tb_error(TB_ERR_MEMORY, "mpiexec has no memory for processes of another job");
    job->ranges = grown;
    if (count == 0)
        return TB_OK;
    memcpy(grown + job->range_count, ranges, count * sizeof *grown);
    job->range_count += count;
    qsort(grown, job->range_count, sizeof *grown, by_home);
    return TB_OK;
}

void tb_foreign_job_drop(struct tb_foreign_job *job, uint32_t first)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < job->range_count; i++)
        if (job->ranges[i].first_rank < first)
            job->ranges[kept++] = job->ranges[i];
    job->range_count = kept;
}

static int by_first(const void *a, const void *b)
{
    const struct tb_rank_range *x = a, *y = b;
    return x->first_rank < y->first_rank ? -1 : x->first_rank > y->first_rank;
}

/* What a range has of those from `home` on. */
static struct tb_rank_range cut(const struct tb_rank_range *range, uint32_t home, uint32_t count)
{
    uint64_t end = (uint64_t)home + count, range_end = (uint64_t)range->home + range->count;
    uint32_t first = range->home > home ? range->home : home;
    uint64_t last = end < range_end ? end : range_end;
    return (struct tb_rank_range){.first_rank = range->first_rank + (first - range->home),
                                  .count = last > first ? (uint32_t)(last - first) : 0};
}

/* Each of them can be lost once; what is said more often would be told all our processes as often. */
static int count_losses(struct tb_foreign_job *job, uint32_t pieces)
{
    uint32_t processes = 0;
    for (uint32_t i = 0; i < job->range_count; i++)
        processes += job->ranges[i].count;
    job->vain += pieces == 0;
    job->losses += pieces;
    return job->losses <= processes && job->vain <= TB_JOB_RANKS_LIMIT
               ? TB_OK
               : tb_error(TB_ERR_PROTOCOL, "the other job loses more processes than it has");
}

int tb_foreign_job_lose(struct tb_foreign_job *job, uint32_t home, uint32_t count,
                        void (*each)(void *context, uint32_t first, uint32_t count), void *context)
{
    struct tb_rank_range *lost = calloc(job->range_count + 1u, sizeof *lost);
    uint32_t found = 0, merged = 0;
    if (lost == NULL)
        return tb_error(TB_ERR_MEMORY, "mpiexec has no memory for processes of another job");
    for (uint32_t i = 0; i < job->range_count; i++) {
        lost[found] = cut(&job->ranges[i], home, count);
        found += lost[found].count > 0;
    }
    qsort(lost, found, sizeof *lost, by_first);
    for (uint32_t i = 1; i < found; i++)
        if (lost[merged].first_rank + lost[merged].count == lost[i].first_rank)
            lost[merged].count += lost[i].count;
        else
            lost[++merged] = lost[i];
    found = found > 0 ? merged + 1 : 0;
    int rc = count_losses(job, found);
    for (uint32_t i = 0; rc == TB_OK && i < found; i++)
        each(context, lost[i].first_rank, lost[i].count);
    free(lost);
    return rc;
}

static int by_index(const void *a, const void *b)
{
    const struct tb_foreign_member *x = a, *y = b;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Of the first `count`, which are in order. */
static struct tb_foreign_member *member_of(const struct tb_foreign_job *job, uint32_t count, uint32_t index)
{
    const struct tb_foreign_member key = {.index = index};
    return count > 0 ? bsearch(&key, job->members, count, sizeof key, by_index) : NULL;
}

int tb_foreign_job_meet(struct tb_foreign_job *job, const uint32_t *procs, uint32_t count, uint32_t meeting)
{
    struct tb_foreign_member *grown = reallocarray(job->members, job->member_count + count, sizeof *grown);
    uint32_t known = job->member_count;
    if (grown == NULL)
        return tb_error(TB_ERR_MEMORY, "mpiexec has no memory for %u processes that meet another job", count);
    job->members = grown;
    for (uint32_t i = 0; i < count; i++) {
        struct tb_foreign_member *member = member_of(job, known, procs[i]);
        if (member == NULL)
            grown[job->member_count++] = (struct tb_foreign_member){.index = procs[i]};
        else if (member->meeting == 0) /* what they were told was in vain */
            member->known = member->told = false;
    }
    qsort(grown, job->member_count, sizeof *grown, by_index);
    tb_foreign_job_remain(job, procs, count, meeting);
    return TB_OK;
}

static bool stays(const struct tb_foreign_member *member)
{
    return member->meeting > member->parted;
}

void tb_foreign_job_remain(struct tb_foreign_job *job, const uint32_t *procs, uint32_t count, uint32_t meeting)
{
    for (uint32_t i = 0; i < count; i++) {
        struct tb_foreign_member *member = member_of(job, job->member_count, procs[i]);
        if (member == NULL || member->meeting >= meeting)
            continue;
        job->staying -= stays(member);
        member->meeting = meeting;
        job->staying += stays(member);
    }
}

void tb_foreign_job_unmeet(struct tb_foreign_job *job, const uint32_t *procs, uint32_t count, uint32_t meeting)
{
    for (uint32_t i = 0; i < count; i++) {
        struct tb_foreign_member *member = member_of(job, job->member_count, procs[i]);
        if (member == NULL || member->meeting != meeting)
            continue;
        job->staying -= stays(member);
        member->meeting = 0;
    }
}

void tb_foreign_job_leave(struct tb_foreign_job *job, uint32_t index, uint32_t meeting)
{
    struct tb_foreign_member *member = member_of(job, job->member_count, index);
    uint32_t parted = meeting != 0 ? meeting : TB_FOREIGN_ENDED;
    if (member == NULL || parted <= member->parted)
        return;
    job->staying -= stays(member);
    member->parted = parted;
    job->staying += stays(member);
}

bool tb_foreign_job_all_left(const struct tb_foreign_job *job)
{
    return job->staying == 0;
}

void tb_foreign_job_show(struct tb_foreign_job *job, const uint32_t *procs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct tb_foreign_member *member = member_of(job, job->member_count, procs[i]);
        if (member != NULL)
            member->known = true;
    }
}

/* The first of ours from an index on, by its place. */
static uint32_t first_from(const struct tb_foreign_job *job, uint32_t index)
{
    uint32_t low = 0, high = job->member_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (job->members[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool tb_foreign_job_misses(struct tb_foreign_job *job, uint32_t first, uint32_t count, uint32_t *from, uint32_t *number)
{
    *number = 0;
    for (uint32_t i = first_from(job, first); i < job->member_count && job->members[i].index - first < count; i++) {
        struct tb_foreign_member *member = &job->members[i];
        if (!member->known && *number > 0)
            break;
        if (!member->known || member->told) {
            member->lost = !member->told;
            continue;
        }
        *from = *number > 0 ? *from : member->index;
        *number = member->index - *from + 1; /* whoever is between has died, too */
        member->told = true;
    }
    return *number > 0;
}

void tb_foreign_job_note_lost(struct tb_foreign_job *job, uint32_t first, uint32_t count)
{
    for (uint32_t i = first_from(job, first); i < job->member_count && job->members[i].index - first < count; i++)
        job->members[i].lost = !job->members[i].told;
}

static bool is_news(const struct tb_foreign_job *job, uint32_t i)
{
    return i < job->member_count && job->members[i].lost && job->members[i].known;
}

bool tb_foreign_job_take_lost(struct tb_foreign_job *job, uint32_t *first, uint32_t *count)
{
    uint32_t i = 0;
    while (i < job->member_count && !is_news(job, i))
        i++;
    *first = i < job->member_count ? job->members[i].index : 0;
    for (*count = 0; is_news(job, i) && job->members[i].index == *first + *count; i++) {
        job->members[i].lost = false;
        job->members[i].told = true;
        ++*count;
    }
    return *count > 0;
}

/* How many of ours have indices without a gap, from that one on. */
static uint32_t run_of(const struct tb_foreign_job *job, uint32_t from)
{
    uint32_t count = 1;
    while (from + count < job->member_count && job->members[from + count].index == job->members[from].index + count)
        count++;
    return count;
}

void tb_foreign_job_put_names(const struct tb_foreign_job *job, struct tb_writer *w)
{
    uint32_t runs = 0;
    tb_put_u32(w, job->number);
    tb_put_u32(w, job->range_count);
    for (uint32_t i = 0; i < job->range_count; i++) {
        tb_put_u32(w, job->ranges[i].first_rank);
        tb_put_u32(w, job->ranges[i].count);
        tb_put_u32(w, job->ranges[i].home);
    }
    for (uint32_t i = 0; i < job->member_count; i += run_of(job, i))
        runs++;
    tb_put_u32(w, runs);
    for (uint32_t i = 0; i < job->member_count; i += run_of(job, i)) {
        tb_put_u32(w, job->members[i].index);
        tb_put_u32(w, run_of(job, i));
    }
}

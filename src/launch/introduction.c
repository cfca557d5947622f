#include "launch/introduction.h"

#include <stdlib.h>
#include <string.h>

/* All of a party of ours, a struct tb_meeting_party that may stand anywhere in a frame, are processes of this job. */
int tb_introduction_check_own(const struct tb_address_book *book, const void *party)
{
    struct tb_meeting_party head;
    memcpy(&head, party, sizeof head);
    for (uint32_t i = 0; i < head.size; i++) {
        uint32_t proc;
        memcpy(&proc, (const char *)party + sizeof head + i * sizeof proc, sizeof proc);
        if (!tb_address_book_knows(book, proc) || tb_worlds_is_foreign(book, proc))
            return tb_error(
                TB_ERR_UNSUPPORTED,
                "process %u of the communicator is of another job: only processes of one job can meet those "
                "of another one",
                proc);
    }
    return TB_OK;
}

/* Not to a link at whose other end we do not know yet who that is. */
static void names_tell(struct tb_foreign_links *links, const struct tb_foreign_job *job)
{
    struct tb_foreign_link *link;
    TB_LIST_EACH (link, &links->all, struct tb_foreign_link, node) {
        bool known = link->job == job && link->phase != TB_FOREIGN_ASKING;
        struct tb_writer *w = known ? tb_foreign_border_begin(links, link->host, TB_BORDER_NAMES, link->number) : NULL;
        if (w == NULL)
            continue;
        link->telling = ++links->telling;
        if (link->first_telling == 0)
            link->first_telling = link->telling;
        tb_put_u32(w, link->telling);
        tb_foreign_job_put_names(job, w);
        tb_foreign_border_end(links, link->host);
    }
}

/* What has happened to ours that the others could not be told before they had heard of them. */
static void tell_rest(struct tb_foreign_link *link)
{
    const struct tb_meeting_party *mine = link->mine;
    uint32_t first, count;
    tb_foreign_job_show(link->job, mine->procs, mine->size);
    while (tb_foreign_job_take_lost(link->job, &first, &count))
        tb_foreign_link_tell_lost(link, first, count, "it has died before the two jobs met, or while they did");
    if (link->job->left)
        tb_foreign_link_tell_word(link, TB_FOREIGN_LEFT, NULL);
}

/* The party of the others, as our ranks know them. */
void tb_introduction_end(struct tb_foreign_link *link)
{
    struct tb_meeting_party *their = link->their;
    for (uint32_t i = 0; i < their->size; i++)
        tb_foreign_job_find(link->job, their->procs[i], &their->procs[i]);
    tb_timer_clear(&link->timer);
    link->phase = TB_FOREIGN_MET;
    tb_foreign_link_answer(link, TB_OK, "", their, link->their_length);
}

/* All agents and borders know who the others are. */
static void all_named(struct tb_foreign_link *link)
{
    struct tb_writer w;
    if (link->port_job != 0) {
        tb_foreign_link_tell_word(link, TB_FOREIGN_READY, NULL);
        tell_rest(link);
        tb_introduction_end(link);
        return;
    }
    link->phase = TB_FOREIGN_ANSWERED;
    tb_timer_set(link->links->loop, &link->timer, tb_param.link_patience);
    tb_writer_open(&w);
    tb_put_u8(&w, TB_FOREIGN_ACCEPT);
    tb_put_u32(&w, link->links->book->job);
    tb_put_u64(&w, link->job->generation);
    tb_put_bytes(&w, link->mine, link->mine_length);
    tb_foreign_link_tell(link, &w);
    tb_writer_close(&w);
    tell_rest(link);
}

/* Whether the borders of all links to the job have the names that they were told. */
static bool borders_know(const struct tb_foreign_links *links, const struct tb_foreign_job *job)
{
    const struct tb_foreign_link *link;
    TB_LIST_EACH (link, &links->all, const struct tb_foreign_link, node)
        if (link->job == job && link->named != link->telling && tb_host_agent_is_ready(&links->agents->all[link->host]))
            return false;
    return true;
}

/* All agents know of the others. */
static void all_told(struct tb_foreign_link *link)
{
    link->phase = TB_FOREIGN_NAMING;
    names_tell(link->links, link->job);
    if (borders_know(link->links, link->job)) /* there are none any more */
        all_named(link);
}

void tb_introduction_named(struct tb_foreign_link *link, uint32_t telling)
{
    struct tb_foreign_links *links = link->links;
    const struct tb_foreign_job *job = link->job;
    struct tb_foreign_link *other;
    link->named = telling;
    if (job == NULL || !borders_know(links, job))
        return;
    TB_LIST_EACH (other, &links->all, struct tb_foreign_link, node)
        if (other->job == job && other->phase == TB_FOREIGN_NAMING)
            all_named(other);
}

void tb_introduction_told(struct tb_foreign_link *link, uint32_t host)
{
    if (link->phase != TB_FOREIGN_TELLING || !link->untold[host])
        return;
    link->untold[host] = false;
    if (--link->untold_count == 0)
        all_told(link);
}

static void agents_tell(struct tb_foreign_link *link, const struct tb_rank_range *ranges, uint32_t count)
{
    struct tb_foreign_links *links = link->links;
    link->first = ranges[0].first_rank;
    for (uint32_t i = 0; i < links->agents->count; i++) {
        struct tb_host_agent *agent = &links->agents->all[i];
        if (!tb_host_agent_is_ready(agent))
            continue;
        tb_worlds_put(tb_control_stream_begin(&agent->control, TB_CONTROL_WORLD), ranges, count);
        tb_control_stream_end(&agent->control);
        link->untold[i] = true;
        link->untold_count++;
    }
}

/* Nothing comes of a meeting: those who have met before have met then. False: others have begun since. */
static bool unmeet(const struct tb_foreign_link *link, struct tb_foreign_job *job, uint32_t meeting)
{
    const struct tb_meeting_party *mine = link->mine;
    const struct tb_foreign_link *other;
    bool last = true;
    tb_foreign_job_unmeet(job, mine->procs, mine->size, meeting);
    TB_LIST_EACH (other, &link->links->all, const struct tb_foreign_link, node) {
        if (other == link || other->job != job || other->phase < TB_FOREIGN_ANSWERED)
            continue;
        const struct tb_meeting_party *theirs = other->mine, *they = other->their;
        tb_foreign_job_remain(job, theirs->procs, theirs->size, they->meeting);
        last = last && they->meeting < meeting;
    }
    return last;
}

/* Of those who meet, some may have ended before: nobody waits for these to leave, and who has died is missed there. */
static void note_ends(const struct tb_foreign_link *link)
{
    const struct tb_meeting_party *mine = link->mine;
    for (uint32_t i = 0; i < mine->size; i++) {
        uint8_t end = mine->procs[i] < link->links->ends_room ? link->links->ends[mine->procs[i]] : 0;
        if (end & TB_FOREIGN_DIED)
            tb_foreign_job_note_lost(link->job, mine->procs[i], 1);
        if (end != 0)
            tb_foreign_job_leave(link->job, mine->procs[i], 0);
    }
}

/* Who the others are is known: they get indices, and all agents are told. */
int tb_introduction_begin(struct tb_foreign_link *link, struct tb_foreign_job *job)
{
    struct tb_foreign_links *links = link->links;
    const struct tb_meeting_party *mine = link->mine;
    struct tb_meeting_party *their = link->their;
    struct tb_rank_range *ranges = NULL;
    uint32_t count = 0, meeting = ++links->meeting;
    int rc = TB_OK;
    link->untold = calloc(links->agents->count + 1u, sizeof *link->untold);
    if (job == NULL || link->untold == NULL)
        rc = tb_error(TB_ERR_MEMORY, "mpiexec has no memory for another job");
    if (rc == TB_OK)
        rc = tb_foreign_job_place(job, their->procs, their->size, tb_worlds_processes(links->book), link->host, &ranges,
                                  &count);
    if (rc == TB_OK)
        rc = tb_foreign_job_meet(job, mine->procs, mine->size, meeting);
    if (rc == TB_OK && count > 0)
        rc = tb_worlds_add(links->book, ranges, count);
    if (rc == TB_OK)
        rc = tb_foreign_job_add(job, ranges, count);
    if (rc != TB_OK && job != NULL)
        unmeet(link, job, meeting);
    if (rc == TB_OK) {
        link->job = job;
        link->phase = TB_FOREIGN_TELLING;
        their->meeting = meeting;
        note_ends(link);
        if (count > 0)
            agents_tell(link, ranges, count);
    } else if (job != NULL && job->range_count == 0) {
        tb_foreign_job_free(job);
    }
    free(ranges);
    if (rc == TB_OK && link->untold_count == 0)
        all_told(link);
    return rc;
}

/* ---- in vain ----------------------------------------------------------------------------------------------------- */

/* Whether frames for some of theirs take this one. */
static bool leads(const struct tb_foreign_link *link)
{
    const struct tb_foreign_link *other;
    bool any = false;
    for (uint32_t i = 0; i < link->job->range_count; i++)
        any = any || link->job->ranges[i].host == link->host;
    TB_LIST_EACH (other, &link->links->all, const struct tb_foreign_link, node)
        if (other->job == link->job && other->phase == TB_FOREIGN_MET && other->host == link->host &&
            (link->first_telling == 0 || other->first_telling < link->first_telling))
            return false;
    return any;
}

bool tb_introduction_is_spare(const struct tb_foreign_link *link)
{
    const struct tb_foreign_link *other;
    if (link->phase < TB_FOREIGN_ANSWERED || link->phase == TB_FOREIGN_MET)
        return false;
    TB_LIST_EACH (other, &link->links->all, const struct tb_foreign_link, node)
        if (other->job == link->job && other->phase == TB_FOREIGN_MET)
            return !leads(link);
    return false;
}

void tb_introduction_undo(struct tb_foreign_link *link)
{
    const struct tb_meeting_party *their = link->their;
    bool last = unmeet(link, link->job, their->meeting);
    if (last &&
        link->untold_count > 0) /* agents do not know these yet, and who meets them next would not wait for it */
        tb_foreign_job_drop(link->job, link->first);
}

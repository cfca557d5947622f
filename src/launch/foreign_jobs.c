#include "launch/foreign_jobs.h"

#include "launch/foreign_alike.h"
#include "launch/introduction.h"
#include "launch/port_name.h"
#include "launch/visible_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tb_foreign_jobs *jobs_of(const struct tb_foreign_link *link)
{
    return TB_CONTAINER(link->links, struct tb_foreign_jobs, links);
}

/* With the present story. */
static void refuse(struct tb_foreign_jobs *jobs, uint32_t rank, uint32_t number, int error)
{
    tb_agent_orders_answer(jobs->agents, jobs->book, rank,
                           &(struct tb_agent_answer){number, error, tb_error_story(), NULL, 0});
}

/* ---- endings ----------------------------------------------------------------------------------------------------- */

/* Who has accepted one that is gone again accepts the next one; or asks anew, if the other side may have made something
 * of what it was told. Nothing else happens at once: links are walked when it is called. */
static void accept_again(struct tb_foreign_link *link, const char *why)
{
    if (link->asked == 0 || link->port_job != 0)
        return;
    const struct tb_acceptance acceptance = {link->asker, link->asked, link->until, link->mine, link->mine_length};
    if (link->phase == TB_FOREIGN_ANSWERED)
        tb_foreign_link_answer(link, TB_AGAIN, why, NULL, 0);
    else if (link->mine == NULL || tb_acceptances_add(&jobs_of(link)->again, link->port, &acceptance) != TB_OK)
        tb_foreign_link_answer(link, TB_ERR_MEMORY, tb_error_story(), NULL, 0);
    link->asked = 0;
}

/* With all links to it. */
static void job_free(struct tb_foreign_jobs *jobs, struct tb_foreign_job *job)
{
    static const char why[] = "the other job has left, or its processes are lost";
    struct tb_foreign_link *link;
    TB_LIST_EACH (link, &jobs->links.all, struct tb_foreign_link, node)
        if (link->job == job) {
            accept_again(link, why);
            tb_foreign_link_answer(link, TB_ERR_CLOSED, why, NULL, 0);
            tb_foreign_link_free(link, true);
        }
    tb_foreign_job_free(job);
}

/* What our processes are told of those of another job that are lost. */
struct loss {
    struct tb_foreign_jobs *jobs;
    const char *text;
};

static void tell_loss(void *context, uint32_t first, uint32_t count)
{
    const struct loss *loss = context;
    tb_agent_orders_lost(loss->jobs->agents, (struct tb_proc){loss->jobs->book->job, first}, count, loss->text);
}

/* Its processes are lost, unless ours have left it. */
static void job_lose(struct tb_foreign_jobs *jobs, struct tb_foreign_job *job, const char *why)
{
    char text[512];
    snprintf(text, sizeof text, "it is of another job (%08x), which cannot be reached any more: %s", job->number, why);
    job->losses = 0; /* some may have been told of before */
    if (!job->left)
        tb_foreign_job_lose(job, 0, TB_JOB_RANKS_LIMIT, tell_loss, &(struct loss){jobs, text});
    job_free(jobs, job);
}

/* The one by which the other side knows the job as we do, if there is one by which we have met, such a one; NULL: it
 * does not yet, and is told when it does. */
static struct tb_foreign_link *link_of(const struct tb_foreign_jobs *jobs, const struct tb_foreign_job *job)
{
    struct tb_foreign_link *link, *found = NULL;
    TB_LIST_EACH (link, &jobs->links.all, struct tb_foreign_link, node)
        if (link->job == job &&
            (link->phase == TB_FOREIGN_MET || (link->phase == TB_FOREIGN_ANSWERED && found == NULL)))
            found = link;
    return found;
}

/* The last of ours has left, or the other side has: that is told, and when both have, all is over. */
static void check_left(struct tb_foreign_jobs *jobs, struct tb_foreign_job *job)
{
    if (!job->left && job->pending == 0 && tb_foreign_job_all_left(job)) {
        struct tb_foreign_link *link = link_of(jobs, job);
        job->left = true;
        if (link != NULL)
            tb_foreign_link_tell_word(link, TB_FOREIGN_LEFT, NULL);
    }
    if (job->left && job->they_left)
        job_free(jobs, job);
}

/* The link is gone, or of no use. */
static void link_lose(struct tb_foreign_link *link, const char *why, bool close)
{
    struct tb_foreign_job *job = link->job;
    struct tb_foreign_jobs *jobs = jobs_of(link);
    bool pending = link->phase == TB_FOREIGN_ASKING && job != NULL; /* nothing was lost that we had, */
    bool spare = job != NULL && tb_introduction_is_spare(link); /* nor here; if the others had, they close the rest */
    if (spare)
        tb_introduction_undo(link);
    accept_again(link, why);
    tb_foreign_link_answer(link, TB_ERR_CLOSED, why, NULL, 0);
    tb_foreign_link_free(link, close);
    if (pending || spare) {
        job->pending -= pending;
        check_left(jobs, job);
    } else if (job != NULL) {
        job_lose(jobs, job, why);
    }
}

static void patience_over(struct tb_timer *timer)
{
    struct tb_foreign_link *link = TB_CONTAINER(timer, struct tb_foreign_link, timer);
    if (link->port_job != 0 && link->phase <= TB_FOREIGN_ASKING)
        tb_foreign_link_answer(
            link, TB_ERR_TIMEOUT,
            "nobody has accepted at the port in time; the info key timeout, in seconds, says how long to wait", NULL,
            0);
    else if (link->port_job == 0 && link->phase != TB_FOREIGN_ANSWERED &&
             tb_loop_now(jobs_of(link)->loop) >= link->until)
        tb_foreign_link_answer(
            link, TB_ERR_TIMEOUT,
            "nobody has come to the port in time; the info key timeout, in seconds, says how long to wait", NULL, 0);
    link_lose(link, "it has not answered in time", true);
}

/* ---- making them ------------------------------------------------------------------------------------------------- */

/* With no `generation`: the live one. NULL: there is none. */
static struct tb_foreign_job *job_of(const struct tb_foreign_jobs *jobs, uint32_t number, uint64_t generation)
{
    struct tb_foreign_job *job;
    TB_LIST_EACH (job, &jobs->jobs, struct tb_foreign_job, node)
        if (job->number == number && tb_foreign_job_is_live(job) && (generation == 0 || job->generation == generation))
            return job;
    return NULL;
}

static struct tb_foreign_job *job_make(struct tb_foreign_jobs *jobs, uint32_t number, uint64_t generation)
{
    struct tb_foreign_job *job = tb_foreign_job_new(number, generation);
    if (job != NULL)
        tb_list_append(&jobs->jobs, &job->node);
    return job;
}

void tb_foreign_jobs_told(struct tb_foreign_jobs *jobs, uint32_t host, uint32_t first)
{
    struct tb_foreign_link *link;
    TB_LIST_EACH (link, &jobs->links.all, struct tb_foreign_link, node)
        if (link->first == first)
            tb_introduction_told(link, host);
}

/* ---- connecting -------------------------------------------------------------------------------------------------- */

/* Whose port it is: of another job, that says where to go. A number too near to ours is more often one of ours that was
 * typed wrong. */
static int check_port(const struct tb_foreign_jobs *jobs, const struct tb_meeting *meeting,
                      const struct tb_port_name *port)
{
    int length = (int)meeting->name_length;
    uint32_t own = jobs->book->job;
    if (port->job == own)
        return tb_error(TB_ERR_CLOSED,
                        "this job has no port \"%.*s\" that is open: it was closed, or its owner has ended", length,
                        meeting->name);
    if (port->addresses[0] == 0)
        return tb_error(TB_ERR_CLOSED,
                        "the port \"%.*s\" is of another job, and names no address: it can be reached in its job alone",
                        length, meeting->name);
    /* What is too near for any two jobs would be refused at the latest when they meet. */
    if (tb_foreign_alike_far(jobs->book, port->job, 0) == TB_OK)
        return TB_OK;
    return tb_error(
        TB_ERR_CLOSED,
        "this job has no port \"%.*s\", and the number of a job in that name, %08x, is too near to its own, "
        "%08x: the name is not as MPI_Open_port has given it; if it is, start one of the two jobs again",
        length, meeting->name, port->job, own);
}

void tb_foreign_jobs_connect(struct tb_foreign_jobs *jobs, uint32_t rank, uint32_t number,
                             const struct tb_meeting *meeting)
{
    struct tb_port_name port;
    struct tb_foreign_link *link = NULL;
    uint64_t patience = meeting->patience > 0 ? meeting->patience : tb_param.link_patience;
    int rc = tb_port_name_parse(meeting->name, meeting->name_length, &port);
    if (rc == TB_OK)
        rc = check_port(jobs, meeting, &port);
    if (rc == TB_OK && !tb_meeting_party_is_whole(meeting->bytes, meeting->length))
        rc = tb_error(TB_ERR_PROTOCOL, "who connects to a port says nothing sensible of itself");
    if (rc == TB_OK)
        rc = tb_introduction_check_own(jobs->book, meeting->bytes);
    if (rc == TB_OK) {
        link = tb_foreign_link_new(&jobs->links, TB_FOREIGN_DIALING, tb_address_book_host_of(jobs->book, rank),
                                   jobs->links.next++);
        rc = link == NULL ? tb_error(TB_ERR_MEMORY, "mpiexec has no memory for one who connects") : TB_OK;
    }
    if (rc == TB_OK)
        rc = tb_foreign_link_keep(meeting->bytes, meeting->length, &link->mine, &link->mine_length);
    if (rc == TB_OK)
        rc = tb_foreign_link_dial(link, &port.key, port.addresses, patience);
    if (rc == TB_OK) {
        link->asker = rank;
        link->asked = number;
        link->port_job = port.job;
        tb_timer_set(jobs->loop, &link->timer, patience);
    } else {
        refuse(jobs, rank, number, rc);
        if (link != NULL)
            tb_foreign_link_free(link, false);
    }
    explicit_bzero(&port, sizeof port);
}

static void take_up(struct tb_foreign_link *link)
{
    struct tb_writer w;
    if (link->phase != TB_FOREIGN_DIALING)
        return;
    link->phase = TB_FOREIGN_ASKING;
    link->job = job_of(jobs_of(link), link->port_job, 0);
    if (link->job != NULL)
        link->job->pending++;
    tb_writer_open(&w);
    tb_put_u8(&w, TB_FOREIGN_INTRODUCE);
    tb_foreign_alike_put(&w, jobs_of(link)->book);
    tb_put_u64(&w, link->job != NULL ? link->job->generation : 0);
    tb_put_bytes(&w, link->mine, link->mine_length);
    tb_foreign_link_tell(link, &w);
    tb_writer_close(&w);
}

/* ---- what the other launcher says -------------------------------------------------------------------------------- */

static int take_introduction(struct tb_foreign_link *link, struct tb_reader *r)
{
    size_t length = 0;
    int rc = tb_foreign_alike_get(r, jobs_of(link)->book, &link->their_job);
    link->generation = tb_get_u64(r);
    const void *party = rc == TB_OK ? tb_get_bytes(r, &length) : NULL;
    if (rc == TB_OK &&
        (link->phase != TB_FOREIGN_COMING || tb_reader_end(r) != TB_OK || !tb_meeting_party_is_whole(party, length)))
        rc = tb_error(TB_ERR_PROTOCOL, "the other job says nothing sensible");
    if (rc == TB_OK)
        rc = tb_foreign_link_keep(party, length, &link->their, &link->their_length);
    if (rc != TB_OK)
        return rc;
    link->phase = TB_FOREIGN_WAITING;
    tb_timer_clear(&link->timer);
    const struct tb_foreign_jobs_events *events = &jobs_of(link)->events;
    return events->enter(events->context, link->port, link);
}

void tb_foreign_jobs_refuse(struct tb_foreign_jobs *jobs, struct tb_foreign_link *link)
{
    tb_foreign_link_tell_word(link, TB_FOREIGN_REFUSE, tb_error_story());
    tb_foreign_link_free(link, true);
}

/* So long is it worth while to wait for who comes, and no longer than who accepts wants to. */
static uint64_t patience_with(const struct tb_foreign_jobs *jobs, const struct tb_acceptance *acceptance)
{
    uint64_t now = tb_loop_now(jobs->loop), left = acceptance->until > now ? acceptance->until - now : 0;
    return left < tb_param.link_patience ? left : tb_param.link_patience;
}

/* Nobody else knows its number: who says it is who was told it. */
static int generation_make(struct tb_foreign_jobs *jobs, uint32_t number, struct tb_foreign_job **job)
{
    uint64_t generation = 0;
    int rc = TB_OK;
    while (rc == TB_OK && generation == 0)
        rc = tb_random_secret(&generation, sizeof generation);
    if (rc == TB_OK)
        *job = job_make(jobs, number, generation);
    return rc;
}

/* Whether no other job can be accepted at all: then neither of the two waits for a better one. */
static bool refuse_both(struct tb_foreign_jobs *jobs, struct tb_foreign_link *link,
                        const struct tb_acceptance *acceptance)
{
    int rc = tb_foreign_alike_relays();
    if (rc == TB_OK)
        return false;
    tb_foreign_jobs_refuse(jobs, link);
    refuse(jobs, acceptance->rank, acceptance->question, rc);
    return true;
}

int tb_foreign_jobs_accept(struct tb_foreign_jobs *jobs, struct tb_foreign_link *link,
                           const struct tb_acceptance *acceptance)
{
    if (refuse_both(jobs, link, acceptance))
        return TB_OK;
    int rc = tb_meeting_party_is_whole(acceptance->party, acceptance->length)
                 ? tb_introduction_check_own(jobs->book, acceptance->party)
                 : tb_error(TB_ERR_PROTOCOL, "who accepts at a port says nothing sensible of itself");
    if (rc != TB_OK) { /* it is no fault of the other one, who waits for a better one */
        refuse(jobs, acceptance->rank, acceptance->question, rc);
        return rc;
    }
    link->asker = acceptance->rank;
    link->asked = acceptance->question;
    link->until = acceptance->until;
    tb_timer_set(jobs->loop, &link->timer, patience_with(jobs, acceptance));
    rc = tb_foreign_link_keep(acceptance->party, acceptance->length, &link->mine, &link->mine_length);
    struct tb_foreign_job *job = link->generation != 0 ? job_of(jobs, link->their_job, link->generation) : NULL;
    if (rc == TB_OK && job == NULL)
        rc = generation_make(jobs, link->their_job, &job);
    if (rc == TB_OK)
        rc = tb_introduction_begin(link, job);
    if (rc != TB_OK) {
        char why[400];
        snprintf(why, sizeof why, "%s", tb_error_story());
        tb_foreign_link_tell_word(link, TB_FOREIGN_REFUSE, why);
        if (rc == TB_ERR_LIMIT || rc == TB_ERR_MEMORY) /* it is this job that can meet nobody else */
            tb_foreign_link_answer(link, rc, why, NULL, 0);
        link_lose(link, why, true);
    }
    return TB_OK;
}

/* The context is one of theirs: it cannot be in use here, and will not be made up here. */
static bool is_acceptance(uint32_t number, const void *party, size_t length)
{
    struct tb_meeting_party head;
    if (!tb_meeting_party_is_whole(party, length))
        return false;
    memcpy(&head, party, sizeof head);
    return tb_context_is_of(head.context, number);
}

static int take_acceptance(struct tb_foreign_link *link, struct tb_reader *r)
{
    size_t length = 0;
    uint32_t number = tb_get_u32(r);
    uint64_t generation = tb_get_u64(r);
    const void *party = tb_get_bytes(r, &length);
    if (r->error == TB_OK && link->phase == TB_FOREIGN_ASKING && number != link->port_job)
        return tb_error(TB_ERR_CLOSED,
                        "the port is of job %08x, and the name says %08x: it is not as MPI_Open_port has given it",
                        number, link->port_job);
    if (link->phase != TB_FOREIGN_ASKING || generation == 0 || tb_reader_end(r) != TB_OK ||
        !is_acceptance(number, party, length))
        return tb_error(TB_ERR_PROTOCOL, "the other job says nothing sensible");
    int rc = tb_foreign_link_keep(party, length, &link->their, &link->their_length);
    struct tb_foreign_job *pending = link->job, *job = pending;
    link->job = NULL;
    tb_timer_set(jobs_of(link)->loop, &link->timer, tb_param.link_patience);
    if (job == NULL || job->generation != generation)
        job = rc == TB_OK ? job_make(jobs_of(link), number, generation) : NULL;
    if (rc == TB_OK)
        rc = tb_introduction_begin(link, job);
    if (pending != NULL) {
        pending->pending--;
        check_left(jobs_of(link), pending);
    }
    return rc;
}

/* What others say, as it may be shown. */
static void show(const char *bytes, size_t length, char *to, size_t size)
{
    char text[800];
    snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : sizeof text - 1), bytes);
    tb_visible_text(text, to, size);
}

static int take_lost(struct tb_foreign_link *link, struct tb_reader *r)
{
    uint32_t home = tb_get_u32(r), count = tb_get_u32(r);
    size_t length = 0;
    const char *why = tb_get_bytes(r, &length);
    char text[512];
    if (tb_reader_end(r) != TB_OK || count == 0)
        return tb_error(TB_ERR_PROTOCOL, "the other job says nothing sensible");
    int used = snprintf(text, sizeof text, "it is of another job (%08x): ", link->job->number);
    show(why, length, text + used, sizeof text - (size_t)used);
    return tb_foreign_job_lose(link->job, home, count, tell_loss, &(struct loss){jobs_of(link), text});
}

static int take_words(struct tb_foreign_link *link, struct tb_reader *r)
{
    uint8_t word = tb_get_u8(r);
    size_t length = 0;
    if (word == TB_FOREIGN_INTRODUCE)
        return take_introduction(link, r);
    if (word == TB_FOREIGN_ACCEPT)
        return take_acceptance(link, r);
    bool met = link->job != NULL && link->phase >= TB_FOREIGN_ANSWERED; /* who it is is known, and that it is */
    if (word == TB_FOREIGN_LOST && met)
        return take_lost(link, r);
    if (word == TB_FOREIGN_READY && link->phase == TB_FOREIGN_ANSWERED) {
        tb_introduction_end(link);
    } else if (word == TB_FOREIGN_LEFT && met) {
        link->job->they_left = true;
        check_left(jobs_of(link), link->job);
    } else if (word == TB_FOREIGN_REFUSE) {
        const char *text = tb_get_bytes(r, &length);
        char shown[800] = "";
        if (r->error == TB_OK)
            show(text, length, shown, sizeof shown);
        return tb_error(TB_ERR_CLOSED, "the other job has refused: %s", shown);
    } else {
        return tb_error(TB_ERR_PROTOCOL, "the other job says nothing sensible");
    }
    return TB_OK;
}

static void take_tell(struct tb_foreign_link *link, struct tb_reader *r)
{
    char why[900];
    size_t length = 0;
    const void *bytes = tb_get_bytes(r, &length);
    struct tb_reader words;
    if (r->error != TB_OK)
        return;
    tb_reader_open(&words, bytes, length);
    int rc = take_words(link, &words);
    if (rc == TB_OK)
        return;
    snprintf(why, sizeof why, "%s", tb_error_story());
    if (link->port_job != 0) /* who accepts has done nothing wrong, and waits for another one */
        tb_foreign_link_answer(link, rc, why, NULL, 0);
    if (rc != TB_ERR_CLOSED)
        tb_foreign_link_tell_word(link, TB_FOREIGN_REFUSE, why);
    link_lose(link, why, true);
}

void tb_foreign_jobs_take(struct tb_foreign_jobs *jobs, const struct tb_host_agent *agent, struct tb_reader *r)
{
    uint8_t word = tb_get_u8(r);
    uint32_t number = tb_get_u32(r);
    struct tb_foreign_link *link = tb_foreign_link_find(&jobs->links, agent->host, number);
    if (r->error != TB_OK)
        return;
    if (word == TB_BORDER_OPENED) {
        jobs->events.opened(jobs->events.context, number, r);
    } else if (word == TB_BORDER_CAME && link == NULL) {
        link = tb_foreign_link_new(&jobs->links, TB_FOREIGN_COMING, agent->host, number);
        if (link != NULL) {
            link->port = tb_get_u32(r);
            tb_timer_set(jobs->loop, &link->timer, tb_param.link_patience); /* for it to say who it is */
        }
    } else if (word == TB_BORDER_UP && link != NULL) {
        take_up(link);
    } else if (word == TB_BORDER_NAMED && link != NULL) {
        tb_introduction_named(link, tb_get_u32(r));
    } else if (word == TB_BORDER_TELL && link != NULL) {
        take_tell(link, r);
    } else if (word == TB_BORDER_ENDED && link != NULL) {
        char *why = tb_get_text(r);
        link_lose(link, why != NULL ? why : "the connection has ended", false);
        free(why);
    }
}

/* ---- leaving ----------------------------------------------------------------------------------------------------- */

void tb_foreign_jobs_leave(struct tb_foreign_jobs *jobs, uint32_t rank, uint32_t number, uint32_t meeting)
{
    struct tb_foreign_job *job;
    TB_LIST_EACH (job, &jobs->jobs, struct tb_foreign_job, node)
        if (job->number == number) {
            tb_foreign_job_leave(job, rank, meeting);
            check_left(jobs, job);
        }
}

/* The next link at which nothing need wait any more for a rank; NULL: there is none. */
static struct tb_foreign_link *asked_by(const struct tb_foreign_jobs *jobs, uint32_t rank)
{
    struct tb_foreign_link *link;
    TB_LIST_EACH (link, &jobs->links.all, struct tb_foreign_link, node)
        if (link->asked != 0 && link->asker == rank)
            return link;
    return NULL;
}

void tb_foreign_jobs_forget(struct tb_foreign_jobs *jobs, uint32_t rank)
{
    struct tb_foreign_link *link;
    struct tb_foreign_job *job;
    tb_foreign_links_note_end(&jobs->links, rank, 1, TB_FOREIGN_OVER);
    tb_acceptances_forget(&jobs->again, rank);
    while ((link = asked_by(jobs, rank)) != NULL) { /* with one, others may go */
        link->asked = 0;                            /* nobody is there to be told */
        if (link->phase <= TB_FOREIGN_ASKING)
            link_lose(link, "who has connected has ended", true);
    }
    TB_LIST_EACH (job, &jobs->jobs, struct tb_foreign_job, node) {
        tb_foreign_job_leave(job, rank, 0);
        check_left(jobs, job);
    }
}

void tb_foreign_jobs_lost(struct tb_foreign_jobs *jobs, uint32_t first, uint32_t count, const char *text)
{
    struct tb_foreign_job *job;
    uint32_t from, number;
    tb_foreign_links_note_end(&jobs->links, first, count, TB_FOREIGN_DIED);
    TB_LIST_EACH (job, &jobs->jobs, struct tb_foreign_job, node) {
        struct tb_foreign_link *link = link_of(jobs, job);
        if (link == NULL)
            tb_foreign_job_note_lost(job, first, count);
        while (link != NULL && tb_foreign_job_misses(job, first, count, &from, &number))
            tb_foreign_link_tell_lost(link, from, number, text);
    }
}

void tb_foreign_jobs_lose(struct tb_foreign_jobs *jobs, uint32_t host)
{
    struct tb_foreign_link *link;
    bool again = true;
    while (again) { /* with one, others may go */
        again = false;
        TB_LIST_EACH (link, &jobs->links.all, struct tb_foreign_link, node)
            if (link->host == host) {
                link_lose(link, "the agent at the border to it is gone", false);
                again = true;
                break;
            }
    }
    TB_LIST_EACH (link, &jobs->links.all, struct tb_foreign_link, node)
        if (link->untold != NULL)
            tb_introduction_told(link, host);
}

bool tb_foreign_jobs_part(struct tb_foreign_jobs *jobs)
{
    if (tb_list_empty(&jobs->jobs) || jobs->parted)
        return false;
    if (!tb_timer_is_set(&jobs->farewell))
        tb_timer_set(jobs->loop, &jobs->farewell, tb_param.link_patience);
    return true;
}

static void farewell_over(struct tb_timer *timer)
{
    TB_CONTAINER(timer, struct tb_foreign_jobs, farewell)->parted = true;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

void tb_foreign_jobs_init(struct tb_foreign_jobs *jobs, struct tb_loop *loop, struct tb_host_agents *agents,
                          struct tb_address_book *book, const struct tb_foreign_jobs_events *events)
{
    *jobs = (struct tb_foreign_jobs){.loop = loop, .agents = agents, .book = book, .events = *events};
    jobs->links = (struct tb_foreign_links){.loop = loop,
                                            .agents = agents,
                                            .book = book,
                                            .next = 1,
                                            .patience_over = patience_over,
                                            .context = events->context,
                                            .dropped = events->dropped};
    tb_list_init(&jobs->jobs);
    tb_list_init(&jobs->links.all);
    tb_acceptances_init(&jobs->again, loop, events->context, events->accept);
    tb_timer_init(&jobs->farewell, farewell_over);
}

void tb_foreign_jobs_close(struct tb_foreign_jobs *jobs)
{
    struct tb_foreign_link *link;
    struct tb_foreign_job *job;
    tb_timer_clear(&jobs->farewell);
    tb_acceptances_close(&jobs->again);
    TB_LIST_EACH (link, &jobs->links.all, struct tb_foreign_link, node)
        tb_foreign_link_free(link, false);
    TB_LIST_EACH (job, &jobs->jobs, struct tb_foreign_job, node)
        tb_foreign_job_free(job);
    free(jobs->links.ends);
}

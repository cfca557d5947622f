#include "mpi/inquiry.h"

#include <stdlib.h>
#include <time.h>

#define PAUSE_NS 1000000 /* of one that runs alone: somebody else can only be a thread of its own */

struct tb_inquiries {
    pthread_mutex_t lock;
    struct tb_list open; /* struct tb_inquiry */
    uint32_t last;       /* number of a question */
    struct tb_registry own;
};

static void own_answer(void *context, uint32_t proc, const struct tb_registry_answer *answer);

/* Made with the first one; NULL: no memory. */
static struct tb_inquiries *inquiries(void)
{
    pthread_mutex_lock(&tb_self.anytime_lock);
    struct tb_inquiries *all = tb_self.inquiries;
    if (all == NULL && (all = calloc(1, sizeof *all)) != NULL) {
        pthread_mutex_init(&all->lock, NULL);
        tb_list_init(&all->open);
        tb_registry_open(&all->own, own_answer, all);
        __atomic_store_n(&tb_self.inquiries, all, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&tb_self.anytime_lock);
    return all;
}

static void finish(struct tb_inquiry *inquiry, int error)
{
    inquiry->error = error;
    __atomic_store_n(&inquiry->done, true, __ATOMIC_RELEASE);
}

/* A part of an answer; all are locked. Parts of one come in order. */
static void take_part(struct tb_inquiries *all, const struct tb_registry_answer *part)
{
    struct tb_inquiry *inquiry, *found = NULL;
    TB_LIST_EACH (inquiry, &all->open, struct tb_inquiry, node)
        if (inquiry->answer.number == part->number)
            found = inquiry;
    if (found == NULL || found->done)
        return;
    uint32_t *members = found->answer.members;
    if (part->first == 0 && part->member_count > 0)
        members = malloc(part->member_count * sizeof *members);
    found->answer = *part;
    found->answer.members = members;
    if (part->member_count > 0 && members == NULL)
        finish(found, TB_ERR_MEMORY);
    else if (part->first != found->have)
        finish(found, TB_ERR_PROTOCOL);
    if (found->done)
        return;
    if (part->part_count > 0)
        memcpy(members + found->have, part->members, part->part_count * sizeof *members);
    found->have += part->part_count;
    if (found->have == part->member_count)
        finish(found, TB_OK);
}

void tb_inquiry_answered(const struct tb_registry_answer *part)
{
    struct tb_inquiries *all = __atomic_load_n(&tb_self.inquiries, __ATOMIC_ACQUIRE); /* whoever asks makes it first */
    if (all == NULL)
        return;
    pthread_mutex_lock(&all->lock);
    take_part(all, part);
    pthread_mutex_unlock(&all->lock);
}

static bool is_answered(void *context)
{
    const struct tb_inquiry *inquiry = context;
    return __atomic_load_n(&inquiry->done, __ATOMIC_ACQUIRE);
}

/* ---- alone ------------------------------------------------------------------------------------------------------- */

static void own_answer(void *context, uint32_t proc, const struct tb_registry_answer *answer)
{
    struct tb_registry_answer whole = *answer;
    whole.first = 0;
    whole.part_count = answer->member_count;
    take_part(context, &whole);
}

/* What is not answered at once another thread may bring about, or time does. */
static void ask_own(struct tb_inquiries *all, struct tb_inquiry *inquiry, const struct tb_registry_question *question)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    pthread_mutex_lock(&all->lock);
    tb_registry_ask(&all->own, tb_self.job.self.index, question, tb_clock_now_real());
    pthread_mutex_unlock(&all->lock);
    while (!is_answered(inquiry)) {
        tb_engine_progress(tb_self.engine);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&all->lock);
        tb_registry_expire(&all->own, tb_clock_now_real());
        pthread_mutex_unlock(&all->lock);
    }
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

int tb_inquiry_make(struct tb_inquiry *inquiry, struct tb_registry_question *question, const char *call)
{
    struct tb_inquiries *all = inquiries();
    int error = TB_OK;
    *inquiry = (struct tb_inquiry){.done = false};
    tb_list_init(&inquiry->node);
    if (all == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory to ask the registry of the job");
    pthread_mutex_lock(&all->lock);
    inquiry->answer.number = question->number = ++all->last;
    tb_list_append(&all->open, &inquiry->node);
    pthread_mutex_unlock(&all->lock);
    if (tb_self.job.source == TB_JOB_ALONE)
        ask_own(all, inquiry, question);
    else
        error = tb_job_ask_registry(&tb_self.job, question);
    if (error == TB_OK)
        tb_engine_wait_in(tb_self.engine, is_answered, inquiry, call);
    pthread_mutex_lock(&all->lock);
    tb_list_remove(&inquiry->node);
    pthread_mutex_unlock(&all->lock);
    if (error == TB_OK && inquiry->error != TB_OK)
        error = tb_error(inquiry->error, "the answer of the registry of the job, with %u members, could not be taken",
                         inquiry->answer.member_count);
    return error;
}

void tb_inquiry_close(struct tb_inquiry *inquiry)
{
    free(inquiry->answer.members);
    inquiry->answer.members = NULL;
}

void tb_inquiries_end(void)
{
    struct tb_registry_question end = {.kind = TB_REGISTRY_END};
    struct tb_inquiries *all = tb_self.inquiries;
    if (all == NULL)
        return;
    pthread_mutex_lock(&all->lock);
    if (tb_self.job.source == TB_JOB_ALONE)
        tb_registry_ask(&all->own, tb_self.job.self.index, &end, 0);
    else
        tb_job_ask_registry(&tb_self.job, &end); /* whoever does not hear it hears of the end of this process */
    pthread_mutex_unlock(&all->lock);
}

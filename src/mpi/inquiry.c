#include "mpi/inquiry.h"

#include <stdlib.h>
#include <time.h>

#include "mpi/wish.h"

/* ---- alone ------------------------------------------------------------------------------------------------------- */

#define PAUSE_NS 1000000 /* somebody else can only be a thread of its own */

struct tb_own_registry {
    pthread_mutex_t lock;
    struct tb_registry registry;
};

static void own_answer(void *context, uint32_t proc, const struct tb_registry_answer *answer)
{
    struct tb_job_answer a = {.error = TB_OK};
    a.error = tb_registry_answer_pack(answer, &a.bytes, &a.length);
    tb_wish_answer(answer->number, &a);
}

/* Made with the first question; NULL: no memory. */
static struct tb_own_registry *own_registry(void)
{
    pthread_mutex_lock(&tb_self.anytime_lock);
    struct tb_own_registry *own = tb_self.own_registry;
    if (own == NULL && (own = calloc(1, sizeof *own)) != NULL) {
        pthread_mutex_init(&own->lock, NULL);
        tb_registry_open(&own->registry, own_answer, NULL);
        tb_self.own_registry = own;
    }
    pthread_mutex_unlock(&tb_self.anytime_lock);
    return own;
}

/* What is not answered at once another thread may bring about, or time does. */
static int ask_own(const struct tb_wish *wish, const struct tb_registry_question *question)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct tb_own_registry *own = own_registry();
    if (own == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for a registry");
    pthread_mutex_lock(&own->lock);
    tb_registry_ask(&own->registry, tb_self.job.self.index, question, tb_clock_now_real());
    pthread_mutex_unlock(&own->lock);
    while (!tb_wish_is_answered(wish)) {
        tb_engine_progress(tb_self.engine);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&own->lock);
        tb_registry_expire(&own->registry, tb_clock_now_real());
        pthread_mutex_unlock(&own->lock);
    }
    return TB_OK;
}

static void end_own(void)
{
    struct tb_own_registry *own = own_registry();
    if (own == NULL)
        return;
    pthread_mutex_lock(&own->lock);
    tb_registry_end(&own->registry, tb_self.job.self.index, false);
    pthread_mutex_unlock(&own->lock);
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

int tb_inquiry_make(const char *call, struct tb_registry_question *question, struct tb_registry_answer *answer)
{
    struct tb_job_answer came = {.error = TB_OK};
    struct tb_wish wish;
    *answer = (struct tb_registry_answer){.member_count = 0};
    __atomic_store_n(&tb_self.inquired, true, __ATOMIC_RELAXED);
    tb_wish_begin(&wish);
    question->number = wish.number;
    int error =
        tb_self.job.source == TB_JOB_ALONE ? ask_own(&wish, question) : tb_job_ask_registry(&tb_self.job, question);
    error = tb_wish_wait(&wish, call, error, &came);
    if (error == TB_OK)
        error = tb_registry_answer_unpack(came.bytes, came.length, answer);
    free(came.bytes);
    return error;
}

void tb_inquiry_close(struct tb_registry_answer *answer)
{
    free(answer->members);
    answer->members = NULL;
}

void tb_inquiry_end(void)
{
    const struct tb_registry_question end = {.kind = TB_REGISTRY_END}; /* which is not answered */
    if (!tb_self.inquired)
        return;
    if (tb_self.job.source == TB_JOB_ALONE)
        end_own();
    else
        tb_job_ask_registry(&tb_self.job, &end); /* whoever does not hear it hears of the end of this process */
}

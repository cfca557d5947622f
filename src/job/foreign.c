/* Processes of other jobs among those of this one, and what tells the two apart. */
#include "job/job.h"

bool tb_worlds_is_foreign(const struct tb_address_book *book, uint32_t index)
{
    return index >= book->ranks && tb_address_book_range(book, index)->job != 0;
}

struct tb_proc tb_worlds_home(const struct tb_address_book *book, uint32_t index)
{
    if (!tb_worlds_is_foreign(book, index))
        return (struct tb_proc){book->job, index};
    const struct tb_rank_range *range = tb_address_book_range(book, index);
    return (struct tb_proc){range->job, range->home + (index - range->first_rank)};
}

uint32_t tb_worlds_generation(const struct tb_address_book *book, uint32_t index)
{
    return tb_worlds_is_foreign(book, index) ? tb_address_book_range(book, index)->generation : 0;
}

/* The newest ones first: a job that was met again has other indices than before. */
bool tb_worlds_find(const struct tb_address_book *book, struct tb_proc home, uint32_t generation, uint32_t *index)
{
    if (home.job == book->job) {
        *index = home.index;
        return tb_address_book_knows(book, home.index) && !tb_worlds_is_foreign(book, home.index);
    }
    uint32_t count = book->worlds != NULL ? atomic_load_explicit(&book->worlds->count, memory_order_acquire) : 0;
    bool known = false, found = false; /* that generation; and in any */
    while (count-- > 0) {
        const struct tb_rank_range *range = &book->worlds->ranges[count];
        bool here =
            range->job == home.job && home.index - range->home < __atomic_load_n(&range->count, __ATOMIC_RELAXED);
        bool meant = range->job == home.job && range->generation == generation;
        if (here && (meant || !found))
            *index = range->first_rank + (home.index - range->home);
        if (here && (meant || generation == 0))
            return true;
        found = found || here;
        known = known || meant;
    }
    return found && !known;
}

bool tb_worlds_makes(const struct tb_address_book *book, uint32_t index, uint64_t context)
{
    struct tb_proc home = tb_worlds_home(book, index);
    return tb_context_is_of(context, home.job) && tb_context_leader(context, home.job) == home.index;
}

uint64_t tb_job_context(const struct tb_job *job, uint32_t counter)
{
    return tb_context_make(tb_context_tag(job->self.job) + job->self.index, counter, TB_PLANE_POINT);
}

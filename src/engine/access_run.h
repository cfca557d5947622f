/* Runs: where the data of an access lies in a window, as frames say it (wire/wire.h), and what is done with it there.
 * Nothing here knows of processes or frames. */
#ifndef TB_ENGINE_ACCESS_RUN_H
#define TB_ENGINE_ACCESS_RUN_H

#include "data/data.h"
#include "wire/wire.h"

/* Whether data of this predefined type has gaps in memory, as MPI_SHORT_INT: then it is looked at item by item. */
static inline bool tb_element_has_gaps(const struct tb_type *element)
{
    return element != NULL && element->size != (uint64_t)element->extent;
}

/* What a list of runs may have: so many of them, so many bytes of data, and so many of both in a payload. */
struct tb_runs_room {
    uint32_t runs;
    uint64_t data, all;
};

/* The runs of what stands from byte `from` on in the packed data of `target`, whose base is where it stands in its
 * window. Of accumulates `element` is what it is of (else NULL), and none is cut. `runs` has room->runs entries. How
 * many bytes of data they are; *count of runs. */
uint64_t tb_runs_make(const struct tb_buffer *target, uint64_t from, const struct tb_type *element,
                      const struct tb_runs_room *room, struct tb_access_run *runs, uint32_t *count);

/* Where `bytes` bytes at `at` are in memory; NULL: they are not all there. */
typedef void *tb_run_find(void *context, uint64_t at, uint64_t bytes);

/* What is to be done with the data of runs. */
struct tb_run_work {
    const uint8_t *runs; /* as they came */
    uint32_t count;
    tb_run_find *find;
    void *context;
    const struct tb_type *element; /* of accumulates; else NULL */
};

/* Whether the runs are right in themselves and have so many bytes of data. */
bool tb_runs_check(const struct tb_run_work *work, uint64_t data);
/* Whether all of them can be found. To be asked before the others, which rely on it. */
bool tb_runs_reach(const struct tb_run_work *work);
void tb_runs_read(const struct tb_run_work *work, void *to);
void tb_runs_write(const struct tb_run_work *work, const void *from);
/* Combines; the result goes to `old` before, if that is not NULL. With MPI_NO_OP `from` is not read. */
void tb_runs_combine(const struct tb_run_work *work, const struct tb_op *op, const void *from, void *old);

/* The same of `count` items of `element` at one place, with data without gaps. */
void tb_items_combine(const struct tb_type *element, const struct tb_op *op, const void *from, void *old, void *at,
                      uint64_t count);
/* And where they lie there without gaps, too. */
void tb_packed_combine(const struct tb_type *element, const struct tb_op *op, const void *from, void *old, void *packed,
                       uint64_t count);

#endif

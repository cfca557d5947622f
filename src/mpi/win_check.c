#include "mpi/win_check.h"

#include <stdio.h>
#include <stdlib.h>

#include "mpi/check.h"
#include "mpi/op.h"
#include "mpi/point.h"

/* ---- data -------------------------------------------------------------------------------------------------------- */

static int check_type(struct tb_win *w, const char *call, int position, const char *name, MPI_Datatype datatype)
{
    const struct tb_type *type = tb_type_find(datatype);
    if (type == NULL)
        return tb_win_raise_argument(w, MPI_ERR_TYPE, call, position, "datatype",
                                     datatype == MPI_DATATYPE_NULL
                                         ? "that of the %s is MPI_DATATYPE_NULL"
                                         : "that of the %s is no handle of a datatype, or has been freed",
                                     name);
    if (!type->committed)
        return tb_win_raise_argument(w, MPI_ERR_TYPE, call, position, "datatype",
                                     "that of the %s is not committed; call MPI_Type_commit first", name);
    return MPI_SUCCESS;
}

static int check_count(struct tb_win *w, const char *call, int position, const char *name, MPI_Count count,
                       const struct tb_type *type)
{
    int64_t bytes;
    if (count < 0)
        return tb_win_raise_argument(w, MPI_ERR_COUNT, call, position, "count", "%lld, of the %s, is negative",
                                     (long long)count, name);
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the type was checked before
    if (__builtin_mul_overflow((int64_t)count, type->extent, &bytes) ||
        __builtin_mul_overflow((int64_t)count, (int64_t)type->size, &bytes))
        return tb_win_raise_argument(w, MPI_ERR_COUNT, call, position, "count",
                                     "%lld items, of the %s, are more than memory can hold", (long long)count, name);
    return MPI_SUCCESS;
}

int tb_win_check_data(struct tb_win *w, const char *call, const struct tb_win_data *data, struct tb_buffer *buffer)
{
    const struct tb_type *type = tb_type_find(data->datatype);
    if (__builtin_expect(tb_check_data(type, data->address, data->count), 1)) {
        *buffer = tb_buffer_of(data->address, data->count, type);
        return MPI_SUCCESS;
    }
    int code = check_type(w, call, data->datatype_at, data->name, data->datatype);
    if (code == MPI_SUCCESS)
        code = check_count(w, call, data->count_at, data->name, data->count, type);
    if (code != MPI_SUCCESS)
        return code;
    char name[16]; /* "origin_addr" */
    snprintf(name, sizeof name, "%s_addr", data->name);
    return tb_win_raise_argument(w, MPI_ERR_BUFFER, call, data->address_at, name, "the pointer is null");
}

int tb_win_check_rank(struct tb_win *w, const char *call, int position, const char *name, int rank)
{
    if ((uint32_t)rank < w->comm->size)
        return MPI_SUCCESS;
    return tb_win_raise_argument(w, MPI_ERR_RANK, call, position, name,
                                 "there is no rank %d; the window has %u of them", rank, w->comm->size);
}

/* Whether all bytes that the target touches are in its window. The count and the extent have been checked. */
static bool is_inside(const struct tb_buffer *data, uint64_t size)
{
    int64_t last, low, high, at = (int64_t)(uintptr_t)data->base;
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the type was checked before
    if (data->count == 0 || data->type->size == 0)
        return true;
    last = (int64_t)(data->count - 1) * data->type->extent;
    return !__builtin_add_overflow(data->type->true_lower_bound, last < 0 ? last : 0, &low) &&
           !__builtin_add_overflow(data->type->true_lower_bound + data->type->true_extent, last > 0 ? last : 0,
                                   &high) &&
           !__builtin_add_overflow(at, low, &low) && !__builtin_add_overflow(at, high, &high) && low >= 0 &&
           (uint64_t)high <= size;
}

int tb_win_check_target(struct tb_win *w, const char *call, const struct tb_win_target *target,
                        struct tb_access_target *found)
{
    const struct tb_type *type = tb_type_find(target->datatype);
    int code = tb_win_check_rank(w, call, target->rank_at, "target_rank", target->rank);
    if (code == MPI_SUCCESS && (type == NULL || !type->committed))
        code = check_type(w, call, target->datatype_at, "target", target->datatype);
    if (code == MPI_SUCCESS)
        code = check_count(w, call, target->count_at, "target", target->count, type);
    if (code != MPI_SUCCESS)
        return code;
    const struct tb_win_part *part = &w->parts[target->rank];
    uint64_t at = (uint64_t)target->displacement;
    found->rank = (uint32_t)target->rank;
    if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC) { /* an address there, and there it is known what is attached */
        found->data = tb_buffer_of((const void *)(uintptr_t)at, target->count, type);
        return MPI_SUCCESS;
    }
    if (target->displacement < 0)
        return tb_win_raise_argument(w, MPI_ERR_DISP, call, target->displacement_at, "target_disp", "%lld is negative",
                                     (long long)target->displacement);
    bool fits = !__builtin_mul_overflow(at, part->unit, &at) && at <= INT64_MAX;
    found->data = tb_buffer_of((const void *)(uintptr_t)at, target->count, type);
    if (fits && is_inside(&found->data, part->size))
        return MPI_SUCCESS;
    return tb_win_raise_argument(w, MPI_ERR_RMA_RANGE, call, target->displacement_at, "target_disp",
                                 "%lld items from displacement %lld on are not all in the window of rank %d, which has "
                                 "%llu bytes and displacements of %llu",
                                 (long long)target->count, (long long)target->displacement, target->rank,
                                 (unsigned long long)part->size, (unsigned long long)part->unit);
}

int tb_win_check_match(struct tb_win *w, const char *call, const struct tb_buffer *origin, const char *name,
                       const struct tb_access_target *target)
{
    uint64_t here = tb_buffer_bytes(origin), there = tb_buffer_bytes(&target->data);
    if (here != there)
        return tb_win_raise(w, MPI_ERR_TYPE, call,
                            "the %s has %llu bytes of data and the target %llu; both must have the same data", name,
                            (unsigned long long)here, (unsigned long long)there);
    if (!tb_check_machine(w->comm, origin->type, (MPI_Count)origin->count, (int)target->rank))
        return tb_win_raise(w, MPI_ERR_TYPE, call,
                            "long double cannot be moved between this rank and rank %u, whose machines write it "
                            "differently; use double",
                            target->rank);
    return MPI_SUCCESS;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static int check_elements(struct tb_win *w, const char *call, const struct tb_buffer *other,
                          const struct tb_access_target *target, const struct tb_type **element)
{
    const struct tb_type *there = tb_access_element(target->data.type);
    const struct tb_type *here = other != NULL ? tb_access_element(other->type) : there;
    *element = there;
    if (there == NULL || here == NULL)
        return tb_win_raise(w, MPI_ERR_TYPE, call,
                            "all data of a datatype that is accumulated must be of one predefined type, and that of "
                            "the %s is not",
                            there == NULL ? "target" : "origin");
    if (here != there && (here->basic != there->basic || here->size != there->size))
        return tb_win_raise(w, MPI_ERR_TYPE, call, "the origin's data is of %s, the target's of %s", here->name,
                            there->name);
    return MPI_SUCCESS;
}

int tb_win_check_op(struct tb_win *w, const char *call, int position, MPI_Op handle, bool fetches,
                    const struct tb_buffer *other, const struct tb_access_target *target, const struct tb_op **op)
{
    const struct tb_type *element;
    *op = tb_op_find(handle);
    if (*op == NULL)
        return tb_win_raise_argument(w, MPI_ERR_OP, call, position, "op", "this is no operation");
    if ((*op)->code == TB_OP_USER)
        return tb_win_raise_argument(w, MPI_ERR_OP, call, position, "op",
                                     "only predefined operations can be used on windows");
    if ((*op)->code == TB_OP_NO_OP && !fetches)
        return tb_win_raise_argument(w, MPI_ERR_OP, call, position, "op",
                                     "MPI_NO_OP is only for calls that fetch something");
    if (tb_buffer_bytes(&target->data) == 0) /* whatever it is of */
        return MPI_SUCCESS;
    int code = check_elements(w, call, (*op)->code == TB_OP_NO_OP ? NULL : other, target, &element);
    if (code != MPI_SUCCESS)
        return code;
    if (tb_op_check(*op, element) != TB_OK)
        return tb_win_raise_argument(w, MPI_ERR_OP, call, position, "op", "%s", tb_error_story());
    if (tb_op_orders_chars(*op, element) && !tb_is_alike(w->comm, target->rank, TB_TRAIT_CHAR))
        return tb_win_raise_argument(w, MPI_ERR_OP, call, position, "op",
                                     "%s of MPI_CHAR has no meaning between this rank and rank %u, where char has a "
                                     "sign only on one of them; use MPI_SIGNED_CHAR or MPI_UNSIGNED_CHAR",
                                     (*op)->name, target->rank);
    return MPI_SUCCESS;
}

int tb_win_check_assert(struct tb_win *w, const char *call, int position, int assert, int allowed)
{
    if ((assert & ~allowed) == 0)
        return MPI_SUCCESS;
    return tb_win_raise_argument(w, MPI_ERR_ASSERT, call, position, "assert",
                                 "%d has bits (%d) that mean nothing in this call", assert, assert & ~allowed);
}

/* ---- epochs ------------------------------------------------------------------------------------------------------ */

int tb_win_check_epoch(struct tb_win *w, const char *call, int rank, bool passive)
{
    struct tb_win_epochs *e = &w->epochs;
    unsigned wanted = passive ? TB_EPOCH_LOCKED : TB_EPOCH_LOCKED | TB_EPOCH_STARTED;
    if (__builtin_expect(e->locked_all || (atomic_load_explicit(&e->ranks[rank], memory_order_relaxed) & wanted) != 0,
                         1))
        return MPI_SUCCESS;
    if (e->fenced && !passive && !e->started && e->locked == 0) {
        e->used = true;
        return MPI_SUCCESS;
    }
    if (passive)
        return tb_win_raise(w, MPI_ERR_RMA_SYNC, call,
                            "rank %d is not locked; call MPI_Win_lock or MPI_Win_lock_all first", rank);
    if (e->started)
        return tb_win_raise(w, MPI_ERR_RMA_SYNC, call, "rank %d is not in the group that was given to MPI_Win_start",
                            rank);
    return tb_win_raise(w, MPI_ERR_RMA_SYNC, call,
                        "there is no epoch in which rank %d may be accessed; call MPI_Win_fence, MPI_Win_start, "
                        "MPI_Win_lock or MPI_Win_lock_all first",
                        rank);
}

int tb_win_check_no_access(struct tb_win *w, const char *call, bool locks)
{
    struct tb_win_epochs *e = &w->epochs;
    const char *open = e->locked_all            ? "MPI_Win_lock_all was called; call MPI_Win_unlock_all"
                       : locks && e->locked > 0 ? "some ranks are locked; call MPI_Win_unlock"
                       : e->started             ? "MPI_Win_start was called; call MPI_Win_complete"
                       : e->used                ? "there were accesses after MPI_Win_fence; call MPI_Win_fence"
                                                : NULL;
    return open == NULL ? MPI_SUCCESS : tb_win_raise(w, MPI_ERR_RMA_SYNC, call, "%s first", open);
}

int tb_win_check_no_exposure(struct tb_win *w, const char *call)
{
    if (!w->epochs.posted)
        return MPI_SUCCESS;
    return tb_win_raise(w, MPI_ERR_RMA_SYNC, call,
                        "MPI_Win_post was called; call MPI_Win_wait, or MPI_Win_test until it is true, first");
}

void tb_win_epochs_close(struct tb_win_epochs *epochs)
{
    free((void *)epochs->ranks);
    free(epochs->group);
}

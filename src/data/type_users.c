/* Who uses a derived type: the last one frees it. */
#include "data/draft.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Types that live forever have no users and may lie in read-only memory. */
const struct tb_type *tb_type_hold(const struct tb_type *type)
{
    struct tb_type *counted = (struct tb_type *)type;
    if (atomic_load_explicit(&counted->users, memory_order_relaxed) > 0)
        atomic_fetch_add_explicit(&counted->users, 1, memory_order_relaxed);
    return type;
}

/* Puts the type on the list of those to be freed if this was the last user. */
static void drop(const struct tb_type *type, struct tb_derived **dead)
{
    struct tb_type *counted = (struct tb_type *)type;
    if (atomic_load_explicit(&counted->users, memory_order_relaxed) == 0)
        return;
    if (atomic_fetch_sub_explicit(&counted->users, 1, memory_order_acq_rel) == 1) {
        struct tb_derived *derived = TB_CONTAINER(counted, struct tb_derived, type);
        derived->next = *dead;
        *dead = derived;
    }
}

/* Types may be nested without limit, so this is no recursion. */
void tb_type_release(const struct tb_type *type)
{
    struct tb_derived *dead = NULL;
    if (type != NULL)
        drop(type, &dead);
    while (dead != NULL) {
        struct tb_derived *derived = dead;
        dead = derived->next;
        for (uint64_t i = 0; i < derived->envelope.type_count; i++)
            drop(derived->envelope.types[i], &dead);
        tb_layouts_free(derived->nodes);
        free(derived);
    }
}

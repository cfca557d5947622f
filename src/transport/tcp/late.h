/* Connections that came when there was no memory for them. Whoever connected has perhaps written to them, so they are
 * not closed but tried again. As many as in a moment's need; those above that are refused.
 *
 * Part of tcp and pair; the thread that owns the transport. */
#ifndef TB_TRANSPORT_TCP_LATE_H
#define TB_TRANSPORT_TCP_LATE_H

#include "transport/transport.h"

#define TB_LATE_LIMIT    16
#define TB_LATE_INTERVAL UINT64_C(1000000) /* ns until they are tried again, where nothing else happens */

struct tb_late {
    uint32_t count;
    struct {
        struct tb_proc proc;
        enum tb_stream stream;
        int descriptor;
    } all[TB_LATE_LIMIT];
};

/* False: there is no room; the descriptor is still the caller's. */
bool tb_late_keep(struct tb_late *late, struct tb_proc proc, enum tb_stream stream, int descriptor);
/* Tries all, in the order of their coming; `adopt` takes the descriptor unless it returns TB_ERR_MEMORY. Returns how
 * many were taken. */
int tb_late_try(struct tb_late *late,
                int (*adopt)(void *context, struct tb_proc proc, enum tb_stream stream, int descriptor), void *context);
/* When to do so; TB_NEVER: there are none. */
uint64_t tb_late_deadline(const struct tb_late *late);
void tb_late_close(struct tb_late *late);

#endif

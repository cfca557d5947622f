/* Tombolo_Multicast (tombolo.h): one message to several ranks, which they take by ordinary receives. */
#pragma GCC visibility push(default)
#include <tombolo.h>
#pragma GCC visibility pop

#include "mpi/multicast_send.h"

#include "mpi/multicast.h"
#include "mpi/point.h"

#include <stdlib.h>

/* Everything is looked at before anything is sent. */
static int check_arguments(const struct tb_names *names, const void *buffer, MPI_Count count, MPI_Datatype type,
                           const int ranks[], int n, int tag, MPI_Comm comm)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL || n == 0)
        return tb_raise_send(names, comm, buffer, count, type, MPI_PROC_NULL, tag);
    const struct tb_type *found = tb_type_given(type, count);
    int code = MPI_SUCCESS;
    for (int i = 0; i < n && code == MPI_SUCCESS; i++)
        if (!tb_check_send(c, found, buffer, count, ranks[i], tag))
            code = tb_raise_send(names, comm, buffer, count, type, ranks[i], tag);
    return code;
}

/* The ranks that are somebody; how many. */
static uint32_t choose(const int ranks[], int n, uint32_t *chosen)
{
    uint32_t count = 0;
    for (int i = 0; i < n; i++)
        if (ranks[i] != MPI_PROC_NULL)
            chosen[count++] = (uint32_t)ranks[i];
    return count;
}

static int send_all(const char *call, struct tb_comm *c, const struct tb_buffer *buffer, const uint32_t *ranks,
                    uint32_t count, int tag)
{
    struct tb_cast *cast;
    uint8_t places[TB_MULTICAST_PLACES];
    bool any;
    int code = MPI_SUCCESS;
    bool awaits = count > 1 && tb_cast_is_long(tb_buffer_bytes(buffer));
    int rc = awaits ? tb_multicast_await(c->context, places, &any) : TB_OK;
    const struct tb_type *kept = tb_type_keep(buffer->type);
    if (rc == TB_OK)
        rc = tb_cast_post(c->channel, buffer, ranks, count, (uint32_t)tag, &cast);
    if (rc == TB_OK) {
        const struct tb_request *failed = tb_cast_wait(cast, call);
        code = failed == NULL ? MPI_SUCCESS : tb_request_code(failed, c, call);
        tb_cast_free(cast);
    }
    tb_type_let_go(kept);
    if (rc != TB_OK)
        return tb_raise_below(c, rc, call);
    return code == MPI_SUCCESS ? code : tb_raise_code(c, code);
}

int tb_multicast_send(const struct tb_names *names, const void *buffer, MPI_Count count, MPI_Datatype type,
                      const int ranks[], int n, int tag, MPI_Comm comm)
{
    int code = check_arguments(names, buffer, count, type, ranks, n, tag, comm);
    if (code != MPI_SUCCESS || n == 0)
        return code;
    struct tb_comm *c = tb_comm_find(comm);
    uint32_t *chosen = malloc((size_t)n * sizeof *chosen);
    if (chosen == NULL)
        return tb_raise(c, MPI_ERR_NO_MEM, names->call, "out of memory for messages to %d ranks", n);
    uint32_t some = choose(ranks, n, chosen);
    struct tb_buffer data = tb_buffer_of(buffer, count, tb_type_given(type, count));
    TB_ASSERT(data.type != NULL); /* it was checked */
    if (some > 0)
        code = send_all(names->call, c, &data, chosen, some, tag);
    free(chosen);
    return code;
}

int Tombolo_Multicast(const void *buffer, MPI_Count count, MPI_Datatype type, const int ranks[], int n, int tag,
                      MPI_Comm comm)
{
    static const struct tb_names names = {
        "Tombolo_Multicast", "buffer", "count", "type", "ranks", "tag", "comm", 1, 2, 3, 4, 6, 7};
    struct tb_comm *c = tb_comm_find(comm);
    if (c != NULL && n < 0)
        return tb_raise_argument(c, MPI_ERR_ARG, names.call, 5, "n", "%d is negative", n);
    if (c != NULL && n > 0 && ranks == NULL)
        return tb_raise_null(c, names.call, names.rank_at, names.rank);
    return tb_multicast_send(&names, buffer, count, type, ranks, n, tag, comm);
}

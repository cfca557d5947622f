/* Tombolo_Multicast (tombolo.h): one message to several ranks, which they take by ordinary receives. */
#pragma GCC visibility push(default)
#include <tombolo.h>
#pragma GCC visibility pop

#include "mpi/point.h"

#include <stdlib.h>

static const struct tb_names names = {
    "Tombolo_Multicast", "buffer", "count", "type", "ranks", "tag", "comm", 1, 2, 3, 4, 6, 7};

/* Everything is looked at before anything is sent. */
static int check_arguments(const void *buffer, MPI_Count count, MPI_Datatype type, const int ranks[], int n, int tag,
                           MPI_Comm comm)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c != NULL && n < 0)
        return tb_raise_argument(c, MPI_ERR_ARG, names.call, 5, "n", "%d is negative", n);
    if (c != NULL && n > 0 && ranks == NULL)
        return tb_raise_null(c, names.call, names.rank_at, names.rank);
    if (c == NULL || n == 0)
        return tb_raise_send(&names, comm, buffer, count, type, MPI_PROC_NULL, tag);
    const struct tb_type *found = tb_type_find(type);
    int code = MPI_SUCCESS;
    for (int i = 0; i < n && code == MPI_SUCCESS; i++)
        if (!tb_check_send(c, found, buffer, count, ranks[i], tag))
            code = tb_raise_send(&names, comm, buffer, count, type, ranks[i], tag);
    return code;
}

/* Starts a send to each rank. */
static void post_all(struct tb_comm *c, struct tb_request *requests, const struct tb_buffer *buffer, const int ranks[],
                     int n, int tag)
{
    for (int i = 0; i < n; i++) {
        tb_request_prepare(&requests[i]);
        if (ranks[i] != MPI_PROC_NULL)
            tb_send_post(c->channel, &requests[i], buffer, (uint32_t)ranks[i], (uint32_t)tag, TB_MODE_STANDARD);
    }
}

/* Waits for all of them, also if one has failed: the engine refers to them until they are done. */
static int wait_all(const struct tb_comm *c, struct tb_request *requests, const int ranks[], int n)
{
    int code = MPI_SUCCESS;
    for (int i = 0; i < n; i++) {
        if (ranks[i] == MPI_PROC_NULL)
            continue;
        tb_request_wait_in(&requests[i], names.call, NULL);
        if (code == MPI_SUCCESS && requests[i].status.error != TB_OK)
            code = tb_request_code(&requests[i], c, names.call);
    }
    return code;
}

int Tombolo_Multicast(const void *buffer, MPI_Count count, MPI_Datatype type, const int ranks[], int n, int tag,
                      MPI_Comm comm)
{
    int code = check_arguments(buffer, count, type, ranks, n, tag, comm);
    if (code != MPI_SUCCESS || n == 0)
        return code;
    struct tb_comm *c = tb_comm_find(comm);
    struct tb_buffer data = tb_buffer_of(buffer, count, tb_type_find(type));
    struct tb_request *requests = malloc((size_t)n * sizeof *requests);
    if (requests == NULL)
        return tb_raise(c, MPI_ERR_NO_MEM, names.call, "out of memory for messages to %d ranks", n);
    /* Programs give no datatype where nobody is meant. */
    const struct tb_type *kept = data.type != NULL ? tb_type_keep(data.type) : NULL;
    post_all(c, requests, &data, ranks, n, tag);
    code = wait_all(c, requests, ranks, n);
    tb_type_let_go(kept);
    free(requests);
    return code == MPI_SUCCESS ? code : tb_raise_code(c, code);
}

#include "mpi/party.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/foreign.h"
#include "mpi/subgroup.h"

void *tb_party_pack(uint64_t context, const struct tb_comm *comm, size_t *bytes)
{
    *bytes = sizeof(struct tb_meeting_party) + comm->size * sizeof(uint32_t);
    struct tb_meeting_party *p = calloc(1, *bytes);
    if (p == NULL) {
        tb_error(TB_ERR_MEMORY, "out of memory for a group of %u processes", comm->size);
        return NULL;
    }
    p->context = context;
    p->size = comm->size;
    for (uint32_t i = 0; i < comm->size; i++)
        p->procs[i] = tb_comm_proc(comm, i);
    return p;
}

int tb_party_unpack(const void *packed, size_t bytes, struct tb_party *party)
{
    const struct tb_meeting_party *p = packed;
    *party = (struct tb_party){.class = MPI_SUCCESS};
    if (!tb_meeting_party_is_whole(packed, bytes))
        return tb_error(TB_ERR_PROTOCOL, "what came of the other group makes no sense");
    party->procs = malloc(p->size * sizeof *party->procs);
    if (party->procs == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for a group of %u processes", p->size);
    memcpy(party->procs, p->procs, p->size * sizeof *party->procs);
    party->context = p->context;
    party->size = p->size;
    party->meeting = p->meeting;
    return TB_OK;
}

void tb_party_fail(struct tb_party *party, int class)
{
    party->class = class;
    snprintf(party->text, sizeof party->text, "%s", tb_error_story());
}

/* Takes the processes. When the communicator has been entered, or given up, that is told of *met. */
static int party_new(struct tb_comm *comm, struct tb_party *party, struct tb_comm **made, struct tb_foreign **met)
{
    struct tb_comm_shape shape;
    int error = TB_OK;
    *met = NULL;
    for (uint32_t i = 0; i < party->size && error == TB_OK; i++)
        if (!tb_address_book_knows(&tb_self.job.book, party->procs[i]))
            error = tb_error(TB_ERR_PROTOCOL, "the other group names process %u, which the job does not have",
                             party->procs[i]);
    if (error == TB_OK && tb_channel_exists(tb_self.engine, party->context)) /* they must not harm us */
        error = tb_error(TB_ERR_PROTOCOL, "the other group names a context that is in use");
    if (error == TB_OK)
        *met = tb_foreign_met(party->procs[0], party->meeting);
    if (error == TB_OK)
        error = tb_shape_copy(comm, &shape);
    if (error < 0)
        return error;
    shape.inter = true;
    shape.remote_size = party->size;
    shape.remote_procs = party->procs;
    shape.first = tb_group_decides(shape.procs[0], shape.remote_procs[0]);
    party->procs = NULL;
    return tb_comm_new(&shape, comm, made);
}

int tb_party_join(struct tb_comm *comm, struct tb_party *party, struct tb_comm **made)
{
    struct tb_foreign *met;
    int error = party_new(comm, party, made, &met);
    free(party->procs);
    party->procs = NULL;
    if (error == TB_OK)
        tb_comm_enter(*made, party->context);
    tb_foreign_made(met);
    return error;
}

/* Everyone has the root's party; an error, if somebody cannot. Two collectives, whatever happens, so that their numbers
 * agree afterwards, although only some may have heard of the loss of one of them. */
static int party_spread(struct tb_comm *comm, uint32_t root, struct tb_party *party)
{
    uint32_t *procs = party->procs, nobody = 0;
    int error = tb_comm_spread(comm, root, party, sizeof *party);
    party->procs = procs;
    if (error == TB_OK && party->class != MPI_SUCCESS)
        return tb_comm_spread(comm, root, &nobody, sizeof nobody);
    size_t bytes = party->size * sizeof *party->procs;
    if (error == TB_OK && comm->rank != root)
        party->procs = malloc(bytes);
    if (error == TB_OK && party->procs != NULL)
        return tb_comm_spread(comm, root, party->procs, bytes);
    if (error == TB_OK)
        error = tb_error(TB_ERR_MEMORY, "out of memory for a group of %u processes", party->size);
    tb_comm_refuse(comm, TB_OPERATION_BCAST, error);
    return error;
}

/* Nothing comes of the context. What has been sent in it is dropped, or refused when it comes. */
static void give_up_context(const struct tb_party *party)
{
    const struct tb_channel_config config = {.context = party->context};
    if (party->used && party->context != 0)
        tb_channel_abandon(tb_self.engine, &config);
    else if (!party->told)
        tb_context_put_back(party->context);
}

int tb_party_meet(const char *call, struct tb_comm *comm, uint32_t root, struct tb_party *party, MPI_Comm *newcomm)
{
    struct tb_comm *made = NULL;
    struct tb_foreign *met = NULL;
    uint64_t word = 0;
    int error = party_spread(comm, root, party);
    int class = party->class;
    if (error == TB_OK && class == MPI_SUCCESS)
        error = party_new(comm, party, &made, &met);
    error = tb_comm_combine_or_refuse(comm, error, &word);
    free(party->procs);
    party->procs = NULL;
    if (error == TB_OK && class == MPI_SUCCESS)
        tb_comm_enter(made, party->context);
    else
        give_up_context(party);
    tb_foreign_made(met);
    if (class != MPI_SUCCESS)
        return tb_raise(comm, class, call, "%s", party->text);
    if (tb_comm_given(error, &made) < 0) {
        tb_foreign_leave();
        return tb_raise_below(comm, error, call);
    }
    *newcomm = tb_comm_handle(made);
    return MPI_SUCCESS;
}

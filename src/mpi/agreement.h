/* What processes tell each other when they make a communicator: the context id, and who is in it. Messages that are not
 * those of a collective go in the control plane of the communicator that exists already, so that nothing of the program
 * can meet them.
 *
 * Context ids are taken by one of the processes concerned, the leader, and travel with the rest. An id that was taken
 * and is not needed after all is put back, which keeps the numbers of an allocator free of gaps. */
#ifndef TB_MPI_AGREEMENT_H
#define TB_MPI_AGREEMENT_H

#include "mpi/comm.h"

/* What a message in the control plane is about; beside it stands a number, such as the user's tag. */
enum tb_topic {
    TB_TOPIC_CREATE = 1,
    TB_TOPIC_CREATE_GROUP,
    TB_TOPIC_CREATE_FROM_GROUP,
    TB_TOPIC_INTERCOMM,
    TB_TOPIC_INTERCOMM_GROUP, /* MPI_Intercomm_create_from_groups: inside a group, and between the two */
    TB_TOPIC_INTERCOMM_BRIDGE,
    TB_TOPIC_ACROSS,
    TB_TOPIC_PARTITIONS, /* partitioned.c: how a partitioned message is cut, and its parts */
    TB_TOPIC_PART,
    TB_TOPIC_NAMED_GROUP /* named_group.c: of a meeting of its members */
};

static inline uint64_t tb_topic_match(enum tb_topic topic, uint64_t number)
{
    return (uint64_t)topic << 56 | (number & 0xffffffffffffff);
}

/* A context id that no process has used before. 0: none is left, and the story is told. Any thread. */
uint64_t tb_context_take(void);
/* The same of one that is for an inter-communicator only, which uses no common memory; so none of it is claimed, which
 * would be kept where the id is not put back after all. */
uint64_t tb_context_take_between(void);
/* Puts back one that was not used; 0, or one that another process has taken, is left alone. */
void tb_context_put_back(uint64_t context);

/* ---- all ranks of an intracommunicator; collective calls --------------------------------------------------------- */

/* Everyone gets root's bytes. */
int tb_comm_spread(struct tb_comm *comm, uint32_t root, void *data, size_t bytes);
/* Everyone gets everyone's `bytes` bytes, by rank, in `all`. */
int tb_comm_exchange(struct tb_comm *comm, const void *mine, size_t bytes, void *all);
/* Everyone has things of `each` bytes for others: counts[i] of them for rank i, all in one array in the order of ranks.
 * Everyone gets what is for it, allocated, and their number. `error`: what has kept this rank from having them, of
 * which others learn. The communicator is settled. */
int tb_comm_deliver(struct tb_comm *comm, int error, const uint32_t *counts, const void *things, size_t each,
                    void **got, uint32_t *got_count);

/* Everyone gets the bits that are set in everyone's word. The other one: unless this rank has failed with an error;
 * then everyone fails. */
int tb_comm_combine(struct tb_comm *comm, uint64_t *word);
int tb_comm_combine_or_refuse(struct tb_comm *comm, int error, uint64_t *word);
/* Ranks on several hosts agree on the common memory that each of these has for them, if they have not yet: it is used
 * if all of them have some. In the call that makes a communicator, if it waits for the others; after MPI_Comm_idup in
 * the first such call on it. Intercommunicators use none. After an error it is of no use. */
int tb_comm_settle(struct tb_comm *comm);
/* The same in a call that all ranks of `parent`, which is settled, have made, whether or not they are in a new one, and
 * whether or not they have got it: `error` is what has kept a rank from that, and then the others learn of it. Gives up
 * *made after an error, which it returns. */
int tb_comm_settle_parts(struct tb_comm *parent, int error, struct tb_comm **made);
/* The bits that are for this one, of a word that says what its hosts have in common, are set for all of its ranks. */
int tb_comm_agree(struct tb_comm *comm, uint64_t all);
/* Gives up *made after an error, which it returns. */
int tb_comm_given(int error, struct tb_comm **made);
/* All ranks of `parent`, which is settled, call, and have *made with the same groups (tb_comm_new), unless they have
 * failed with an error: it gets a context and is settled, on all of them, or is given up on all of them. */
int tb_comm_agree_new(struct tb_comm *parent, int error, struct tb_comm **made);
/* The same for MPI_COMM_WORLD, whose memory no host lacks: without a message. */
int tb_world_settle(void);
/* Memory of its own for a persistent collective of that number, where ranks share some; all that have such a collective
 * call. `wanted`: its program needs it. *kept is NULL if there is none for everyone. */
bool tb_comm_keeps(const struct tb_comm *comm, enum tb_operation operation);
int tb_comm_keep(struct tb_comm *comm, uint32_t number, bool wanted, struct tb_kept **kept);

/* ---- some ranks of a communicator -------------------------------------------------------------------------------- */

/* Who they are, and in which order; this process is one of them. Asked for one by one, so that no memory is needed. */
struct tb_members {
    uint32_t count, mine;
    uint32_t (*proc)(const struct tb_members *members, uint32_t at); /* job index */
};

/* What they agree on. */
struct tb_consent {
    uint64_t context; /* of whoever knows one; 0: nobody does, or not this one */
    uint64_t all;     /* the bits that everyone has set */
    int32_t error;    /* of one that cannot take part; else TB_OK */
    uint32_t proc;    /* which that is */
};

/* These ranks of an intracommunicator, and nobody else, combine what they have: everyone has the same afterwards. As
 * many rounds as a broadcast has, and no memory. Its error, told. */
int tb_agree_within(struct tb_comm *comm, const struct tb_members *members, uint64_t match, struct tb_consent *consent);

/* ---- two groups -------------------------------------------------------------------------------------------------- */

/* Bytes whose length only the sender knows. Allocated. */
struct tb_news {
    void *data;
    size_t bytes;
};

/* Which of two groups decides where one must: that whose rank 0 (or leader) comes first in the job; of two jobs, that
 * of the one whose number comes first. */
bool tb_group_decides(uint32_t my_leader, uint32_t their_leader);

/* The leaders of two groups, each a rank of `local`, exchange `mine` through `bridge`, in which the other one is rank
 * `remote`; then everyone in `local` has what the other leader has sent, and a context id that the leader of the group
 * that decides has taken. All ranks of `local` call; bridge, remote and mine matter at the leader only. A leader
 * without a bridge makes the others fail. `error`: this rank cannot take part, and all ranks of both groups fail.
 *
 * Without news, mine and theirs being NULL, all succeed or none. Of news one rank may lack memory, so that a second
 * agreement must follow in which it says so, without a context (NULL); if that fails, the context of the first is put
 * back. */
int tb_agree_across(int error, struct tb_comm *local, uint32_t leader, struct tb_comm *bridge, uint32_t remote,
                    uint64_t match, const struct tb_news *mine, struct tb_news *theirs, uint64_t *context);
/* The same between the two groups of an inter-communicator. */
int tb_agree_inter(int error, struct tb_comm *inter, const struct tb_news *mine, struct tb_news *theirs,
                   uint64_t *context);

#endif

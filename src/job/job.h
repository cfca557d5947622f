/* job: who is in the job and where. The address book has an entry a host, not a rank; it is read-only, made by the
 * launcher, mapped once a host. The rank's side of joining a job: from the agent that started it, or alone. */
#ifndef TB_JOB_JOB_H
#define TB_JOB_JOB_H

#include "topology/topology.h"
#include "wire/wire.h"

#include <netinet/in.h>

#define TB_JOB_RANKS_LIMIT     (1u << 20)
#define TB_JOB_HOSTS_LIMIT     (1u << 16)
#define TB_HOST_RANKS_LIMIT    1024u
#define TB_HOST_ADDRESS_LIMIT  16u

/* ---- the address book ---------------------------------------------------------------------------------------------- */

struct tb_address {
    uint8_t family;    /* 4 or 6 */
    uint8_t prefix;    /* bits of the subnet, so that a common one is tried first */
    uint16_t port;     /* of the host's agent */
    uint32_t scope;    /* of link-local IPv6; otherwise 0 */
    uint8_t bytes[16];
};

struct tb_host {
    char name[256];     /* as the user wrote it */
    struct tb_place place;
    uint32_t first_rank, rank_count; /* ranks of a host are consecutive within one block of the book... */
    uint32_t address_count;
    struct tb_address addresses[TB_HOST_ADDRESS_LIMIT];
};

/* ...but placement may interleave hosts, so ranks are mapped in ranges. */
struct tb_rank_range {
    uint32_t first_rank, count;
    uint32_t host;        /* index in the book */
    uint32_t first_local; /* local index of first_rank on its host */
};

struct tb_book {
    uint32_t job;   /* number of the job */
    uint32_t ranks;
    uint32_t host_count, range_count;
    struct tb_host *hosts;
    struct tb_rank_range *ranges; /* sorted by first_rank */
};

uint32_t tb_book_host_of(const struct tb_book *book, uint32_t rank);
uint32_t tb_book_local_index(const struct tb_book *book, uint32_t rank);
int tb_book_encode(const struct tb_book *book, struct tb_writer *w);
int tb_book_decode(struct tb_book *book, struct tb_reader *r); /* allocates; checks every index and limit */
void tb_book_close(struct tb_book *book);

/* ---- a rank's membership ------------------------------------------------------------------------------------------- */

enum tb_job_source { TB_JOB_ALONE, TB_JOB_AGENT };

struct tb_job_events {
    void *context;
    /* A stream that was asked for (or that another rank asked for) is here: the descriptor belongs to the callee. */
    void (*connection)(void *context, struct tb_proc proc, enum tb_stream stream, int descriptor);
    void (*refused)(void *context, struct tb_proc proc, enum tb_stream stream, int error); /* story in tb_error */
    void (*lost)(void *context, struct tb_proc proc, int error);
};

struct tb_job {
    enum tb_job_source source;
    struct tb_proc self;
    uint32_t size;
    uint32_t local_index, local_count;
    uint32_t *local_procs; /* job index of each of the host's ranks */
    int *doorbells;        /* eventfds of the host's ranks */
    void *segment;         /* shared memory of the host, NULL when alone */
    size_t segment_bytes;
    struct tb_book book;
    int control;           /* Unix socket to the agent, -1 when alone */
    char host[256];
};

/* Finds out who we are: TOMBOLO_AGENT in the environment (inherited descriptor, or the name of the agent's abstract
 * socket), else alone. Imports the launcher's parameters. Blocks until the agent has answered. */
int tb_job_join(struct tb_job *job);
void tb_job_leave(struct tb_job *job); /* closes everything; the agent is told nothing */

/* Reads what the agent has sent, without blocking, and calls `events`. TB_ERR_CLOSED: the agent is gone. */
int tb_job_poll(struct tb_job *job, const struct tb_job_events *events);
int tb_job_ask_connection(struct tb_job *job, struct tb_proc to, enum tb_stream stream);
int tb_job_tell_initialized(struct tb_job *job);
int tb_job_tell_finalized(struct tb_job *job);
/* Tells the agent that the job must end with `code`; then waits to be killed (bounded), and exits. */
_Noreturn void tb_job_abort(struct tb_job *job, int code, const char *text);

#endif

/* job: who is in the job and where. The address book has an entry a host, not a rank; it is read-only, made by the
 * launcher, mapped once a host. The rank's side of joining a job: from the agent that started it, or alone. */
#ifndef TB_JOB_JOB_H
#define TB_JOB_JOB_H

#include "job/abort_group.h"
#include "job/address.h"
#include "job/bond.h"
#include "job/border.h"
#include "job/cost_mapping.h"
#include "job/handshake_socket.h"
#include "job/meeting.h"
#include "job/multicast.h"
#include "job/sealed_map.h"
#include "job/rank_places.h"
#include "job/registry.h"
#include "job/start_hints.h"
#include "topology/topology.h"
#include "wire/wire.h"

#include <stdatomic.h>
#include <sys/types.h>

#define TB_JOB_RANKS_LIMIT    (1u << 20)
#define TB_JOB_HOSTS_LIMIT    (1u << 16)
#define TB_HOST_RANKS_LIMIT   1024u
#define TB_HOST_ADDRESS_LIMIT 16u
#define TB_PLACE_NAME_BYTES   256u /* with the 0 at the end */

/* ---- the address book -------------------------------------------------------------------------------------------- */

/* Where a host is, as itself or a list of hosts says; empty: not said. */
struct tb_host_where {
    char site[64];
    char cluster[64];
};

struct tb_host {
    char name[256];                  /* as the user wrote it */
    uint32_t place;                  /* in which it stands: of the book's places */
    uint8_t representation;          /* how its machine writes numbers: TB_REP_, or TB_REP_UNKNOWN */
    uint32_t kind;                   /* hosts of one kind are reached in the same way; see struct tb_host_routes */
    uint32_t pattern;                /* 1 + that of the book by which its ranks are seated; 0: they are not bound */
    uint32_t first_rank, rank_count; /* ranks of a host are consecutive within one block of the address book... */
    uint32_t address_count;
    struct tb_address addresses[TB_HOST_ADDRESS_LIMIT];
};

/* ...but placement may interleave hosts, so ranks are mapped in ranges. */
struct tb_rank_range {
    uint32_t first_rank, count;
    uint32_t host;        /* index in the address book; of processes of another job, that of the border to it */
    uint32_t first_local; /* local index of first_rank on its host */
    uint32_t job;         /* 0: this one; of worlds: the number of the other job whose processes these are, */
    uint32_t home;        /* and the index of the first one there, */
    uint32_t generation;  /* in which both jobs know each other: who is met again, or beside that, has another one */
};

#define TB_UNIVERSE_INFINITE UINT32_MAX

struct tb_address_book {
    uint32_t version;         /* counts from 1; a later one has all of the one before, and more behind it */
    uint32_t job;             /* number of the job */
    uint32_t ranks, universe; /* of the world that the job has begun with; that its hosts have room for, or as the user
                               * says; TB_UNIVERSE_INFINITE: nobody knows */
    uint32_t host_count, range_count;
    struct tb_places places;
    struct tb_host *hosts;
    struct tb_rank_range *ranges; /* sorted by first_rank, without gaps */
    struct tb_worlds *worlds;     /* those that were started since; NULL: there can be none */
    uint32_t pattern_count;       /* how ranks of a host are seated, by local index; hosts that are alike share one */
    uint32_t *pattern_firsts;     /* of each pattern, and one more: its first seat */
    struct tb_seat *seats;        /* of all patterns */
    void *mapping;                /* of a host's shared copy, which all of them then point into; else NULL */
    size_t mapping_bytes;
};

const char *tb_host_long_double(const struct tb_host *host); /* how it writes that: "IEEE binary128" */
bool tb_host_char_is_unsigned(const struct tb_host *host);
/* Where the machines of two hosts of a job may differ. */
enum tb_trait { TB_TRAIT_LONG_DOUBLE, TB_TRAIT_CHAR };
bool tb_hosts_share(const struct tb_host *a, const struct tb_host *b, enum tb_trait trait);
/* Where a rank stands, of whichever world. */
const struct tb_rank_range *tb_address_book_range(const struct tb_address_book *book, uint32_t rank);
uint32_t tb_address_book_host_of(const struct tb_address_book *book, uint32_t rank);
bool tb_address_book_knows(const struct tb_address_book *book, uint32_t index); /* there is, or was, such a process */
uint32_t tb_address_book_local_index(const struct tb_address_book *book, uint32_t rank);
/* The name of the cluster in which a host stands; "" if that is none, or not known yet. */
const char *tb_address_book_cluster(const struct tb_address_book *book, uint32_t host);
/* The seats of the ranks of a host, by local index; NULL: they are not bound. */
const struct tb_seat *tb_address_book_seats(const struct tb_address_book *book, uint32_t host);
/* Seats the ranks of a host, which has `count` of them; count 0: they are not bound. For whoever makes a book. */
int tb_address_book_seat(struct tb_address_book *book, uint32_t host, const struct tb_seat *seats, uint32_t count);
int tb_address_book_encode(const struct tb_address_book *book, struct tb_writer *w);
int tb_address_book_decode(struct tb_address_book *book,
                           struct tb_reader *r); /* allocates; checks every index and limit */
void tb_address_book_close(struct tb_address_book *book);

/* A host has one copy of the address book, in a sealed memfd that its agent makes and every rank maps. */
int tb_address_book_share(const struct tb_address_book *book, int *descriptor);
int tb_address_book_map(struct tb_address_book *book, int descriptor); /* the descriptor stays the caller's */

/* ---- worlds that are started later ------------------------------------------------------------------------------- */

/* Worlds that were started while the job runs (MPI_Comm_spawn): a range of indices each, behind all that were given
 * before. An index is never given again, so that nothing which is late can be mistaken for something else; of processes
 * that have ended is kept where they were, and neighbours on a host are one range. They stand in memory that the agent
 * of a host writes and all its ranks read: reserved for as many as there can be, of which what is used becomes memory.
 * The launcher decides where processes are, and they are started when all agents have noted it: so whoever can have
 * heard of a process finds it here, at once. Any thread may read while one adds. */
struct tb_worlds {
    _Atomic uint32_t processes; /* indices that were given; 0: none but to those that the job has begun with */
    _Atomic uint32_t count;
    _Atomic uint64_t begins[TB_JOB_RANKS_LIMIT / 64]; /* a bit by index: it is the first of its world */
    struct tb_rank_range ranges[]; /* as those of the address book, but for first_local; written before `count` */
};

/* Memory for them, and what ranks map it by; NULL: nobody else reads it. */
int tb_worlds_make(struct tb_address_book *book, int *descriptor);
int tb_worlds_map(struct tb_address_book *book, int descriptor); /* the descriptor stays the caller's */
void tb_worlds_close(struct tb_address_book *book);

uint32_t tb_worlds_processes(const struct tb_address_book *book); /* how many indices were given */
/* The world of a process that the book knows: from its first index up to, and not with, *end. */
uint32_t tb_worlds_of(const struct tb_address_book *book, uint32_t index, uint32_t *end);
/* Adds the ranges of one world, behind all that are known. Checks everything; nothing is added then. */
/* Which process it is, for those who have other indices for it: number of its job, and its index there. */
struct tb_proc tb_worlds_home(const struct tb_address_book *book, uint32_t index);
bool tb_worlds_is_foreign(const struct tb_address_book *book, uint32_t index); /* of another job */
/* Whether that process can have made up this context, for a communicator with processes of several jobs. */
bool tb_worlds_makes(const struct tb_address_book *book, uint32_t index, uint64_t context);
uint32_t tb_worlds_generation(const struct tb_address_book *book, uint32_t index); /* of one of this job: 0 */
/* The index of such a process here, in that generation; in the newest, if that is 0, or one between others, of whom
 * this job knows nothing. False: this job does not know it. */
bool tb_worlds_find(const struct tb_address_book *book, struct tb_proc home, uint32_t generation, uint32_t *index);
/* Adds ranges, the first of which begins behind all that are known. Checks everything; nothing is added then. */
int tb_worlds_add(struct tb_address_book *book, const struct tb_rank_range *ranges, uint32_t count);
/* TB_CONTROL_WORLD: the ranges of one world. */
void tb_worlds_put(struct tb_writer *w, const struct tb_rank_range *ranges, uint32_t count);
int tb_worlds_get(struct tb_reader *r, struct tb_rank_range **ranges, uint32_t *count); /* allocated */

/* ---- routes between hosts ---------------------------------------------------------------------------------------- */

#define TB_HOST_ROUTES_KINDS_LIMIT 2048u
#define TB_HOST_ROUTES_HOPS_LIMIT  16u /* to one kind */

enum tb_host_route_means {
    TB_HOST_ROUTE_NONE,   /* there is no route */
    TB_HOST_ROUTE_DIRECT, /* we can connect to them, as can they to us or not */
    TB_HOST_ROUTE_CALLED, /* only they can connect to us: ask with TB_CONTROL_CALL */
    TB_HOST_ROUTE_RELAYED /* through the agents of `hops`, which are DIRECT or CALLED themselves */
};

/* One host's view: how it gets something to the hosts of each kind. Made by the launcher from the grid's routes, made
 * anew when a gateway goes. A job without a grid has none (kind_count 0): everything is direct. */
struct tb_host_route {
    uint8_t means;     /* enum tb_host_route_means */
    uint8_t hop_count; /* with TB_HOST_ROUTE_RELAYED; equally good ones, in the order of the file */
    uint8_t near;      /* they stand in a cluster with us: what goes there directly crosses no wide area */
    uint8_t open;      /* ranks may connect there themselves; else only agents do, for them */
    uint8_t relays;    /* their agents may pass on what others send */
    uint32_t hops[TB_HOST_ROUTES_HOPS_LIMIT]; /* hosts of the address book */
    uint64_t latency;                         /* ns in one direction, of the whole route; 0: not known */
    uint64_t bandwidth;                       /* bit/s of its slowest wire; 0: not known */
    uint32_t loss;                            /* frames of a million, all wires together */
};

struct tb_host_routes {
    uint32_t version; /* counts the changes */
    uint32_t kind_count;
    uint32_t room;                /* for so many kinds there is memory */
    struct tb_host_route *routes; /* by kind */
};

int tb_host_routes_encode(const struct tb_host_routes *routes, struct tb_writer *w);
/* Into what is all zero, or holds others, whose memory is used again. Checks everything. */
int tb_host_routes_decode(struct tb_host_routes *routes, struct tb_reader *r, uint32_t host_count);
int tb_host_routes_reserve(struct tb_host_routes *routes, uint32_t kinds);
void tb_host_routes_close(struct tb_host_routes *routes);
/* To a host of the address book. Never NULL. */
const struct tb_host_route *tb_host_routes_to(const struct tb_host_routes *routes, const struct tb_address_book *book,
                                              uint32_t host);
/* A host has one copy, in a sealed memfd that its agent makes and every rank reads. */
int tb_host_routes_share(const struct tb_host_routes *routes, int *descriptor);
int tb_host_routes_read(struct tb_host_routes *routes, int descriptor,
                        uint32_t host_count); /* the descriptor stays the caller's */

/* ---- a rank's membership ----------------------------------------------------------------------------------------- */

enum tb_job_source { TB_JOB_ALONE, TB_JOB_AGENT };

#define TB_JOB_PLAN_LIMIT  (64u << 20)  /* bytes of a plan that a job follows */
#define TB_JOB_PLANS_BYTES (256u << 10) /* of a host; of it, what is used becomes memory */

/* What the launcher answers. The bytes are the callee's, who frees them. */
struct tb_job_answer {
    int error; /* TB_OK, or */
    char text[1024];
    void *bytes;
    size_t length;
};

struct tb_job_events {
    void *context;
    /* A stream that was asked for (or that another rank asked for) is here: the descriptor belongs to the callee. */
    void (*connection)(void *context, struct tb_proc proc, enum tb_stream stream, int descriptor);
    void (*refused)(void *context, struct tb_proc proc, enum tb_stream stream, int error); /* story in tb_error */
    void (*lost)(void *context, struct tb_proc first, uint32_t count, int error);          /* likewise */
    void (*routes)(void *context); /* job.routes has changed; may be NULL */
    /* Somebody wants to know what this rank waits for; tb_job_tell_waits answers. May be NULL. */
    void (*asked)(void *context, uint32_t number);
    /* The launcher's answer to what it was asked. May be NULL. */
    void (*answered)(void *context, uint32_t number, const struct tb_job_answer *answer);
};

struct tb_job {
    enum tb_job_source source;
    struct tb_proc self;
    uint32_t first, size; /* of its world: the first index, and how many ranks there are */
    uint32_t app;         /* which program of the command line, or of the spawn; 0 when alone */
    void *parent;         /* of a spawned one, who it belongs to: mpi/spawn.c; NULL: it was not spawned. */
    size_t parent_bytes;
    uint32_t local_index, local_count; /* of the host's ranks of its world, */
    uint32_t *local_procs;             /* the job index of each, */
    int *doorbells;                    /* their eventfds, */
    void *segment;                     /* and their shared memory, NULL when alone */
    size_t segment_bytes;
    void *plan; /* an image of the plan that the job follows, read only; NULL: none */
    size_t plan_bytes;
    void *plans; /* the same, for choices that its ranks share: TB_JOB_PLANS_BYTES; NULL: no other rank is here */
    struct tb_address_book book;
    bool mixed;                        /* some other host writes long double differently */
    struct tb_host_routes routes;      /* of this host; empty without a grid */
    struct tb_host_routes spare;       /* memory for the next ones, so that a change without new kinds needs none */
    struct tb_cost_mapping *costs;     /* the newest version, and behind it those before it; alone: NULL until needed */
    const struct tb_cost_table *table; /* the first version, which all ranks of the job have */
    int control;                       /* Unix socket to the agent, -1 when alone */
    struct tb_multicast_facts multicast; /* where it works; a verdict comes with tb_job_poll */
    char host[256];
};

/* Finds out who we are: TOMBOLO_AGENT in the environment (inherited descriptor, or the name of the agent's abstract
 * socket), else alone. Imports the launcher's parameters, so tb_param_load comes before. Blocks until the agent has
 * answered. A program that a rank of a job has started is no rank itself and is alone. */
int tb_job_join(struct tb_job *job);
void tb_job_leave(struct tb_job *job); /* closes everything; the agent is told nothing */

/* Reads what the agent has sent, without blocking, and calls `events`. TB_ERR_CLOSED: the agent is gone. */
int tb_job_poll(struct tb_job *job, const struct tb_job_events *events);
int tb_job_ask_connection(struct tb_job *job, struct tb_proc to, enum tb_stream stream);
struct tb_spawn;
/* Something for the launcher to do. It answers in the end, with this number. */
int tb_job_ask_spawn(struct tb_job *job, uint32_t number, const struct tb_spawn *spawn);
int tb_job_ask_meeting(struct tb_job *job, uint32_t number, const struct tb_meeting *meeting);
int tb_job_ask_registry(struct tb_job *job, const struct tb_registry_question *question);
/* A context that this process makes up, by its number; nobody in a job that it can meet makes up the same. */
uint64_t tb_job_context(const struct tb_job *job, uint32_t counter);
struct tb_host_route tb_job_route(const struct tb_job *job, uint32_t host); /* how something gets there; any thread */
/* Whether this process was started with that one, so that they share memory if they are on one host. */
static inline bool tb_job_in_world(const struct tb_job *job, uint32_t index)
{
    return index - job->first < job->size;
}
int tb_job_tell_initialized(struct tb_job *job);
int tb_job_tell_finalized(struct tb_job *job);
#define TB_WAITING_HOSTS 16u
#define TB_WAITING_STUCK 16u
#define TB_WAIT_TEXT     256u /* bytes of what a thread waits for, with the 0 at the end */
#define TB_WAITS_LIMIT   16u  /* threads of a rank of which that is told */

/* TB_CONTROL_WAITING: whom a rank has waited for. */
struct tb_job_waiting {
    uint32_t count; /* 0: for nobody any more */
    uint32_t hosts[TB_WAITING_HOSTS];
    uint32_t stuck_count; /* ranks whose connections with this one pass nothing, */
    struct {
        uint32_t rank;
        uint64_t tried; /* though so many ns ago something was sent or asked there again */
    } stuck[TB_WAITING_STUCK];
};

/* TB_CONTROL_LINK: what an agent tells the launcher of another host. */
enum tb_link_report {
    TB_LINK_ANSWERS, /* its agent does again */
    TB_LINK_SILENT,  /* it gives no answer */
    TB_LINK_PASSES,  /* connections between its ranks and ours pass something again */
    TB_LINK_STUCK,   /* one passes nothing, though the host answers */
    TB_LINK_REPORTS
};

/* Tells the agent that the multicast group of this host should be tested again, unless there is no room just now. */
void tb_job_tell_group_trouble(struct tb_job *job, enum tb_multicast_trouble what);
/* Tells the agent. Never blocks: if there is no room now, it is not told. */
void tb_job_tell_waiting(struct tb_job *job, const struct tb_job_waiting *waiting);
void tb_job_waiting_put(struct tb_writer *w, const struct tb_job_waiting *waiting);
int tb_job_waiting_get(struct tb_reader *r, struct tb_job_waiting *waiting);

/* What a thread of a rank waits for. */
struct tb_job_wait {
    uint64_t time; /* ns so far; 0: not known */
    char text[TB_WAIT_TEXT];
};

/* How it stands with a rank that was asked, as its agent tells the launcher. */
enum tb_wait_answer {
    TB_WAIT_TOLD,      /* it waits, as the text says */
    TB_WAIT_BUSY,      /* it answers, and waits in no call */
    TB_WAIT_OUTSIDE,   /* it does not answer: it is outside of MPI; and runs */
    TB_WAIT_SLEEPS,    /* the same, and sleeps */
    TB_WAIT_STOPPED,   /* its process is stopped */
    TB_WAIT_BEFORE,    /* it has not called MPI_Init */
    TB_WAIT_FINALIZED, /* it has called MPI_Finalize */
    TB_WAIT_ENDED,
    TB_WAIT_ANSWERS
};

/* Answers a question. Never blocks: if there is no room now, it is not answered. */
void tb_job_tell_waits(struct tb_job *job, uint32_t number, const struct tb_job_wait *waits, uint32_t count);

/* Why a rank ends the job. */
enum tb_abort_reason {
    TB_ABORT_CALLED = 0, /* the program wants it: MPI_Abort */
    TB_ABORT_ERROR = 1,
    TB_ABORT_LOST = 2,   /* another process is gone: why, may be known soon */
    TB_ABORT_FOLLOWS = 3 /* another rank has given a collective up, and may say why soon */
};

/* Tells the agent that the job must end with `code`, or those of the group, if it goes on without them; then waits to
 * be killed (bounded), and exits. */
_Noreturn void tb_job_abort(struct tb_job *job, int code, enum tb_abort_reason reason, const char *text,
                            const struct tb_abort_group *group);

/* ---- other launchers --------------------------------------------------------------------------------------------- */

/* Who has started us, when it was neither mpiexec nor the user. */
struct tb_other_launcher {
    const char *name;
    long rank, size; /* as it says; size 0: it does not say */
};

/* From the environment. Our own variables count first: inside a job of ours nobody is foreign. */
bool tb_other_launcher_find(struct tb_other_launcher *found);
/* Tells the user, once for all processes that it has started, that each of them is alone. */
void tb_other_launcher_tell(void);

/* ---- what launcher and agents tell each other -------------------------------------------------------------------- */

/* How a rank finds its agent: DESCRIPTOR:INODE:LOCAL_RANKS:NAME, an inherited socket (the inode shows whether it is
 * still the same) and the name of an abstract Unix socket. */
#define TB_AGENT_VARIABLE "TOMBOLO_AGENT"
/* How a program knows that its standard output is the agent's: BUFFERING:DEVICE:INODE of the pipe, the latter two in
 * hexadecimal. Empty: nothing is to be done about it. */
#define TB_OUTPUT_VARIABLE "TOMBOLO_OUTPUT"
#define TB_AGENT_PREAMBLE  "\ntombolo agent " /* then version, " wire N\n": the first words of an agent */
#define TB_APP_LIMIT       1024u              /* programs in one job */
#define TB_APP_WORDS_LIMIT (1u << 20)         /* words of a command line, variables of an environment */

/* One program of the job: `prog1 : prog2` are two. */
struct tb_app {
    uint32_t first_rank, ranks;
    uint32_t argument_count;
    char **arguments; /* ended by NULL */
    uint32_t variable_count;
    char **variables; /* NAME=value, set for the ranks; ended by NULL */
    char *directory;  /* "": as the launcher's */
    uint32_t bare;    /* 1: no other variables than these, PATH and HOME */
};

enum tb_bind {
    TB_BIND_NONE,
    TB_BIND_THREAD,
    TB_BIND_CORE,
    TB_BIND_NUMA,
    TB_BIND_SOCKET,
    TB_BIND_L1,
    TB_BIND_L2,
    TB_BIND_L3
};
#define TB_BIND_WIDTH_LIMIT 4096u
#define TB_RANK_NONE        UINT32_MAX

enum tb_buffering { TB_BUFFERING_FULL, TB_BUFFERING_LINE, TB_BUFFERING_NONE };

#define TB_SETUP_NEIGHBOURS_LIMIT 16u

enum tb_setup_flags {
    TB_SETUP_LOCAL = 1, /* the agent is the launcher's child: the end of the stream tells all, no heartbeat is needed */
    TB_SETUP_GRID = 2,  /* TB_CONTROL_ROUTES comes before TB_CONTROL_ADDRESS_BOOK */
    TB_SETUP_STAYS = 4, /* it passes things on, so it stays when its ranks have ended: until TB_CONTROL_STOP */
    TB_SETUP_PTY = 8,   /* standard output of the ranks is a pseudo-terminal */
    TB_SETUP_INNER = 16, /* nobody from outside reaches this host: it listens for its neighbours only */
    TB_SETUP_OWN = 32,   /* the program is one of Tombolo's own, which lies beside the agent's */
    TB_SETUP_SPARE = 64  /* it has no ranks at first, and waits for such as are started later: until TB_CONTROL_STOP */
};

/* Some ranks, one after the other. */
struct tb_rank_run {
    uint32_t first, count;
};

/* TB_CONTROL_SETUP. Everything is allocated and freed by tb_setup_close. */
struct tb_setup {
    char *version; /* of the launcher */
    uint32_t job;
    struct tb_key key;
    uint32_t host, host_count; /* which host of the address book the agent serves */
    uint32_t flags;            /* enum tb_setup_flags */
    uint32_t bind;             /* enum tb_bind */
    uint32_t bind_width;       /* so many of these for each rank */
    char *bind_cpus;           /* "0,1,2+3": processors for the ranks of a host, in turn; "": as `bind` says */
    char *rank_cpus;           /* "0=1,2\n5=3\n": processors of single ranks of the job, before all else */
    uint32_t run_count;        /* which ranks the host has, in the order of local indices; told if they are bound */
    struct tb_rank_run *runs;
    uint32_t input_rank;  /* gets standard input; TB_RANK_NONE: nobody */
    uint32_t window;      /* bytes of output that may be under way */
    uint64_t hold;        /* nanoseconds that an unfinished line waits for its end */
    uint32_t terminal;    /* size of pseudo-terminals: 65536 * lines + columns; 0: not known */
    char *parameters;     /* as tb_param_export writes them */
    char *own_parameters; /* those that belong to a host, for where the host does not say otherwise */
    char *directory;      /* the launcher's */
    uint32_t app_count;
    struct tb_app *apps;
    /* Addresses of others that can connect to this host, as far as they are known: whoever starts it first. */
    uint32_t neighbour_count;
    struct tb_address neighbours[TB_SETUP_NEIGHBOURS_LIMIT];
};

bool tb_setup_binds(const struct tb_setup *setup); /* whether ranks are bound to processors */
int tb_setup_encode(const struct tb_setup *setup, struct tb_writer *w);
int tb_setup_decode(struct tb_setup *setup, struct tb_reader *r);
void tb_setup_close(struct tb_setup *setup);
void tb_app_put(struct tb_writer *w, const struct tb_app *app);
void tb_app_get(struct tb_reader *r, struct tb_app *app); /* allocates, also with an error, which the reader has then */
void tb_app_close(struct tb_app *app);

/* What a rank asks for when it wants processes (MPI_Comm_spawn), as it travels to agent, launcher and those agents. */
struct tb_spawn_app {
    struct tb_app app; /* first_rank counts from the first of the new ones; variables: in addition to, or instead of,
                        * those of the program whose environment they get */
    char *hosts;       /* where, names with commas between them; "": anywhere */
};

struct tb_spawn {
    uint32_t model;     /* the program of the job whose environment they get; of later worlds the launcher knows it */
    uint32_t app_count; /* 1 to TB_APP_LIMIT */
    struct tb_spawn_app *apps;
    uint64_t patience; /* ns for all of them to call MPI_Init; 0: without end */
    /* For the new ones, who they belong to; agents and launcher know nothing of what is in it. */
    size_t parent_bytes;
    void *parent;
};

uint32_t tb_spawn_size(const struct tb_spawn *spawn); /* processes of all its programs */
int tb_spawn_encode(const struct tb_spawn *spawn, struct tb_writer *w);
int tb_spawn_decode(struct tb_spawn *spawn, const void *bytes, size_t length); /* allocates; checks everything */
void tb_spawn_close(struct tb_spawn *spawn);
/* The bytes of the answer: the first index of the new world, and how many processes it has. */
void tb_spawn_answer_put(struct tb_writer *w, uint32_t first, uint32_t size);
int tb_spawn_answer_get(const struct tb_job_answer *answer, uint32_t *first, uint32_t *size);

/* Bytes that are too many for a packet between agent and rank travel in a memfd along with it. */
#define TB_SHARED_BYTES_LIMIT (8u << 20) /* they fit into a control frame, too */
int tb_shared_bytes_put(const void *bytes, size_t length, int *descriptor);
/* Allocated, as they are now: whoever sent them may still change them. The descriptor stays the caller's. */
int tb_shared_bytes_get(int descriptor, void **bytes, size_t *length);

/* How the launcher ends a tunnel, in TB_CONTROL_TUNNEL_END. */
enum tb_tunnel_end {
    TB_TUNNEL_END_SOON, /* whoever is at its other end has a moment to notice it, */
    TB_TUNNEL_END_NOW,  /* or is killed; */
    TB_TUNNEL_END_LEFT  /* or has gone on by another way, and is left alone */
};

/* TB_CONTROL_ENDED. */
struct tb_ended {
    uint32_t rank;
    uint32_t pid;
    int32_t status; /* as waitpid gives it; -1: not known, since it was nobody's child who asks */
    uint32_t flags; /* enum tb_ended_flags */
};

enum tb_ended_flags {
    TB_ENDED_INITIALIZED = 1, /* had joined the job */
    TB_ENDED_FINALIZED = 2,   /* had called MPI_Finalize */
    TB_ENDED_STOPPED = 4,     /* its agent was already ending the ranks */
    TB_ENDED_DUMPING = 8,     /* it has crashed and still writes its core file: another ENDED will follow */
    TB_ENDED_BELOW = 16       /* only the process that had joined has, not the one that was started: likewise */
};

#define TB_DUMP_PATIENCE_NS 60000000000u /* with a core file, when everybody else has ended */

void tb_ended_put(struct tb_writer *w, const struct tb_ended *ended);
int tb_ended_get(struct tb_reader *r, struct tb_ended *ended);

/* A pair of byte streams with control frames in both directions. Never blocks. Writing to a closed one is an error, not
 * a signal, because launcher and agent ignore SIGPIPE. One thread. */
struct tb_control_stream {
    int in, out; /* the same for a socket; owned */
    uint8_t *received;
    size_t received_start, received_end, received_room;
    uint8_t *queued;
    size_t queued_start, queued_end, queued_room;
    struct tb_writer frame; /* the one that is being written */
    uint32_t kind;
    uint32_t sequence_in, sequence_out;
    bool keeps;        /* what was sent is kept until the other side has told that it has come */
    size_t kept_start; /* of that in `queued`; it ends at queued_start */
    uint32_t told;     /* the sequence_in that the other side was told last */
};

struct tb_control_frame {
    uint32_t kind; /* enum tb_control */
    struct tb_reader fields;
};

void tb_control_stream_open(struct tb_control_stream *stream, int in, int out);
void tb_control_stream_close(struct tb_control_stream *stream);
/* Reads once what is there: TB_OK, TB_AGAIN (nothing), TB_ERR_CLOSED, TB_ERR_SYSTEM. */
int tb_control_stream_fill(struct tb_control_stream *stream);
/* The next whole frame, valid until the next fill: TB_OK, TB_AGAIN, TB_ERR_PROTOCOL. */
int tb_control_stream_next(struct tb_control_stream *stream, struct tb_control_frame *frame);
/* Drops bytes up to the end of the preamble and gives its version text: TB_OK, TB_AGAIN, TB_ERR_PROTOCOL (too much
 * that is no preamble). */
int tb_control_stream_preamble(struct tb_control_stream *stream, char *version, size_t size);
/* A frame is written between begin and end; `end` queues it. */
struct tb_writer *tb_control_stream_begin(struct tb_control_stream *stream, enum tb_control kind);
int tb_control_stream_end(struct tb_control_stream *stream);
int tb_control_stream_send(struct tb_control_stream *stream, enum tb_control kind); /* one without fields */
/* Writes what is queued: TB_OK (all), TB_AGAIN (some is left), TB_ERR_CLOSED, TB_ERR_SYSTEM. */
int tb_control_stream_flush(struct tb_control_stream *stream);
size_t tb_control_stream_queued(const struct tb_control_stream *stream);
/* And what was sent, if it is kept until the other side has told that it has come. */
size_t tb_control_stream_unheard(const struct tb_control_stream *stream);
/* A stream that may be lost and go on as another one. From the beginning, what was sent is kept until TB_CONTROL_HEARD
 * tells that it has come. TB_ERR_PROTOCOL: this is not the beginning. */
int tb_control_stream_keep(struct tb_control_stream *stream);
bool tb_control_stream_tell_heard(struct tb_control_stream *stream,
                                  uint32_t frames); /* if at least so many have come since it was told */
/* TB_ERR_PROTOCOL: they were never sent. */
int tb_control_stream_heard(struct tb_control_stream *stream, uint32_t next);
/* The stream is this now; the other side expects frame `next`. TB_ERR_PROTOCOL: that one is not here any more, or there
 * is no such one yet; the descriptors are the caller's then. */
int tb_control_stream_resume(struct tb_control_stream *stream, int in, int out, uint32_t next);
/* The other side has said before that this frame has come. */
bool tb_control_stream_is_past(const struct tb_control_stream *stream, uint32_t next);
/* A stream without descriptors, whose bytes travel some other way: these have come; up to `most` of those that are
 * queued are to be sent, and forgotten with the next call of any other function. */
int tb_control_stream_feed(struct tb_control_stream *stream, const void *bytes, size_t length);
const void *tb_control_stream_take(struct tb_control_stream *stream, size_t most, size_t *length);

/* Control frames between agent and rank: one packet each, descriptors come along. */
#define TB_PACKET_LIMIT       16384u
#define TB_PACKET_DESCRIPTORS 253u /* the kernel's own limit */

struct tb_packet {
    struct tb_control_frame frame;
    pid_t sender; /* as the kernel says, where the socket asks for it (SO_PASSCRED); 0: not known */
    uint32_t descriptor_count;
    int descriptors[TB_PACKET_DESCRIPTORS]; /* close-on-exec; the receiver's */
    uint8_t bytes[TB_PACKET_LIMIT];
};

/* `fields` may be NULL. TB_OK, TB_AGAIN (no room now), TB_ERR_CLOSED, TB_ERR_SYSTEM (errno stays). */
int tb_packet_send(int socket, enum tb_control kind, const struct tb_writer *fields, const int *descriptors,
                   uint32_t descriptor_count);
/* TB_OK, TB_AGAIN, TB_ERR_CLOSED, TB_ERR_PROTOCOL, TB_ERR_SYSTEM. */
int tb_packet_receive(int socket, struct tb_packet *packet, bool wait);
void tb_packet_discard(struct tb_packet *packet); /* closes descriptors that nobody took (took: set to -1) */

/* TB_CONTROL_WELCOME: its descriptors are the segment, the address book, the routes, the costs, the memory for plans,
 * where later processes are, the plan if the job follows one, who has spawned it if somebody has, and the first
 * doorbells; TB_CONTROL_DOORBELLS brings the others. */
struct tb_rank_welcome {
    uint32_t rank;
    uint32_t host;
    uint32_t app; /* which of the job's programs it runs */
    uint64_t segment_bytes;
    bool multicast;       /* the job has multicast groups: TB_CONTROL_GROUP_VERDICT will come */
    uint32_t first, size; /* of its world: its first index, and how many there are */
};
/* What comes along, in this order, before the doorbells. */
enum tb_welcome_file {
    TB_WELCOME_SEGMENT,
    TB_WELCOME_BOOK,
    TB_WELCOME_ROUTES,
    TB_WELCOME_COSTS,
    TB_WELCOME_PLANS,
    TB_WELCOME_WORLDS,
    TB_WELCOME_PLAN,   /* -1: none comes along */
    TB_WELCOME_PARENT, /* the same, of the world that the job has begun with */
    TB_WELCOME_FILES
};
int tb_rank_welcome_send(int socket, const struct tb_rank_welcome *welcome, const char *parameters,
                         const int files[TB_WELCOME_FILES], const int *doorbells, uint32_t doorbell_count,
                         uint32_t *sent);
/* The welcome that has come, and what it says has still to come; packet is used for that. What was taken stays in case
 * of an error, until tb_job_leave. */
int tb_rank_welcome_take(struct tb_job *job, struct tb_packet *packet);

#endif

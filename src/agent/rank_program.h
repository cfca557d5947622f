/* Rank program: one of the job's programs as the ranks of this host run it: executable, working directory, environment.
 * Belongs to whoever starts the ranks, for as long as he does. */
#ifndef TB_AGENT_RANK_PROGRAM_H
#define TB_AGENT_RANK_PROGRAM_H

#include "job/job.h"
#include "remote/remote.h"

#define TB_RANK_PROGRAM_OWN       16 /* variables of the environment that are made for each rank */
#define TB_RANK_PROGRAM_OWN_BYTES 280

/* What starting needs to know of the job and of this host. Everything stays the caller's. */
struct tb_cpu_binding;

struct tb_rank_start {
    const struct tb_setup *setup;
    const struct tb_cpu_binding *binding; /* NULL: it is found out, if the setup wants one */
    const struct tb_address_book *book;
    const char *host;      /* its name, for stories */
    const char *port_name; /* of the abstract socket */
    uint32_t given_count;
    char *const *given;   /* NAME=value, for the environment of this host's ranks */
    const sigset_t *mask; /* blocked signals */
    const struct rlimit *descriptors;
    const struct rlimit *file_size;
};

/* Why ranks cannot be started, as the user is told. */
struct tb_start_failure {
    int exit_code; /* of the job */
    char text[2048];
};

/* Who a rank is, as it is told by its environment. */
struct tb_rank_place {
    uint32_t rank, size;         /* in its world, which has so many */
    uint32_t local, local_count; /* among those of this host */
};

/* A word to the user that is no trouble. */
typedef void tb_rank_program_note(void *context, const char *text);

struct tb_rank_program {
    const struct tb_app *app;
    char *path; /* of the executable */
    const char *directory;
    enum tb_buffering buffering; /* of standard output */
    char **environment;          /* its first TB_RANK_PROGRAM_OWN entries point into `own` */
    char own[TB_RANK_PROGRAM_OWN][TB_RANK_PROGRAM_OWN_BYTES];
};

/* TB_OK, or an error: with `failure` if its text is not empty, else with its story. */
int tb_rank_program_open(struct tb_rank_program *program, const struct tb_rank_start *start, const struct tb_app *app,
                         tb_rank_program_note *note, void *context, struct tb_start_failure *failure);
void tb_rank_program_close(struct tb_rank_program *program);

/* Whether one of these, NAME=value, has the name of that one. */
bool tb_rank_program_has_variable(char *const *variables, uint32_t variable_count, const char *variable);
/* The variables of one rank, with its ends of the control socket and of standard output. */
int tb_rank_program_describe(struct tb_rank_program *program, const struct tb_rank_start *start,
                             const struct tb_rank_place *place, int control, int output);

/* Whether it may be handed to a shell, when the kernel does not know how to run it. */
bool tb_rank_program_is_text(const struct tb_rank_program *program);
/* The kernel did not start the executable: why, as errno has it. */
void tb_rank_program_explain(const struct tb_rank_program *program, const struct tb_rank_start *start, int error,
                             struct tb_start_failure *failure);
/* It is there, but what the kernel needs to run it is not (ENOENT). */
void tb_rank_program_explain_missing(const struct tb_rank_program *program, const struct tb_rank_start *start,
                                     struct tb_start_failure *failure);
void tb_start_failure_set(struct tb_start_failure *failure, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

#endif

/* launch: a job as the user sees it: which hosts, which programs, their output, their end. One thread. */
#ifndef TB_LAUNCH_LAUNCH_H
#define TB_LAUNCH_LAUNCH_H

#include "job/job.h"

#include <stdio.h>

#define TB_LAUNCH_SLOTS_LIMIT 1048576u

/* ---- hosts: what the user wrote ---------------------------------------------------------------------------------- */

struct tb_host_entry {
    char *name;                       /* without the user */
    char *user;                       /* NULL: not given */
    unsigned port;                    /* of ssh; 0: not given */
    uint32_t slots;                   /* ranks that fit; 0: it carries none */
    uint32_t most;                    /* ranks that it takes even where there are more than slots; 0: any number */
    char cluster[TB_GRID_NAME_BYTES]; /* "": not given */
    char site[TB_GRID_NAME_BYTES];
    char origin[160]; /* where the user wrote it: hosts:3, -H */
};

struct tb_host_list {
    uint32_t count, room;
    struct tb_host_entry *entries;
    struct tb_hash_table index; /* of entries by name, user and port */
    struct tb_hash_table named; /* of the first entry of each name */
    uint32_t line_count, line_room;
    uint32_t *lines; /* which entry each word or line of the user's meant, in order: for --map-by seq */
};

/* Adds "h1:4,user@h2"; a host that is there already, with the same user and port, gets more slots. `where` begins error
 * messages. */
int tb_host_list_parse(struct tb_host_list *list, const char *text, const char *where);
/* Adds the lines of a host file; `name` is for messages. */
int tb_host_list_read(struct tb_host_list *list, const char *text, const char *name);
int tb_host_list_load(struct tb_host_list *list, const char *path);
/* Index of the host with this name, user and port, or -1. A mere name (NULL, 0) also finds the first one that has it.
 */
int tb_host_list_find(const struct tb_host_list *list, const char *name, const char *user, unsigned port);
/* Adds the hosts of a grid, in the order of the file; to an empty list, so that host i of the grid is entry i.
 * `missing` (may be NULL): those that take no part carry no ranks. */
int tb_host_list_take(struct tb_host_list *list, const struct tb_grid *grid, const bool *missing);
void tb_host_list_close(struct tb_host_list *list);

/* ---- options ----------------------------------------------------------------------------------------------------- */

enum tb_map { TB_MAP_SLOT, TB_MAP_NODE, TB_MAP_CLUSTER, TB_MAP_LINES };
#define TB_MANUAL_LIMIT 64u

/* One section of the command line, between colons. */
struct tb_section {
    uint32_t count;            /* -n; 0: not given */
    struct tb_host_list hosts; /* -H of this section, when there are several sections */
    char *directory;
    char **variables; /* NAME=value */
    uint32_t variable_count;
    bool bare;        /* the ranks get no other variables than these, PATH and HOME */
    char **arguments; /* program and its arguments; point into the command line */
    uint32_t argument_count;
};

/* How the output of ranks looks, and where it goes. */
struct tb_output_options {
    bool tags, times;     /* each line begins with its rank, with the time */
    const char *pattern;  /* with this text, in which %r, %h, %p and %g stand for something; NULL: none */
    bool merged;          /* standard error goes where standard output goes */
    const char *files[2]; /* patterns of files for standard output and error; NULL: none */
    bool beside;          /* the screen shows it, too */
};

/* Where single ranks go: the lines of a rankfile. */
struct tb_rank_file_line {
    int entry;  /* in the list of all hosts; -1: the file does not name this rank */
    char *cpus; /* as written; NULL: it is not bound */
};

struct tb_rank_file {
    uint32_t count;
    struct tb_rank_file_line *places; /* by rank */
};

/* Reads `rank N=host slot=PROCESSORS`; hosts that are not in the list yet are added to it. +n2 is its third host. */
int tb_rank_file_load(struct tb_rank_file *file, struct tb_host_list *hosts, const char *path);
void tb_rank_file_close(struct tb_rank_file *file);

enum tb_options_action { TB_OPTIONS_RUN, TB_OPTIONS_HELP, TB_OPTIONS_VERSION };

struct tb_options {
    enum tb_options_action action;
    const char *name; /* what the command was called as, for messages */
    struct tb_host_list hosts;
    struct tb_host_list chosen; /* -H with --grid or --lab: which of its hosts get ranks, and how many; empty: all */
    uint32_t section_count, section_room;
    struct tb_section *sections;
    struct tb_section all; /* its variables are for all sections */
    enum tb_map map;
    uint32_t per_host;     /* ranks on each host, whatever its slots; 0: not given */
    uint32_t universe;     /* MPI_UNIVERSE_SIZE; 0: as the hosts have room; TB_UNIVERSE_INFINITE */
    bool oversubscribes;   /* more ranks than slots are allowed */
    bool avoids_this_host; /* it gets no ranks */
    bool has_host_file;
    const char *default_hosts;  /* a host file, if no hosts are named otherwise */
    const char *rank_file_name; /* read when the hosts are known */
    struct tb_rank_file rank_file;
    uint32_t bind;         /* enum tb_bind */
    uint32_t bind_width;   /* so many of these for each rank; 0: one */
    const char *bind_cpus; /* processors, one word for each rank of a host in turn; NULL: not given */
    bool shows_map;        /* tells which ranks go where... */
    bool plans_only;       /* ...and that is all */
    struct tb_output_options output;
    uint32_t input_rank; /* gets standard input; TB_RANK_NONE: nobody */
    bool passes_all;     /* the whole environment, also to other hosts */
    char **config;       /* words of a -configfile; NULL: there is none */
    char ignored[512];   /* options of other launchers that have no meaning here; "": none */
    uint32_t kept_count;
    char **kept;              /* texts that options point to */
    bool pty;                 /* ranks get a pseudo-terminal as standard output */
    uint64_t timeout;         /* nanoseconds; 0: none */
    const char *timeout_name; /* what has set it */
    const char *launcher;     /* NULL: ssh */
    const char *program;      /* path of tombolo on other hosts; NULL: as here */
    bool own_program;         /* the program is one of Tombolo's own, found beside tombolo on each host */
    const char *lab;          /* grid file of the lab in which the job runs; NULL: no lab */
    const void *plan;         /* an image of the plan that the job follows; the caller's. NULL: none */
    size_t plan_bytes;
    const char *grid_file; /* the job runs on the grid of this file; NULL: not given */
    const char *meet_file; /* that tombolo meet has written; NULL: names are kept in the job */
    bool allow_missing;    /* hosts of the grid that cannot be started are left out */
    uint32_t manual_count;
    const char *manual[TB_MANUAL_LIMIT]; /* clusters that are started by hand */
    const struct tb_grid *grid;          /* of the job, when it was read; the hosts are those of the grid then */
};

/* Adds NAME=VALUE to a section. value == NULL: `name` is NAME=VALUE, NAME (the value here, which must exist) or PREFIX*
 * (all that begin so). */
int tb_variables_add(struct tb_section *section, const char *name, const char *value);
int tb_variables_add_list(struct tb_section *section, const char *names); /* those of a list that exist here */
/* All of ours but those that belong to this host or this login, and those that the section has. */
int tb_variables_add_all(struct tb_section *section);
bool tb_variables_has(const struct tb_section *section, const char *variable);

/* The values of options that other launchers share with us, each in its own words (foreign_options.c). */
int tb_foreign_map(struct tb_options *options, const char *text);
int tb_foreign_rank_by(struct tb_options *options, const char *text);
int tb_foreign_bind(struct tb_options *options, const char *text);
int tb_foreign_display(struct tb_options *options, const char *text);
int tb_foreign_output(struct tb_options *options, const char *text);
int tb_foreign_output_files(struct tb_options *options, const char *text);
int tb_foreign_buffering(const char *text);
int tb_foreign_launcher(struct tb_options *options, const char *text);
int tb_foreign_mca(struct tb_options *options, const char *name, const char *value);

/* The words of a file as the rest of a command line: programs are parted by ":" where lines are. Ended by NULL; to be
 * freed with tb_config_file_close. */
int tb_config_file_load(const char *path, char ***words);
void tb_config_file_close(char **words);

/* A copy that lives as long as the options; NULL: no memory, with a story. */
const char *tb_options_keep(struct tb_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));
int tb_options_set_parameter(const char *text); /* NAME=VALUE */
void tb_options_ignore(struct tb_options *options, const char *what);

/* `words` are what follows the command's name, ended by NULL. Parameters (--set) are set at once. */
int tb_options_parse(struct tb_options *options, char **words);
void tb_options_close(struct tb_options *options);
void tb_options_list(FILE *to); /* every option that there is, with what becomes of it */

/* ---- placement --------------------------------------------------------------------------------------------------- */

/* Where the ranks go: fills the address book's hosts (name, ranks) and ranges, and the programs. Hosts without a rank
 * are left out unless -usize wants room there; entries[i] is the index in options->hosts (or -1: this host, when none
 * was named) of book host i, and wheres[i] what is known of where it is. */
struct tb_placement {
    struct tb_address_book book;
    uint32_t app_count;
    struct tb_app *apps;
    int *entries;
    struct tb_host_where *wheres;
    uint32_t spare_first, spare_count; /* hosts of the book without ranks, for processes that are started later */
};

bool tb_placement_is_spare(const struct tb_placement *placement, uint32_t host);
/* Are there ranks on it, or may there be some later? */
bool tb_placement_carries(const struct tb_placement *placement, uint32_t host);
/* One line a host, "host a: ranks 0-3"; to be freed. NULL: no memory. */
char *tb_placement_print(const struct tb_placement *placement);
int tb_placement_make(struct tb_placement *placement, struct tb_options *options);
/* One more host, which carries no ranks; where it is in the address book goes to *host. */
void tb_placement_add(struct tb_placement *placement, const struct tb_options *options, uint32_t entry, uint32_t *host);
void tb_placement_close(struct tb_placement *placement);

/* Where a job on a grid is to be started. */
struct tb_start_place {
    uint32_t host; /* of the grid; TB_GRID_NONE: outside of it */
    bool by_hand;  /* and there are clusters that somebody has to start there (--manual) */
};

/* Whether a job with ranks on all slots of a grid could run, as far as its file says: started where we are (in a lab:
 * outside), or if that cannot be, from another host, or by hand. An error says why it cannot run. */
int tb_grid_check(const struct tb_grid *grid, bool in_lab, struct tb_start_place *start);

/* ---- the job ----------------------------------------------------------------------------------------------------- */

/* Runs the job to its end; returns the exit code. `program` is the path of this executable. */
int tb_launch_run(struct tb_options *options, const char *program);

/* `tombolo meet`: keeps names for several jobs, until a signal ends it, and writes to a file where they find it. The
 * exit code; what is wrong is said. */
int tb_meet_run(const char *path, const char *ports);

#endif

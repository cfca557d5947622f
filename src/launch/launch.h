/* launch: a job as the user sees it: which hosts, which programs, their output, their end. One thread. */
#ifndef TB_LAUNCH_LAUNCH_H
#define TB_LAUNCH_LAUNCH_H

#include "job/job.h"

#define TB_LAUNCH_SLOTS_LIMIT 1048576u

/* ---- hosts: what the user wrote ---------------------------------------------------------------------------------- */

struct tb_host_entry {
    char *name;       /* without the user */
    char *user;       /* NULL: not given */
    unsigned port;    /* of ssh; 0: not given */
    uint32_t slots;   /* ranks that fit; 0: it carries none */
    char cluster[64]; /* "": not given */
    char site[64];
};

struct tb_host_list {
    uint32_t count, room;
    struct tb_host_entry *entries;
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

enum tb_map { TB_MAP_SLOT, TB_MAP_NODE, TB_MAP_CLUSTER };
#define TB_MANUAL_LIMIT 64u

/* One section of the command line, between colons. */
struct tb_section {
    uint32_t count;            /* -n; 0: not given */
    struct tb_host_list hosts; /* -H of this section, when there are several sections */
    char *directory;
    char **variables; /* NAME=value */
    uint32_t variable_count;
    char **arguments; /* program and its arguments; point into the command line */
    uint32_t argument_count;
};

enum tb_options_action { TB_OPTIONS_RUN, TB_OPTIONS_HELP, TB_OPTIONS_VERSION };

struct tb_options {
    enum tb_options_action action;
    const char *name; /* what the command was called as, for messages */
    struct tb_host_list hosts;
    uint32_t section_count, section_room;
    struct tb_section *sections;
    struct tb_section all; /* its variables are for all sections */
    enum tb_map map;
    uint32_t bind; /* enum tb_bind */
    bool tag_output;
    bool pty;                 /* ranks get a pseudo-terminal as standard output */
    uint64_t timeout;         /* nanoseconds; 0: none */
    const char *timeout_name; /* what has set it */
    const char *launcher;     /* NULL: ssh */
    const char *program;      /* path of tombolo on other hosts; NULL: as here */
    const char *lab;          /* grid file of the lab in which the job runs; NULL: no lab */
    const char *grid_file;    /* the job runs on the grid of this file; NULL: not given */
    bool allow_missing;       /* hosts of the grid that cannot be started are left out */
    uint32_t manual_count;
    const char *manual[TB_MANUAL_LIMIT]; /* clusters that are started by hand */
    const struct tb_grid *grid;          /* of the job, when it was read; the hosts are those of the grid then */
};

/* `words` are what follows the command's name, ended by NULL. Parameters (--set) are set at once. */
int tb_options_parse(struct tb_options *options, char **words);
void tb_options_close(struct tb_options *options);

/* ---- placement --------------------------------------------------------------------------------------------------- */

/* Where the ranks go: fills the address book's hosts (name, place, ranks) and ranges, and the programs. Hosts without a
 * rank are left out; entries[i] is the index in options->hosts (or -1: this host, when none was named) of book host i.
 */
struct tb_placement {
    struct tb_address_book book;
    uint32_t app_count;
    struct tb_app *apps;
    int *entries;
};

int tb_placement_make(struct tb_placement *placement, struct tb_options *options);
/* One more host, which carries no ranks; where it is in the address book goes to *host. */
void tb_placement_add(struct tb_placement *placement, const struct tb_options *options, uint32_t entry, uint32_t *host);
void tb_placement_close(struct tb_placement *placement);

/* ---- the job ----------------------------------------------------------------------------------------------------- */

/* Runs the job to its end; returns the exit code. `program` is the path of this executable. */
int tb_launch_run(struct tb_options *options, const char *program);

#endif

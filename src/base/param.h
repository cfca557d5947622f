/* Parameters: every knob is one row of param_table.h, or of a table that somebody brings who alone reads it. It is then
 * TOMBOLO_<NAME> in the environment, `--set name=value` of `tombolo run`, an MPI_T control variable and a line of
 * `tombolo info`.
 *
 * Values are settled once, before threads exist: defaults, then the environment, then what the launcher sends (the
 * launcher's win; a process whose own environment differs is told so on standard error). Reading is a field of
 * tb_param, or of what a joined table fills in. */
#ifndef TB_BASE_PARAM_H
#define TB_BASE_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum tb_param_type {
    TB_PARAM_BOOL, /* yes, no, true, false, on, off, 1, 0 */
    TB_PARAM_INT,  /* a signed number */
    TB_PARAM_SIZE, /* a number of bytes, with k, m, g (powers of 1024) */
    TB_PARAM_TIME, /* a duration, kept in nanoseconds: 5s, 20ms, 3us, 7ns; a bare number is seconds */
    TB_PARAM_TEXT
};

enum tb_param_flags {
    TB_PARAM_LOCAL = 1,  /* belongs to a host or process and is not agreed job-wide (log, places) */
    TB_PARAM_OR_ZERO = 2 /* may be 0, too, although its range begins later */
};

/* What a parameter is about, among the flags of its row; one of them. A row that was joined is about a transport. */
enum tb_param_subject {
    TB_PARAM_BASE = 1 << 8,
    TB_PARAM_JOB = 2 << 8,
    TB_PARAM_TRANSPORT = 3 << 8,
    TB_PARAM_ENGINE = 4 << 8,
    TB_PARAM_PLANNER = 5 << 8,
    TB_PARAM_COLLECTIVES = 6 << 8,
    TB_PARAM_SUBJECTS = 7 << 8 /* the bits of it */
};

#define TB_PARAM_ALL "all" /* of lists of names: every one that there is */

/* Of times, in ns: */
#define TB_PARAM_MS        INT64_C(1000000)
#define TB_PARAM_LONGEST   (3600000000 * TB_PARAM_MS) /* 1000 hours: multiples of it are still numbers */
#define TB_PARAM_PREDICTED (1000000 * TB_PARAM_MS)    /* sums of thousands of them are */

/* One field a row, by the C type of the row. */
struct tb_params {
#define TB_PARAM_BOOL_ROW(name, value, flags, help)            bool name;
#define TB_PARAM_INT_ROW(name, value, low, high, flags, help)  int64_t name;
#define TB_PARAM_SIZE_ROW(name, value, low, high, flags, help) uint64_t name;
#define TB_PARAM_TIME_ROW(name, value, low, high, flags, help) uint64_t name;
#define TB_PARAM_TEXT_ROW(name, value, flags, help)            const char *name;
#include "base/param_table.h"
};

extern struct tb_params tb_param;

/* Whether whatever leaves a host is to be encrypted, and so passes the agents. */
static inline bool tb_param_encrypts_all(void)
{
    return tb_param.encrypt != NULL && strcmp(tb_param.encrypt, "all") == 0;
}

/* Whether a list, names with commas between or TB_PARAM_ALL, has this one. */
bool tb_param_lists(const char *list, const char *name);

/* Whether ranks of different hosts may connect to each other at all. */
static inline bool tb_param_connects_ranks(void)
{
    return !tb_param.forbid_direct && !tb_param_encrypts_all() && tb_param_lists(tb_param.transports, "tcp");
}

/* Whether there may be multicast between hosts. Only who may connect may: what does not come through is asked for. */
static inline bool tb_param_multicasts(void)
{
    return tb_param_connects_ranks() && tb_param.mcast != NULL && strcmp(tb_param.mcast, "off") != 0;
}

/* Whether datagrams carry a check that strangers cannot make. */
static inline bool tb_param_checks_multicast(void)
{
    return tb_param.mcast_check == NULL || strcmp(tb_param.mcast_check, "none") != 0;
}

/* Whether ranks of one host have memory in common; if not, they are as far apart as those of different hosts. */
static inline bool tb_param_shares_memory(void)
{
    return tb_param_lists(tb_param.transports, "shm");
}

struct tb_param_row {
    const char *name;
    enum tb_param_type type;
    unsigned flags;
    const char *fallback; /* the default as text */
    const char *help;
    int64_t low, high; /* of numbers, sizes and times: what is allowed */
    size_t offset;     /* in struct tb_params... */
    void *at;          /* ...or, of a row that was joined, where its value is */
};

#define TB_PARAM_JOINED_LIMIT 64u

/* Adds rows, the last one without a name, before values are settled; those that are there already stay as they are.
 * TB_ERR_LIMIT: there are too many. */
int tb_param_join(const struct tb_param_row *rows);

enum tb_param_origin { TB_PARAM_DEFAULT, TB_PARAM_ENVIRONMENT, TB_PARAM_LAUNCHER };

static inline enum tb_param_subject tb_param_subject(const struct tb_param_row *row)
{
    return row->at != NULL ? TB_PARAM_TRANSPORT : (enum tb_param_subject)(row->flags & TB_PARAM_SUBJECTS);
}

size_t tb_param_count(void);
const struct tb_param_row *tb_param_row(size_t index);
const struct tb_param_row *tb_param_find(const char *name); /* NULL if there is none; '-' and case are forgiven */
const void *tb_param_value(const struct tb_param_row *row); /* where it is, of the C type of the row */
enum tb_param_origin tb_param_origin(const struct tb_param_row *row);
/* Where the present value comes from, in words for users; tb_param_note_origin says more than an origin does. */
void tb_param_print_origin(const struct tb_param_row *row, char *text, size_t size);
void tb_param_note_origin(const struct tb_param_row *row, const char *where); /* until the next tb_param_set */
void tb_param_print(const struct tb_param_row *row, char *text, size_t size); /* the present value as text */

/* What it may be: "0 or 4k to 1g"; empty: nothing is known but its type. */
void tb_param_print_range(const struct tb_param_row *row, char *text, size_t size);

/* Sets every row to its default and then from the environment. A bad value is an error that names the variable, the
 * value and what is expected. A TOMBOLO_ variable that is no row and not one of ours is warned about with the nearest
 * name. */
int tb_param_load(void);
/* Sets one; `origin` is remembered. Unknown name: error with the nearest name. */
int tb_param_set(const char *name, const char *value, enum tb_param_origin origin);
/* All job-wide values that are not the default, as "name=value\n" lines: what the launcher sends. Returns the length
 * that is needed, writes at most `size`. */
size_t tb_param_export(char *text, size_t size);
/* Takes such lines with origin LAUNCHER. Warns where the own environment said something else. */
int tb_param_import(const char *text, size_t length);

#endif

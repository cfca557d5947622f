/* Which performance variables there are, and their values (MPI-5.0, 15.3.7):
 *
 *   tombolo_engine_<counter>            what the engine counts
 *   tombolo_calls_<operation>           collectives that this rank has begun, those of the library itself included
 *   tombolo_runs_<operation>_<name>     and how many of them ran the algorithm of that name
 *   tombolo_ratings                     candidates that this process has rated to choose between them
 *   tombolo_choices_<column>            the table of what ran how often for which sizes and why: element k of each is
 *                                       in row k; rows stay where they are, those without calls are unused
 *   tombolo_choices                     the same as text, a line a row
 *
 * in this order. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/tool.h"

#define CHOICE_ROWS  1024
#define CHOICE_BYTES (192 * CHOICE_ROWS) /* of the text */

static const struct {
    const char *name, *description;
    int class;
    size_t offset; /* in struct tb_counters */
} counters[] = {
    {"eager", "messages that were sent at once", MPI_T_PVAR_CLASS_COUNTER, offsetof(struct tb_counters, eager)},
    {"ahead", "longer messages that were sent without asking", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, ahead)},
    {"rendezvous", "messages that were sent by asking first", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, rendezvous)},
    {"remote_reads", "messages that were read from the sender's memory", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, remote_reads)},
    {"self", "messages of the process to itself", MPI_T_PVAR_CLASS_COUNTER, offsetof(struct tb_counters, self)},
    {"unexpected", "messages that arrived before their receive", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, unexpected)},
    {"unexpected_bytes", "payload that is kept at present for messages without a receive (bytes)",
     MPI_T_PVAR_CLASS_LEVEL, offsetof(struct tb_counters, unexpected_bytes)},
    {"unexpected_peak", "the most payload that was ever kept for messages without a receive (bytes)",
     MPI_T_PVAR_CLASS_HIGHWATERMARK, offsetof(struct tb_counters, unexpected_peak)},
    {"credits", "frames that gave credit back", MPI_T_PVAR_CLASS_COUNTER, offsetof(struct tb_counters, credits)},
    {"held", "frames that had to wait for room in a transport", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, held)},
    {"dropped", "messages for communicators that are gone", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, dropped)},
    {"looks", "rounds in which a waiting thread found nothing, before it gave up its core or slept",
     MPI_T_PVAR_CLASS_COUNTER, offsetof(struct tb_counters, looks)},
    {"standby_rounds", "rounds of progress in which something happened while the program computed",
     MPI_T_PVAR_CLASS_COUNTER, offsetof(struct tb_counters, standby_rounds)},
    {"yields", "times that a waiting thread gave up its core", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, yields)},
    {"sleeps", "times that a waiting thread went to sleep", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, sleeps)},
    {"wakes", "times that a waiting thread was woken by another one, which polled for it", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, wakes)},
    {"paired", "frames that were sent through memory of two processes of a host", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, paired)},
    {"direct", "frames that were sent over TCP connections with other processes", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, direct)},
    {"relayed", "frames that were sent through gateways", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, relayed)},
    {"repeated", "frames through gateways that were sent again", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, repeated)},
    {"reordered", "frames through gateways that had to wait for an earlier one", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, reordered)},
    {"multicast_sent", "datagrams of multicast that were sent, repairs among them", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, multicast_sent)},
    {"multicast_used", "datagrams of multicast that brought something", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, multicast_used)},
    {"multicast_early", "those that came before this process took part in their message", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, multicast_early)},
    {"multicast_late", "datagrams of messages that were over", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, multicast_late)},
    {"multicast_repaired", "datagrams that brought what had been lost", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, multicast_repaired)},
    {"multicast_rejected", "datagrams that were forged, of others, or made no sense", MPI_T_PVAR_CLASS_COUNTER,
     offsetof(struct tb_counters, multicast_rejected)},
    {"multicast_overflowed", "datagrams that the kernel dropped, since this process read too late for its buffer",
     MPI_T_PVAR_CLASS_COUNTER, offsetof(struct tb_counters, multicast_overflowed)},
    {"multicast_repairs_one", "datagrams that were sent again, to the one process that missed them",
     MPI_T_PVAR_CLASS_COUNTER, offsetof(struct tb_counters, multicast_repairs_one)},
    {"multicast_repairs_all", "datagrams that were sent again to all, since several missed them",
     MPI_T_PVAR_CLASS_COUNTER, offsetof(struct tb_counters, multicast_repairs_all)},
    {"multicast_control", "bytes of multicast messages that were sent over connections instead",
     MPI_T_PVAR_CLASS_COUNTER, offsetof(struct tb_counters, multicast_control)},
    {"multicast_skew", "ns between the call of this process and the first datagram of a message, on average",
     MPI_T_PVAR_CLASS_LEVEL, offsetof(struct tb_counters, multicast_skew)},
};
#define COUNTERS ((uint32_t)(sizeof counters / sizeof counters[0]))
_Static_assert(sizeof counters / sizeof counters[0] == sizeof(struct tb_counters) / sizeof(uint64_t),
               "every counter of the engine is a variable");

enum column {
    OPERATION,
    ALGORITHM,
    REASON,
    NEXT,
    ARGUMENT,
    RANKS,
    HOSTS,
    BYTES,
    CALLS,
    TIME,
    NEXT_ARGUMENT,
    NEXT_TIME,
    COLUMNS
};

static const struct {
    const char *name, *description;
    int class;
} columns[COLUMNS] = {
    [OPERATION] = {"operation", "choices of algorithms: the operation", MPI_T_PVAR_CLASS_STATE},
    [ALGORITHM] = {"algorithm", "choices of algorithms: what ran", MPI_T_PVAR_CLASS_STATE},
    [REASON] = {"reason", "choices of algorithms: why it was taken", MPI_T_PVAR_CLASS_STATE},
    [NEXT] = {"next", "choices of algorithms: the next best", MPI_T_PVAR_CLASS_STATE},
    [ARGUMENT] = {"argument", "choices of algorithms: the algorithm's argument, such as bytes of a piece; 0: none",
                  MPI_T_PVAR_CLASS_GENERIC},
    [RANKS] = {"ranks", "choices of algorithms: ranks of the communicator", MPI_T_PVAR_CLASS_GENERIC},
    [HOSTS] = {"hosts", "choices of algorithms: hosts of the communicator", MPI_T_PVAR_CLASS_GENERIC},
    [BYTES] = {"bytes", "choices of algorithms: the smallest size of the class of sizes; 0: none or not known to all",
               MPI_T_PVAR_CLASS_GENERIC},
    [CALLS] = {"calls", "choices of algorithms: how often it ran", MPI_T_PVAR_CLASS_COUNTER},
    [TIME] = {"time", "choices of algorithms: the predicted time (picoseconds); 0: not predicted",
              MPI_T_PVAR_CLASS_GENERIC},
    [NEXT_ARGUMENT] = {"next_argument", "choices of algorithms: argument of the next best; 0: none",
                       MPI_T_PVAR_CLASS_GENERIC},
    [NEXT_TIME] = {"next_time",
                   "choices of algorithms: the predicted time of the next best (picoseconds); 0: not predicted",
                   MPI_T_PVAR_CLASS_GENERIC},
};

/* Which family a variable is of, and its place there. */
enum family { FAMILY_ENGINE, FAMILY_CALLS, FAMILY_RUNS, FAMILY_RATINGS, FAMILY_COLUMN, FAMILY_TEXT, FAMILIES };

static uint32_t family_count(enum family family)
{
    switch (family) {
    case FAMILY_ENGINE:
        return COUNTERS;
    case FAMILY_CALLS:
        return TB_OPERATION_COUNT;
    case FAMILY_RUNS:
        return tb_mpit_algorithms();
    case FAMILY_COLUMN:
        return COLUMNS;
    default:
        return 1;
    }
}

static enum family family_of(uint32_t index, uint32_t *at)
{
    enum family family = FAMILY_ENGINE;
    while (index >= family_count(family))
        index -= family_count(family++);
    TB_ASSERT(family < FAMILIES);
    *at = index;
    return family;
}

uint32_t tb_mpit_pvar_count(void)
{
    uint32_t count = 0;
    for (int i = 0; i < FAMILIES; i++)
        count += family_count((enum family)i);
    return count;
}

enum tb_mpit_category tb_mpit_pvar_category(uint32_t index)
{
    uint32_t at;
    switch (family_of(index, &at)) {
    case FAMILY_ENGINE:
        return TB_MPIT_ENGINE;
    case FAMILY_CALLS:
    case FAMILY_RUNS:
        return TB_MPIT_COLLECTIVES;
    default:
        return TB_MPIT_PLANNER;
    }
}

/* ---- descriptions ------------------------------------------------------------------------------------------------ */

static void describe_counter(uint32_t at, struct tb_mpit_pvar *v)
{
    snprintf(v->name, sizeof v->name, "tombolo_engine_%s", counters[at].name);
    snprintf(v->description, sizeof v->description, "%s", counters[at].description);
    v->class = counters[at].class;
    v->readonly = v->class != MPI_T_PVAR_CLASS_COUNTER;
}

static void describe_runs(uint32_t at, struct tb_mpit_pvar *v)
{
    const struct tb_algorithm *a = tb_catalogue[at];
    char word[64];
    tb_operation_word(a->operation, word, sizeof word);
    snprintf(v->name, sizeof v->name, "tombolo_runs_%s_%s", word, a->name);
    for (char *c = v->name; *c != 0; c++)
        *c = *c == '-' ? '_' : *c;
    snprintf(v->description, sizeof v->description, "calls of %s, in all its forms, that ran the algorithm %s",
             tb_operation_name(a->operation), a->name);
}

static void describe_calls(uint32_t at, struct tb_mpit_pvar *v)
{
    char word[64];
    tb_operation_word((enum tb_operation)at, word, sizeof word);
    snprintf(v->name, sizeof v->name, "tombolo_calls_%s", word);
    snprintf(v->description, sizeof v->description, "calls of %s, in all its forms", tb_operation_name(at));
}

static void describe_ratings(struct tb_mpit_pvar *v)
{
    snprintf(v->name, sizeof v->name, "tombolo_ratings");
    snprintf(v->description, sizeof v->description,
             "algorithms with their arguments that this process has rated to choose between them; what another rank of "
             "the host has rated is taken from it");
}

static void describe_column(uint32_t at, struct tb_mpit_pvar *v)
{
    static const enum tb_mpit_enum enums[] = {[OPERATION] = TB_MPIT_OPERATION,
                                              [ALGORITHM] = TB_MPIT_ALGORITHM,
                                              [REASON] = TB_MPIT_REASON,
                                              [NEXT] = TB_MPIT_ALGORITHM};
    snprintf(v->name, sizeof v->name, "tombolo_choices_%s", columns[at].name);
    snprintf(v->description, sizeof v->description, "%s", columns[at].description);
    v->class = columns[at].class;
    v->count = CHOICE_ROWS;
    v->readonly = true;
    if (v->class == MPI_T_PVAR_CLASS_STATE) {
        v->datatype = MPI_INT;
        v->enumtype = tb_mpit_enum(enums[at]);
    }
}

static void describe_text(struct tb_mpit_pvar *v)
{
    snprintf(v->name, sizeof v->name, "tombolo_choices");
    snprintf(
        v->description, sizeof v->description,
        "choices of algorithms as text, a line each: operation, ranks, hosts, smallest bytes of the class, calls, "
        "algorithm and argument, predicted nanoseconds, reason, the next best and its nanoseconds, with tabs between");
    v->class = MPI_T_PVAR_CLASS_GENERIC;
    v->datatype = MPI_CHAR;
    v->count = CHOICE_BYTES;
    v->readonly = true;
}

void tb_mpit_pvar_describe(uint32_t index, struct tb_mpit_pvar *pvar)
{
    uint32_t at;
    enum family family = family_of(index, &at);
    pvar->class = MPI_T_PVAR_CLASS_COUNTER;
    pvar->datatype = MPI_UNSIGNED_LONG_LONG;
    pvar->enumtype = MPI_T_ENUM_NULL;
    pvar->count = 1;
    pvar->readonly = false;
    switch (family) {
    case FAMILY_ENGINE:
        describe_counter(at, pvar);
        break;
    case FAMILY_CALLS:
        describe_calls(at, pvar);
        break;
    case FAMILY_RUNS:
        describe_runs(at, pvar);
        break;
    case FAMILY_RATINGS:
        describe_ratings(pvar);
        break;
    case FAMILY_COLUMN:
        describe_column(at, pvar);
        break;
    default:
        describe_text(pvar);
        break;
    }
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void value_of_counter(uint32_t at, uint64_t *value)
{
    struct tb_counters now;
    tb_mpit_counters(&now);
    memcpy(value, (const char *)&now + counters[at].offset, sizeof *value);
}

/* The sum over an operation, or an algorithm if it is not NULL. */
static uint64_t count_calls(uint32_t operation, const struct tb_algorithm *algorithm)
{
    struct tb_usage row;
    uint64_t calls = 0;
    for (uint32_t i = 0; tb_mpit_usage(i, &row); i++)
        if (algorithm != NULL ? row.choice.best.algorithm == algorithm : row.operation == operation)
            calls += row.calls;
    return calls;
}

static uint64_t time_of(const struct tb_candidate *c)
{
    return c->algorithm == NULL || c->time == TB_COST_NEVER ? 0 : c->time;
}

static uint64_t cell(const struct tb_usage *row, enum column column)
{
    const struct tb_candidate *best = &row->choice.best, *next = &row->choice.next;
    switch (column) {
    case OPERATION:
        return (uint64_t)row->operation + 1;
    case ALGORITHM:
        return tb_mpit_algorithm(best->algorithm) + 1;
    case REASON:
        return (uint64_t)row->choice.reason + 1;
    case NEXT:
        return next->algorithm != NULL ? tb_mpit_algorithm(next->algorithm) + 1 : 0;
    case ARGUMENT:
        return tb_candidate_argument(best);
    case NEXT_ARGUMENT:
        return next->algorithm != NULL ? tb_candidate_argument(next) : 0;
    case NEXT_TIME:
        return time_of(next);
    case RANKS:
        return row->ranks;
    case HOSTS:
        return row->hosts;
    case BYTES:
        return row->bytes;
    case CALLS:
        return row->calls;
    default:
        return time_of(best);
    }
}

static void value_of_column(enum column column, void *value)
{
    struct tb_usage row;
    bool is_int = columns[column].class == MPI_T_PVAR_CLASS_STATE;
    memset(value, 0, CHOICE_ROWS * (is_int ? sizeof(int) : sizeof(uint64_t)));
    for (uint32_t i = 0; i < CHOICE_ROWS && tb_mpit_usage(i, &row); i++) {
        if (is_int)
            ((int *)value)[i] = (int)cell(&row, column);
        else
            ((uint64_t *)value)[i] = cell(&row, column);
    }
}

/* "chain:65536", a tab, and the predicted time. */
static void candidate_print(const struct tb_candidate *c, char *text, size_t size)
{
    char argument[48] = ":";
    bool has = c->algorithm != NULL && c->argument > 0;
    if (has)
        tb_candidate_argument_print(c, argument + 1, sizeof argument - 1);
    snprintf(text, size, "%s%s\t%" PRIu64, c->algorithm != NULL ? c->algorithm->name : "-", has ? argument : "",
             time_of(c) / 1000);
}

/* A line that does not fit is left out, and so are those that follow. */
static void value_of_text(char *text)
{
    struct tb_usage row;
    size_t length = 0;
    text[0] = 0;
    for (uint32_t i = 0; tb_mpit_usage(i, &row); i++) {
        char word[64], best[96], next[96], line[400];
        tb_operation_word(row.operation, word, sizeof word);
        candidate_print(&row.choice.best, best, sizeof best);
        candidate_print(&row.choice.next, next, sizeof next);
        int size =
            snprintf(line, sizeof line, "%s\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64 "\t%s\t%s\t%s\n", word,
                     row.ranks, row.hosts, row.bytes, row.calls, best, tb_reason_text(row.choice.reason), next);
        if (size < 0 || (size_t)size >= sizeof line || length + (size_t)size >= CHOICE_BYTES)
            return;
        memcpy(text + length, line, (size_t)size + 1);
        length += (size_t)size;
    }
}

void tb_mpit_pvar_value(uint32_t index, void *value)
{
    uint32_t at;
    enum family family = family_of(index, &at);
    if (family != FAMILY_ENGINE)
        tb_mpit_usage_flush();
    switch (family) {
    case FAMILY_ENGINE:
        value_of_counter(at, value);
        break;
    case FAMILY_CALLS:
        *(uint64_t *)value = count_calls(at, NULL);
        break;
    case FAMILY_RUNS:
        *(uint64_t *)value = count_calls(0, tb_catalogue[at]);
        break;
    case FAMILY_RATINGS:
        *(uint64_t *)value = tb_mpit_ratings();
        break;
    case FAMILY_COLUMN:
        value_of_column((enum column)at, value);
        break;
    default:
        value_of_text(value);
        break;
    }
}

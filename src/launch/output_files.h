/* Files into which the output of single ranks goes, here, beside the screen or in its place. They are opened when their
 * rank writes; of many ranks only some are open at a time. What a pipe does not take at once waits, as it does for the
 * screen. Belongs to the report of the job; its one thread. */
#ifndef TB_LAUNCH_OUTPUT_FILES_H
#define TB_LAUNCH_OUTPUT_FILES_H

#include "launch/screen_events.h"
#include "remote/remote.h"

#define TB_OUTPUT_FILES_OPEN 64

/* One that is open, for some rank. */
struct tb_output_file {
    struct tb_output_files *files;
    uint32_t rank;
    int descriptor;        /* -1: free */
    struct tb_watch watch; /* for room in a pipe */
    struct tb_list pieces; /* what waits, of this rank and of others that have the same place */
};

struct tb_output_files {
    struct tb_loop *loop;
    struct tb_screen_events events;
    const char
        *pattern; /* NULL: there are none. %r and %0 stand for the rank, as long as the longest, %h the host... */
    uint32_t ranks, room;                             /* with which the job has begun; with those that came later */
    bool *made;                                       /* by rank: what was in the file before has been thrown away */
    size_t waiting;                                   /* bytes that do: what the windows of the agents allow */
    struct tb_output_file open[TB_OUTPUT_FILES_OPEN]; /* rank modulo their number */
};

/* A text in which %r stands for the rank, %0 for it with leading zeros, %h for the host, %p for the host's number and
 * %g for 0, and %% for a percent sign. Returns its length, which may be more than fits. */
size_t tb_output_pattern_print(char *text, size_t size, const char *pattern, uint32_t rank, uint32_t ranks,
                               const char *host_name, uint32_t host);

void tb_output_files_init(struct tb_output_files *files, const char *pattern, struct tb_loop *loop,
                          const struct tb_screen_events *events);
int tb_output_files_grow(struct tb_output_files *files, uint32_t ranks); /* more ranks have come: so many in all */
int tb_output_files_expect(struct tb_output_files *files, uint32_t ranks);
/* What a rank on a host has written; so much of the host's window is free again when it is in the file, or lost. */
void tb_output_files_write(struct tb_output_files *files, uint32_t rank, uint32_t host, const char *bytes,
                           size_t length, uint32_t charge);

#endif

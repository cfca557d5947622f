/* Files into which the output of single ranks goes, here, beside the screen or in its place. They are opened when their
 * rank writes; of many ranks only some are open at a time. Belongs to the report of the job; its one thread. */
#ifndef TB_LAUNCH_OUTPUT_FILES_H
#define TB_LAUNCH_OUTPUT_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TB_OUTPUT_FILES_OPEN 64

struct tb_output_files {
    const char
        *pattern; /* NULL: there are none. %r and %0 stand for the rank, as long as the longest, %h the host... */
    uint32_t ranks;
    bool *made; /* by rank: what was in the file before has been thrown away */
    struct {
        uint32_t rank;
        int descriptor;           /* -1: free */
    } open[TB_OUTPUT_FILES_OPEN]; /* rank modulo their number */
};

/* A text in which %r stands for the rank, %0 for it with leading zeros, %h for the host, %p for the host's number and
 * %g for 0, and %% for a percent sign. Returns its length, which may be more than fits. */
size_t tb_output_pattern_print(char *text, size_t size, const char *pattern, uint32_t rank, uint32_t ranks,
                               const char *host_name, uint32_t host);

void tb_output_files_init(struct tb_output_files *files, const char *pattern);
int tb_output_files_expect(struct tb_output_files *files, uint32_t ranks);
int tb_output_files_write(struct tb_output_files *files, uint32_t rank, const char *host_name, uint32_t host,
                          const char *bytes, size_t length);

#endif

/* Standard output or standard error of a job. The files are the user's: they may be shared with other programs, so they
 * are never made nonblocking. A terminal or a pipe is opened a second time, nonblocking, for us alone; where that is
 * not possible, only little is written at a time, and only when there is room.
 *
 * What cannot be written at once waits here. The windows of the agents bound that: what is written is reported, so that
 * the host may send as much again. Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_SCREEN_H
#define TB_LAUNCH_SCREEN_H

#include "launch/output_files.h"

/* How each line begins, and which files take the output. */
struct tb_screen_style {
    bool tags, times;    /* with the rank, with the time */
    const char *pattern; /* with this text (tb_output_pattern_print); NULL: with none */
    const char *files;   /* a pattern of their names; NULL: there are none */
    bool beside;         /* what goes to files is shown, too */
};

struct tb_screen {
    struct tb_loop *loop;
    struct tb_screen_events events;
    struct tb_watch watch;
    int number;         /* 1 or 2 */
    int descriptor;     /* where we write: the same, or a nonblocking one of our own */
    bool blocking_file; /* always ready: a regular file */
    int broken;         /* nobody reads any more: errno; 0: it can be written to */
    bool told;          /* that output of the job is lost */
    bool mid_line;      /* the last byte was no newline */
    struct tb_screen_style style;
    struct tb_output_files files;
    uint32_t ranks;  /* with which the job has begun */
    uint32_t room;   /* and those that came later */
    bool *mid_lines; /* by rank: what it has written last is no whole line */
    struct tb_list chunks;
    size_t queued; /* bytes of them: what the windows of the agents allow, and a little of ours */
};

void tb_screen_open(struct tb_screen *screen, struct tb_loop *loop, int number, const struct tb_screen_style *style,
                    const struct tb_screen_events *events);
/* The output of these ranks will come; at the beginning of each attempt. */
/* More ranks have come: so many in all. */
int tb_screen_grow(struct tb_screen *screen, uint32_t ranks);
int tb_screen_expect(struct tb_screen *screen, uint32_t ranks);
/* Of a rank on a host, whose window it takes. */
void tb_screen_add(struct tb_screen *screen, uint32_t rank, uint32_t host, const char *bytes, size_t length);
void tb_screen_text(struct tb_screen *screen, const char *text, size_t length); /* of ours, or of a shell */

static inline bool tb_screen_is_empty(const struct tb_screen *screen)
{
    return tb_list_empty(&screen->chunks) && screen->files.waiting == 0;
}

#endif

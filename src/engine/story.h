/* Why the last collectives failed, for whoever waits for one and may be another thread than the one that saw it. Only
 * some are kept; the oldest makes room. Part of the engine, touched with it locked. All zero is an empty one. */
#ifndef TB_ENGINE_STORY_H
#define TB_ENGINE_STORY_H

#include "base/base.h"

#define TB_STORIES 16u

struct tb_request;

struct tb_story {
    const struct tb_request *of; /* never followed: it may be gone */
    int error;
    char *text; /* NULL: there was no memory */
};

struct tb_stories {
    struct tb_story kept[TB_STORIES];
    uint32_t next;
};

/* What this thread has told last is the story of the request, if it ends with that error. */
void tb_stories_keep(struct tb_stories *s, const struct tb_request *of, int error);
/* Tells it again, on this thread; returns the error. */
int tb_stories_tell(const struct tb_stories *s, const struct tb_request *of, int error);
void tb_stories_close(struct tb_stories *s);

#endif

#include "engine/story.h"

#include <stdlib.h>
#include <string.h>

/* Its place, or TB_STORIES: it is not kept. */
static uint32_t story_find(const struct tb_stories *s, const struct tb_request *of)
{
    uint32_t at = 0;
    while (at < TB_STORIES && s->kept[at].of != of)
        at++;
    return at;
}

void tb_stories_keep(struct tb_stories *s, const struct tb_request *of, int error)
{
    uint32_t at = story_find(s, of);
    if (at == TB_STORIES)
        at = s->next++ % TB_STORIES;
    free(s->kept[at].text);
    s->kept[at] = (struct tb_story){of, error, strdup(tb_error_story())};
}

int tb_stories_tell(const struct tb_stories *s, const struct tb_request *of, int error)
{
    uint32_t at = story_find(s, of);
    if (at < TB_STORIES && s->kept[at].error == error && s->kept[at].text != NULL)
        return tb_error(error, "%s", s->kept[at].text);
    return tb_error(error, "a collective has failed (%s), and many others since", tb_error_name(error));
}

void tb_stories_close(struct tb_stories *s)
{
    for (uint32_t i = 0; i < TB_STORIES; i++)
        free(s->kept[i].text);
    *s = (struct tb_stories){.next = 0};
}

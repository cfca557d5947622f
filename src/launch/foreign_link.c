#include "launch/foreign_link.h"

#include <stdlib.h>
#include <string.h>

void tb_foreign_links_note_end(struct tb_foreign_links *links, uint32_t first, uint32_t count,
                               enum tb_foreign_ending end)
{
    uint32_t known = tb_worlds_processes(links->book), room = known > first + count ? known : first + count;
    uint8_t *grown = room > links->ends_room ? realloc(links->ends, room) : links->ends;
    if (grown == NULL)
        return; /* the others wait for them as they would for those who do not answer */
    if (room > links->ends_room) {
        memset(grown + links->ends_room, 0, room - links->ends_room);
        links->ends_room = room;
    }
    links->ends = grown;
    for (uint32_t i = first; i < first + count; i++)
        grown[i] |= (uint8_t)end;
}

struct tb_writer *tb_foreign_border_begin(struct tb_foreign_links *links, uint32_t host, enum tb_border_word word,
                                          uint32_t number)
{
    struct tb_host_agent *agent = &links->agents->all[host];
    if (!tb_host_agent_is_ready(agent))
        return NULL;
    struct tb_writer *w = tb_control_stream_begin(&agent->control, TB_CONTROL_BORDER);
    tb_put_u8(w, (uint8_t)word);
    tb_put_u32(w, number);
    return w;
}

void tb_foreign_border_end(struct tb_foreign_links *links, uint32_t host)
{
    tb_control_stream_end(&links->agents->all[host].control);
}

void tb_foreign_link_tell(struct tb_foreign_link *link, const struct tb_writer *words)
{
    struct tb_writer *w = tb_foreign_border_begin(link->links, link->host, TB_BORDER_TELL, link->number);
    if (w == NULL)
        return;
    tb_put_bytes(w, words->bytes, words->length);
    tb_foreign_border_end(link->links, link->host);
}

void tb_foreign_link_tell_word(struct tb_foreign_link *link, enum tb_foreign_word word, const char *text)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_u8(&w, (uint8_t)word);
    if (text != NULL)
        tb_put_text(&w, text);
    tb_foreign_link_tell(link, &w);
    tb_writer_close(&w);
}

void tb_foreign_link_tell_lost(struct tb_foreign_link *link, uint32_t first, uint32_t count, const char *text)
{
    struct tb_writer w;
    tb_writer_open(&w);
    tb_put_u8(&w, TB_FOREIGN_LOST);
    tb_put_u32(&w, first);
    tb_put_u32(&w, count);
    tb_put_text(&w, text);
    tb_foreign_link_tell(link, &w);
    tb_writer_close(&w);
}

void tb_foreign_link_answer(struct tb_foreign_link *link, int error, const char *text, const void *bytes, size_t length)
{
    if (link->asked == 0)
        return;
    tb_agent_orders_answer(link->links->agents, link->links->book, link->asker,
                           &(struct tb_agent_answer){link->asked, error, text, bytes, length});
    link->asked = 0;
}

void tb_foreign_link_free(struct tb_foreign_link *link, bool close)
{
    if (close && tb_foreign_border_begin(link->links, link->host, TB_BORDER_CLOSE, link->number) != NULL)
        tb_foreign_border_end(link->links, link->host);
    link->links->dropped(link->links->context, link);
    tb_timer_clear(&link->timer);
    tb_list_remove(&link->node);
    free(link->mine);
    free(link->their);
    free(link->untold);
    free(link);
}

struct tb_foreign_link *tb_foreign_link_new(struct tb_foreign_links *links, enum tb_foreign_phase phase, uint32_t host,
                                            uint32_t number)
{
    struct tb_foreign_link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->links = links;
    link->phase = phase;
    link->host = host;
    link->number = number;
    tb_timer_init(&link->timer, links->patience_over);
    tb_list_append(&links->all, &link->node);
    return link;
}

struct tb_foreign_link *tb_foreign_link_find(const struct tb_foreign_links *links, uint32_t host, uint32_t number)
{
    struct tb_foreign_link *link;
    TB_LIST_EACH (link, &links->all, struct tb_foreign_link, node)
        if (link->host == host && link->number == number)
            return link;
    return NULL;
}

int tb_foreign_link_keep(const void *bytes, size_t length, void **to, size_t *to_length)
{
    *to = malloc(length);
    *to_length = length;
    if (*to == NULL)
        return tb_error(TB_ERR_MEMORY, "mpiexec has no memory for those who meet");
    memcpy(*to, bytes, length);
    return TB_OK;
}

int tb_foreign_link_dial(struct tb_foreign_link *link, const struct tb_key *key, const char *addresses,
                         uint64_t patience)
{
    struct tb_writer *w = tb_foreign_border_begin(link->links, link->host, TB_BORDER_DIAL, link->number);
    if (w == NULL)
        return tb_error(TB_ERR_PEER, "the agent of %s, from where to connect, is gone",
                        link->links->agents->all[link->host].name);
    tb_put_u64(w, patience);
    tb_put_bytes(w, key->bytes, TB_KEY_BYTES);
    tb_put_text(w, addresses);
    tb_foreign_border_end(link->links, link->host);
    return TB_OK;
}

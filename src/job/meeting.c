#include "job/job.h"

#include <string.h>

void tb_meeting_put(struct tb_writer *w, const struct tb_meeting *meeting)
{
    tb_put_u8(w, (uint8_t)meeting->wish);
    tb_put_bytes(w, meeting->name, meeting->name_length);
    tb_put_u64(w, meeting->patience);
    tb_put_bytes(w, meeting->bytes, meeting->length);
}

int tb_meeting_get(struct tb_reader *r, struct tb_meeting *meeting)
{
    uint8_t wish = tb_get_u8(r);
    *meeting = (struct tb_meeting){.wish = (enum tb_meeting_wish)wish};
    meeting->name = tb_get_bytes(r, &meeting->name_length);
    meeting->patience = tb_get_u64(r);
    meeting->bytes = tb_get_bytes(r, &meeting->length);
    if (tb_reader_end(r) != TB_OK || wish > TB_MEETING_LEAVE)
        return tb_error(TB_ERR_PROTOCOL, "what a rank wants of a port makes no sense");
    return TB_OK;
}

bool tb_meeting_party_is_whole(const void *bytes, size_t length)
{
    struct tb_meeting_party head;
    if (length < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    return head.size > 0 && head.size <= TB_JOB_RANKS_LIMIT && length == sizeof head + head.size * sizeof(uint32_t);
}

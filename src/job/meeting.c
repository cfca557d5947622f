#include "job/job.h"

#include <stdlib.h>
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

static uint32_t member(const void *party, uint32_t i)
{
    uint32_t proc;
    memcpy(&proc, (const char *)party + sizeof(struct tb_meeting_party) + i * sizeof proc, sizeof proc);
    return proc;
}

int tb_meeting_parties_differ(const void *one, size_t one_length, const void *other, size_t other_length)
{
    struct tb_meeting_party first, second;
    int rc = TB_OK;
    if (!tb_meeting_party_is_whole(one, one_length) || !tb_meeting_party_is_whole(other, other_length))
        return TB_OK; /* who gets it says so */
    uint8_t *seen = calloc(TB_JOB_RANKS_LIMIT / 8, 1);
    if (seen == NULL)
        return tb_error(TB_ERR_MEMORY, "mpiexec has no memory for those who meet at a port");
    memcpy(&first, one, sizeof first);
    memcpy(&second, other, sizeof second);
    for (uint32_t i = 0; i < first.size; i++)
        if (member(one, i) < TB_JOB_RANKS_LIMIT)
            seen[member(one, i) / 8] |= (uint8_t)(1u << member(one, i) % 8);
    for (uint32_t i = 0; i < second.size && rc == TB_OK; i++)
        if (member(other, i) < TB_JOB_RANKS_LIMIT && (seen[member(other, i) / 8] >> member(other, i) % 8 & 1) != 0)
            rc = tb_error(TB_ERR_ARGUMENT,
                          "process %u is in both groups, in that which accepts and in that which connects: who meets "
                          "at a port must be different processes, not threads of one",
                          member(other, i));
    free(seen);
    return rc;
}

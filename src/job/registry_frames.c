#include "job/registry_frames.h"

#include <string.h>

static void get_text(struct tb_reader *r, char *text, size_t room)
{
    size_t length = 0;
    const char *bytes = tb_get_bytes(r, &length);
    text[0] = 0;
    if (r->error != TB_OK)
        return;
    if (length >= room || memchr(bytes, 0, length) != NULL) {
        r->error = tb_error(TB_ERR_PROTOCOL, "a name of %zu bytes in the registry of the job makes no sense", length);
        return;
    }
    memcpy(text, bytes, length);
    text[length] = 0;
}

void tb_registry_question_put(struct tb_writer *w, const struct tb_registry_question *question)
{
    tb_put_u32(w, question->number);
    tb_put_u8(w, (uint8_t)question->kind);
    tb_put_u8(w, question->flags);
    tb_put_u32(w, question->count);
    tb_put_u64(w, question->patience);
    tb_put_text(w, question->name);
    tb_put_text(w, question->value);
}

int tb_registry_question_get(struct tb_reader *r, struct tb_registry_question *question)
{
    question->number = tb_get_u32(r);
    uint8_t kind = tb_get_u8(r);
    question->kind = (enum tb_registry_kind)kind;
    question->flags = tb_get_u8(r);
    question->count = tb_get_u32(r);
    question->patience = tb_get_u64(r);
    get_text(r, question->name, sizeof question->name);
    get_text(r, question->value, sizeof question->value);
    int rc = tb_reader_end(r);
    if (rc != TB_OK)
        return rc;
    if (kind >= TB_REGISTRY_KINDS || (question->name[0] == 0) != (kind == TB_REGISTRY_END))
        return tb_error(TB_ERR_PROTOCOL, "a question %u for the registry of the job makes no sense", kind);
    return TB_OK;
}

void tb_registry_answer_put(struct tb_writer *w, const struct tb_registry_answer *answer, uint32_t first)
{
    uint32_t left = answer->member_count - first, count = left < TB_REGISTRY_PART ? left : TB_REGISTRY_PART;
    const uint32_t fields[] = {answer->id,   answer->generation,   answer->meeting, answer->who,
                               answer->more, answer->member_count, first,           count};
    tb_put_u32(w, answer->number);
    tb_put_u8(w, (uint8_t)answer->result);
    tb_put_u8(w, answer->frozen);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        tb_put_u32(w, fields[i]);
    for (uint32_t i = 0; i < count; i++)
        tb_put_u32(w, answer->members[first + i]);
    tb_put_text(w, answer->value);
}

int tb_registry_answer_get(struct tb_reader *r, struct tb_registry_answer *answer, uint32_t *members)
{
    *answer = (struct tb_registry_answer){.number = tb_get_u32(r), .members = members};
    uint8_t result = tb_get_u8(r);
    answer->result = (enum tb_registry_result)result;
    answer->frozen = tb_get_u8(r) != 0;
    uint32_t *const fields[] = {&answer->id,   &answer->generation,   &answer->meeting, &answer->who,
                                &answer->more, &answer->member_count, &answer->first,   &answer->part_count};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        *fields[i] = tb_get_u32(r);
    uint32_t count = answer->part_count;
    if (r->error == TB_OK && (count > TB_REGISTRY_PART || answer->member_count > TB_REGISTRY_MEMBERS ||
                              answer->first > answer->member_count || count > answer->member_count - answer->first))
        return tb_error(TB_ERR_PROTOCOL, "an answer of the registry lists %u members from %u of %u", count,
                        answer->first, answer->member_count);
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++)
        members[i] = tb_get_u32(r);
    get_text(r, answer->value, sizeof answer->value);
    int rc = tb_reader_end(r);
    if (rc == TB_OK && result >= TB_REGISTRY_RESULTS)
        rc = tb_error(TB_ERR_PROTOCOL, "an answer %u of the registry makes no sense", result);
    return rc;
}

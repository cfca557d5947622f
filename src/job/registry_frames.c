#include "job/registry_frames.h"

#include <stdlib.h>
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
    tb_put_u8(w, (uint8_t)question->kind);
    tb_put_u8(w, question->flags);
    tb_put_u32(w, question->count);
    tb_put_u64(w, question->patience);
    tb_put_text(w, question->name);
    tb_put_text(w, question->value);
}

int tb_registry_question_get(struct tb_reader *r, struct tb_registry_question *question)
{
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

int tb_registry_answer_pack(const struct tb_registry_answer *answer, void **bytes, size_t *length)
{
    struct tb_writer w;
    const uint32_t fields[] = {answer->id,  answer->generation, answer->round,
                               answer->who, answer->more,       answer->member_count};
    tb_writer_open(&w);
    tb_put_u8(&w, (uint8_t)answer->result);
    tb_put_u8(&w, answer->frozen);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        tb_put_u32(&w, fields[i]);
    for (uint32_t i = 0; i < answer->member_count; i++)
        tb_put_u32(&w, answer->members[i]);
    tb_put_text(&w, answer->value);
    int rc = w.error;
    if (rc != TB_OK)
        tb_writer_close(&w);
    *bytes = w.bytes; /* of the caller now */
    *length = w.length;
    return rc;
}

/* As many as the answer says that there are, if that can be. */
static void get_members(struct tb_reader *r, struct tb_registry_answer *answer)
{
    uint32_t count = answer->member_count;
    if (r->error != TB_OK || count == 0)
        return;
    if (count > TB_REGISTRY_MEMBERS || count > (r->length - r->at) / sizeof *answer->members) {
        r->error = tb_error(TB_ERR_PROTOCOL, "an answer of the registry lists %u members and is shorter", count);
        return;
    }
    answer->members = malloc(count * sizeof *answer->members);
    if (answer->members == NULL)
        r->error = tb_error(TB_ERR_MEMORY, "out of memory for a list of %u members", count);
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++)
        answer->members[i] = tb_get_u32(r);
}

int tb_registry_answer_unpack(const void *bytes, size_t length, struct tb_registry_answer *answer)
{
    struct tb_reader r;
    tb_reader_open(&r, bytes, length);
    uint8_t result = tb_get_u8(&r);
    *answer = (struct tb_registry_answer){.result = (enum tb_registry_result)result, .frozen = tb_get_u8(&r) != 0};
    uint32_t *const fields[] = {&answer->id,  &answer->generation, &answer->round,
                                &answer->who, &answer->more,       &answer->member_count};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        *fields[i] = tb_get_u32(&r);
    get_members(&r, answer);
    get_text(&r, answer->value, sizeof answer->value);
    int rc = tb_reader_end(&r);
    if (rc == TB_OK && result >= TB_REGISTRY_RESULTS)
        rc = tb_error(TB_ERR_PROTOCOL, "an answer %u of the registry makes no sense", result);
    if (rc == TB_OK)
        return TB_OK;
    free(answer->members);
    answer->members = NULL;
    return rc;
}

#include "engine/access_state.h"
#include "engine/engine_state.h"

#include <stdlib.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void tb_accesses_queue(struct tb_peer *p)
{
    tb_engine_stir(p->engine);
    p->engine->counters.held++;
    if (tb_list_empty(&p->on_accessing))
        tb_list_append(&p->engine->accesses.waiting, &p->on_accessing);
}

static int result_send(struct tb_peer *p, const struct tb_message *m, enum tb_stream stream, const void *data)
{
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a result that was freed is in no list
    struct tb_envelope envelope = {.message = *m};
    struct tb_spans spans = tb_spans_of(data, m->length);
    return tb_peer_transmit(p, &envelope, &spans, stream, 0);
}

static size_t kept_bytes(const struct tb_access_result *result)
{
    return result->stays ? 0 : result->message.length;
}

static void result_keep(struct tb_peer *p, const struct tb_message *m, enum tb_stream stream, const void *data,
                        const uint64_t *at)
{
    size_t bytes = at != NULL ? 0 : m->length;
    bool may = p->results_waiting < TB_RESULTS_LIMIT && bytes <= TB_RESULTS_BYTES - p->results_bytes;
    struct tb_access_result *result = may ? malloc(sizeof *result + bytes) : NULL;
    if (result == NULL) {
        tb_peer_break(p, tb_error(may ? TB_ERR_MEMORY : TB_ERR_PROTOCOL,
                                  "process %u wants more data of windows than can be kept for it", p->proc.index));
        return;
    }
    result->message = *m;
    result->stream = (uint8_t)stream;
    result->stays = at != NULL;
    if (at != NULL)
        result->at = *at;
    else
        memcpy(result->data, data, m->length);
    tb_list_append(&p->results, &result->queue);
    p->results_waiting++;
    p->results_bytes += bytes;
    tb_accesses_queue(p);
}

void tb_access_answer(struct tb_peer *p, const struct tb_message *message, const void *data, const uint64_t *at)
{
    enum tb_stream stream = message->length > TB_ACCESS_SHORT ? TB_STREAM_BULK : TB_STREAM_SHORT;
    struct tb_message m = *message;
    const uint8_t *from = data;
    uint64_t there = at != NULL ? *at : 0;
    for (uint64_t left = message->length; left > 0 && p->error == TB_OK; left -= m.length) {
        m.length = least(left, p->frame); /* the way back may have shorter frames */
        int rc = tb_list_empty(&p->results) ? result_send(p, &m, stream, from) : TB_AGAIN;
        if (rc == TB_AGAIN)
            result_keep(p, &m, stream, from, at != NULL ? &there : NULL);
        else if (rc < 0)
            tb_peer_break(p, rc);
        from += m.length;
        there += m.length;
        m.offset += m.length;
    }
}

/* One that waited for room. What was to be read in a window that is gone since, or has lost that memory, nobody reads
 * any more. */
static int result_send_late(struct tb_peer *p, const struct tb_access_result *result)
{
    const struct tb_message *m = &result->message;
    enum tb_stream stream = (enum tb_stream)result->stream;
    if (!result->stays)
        return result_send(p, m, stream, result->data);
    struct tb_window *w = tb_windows_find(&p->engine->windows, m->context);
    const void *data = w != NULL ? tb_window_memory(w, result->at, m->length) : NULL;
    if (data != NULL)
        return result_send(p, m, stream, data);
    struct tb_message refused = *m;
    refused.kind = TB_KIND_REFUSED;
    refused.length = w != NULL ? TB_REFUSAL_RANGE : TB_REFUSAL_WINDOW;
    refused.offset = 0;
    tb_peer_answer(p, &refused);
    return TB_OK;
}

int tb_results_push(struct tb_peer *p)
{
    int gone = 0;
    while (!tb_list_empty(&p->results)) {
        struct tb_access_result *result = TB_CONTAINER(p->results.next, struct tb_access_result, queue);
        int rc = result_send_late(p, result);
        if (rc == TB_AGAIN)
            break;
        if (rc < 0) {
            tb_peer_break(p, rc);
            break;
        }
        tb_list_remove(&result->queue);
        p->results_waiting--;
        p->results_bytes -= kept_bytes(result);
        free(result);
        gone++;
    }
    return gone;
}

void tb_results_forget(struct tb_peer *p)
{
    struct tb_access_result *result;
    TB_LIST_EACH (result, &p->results, struct tb_access_result, queue)
        free(result);
    tb_list_init(&p->results);
    p->results_waiting = 0;
    p->results_bytes = 0;
}

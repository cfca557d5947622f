#include "transport/shm/memory_card.h"

#include <unistd.h>

#include "transport/shm/cross_memory.h"
#include "transport/shm/shm_param.h"
#include "transport/transport.h"

/* Whether others' memory may be read is tried on ourselves: that fails where the call does not exist or is filtered. */
int tb_memory_card_begin(struct tb_transport *transport, uint64_t *token)
{
    int error = tb_random_secret(token, sizeof(*token));
    if (error != TB_OK)
        return error;
    if (tb_shm_param.cross_memory && tb_cross_memory_verify(getpid(), (uint64_t)(uintptr_t)token, *token) == TB_OK)
        transport->capabilities |= TB_CAP_REMOTE_READ;
    transport->remote_minimum = tb_shm_param.single_copy != 0 ? tb_shm_param.single_copy : UINT64_MAX;
    return TB_OK;
}

void tb_memory_card_write(struct tb_memory_card *card, const uint64_t *token)
{
    card->token = *token;
    card->token_address = (uint64_t)(uintptr_t)token;
    atomic_store_explicit(&card->pid, (uint32_t)getpid(), memory_order_release);
}

int tb_memory_card_read(struct tb_transport *transport, const struct tb_memory_card *card, bool *proved,
                        uint64_t address, struct tb_spans *into, uint64_t length)
{
    if (!(transport->capabilities & TB_CAP_REMOTE_READ))
        return tb_error(TB_ERR_FORBIDDEN, "reading other ranks' memory is not possible here");
    pid_t pid = (pid_t)atomic_load_explicit(&card->pid, memory_order_acquire);
    int error = *proved ? TB_OK : tb_cross_memory_verify(pid, card->token_address, card->token);
    *proved = error == TB_OK;
    if (error == TB_OK)
        error = tb_cross_memory_read(pid, address, into, length);
    /* Memory of a device is there for its own process only; such a message has to be sent. */
    if (error == TB_ERR_ARGUMENT)
        return TB_ERR_FORBIDDEN;
    if (error == TB_ERR_FORBIDDEN) {
        transport->capabilities &= ~(unsigned)TB_CAP_REMOTE_READ;
        tb_log(TB_LOG_INFO, "shm", "going on without cross-memory attach: %s", tb_error_story());
    }
    return error;
}

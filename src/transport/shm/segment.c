#include "transport/shm/segment.h"

#include "transport/shm/board.h"
#include "transport/shm/shm_param.h"
#include "transport/transport.h"

#define BOARDS_LEAST 64u  /* of a host; and one more for each rank, since when a communicator is split all of them */
#define BOARDS_MOST  256u /* claim one before it is known who leads the new ones */

uint32_t tb_shm_board_count(uint32_t ranks)
{
    return ranks < BOARDS_MOST - BOARDS_LEAST ? BOARDS_LEAST + ranks : BOARDS_MOST;
}

size_t tb_shm_heads_bytes(uint32_t ranks)
{
    return (tb_shm_board_count(ranks) * sizeof(struct tb_board_head) + TB_SHM_PAGE - 1) / TB_SHM_PAGE * TB_SHM_PAGE;
}

size_t tb_shm_board_bytes(uint32_t ranks)
{
    return (size_t)ranks * TB_BOARD_MEMBER_BYTES;
}

size_t tb_shm_bulk_bytes(void)
{
    return tb_ring_bulk(tb_shm_param.ring);
}

static size_t rings_end(uint32_t ranks)
{
    size_t end = (size_t)ranks * TB_SHM_PAGE + (size_t)ranks * ranks * tb_ring_bytes(tb_shm_bulk_bytes());
    return (end + TB_SHM_PAGE - 1) / TB_SHM_PAGE * TB_SHM_PAGE;
}

size_t tb_shm_segment_bytes(uint32_t ranks)
{
    return rings_end(ranks) + tb_shm_heads_bytes(ranks) + tb_shm_board_count(ranks) * tb_shm_board_bytes(ranks);
}

void *tb_shm_boards_of(void *segment, uint32_t ranks)
{
    return (char *)segment + rings_end(ranks);
}

/* Channels of several hosts that one process cannot open, or cannot have its host's common memory for, for want of
 * memory: of every allocation on the way, the test lets one fail. The others are told, and no board is lost. */
#include <stdlib.h>

#define RANKS 7
#include "base/failing_memory_test.h"
#include "engine/hosts_test.h"

/* ---- a channel of all ranks -------------------------------------------------------------------------------------- */

static const uint32_t of[RANKS] = {0, 1, 1, 2, 0, 1, 0}; /* 3, 3 and 1 ranks */
static uint32_t counter = TB_CONTEXT_FIRST;

/* Everyone calls the agreement's collective, a message around the ring of ranks here: it ends everywhere. */
static void rings_run(struct hosts *h, struct tb_channel *const *channels, uint32_t absent, int error)
{
    static struct tb_request requests[RANKS];
    static char bytes[RANKS][2];
    struct tb_program *programs[RANKS];
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct tb_builder b;
        tb_builder_open(&b, 1);
        tb_builder_receive(&b, (rank + RANKS - 1) % RANKS, 0, (struct tb_slice){TB_SYMBOL_OUT, 0, 1, 1});
        tb_builder_send(&b, (rank + 1) % RANKS, 0, (struct tb_slice){TB_SYMBOL_IN, 0, 1, 1});
        if (rank > 0)
            tb_builder_after(&b, 0);
        assert_int_equal(tb_builder_finish(&b, &programs[rank]), TB_OK);
        struct tb_binding binding = {
            .operation = TB_OPERATION_ALLREDUCE, .elements = 1, .element_bytes = 1, .piece = 1};
        binding.buffers[TB_SYMBOL_IN] = (struct tb_buffer){&bytes[rank][0], 1, &tb_type_byte};
        binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){&bytes[rank][1], 1, &tb_type_byte};
        requests[rank].complete = NULL;
        if (rank != absent)
            tb_program_post(channels[rank], &requests[rank], programs[rank], &binding);
    }
    hosts_settle(h);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        if (rank != absent) {
            assert_true(tb_request_done(&requests[rank]));
            assert_int_equal(requests[rank].status.error, error);
        }
        tb_program_free(programs[rank]);
    }
}

/* All hosts have lost or kept no board but their first. What a rank could not leave in time it leaves at its next
 * chance. */
static void boards_are_back(struct hosts *h, uint32_t who)
{
    uint64_t another = tb_context_make(who, counter++, TB_PLANE_POINT);
    tb_engine_claim(h->engines[who], another, false);
    tb_engine_unclaim(h->engines[who], another);
    for (uint32_t host = 0; host < 3; host++)
        assert_int_equal(boards_taken(h, host), 0);
}

/* Lets an allocation of `who` fail, on the way to a channel that is agreed on. False: there are not so many. */
static bool fails_at(struct hosts *h, uint32_t who, uint32_t nth, bool backwards)
{
    struct tb_channel *channels[RANKS] = {NULL};
    uint64_t context = tb_context_make(0, counter++, TB_PLANE_POINT), word = UINT64_MAX;
    static const uint32_t procs[RANKS] = {0, 1, 2, 3, 4, 5, 6};
    uint32_t left = nth;
    int error = TB_OK;
    tb_engine_claim(h->engines[0], context, false);
    for (uint32_t i = 0; i < RANKS; i++) {
        uint32_t rank = backwards ? RANKS - 1 - i : i;
        const struct tb_channel_config config = config_of(context, RANKS, rank, procs);
        countdown = rank == who ? nth : 0;
        int opened = tb_channel_open(h->engines[rank], &config, &channels[rank]);
        left = rank == who ? countdown : left;
        error = rank == who ? opened : error;
        assert_true(rank == who || opened == TB_OK);
    }
    countdown = 0;
    hosts_settle(h);
    bool opened = error == TB_OK;
    assert_int_equal(opened, left > 0);
    rings_run(h, channels, opened ? RANKS : who, opened ? TB_OK : TB_ERR_GIVEN_UP);
    for (uint32_t rank = 0; rank < RANKS && opened; rank++)
        word &= tb_channel_provides(channels[rank]);
    for (uint32_t rank = 0; rank < RANKS && opened; rank++) {
        countdown = rank == who ? left : 0;
        int agreed = tb_channel_agree(channels[rank], word);
        left = rank == who ? countdown : left;
        error = rank == who ? agreed : error;
        assert_int_equal(agreed == TB_OK, rank != who || left > 0);
    }
    countdown = 0;
    for (uint32_t rank = 0; rank < RANKS; rank++)
        if (channels[rank] != NULL)
            tb_channel_close(channels[rank]);
    boards_are_back(h, who);
    return error != TB_OK;
}

static void memory_that_fails_loses_no_board(void **state)
{
    struct hosts h;
    hosts_open(&h, of, RANKS);
    for (uint32_t who = 0; who < RANKS; who++)
        for (int backwards = 0; backwards < 2; backwards++) {
            uint32_t nth = 1;
            while (fails_at(&h, who, nth, backwards))
                assert_true(++nth < 100);
            assert_true(nth >
                        (who == 3 ? 2 : 5)); /* the channel, its processes, contexts; common memory, list, board */
        }
    hosts_close(&h);
}

/* The same of collectives that are kept. */
static void kept_ones_lose_no_board(void **state)
{
    struct hosts h;
    hosts_open(&h, of, RANKS);
    for (uint32_t who = 0; who < RANKS; who++)
        for (uint32_t nth = 1, left = 0; left == 0; nth++) {
            const struct tb_channel_config none = {.locals = NULL};
            struct tb_kept *kept[RANKS] = {NULL};
            uint64_t word = UINT64_MAX;
            left = nth;
            for (uint32_t i = 0; i < RANKS; i++) {
                uint32_t rank = RANKS - 1 - i;
                countdown = rank == who ? nth : 0;
                int error = tb_channel_keep(h.channels[rank], &none, counter, &kept[rank]);
                left = rank == who ? countdown : left;
                assert_int_equal(error == TB_OK, rank != who || left > 0);
            }
            for (uint32_t rank = 0; rank < RANKS && left > 0; rank++)
                word &= tb_channel_kept_provides(kept[rank]);
            for (uint32_t rank = 0; rank < RANKS && left > 0; rank++) {
                bool agreed;
                countdown = rank == who ? left : 0;
                int error = tb_channel_kept_agree(kept[rank], word, &agreed);
                left = rank == who ? countdown : left;
                assert_int_equal(error == TB_OK, rank != who || left > 0);
                if (rank == who && left == 0)
                    break;
            }
            countdown = 0;
            for (uint32_t rank = 0; rank < RANKS; rank++)
                if (kept[rank] != NULL)
                    tb_channel_kept_close(kept[rank]);
            counter++;
            boards_are_back(&h, who);
            assert_true(nth < 100);
        }
    hosts_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_that_fails_loses_no_board),
                                       cmocka_unit_test(kept_ones_lose_no_board)};
    alarm(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

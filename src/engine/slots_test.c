/* Message ids: a request is found by its id while it has a slot, and by no other id, however often slots are reused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/slots.h"

#define REQUESTS 200

static void found_while_they_have_a_slot(void **state)
{
    static struct tb_request requests[REQUESTS];
    struct tb_slots s = {.room = 0};
    struct tb_random random;
    tb_random_seed(&random, 3);
    uint64_t last = 0;
    for (int i = 0; i < 20000; i++) {
        struct tb_request *r = &requests[tb_random_below(&random, REQUESTS)];
        if (r->slot != 0) {
            uint64_t id = r->message_id;
            assert_ptr_equal(tb_slots_find(&s, id), r);
            assert_int_equal(tb_slots_take(&s, r), TB_OK);
            assert_int_equal(r->message_id, id);
            tb_slots_give(&s, r);
            assert_null(tb_slots_find(&s, id));
        } else {
            uint64_t old = r->message_id;
            assert_int_equal(tb_slots_take(&s, r), TB_OK);
            assert_true(r->message_id > last);
            last = r->message_id;
            assert_ptr_equal(tb_slots_find(&s, r->message_id), r);
            assert_null(tb_slots_find(&s, old));
        }
    }
    tb_slots_close(&s);
}

static void ids_that_nobody_has(void **state)
{
    struct tb_slots s = {.room = 0};
    struct tb_request r = {.slot = 0};
    assert_null(tb_slots_find(&s, 0));
    assert_null(tb_slots_find(&s, UINT64_MAX));
    assert_int_equal(tb_slots_take(&s, &r), TB_OK);
    uint64_t without = tb_slots_id(&s);
    assert_true(without > r.message_id);
    assert_null(tb_slots_find(&s, without));
    assert_null(tb_slots_find(&s, without | r.slot));
    assert_null(tb_slots_find(&s, r.message_id | (1u << 23)));
    tb_slots_close(&s);
}

/* Where there are lanes, an id says in which one it was given, and is found in no other. */
static void ids_tell_their_lane(void **state)
{
    for (uint32_t lane = 0; lane < TB_SLOT_LANES; lane++) {
        struct tb_slots s = {.room = 0}, other = {.room = 0};
        struct tb_request r = {.slot = 0}, q = {.slot = 0};
        tb_slots_share(&s, lane);
        tb_slots_share(&other, (lane + 1) % TB_SLOT_LANES);
        assert_int_equal(tb_slots_take(&s, &r), TB_OK);
        assert_int_equal(tb_slots_take(&other, &q), TB_OK);
        assert_int_equal(tb_slots_lane(r.message_id), lane);
        assert_int_equal(tb_slots_lane(tb_slots_id(&s)), lane);
        assert_ptr_equal(tb_slots_find(&s, r.message_id), &r);
        assert_null(tb_slots_find(&other, r.message_id));
        assert_null(tb_slots_find(&s, q.message_id));
        tb_slots_close(&s);
        tb_slots_close(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(found_while_they_have_a_slot),
                                       cmocka_unit_test(ids_that_nobody_has), cmocka_unit_test(ids_tell_their_lane)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

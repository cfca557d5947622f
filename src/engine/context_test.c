/* The table of contexts against a model: which ids are there, and each is visited once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "engine/context.h"

#define IDS 500

static void as_the_model_says(void **state)
{
    struct tb_contexts t = {.used = 0};
    struct tb_context *model[IDS] = {NULL};
    struct tb_random random;
    uint32_t count = 0;
    tb_random_seed(&random, 4);
    for (int i = 0; i < 5000; i++) {
        uint32_t n = (uint32_t)tb_random_below(&random, IDS);
        uint64_t id = n * 0x100000001ull;
        assert_ptr_equal(tb_contexts_find(&t, id), model[n]);
        if (model[n] == NULL || tb_random_below(&random, 3) > 0) {
            count += model[n] == NULL;
            struct tb_context *c = tb_contexts_get(&t, id);
            assert_true(c != NULL && c->id == id && (model[n] == NULL || model[n] == c));
            model[n] = c;
        } else {
            tb_contexts_remove(&t, model[n]);
            model[n] = NULL;
            count--;
        }
        assert_int_equal(t.used, count);
    }
    for (struct tb_context *c = tb_contexts_first(&t); c != NULL; c = tb_contexts_next(&t, c), count--)
        assert_ptr_equal(model[c->id & UINT32_MAX], c);
    assert_int_equal(count, 0);
    struct tb_context *c;
    while ((c = tb_contexts_first(&t)) != NULL)
        tb_contexts_remove(&t, c);
    tb_contexts_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_model_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Handles and their tables, without the rest of the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "mpi/handle.h"
#include "mpi/self.h"

struct thing {
    struct tb_handle head;
    uint64_t content[4];
};

static struct thing *find(enum tb_object kind, uint64_t value)
{
    return tb_table_find(&tb_self.tables[kind], kind, sizeof(struct thing), (void *)(uintptr_t)value);
}

static void handles_are_told_apart(void **state)
{
    struct thing *a = tb_handle_take(TB_OBJECT_INFO, sizeof *a), *b = tb_handle_take(TB_OBJECT_INFO, sizeof *b);
    uint64_t value = a->head.value;
    assert_ptr_equal(find(TB_OBJECT_INFO, value), a);
    assert_ptr_equal(find(TB_OBJECT_INFO, b->head.value), b);
    /* Another kind, another generation, the standard's values, garbage. */
    assert_null(find(TB_OBJECT_OP, value));
    assert_null(find(TB_OBJECT_INFO, value + (UINT64_C(1) << 32)));
    assert_null(find(TB_OBJECT_INFO, 0));
    assert_null(find(TB_OBJECT_INFO, 0x131));
    assert_null(find(TB_OBJECT_INFO, UINT64_MAX));
    assert_null(find(TB_OBJECT_INFO, (uintptr_t)a));
    assert_null(find(TB_OBJECT_INFO, (value & ~UINT64_C(0xffffffff)) | (TB_HANDLE_FIRST - 1)));
    assert_null(find(TB_OBJECT_INFO, (value & ~UINT64_C(0xffffffff)) | (TB_HANDLE_FIRST + 100 * TB_TABLE_CHUNK)));
    tb_handle_give(TB_OBJECT_INFO, a);
    assert_null(find(TB_OBJECT_INFO, value));
    /* The place is used again, with another handle. */
    struct thing *c = tb_handle_take(TB_OBJECT_INFO, sizeof *c);
    assert_ptr_equal(c, a);
    assert_true(c->head.value != value);
    assert_null(find(TB_OBJECT_INFO, value));
    tb_handle_give(TB_OBJECT_INFO, b);
    tb_handle_give(TB_OBJECT_INFO, c);
    assert_int_equal(tb_self.tables[TB_OBJECT_INFO].used, 0);
}

static void new_objects_are_empty(void **state)
{
    struct thing *a = tb_handle_take(TB_OBJECT_WIN, sizeof *a);
    memset(a->content, 0xff, sizeof a->content);
    tb_handle_give(TB_OBJECT_WIN, a);
    struct thing *b = tb_handle_take(TB_OBJECT_WIN, sizeof *b);
    assert_ptr_equal(a, b);
    for (int i = 0; i < 4; i++)
        assert_int_equal(b->content[i], 0);
    tb_handle_give(TB_OBJECT_WIN, b);
}

static void many_objects_stay_where_they_are(void **state)
{
    enum { COUNT = 5 * TB_TABLE_CHUNK + 7 };
    static struct thing *things[COUNT];
    static uint64_t values[COUNT];
    for (int i = 0; i < COUNT; i++) {
        things[i] = tb_handle_take(TB_OBJECT_GROUP, sizeof *things[i]);
        values[i] = things[i]->head.value;
        things[i]->content[0] = (uint64_t)i;
    }
    for (int i = 0; i < COUNT; i++) {
        assert_ptr_equal(find(TB_OBJECT_GROUP, values[i]), things[i]);
        assert_int_equal(things[i]->content[0], i);
    }
    for (int i = 0; i < COUNT; i += 2)
        tb_handle_give(TB_OBJECT_GROUP, things[i]);
    for (int i = 0; i < COUNT; i++)
        assert_ptr_equal(find(TB_OBJECT_GROUP, values[i]), i % 2 == 0 ? NULL : things[i]);
    for (int i = 1; i < COUNT; i += 2)
        tb_handle_give(TB_OBJECT_GROUP, things[i]);
    assert_int_equal(tb_self.tables[TB_OBJECT_GROUP].used, 0);
}

static void integers_name_the_same_objects(void **state)
{
    void *const null = (void *)(uintptr_t)0x108;
    struct thing *a = tb_handle_take(TB_OBJECT_SESSION, sizeof *a);
    void *handle = (void *)(uintptr_t)a->head.value;
    int number = tb_handle_to_int(handle);
    assert_true(number >= (int)TB_HANDLE_FIRST);
    assert_ptr_equal(tb_handle_from_int(TB_OBJECT_SESSION, sizeof *a, number, null), handle);
    assert_int_equal(tb_handle_to_int((void *)(uintptr_t)0x101), 0x101);
    assert_ptr_equal(tb_handle_from_int(TB_OBJECT_SESSION, sizeof *a, 0x101, null), (void *)(uintptr_t)0x101);
    tb_handle_give(TB_OBJECT_SESSION, a);
    assert_ptr_equal(tb_handle_from_int(TB_OBJECT_SESSION, sizeof *a, number, null), null);
    assert_ptr_equal(tb_handle_from_int(TB_OBJECT_SESSION, sizeof *a, -1, null), null);
    assert_ptr_equal(tb_handle_from_int(TB_OBJECT_SESSION, sizeof *a, INT32_MAX, null), null);
}

/* When its generations are used up, a place is given up, except a request's. */
static void generations_do_not_start_over(void **state)
{
    struct thing *a = tb_handle_take(TB_OBJECT_FILE, sizeof *a), *r = tb_handle_take(TB_OBJECT_REQUEST, sizeof *r);
    a->head.generation = r->head.generation = 0xfffffe; /* instead of taking them millions of times */
    tb_handle_give(TB_OBJECT_FILE, a);
    assert_ptr_equal(tb_handle_take_raw(TB_OBJECT_FILE, sizeof *a), a);
    tb_handle_give(TB_OBJECT_REQUEST, r);
    assert_ptr_equal(tb_handle_take_raw(TB_OBJECT_REQUEST, sizeof *r), r);
    tb_handle_give(TB_OBJECT_FILE, a);
    struct thing *b = tb_handle_take_raw(TB_OBJECT_FILE, sizeof *b);
    assert_true(b != a);
    tb_handle_give(TB_OBJECT_FILE, b);
    tb_handle_give(TB_OBJECT_REQUEST, r);
    assert_ptr_equal(tb_handle_take_raw(TB_OBJECT_REQUEST, sizeof *r), r);
    tb_handle_give(TB_OBJECT_REQUEST, r);
}

enum { THREADS = 4, ROUNDS = 50000, HELD = 20 };

static pthread_barrier_t begin;

static void *take_and_give(void *context)
{
    struct thing *held[HELD] = {NULL};
    uint64_t mark = (uint64_t)(uintptr_t)context;
    pthread_barrier_wait(&begin);
    for (int i = 0; i < ROUNDS; i++) {
        struct thing **place = &held[(i * 7) % HELD];
        if (*place != NULL) {
            if ((*place)->content[0] != mark || find(TB_OBJECT_ERRHANDLER, (*place)->head.value) != *place)
                return "an object was given to two";
            tb_handle_give(TB_OBJECT_ERRHANDLER, *place);
        }
        *place = tb_handle_take(TB_OBJECT_ERRHANDLER, sizeof **place);
        (*place)->content[0] = mark;
    }
    for (int i = 0; i < HELD; i++)
        if (held[i] != NULL)
            tb_handle_give(TB_OBJECT_ERRHANDLER, held[i]);
    return NULL;
}

static void threads_share_a_table(void **state)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&begin, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        void *story = NULL;
        pthread_join(threads[i], &story);
        assert_null(story);
    }
    pthread_barrier_destroy(&begin);
    assert_int_equal(tb_self.tables[TB_OBJECT_ERRHANDLER].used, 0);
}

/* Also when the process says that it is not threaded: error handlers may be freed by any thread at any time. */
static void threads_share_a_table_at_any_level(void **state)
{
    tb_self.single = true;
    threads_share_a_table(state);
    tb_self.single = false;
}

enum { REQUESTS = 100, TIMES = 200, KEPT = 32 };

static const char *take_and_give_requests(uint64_t mark)
{
    struct thing *held[REQUESTS];
    for (uint64_t i = 0; i < REQUESTS; i++) {
        held[i] = tb_handle_take_raw(TB_OBJECT_REQUEST, sizeof *held[i]);
        held[i]->content[0] = mark + i;
    }
    for (uint64_t i = 0; i < REQUESTS; i++) {
        if (held[i]->content[0] != mark + i || find(TB_OBJECT_REQUEST, held[i]->head.value) != held[i])
            return "a request was given to two";
        tb_handle_give(TB_OBJECT_REQUEST, held[i]);
    }
    return NULL;
}

static void *use_requests(void *context)
{
    const char *story = NULL;
    pthread_barrier_wait(&begin);
    for (int i = 0; i < TIMES && story == NULL; i++)
        story = take_and_give_requests((uint64_t)(uintptr_t)context * REQUESTS);
    return (void *)story;
}

/* A thread keeps a few that it has given back, until it ends. */
static void threads_keep_few_requests(void **state)
{
    const struct tb_table *table = &tb_self.tables[TB_OBJECT_REQUEST];
    pthread_t threads[THREADS];
    struct thing *one = tb_handle_take_raw(TB_OBJECT_REQUEST, sizeof *one);
    uint64_t handle = one->head.value;
    tb_handle_give(TB_OBJECT_REQUEST, one);
    assert_null(find(TB_OBJECT_REQUEST, handle));
    assert_null(take_and_give_requests(0));
    uint32_t used = table->used;
    assert_in_range(used, 1, KEPT);
    for (int round = 0; round < 5; round++) {
        pthread_barrier_init(&begin, NULL, THREADS);
        for (uintptr_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, use_requests, (void *)(i + 1)), 0);
        for (int i = 0; i < THREADS; i++) {
            void *story = NULL;
            pthread_join(threads[i], &story);
            assert_null(story);
        }
        pthread_barrier_destroy(&begin);
        assert_int_equal(table->used, used);
    }
    assert_in_range(table->made, REQUESTS, (REQUESTS + KEPT) * (THREADS + 1) + TB_TABLE_CHUNK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_are_told_apart),           cmocka_unit_test(new_objects_are_empty),
        cmocka_unit_test(many_objects_stay_where_they_are), cmocka_unit_test(integers_name_the_same_objects),
        cmocka_unit_test(generations_do_not_start_over),    cmocka_unit_test(threads_share_a_table),
        cmocka_unit_test(threads_keep_few_requests),        cmocka_unit_test(threads_share_a_table_at_any_level),
    };
    return cmocka_run_group_tests_name("handle", tests, NULL, NULL);
}

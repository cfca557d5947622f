#include "agent/cost_store.h"

#include "agent/sealed_store_test.h"
#include "base/changed_bytes_test.h"
#include "job/cost_mapping_test.h"
#include "topology/topology.h"

#include <sys/stat.h>

#define HOSTS 3

static int give(struct tb_cost_store *store, uint32_t version, uint64_t all, uint64_t at, const void *bytes,
                size_t length, int *descriptor)
{
    struct tb_writer w;
    struct tb_reader r;
    store_frame(&w, &r, version, all, at, bytes, length);
    int rc = tb_cost_store_take(store, &r, HOSTS, descriptor);
    tb_writer_close(&w);
    return rc;
}

/* All of it in pieces; the descriptor, or -1. */
static int give_all(struct tb_cost_store *store, const struct tb_cost_head *head, size_t piece)
{
    int descriptor = -1, rc = TB_OK;
    for (uint64_t at = 0; at < head->bytes && rc == TB_OK; at += piece) {
        assert_int_equal(descriptor, -1);
        size_t left = (size_t)(head->bytes - at);
        rc = give(store, head->version, head->bytes, at, (const char *)head + at, left < piece ? left : piece,
                  &descriptor);
    }
    assert_true((rc == TB_OK) == (descriptor >= 0));
    return descriptor;
}

static void a_table_comes_in_pieces(void **state)
{
    struct tb_cost_store store;
    struct tb_cost_head *head = costs_make(4, HOSTS, 1);
    static const size_t pieces[] = {1, 7, 1000, TB_SEALED_FRAME_BYTES};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct stat about;
        tb_cost_store_init(&store);
        int descriptor = give_all(&store, head, pieces[i]);
        assert_true(descriptor >= 0);
        assert_int_equal(store.version, 1);
        assert_int_equal(store.place_count, 4);
        assert_int_equal(fstat(descriptor, &about), 0);
        assert_int_equal(about.st_size, head->bytes);
        void *bytes = mmap(NULL, (size_t)head->bytes, PROT_READ, MAP_SHARED, descriptor, 0);
        assert_true(bytes != MAP_FAILED);
        assert_memory_equal(bytes, head, (size_t)head->bytes);
        munmap(bytes, (size_t)head->bytes);
        assert_int_equal(write(descriptor, "x", 1), -1); /* sealed */
        close(descriptor);
        tb_cost_store_close(&store);
    }
    free(head);
}

/* More than one frame can carry. */
static void a_large_table_comes_whole(void **state)
{
    struct tb_cost_store store;
    struct tb_cost_mapping *mapping = NULL;
    assert_int_equal(tb_param_set("links", "c7/c29999:10:5", TB_PARAM_LAUNCHER), TB_OK);
    struct tb_cost_head *head = costs_make(30000, HOSTS, 1);
    assert_int_equal(tb_param_load(), TB_OK);
    assert_true(head->bytes > TB_SEALED_FRAME_BYTES);
    tb_cost_store_init(&store);
    int descriptor = give_all(&store, head, TB_SEALED_FRAME_BYTES);
    free(head);
    assert_int_equal(tb_cost_mapping_add(&mapping, descriptor, HOSTS, 30000), TB_OK);
    close(descriptor);
    struct tb_spot a = {7, 0, TB_COST_NONE}, b = {29999, 0, TB_COST_NONE};
    assert_int_equal(tb_cost_brief(&mapping->table, &a, &b).bandwidth, 10000000);
    tb_cost_mapping_close(&mapping);
}

static void later_versions_follow(void **state)
{
    struct tb_cost_store store;
    tb_cost_store_init(&store);
    static const struct {
        uint32_t places, hosts, version;
        bool taken;
    } told[] = {{4, HOSTS + 1, 1, false}, {4, HOSTS, 1, true},     {4, HOSTS, 1, false}, {3, HOSTS, 2, false},
                {4, HOSTS - 1, 2, false}, {9, HOSTS + 9, 2, true}, {4, HOSTS, 3, false}, {9, HOSTS + 9, 8, true}};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        struct tb_cost_head *head = costs_make(told[i].places, told[i].hosts, told[i].version);
        int descriptor = give_all(&store, head, 4096);
        assert_int_equal(descriptor >= 0, told[i].taken);
        if (descriptor >= 0)
            close(descriptor);
        tb_cost_store_close(&store); /* as the end of the agent does, but for what is whole */
        free(head);
    }
    assert_int_equal(store.version, 8);
}

/* Pieces out of order, of another table, too long, or of more than there can be. */
static void nonsense_is_refused(void **state)
{
    struct tb_cost_head *head = costs_make(4, HOSTS, 1);
    const char *bytes = (const char *)head;
    char *large = calloc(1, TB_SEALED_FRAME_BYTES + 1u);
    const struct {
        uint32_t version;
        uint64_t all, at;
        const void *bytes;
        size_t length;
    } bad[] = {{1, head->bytes, 0, bytes, 100},
               {1, head->bytes, 108, bytes + 100, 100},
               {1, head->bytes, 92, bytes + 100, 100},
               {2, head->bytes, 100, bytes + 100, 100},
               {1, head->bytes + 8, 100, bytes + 100, 100},
               {1, head->bytes, 100, bytes + 100, 0},
               {1, head->bytes, 100, large, (size_t)head->bytes},
               {0, head->bytes, 0, bytes, 100},
               {1, head->bytes, UINT64_MAX, bytes, 100},
               {1, UINT64_MAX, 0, bytes, 100},
               {1, (uint64_t)TB_COST_TABLE_LIMIT + 8, 0, bytes, 100},
               {1, TB_COST_TABLE_LIMIT, 0, large, TB_SEALED_FRAME_BYTES + 1u},
               {1, 0, 0, bytes, 0},
               {1, 64, 0, large, 64}};
    for (size_t i = 1; i < sizeof bad / sizeof bad[0]; i++) {
        struct tb_cost_store store;
        int descriptor;
        tb_cost_store_init(&store);
        if (i < 7)
            assert_int_equal(give(&store, 1, head->bytes, 0, bytes, 100, &descriptor), TB_OK);
        assert_int_equal(give(&store, bad[i].version, bad[i].all, bad[i].at, bad[i].bytes, bad[i].length, &descriptor),
                         TB_ERR_PROTOCOL);
        assert_int_equal(descriptor, -1);
        assert_true(tb_error_story()[0] != 0);
        tb_cost_store_close(&store);
    }
    free(large);
    free(head);
}

/* ---- bytes of strangers ------------------------------------------------------------------------------------------ */

static int take_changed(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    struct tb_cost_store store;
    struct tb_cost_mapping *mapping = NULL;
    int descriptor = -1, rc = TB_OK;
    tb_cost_store_init(&store);
    for (size_t at = 0; at < length && rc == TB_OK; at += piece)
        rc = give(&store, 1, length, at, bytes + at, length - at < piece ? length - at : piece, &descriptor);
    tb_cost_store_close(&store);
    if (rc != TB_OK || descriptor < 0)
        return rc;
    /* What has been taken leads nobody astray. */
    rc = tb_cost_mapping_add(&mapping, descriptor, HOSTS, store.place_count);
    close(descriptor);
    assert_int_equal(rc, TB_OK);
    const struct tb_cost_table *t = tb_cost_mapping_first(mapping);
    for (uint32_t i = 0; i < t->head->place_count; i++)
        for (uint32_t k = 0; k < t->head->place_count; k++) {
            struct tb_spot a = {i, i % t->head->kind_count, TB_COST_NONE}, b = {k, k % t->head->kind_count, i % HOSTS};
            (void)tb_cost_brief(t, &a, &b);
        }
    tb_cost_mapping_close(&mapping);
    return TB_OK;
}

static void changed_bytes_do_no_harm(void **state)
{
    assert_int_equal(tb_param_set("links", "c1/c2:10:5,c1>c3:100:1,c2^:50:0,c3:10:1:hub", TB_PARAM_LAUNCHER), TB_OK);
    struct tb_cost_head *head = costs_make(4, HOSTS, 1);
    assert_int_equal(tb_param_load(), TB_OK);
    const struct changed_bytes c = {.kind = "costs, launcher to agent",
                                    .take = take_changed,
                                    .bytes = (const uint8_t *)head,
                                    .length = (size_t)head->bytes};
    changed_bytes_sweep(&c);
    free(head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_comes_in_pieces),  cmocka_unit_test(a_large_table_comes_whole),
        cmocka_unit_test(later_versions_follow),    cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(changed_bytes_do_no_harm),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

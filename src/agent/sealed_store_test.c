#include "agent/sealed_store.h"

#include "agent/sealed_store_test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT (4u << 20)

static struct tb_sealed_store store;

static int give(uint32_t version, uint64_t all, uint64_t at, const void *bytes, size_t length, uint32_t newest,
                int *descriptor)
{
    struct tb_writer w;
    struct tb_reader r;
    store_frame(&w, &r, version, all, at, bytes, length);
    int rc = tb_sealed_store_take(&store, &r, newest, descriptor);
    tb_writer_close(&w);
    return rc;
}

static int open_store(void **state)
{
    tb_sealed_store_init(&store, "tombolo-test", "what is tested", LIMIT);
    return 0;
}

static int close_store(void **state)
{
    tb_sealed_store_close(&store);
    return 0;
}

/* Longer than one frame may be; what comes out has all of it, and nobody can change it. */
static void pieces_become_one(void **state)
{
    const size_t all = 2 * TB_SEALED_FRAME_BYTES + 77;
    char *bytes = malloc(all), *back = malloc(all + 1);
    assert_true(bytes != NULL && back != NULL);
    for (size_t i = 0; i < all; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    for (uint32_t version = 1; version < 4; version++) {
        int descriptor = -1;
        for (size_t at = 0; at < all; at += TB_SEALED_FRAME_BYTES) {
            size_t now = all - at < TB_SEALED_FRAME_BYTES ? all - at : TB_SEALED_FRAME_BYTES;
            assert_int_equal(descriptor, -1);
            assert_int_equal(give(version, all, at, bytes + at, now, version - 1, &descriptor), TB_OK);
        }
        assert_true(descriptor >= 0);
        assert_int_equal(store.version, version);
        assert_int_equal(store.bytes, all);
        assert_int_equal(pread(descriptor, back, all + 1, 0), all);
        assert_memory_equal(back, bytes, all);
        assert_int_equal(write(descriptor, "x", 1), -1);
        assert_int_equal(ftruncate(descriptor, 5), -1);
        close(descriptor);
    }
    free(bytes);
    free(back);
}

static void nonsense_is_refused(void **state)
{
    static const struct {
        uint32_t version;
        uint64_t all, at;
        size_t length;
        uint32_t newest;
    } bad[] = {{1, 100, 1, 10, 0},       {1, 100, 0, 0, 0},  {1, 5, 0, 6, 0},  {1, LIMIT + 1ull, 0, 6, 0},
               {1, UINT64_MAX, 0, 6, 0}, {1, 100, 0, 10, 1}, {0, 10, 0, 10, 0}};
    char bytes[128] = "";
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int descriptor = 5;
        tb_sealed_store_close(&store);
        assert_int_equal(give(bad[i].version, bad[i].all, bad[i].at, bytes, bad[i].length, bad[i].newest, &descriptor),
                         TB_ERR_PROTOCOL);
        assert_int_equal(descriptor, -1);
        assert_non_null(strstr(tb_error_story(), "what is tested"));
    }
    /* What goes on must go on with the same. */
    int descriptor;
    tb_sealed_store_close(&store);
    assert_int_equal(give(1, 100, 0, bytes, 50, 0, &descriptor), TB_OK);
    assert_int_equal(give(2, 100, 50, bytes, 50, 0, &descriptor), TB_ERR_PROTOCOL);
    assert_int_equal(give(1, 101, 50, bytes, 50, 0, &descriptor), TB_ERR_PROTOCOL);
    assert_int_equal(give(1, 100, 49, bytes, 50, 0, &descriptor), TB_ERR_PROTOCOL);
    assert_int_equal(give(1, 100, 50, bytes, 51, 0, &descriptor), TB_ERR_PROTOCOL);
    assert_int_equal(give(1, 100, 50, bytes, 50, 0, &descriptor), TB_OK);
    assert_true(descriptor >= 0);
    close(descriptor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_become_one, open_store, close_store),
        cmocka_unit_test_setup_teardown(nonsense_is_refused, open_store, close_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The shared-memory transport: reading the memory of another process. */
#include "transport/shm/shm_test.h"

struct lender {
    struct host *host;
    char *lent;   /* filled by the child only, so the parent's own copy differs */
    int ready[2]; /* pipes: the child has filled, the parent has finished */
    int finished[2];
};

#define LENT_BYTES 300000

static char lent_byte(size_t i)
{
    return (char)(i * 7 + i / 253);
}

static void *lender_run(void *argument)
{
    struct lender *lender = argument;
    struct rank rank;
    rank_open(&rank, lender->host, 1);
    for (size_t i = 0; i < LENT_BYTES; i++)
        lender->lent[i] = lent_byte(i);
    char byte = 0;
    TB_ASSERT(write(lender->ready[1], &byte, 1) == 1);
    close(lender->finished[1]);
    TB_ASSERT(read(lender->finished[0], &byte, 1) == 0);
    rank_close(&rank);
    free(lender->lent);
    return NULL;
}

static pid_t lender_start(struct lender *lender, struct host *host)
{
    lender->host = host;
    lender->lent = malloc(LENT_BYTES);
    assert_non_null(lender->lent);
    memset(lender->lent, 0, LENT_BYTES);
    assert_int_equal(pipe2(lender->ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(lender->finished, O_CLOEXEC), 0);
    pid_t child = start_child(lender_run, lender);
    char byte;
    assert_int_equal(read(lender->ready[0], &byte, 1), 1);
    return child;
}

static void lender_end(struct lender *lender, pid_t child)
{
    close(lender->finished[1]);
    end_child(child);
    close(lender->finished[0]);
    close(lender->ready[0]);
    close(lender->ready[1]);
    free(lender->lent);
}

static void check_lent(const char *bytes, size_t from, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != lent_byte(from + i))
            fail_msg("byte %zu is wrong", i);
    }
}

static void test_read(void **state)
{
    struct host host;
    struct lender lender;
    struct rank rank;
    host_make(&host, 2, 16 << 10);
    pid_t child = lender_start(&lender, &host);
    rank_open(&rank, &host, 0);
    struct tb_endpoint *from = rank_reach(&rank, 1);
    char *into = calloc(1, LENT_BYTES);
    uint64_t address = (uint64_t)(uintptr_t)lender.lent;
    struct tb_spans spans = tb_spans_of(into, LENT_BYTES);
    bool possible = rank.transport->capabilities & TB_CAP_REMOTE_READ;
    int answer = shm->read(from, address, &spans, LENT_BYTES);
    if (possible && answer == TB_OK) {
        assert_int_equal(spans.left, 0);
        check_lent(into, 0, LENT_BYTES);
        memset(into, 0, LENT_BYTES);
        spans = crumbs_of(into, LENT_BYTES - 100);
        assert_int_equal(shm->read(from, address + 99, &spans, LENT_BYTES - 100), TB_OK);
        check_lent(into, 99, LENT_BYTES - 100);
        spans = tb_spans_of(into, 0);
        assert_int_equal(shm->read(from, address, &spans, 0), TB_OK);
        /* Nothing is there: this message has to be sent, others may still be read. */
        spans = tb_spans_of(into, 8);
        assert_int_equal(shm->read(from, 64, &spans, 8), TB_ERR_FORBIDDEN);
        assert_true(rank.transport->capabilities & TB_CAP_REMOTE_READ);
    } else {
        assert_int_equal(answer, TB_ERR_FORBIDDEN);
        assert_int_equal(rank.transport->capabilities & TB_CAP_REMOTE_READ, 0);
    }
    free(into);
    rank_close(&rank);
    lender_end(&lender, child);
    host_end(&host);
}

/* The number of the process is that of another one, as it looks across PID namespaces. */
static void test_read_from_the_wrong_process(void **state)
{
    struct pair pair;
    pair_open(&pair, 16 << 10);
    tb_shm_page_of(pair.host.segment, 1)->card.token ^= 1;
    char bytes[8];
    struct tb_spans spans = tb_spans_of(bytes, 8);
    uint64_t address = (uint64_t)(uintptr_t)bytes;
    assert_int_equal(shm->read(rank_reach(&pair.a, 1), address, &spans, 8), TB_ERR_FORBIDDEN);
    assert_int_equal(spans.left, 8);
    assert_int_equal(pair.a.transport->capabilities, tb_transport_shm.capabilities);
    pair_close(&pair);
}

static void test_read_from_one_that_has_not_come(void **state)
{
    struct host host;
    struct rank rank;
    host_make(&host, 2, 16 << 10);
    rank_open(&rank, &host, 0);
    char bytes[8];
    struct tb_spans spans = tb_spans_of(bytes, 8);
    assert_int_equal(shm->read(rank_reach(&rank, 1), 4096, &spans, 8), TB_ERR_FORBIDDEN);
    rank_close(&rank);
    host_end(&host);
}

static void test_read_switched_off(void **state)
{
    struct host host;
    struct rank rank;
    host_make(&host, 1, 16 << 10);
    tb_shm_param.cross_memory = false;
    rank_open(&rank, &host, 0);
    assert_int_equal(rank.transport->capabilities, tb_transport_shm.capabilities);
    char bytes[8];
    struct tb_spans spans = tb_spans_of(bytes, 8);
    assert_int_equal(shm->read(rank_reach(&rank, 0), (uint64_t)(uintptr_t)bytes, &spans, 8), TB_ERR_FORBIDDEN);
    rank_close(&rank);
    host_end(&host);
}

/* As a container does: the call is answered with EPERM. Everything else goes on. */
static void *forbidden_run(void *argument)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    TB_ASSERT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    TB_ASSERT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    struct rank rank;
    rank_open(&rank, argument, 0);
    TB_ASSERT(rank.transport->capabilities == tb_transport_shm.capabilities);
    rank_close(&rank);
    struct plan plan = {.host = argument, .index = 0, .count = 2000, .targets = 1, .expected = 2000, .asleep = true};
    plan_run(&plan);
    return NULL;
}

static void test_forbidden_by_the_machine(void **state)
{
    struct host host;
    host_make(&host, 1, 16 << 10);
    end_child(start_child(forbidden_run, &host));
    host_end(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_read_from_the_wrong_process),
        cmocka_unit_test(test_read_from_one_that_has_not_come),
        cmocka_unit_test(test_read_switched_off),
        cmocka_unit_test(test_forbidden_by_the_machine),
    };
    if (tb_transports_load_params() != TB_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

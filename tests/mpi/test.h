/* What the multi-rank tests share: checks that say where, on which rank, what was expected and what was seen; data that
 * differs for each message; a few helpers. A test prints nothing when all is well, and ends with 1 when a check failed.
 *
 * Checks may be used in any thread. TEST_PEER=1 in the environment leaves out what only Tombolo promises: that is how
 * the tests themselves are checked, with other MPI libraries. */
#ifndef TB_TESTS_MPI_TEST_H
#define TB_TESTS_MPI_TEST_H

#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEST_STORIES   20 /* failures that a rank tells about; the others are counted */
#define TEST_GUARD     64 /* bytes behind a buffer that must stay as they are */
#define TEST_UNTOUCHED 0xA5

static int test_rank, test_size;
static _Atomic int test_failures;

/* ---- checks ------------------------------------------------------------------------------------------------------ */

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            test_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                                    \
    } while (0)
#define CHECK_EQUAL(seen, expected)   test_equal(__FILE__, __LINE__, #seen, (long long)(seen), (long long)(expected))
#define CHECK_DATA(data, bytes, seed) test_data(__FILE__, __LINE__, #data, data, bytes, seed)
#define CHECK_CLASS(call, class)      test_class(__FILE__, __LINE__, #call, call, class)
/* A status of a received message: source, tag, bytes. */
#define CHECK_STATUS(status, source, tag, bytes) test_status(__FILE__, __LINE__, #status, status, source, tag, bytes)

__attribute__((format(printf, 4, 5), unused)) static void test_fail(const char *file, int line, const char *expected,
                                                                    const char *format, ...)
{
    if (test_failures++ >= TEST_STORIES)
        return;
    char seen[512];
    va_list list;
    va_start(list, format);
    vsnprintf(seen, sizeof seen, format, list);
    va_end(list);
    fprintf(stderr, "%s:%d: rank %d of %d: expected %s; seen: %s\n", file, line, test_rank, test_size, expected, seen);
}

__attribute__((unused)) static bool test_equal(const char *file, int line, const char *what, long long seen,
                                               long long expected)
{
    if (seen == expected)
        return true;
    char text[64];
    snprintf(text, sizeof text, "%lld", expected);
    test_fail(file, line, text, "%lld as %s", seen, what);
    return false;
}

__attribute__((unused)) static void test_class(const char *file, int line, const char *call, int code, int expected)
{
    int class = -1, length = 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_class(code, &class);
    if (class == expected)
        return;
    MPI_Error_string(code, text, &length);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "error class %d", expected);
    test_fail(file, line, wanted, "class %d (%s) of %.120s", class, text, call);
}

__attribute__((unused)) static void test_status(const char *file, int line, const char *what, const MPI_Status *status,
                                                int source, int tag, size_t bytes)
{
    int count = -2;
    MPI_Get_count((MPI_Status *)status, MPI_BYTE, &count);
    if (status->MPI_SOURCE == source && status->MPI_TAG == tag && (size_t)count == bytes)
        return;
    char expected[96];
    snprintf(expected, sizeof expected, "a message from %d with tag %d of %zu bytes", source, tag, bytes);
    test_fail(file, line, expected, "from %d with tag %d of %d bytes in %s", status->MPI_SOURCE, status->MPI_TAG, count,
              what);
}

/* For what makes going on senseless. */
__attribute__((unused)) static void test_need(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "rank %d of %d: cannot go on: %s\n", test_rank, test_size, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* Word `i` of the data called `seed`. */
static inline uint64_t test_word(uint64_t seed, uint64_t i)
{
    uint64_t x = seed * 0x9E3779B97F4A7C15u + i + 1;
    x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9u;
    return x ^ (x >> 29);
}

__attribute__((unused)) static void test_fill(void *data, size_t bytes, uint64_t seed)
{
    unsigned char *at = data;
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t word = test_word(seed, i / sizeof word);
        memcpy(at + i, &word, bytes - i < sizeof word ? bytes - i : sizeof word);
    }
}

__attribute__((unused)) static bool test_data(const char *file, int line, const char *what, const void *data,
                                              size_t bytes, uint64_t seed)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t word = test_word(seed, i / sizeof word);
        size_t length = bytes - i < sizeof word ? bytes - i : sizeof word;
        if (memcmp(at + i, &word, length) == 0)
            continue;
        size_t bad = 0;
        while (at[i + bad] == ((unsigned char *)&word)[bad])
            bad++;
        char expected[96];
        snprintf(expected, sizeof expected, "0x%02x in byte %zu of %zu", ((unsigned char *)&word)[bad], i + bad, bytes);
        test_fail(file, line, expected, "0x%02x in %s (data %llu)", at[i + bad], what, (unsigned long long)seed);
        return false;
    }
    return true;
}

__attribute__((unused)) static void *test_memory(size_t bytes)
{
    void *memory = malloc(bytes + TEST_GUARD);
    test_need(memory != NULL, "there is no memory");
    memset(memory, TEST_UNTOUCHED, bytes + TEST_GUARD);
    return memory;
}

/* Makes a buffer ready to receive into: nothing of it is right already. */
__attribute__((unused)) static void test_clear(void *data, size_t bytes)
{
    memset(data, TEST_UNTOUCHED, bytes + TEST_GUARD);
}

/* Whether the bytes from `data` on still are as test_clear left them. */
__attribute__((unused)) static bool test_untouched(const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)data)[i] != TEST_UNTOUCHED)
            return false;
    return true;
}

/* A sequence of random numbers, the same in every run. */
__attribute__((unused)) static uint64_t test_random(uint64_t *state)
{
    return test_word(0x7E57, (*state)++) >> 11;
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* Seconds of a clock that all ranks share, since all test hosts are this machine. */
__attribute__((unused)) static double test_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

__attribute__((unused)) static void test_sleep(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&time, &time) != 0)
        continue;
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

__attribute__((unused)) static bool test_peer(void)
{
    return getenv("TEST_PEER") != NULL;
}

__attribute__((unused)) static void test_begin_threads(int *argc, char ***argv, int level)
{
    int provided = -1;
    MPI_Init_thread(argc, argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &test_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &test_size);
    test_need(provided >= level, "the library does not provide the level of thread support that was asked for");
}

__attribute__((unused)) static void test_begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &test_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &test_size);
}

__attribute__((unused)) static int test_verdict(void)
{
    if (test_failures > TEST_STORIES)
        fprintf(stderr, "rank %d of %d: %d failures in all\n", test_rank, test_size, test_failures);
    return test_failures != 0;
}

__attribute__((unused)) static int test_end(void)
{
    MPI_Finalize();
    return test_verdict();
}

/* The ring: the neighbours of this rank; itself when it is alone. */
static inline int test_next(void)
{
    return (test_rank + 1) % test_size;
}

static inline int test_previous(void)
{
    return (test_rank + test_size - 1) % test_size;
}

#endif

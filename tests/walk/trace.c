/* Notes which functions a process enters and leaves, and when. Loaded in front of programs and libraries that were
 * compiled with -finstrument-functions, in the place of the two functions of the C library that do nothing.
 *
 * Each process that calls one has a file in the folder that WALK_DIR names, called by its number: the count of notes,
 * then the last ROOM of them, as a ring. NUMBER.maps says where its code lies. Notes of all threads are in one file, in
 * order; they are in mapped memory, so that they are there however the process ends. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ROOM         (1u << 20)
#define HEAD_BYTES   4096u
#define THREAD_SHIFT 52 /* addresses have fewer bits */
#define LEFT_BIT     (UINT64_C(1) << 63)

struct note {
    uint64_t when; /* ns of the clock that all processes share */
    uint64_t what; /* address of the function; number of the thread; whether it is left */
};

struct notes {
    _Atomic uint64_t count;
    char rest[HEAD_BYTES - sizeof(uint64_t)];
    struct note ring[ROOM];
};

static struct notes *notes;
static atomic_bool opening;
static atomic_uint threads;
static __thread uint64_t thread;

void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

/* A copy of the process has a file of its own. */
static void forked(void)
{
    notes = NULL;
    opening = false;
}

static void maps_copy(const char *folder)
{
    char path[512], block[4096];
    snprintf(path, sizeof path, "%s/%d.maps", folder, (int)getpid());
    int from = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (ssize_t n; from >= 0 && to >= 0 && (n = read(from, block, sizeof block)) > 0;)
        if (write(to, block, (size_t)n) < n)
            break;
    close(from);
    close(to);
}

/* The first to call a function in a process opens the file. */
static void notes_open(void)
{
    static bool once;
    const char *folder = getenv("WALK_DIR");
    char path[512];
    if (folder == NULL || atomic_exchange(&opening, true))
        return;
    snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *map = MAP_FAILED;
    if (file >= 0 && ftruncate(file, sizeof(struct notes)) == 0)
        map = mmap(NULL, sizeof(struct notes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (map == MAP_FAILED)
        return;
    maps_copy(folder);
    if (!once)
        pthread_atfork(NULL, NULL, forked);
    once = true;
    notes = map;
}

static void note(void *function, uint64_t left)
{
    struct timespec now;
    if (notes == NULL)
        notes_open();
    if (notes == NULL)
        return;
    if (thread == 0)
        thread = atomic_fetch_add(&threads, 1) + 1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    notes->ring[atomic_fetch_add(&notes->count, 1) % ROOM] =
        (struct note){.when = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
                      .what = (uint64_t)(uintptr_t)function | thread << THREAD_SHIFT | left};
}

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    note(function, 0);
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)caller;
    note(function, LEFT_BIT);
}

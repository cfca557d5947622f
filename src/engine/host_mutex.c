#include "engine/host_mutex.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOKS   1000                /* before sleeping */
#define LONG    50                  /* ms of sleep before it is looked whether the holder lives */
#define AWAITED (UINT32_C(1) << 31) /* beside the holder's number and one: others sleep */

bool tb_host_mutex_is_dead(uint32_t process)
{
    char path[64], text[256];
    if (kill((pid_t)process, 0) != 0)
        return errno == ESRCH;
    snprintf(path, sizeof path, "/proc/%u/stat", process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    text[n > 0 ? n : 0] = 0;
    if (file >= 0)
        close(file);
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && (strncmp(name_end, ") Z", 3) == 0 || strncmp(name_end, ") X", 3) == 0);
}

static void sleep_until_changed(_Atomic uint32_t *mutex, uint32_t value)
{
    const struct timespec most = {.tv_nsec = LONG * 1000000L};
    syscall(SYS_futex, (void *)mutex, FUTEX_WAIT, value, &most, NULL, 0);
}

static void enter_late(_Atomic uint32_t *mutex, uint32_t mine, bool (*is_dead)(void *context, uint32_t who),
                       void *context)
{
    uint32_t seen = 0; /* nobody; or one that is dead */
    while (!atomic_compare_exchange_strong_explicit(mutex, &seen, mine, memory_order_acquire, memory_order_relaxed)) {
        uint32_t awaited = seen | AWAITED;
        bool told = seen == awaited || (seen != 0 && atomic_compare_exchange_strong(mutex, &seen, awaited));
        seen = 0;
        if (!told)
            continue;
        sleep_until_changed(mutex, awaited);
        if (atomic_load(mutex) == awaited && is_dead(context, (awaited & ~AWAITED) - 1))
            seen = awaited;
    }
}

void tb_host_mutex_enter(_Atomic uint32_t *mutex, uint32_t who, bool (*is_dead)(void *context, uint32_t who),
                         void *context)
{
    for (int looks = 0; looks < LOOKS; looks++) {
        uint32_t nobody = 0;
        if (atomic_load_explicit(mutex, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong_explicit(mutex, &nobody, who + 1, memory_order_acquire,
                                                    memory_order_relaxed))
            return;
    }
    enter_late(mutex, (who + 1) | AWAITED, is_dead, context);
}

void tb_host_mutex_leave(_Atomic uint32_t *mutex)
{
    if (atomic_exchange_explicit(mutex, 0, memory_order_release) & AWAITED)
        syscall(SYS_futex, (void *)mutex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

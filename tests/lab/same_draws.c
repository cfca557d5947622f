/* Preloaded into a launcher, it makes what that draws for a multicast group the same in each job, so that two of them
 * collide: of random numbers of eight bytes all are alike. Keys and numbers of jobs have other lengths, and agents and
 * ranks are left alone. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((constructor)) static void only_here(void)
{
    unsetenv("LD_PRELOAD");
}

ssize_t getrandom(void *bytes, size_t length, unsigned flags)
{
    if (length != 8)
        return syscall(SYS_getrandom, bytes, length, flags);
    memset(bytes, 7, length);
    return (ssize_t)length;
}

/* When standard output comes. The C library keeps what a program prints to a pipe back until 4 KiB are there; what a
 * rank prints should be seen at once, and be there after a crash. So where standard output is the pipe of our agent and
 * nobody has said how it is to be buffered, it is told to pass on each line.
 *
 * This happens when the library is loaded, since MPI_Init may come behind the first words. It is the program's guest
 * then: no memory, no message, and errno stays. */
#include "job/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/stat.h>

__attribute__((constructor(101))) static void settle(void)
{
    const int before = errno;
    const char *text = getenv(TB_OUTPUT_VARIABLE);
    unsigned buffering;
    unsigned long long device, inode;
    struct stat about;
    if (text != NULL && sscanf(text, "%u:%llx:%llx", &buffering, &device, &inode) == 3 &&
        (buffering == TB_BUFFERING_LINE || buffering == TB_BUFFERING_NONE) && fstat(1, &about) == 0 &&
        S_ISFIFO(about.st_mode) && about.st_dev == device && about.st_ino == inode && fileno(stdout) == 1 &&
        __fbufsize(stdout) == 0 && !__flbf(stdout))
        setvbuf(stdout, NULL, buffering == TB_BUFFERING_LINE ? _IOLBF : _IONBF, 0);
    errno = before;
}

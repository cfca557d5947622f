#include "agent/pseudo_terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

int tb_pseudo_terminal_open(int ends[2], uint32_t size)
{
    char name[64];
    struct termios settings;
    const struct winsize window = {.ws_row = (unsigned short)(size >> 16), .ws_col = (unsigned short)(size & 0xffff)};
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[0] < 0 || grantpt(ends[0]) < 0 || unlockpt(ends[0]) < 0 || ptsname_r(ends[0], name, sizeof name) != 0)
        return TB_ERR_SYSTEM;
    /* Not the terminal of our session: no signal of it is for the ranks. */
    ends[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[1] < 0 || tcgetattr(ends[1], &settings) < 0)
        return TB_ERR_SYSTEM;
    settings.c_oflag &= ~(tcflag_t)OPOST; /* a line ends as the rank wrote it */
    settings.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG);
    if (tcsetattr(ends[1], TCSANOW, &settings) < 0)
        return TB_ERR_SYSTEM;
    if (size != 0)
        ioctl(ends[0], TIOCSWINSZ, &window);
    return TB_OK;
}

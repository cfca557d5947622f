/* The `tombolo` command: chooses the subcommand. Called as mpiexec or mpirun it is `tombolo run`. */
#include "command.h"
#include "help_texts.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = TB_HELP_TOMBOLO;

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Descriptors that we open must not become somebody's standard streams. */
static void fill_standard_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd < 3 && fcntl(fd, F_SETFD, 0) == 0);
    if (fd >= 3)
        close(fd);
}

static int run_command(const char *name, int argc, char **argv)
{
    if (strcmp(name, "mpiexec") == 0 || strcmp(name, "mpirun") == 0)
        return tb_command_run(name, argv + 1);
    const char *command = argc > 1 ? argv[1] : "";
    if (strcmp(command, "run") == 0)
        return tb_command_run("tombolo run", argv + 2);
    if (strcmp(command, "agent") == 0)
        return tb_command_agent(argv + 2);
    if (strcmp(command, "grid") == 0)
        return tb_command_grid(argv + 2);
    if (strcmp(command, "info") == 0)
        return tb_command_info(argv + 2);
    if (strcmp(command, "lab") == 0)
        return tb_command_lab(argv + 2);
    if (strcmp(command, "explain") == 0)
        return tb_command_explain(argv + 2);
    if (strcmp(command, "probe") == 0)
        return tb_command_probe(argv + 2);
    if (strcmp(command, "route") == 0)
        return tb_command_route(argv + 2);
    if (strcmp(command, "version") == 0 || strcmp(command, "--version") == 0 || strcmp(command, "-V") == 0) {
        printf("Tombolo %s\n", TB_VERSION);
        return 0;
    }
    if (strcmp(command, "help") == 0 || strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (*command != 0)
        fprintf(stderr, "tombolo: there is no command \"%s\"\n", command);
    fputs(usage, stderr);
    return 2;
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    const char *name = argc > 0 ? base_name(argv[0]) : "tombolo";
    int code = run_command(name, argc, argv);
    /* What was not written is no success: a full disk, for example. */
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0) {
        fprintf(stderr, "%s: cannot write everything to standard output%s%s\n", name, errno != 0 ? ": " : "",
                errno != 0 ? strerror(errno) : "");
        code = 1;
    }
    return code;
}

/* The `tombolo` command: chooses the subcommand. Called as mpiexec or mpirun it is `tombolo run`. */
#include "command.h"
#include "help_texts.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

static int run(char **words)
{
    return tb_command_run("tombolo run", words);
}

static int print_version(char **words)
{
    printf("Tombolo %s\n", TB_VERSION);
    return 0;
}

static int print_help(char **words)
{
    fputs(usage, stdout);
    return 0;
}

/* docs/man/tombolo.txt lists those that users call. */
static const struct {
    const char *name;
    int (*call)(char **words);
} commands[] = {
    {"run", run},
    {"agent", tb_command_agent},
    {"explain", tb_command_explain},
    {"grid", tb_command_grid},
    {"info", tb_command_info},
    {"lab", tb_command_lab},
    {"meet", tb_command_meet},
    {"plan", tb_command_plan},
    {"probe", tb_command_probe},
    {"route", tb_command_route},
    {"sim", tb_command_sim},
    {"version", print_version},
    {"--version", print_version},
    {"-V", print_version},
    {"help", print_help},
    {"--help", print_help},
    {"-h", print_help},
};

static int run_command(const char *name, int argc, char **argv)
{
    if (strcmp(name, "mpiexec") == 0 || strcmp(name, "mpirun") == 0)
        return tb_command_run(name, argv + 1);
    const char *command = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(command, commands[i].name) == 0)
            return commands[i].call(argv + 2);
    if (*command != 0)
        fprintf(stderr, "tombolo: there is no command \"%s\"\n", command);
    fputs(usage, stderr);
    return 2;
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error with a name */
    const char *name = argc > 0 ? base_name(argv[0]) : "tombolo";
    int code = run_command(name, argc, argv);
    /* What was not written is no success: a full disk, for example. */
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0) {
        char limit[64];
        /* What failed before the last flush is not known any more, but it fails again. */
        int error = errno != 0 || write(STDOUT_FILENO, "\n", 1) < 0 ? errno : 0;
        fprintf(stderr, "%s: cannot write everything to standard output%s%s%s\n", name, error != 0 ? ": " : "",
                error != 0 ? strerror(error) : "", tb_error_limit(error, limit, sizeof limit));
        code = 1;
    }
    return code;
}

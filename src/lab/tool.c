/* Running ip, tc and nft. */
#include "lab/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_A_TIME  8
#define SAID_BYTES 600

static const struct {
    const char *name, *package;
    const char *const arguments[4];
} programs[] = {
    [TB_TOOL_IP] = {"ip", "iproute2", {"ip", "-batch", "-", NULL}},
    [TB_TOOL_TC] = {"tc", "iproute2", {"tc", "-batch", "-", NULL}},
    [TB_TOOL_NFT] = {"nft", "nftables", {"nft", "-f", "-", NULL}},
};

/* Where administrators' tools are, also for users whose PATH does not name it. */
static bool find(const char *name, char *path, size_t room)
{
    static const char *const folders[] = {"/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, room, "%s/%s", folders[i], name);
        if (access(path, X_OK) == 0)
            return true;
    }
    const char *rest = getenv("PATH");
    while (rest != NULL && *rest != 0) {
        size_t length = strcspn(rest, ":");
        snprintf(path, room, "%.*s/%s", (int)length, rest, name);
        if (length > 0 && access(path, X_OK) == 0)
            return true;
        rest += length + (rest[length] == ':');
    }
    return false;
}

int tb_tool_find(enum tb_tool_program program)
{
    char path[4096];
    if (find(programs[program].name, path, sizeof path))
        return TB_OK;
    return tb_error(TB_ERR_UNSUPPORTED, "a lab needs the program %s, which is not here; it comes with the package %s",
                    programs[program].name, programs[program].package);
}

int tb_tool_open(struct tb_tool *tool, enum tb_tool_program program, int space, const char *where)
{
    *tool = (struct tb_tool){.program = program, .space = space, .where = where, .output = -1};
    tool->to = open_memstream(&tool->text, &tool->length);
    return tool->to != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the commands of %s", where);
}

void tb_tool_close(struct tb_tool *tool)
{
    if (tool->to != NULL)
        fclose(tool->to);
    free(tool->text);
    if (tool->output >= 0)
        close(tool->output);
    *tool = (struct tb_tool){.output = -1};
}

static int input_of(const struct tb_tool *tool)
{
    int fd = memfd_create("tombolo-lab", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    for (size_t done = 0; done < tool->length;) {
        ssize_t n = pwrite(fd, tool->text + done, tool->length - done, (off_t)done);
        if (n <= 0) {
            close(fd);
            return -1;
        }
        done += (size_t)n;
    }
    return fd;
}

static _Noreturn void become(const struct tb_tool *tool, int input, const int *kept, uint32_t kept_count)
{
    char path[4096];
    char *environment[] = {(char *)"LC_ALL=C", (char *)"PATH=/usr/sbin:/sbin:/usr/bin:/bin", NULL};
    if (setns(tool->space, CLONE_NEWNET) != 0 || !find(programs[tool->program].name, path, sizeof path))
        _exit(126);
    for (uint32_t i = 0; i < kept_count; i++)
        fcntl(kept[i], F_SETFD, 0);
    dup2(input, 0);
    dup2(tool->output, 1);
    dup2(tool->output, 2);
    execve(path, (char *const *)programs[tool->program].arguments, environment);
    _exit(127);
}

static int start(struct tb_tool *tool, const int *kept, uint32_t kept_count)
{
    int input = input_of(tool);
    tool->output = memfd_create("tombolo-lab", MFD_CLOEXEC);
    tool->pid = input >= 0 && tool->output >= 0 ? fork() : -1;
    if (tool->pid == 0)
        become(tool, input, kept, kept_count);
    int rc =
        tool->pid > 0 ? TB_OK : tb_error_errno("cannot start %s for %s", programs[tool->program].name, tool->where);
    if (input >= 0)
        close(input);
    return rc;
}

static int finish(struct tb_tool *tool)
{
    int status = 0;
    while (waitpid(tool->pid, &status, 0) < 0)
        if (errno != EINTR)
            return tb_error_errno("cannot wait for %s", programs[tool->program].name);
    tool->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return TB_OK;
    char said[SAID_BYTES];
    ssize_t n = pread(tool->output, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = 0;
    for (char *c = said; *c != 0; c++)
        *c = *c == '\n' ? (c[1] != 0 ? ' ' : 0) : *c;
    return tb_error(TB_ERR_SYSTEM, "the network of %s cannot be set up: %s says: %s", tool->where,
                    programs[tool->program].name, *said != 0 ? said : "nothing");
}

int tb_tools_run(struct tb_tool *tools, uint32_t count, const int *kept, uint32_t kept_count)
{
    int rc = TB_OK;
    uint32_t ended = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct tb_tool *tool = &tools[i];
        bool fine = tool->to == NULL || fclose(tool->to) == 0;
        tool->to = NULL;
        if (!fine && rc == TB_OK)
            rc = tb_error(TB_ERR_MEMORY, "no memory for the commands of %s", tool->where);
        if (rc == TB_OK && tool->length > 0)
            rc = start(tool, kept, kept_count);
        for (; ended <= i && (i - ended >= AT_A_TIME - 1 || rc != TB_OK); ended++) {
            int own = tools[ended].pid > 0 ? finish(&tools[ended]) : TB_OK;
            rc = rc == TB_OK ? own : rc;
        }
    }
    for (; ended < count; ended++) {
        int own = tools[ended].pid > 0 ? finish(&tools[ended]) : TB_OK;
        rc = rc == TB_OK ? own : rc;
    }
    for (uint32_t i = 0; i < count; i++)
        tb_tool_close(&tools[i]);
    return rc;
}

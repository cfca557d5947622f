/* The command that brings an agent to life on a host. */
#include "remote/remote.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

extern char **environ;

void tb_shell_free(char **words)
{
    for (char **word = words; word != NULL && *word != NULL; word++)
        free(*word);
    free(words);
}

static int add(char **words, const char *text, size_t length)
{
    size_t n = 0;
    while (words[n] != NULL)
        n++;
    if (n >= TB_SHELL_WORDS)
        return tb_error(TB_ERR_LIMIT, "the launcher command has more than %d words", TB_SHELL_WORDS);
    words[n] = strndup(text, length);
    return words[n] != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for a command");
}

static int add_all(char **words, const char *text)
{
    int rc = TB_OK;
    while (rc == TB_OK) {
        text += strspn(text, " \t");
        size_t length = strcspn(text, " \t");
        if (length == 0)
            break;
        rc = add(words, text, length);
        text += length;
    }
    return rc;
}

/* The path for a shell: in single quotes if it has characters that a shell would take for its own. */
static char *quote(const char *text)
{
    bool plain = *text != 0;
    for (const char *c = text; *c != 0; c++)
        plain = plain && (isalnum((unsigned char)*c) || strchr("/._-+,:@%=", *c) != NULL);
    if (plain)
        return strdup(text);
    char *quoted = malloc(strlen(text) * 4 + 3), *to = quoted;
    if (quoted == NULL)
        return NULL;
    *to++ = '\'';
    for (const char *c = text; *c != 0; c++) {
        if (*c == '\'')
            to = stpcpy(to, "'\\''");
        else
            *to++ = *c;
    }
    *to++ = '\'';
    *to = 0;
    return quoted;
}

static bool is_ssh(const char *command)
{
    size_t length = strcspn(command, " \t"), from = length;
    while (from > 0 && command[from - 1] != '/')
        from--;
    return length - from == 3 && memcmp(command + from, "ssh", 3) == 0;
}

static int add_target(char **words, const struct tb_shell_target *target)
{
    char *host = NULL, *program = quote(target->program), *command = NULL;
    int rc = TB_OK;
    bool made = program != NULL && asprintf(&command, "exec %s agent", program) >= 0;
    if (made && target->user != NULL)
        made = asprintf(&host, "%s@%s", target->user, target->host) >= 0;
    if (!made)
        rc = tb_error(TB_ERR_MEMORY, "no memory for a command");
    const char *name = host != NULL ? host : target->host;
    if (rc == TB_OK)
        rc = add(words, name, strlen(name));
    if (rc == TB_OK)
        rc = add(words, command, strlen(command));
    free(program);
    free(command);
    free(host);
    return rc;
}

int tb_shell_words(const struct tb_shell_target *target, char ***words)
{
    char **made = calloc(TB_SHELL_WORDS + 1, sizeof *made);
    if (made == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a command");
    int rc = TB_OK;
    if (target->local) {
        rc = add_all(made, "tombolo agent");
    } else {
        const char *command = target->command != NULL ? target->command : "ssh";
        rc = add_all(made, command);
        if (rc == TB_OK && made[0] == NULL)
            rc = tb_error(TB_ERR_ARGUMENT, "the launcher command is empty");
        if (rc == TB_OK && target->command == NULL)
            rc = add_all(made, "-o BatchMode=yes -o ConnectTimeout=10 -T -x");
        if (rc == TB_OK && target->port != 0) {
            char option[32];
            snprintf(option, sizeof option, "-p %u", target->port);
            rc = is_ssh(command)
                     ? add_all(made, option)
                     : tb_error(TB_ERR_ARGUMENT,
                                "host %s has port=%u, but only ssh knows what to do with a port, not \"%s\"",
                                target->host, target->port, command);
        }
        if (rc == TB_OK)
            rc = add_target(made, target);
    }
    if (rc != TB_OK) {
        tb_shell_free(made);
        return rc;
    }
    *words = made;
    return TB_OK;
}

static int explain_start(const char *name, const struct tb_shell_target *target)
{
    if (errno == ENOENT)
        return tb_error(TB_ERR_ARGUMENT,
                        "cannot reach host %s: the command \"%s\" was not found here; install it, or name another one "
                        "with --launcher",
                        target->host, name);
    char limit[64];
    return tb_error(TB_ERR_SYSTEM, "cannot run \"%s\" to reach host %s: %s%s", name, target->host, strerror(errno),
                    tb_error_limit(errno, limit, sizeof limit));
}

/* Ours, with the mark; NULL: no memory. What it points to is not copied. */
static char **mark_environment(void)
{
    size_t count = 0, n = 0;
    while (environ[count] != NULL)
        count++;
    char **marked = calloc(count + 2, sizeof *marked);
    if (marked == NULL)
        return NULL;
    marked[n++] = (char *)TB_SHELL_MARK;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], TB_SHELL_MARK_NAME "=", sizeof TB_SHELL_MARK_NAME) != 0)
            marked[n++] = environ[i];
    return marked;
}

int tb_shell_start(const struct tb_shell_target *target, const sigset_t *mask, struct tb_shell *shell)
{
    *shell = (struct tb_shell){.pid = -1, .stream = -1, .errors = -1};
    int sockets[2] = {-1, -1}, errors[2] = {-1, -1};
    char *path = NULL, **words = NULL, **environment = NULL;
    int rc = tb_shell_words(target, &words);
    if (rc != TB_OK)
        return rc;
    environment = mark_environment();
    if (environment == NULL) {
        rc = tb_error(TB_ERR_MEMORY, "no memory for a command");
        goto out;
    }
    path = target->local ? strdup("/proc/self/exe") : tb_program_find(words[0], getenv("PATH"), NULL);
    if (path == NULL) {
        rc = explain_start(words[0], target);
        goto out;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0 ||
        (!target->local && pipe2(errors, O_CLOEXEC) < 0)) {
        rc = tb_error_errno("cannot make streams for host %s", target->host);
        goto out;
    }
    /* A remote shell that is still connecting does not look at its input, so it must die with us. A local agent sees
     * the end of its stream and can then end its ranks' own children too. */
    struct tb_child child = {.path = path,
                             .arguments = words,
                             .environment = environment,
                             .streams = {sockets[1], sockets[1], errors[1]},
                             .keep = -1,
                             .death_signal = target->local ? 0 : SIGKILL,
                             .mask = mask};
    enum tb_child_stage stage;
    if (tb_child_start(&child, &shell->pid, &stage) != TB_OK) {
        rc = explain_start(words[0], target);
        goto out;
    }
    fcntl(sockets[0], F_SETFL, O_NONBLOCK);
    if (errors[0] >= 0)
        fcntl(errors[0], F_SETFL, O_NONBLOCK);
    shell->stream = sockets[0];
    shell->errors = errors[0];
    sockets[0] = errors[0] = -1;
out:
    for (int i = 0; i < 2; i++) {
        if (sockets[i] >= 0)
            close(sockets[i]);
        if (errors[i] >= 0)
            close(errors[i]);
    }
    free(path);
    free(environment);
    tb_shell_free(words);
    return rc;
}

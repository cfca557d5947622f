/* Labs as commands see them: making one, finding one, asking its keeper. */
#include "lab/lab.h"

#include "lab/keeper.h"
#include "lab/passing.h"
#include "lab/lab_plan.h"
#include "lab/space.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define DOWN_PATIENCE_MS 10000
#define NAMES_LIMIT      1000 /* numbers behind a name that is taken */

/* ---- up ---------------------------------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length >= TB_LAB_NAME_BYTES || *name == '-') /* which commands would take for an option */
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && strchr("-_.", name[i]) == NULL)
            return false;
    return true;
}

/* "examples/grids/three.yaml" gives "three". */
static void name_after(const char *file, char *name)
{
    const char *slash = strrchr(file, '/');
    const char *from = slash != NULL ? slash + 1 : file;
    size_t length = 0, room = TB_LAB_NAME_BYTES - 8; /* for a number */
    const char *end = strrchr(from, '.');
    from += strspn(from, "-");
    for (; *from != 0 && from != end && length < room; from++)
        name[length++] = isalnum((unsigned char)*from) || strchr("-_.", *from) != NULL ? *from : '-';
    name[length] = 0;
    if (length == 0)
        snprintf(name, TB_LAB_NAME_BYTES, "lab");
}

/* The socket is what makes a name taken. */
static int take_name(const char *file, const char *wanted, char *got)
{
    char base[TB_LAB_NAME_BYTES];
    if (wanted != NULL && !is_name(wanted)) {
        tb_error(TB_ERR_ARGUMENT,
                 "\"%s\" cannot be the name of a lab: letters, digits, '-', '_' and '.' can, up to %d of them, but "
                 "no '-' at its beginning",
                 wanted, TB_LAB_NAME_BYTES - 1);
        return -1;
    }
    if (wanted != NULL)
        snprintf(base, sizeof base, "%s", wanted);
    else
        name_after(file, base);
    for (unsigned number = 1; number <= NAMES_LIMIT; number++) {
        snprintf(got, TB_LAB_NAME_BYTES, "%.*s", TB_LAB_NAME_BYTES - 8, base);
        if (number > 1)
            snprintf(got + strlen(got), 8, "-%u", number);
        else
            snprintf(got, TB_LAB_NAME_BYTES, "%s", base);
        int fd = tb_keeper_listen(got);
        if (fd >= 0)
            return fd;
        if (errno != EADDRINUSE) {
            tb_error_errno("cannot make a socket for the lab");
            return -1;
        }
        if (wanted != NULL)
            break;
    }
    tb_error(TB_ERR_ARGUMENT, "there is a lab called %s already; `tombolo lab down %s` ends it", base, base);
    return -1;
}

static int await_keeper(int starter, pid_t pid, bool stay, char *note)
{
    char answer[1200];
    int rc = tb_pass_take(starter, answer, sizeof answer, NULL, NULL);
    bool fine = rc == TB_OK && strncmp(answer, "ok\n", 3) == 0;
    snprintf(note, TB_LAB_NOTE_BYTES, "%.*s", TB_LAB_NOTE_BYTES - 1, fine ? answer + 3 : "");
    if (rc == TB_OK && !fine)
        rc = tb_error(TB_ERR_SYSTEM, "%s", answer);
    else if (rc != TB_OK)
        rc = tb_error(TB_ERR_SYSTEM, "the keeper of the lab has died while it was building");
    if (rc == TB_OK && stay) {
        rc = tb_pass(starter, "keep", NULL, 0);
        if (rc == TB_OK)
            rc = tb_pass_take(starter, answer, sizeof answer, NULL, NULL);
    }
    if (rc != TB_OK)
        waitpid(pid, NULL, 0);
    return rc;
}

/* Which congestion control it is to have, and whether it can: who asks for what this kernel has not should know. */
static int choose_congestion(const struct tb_grid *grid, const char *asked, const char **name)
{
    if (asked != NULL && !tb_congestion_is_name(asked))
        return tb_error(TB_ERR_ARGUMENT, "\"%s\" cannot be a congestion control; as in: cubic", asked);
    if (asked == NULL && *grid->congestion != 0)
        asked = grid->congestion;
    *name = asked != NULL ? asked : *name;
    return asked != NULL ? tb_congestion_find(asked) : TB_OK;
}

/* The keeper has copies of all that we close. */
static int start_keeper(struct tb_keeper_start *start, int starter, char *note)
{
    int rc = tb_congestion_allow(&start->permit, TB_CONGESTION_LIST, start->congestion);
    fflush(NULL);
    pid_t pid = rc == TB_OK ? tb_space_fork() : -1;
    if (pid == 0) {
        close(starter);
        tb_keeper_run(start);
    }
    tb_congestion_let_go(&start->permit);
    close(start->listener);
    close(start->starter);
    if (rc == TB_OK)
        rc = pid > 0 ? await_keeper(starter, pid, start->stay, note) : TB_ERR_FORBIDDEN;
    tb_congestion_await(&start->permit);
    return rc;
}

int tb_lab_up(const struct tb_grid *grid, const struct tb_lab_wish *wish, char *got, char *note)
{
    struct tb_lab_plan plan;
    const char *congestion = TB_CONGESTION_DEFAULT;
    int ends[2],
        rc = tb_lab_plan_make(&plan, grid); /* so that a grid that is too large fails before anything is done */
    if (rc != TB_OK)
        return rc;
    tb_lab_plan_close(&plan);
    rc = choose_congestion(grid, wish->congestion, &congestion);
    if (rc != TB_OK)
        return rc;
    int listener = take_name(grid->file, wish->name, got);
    if (listener < 0)
        return TB_ERR_ARGUMENT;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        close(listener);
        return tb_error_errno("cannot make a socket for the lab");
    }
    struct tb_keeper_start start = {.grid = grid,
                                    .name = got,
                                    .listener = listener,
                                    .starter = ends[1],
                                    .stay = wish->stay,
                                    .congestion = congestion,
                                    .uid = geteuid(),
                                    .gid = getegid()};
    rc = start_keeper(&start, ends[0], note);
    if (rc != TB_OK || wish->stay)
        close(ends[0]); /* else its end tells the keeper of ours */
    return rc;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* One request of several words; what comes behind "ok" in the answer, and the descriptors that come with it. */
static int ask(const char *name, const char *const *words, uint32_t count, char *answer, size_t room, int *descriptors,
               uint32_t *descriptor_count)
{
    char text[TB_KEEPER_REQUEST_BYTES];
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t length = strlen(words[i]) + 1;
        if (used + length > sizeof text)
            return tb_error(TB_ERR_LIMIT, "the request to the lab is too long");
        memcpy(text + used, words[i], length);
        used += length;
    }
    int fd = tb_keeper_connect(name);
    if (fd < 0)
        return tb_error(TB_ERR_PEER, "there is no lab %s; `tombolo lab ls` shows those that are up", name);
    int rc = send(fd, text, used, MSG_NOSIGNAL) == (ssize_t)used ? TB_OK : tb_error_errno("cannot ask lab %s", name);
    if (rc == TB_OK)
        rc = tb_pass_take(fd, answer, room, descriptors, descriptor_count);
    close(fd);
    if (rc != TB_OK)
        return rc;
    if (strncmp(answer, "ok", 2) != 0)
        return tb_error(TB_ERR_ARGUMENT, "%s", strncmp(answer, "error ", 6) == 0 ? answer + 6 : answer);
    size_t before = answer[2] == '\n' ? 3 : 2;
    memmove(answer, answer + before, room - before);
    return TB_OK;
}

int tb_lab_ask(const char *name, const char *const *words, uint32_t count, char *answer, size_t room)
{
    return ask(name, words, count, answer, room, NULL, NULL);
}

int tb_lab_spaces(const char *name, const char *host, int *descriptors)
{
    char answer[1200];
    const char *words[] = {"enter", host};
    uint32_t count = TB_KEEPER_DESCRIPTORS;
    int rc = ask(name, words, 2, answer, sizeof answer, descriptors, &count);
    if (rc == TB_OK && count != TB_KEEPER_DESCRIPTORS)
        rc = tb_error(TB_ERR_PROTOCOL, "lab %s has not given its namespaces", name);
    return rc;
}

int tb_lab_down(const char *name)
{
    char answer[1200];
    const char *words[] = {"end"};
    struct pollfd gone = {.fd = -1, .events = POLLIN};
    uint32_t count = 1;
    int rc = ask(name, words, 1, answer, sizeof answer, &gone.fd, &count);
    if (rc != TB_OK || count == 0)
        return rc;
    int n = poll(&gone, 1, DOWN_PATIENCE_MS);
    close(gone.fd);
    return n == 1 ? TB_OK
                  : tb_error(TB_ERR_TIMEOUT, "lab %s is still ending after %d s", name, DOWN_PATIENCE_MS / 1000);
}

/* ---- which ------------------------------------------------------------------------------------------------------- */

uint32_t tb_lab_list(void (*each)(void *context, const char *name, const char *about), void *context)
{
    char prefix[64], line[512], answer[1200];
    const char *words[] = {"about"};
    uint32_t count = 0;
    FILE *from = fopen("/proc/net/unix", "re");
    if (from == NULL)
        return 0;
    tb_keeper_prefix(prefix, sizeof prefix);
    while (fgets(line, sizeof line, from) != NULL) {
        char *name = strstr(line, prefix);
        unsigned flags = 0;
        /* A row for each connection too; only the one that listens counts. */
        if (name == NULL || sscanf(line, "%*s %*x %*x %x", &flags) != 1 || !(flags & 0x10000))
            continue;
        name += strlen(prefix);
        name[strcspn(name, "\n")] = 0;
        if (ask(name, words, 1, answer, sizeof answer, NULL, NULL) == TB_OK) {
            each(context, name, answer);
            count++;
        }
    }
    fclose(from);
    return count;
}

struct choice {
    char *name;
    char all[512];
    size_t used;
};

static void note(void *context, const char *name, const char *about)
{
    struct choice *choice = context;
    snprintf(choice->name, TB_LAB_NAME_BYTES, "%s", name);
    if (choice->used < sizeof choice->all)
        choice->used += (size_t)snprintf(choice->all + choice->used, sizeof choice->all - choice->used, "%s%s",
                                         choice->used > 0 ? ", " : "", name);
}

int tb_lab_choose(const char *wanted, char *name)
{
    struct choice choice = {.name = name};
    if (wanted == NULL || *wanted == 0)
        wanted = getenv(TB_LAB_VARIABLE);
    if (wanted != NULL && *wanted != 0) {
        if (!is_name(wanted))
            return tb_error(TB_ERR_ARGUMENT, "\"%s\" cannot be the name of a lab", wanted);
        snprintf(name, TB_LAB_NAME_BYTES, "%s", wanted);
        return TB_OK;
    }
    uint32_t count = tb_lab_list(note, &choice);
    if (count == 1)
        return TB_OK;
    if (count == 0)
        return tb_error(TB_ERR_ARGUMENT, "no lab is up; `tombolo lab up GRID.yaml` builds one");
    return tb_error(TB_ERR_ARGUMENT, "which lab? Several are up: %s; name one with --lab", choice.all);
}

#include "launch/agent_loss.h"

#include "launch/signal_name.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define ANOTHER_MACHINE                                                                                                \
    "tombolo there seems to be built for another kind of machine; --tombolo PATH names another place"

/* What to try, from what ssh and shells usually say. */
static const char *advise(const struct tb_host_agent *agent, int code, char *room, size_t size)
{
    static const struct {
        const char *says, *advice;
    } known[] = {
        {"Could not resolve", "is the name spelled right? `getent hosts %s` should know it"},
        {"Name or service not known", "is the name spelled right? `getent hosts %s` should know it"},
        {"Permission denied",
         "ssh must get in without a password: `ssh %s true` should work; ssh-copy-id installs a key"},
        {"Host key verification failed", "log in once by hand with `ssh %s` and accept the host's key"},
        {"Connection refused", "no ssh server answers there; another port is given as port=N in a host file, or as a "
                               "host's port in a grid file, another command with --launcher"},
        {"Exec format error", ANOTHER_MACHINE},
        {"cannot execute binary file", ANOTHER_MACHINE},
        {"timed out", "is the host up, and may it be reached from here? Try `ssh %s true`"},
        {"No route to host", "is the host up, and may it be reached from here? Try `ssh %s true`"},
        {"Network is unreachable", "is the host up, and may it be reached from here? Try `ssh %s true`"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (agent->tail != NULL && strstr(agent->tail, known[i].says) != NULL) {
            const char *mark = strstr(known[i].advice, "%s");
            if (mark == NULL)
                return known[i].advice;
            snprintf(room, size, "%.*s%s%s", (int)(mark - known[i].advice), known[i].advice, agent->target.host,
                     mark + 2);
            return room;
        }
    if (code == 127 || code == 126) {
        snprintf(room, size, "is Tombolo installed there as %s? --tombolo PATH names another place",
                 agent->target.program);
        return room;
    }
    return "try the command by hand";
}

/* " The command was: ssh venus2 ...", where the command itself has said nothing. */
static void show_command(const struct tb_host_agent *agent, char *text, size_t size)
{
    char **words = NULL;
    *text = 0;
    if (agent->tail != NULL || tb_shell_words(&agent->target, &words) != TB_OK)
        return;
    size_t used = (size_t)snprintf(text, size, " The command was:");
    for (char **word = words; *word != NULL && used < size; word++)
        used += (size_t)snprintf(text + used, size - used, strchr(*word, ' ') != NULL ? " '%s'" : " %s", *word);
    tb_shell_free(words);
}

void tb_agent_loss_unreached(const struct tb_host_agent *agent, bool exited, int status, char *story, size_t size)
{
    const char *command = agent->target.command != NULL ? agent->target.command : "ssh";
    char how[200] = "ended its output", advice[512], line[1024], from[700] = "";
    int code = exited && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    if (exited && WIFSIGNALED(status)) {
        char text[160];
        tb_signal_name(WTERMSIG(status), text, sizeof text);
        snprintf(how, sizeof how, "was ended by %s", text);
    } else if (exited) {
        snprintf(how, sizeof how, "ended with exit code %d", code);
    }
    show_command(agent, line, sizeof line);
    if (agent->parent != NULL)
        snprintf(from, sizeof from, " of cluster %s from host %s", agent->cluster, agent->parent->name);
    else if (*agent->cluster != 0)
        snprintf(from, sizeof from, " of cluster %s", agent->cluster);
    snprintf(story, size, "cannot start an agent on host %s%s: %.*s %s%s%s; %s.%s", agent->target.host, from,
             (int)strcspn(command, " \t"), command, how, agent->tail != NULL ? " and said: " : " without a word",
             agent->tail != NULL ? agent->tail : "", advise(agent, code, advice, sizeof advice), line);
}

void tb_agent_loss_gone(const struct tb_host_agent *agent, bool exited, int status, char *story, size_t size)
{
    char how[200] = "", pid[32] = "";
    if (exited && WIFSIGNALED(status)) {
        char text[160];
        tb_signal_name(WTERMSIG(status), text, sizeof text);
        snprintf(how, sizeof how, ", ended by %s", text);
    } else if (exited && WEXITSTATUS(status) != 0) {
        snprintf(how, sizeof how, ", ended with exit code %d", WEXITSTATUS(status));
    }
    if (agent->pid > 0)
        snprintf(pid, sizeof pid, " (pid %d here)", (int)agent->pid);
    snprintf(story, size, "the %s on host %s%s%s%s is gone%s%s%s",
             agent->target.local ? "agent" : "connection to the agent", agent->name,
             *agent->cluster != 0 ? " of cluster " : "", agent->cluster, pid, how,
             agent->tail != NULL ? "; the last it said: " : "", agent->tail != NULL ? agent->tail : "");
}

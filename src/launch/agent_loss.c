#include "launch/agent_loss.h"

#include "launch/signal_name.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define ANOTHER_MACHINE                                                                                                \
    "tombolo there seems to be built for another kind of machine; --tombolo PATH names another place"

/* What the user can type to see the same: "`ssh -p 2222 kate@n3 true`", and where. */
static void print_try(const struct tb_host_agent *agent, char *text, size_t size)
{
    const struct tb_shell_target *target = &agent->target;
    char port[32] = "";
    if (target->port != 0)
        snprintf(port, sizeof port, " -p %u", target->port);
    snprintf(text, size, "`%s%s %s%s%s true`%s%s", target->command != NULL ? target->command : "ssh", port,
             target->user != NULL ? target->user : "", target->user != NULL ? "@" : "", target->host,
             agent->parent != NULL ? " on host " : "", agent->parent != NULL ? agent->parent->name : "");
}

static void advise_refused(const struct tb_host_agent *agent, char *text, size_t size)
{
    if (agent->target.command != NULL)
        print_try(agent, text, size);
    else if (agent->target.port != 0)
        snprintf(text, size, "no ssh server answers at port %u of host %s (the port comes from %s)", agent->target.port,
                 agent->target.host, agent->origin != NULL ? agent->origin : "the file");
    else
        snprintf(
            text, size,
            "no ssh server answers at port 22 of host %s; another is given as port=N in a host file, or as a host's "
            "port in a grid file",
            agent->target.host);
}

bool tb_agent_loss_is_of_network(const struct tb_host_agent *agent)
{
    static const char *const says[] = {"timed out", "No route to host", "Network is unreachable"};
    for (size_t i = 0; agent->tail != NULL && i < sizeof says / sizeof says[0]; i++)
        if (strstr(agent->tail, says[i]) != NULL)
            return true;
    return false;
}

/* What to try, from what ssh and shells usually say; "": nothing. */
static void advise(const struct tb_host_agent *agent, int code, char *text, size_t size)
{
    static const struct {
        const char *says, *before, *after;
    } known[] = {
        {"Permission denied", "ssh must get in without a password: ", " should work; ssh-copy-id installs a key"},
        {"Host key verification failed", "log in once by hand and accept the host's key: ", ""},
    };
    const char *said = agent->tail != NULL ? agent->tail : "";
    char command[700];
    print_try(agent, command, sizeof command);
    *text = 0;
    if (strstr(said, "Could not resolve") != NULL || strstr(said, "Name or service not known") != NULL)
        snprintf(text, size, "is the name spelled right? `getent hosts %s` should know it", agent->target.host);
    else if (strstr(said, "Connection refused") != NULL)
        advise_refused(agent, text, size);
    else if (strstr(said, "Exec format error") != NULL || strstr(said, "cannot execute binary file") != NULL)
        snprintf(text, size, ANOTHER_MACHINE);
    else if (code == 127 || code == 126)
        snprintf(text, size, "is Tombolo installed there as %s? --tombolo PATH names another place",
                 agent->target.program);
    for (size_t i = 0; *text == 0 && i < sizeof known / sizeof known[0]; i++)
        if (strstr(said, known[i].says) != NULL)
            snprintf(text, size, "%s%s%s", known[i].before, command, known[i].after);
    if (*text == 0 && tb_agent_loss_is_of_network(agent))
        snprintf(text, size, "is the host up, and may it be reached from here? Try %s", command);
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
    char how[200] = "ended its output", advice[1024], line[1024], from[700] = "";
    int code = exited && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    if (agent->manual) {
        snprintf(story, size,
                 "the agent that was started by hand on host %s of cluster %s has ended before it was ready",
                 agent->target.host, agent->cluster);
        return;
    }
    if (exited && WIFSIGNALED(status)) {
        char text[160];
        tb_signal_name(WTERMSIG(status), text, sizeof text);
        snprintf(how, sizeof how, "was ended by %s", text);
    } else if (exited) {
        snprintf(how, sizeof how, "ended with exit code %d", code);
    }
    show_command(agent, line, sizeof line);
    advise(agent, code, advice, sizeof advice);
    if (agent->parent != NULL)
        snprintf(from, sizeof from, " of cluster %s from host %s", agent->cluster, agent->parent->name);
    else if (*agent->cluster != 0)
        snprintf(from, sizeof from, " of cluster %s", agent->cluster);
    snprintf(story, size, "cannot start an agent on host %s%s: %.*s %s%s%s%s%s.%s", agent->target.host, from,
             (int)strcspn(command, " \t"), command, how, agent->tail != NULL ? " and said: " : " without a word",
             agent->tail != NULL ? agent->tail : "", *advice != 0 ? "; " : "", advice, line);
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

void tb_agent_loss_trouble(const struct tb_host_agent *agent, const char *text, size_t length, char *story, size_t size)
{
    /* Before it has the address book it does not know its name in the job, and says `this host`. */
    bool silent = length == 0 || *text == 0; /* an agent that is one says why */
    bool named = agent->phase >= TB_HOST_AGENT_READY && !silent &&
                 memmem(text, length, "this host", strlen("this host")) == NULL;
    if (silent)
        snprintf(story, size, "host %s: its agent has given up without saying why", agent->target.host);
    else
        snprintf(story, size, "%s%s%s%.*s", named ? "" : "host ", named ? "" : agent->target.host, named ? "" : ": ",
                 (int)length, text);
}

void tb_agent_loss_left(const struct tb_host_agent *agent, char *story, size_t size)
{
    const char *when = agent->phase < TB_HOST_AGENT_READY    ? "before it was ready"
                       : agent->phase == TB_HOST_AGENT_READY ? "before its ranks were started"
                       : agent->ended < agent->rank_count    ? "without waiting for its ranks"
                                                             : NULL;
    story[0] = 0;
    if (when != NULL)
        snprintf(story, size, "the agent on host %s ended %s", agent->target.host, when);
}

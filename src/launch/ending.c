/* How ranks and agents end, and what is said about it. */
#include "launch/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* "signal 11 (SIGSEGV, segmentation fault)" */
static void name_signal(int number, char *text, size_t size)
{
    const char *short_name = sigabbrev_np(number), *words = sigdescr_np(number);
    if (short_name != NULL && words != NULL)
        snprintf(text, size, "signal %d (SIG%s, %s)", number, short_name, words);
    else
        snprintf(text, size, "signal %d", number);
}

void tb_ending_rank(struct tb_launch *launch, const struct tb_ended *ended)
{
    const char *host = launch->placement.book.hosts[tb_address_book_host_of(&launch->placement.book, ended->rank)].name;
    bool by_us = ended->flags & TB_ENDED_STOPPED;
    char text[160];
    launch->ended_count++;
    if (WIFSIGNALED(ended->status)) {
        name_signal(WTERMSIG(ended->status), text, sizeof text);
        if (!by_us)
            tb_launch_fail(
                launch, TB_VERDICT_CAUSE, 128 + WTERMSIG(ended->status),
                "rank %u on host %s (pid %u) was ended by %s%s", ended->rank, host, ended->pid, text,
                WTERMSIG(ended->status) == SIGKILL ? "; if nobody killed it, the host may have run out of memory" : "");
        return;
    }
    int code = WEXITSTATUS(ended->status);
    if (code != 0 && !by_us) {
        /* After MPI_Finalize it harms nobody else, so the others may go on. */
        bool done = ended->flags & TB_ENDED_FINALIZED;
        tb_launch_fail(launch, done ? TB_VERDICT_LATE : TB_VERDICT_ABORT, code,
                       "rank %u on host %s (pid %u) ended with exit code %d", ended->rank, host, ended->pid, code);
    } else if (code == 0 && (ended->flags & TB_ENDED_INITIALIZED) && !(ended->flags & TB_ENDED_FINALIZED) && !by_us) {
        if (launch->unfinalized_count++ == 0) {
            launch->unfinalized = *ended;
            tb_timer_set(&launch->loop, &launch->unfinalized_timer, 2000000000u);
        }
    }
}

void tb_ending_unfinalized(struct tb_timer *timer)
{
    struct tb_launch *launch = TB_CONTAINER(timer, struct tb_launch, unfinalized_timer);
    const struct tb_ended *ended = &launch->unfinalized;
    const char *host = launch->placement.book.hosts[tb_address_book_host_of(&launch->placement.book, ended->rank)].name;
    if (launch->ended_count < launch->placement.book.ranks)
        tb_launch_fail(
            launch, TB_VERDICT_ABORT, 1,
            "rank %u on host %s (pid %u) ended without calling MPI_Finalize while other ranks were still running",
            ended->rank, host, ended->pid);
}

void tb_ending_abort(struct tb_launch *launch, uint32_t rank, uint32_t pid, uint32_t code, const char *text, int length)
{
    const char *host = launch->placement.book.hosts[tb_address_book_host_of(&launch->placement.book, rank)].name;
    int verdict = (code & 255) != 0 ? (int)(code & 255) : 1;
    if (length > 0) /* not the program but its MPI library has given up, and says why */
        tb_launch_fail(launch, TB_VERDICT_ABORT, verdict, "rank %u on host %s (pid %u): %.*s", rank, host, pid, length,
                       text);
    else
        tb_launch_fail(launch, TB_VERDICT_ABORT, verdict, "rank %u on host %s (pid %u) called MPI_Abort with code %d",
                       rank, host, pid, (int32_t)code);
}

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

static void tell_unreached(struct tb_host_agent *agent, bool exited, int status)
{
    struct tb_launch *launch = agent->launch;
    const char *command = agent->target.command != NULL ? agent->target.command : "ssh";
    char how[200] = "ended its output", advice[512], **words = NULL, line[1024] = "";
    int code = exited && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    if (exited && WIFSIGNALED(status)) {
        char text[160];
        name_signal(WTERMSIG(status), text, sizeof text);
        snprintf(how, sizeof how, "was ended by %s", text);
    } else if (exited) {
        snprintf(how, sizeof how, "ended with exit code %d", code);
    }
    if (agent->tail == NULL && tb_shell_words(&agent->target, &words) == TB_OK) {
        size_t used = (size_t)snprintf(line, sizeof line, " The command was:");
        for (char **word = words; *word != NULL && used < sizeof line; word++)
            used +=
                (size_t)snprintf(line + used, sizeof line - used, strchr(*word, ' ') != NULL ? " '%s'" : " %s", *word);
        tb_shell_free(words);
    }
    char from[700] = "", story[sizeof launch->verdict.text];
    const char *cluster = tb_host_agent_cluster(agent);
    if (agent->parent != NULL)
        snprintf(from, sizeof from, " of cluster %s from host %s", cluster,
                 launch->placement.book.hosts[agent->parent->host].name);
    else if (*cluster != 0)
        snprintf(from, sizeof from, " of cluster %s", cluster);
    snprintf(story, sizeof story, "cannot start an agent on host %s%s: %.*s %s%s%s; %s.%s", agent->target.host, from,
             (int)strcspn(command, " \t"), command, how, agent->tail != NULL ? " and said: " : " without a word",
             agent->tail != NULL ? agent->tail : "", advise(agent, code, advice, sizeof advice), line);
    tb_launch_miss(agent, story);
}

/* The stream or the shell has ended without a goodbye. */
void tb_ending_agent(struct tb_host_agent *agent, bool exited, int status)
{
    struct tb_launch *launch = agent->launch;
    if (agent->phase <= TB_HOST_AGENT_SILENT && !agent->target.local) {
        tell_unreached(agent, exited, status);
        return;
    }
    if (agent->idle && launch->ending && launch->verdict.weight == TB_VERDICT_NONE)
        return; /* all is over and told, and nobody needs it any more */
    char how[200] = "";
    if (exited && WIFSIGNALED(status)) {
        char text[160];
        name_signal(WTERMSIG(status), text, sizeof text);
        snprintf(how, sizeof how, ", ended by %s", text);
    } else if (exited && WEXITSTATUS(status) != 0) {
        snprintf(how, sizeof how, ", ended with exit code %d", WEXITSTATUS(status));
    }
    char story[sizeof launch->verdict.text], pid[32] = "";
    if (agent->pid > 0)
        snprintf(pid, sizeof pid, " (pid %d here)", (int)agent->pid);
    snprintf(story, sizeof story, "the %s on host %s%s%s%s is gone%s%s%s",
             agent->target.local ? "agent" : "connection to the agent", launch->placement.book.hosts[agent->host].name,
             launch->plan != NULL ? " of cluster " : "", tb_host_agent_cluster(agent), pid, how,
             agent->tail != NULL ? "; the last it said: " : "", agent->tail != NULL ? agent->tail : "");
    if (agent->phase < TB_HOST_AGENT_READY && launch->plan != NULL)
        tb_launch_miss(agent, story);
    else
        tb_launch_fail(launch, TB_VERDICT_CAUSE, exited && WIFSIGNALED(status) ? 128 + WTERMSIG(status) : 1, "%s",
                       story);
}

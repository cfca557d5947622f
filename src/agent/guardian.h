/* Guardian: the process above an agent, which has started as `tombolo agent` and shows as `tombolo guard`. It does
 * nothing but wait until the agent ends, and then ends the same way, so that whoever has started it learns what became
 * of the agent. Unless it was dismissed before, it ends everything first that the agent has left: it is the reaper of
 * all descendants, so nothing escapes it that ranks have started, in whatever session or process group. Likewise the
 * agent, which is their reaper too, ends everything when its guardian is killed.
 *
 * An agent that is stopped notices nothing; when its launcher is gone too, the guardian ends it after a while. */
#ifndef TB_AGENT_GUARDIAN_H
#define TB_AGENT_GUARDIAN_H

#include "remote/remote.h"

/* As the agent sees it. */
struct tb_guardian {
    int stream; /* at its end when the guardian is gone; -1: there is none */
    int error;  /* then: why, an errno */
    struct tb_loop *loop;
    struct tb_watch watch;
    void (*lost)(void *context);
    void *context;
};

/* Becomes the guardian and returns only in the agent; without a guardian too if there cannot be one. Before anything is
 * loaded or started, since the guardian keeps what this process has by now. `title`, the word "agent" of the command
 * line, becomes "guard" in the guardian. */
void tb_guardian_start(struct tb_guardian *guardian, char *title);
/* Whether there is none, and why, for the user. */
bool tb_guardian_missing(const struct tb_guardian *guardian, const char *host, char *text, size_t size);
/* Tells when the guardian was killed. */
int tb_guardian_watch(struct tb_guardian *guardian, struct tb_loop *loop, void (*lost)(void *context), void *context);
/* The agent ends; `orderly`: what runs now may go on. Otherwise the guardian ends it, or we do if there is none. */
void tb_guardian_leave(struct tb_guardian *guardian, bool orderly);

#endif

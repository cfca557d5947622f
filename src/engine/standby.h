/* A standby: a thread of the library that makes progress while the program computes, as long as somebody watches
 * (tb_engine_watch). It sleeps until something that it listens to happens, and works only while no thread of the
 * program is in the library; one that is there, awake or asleep, takes everything itself. Where the process is threaded
 * they keep each other out by the engine's lock, otherwise by one that costs a program's thread next to nothing.
 *
 * It moves frames and answers them, serves the agent, and advances what drivers allow it to. It never calls a function
 * of the program's: runs, whose reductions and callbacks may do so, are put off, and go on when a thread of the program
 * comes in next (tb_runs_resume).
 * Where the engine has lanes (laned.h) the first of them has the standby, which serves all.
 *
 * Part of the engine, touched with it locked, except where a part says otherwise. */
#ifndef TB_ENGINE_STANDBY_H
#define TB_ENGINE_STANDBY_H

#include "engine/biased_lock.h"
#include "engine/engine.h"
#include "engine/listening.h"

struct tb_standby {
    bool open;       /* there may be one */
    bool running;    /* there is one */
    uint32_t opened; /* how often it was opened */
    pthread_t thread;
    uint32_t watchers[TB_STANDBY_SCOPES];
    struct tb_biased_lock lock; /* of a process that is not threaded */
    struct tb_listening listening;
};

int tb_standby_round(struct tb_engine *e, bool host); /* of progress; `host`: of this host's transport, too */

#endif

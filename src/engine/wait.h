/* Threads that wait in an engine: what they wait for, which of them polls, and how a sleeping one is woken. In a
 * threaded process one waiting thread at a time polls, or sleeps in ppoll with the lock released; the others wait for
 * their own condition, and the role is handed on.
 *
 * Part of the engine, touched with it locked, except where a member says otherwise. */
#ifndef TB_ENGINE_WAIT_H
#define TB_ENGINE_WAIT_H

#include "engine/crowd.h"
#include "engine/engine.h"

#include <pthread.h>

/* A thread that waits; stands on its stack. */
struct tb_waiter {
    struct tb_list on_engine;
    struct tb_request *request; /* or ready() */
    bool (*ready)(void *context);
    void *context;
    bool satisfied;
    bool wanting;     /* it was woken, and counts among those who want the lock until it has it */
    bool asking;      /* ready is running */
    uint64_t seen;    /* `events` when ready was asked last */
    const char *call; /* for those who ask what is waited for, as in struct tb_wait */
    const void *set;
    uint64_t since; /* when it was noticed first that this takes time; 0: not yet */
    pthread_cond_t wake;
};

/* The same of the only thread, which waits for a request without being a waiter. */
struct tb_only_wait {
    const struct tb_request *request;
    const char *call;
    const void *set;
    uint64_t since;
};

struct tb_waiting {
    uint64_t events; /* grows with everything that a waiter could wait for */
    bool stirred;    /* something changed that a sleeping thread must know */
    bool sleeping;   /* a thread waits in ppoll with the lock released... */
    uint64_t sleep_until;
    struct tb_waiter *poller;
    struct tb_list waiters;
    const struct tb_only_wait *only; /* on its stack; NULL: it does not wait */
    uint64_t spin;                   /* ns that are spent looking before a yield, unless in a crowd; learnt */
    struct tb_crowd crowd;
    uint32_t idle_tests;      /* calls of tb_engine_progress in which nothing happened */
    uint64_t tests_told;      /* when the owner was last told that such calls wait; 0: never */
    pthread_mutex_t lock;     /* the engine's; recursive: a callback may use the public functions */
    uint32_t depth;           /* how often whoever has it has taken it */
    _Atomic uint32_t wanting; /* threads at the lock; any thread */
    _Atomic bool kicked;      /* any thread */
    int kick;                 /* eventfd; -1 when not threaded */
};

int tb_waiting_open(struct tb_waiting *w, bool threaded);
void tb_waiting_close(struct tb_waiting *w);
void tb_waiting_lock(struct tb_waiting *w); /* a thread that polls gives way */
void tb_waiting_unlock(struct tb_waiting *w);
void tb_waiting_kick(const struct tb_waiting *w); /* wakes one that sleeps in ppoll, or is about to; any thread */
void tb_waiting_wake(struct tb_waiting *w, struct tb_waiter *waiter);

#endif

/* Waits that cannot end. Who has waited for long in a synchronisation of a window asks the processes that it waits for
 * what has become of them: a question (ASK) names what is demanded, and is answered (ANSWER) at once, from within any
 * call of MPI. One that has ended its part of MPI (MPI_Finalize) without having done it never will. One that waits
 * itself says for what and for whom, and is believed to do nothing else meanwhile if it has only one thread in MPI;
 * then that one is asked, and so on. Who waits within a collective that nobody leaves before all have come says for
 * whom, and that one is asked whether it has come. If this leads back to this process, or to such a collective to which
 * this process or one on the way has not come, all on the way wait for each other, and will for ever:
 *
 * Each of them waited when it was asked, and can go on only when the next has done something, of which that one has
 * said later that it has not done it, and that it waits. The last one waits for this process, which has waited all the
 * time and has not done it either. So none has moved since. Nothing is concluded from silence, and what is on its way
 * counts as done.
 *
 * A process has one question for each rank of a window at most, and repeats none that is not answered. A question about
 * no context is answered with nothing, which tells that it has come. Questions are numbered as messages are (slots.h),
 * since the answer has to come to the lane that has asked. Touched with the engine locked. */
#ifndef TB_ENGINE_DEADLOCK_H
#define TB_ENGINE_DEADLOCK_H

#include "engine/engine.h"
#include "wire/wire.h"

struct tb_window_rank;

enum tb_demanded {
    TB_DEMANDED_POST = 1, /* of a window, to the rank that waits */
    TB_DEMANDED_COMPLETE, /* of what that rank has posted */
    TB_DEMANDED_UNLOCK,   /* of the lock of a rank */
    TB_DEMANDED_ENTER     /* a collective */
};

/* What a process waits for, and who would have to do it. */
struct tb_demand {
    uint8_t what;      /* enum tb_demanded */
    bool exclusive;    /* UNLOCK: the lock is wanted so */
    uint8_t operation; /* ENTER: of the collective */
    uint64_t context;  /* of the window; ENTER: of the collective */
    uint32_t number;   /* ENTER: of the collective; UNLOCK: whose lock; POST, COMPLETE: which rank waits */
    uint32_t rank;     /* who has to do it, in the window or communicator */
    uint32_t proc;     /* and which process that is */
};

/* All of an engine. */
struct tb_deadlock {
    struct tb_list questions; /* struct tb_question */
    uint64_t look_at;         /* on the engine's clock: when to look again */
    uint32_t round;           /* of looks: whose turn it is to be asked */
};

/* The window of this rank is closed, or it waits no more. */
void tb_deadlock_forget(struct tb_window_rank *r);

/* Handlers of ASK and ANSWER. */
void tb_deadlock_asked(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);
void tb_deadlock_answered(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length);

/* Whoever is about to sleep comes here through a table, as the end of the engine does, since both are below all this.
 */
struct tb_deadlock_work {
    /* Asks, if it is time. Returns when to be here again, on the engine's clock, or TB_NEVER. */
    uint64_t (*look)(struct tb_engine *e);
    void (*close)(struct tb_deadlock *d);
};
extern const struct tb_deadlock_work tb_deadlock_work;

#endif

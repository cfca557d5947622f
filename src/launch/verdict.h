/* The verdict on a job: its exit code, and what is said at its end. Belongs to the launcher; its one thread. */
#ifndef TB_LAUNCH_VERDICT_H
#define TB_LAUNCH_VERDICT_H

enum tb_verdict_weight {
    TB_VERDICT_NONE,   /* all is well */
    TB_VERDICT_LATE,   /* a rank has failed after MPI_Finalize, which harms nobody else */
    TB_VERDICT_LOST,   /* a rank has died, and the job goes on without it */
    TB_VERDICT_OPEN,   /* a rank has crashed; whatever is found out says more */
    TB_VERDICT_FOLLOW, /* a rank has given up because another one has, which says why */
    TB_VERDICT_ABORT,  /* a rank has given up, perhaps because another one died */
    TB_VERDICT_CAUSE
};

struct tb_verdict {
    enum tb_verdict_weight weight;
    int code;
    char text[4096];
};

/* The first failure counts; but what weighs more explains those who merely noticed, such as a process that died for a
 * reason of its own. No failure is without words, even if nobody has given any (""), but for one that is meant to be
 * (NULL). */
void tb_verdict_add(struct tb_verdict *verdict, enum tb_verdict_weight weight, int code, const char *text);

#endif

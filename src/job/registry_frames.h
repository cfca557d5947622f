/* What processes of a job ask its registry, and what it answers: named groups, and names of ports. Both travel as the
 * bytes of a wish (TB_CONTROL_REGISTRY, TB_CONTROL_ANSWER), which has their number. */
#ifndef TB_JOB_REGISTRY_FRAMES_H
#define TB_JOB_REGISTRY_FRAMES_H

#include "wire/wire.h"

#define TB_REGISTRY_NAME_BYTES  256u       /* of a group or a service, with the 0 at the end */
#define TB_REGISTRY_VALUE_BYTES 1024u      /* of a port's name, likewise */
#define TB_REGISTRY_MEMBERS     (1u << 20) /* of a group: their list fits into an answer */
#define TB_REGISTRY_FOREVER     UINT64_MAX

enum tb_registry_kind {
    TB_REGISTRY_JOIN,      /* the asker becomes a member of the group, which begins with its first */
    TB_REGISTRY_LEAVE,     /* and is none any more; the last one ends the group */
    TB_REGISTRY_LOOK,      /* who is in it? */
    TB_REGISTRY_MISSED,    /* who was in it and has died? */
    TB_REGISTRY_FREEZE,    /* nobody may join any more */
    TB_REGISTRY_MEET,      /* answered when there are at least `count` members, and all of them ask this */
    TB_REGISTRY_BARRIER,   /* answered when `count` members ask this, who ask for the same; 0: all that there are */
    TB_REGISTRY_WATCH,     /* answered when the generation is another than `count`; 0: when there is such a group */
    TB_REGISTRY_PUBLISH,   /* from now on the name stands for the value */
    TB_REGISTRY_UNPUBLISH, /* no longer */
    TB_REGISTRY_LOOKUP,    /* what does it stand for? */
    TB_REGISTRY_END,       /* the asker leaves all groups, and what it has published is withdrawn; no answer */
    TB_REGISTRY_KINDS
};

enum tb_registry_result {
    TB_REGISTRY_DONE,
    TB_REGISTRY_LATE,     /* it was not so in time */
    TB_REGISTRY_NO_GROUP, /* there is no group of this name, or not any more */
    TB_REGISTRY_MEMBER,   /* the asker is a member already */
    TB_REGISTRY_STRANGER, /* it is none, or not any more */
    TB_REGISTRY_FROZEN,   /* nobody may join */
    TB_REGISTRY_DEAD,     /* a member has died: which, says `who`; told to each member once. Of names: whoever keeps
                           * them for several jobs (tombolo meet) does not answer */
    TB_REGISTRY_UNEQUAL,  /* others ask for another count, or so many there can never be */
    TB_REGISTRY_BUSY,     /* another thread of the asker asks the same already */
    TB_REGISTRY_FULL,     /* there is no room for more */
    TB_REGISTRY_TAKEN,    /* the name is published already */
    TB_REGISTRY_UNKNOWN,  /* it is not */
    TB_REGISTRY_OTHER,    /* it stands for something else */
    TB_REGISTRY_RESULTS
};

#define TB_REGISTRY_REPLACES 1u /* PUBLISH: a name that is published stands for this from now on */

struct tb_registry_question {
    uint32_t number; /* of the wish, by which the asker knows the answer */
    enum tb_registry_kind kind;
    uint8_t flags;
    uint32_t count;
    uint64_t patience; /* ns for which an answer may take; TB_REGISTRY_FOREVER: any time */
    char name[TB_REGISTRY_NAME_BYTES];
    char value[TB_REGISTRY_VALUE_BYTES];
};

struct tb_registry_answer {
    uint32_t number;
    enum tb_registry_result result;
    bool frozen;
    uint32_t id;         /* of the group: no other one of the job ever has the same */
    uint32_t generation; /* counts the changes of who is in it, from 1 */
    uint32_t round;      /* MEET: counts how often its members have met */
    uint32_t who;        /* a process that has died: with TB_REGISTRY_DEAD */
    uint32_t more;       /* and so many more */
    uint32_t member_count;
    uint32_t *members; /* memory of whoever made the answer */
    char value[TB_REGISTRY_VALUE_BYTES];
};

void tb_registry_question_put(struct tb_writer *w, const struct tb_registry_question *question);
int tb_registry_question_get(struct tb_reader *r, struct tb_registry_question *question); /* checks everything */
/* The bytes are allocated for the caller, who frees them; not after an error. */
int tb_registry_answer_pack(const struct tb_registry_answer *answer, void **bytes, size_t *length);
/* Checks everything. The members, if there are any, are allocated likewise. */
int tb_registry_answer_unpack(const void *bytes, size_t length, struct tb_registry_answer *answer);

#endif

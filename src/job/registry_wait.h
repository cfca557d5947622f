/* A question for the registry whose answer has to wait, and until when: one struct for groups and names alike. A table
 * counts its own, of which there is a limit. */
#ifndef TB_JOB_REGISTRY_WAIT_H
#define TB_JOB_REGISTRY_WAIT_H

#include "job/registry_frames.h"

#define TB_REGISTRY_WAITS (1u << 20) /* of a table */

struct tb_registry_wait {
    struct tb_list node;
    uint32_t proc, number, count; /* who asks, and what */
    enum tb_registry_kind kind;
    uint64_t until;
    char name[TB_REGISTRY_NAME_BYTES]; /* of what may not be there yet */
};

/* Appends it to a list; false: there is no room. */
bool tb_registry_wait_add(struct tb_list *list, uint32_t *waits, uint32_t proc,
                          const struct tb_registry_question *question, uint64_t until);
void tb_registry_wait_free(struct tb_registry_wait *wait, uint32_t *waits);
void tb_registry_waits_free(struct tb_list *list, uint32_t *waits);                   /* all of a list, */
void tb_registry_waits_free_of(struct tb_list *list, uint32_t *waits, uint32_t proc); /* or those of a process */

#endif

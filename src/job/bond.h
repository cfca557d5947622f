/* What a rank says of those that it is connected with: it has the first communicator or window with processes of these
 * worlds, or has given up the last one. Plain data. */
#ifndef TB_JOB_BOND_H
#define TB_JOB_BOND_H

#include "wire/wire.h"

#define TB_BOND_WORLDS 64u /* of which one can tell at a time */

struct tb_bond {
    bool bonded;
    uint32_t count;
    uint32_t worlds[TB_BOND_WORLDS]; /* their first indices */
};

void tb_bond_put(struct tb_writer *w, const struct tb_bond *bond);
int tb_bond_get(struct tb_reader *r, struct tb_bond *bond);

struct tb_job;
/* Tells the launcher, as tb_job_ask_spawn does; number 0: it does not answer. */
int tb_job_ask_bond(struct tb_job *job, uint32_t number, const struct tb_bond *bond);

#endif

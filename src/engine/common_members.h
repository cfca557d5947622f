/* Members of a composite step (schedule.h) as ranks of the board of their host. */
#ifndef TB_ENGINE_COMMON_MEMBERS_H
#define TB_ENGINE_COMMON_MEMBERS_H

#include "engine/common_drive.h"

/* Finds who takes part: size, rank, root and who of the drive; until then these are all ranks of the board. */
int tb_common_members_find(struct tb_common_drive *s);
/* Of a drive that is over. */
void tb_common_members_forget(struct tb_common_drive *s);

#endif

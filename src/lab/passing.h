/* Messages with descriptors between the keeper of a lab and those who ask it, over SOCK_SEQPACKET. */
#ifndef TB_LAB_PASSING_H
#define TB_LAB_PASSING_H

#include "base/base.h"

#define TB_PASS_DESCRIPTORS 16

int tb_pass(int socket, const char *text, const int *descriptors, uint32_t count);
/* One message, ended by 0. *count: room in, taken out; other places are left as they are. TB_ERR_CLOSED: the other side
 * is gone. */
int tb_pass_take(int socket, char *text, size_t room, int *descriptors, uint32_t *count);

#endif

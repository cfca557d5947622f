/* The namespaces of a lab. The keeper has those of the whole (user, when not root; processes, mounts); a space is what
 * a machine of the lab has of its own: network, mounts, host name, System V IPC. It lives as long as somebody has its
 * descriptors or runs in it. Belongs to the one thread of the keeper. */
#ifndef TB_LAB_SPACE_H
#define TB_LAB_SPACE_H

#include "base/base.h"

#include <sys/types.h>

enum tb_space_part { TB_SPACE_MOUNT, TB_SPACE_NET, TB_SPACE_UTS, TB_SPACE_IPC, TB_SPACE_PARTS };

struct tb_space {
    int parts[TB_SPACE_PARTS]; /* -1: none */
};

/* A process that is the first of its own process namespace (and user namespace, unless root) and has mounts and a
 * network of its own. As fork(): 0 in the child, which then calls tb_space_settle. -1: a story is told. */
pid_t tb_space_fork(void);
/* In that process: users, mounts, /proc. */
int tb_space_settle(uid_t uid, gid_t gid);

/* With a file of names as /etc/hosts. */
int tb_space_make(struct tb_space *space, const char *name, const char *names);
/* Only a network. */
int tb_space_make_bare(struct tb_space *space);

/* Goes into its network (for sockets, ioctls and /proc/sys/net), and back. */
int tb_space_visit(const struct tb_space *space);
int tb_space_return(int home);
/* Writes a setting of the network that is visited. */
int tb_space_tune(const char *path, const char *value);

/* The capabilities that a process of an ordinary user keeps in a lab, so that it may enter other machines of the lab
 * and look at its network; they reach no further than the lab. */
void tb_space_keep_rights(void);

#endif

/* The tree along which members of a message or of a context tell each other what they have: places are counted from its
 * root. The root has one child, so that it hears one answer and no more, however many members there are; all others
 * have `fan`. A parent has a smaller place than its children. */
#ifndef TB_LINK_MULTICAST_TREE_H
#define TB_LINK_MULTICAST_TREE_H

#include "link/multicast.h"

#define TB_MULTICAST_NOBODY UINT32_MAX

uint32_t tb_multicast_tree_parent(uint32_t place, uint32_t fan); /* NOBODY: of the root */
/* How many children a place has; *first: the place of the first, the others follow it. */
uint32_t tb_multicast_tree_children(uint32_t place, uint32_t fan, uint32_t count, uint32_t *first);
/* Where this process stands if `root` is the index of the root, and who stands at a place. */
uint32_t tb_multicast_tree_place(const struct tb_multicast_members *members, uint32_t root);
uint32_t tb_multicast_tree_process(const struct tb_multicast_members *members, uint32_t root, uint32_t place);
/* Whether a process is one of them. */
bool tb_multicast_tree_has(const struct tb_multicast_members *members, uint32_t process);
/* The process of an index. */
uint32_t tb_multicast_tree_member(const struct tb_multicast_members *members, uint32_t index);

#endif

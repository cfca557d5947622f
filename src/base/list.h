/* Intrusive doubly linked list with a sentinel. A node that is in no list points to itself, so that removing it twice
 * is harmless. No locking: the owner of the list decides which thread may touch it. */
#ifndef TB_BASE_LIST_H
#define TB_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct tb_list {
    struct tb_list *next, *prev;
};

static inline void tb_list_init(struct tb_list *l)
{
    l->next = l->prev = l;
}

static inline bool tb_list_empty(const struct tb_list *l)
{
    return l->next == l;
}

static inline void tb_list_append(struct tb_list *l, struct tb_list *node)
{
    node->prev = l->prev;
    node->next = l;
    l->prev->next = node;
    l->prev = node;
}

static inline void tb_list_prepend(struct tb_list *l, struct tb_list *node)
{
    tb_list_append(l->next, node);
}

static inline void tb_list_remove(struct tb_list *node)
{
    node->next->prev = node->prev; // NOLINT(clang-analyzer-unix.Malloc): who frees a node has removed it
    node->prev->next = node->next;
    tb_list_init(node);
}

#define TB_CONTAINER(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* Visits the entries; the body may remove the one it is given. */
#define TB_LIST_EACH(entry, list, type, member)                                                                        \
    for (struct tb_list *tb_it_ = (list)->next, *tb_nx_ = tb_it_->next;                                                \
         tb_it_ != (list) && ((entry) = TB_CONTAINER(tb_it_, type, member), true);                                     \
         tb_it_ = tb_nx_, tb_nx_ = tb_it_->next)

#endif

/* What is said of a test of multicast in a cluster: one line. */
#ifndef TB_LAUNCH_GROUP_STORY_H
#define TB_LAUNCH_GROUP_STORY_H

#include "launch/tested_group.h"

/* Who does not hear whom: "multicast does not reach h3 from h1, h2". With `longest`: long datagrams of whom. */
void tb_group_story_unheard(const struct tb_tested_group *group, const struct tb_address_book *book, bool longest,
                            char *text, size_t size);
/* The verdict. */
void tb_group_story_verdict(const struct tb_tested_group *group, const struct tb_address_book *book, char *text,
                            size_t size);
/* Why a cluster that has enough hosts has no group. */
void tb_group_story_none(const struct tb_group_choice *choice, const struct tb_address_book *book, char *text,
                         size_t size);

#endif

/* A part of our own search: clusters as wholes, where there are many nodes. Rates one tree. */
#ifndef TB_SEARCH_OWN_LARGE_H
#define TB_SEARCH_OWN_LARGE_H

#include "search/search_run.h"

int tb_own_large(struct tb_search_run *run);

#endif

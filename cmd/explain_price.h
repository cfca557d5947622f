/* What the parameter `reproducible` costs: what takes least without it, beside what runs. */
#ifndef TB_CMD_EXPLAIN_PRICE_H
#define TB_CMD_EXPLAIN_PRICE_H

#include "collectives/collectives.h"

/* Prints it, if the call asks for it; `time` is what runs, `commutative` what the operation is. */
int tb_explain_price(const struct tb_collective *call, bool commutative, bool json, uint64_t time);

#endif

/* Numbers as people write them: 65536, 64k, 16m, 1g, of which k is 1024. */
#ifndef TB_BASE_NUMBER_H
#define TB_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* Of k, m and g, large or small: by how many bits each moves a number. 0: it is none of them. */
unsigned tb_number_shift(char unit);
/* A whole number with or without its unit. What follows it; NULL: it is no number, or too large. */
const char *tb_number_read(const char *text, uint64_t *value);
/* With the largest unit of which it is a multiple; the length, as snprintf gives it. */
int tb_number_print(uint64_t value, char *text, size_t size);

#endif

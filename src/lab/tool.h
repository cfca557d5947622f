/* The tools that configure networks (ip, tc, nft), each fed with a list of commands on its standard input, in a network
 * namespace of its own, several at a time. Belongs to the one thread of a lab's keeper. */
#ifndef TB_LAB_TOOL_H
#define TB_LAB_TOOL_H

#include "base/base.h"

#include <stdio.h>
#include <sys/types.h>

enum tb_tool_program { TB_TOOL_IP, TB_TOOL_TC, TB_TOOL_NFT };

struct tb_tool {
    enum tb_tool_program program;
    int space;         /* network namespace; not owned */
    const char *where; /* for messages; not owned */
    FILE *to;          /* what is written here becomes its input */
    char *text;
    size_t length;
    int output;
    pid_t pid;
};

/* Is the program there? The story says what to install. */
int tb_tool_find(enum tb_tool_program program);
int tb_tool_open(struct tb_tool *tool, enum tb_tool_program program, int space, const char *where);
/* Runs them all, several at a time; those without input are left out. `kept` are descriptors that they may name as
 * /proc/self/fd/N. The first failure is told. Closes them. */
int tb_tools_run(struct tb_tool *tools, uint32_t count, const int *kept, uint32_t kept_count);
void tb_tool_close(struct tb_tool *tool); /* harmless after tb_tools_run */

#endif

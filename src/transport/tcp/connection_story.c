#include "transport/tcp/connection.h"

#include <arpa/inet.h>
#include <stdio.h>

static void name_print(const struct tb_name *name, char *text, size_t size)
{
    char address[INET6_ADDRSTRLEN];
    if (name->any.sa_family == AF_INET && inet_ntop(AF_INET, &name->four.sin_addr, address, sizeof(address)) != NULL)
        snprintf(text, size, "%s:%u", address, ntohs(name->four.sin_port));
    else if (name->any.sa_family == AF_INET6 &&
             inet_ntop(AF_INET6, &name->six.sin6_addr, address, sizeof(address)) != NULL)
        snprintf(text, size, "[%s]:%u", address, ntohs(name->six.sin6_port));
    else
        snprintf(text, size, "a local socket");
}

static void proc_print(struct tb_proc proc, struct tb_proc self, char *text, size_t size)
{
    if (proc.job == self.job && (proc.index & TB_PROC_AGENT) != 0)
        snprintf(text, size, "the agent of host %u", proc.index & ~TB_PROC_AGENT);
    else if (proc.job == self.job)
        snprintf(text, size, "rank %u", proc.index);
    else
        snprintf(text, size, "process %u of job %u", proc.index, proc.job);
}

int tb_connection_end_story(const struct tb_connection *c, int code, const char *why)
{
    char here[80], there[80], self[48], peer[48];
    name_print(&c->here, here, sizeof(here));
    name_print(&c->there, there, sizeof(there));
    proc_print(c->hub->self, c->hub->self, self, sizeof(self));
    proc_print(c->peer->proc, c->hub->self, peer, sizeof(peer));
    return tb_error(code, "the connection of %s (%s) to %s (%s) broke: %s", self, here, peer, there, why);
}

int tb_connection_story(const struct tb_connection *c, const char *why)
{
    return tb_connection_end_story(c, TB_ERR_PEER, why);
}

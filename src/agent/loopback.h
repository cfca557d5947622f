/* TCP connections of this host with itself, for two of its processes that speak the tcp transport. One thread. */
#ifndef TB_AGENT_LOOPBACK_H
#define TB_AGENT_LOOPBACK_H

struct tb_loopback {
    int listener; /* at 127.0.0.1; -1: none yet */
};

void tb_loopback_open(struct tb_loopback *loopback);
/* Both ends of a new connection, which are the caller's. TB_ERR_SYSTEM with a story. `host` is its name. */
int tb_loopback_pair(struct tb_loopback *loopback, const char *host, int pair[2]);
void tb_loopback_close(struct tb_loopback *loopback);

#endif

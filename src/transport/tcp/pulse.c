#include "transport/tcp/pulse.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* Linux 6.15; others repeat after up to two minutes */
#endif

#define ASK_S        1    /* how often the kernels ask each other when nothing is on its way */
#define PROBES_MOST  3    /* questions without an answer */
#define REPEATS_MOST 4    /* likewise of what was sent; three seconds at least */
#define SILENT_MS    3000 /* and nothing was acknowledged for so long: who has no room does acknowledge */
#define REPEAT_MS    4000 /* what waits after a cut is repeated as often as this */
#define NO_LIMIT_MS  (7 * 24 * 3600 * 1000) /* when to give up is not for the kernel to say */

static int get(int socket, int level, int option)
{
    int value = 0;
    socklen_t length = sizeof value;
    return getsockopt(socket, level, option, &value, &length) == 0 ? value : 0;
}

static void set(int socket, int level, int option, int value)
{
    setsockopt(socket, level, option, &value, sizeof value);
}

void tb_pulse_feel(struct tb_pulse *pulse, int socket)
{
    if (pulse->felt)
        return;
    *pulse = (struct tb_pulse){.felt = true,
                               .alive = get(socket, SOL_SOCKET, SO_KEEPALIVE),
                               .idle = get(socket, IPPROTO_TCP, TCP_KEEPIDLE),
                               .interval = get(socket, IPPROTO_TCP, TCP_KEEPINTVL),
                               .limit = get(socket, IPPROTO_TCP, TCP_USER_TIMEOUT)};
    set(socket, IPPROTO_TCP, TCP_RTO_MAX_MS, REPEAT_MS);
    set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, NO_LIMIT_MS);
    set(socket, IPPROTO_TCP, TCP_KEEPINTVL, ASK_S);
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, ASK_S);
    set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
}

void tb_pulse_rest(struct tb_pulse *pulse, int socket)
{
    if (!pulse->felt)
        return;
    pulse->felt = false;
    set(socket, SOL_SOCKET, SO_KEEPALIVE, pulse->alive);
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, pulse->idle);
    set(socket, IPPROTO_TCP, TCP_KEEPINTVL, pulse->interval);
    set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, pulse->limit);
}

bool tb_pulse_is_stuck(const struct tb_pulse *pulse, int socket, uint64_t *tried)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (!pulse->felt || getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
        (info.tcpi_state != TCP_ESTABLISHED && info.tcpi_state != TCP_CLOSE_WAIT))
        return false;
    bool sending = info.tcpi_unacked > 0;
    uint64_t ago = sending ? info.tcpi_last_data_sent : ASK_S * UINT64_C(1000); /* data is sent again, questions too */
    *tried = ago * 1000000;
    return info.tcpi_last_ack_recv >= SILENT_MS &&
           (sending ? info.tcpi_retransmits >= REPEATS_MOST : info.tcpi_probes >= PROBES_MOST);
}

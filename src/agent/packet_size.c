#include "agent/packet_size.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define SEGMENT  536         /* bytes; with all headers it is less than the 576 of any IPv4 network */
#define PAUSE_NS 3000000000u /* between answers; who is asked once a second makes no longer ones */
#define SILENT_NS                                                                                                      \
    4000000000u /* of a connection while others answer; a segment that is lost has been repeated four times */

void tb_packet_size_answered(struct tb_packet_size *size, uint64_t when)
{
    if (when <= size->answered)
        return;
    if (size->answered_since == 0 || when - size->answered > PAUSE_NS)
        size->answered_since = when;
    size->answered = when;
}

/* One that is no TCP socket, as in tests, is not. */
static bool is_small(int socket)
{
    int segment = 0;
    socklen_t length = sizeof segment;
    return getsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &segment, &length) == 0 && segment <= SEGMENT;
}

enum tb_packet_verdict tb_packet_size_judge(const struct tb_packet_size *size, int socket, uint64_t since, uint64_t now)
{
    if (size->answered_since == 0 || now - size->answered > PAUSE_NS)
        return TB_PACKET_UNKNOWN;
    uint64_t begin = since > size->answered_since ? since : size->answered_since;
    if (now - begin <= SILENT_NS)
        return TB_PACKET_UNKNOWN;
    return is_small(socket) ? TB_PACKET_NONE : TB_PACKET_TOO_LARGE;
}

void tb_packet_size_make_small(int socket)
{
    int segment = SEGMENT;
    setsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
}

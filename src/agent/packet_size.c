#include "agent/packet_size.h"

#include <netinet/in.h>
#include <linux/tcp.h>
#include <sys/socket.h>

#define SEGMENT      536         /* bytes; with all headers it is less than the 576 of any IPv4 network */
#define PAUSE_NS     2000000000u /* between answers; who is asked once a second makes no longer ones */
#define SILENT_NS    4000000000u /* of a connection while others answer; what was lost has been sent again four times */
#define RESENT_NS    1000000000u /* after others have begun to answer: what is sent again later finds a way that is up */
#define KNOWN_NS     1500000000u /* of one with large segments after others have met that */
#define DEAD_NS      6000000000u /* where nothing of ours is lost: if it is what they send, they find that out before */
#define PASSED_BYTES 8192u       /* by a connection that does not stand still */
#define AGAIN_NS     60000000000u /* so long a way is not used that has carried nothing but answers */

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

/* Whether the kernel sends something again that is not taken, and has done so in the `ns` that are over since the way
 * was seen to be up: behind a cut that is healed it waits longer and longer before it does. A proxy that has stopped
 * takes what fits its memory, and then says that there is no more room. */
static bool is_lost(int socket, uint64_t ns)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
           (info.tcpi_unacked > 0 && info.tcpi_retransmits > 0 &&
            info.tcpi_last_data_sent * UINT64_C(1000000) + RESENT_NS <= ns);
}

uint64_t tb_packet_size_answered_for(const struct tb_packet_size *size, uint64_t since, uint64_t now)
{
    if (size->answered_since == 0 || now - size->answered > PAUSE_NS)
        return 0;
    uint64_t begin = since > size->answered_since ? since : size->answered_since;
    return size->answered > begin ? size->answered - begin : 0;
}

enum tb_packet_verdict tb_packet_size_judge(const struct tb_packet_size *size, int socket, uint64_t since, uint64_t now)
{
    uint64_t begin = since > size->answered_since ? since : size->answered_since;
    uint64_t answers = tb_packet_size_answered_for(size, since, now); /* how long others have gone on */
    bool made_small = is_small(socket);
    if (answers <= (size->small && !made_small ? KNOWN_NS : SILENT_NS))
        return TB_PACKET_UNKNOWN;
    if (made_small)
        return TB_PACKET_NONE;
    if (size->small || is_lost(socket, now - begin))
        return TB_PACKET_TOO_LARGE;
    return now - begin > DEAD_NS ? TB_PACKET_DEAD : TB_PACKET_UNKNOWN;
}

void tb_packet_size_stuck(struct tb_packet_size *size, int socket, uint8_t stream, uint64_t since, uint64_t now)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length);
    if (size->stuck_since == 0)
        size->stuck_since = since;
    size->stuck = now;
    size->stuck_here = info.tcpi_unacked > 0;
    size->stuck_stream = stream;
}

void tb_packet_size_look(struct tb_packet_size *size, int socket)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
        (size->stuck_here ? info.tcpi_bytes_acked : info.tcpi_bytes_received) >= PASSED_BYTES)
        size->stuck_since = 0;
}

uint64_t tb_packet_size_stuck_since(struct tb_packet_size *size, uint64_t now)
{
    if (size->stuck_since != 0 && now - size->stuck > AGAIN_NS)
        size->stuck_since = 0;
    return size->stuck_since;
}

void tb_packet_size_make_small(int socket)
{
    int segment = SEGMENT;
    setsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
}

#include "lab/emulator_state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SOCKET_BYTES   (8 << 20)
#define OLDEST_NS      1000000000u /* an arrival longer ago than this is not believed: the clock was set */
#define ETHERNET_BYTES 14u
#define STEPS          (4 * TB_EMULATOR_BATCH) /* from pipe to pipe, for one run of frames to send */

/* ---- ports ------------------------------------------------------------------------------------------------------- */

uint32_t tb_emulator_port_find(const struct tb_emulator *e, const char *interface)
{
    for (uint32_t i = 0; i < e->port_count; i++)
        if (e->ports[i] && strcmp(e->ports[i]->name, interface) == 0)
            return i;
    return UINT32_MAX;
}

static int set_option(int fd, int level, int name, int value, const char *what, const char *interface)
{
    if (setsockopt(fd, level, name, &value, sizeof value) != 0)
        return tb_error_errno("interface %s: %s", interface, what);
    return 0;
}

static int open_socket(const char *interface, int *result)
{
    unsigned index = if_nametoindex(interface);
    if (index == 0)
        return tb_error(TB_ERR_ARGUMENT, "there is no interface %s", interface);
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return tb_error_errno("a packet socket for interface %s", interface);
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index};
    struct packet_mreq all = {.mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC};
    /* With this header a frame whose checksum is not made yet stays valid: it goes out with the same remark. */
    int rc = set_option(fd, SOL_PACKET, PACKET_VNET_HDR, 1, "PACKET_VNET_HDR", interface);
    if (rc == 0)
        rc = set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING", interface);
    if (rc == 0)
        rc = set_option(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS", interface);
    int bytes = SOCKET_BYTES;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    if (rc == 0 && bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        rc = tb_error_errno("interface %s: bind", interface);
    if (rc == 0 && setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) != 0)
        rc = tb_error_errno("interface %s: PACKET_MR_PROMISC", interface);
    if (rc != 0) {
        close(fd);
        return rc;
    }
    *result = fd;
    return 0;
}

static uint16_t segment_number(const struct tb_emulator *e, const char *name)
{
    bool taken[TB_EMULATOR_PORTS + 1] = {false};
    for (uint32_t i = 0; i < e->port_count; i++) {
        if (e->ports[i] && strcmp(e->ports[i]->segment_name, name) == 0)
            return e->ports[i]->segment;
        if (e->ports[i])
            taken[e->ports[i]->segment] = true;
    }
    uint16_t number = 1;
    while (taken[number]) /* fewer ports than numbers */
        number++;
    return number;
}

int tb_emulator_port_open(struct tb_emulator *e, const char *interface, const char *segment, bool trunk,
                          uint32_t *index)
{
    if (tb_emulator_port_find(e, interface) != UINT32_MAX)
        return tb_error(TB_ERR_ARGUMENT, "interface %s is a port already", interface);
    uint32_t slot = 0;
    while (slot < e->port_count && e->ports[slot])
        slot++;
    if (slot == TB_EMULATOR_PORTS)
        return tb_error(TB_ERR_LIMIT, "there are %u ports already", slot);
    struct tb_emulator_port *port = calloc(1, sizeof *port);
    if (!port)
        return tb_error(TB_ERR_MEMORY, "no memory for port %s", interface);
    int rc = open_socket(interface, &port->socket);
    if (rc != 0) {
        free(port);
        return rc;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = slot};
    if (epoll_ctl(e->epoll, EPOLL_CTL_ADD, port->socket, &event) != 0) {
        rc = tb_error_errno("interface %s: epoll_ctl", interface);
        close(port->socket);
        free(port);
        return rc;
    }
    strncpy(port->name, interface, sizeof port->name - 1);
    strncpy(port->segment_name, segment, sizeof port->segment_name - 1);
    port->segment = segment_number(e, segment);
    port->trunk = trunk;
    e->ports[slot] = port;
    if (slot == e->port_count)
        e->port_count++;
    *index = slot;
    return 0;
}

void tb_emulator_port_close(struct tb_emulator *e, uint32_t index)
{
    struct tb_emulator_port *port = e->ports[index];
    if (!port)
        return;
    close(port->socket);
    free(port);
    e->ports[index] = NULL;
    for (uint32_t i = 0; i < e->port_count; i++)
        if (e->ports[i])
            e->ports[i]->routes[index].count = 0;
    tb_hosts_forget(&e->hosts, index);
    tb_frames_forget(&e->frames, index, TB_FRAMES_ALL);
}

/* ---- the way through --------------------------------------------------------------------------------------------- */

/* ARP, and neighbour discovery of IPv6. */
static bool is_resolution(const struct tb_frame *frame)
{
    const uint8_t *b = frame->bytes;
    uint32_t type = (uint32_t)b[12] << 8 | b[13];
    if (type == ETH_P_ARP)
        return true;
    if (type != ETH_P_IPV6 || frame->length < ETHERNET_BYTES + 41)
        return false;
    uint8_t next = b[ETHERNET_BYTES + 6], message = b[ETHERNET_BYTES + 40];
    return next == IPPROTO_ICMPV6 && message >= 133 && message <= 137;
}

/* What becomes of a frame in a pipe, judged once for all the ports to which it goes. */
static enum tb_pipe_fate enter(struct tb_emulator *e, uint32_t index, const struct tb_frame *frame, uint64_t arrival)
{
    struct tb_emulator_pipe *pipe = e->pipes[index];
    if (pipe->visit != frame->visit || pipe->entered != arrival) {
        pipe->visit = frame->visit;
        pipe->entered = arrival;
        pipe->fate = is_resolution(frame) ? tb_pipe_enter_at_once(&pipe->pipe, arrival, frame->length, &pipe->due)
                                          : tb_pipe_enter(&pipe->pipe, arrival, frame->length, &pipe->due);
    }
    return pipe->fate;
}

/* Sends a frame to a port; it stays the caller's where `copied`. */
static void dispatch(struct tb_emulator *e, uint32_t from, uint32_t to, struct tb_frame *frame, uint64_t arrival,
                     bool copied)
{
    const struct tb_frame_way *way = &e->ports[from]->routes[to];
    uint32_t pipe = way->count > 0 ? way->pipes[0] : 0;
    struct tb_frame *sent = frame;
    if (enter(e, pipe, frame, arrival) != TB_PIPE_PASSES) {
        if (!copied)
            tb_frames_give(&e->frames, frame);
        return;
    }
    if (copied && !(sent = tb_frames_take(&e->frames))) {
        e->exhausted++;
        return;
    }
    if (copied) {
        sent->visit = frame->visit;
        sent->offload = frame->offload;
        sent->length = frame->length;
        memcpy(sent->bytes, frame->bytes, frame->length);
    }
    sent->due = e->pipes[pipe]->due;
    sent->port = to;
    sent->pipe = pipe;
    sent->way = *way;
    sent->stage = 0;
    if (tb_frames_push(&e->frames, sent) != 0)
        e->exhausted++;
}

/* Out of one pipe and into the next, at the very moment at which it comes out, however late we are. Those that share a
 * pipe enter it in the order of their moments, since they come from the heap. False: it has no further one. */
static bool proceed(struct tb_emulator *e, struct tb_frame *frame)
{
    if (frame->stage + 1u >= frame->way.count)
        return false;
    uint32_t pipe = frame->way.pipes[++frame->stage];
    if (enter(e, pipe, frame, frame->due) != TB_PIPE_PASSES) {
        tb_frames_give(&e->frames, frame);
        return true;
    }
    frame->pipe = pipe;
    frame->due = e->pipes[pipe]->due;
    if (tb_frames_push(&e->frames, frame) != 0)
        e->exhausted++;
    return true;
}

/* To the ports of the segment: the trunks where there are some and the frame is for one host, else all. */
static void flood(struct tb_emulator *e, uint32_t from, struct tb_frame *frame, uint64_t arrival, bool to_one)
{
    const struct tb_emulator_port *port = e->ports[from];
    bool trunks = false;
    for (uint32_t i = 0; to_one && i < e->port_count; i++)
        trunks |= e->ports[i] && e->ports[i]->segment == port->segment && e->ports[i]->trunk;
    for (uint32_t i = 0; i < e->port_count; i++)
        if (i != from && e->ports[i] && e->ports[i]->segment == port->segment && (!trunks || e->ports[i]->trunk))
            dispatch(e, from, i, frame, arrival, true);
}

/* Takes the frame over. */
static void carry(struct tb_emulator *e, uint32_t from, struct tb_frame *frame, uint64_t arrival)
{
    uint16_t segment = e->ports[from]->segment;
    const uint8_t *destination = frame->bytes, *source = frame->bytes + 6;
    bool to_one = !(destination[0] & 1);
    frame->visit = ++e->visit;
    if (!(source[0] & 1))
        tb_hosts_learn(&e->hosts, segment, source, from, false);
    uint32_t to = to_one ? tb_hosts_find(&e->hosts, segment, destination) : TB_HOSTS_NONE;
    if (to != TB_HOSTS_NONE && to != from) {
        dispatch(e, from, to, frame, arrival, false);
        return;
    }
    if (to == TB_HOSTS_NONE)
        flood(e, from, frame, arrival, to_one);
    tb_frames_give(&e->frames, frame);
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

struct inbox {
    struct mmsghdr messages[TB_EMULATOR_BATCH];
    struct iovec spans[TB_EMULATOR_BATCH][2];
    alignas(struct cmsghdr) char stamps[TB_EMULATOR_BATCH][CMSG_SPACE(sizeof(struct timespec))];
};

/* Room for as many frames as there is memory for, at most a batch. */
static uint32_t prepare(struct tb_emulator *e, struct inbox *in)
{
    for (uint32_t i = 0; i < TB_EMULATOR_BATCH; i++) {
        if (!e->inbox[i] && !(e->inbox[i] = tb_frames_take(&e->frames)))
            return i;
        struct tb_frame *frame = e->inbox[i];
        in->spans[i][0] = (struct iovec){.iov_base = &frame->offload, .iov_len = sizeof frame->offload};
        in->spans[i][1] = (struct iovec){.iov_base = frame->bytes, .iov_len = sizeof frame->bytes};
        in->messages[i].msg_hdr = (struct msghdr){.msg_iov = in->spans[i],
                                                  .msg_iovlen = 2,
                                                  .msg_control = in->stamps[i],
                                                  .msg_controllen = sizeof in->stamps[i]};
    }
    return TB_EMULATOR_BATCH;
}

static uint64_t in_ns(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

/* When the kernel got the frame, so that our being late does not slow a pipe down. Its stamps are of the clock of the
 * day; `offset` leads from there to ours. */
static uint64_t arrival_of(struct msghdr *message, uint64_t now, uint64_t offset)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_TIMESTAMPNS)
            continue;
        struct timespec stamp;
        memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
        uint64_t arrival = in_ns(&stamp) - offset;
        if (arrival <= now && now - arrival < OLDEST_NS)
            return arrival;
    }
    return now;
}

int tb_emulator_port_receive(struct tb_emulator *e, uint32_t index)
{
    struct inbox in;
    struct tb_emulator_port *port = e->ports[index];
    uint32_t room = prepare(e, &in);
    if (room == 0) { /* read and forget, else we would be woken for ever */
        char byte;
        while (recv(port->socket, &byte, 1, MSG_DONTWAIT) >= 0)
            e->exhausted++;
        return 0;
    }
    int n = recvmmsg(port->socket, in.messages, room, MSG_DONTWAIT, NULL);
    if (n < 0) /* an interface that is down says so once and stays */
        return errno == EAGAIN || errno == EINTR || errno == ENETDOWN || errno == ENOBUFS
                   ? 0
                   : tb_error_errno("receiving on interface %s", port->name);
    struct timespec day;
    clock_gettime(CLOCK_REALTIME, &day);
    uint64_t now = tb_clock_now_real(), offset = in_ns(&day) - now;
    for (int i = 0; i < n; i++) {
        struct msghdr *message = &in.messages[i].msg_hdr;
        struct tb_frame *frame = e->inbox[i];
        port->received++;
        if (in.messages[i].msg_len < sizeof frame->offload + ETHERNET_BYTES)
            continue;
        if ((message->msg_flags & MSG_TRUNC) || frame->offload.gso_type != VIRTIO_NET_HDR_GSO_NONE) {
            port->giant++;
            continue;
        }
        frame->length = in.messages[i].msg_len - (uint32_t)sizeof frame->offload;
        e->inbox[i] = NULL;
        carry(e, index, frame, arrival_of(message, now, offset));
    }
    return 0;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* Sends frames that go to one port, and notes how late they are. */
static void send_run(struct tb_emulator *e, struct tb_frame **frames, uint32_t count)
{
    struct mmsghdr messages[TB_EMULATOR_BATCH];
    struct iovec spans[TB_EMULATOR_BATCH][2];
    struct tb_emulator_port *port = e->ports[frames[0]->port];
    for (uint32_t i = 0; i < count; i++) {
        struct tb_frame *frame = frames[i];
        frame->offload.flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM; /* the rest is said by who receives, not by who sends */
        spans[i][0] = (struct iovec){.iov_base = &frame->offload, .iov_len = sizeof frame->offload};
        spans[i][1] = (struct iovec){.iov_base = frame->bytes, .iov_len = frame->length};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = spans[i], .msg_iovlen = 2};
    }
    for (uint32_t done = 0; done < count;) {
        int n = sendmmsg(port->socket, messages + done, count - done, MSG_DONTWAIT);
        if (n > 0) {
            port->sent += (uint32_t)n;
            done += (uint32_t)n;
        } else if (errno != EINTR) {
            port->unsent++;
            done++;
        }
    }
    uint64_t now = tb_clock_now_real();
    for (uint32_t i = 0; i < count; i++) {
        tb_lateness_note(&e->lateness, now > frames[i]->due ? now - frames[i]->due : 0);
        tb_frames_give(&e->frames, frames[i]);
    }
}

void tb_emulator_port_send(struct tb_emulator *e)
{
    struct tb_frame *batch[TB_EMULATOR_BATCH], *frame;
    /* Bounded: when there is ever more to send, what arrives is to be read all the same. */
    for (uint32_t runs = 0; runs < TB_EMULATOR_BATCH; runs++) {
        uint64_t now = tb_clock_now_real();
        uint32_t count = 0, steps = 0;
        while (count < TB_EMULATOR_BATCH && steps++ < STEPS && (frame = tb_frames_first(&e->frames)) &&
               frame->due <= now && (count == 0 || frame->port == batch[0]->port)) {
            frame = tb_frames_pop(&e->frames);
            if (!proceed(e, frame))
                batch[count++] = frame;
        }
        if (count == 0 && steps <= STEPS)
            return;
        if (count > 0)
            send_run(e, batch, count);
    }
}

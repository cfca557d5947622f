/* Control frames between an agent and a rank: packets on a Unix socket, with descriptors. */
#include "job/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int tb_packet_send(int socket, enum tb_control kind, const struct tb_writer *fields, const int *descriptors,
                   uint32_t descriptor_count)
{
    TB_ASSERT(descriptor_count <= TB_PACKET_DESCRIPTORS);
    uint8_t head[sizeof(struct tb_hop) + 4];
    size_t body = fields != NULL ? fields->length : 0;
    if ((fields != NULL && fields->error != TB_OK) || body + sizeof head > TB_PACKET_LIMIT)
        return tb_error(TB_ERR_LIMIT, "a control message for a rank is too long");
    struct tb_hop hop = {.version = TB_WIRE_VERSION, .type = TB_HOP_CONTROL, .length = (uint32_t)body + 4};
    tb_wire_put_hop(head, &hop);
    for (int i = 0; i < 4; i++)
        head[sizeof hop + (size_t)i] = (uint8_t)((uint32_t)kind >> (8 * i));
    struct iovec parts[2] = {{head, sizeof head}, {fields != NULL ? fields->bytes : NULL, body}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = body > 0 ? 2 : 1};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * TB_PACKET_DESCRIPTORS)];
    } extra;
    if (descriptor_count > 0) {
        message.msg_control = extra.room;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptor_count);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * descriptor_count);
        memcpy(CMSG_DATA(rights), descriptors, sizeof(int) * descriptor_count);
    }
    for (;;) {
        if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
            return TB_OK;
        /* ETOOMANYREFS: too many descriptors of this user are under way; others will be taken first. */
        if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS)
            return TB_AGAIN;
        if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
            return TB_ERR_CLOSED;
        if (errno != EINTR)
            return tb_error_errno("cannot send on the socket between agent and rank");
    }
}

static void take_rights(const struct cmsghdr *c, struct tb_packet *packet)
{
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int descriptor;
        memcpy(&descriptor, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
        if (packet->descriptor_count < TB_PACKET_DESCRIPTORS)
            packet->descriptors[packet->descriptor_count++] = descriptor;
        else
            close(descriptor);
    }
}

static void take_extra(const struct cmsghdr *c, struct tb_packet *packet)
{
    struct ucred who;
    if (c->cmsg_level != SOL_SOCKET)
        return;
    if (c->cmsg_type == SCM_RIGHTS) {
        take_rights(c, packet);
    } else if (c->cmsg_type == SCM_CREDENTIALS) {
        memcpy(&who, CMSG_DATA(c), sizeof who);
        packet->sender = who.pid;
    }
}

int tb_packet_receive(int socket, struct tb_packet *packet, bool wait)
{
    packet->descriptor_count = 0;
    packet->sender = 0;
    struct iovec part = {packet->bytes, sizeof packet->bytes};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * TB_PACKET_DESCRIPTORS) + CMSG_SPACE(sizeof(struct ucred))];
    } extra;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = extra.room, .msg_controllen = sizeof extra};
    ssize_t n;
    bool reset = false;
    for (;;) {
        n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
        /* An end that was closed with packets unread tells so first; what it had sent before is still there. */
        if (n < 0 && errno == ECONNRESET && !reset)
            reset = true;
        else if (n >= 0 || errno != EINTR)
            break;
    }
    if (n < 0 && errno == EAGAIN)
        return TB_AGAIN;
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return TB_ERR_CLOSED;
    if (n < 0)
        return tb_error_errno("cannot receive on the socket between agent and rank");
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c))
        take_extra(c, packet);
    if (message.msg_flags & MSG_CTRUNC) {
        tb_packet_discard(packet);
        return tb_error(TB_ERR_LIMIT, "this process may not have as many open descriptors as the job needs; "
                                      "raise the limit (ulimit -n) or start fewer ranks on this host");
    }
    struct tb_hop hop;
    if ((size_t)n < sizeof hop + 4 || (message.msg_flags & MSG_TRUNC) ||
        tb_wire_get_hop(packet->bytes, &hop) != TB_OK || hop.type != TB_HOP_CONTROL ||
        hop.length + sizeof hop != (size_t)n) {
        tb_packet_discard(packet);
        return tb_error(TB_ERR_PROTOCOL, "a packet between agent and rank is no control message; "
                                         "are program and mpiexec of the same version of Tombolo?");
    }
    tb_reader_open(&packet->frame.fields, packet->bytes + sizeof hop, hop.length);
    packet->frame.kind = tb_get_u32(&packet->frame.fields);
    return TB_OK;
}

void tb_packet_discard(struct tb_packet *packet)
{
    for (uint32_t i = 0; i < packet->descriptor_count; i++)
        if (packet->descriptors[i] >= 0)
            close(packet->descriptors[i]);
    packet->descriptor_count = 0;
}

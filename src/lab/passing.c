/* Messages with descriptors. */
#include "lab/passing.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(TB_PASS_DESCRIPTORS * sizeof(int))];
};

int tb_pass(int socket, const char *text, const int *descriptors, uint32_t count)
{
    union control control;
    struct iovec span = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
    struct msghdr message = {.msg_iov = &span, .msg_iovlen = 1};
    TB_ASSERT(count <= TB_PASS_DESCRIPTORS);
    if (count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(head), descriptors, count * sizeof(int));
    }
    while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
        if (errno != EINTR)
            return tb_error_errno("cannot send to the other side of the lab's socket");
    return TB_OK;
}

static void take_descriptors(struct msghdr *message, int *descriptors, uint32_t room, uint32_t *count)
{
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head != NULL; head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
            if (*count < room)
                descriptors[(*count)++] = fd;
            else
                close(fd);
        }
    }
}

int tb_pass_take(int socket, char *text, size_t room, int *descriptors, uint32_t *count)
{
    union control control;
    struct iovec span = {.iov_base = text, .iov_len = room - 1};
    struct msghdr message = {
        .msg_iov = &span, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    uint32_t places = count != NULL ? *count : 0, taken = 0;
    ssize_t n;
    do
        n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == ECONNRESET ? tb_error(TB_ERR_CLOSED, "the lab is gone")
                                   : tb_error_errno("cannot read from the lab's socket");
    take_descriptors(&message, descriptors, places, &taken);
    if (count != NULL)
        *count = taken;
    text[n] = 0;
    return n > 0 ? TB_OK : tb_error(TB_ERR_CLOSED, "the lab is gone");
}

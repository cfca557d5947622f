/* An agent that is started by hand. This process only carries bytes: on one side the launcher, over TCP and TLS with a
 * key that comes from what was typed, on the other an agent like any other, which ends when we do. */
#include "agent/agent.h"
#include "link/link.h"
#include "remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define SECRET_BYTES 256
#define READ_BYTES   65536
#define CONNECT_MS   5000
#define ANSWER_S     20
#define TRIES        20 /* to get through a crowd of strangers, */
#define PAUSE_US     100000
#define INTERRUPT    3 /* what Ctrl-C types */

struct join {
    struct tb_key key;
    int socket;
    struct tb_tls *tls;
    struct tb_shell shell;
};

/* ---- the secret -------------------------------------------------------------------------------------------------- */

/* A line of standard input; a terminal does not show it. */
static int ask_secret(char *secret, size_t size)
{
    struct termios before, quiet;
    bool terminal = isatty(0) && tcgetattr(0, &before) == 0;
    if (terminal) {
        quiet = before;
        quiet.c_lflag &= ~(tcflag_t)(ECHO | ISIG); /* who is ended here would leave it without echo */
        tcsetattr(0, TCSAFLUSH, &quiet);
    }
    fputs("secret: ", stderr);
    size_t length = 0;
    char c = 0;
    while (length + 1 < size && read(0, &c, 1) == 1 && c != '\n' && !(terminal && c == INTERRUPT))
        secret[length++] = c;
    if (c == INTERRUPT)
        length = 0;
    secret[length] = 0;
    if (terminal) {
        tcsetattr(0, TCSAFLUSH, &before);
        fputs("\n", stderr);
    }
    return length > 0 ? TB_OK : tb_error(TB_ERR_ARGUMENT, "no secret was given; `tombolo run --manual` shows it");
}

/* ---- connecting -------------------------------------------------------------------------------------------------- */

static int connect_one(const struct addrinfo *to)
{
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
    socklen_t length = sizeof error;
    if (fd < 0)
        return -1;
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    bool good = connect(fd, to->ai_addr, to->ai_addrlen) == 0;
    if (!good && errno == EINPROGRESS) {
        int n = poll(&room, 1, CONNECT_MS);
        good = n == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
        errno = n == 0 ? ETIMEDOUT : error;
    }
    if (!good) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    struct timeval patience = {.tv_sec = ANSWER_S};
    fcntl(fd, F_SETFL, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

/* "host:port" or "[address]:port"; -1: nobody answers, and the story says why. */
static int connect_text(char *text)
{
    char *colon = strrchr(text, ':'), *host = text;
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (colon == NULL || colon == text || colon[1] == 0) {
        tb_error(TB_ERR_ARGUMENT, "--join %s: should be ADDRESS:PORT", text);
        return -1;
    }
    *colon = 0;
    if (*host == '[' && colon[-1] == ']') {
        host++;
        colon[-1] = 0;
    }
    int rc = getaddrinfo(host, colon + 1, &wanted, &found), fd = -1;
    if (rc != 0)
        tb_error(TB_ERR_PEER, "cannot find %s: %s", host, gai_strerror(rc));
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = connect_one(at);
        if (fd < 0)
            tb_error(TB_ERR_PEER, "nobody answers at %s port %s: %s", host, colon + 1, strerror(errno));
    }
    if (found != NULL)
        freeaddrinfo(found);
    return fd;
}

static int connect_any(const char *addresses)
{
    char *copy = strdup(addresses), *rest = NULL;
    int fd = -1;
    for (char *word = copy != NULL ? strtok_r(copy, ",", &rest) : NULL; word != NULL && fd < 0;
         word = strtok_r(NULL, ",", &rest))
        fd = connect_text(word);
    free(copy);
    return fd;
}

static int put(void *context, const void *bytes, size_t length)
{
    const struct join *join = context;
    for (size_t at = 0; at < length;) {
        ssize_t n = send(join->socket, (const char *)bytes + at, length - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tb_error_errno("the connection to the launcher has broken");
        at += (size_t)n;
    }
    return TB_OK;
}

/* Sends what the handshake has to say, and waits until the launcher has answered. TB_ERR_LIMIT: others have taken our
 * place at its port, which it does not close but reset. */
static int exchange(const struct join *join, struct tb_handshake *h)
{
    if (tb_handshake_socket_send(h, join->socket) != TB_OK)
        return tb_error_errno("the connection to the launcher has broken");
    int rc = tb_handshake_socket_receive(h, join->socket);
    if (rc == TB_ERR_CLOSED || (rc == TB_OK && h->verdict == TB_HANDSHAKE_REFUSED))
        return tb_error(TB_ERR_FORBIDDEN, "the launcher has closed the connection: is the secret right, and was it "
                                          "not used already?");
    if (rc != TB_OK && errno == ECONNRESET)
        return tb_error(TB_ERR_LIMIT, "the launcher is too busy with others who connect to it");
    if (rc != TB_OK)
        return tb_error_errno("the launcher does not answer");
    return h->verdict == TB_HANDSHAKE_FAILED ? h->error : TB_OK;
}

/* Both sides show that they have the key. */
static int prove(const struct join *join, struct tb_handshake *h)
{
    struct tb_proc self = {0, TB_PROC_AGENT}, launcher = {0, 0};
    int rc = tb_handshake_connect(h, &join->key, self, launcher, TB_STREAM_SHORT, 0);
    if (rc == TB_OK)
        rc = exchange(join, h);
    if (rc == TB_OK)
        rc = tb_handshake_confirm(h);
    return rc == TB_OK ? exchange(join, h) : rc;
}

/* Connects to the first address that answers and proves the key there. */
static int meet(struct join *join, const char *addresses, struct tb_handshake *h)
{
    int rc = TB_ERR_LIMIT;
    for (int i = 0; i < TRIES && rc == TB_ERR_LIMIT; i++) {
        if (i > 0) {
            close(join->socket);
            usleep(PAUSE_US);
        }
        join->socket = connect_any(addresses);
        rc = join->socket >= 0 ? prove(join, h) : TB_ERR_PEER;
    }
    return rc;
}

static int encrypt(struct join *join, const struct tb_handshake *h)
{
    uint8_t bytes[512];
    struct tb_key secret;
    int rc = tb_stream_secret(&secret, &join->key, &h->hello, &h->welcome);
    if (rc == TB_OK)
        rc = tb_tls_open(&join->tls, &secret, true, put, join);
    while (rc == TB_OK && (rc = tb_tls_handshake(join->tls)) == TB_AGAIN) {
        ssize_t n = recv(join->socket, bytes, sizeof bytes, 0);
        if (n <= 0)
            return n == 0 ? tb_error(TB_ERR_CLOSED, "the launcher has closed the connection")
                          : tb_error_errno("the launcher does not answer");
        tb_tls_feed(join->tls, bytes, (size_t)n);
        rc = TB_OK;
    }
    return rc;
}

/* ---- carrying ---------------------------------------------------------------------------------------------------- */

static int write_all(int fd, const uint8_t *bytes, size_t length)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EAGAIN)
            poll(&room, 1, -1);
        else if (n < 0 && errno != EINTR)
            return TB_ERR_CLOSED;
        bytes += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return TB_OK;
}

/* What TLS has for the agent by now: TB_AGAIN when that is all. */
static int deliver(const struct join *join)
{
    static uint8_t plain[READ_BYTES];
    size_t got;
    int rc;
    while ((rc = tb_tls_read(join->tls, plain, sizeof plain, &got)) == TB_OK)
        if (write_all(join->shell.stream, plain, got) != TB_OK)
            return TB_ERR_CLOSED;
    return rc;
}

/* Until one of the two sides ends. */
static int carry(const struct join *join)
{
    static uint8_t bytes[READ_BYTES];
    struct pollfd sides[] = {{.fd = join->socket, .events = POLLIN}, {.fd = join->shell.stream, .events = POLLIN}};
    int rc = deliver(join); /* the handshake may have brought some already */
    while (rc == TB_AGAIN) {
        if (poll(sides, 2, -1) < 0 && errno != EINTR)
            return TB_ERR_SYSTEM;
        if (sides[1].revents != 0) {
            ssize_t n = read(join->shell.stream, bytes, sizeof bytes);
            if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                return tb_tls_end(join->tls);
            if (n > 0 && tb_tls_write(join->tls, bytes, (size_t)n) != TB_OK)
                return TB_ERR_CLOSED;
        }
        if (sides[0].revents != 0) {
            ssize_t n = recv(join->socket, bytes, sizeof bytes, MSG_DONTWAIT);
            if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                return TB_ERR_CLOSED;
            if (n > 0) {
                tb_tls_feed(join->tls, bytes, (size_t)n);
                rc = deliver(join);
            }
        }
    }
    return rc;
}

int tb_agent_join(const char *addresses)
{
    struct join join = {.socket = -1};
    struct tb_handshake handshake;
    char secret[SECRET_BYTES];
    sigset_t none;
    int status = 0;
    sigemptyset(&none);
    tb_core_forbid();
    signal(SIGPIPE, SIG_IGN);
    int rc = tb_transports_load_params();
    if (rc == TB_OK)
        rc = ask_secret(secret, sizeof secret);
    if (rc == TB_OK)
        rc = tb_key_derive(&join.key, secret);
    explicit_bzero(secret, sizeof secret);
    if (rc == TB_OK)
        rc = meet(&join, addresses, &handshake);
    if (rc == TB_OK)
        rc = encrypt(&join, &handshake);
    struct tb_shell_target here = {.host = "this host", .program = "tombolo", .local = true};
    if (rc == TB_OK)
        rc = tb_shell_start(&here, &none, &join.shell);
    if (rc != TB_OK) {
        fprintf(stderr, "tombolo agent: %s\n", tb_error_story());
        return 1;
    }
    fputs("tombolo agent: joined; this ends with the job\n", stderr);
    carry(&join);
    close(join.shell.stream);
    while (waitpid(join.shell.pid, &status, 0) < 0 && errno == EINTR)
        ;
    tb_tls_close(join.tls);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

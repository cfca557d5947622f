/* Groups of processes that find each other by a port, or by a socket (MPI-5.0, 11.9), of one job or of two. Ports are
 * the launcher's (launch/meetings.h). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mpi/agreement.h"
#include "mpi/binding_decls.h"
#include "mpi/info.h"
#include "mpi/party.h"
#include "mpi/wish.h"

#define JOIN_MAGIC   0x746a6f69u
#define JOIN_POLL_MS 1 /* between rounds of progress */

/* ---- ports ------------------------------------------------------------------------------------------------------- */

/* Of what keeps groups from meeting, nearly all is about the port; what is wrong with an argument, about the groups. */
static int class_of(int error)
{
    if (error == TB_ERR_ARGUMENT)
        return MPI_ERR_COMM;
    return error == TB_ERR_CLOSED || error == TB_ERR_TIMEOUT ? MPI_ERR_PORT : tb_error_class_of(error);
}

/* At the border of a host; NULL: of this one. */
static int open_port(const char *call, const char *host, char *name)
{
    struct tb_meeting meeting = {.wish = TB_MEETING_OPEN, .bytes = host, .length = host != NULL ? strlen(host) : 0};
    struct tb_job_answer answer = {0};
    int error = tb_wish_ask(call, NULL, &meeting, &answer);
    if (error == TB_OK)
        snprintf(name, MPI_MAX_PORT_NAME, "%.*s", (int)answer.length, (const char *)answer.bytes);
    free(answer.bytes);
    return error;
}

static int close_port(const char *call, const char *name)
{
    struct tb_meeting meeting = {
        .wish = TB_MEETING_CLOSE, .name = name, .name_length = strnlen(name, MPI_MAX_PORT_NAME)};
    struct tb_job_answer answer = {0};
    int error = tb_wish_ask(call, NULL, &meeting, &answer);
    free(answer.bytes);
    return error;
}

int tb_mpi_Open_port(MPI_Info info, char *port_name)
{
    static const char call[] = "MPI_Open_port";
    tb_require_active(call);
    if (info != MPI_INFO_NULL && tb_info_find(info) == NULL)
        return tb_raise_info(NULL, call, 1, info);
    if (port_name == NULL)
        return tb_raise_null(NULL, call, 2, "port_name");
    int error = open_port(call, info != MPI_INFO_NULL ? tb_info_value(tb_info_find(info), "host") : NULL, port_name);
    return error == TB_OK ? MPI_SUCCESS : tb_raise_below(NULL, error, call);
}

int tb_mpi_Close_port(const char *port_name)
{
    static const char call[] = "MPI_Close_port";
    tb_require_active(call);
    if (port_name == NULL)
        return tb_raise_null(NULL, call, 1, "port_name");
    int error = close_port(call, port_name);
    return error == TB_OK ? MPI_SUCCESS : tb_raise(NULL, class_of(error), call, "%s", tb_error_story());
}

/* The key "timeout", in seconds. Without it, who accepts waits for ever, if it may, and who connects as long as for a
 * link that is down. */
static int take_patience(const struct tb_info *info, bool forever, uint64_t *patience)
{
    const uint64_t absent = UINT64_MAX;
    uint64_t wished = absent;
    *patience = forever ? 0 : tb_param.link_patience;
    int error = info != NULL ? tb_info_seconds(info, "timeout", &wished) : TB_OK;
    if (error == TB_OK && wished != absent)
        *patience = wished > 0 ? wished : 1; /* 0 would be for ever */
    return error;
}

/* Asks once; of who accepts with a context, which is put back unless the others may have it. */
static int ask(const char *call, struct tb_meeting *meeting, const struct tb_comm *comm, struct tb_party *party)
{
    struct tb_job_answer answer = {0};
    bool accepts = meeting->wish == TB_MEETING_ACCEPT;
    uint64_t context = accepts ? tb_context_take_between() : 0;
    if (accepts && context == 0)
        return TB_ERR_LIMIT;
    void *packed = tb_party_pack(context, comm, &meeting->length);
    meeting->bytes = packed;
    int error = packed != NULL ? tb_wish_ask(call, NULL, meeting, &answer) : TB_ERR_MEMORY;
    bool told = error == TB_OK || error == TB_AGAIN;
    if (error == TB_OK)
        error = tb_party_unpack(answer.bytes, answer.length, party);
    free(packed);
    free(answer.bytes);
    if (accepts && !told)
        tb_context_put_back(context);
    if (accepts) {
        party->context = context;
        party->told = true;
    }
    return error;
}

/* The root's part: who the others are, and the context, which is of those who accept. These wait for another one when
 * the first has gone after it had heard of them. */
static void meet(const char *call, enum tb_meeting_wish wish, const char *name, uint64_t patience,
                 const struct tb_comm *comm, struct tb_party *party)
{
    struct tb_meeting meeting = {.wish = wish, .name = name, .name_length = strnlen(name, MPI_MAX_PORT_NAME)};
    uint64_t begun = tb_clock_now(&tb_clock_real), passed = 0;
    int error;
    do {
        meeting.patience = patience > 0 ? patience - passed : 0;
        error = ask(call, &meeting, comm, party);
        passed = tb_clock_now(&tb_clock_real) - begun;
    } while (error == TB_AGAIN && (patience == 0 || passed < patience));
    if (error == TB_AGAIN)
        error = tb_error(TB_ERR_TIMEOUT, "nobody has come to the port in time who has stayed; the info key timeout, in "
                                         "seconds, says how long to wait");
    if (error != TB_OK)
        tb_party_fail(party, class_of(error));
}

static int meet_all(const char *call, enum tb_meeting_wish wish, const char *name, MPI_Info handle, int root,
                    MPI_Comm comm, MPI_Comm *newcomm)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 4, "comm", comm);
    if (c->inter)
        return tb_raise_argument(c, MPI_ERR_COMM, call, 4, "comm", "%s is an inter-communicator", tb_comm_name(c));
    if ((uint32_t)root >= c->size)
        return tb_raise_argument(c, MPI_ERR_ROOT, call, 3, "root", "rank %d is outside %s, which has ranks 0 to %u",
                                 root, tb_comm_name(c), c->size - 1);
    if (newcomm == NULL)
        return tb_raise_null(c, call, 5, "newcomm");
    int own = tb_comm_check_own(c, call, 4);
    if (own != MPI_SUCCESS)
        return own;
    struct tb_party party = {.class = MPI_SUCCESS};
    uint64_t patience = 0;
    const struct tb_info *info = handle != MPI_INFO_NULL ? tb_info_find(handle) : NULL;
    *newcomm = MPI_COMM_NULL;
    if (c->rank == (uint32_t)root && (name == NULL || (handle != MPI_INFO_NULL && info == NULL))) {
        tb_error(TB_ERR_ARGUMENT, name == NULL ? "argument 1 (port_name): the pointer is null"
                                               : "argument 2 (info): this is no info object, or it has been freed");
        tb_party_fail(&party, name == NULL ? MPI_ERR_PORT : MPI_ERR_INFO);
    } else if (c->rank == (uint32_t)root && take_patience(info, wish == TB_MEETING_ACCEPT, &patience) != TB_OK) {
        tb_party_fail(&party, MPI_ERR_INFO_VALUE);
    } else if (c->rank == (uint32_t)root) {
        meet(call, wish, name, patience, c, &party);
    }
    return tb_party_meet(call, c, (uint32_t)root, &party, newcomm);
}

int tb_mpi_Comm_accept(const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm)
{
    return meet_all("MPI_Comm_accept", TB_MEETING_ACCEPT, port_name, info, root, comm, newcomm);
}

int tb_mpi_Comm_connect(const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm)
{
    return meet_all("MPI_Comm_connect", TB_MEETING_CONNECT, port_name, info, root, comm, newcomm);
}

/* ---- a socket ---------------------------------------------------------------------------------------------------- */

/* What both tell each other. */
struct introduction {
    uint32_t magic, job, index, alone; /* it was not started by mpiexec, so that it has no port and reaches none */
    uint64_t context;
};

/* Any stream that can be read and written will do. A pipe is none: whoever wrote to one that nobody reads would be
 * ended by SIGPIPE. A FIFO that is open for both has a reader, this process. */
static int check_stream(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return tb_error_errno("argument 1 (fd): descriptor %d cannot be used", fd);
    if ((flags & O_ACCMODE) != O_RDWR)
        return tb_error(TB_ERR_ARGUMENT, "argument 1 (fd): descriptor %d is open for %s only; give a connected socket",
                        fd, (flags & O_ACCMODE) == O_RDONLY ? "reading" : "writing");
    return TB_OK;
}

/* Without a signal if nobody reads it any more: that is the program's own to handle, and would end most. */
static ssize_t put(int fd, const void *bytes, size_t length)
{
    ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
    return n < 0 && errno == ENOTSOCK ? write(fd, bytes, length) : n;
}

/* Whatever kind of stream it is, and whether or not it waits. Others may need this process before theirs comes to the
 * call, so that it makes progress meanwhile; nobody is waited for longer than for a link that is down. */
static int move(int fd, void *bytes, size_t length, bool out)
{
    uint64_t until = tb_clock_now(&tb_clock_real) + tb_param.link_patience;
    for (size_t done = 0; done < length;) {
        struct pollfd ready = {.fd = fd, .events = out ? POLLOUT : POLLIN};
        if (poll(&ready, 1, JOIN_POLL_MS) == 0) {
            tb_engine_progress(tb_self.engine);
            if (tb_clock_now(&tb_clock_real) > until)
                return tb_error(TB_ERR_TIMEOUT, "argument 1 (fd): nobody at its other end has called MPI_Comm_join");
            continue;
        }
        ssize_t n = out ? put(fd, (char *)bytes + done, length - done) : read(fd, (char *)bytes + done, length - done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno == EPIPE || errno == ECONNRESET)
            return tb_error(TB_ERR_CLOSED, "argument 1 (fd): the other side has closed it");
        else if (errno != EINTR && errno != EAGAIN)
            return tb_error_errno("argument 1 (fd): descriptor %d cannot be %s", fd, out ? "written to" : "read");
    }
    return TB_OK;
}

/* What comes from a socket is believed as far as it cannot harm others: the context must be one that this process can
 * have made up, and that is not in use here. */
static int check_introduction(const struct introduction *theirs)
{
    const struct tb_proc self = tb_self.job.self;
    if (theirs->magic != JOIN_MAGIC)
        return tb_error(TB_ERR_ARGUMENT, "argument 1 (fd): at its other end is no process that calls MPI_Comm_join");
    if (theirs->job != self.job)
        return TB_OK;
    if (theirs->index == self.index)
        return tb_error(TB_ERR_ARGUMENT, "argument 1 (fd): at its other end is this process itself");
    if (!tb_address_book_knows(&tb_self.job.book, theirs->index) ||
        tb_context_leader(theirs->context, self.job) != theirs->index ||
        tb_channel_exists(tb_self.engine, theirs->context))
        return tb_error(TB_ERR_ARGUMENT, "argument 1 (fd): what process %u says at its other end makes no sense",
                        theirs->index);
    return TB_OK;
}

/* The two are of different jobs, both of mpiexec: one of them opens a port, and tells the other its name; an empty one:
 * it cannot. */
static int join_jobs(const char *call, int fd, bool serves, MPI_Comm *intercomm)
{
    char name[MPI_MAX_PORT_NAME] = "";
    int code = MPI_SUCCESS, error = TB_OK;
    if (serves)
        error = open_port(call, NULL, name);
    if (error < 0) { /* the other one need not wait for a name */
        char story[900];
        snprintf(story, sizeof story, "%s", tb_error_story());
        move(fd, name, sizeof name, true);
        tb_error(error, "%s", story);
    } else {
        error = move(fd, name, sizeof name, serves);
    }
    name[sizeof name - 1] = 0;
    if (error < 0)
        return tb_raise_below(tb_self.self, error, call);
    if (name[0] == 0)
        return MPI_SUCCESS; /* the other side has no port, and says why */
    struct tb_party party = {.class = MPI_SUCCESS};
    meet(call, serves ? TB_MEETING_ACCEPT : TB_MEETING_CONNECT, name, tb_param.link_patience, tb_self.self, &party);
    code = tb_party_meet(call, tb_self.self, 0, &party, intercomm);
    if (serves)
        close_port(call, name);
    return code;
}

int tb_mpi_Comm_join(int fd, MPI_Comm *intercomm)
{
    static const char call[] = "MPI_Comm_join";
    tb_require_world(call);
    if (intercomm == NULL)
        return tb_raise_null(NULL, call, 2, "intercomm");
    const struct tb_proc self = tb_self.job.self;
    const bool alone = tb_self.job.control < 0;
    struct introduction mine = {JOIN_MAGIC, self.job, self.index, alone, tb_context_take_between()},
                        theirs = {.context = 0};
    *intercomm = MPI_COMM_NULL;
    if (mine.context == 0)
        return tb_raise_below(tb_self.self, TB_ERR_LIMIT, call);
    int error = check_stream(fd);
    if (error == TB_OK)
        error = move(fd, &mine, sizeof mine, true);
    if (error == TB_OK)
        error = move(fd, &theirs, sizeof theirs, false);
    if (error == TB_OK)
        error = check_introduction(&theirs);
    if (error < 0 || theirs.job != self.job || theirs.index > self.index)
        theirs.context = error < 0 ? 0 : mine.context;
    if (error < 0 || theirs.context != mine.context || theirs.job != self.job)
        tb_context_put_back(mine.context);
    if (error < 0)
        return tb_raise(tb_self.self, error == TB_ERR_SYSTEM || error == TB_ERR_ARGUMENT ? MPI_ERR_ARG : MPI_ERR_OTHER,
                        call, "%s", tb_error_story());
    if (theirs.job != self.job && (alone || theirs.alone))
        return MPI_SUCCESS; /* one cannot be reached, which both know: that is no error of the call */
    if (theirs.job != self.job)
        return join_jobs(call, fd, self.job < theirs.job, intercomm);
    struct tb_party party = {.context = theirs.context, .size = 1, .procs = malloc(sizeof(uint32_t))};
    struct tb_comm *made = NULL;
    if (party.procs == NULL)
        return tb_raise(tb_self.self, MPI_ERR_NO_MEM, call, "out of memory for a communicator");
    party.procs[0] = theirs.index;
    error = tb_party_join(tb_self.self, &party, &made);
    if (error < 0)
        return tb_raise_below(tb_self.self, error, call);
    *intercomm = tb_comm_handle(made);
    return MPI_SUCCESS;
}

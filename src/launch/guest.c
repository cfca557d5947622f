/* The hosts of a job, as the launcher sees them: shells that lead to agents. */
#include "launch/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STARTING_LIMIT   64u         /* shells that may be starting at once */
#define ERRORS_LIMIT     (32u << 20) /* what may wait for standard error before shells are not heard any more */
#define HEARD_FRAMES     16u         /* after so many an agent is told that they have come */
#define EXIT_PATIENCE_NS 1000000000u /* between the end of a stream and the end of its shell */

static void patience_over(struct tb_timer *timer);

static bool is_this_host(const char *name)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "::1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    char own[256] = "";
    if (gethostname(own, sizeof own - 1) < 0)
        return false;
    size_t length = strcspn(own, ".");
    return strcmp(name, own) == 0 || (strlen(name) == length && memcmp(name, own, length) == 0);
}

static void open_grid_guest(struct tb_guest *guest)
{
    struct tb_launch *launch = guest->launch;
    const struct tb_realm *realm = launch->realm;
    tb_realm_target(realm, launch->options, launch->program, &launch->placement, guest->host, &guest->target);
    uint32_t parent = realm->parents[guest->host];
    guest->manual = realm->manual[launch->placement.entries[guest->host]] && !guest->target.local;
    guest->parent = parent != TB_GRID_NONE ? &launch->guests[parent] : NULL;
    tb_pipe_keep(&guest->pipe);
}

/* By depth, the deepest first, in as many passes as there are depths, which are few. */
void tb_guests_sort(struct tb_launch *launch)
{
    uint32_t deepest = 0, count = 0;
    for (uint32_t i = 0; i < launch->host_count; i++) {
        launch->guests[i].depth = 0;
        for (const struct tb_guest *at = launch->guests[i].parent; at != NULL; at = at->parent)
            launch->guests[i].depth++;
    }
    for (uint32_t i = 0; i < launch->host_count; i++)
        deepest = launch->guests[i].depth > deepest ? launch->guests[i].depth : deepest;
    for (uint32_t depth = deepest + 1; depth-- > 0;)
        for (uint32_t i = 0; i < launch->host_count; i++)
            if (launch->guests[i].depth == depth)
                launch->order[count++] = i;
}

const char *tb_guest_cluster(const struct tb_guest *guest)
{
    return guest->launch->realm != NULL ? guest->launch->placement.book.hosts[guest->host].place.cluster : "";
}

int tb_guests_open(struct tb_launch *launch)
{
    struct tb_options *options = launch->options;
    launch->guests = calloc(launch->host_count, sizeof *launch->guests);
    launch->order = calloc(launch->host_count, sizeof *launch->order);
    if (launch->guests == NULL || launch->order == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u hosts", launch->host_count);
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_guest *guest = &launch->guests[i];
        int entry = launch->placement.entries[i];
        const struct tb_host_entry *from = entry >= 0 ? &options->hosts.entries[entry] : NULL;
        *guest = (struct tb_guest){.launch = launch, .host = i, .watch.descriptor = -1, .errors.descriptor = -1};
        tb_timer_init(&guest->patience, patience_over);
        tb_pipe_open(&guest->pipe, -1, -1);
        if (launch->realm != NULL) {
            open_grid_guest(guest);
            continue;
        }
        guest->target =
            (struct tb_shell_target){.host = launch->placement.book.hosts[i].name,
                                     .command = options->launcher,
                                     .program = options->program != NULL ? options->program : launch->program,
                                     .local = from == NULL || (options->launcher == NULL && from->user == NULL &&
                                                               from->port == 0 && is_this_host(from->name))};
        if (from != NULL) {
            guest->target.user = from->user;
            guest->target.port = from->port;
        }
    }
    tb_guests_sort(launch);
    return TB_OK;
}

/* ---- hearing
 * ---------------------------------------------------------------------------------------------------------------- */

/* Closes everything that leads to the agent; an agent that still lives sees that and ends. */
void tb_guest_give_up(struct tb_guest *guest)
{
    struct tb_launch *launch = guest->launch;
    bool silent = guest->phase == TB_GUEST_SILENT, started = guest->phase > TB_GUEST_WAITING;
    if (silent)
        launch->silent_count--;
    guest->phase = TB_GUEST_GONE;
    if (guest->parent != NULL && started)
        tb_tunnel_close(guest, silent);
    tb_line_close(guest);
    tb_loop_unwatch(&launch->loop, &guest->watch);
    tb_pipe_close(&guest->pipe);
    if (guest->pid > 0)
        tb_timer_set(&launch->loop, &guest->patience, EXIT_PATIENCE_NS);
}

static void take_preamble(struct tb_guest *guest)
{
    char version[64], ours[64];
    int rc = tb_pipe_preamble(&guest->pipe, version, sizeof version);
    if (rc == TB_AGAIN)
        return;
    snprintf(ours, sizeof ours, "%s wire %d", TB_VERSION, TB_WIRE_VERSION);
    if (rc != TB_OK) {
        char text[1024];
        snprintf(text, sizeof text, "host %s: %s", guest->target.host, tb_error_story());
        tb_launch_miss(guest, text);
        tb_guest_give_up(guest);
        return;
    }
    guest->phase = TB_GUEST_SPOKEN;
    guest->launch->silent_count--;
    free(guest->tail);
    guest->tail = NULL;
    guest->tail_length = 0;
    if (strcmp(version, ours) != 0) {
        char text[1024];
        snprintf(text, sizeof text,
                 "mixed versions: Tombolo here is %s, on host %s (%s) it is %s; install the same version on all "
                 "hosts, or name it with --tombolo PATH",
                 ours, guest->target.host, guest->target.program, version);
        tb_launch_miss(guest, text);
        tb_guest_give_up(guest);
    }
}

/* What was received. */
static int understand(struct tb_guest *guest)
{
    guest->heard = tb_clock_now_real();
    if (guest->phase == TB_GUEST_SILENT)
        take_preamble(guest);
    struct tb_frame frame;
    while (guest->phase > TB_GUEST_SILENT && guest->phase < TB_GUEST_GONE) {
        int rc = tb_pipe_next(&guest->pipe, &frame);
        if (rc == TB_AGAIN)
            return TB_OK;
        if (rc != TB_OK)
            return rc;
        guest->returning = false;
        tb_guest_take_frame(guest, &frame);
    }
    return TB_OK;
}

/* TB_OK, TB_AGAIN: nothing more now; TB_ERR_CLOSED: the stream has ended; other errors: it makes no sense. */
static int hear(struct tb_guest *guest)
{
    int rc = tb_pipe_fill(&guest->pipe);
    return rc == TB_OK ? understand(guest) : rc;
}

static void complain_damaged(struct tb_guest *guest)
{
    tb_launch_fail(guest->launch, TB_VERDICT_CAUSE, 1, "the stream from the agent on host %s is damaged: %s",
                   guest->target.host, tb_error_story());
    tb_guest_give_up(guest);
}

void tb_guest_digest(struct tb_guest *guest, int rc)
{
    if (rc == TB_OK)
        rc = understand(guest);
    if (rc < 0)
        complain_damaged(guest);
}

/* Those whose streams went through this one are gone with it. */
static void give_up_behind(struct tb_guest *parent)
{
    struct tb_launch *launch = parent->launch;
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_guest *guest = &launch->guests[i];
        if (guest->parent != parent || guest->phase == TB_GUEST_GONE)
            continue;
        tb_guest_give_up(guest);
        give_up_behind(guest);
    }
}

static void lose(struct tb_guest *guest, bool exited, int status)
{
    if (tb_launch_spare(guest)) {
        tb_guest_give_up(guest);
        return;
    }
    tb_ending_guest(guest, exited, status);
    /* Its ranks have died with it, but not what they had started; here at least we can reach that. */
    uint32_t count = guest->launch->placement.book.hosts[guest->host].rank_count;
    for (uint32_t i = 0; guest->pids != NULL && i < count; i++)
        if (guest->pids[i] > 1)
            kill(-(pid_t)guest->pids[i], SIGKILL);
    if (guest->phase < TB_GUEST_GONE)
        tb_guest_give_up(guest);
    give_up_behind(guest);
}

static void guest_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_guest *guest = TB_CONTAINER(watch, struct tb_guest, watch);
    struct tb_launch *launch = guest->launch;
    int rc = hear(guest);
    if (rc == TB_ERR_CLOSED) {
        /* Why it ended is known when the shell has ended too, which should be now. */
        tb_loop_unwatch(&launch->loop, watch);
        tb_timer_set(&launch->loop, &guest->patience, EXIT_PATIENCE_NS);
        tb_guests_reap(launch);
    } else if (rc < 0) {
        complain_damaged(guest);
    }
    tb_launch_check_done(launch);
}

/* Keeps the last of what a shell says on standard error, on one line; once an agent speaks, it is passed on instead. */
void tb_guest_add_errors(struct tb_guest *guest, const char *bytes, size_t length)
{
    struct tb_launch *launch = guest->launch;
    if (guest->phase >= TB_GUEST_SPOKEN) {
        /* A shell has no window; when nobody reads for long, what it says is dropped. */
        if (launch->screens[1].queued < ERRORS_LIMIT)
            tb_screen_text(&launch->screens[1], bytes, length);
        return;
    }
    if (guest->tail == NULL)
        guest->tail = calloc(1, TB_LAUNCH_TAIL_BYTES + 1);
    if (guest->tail == NULL)
        return;
    if (length > TB_LAUNCH_TAIL_BYTES) {
        bytes += length - TB_LAUNCH_TAIL_BYTES;
        length = TB_LAUNCH_TAIL_BYTES;
    }
    size_t keep =
        guest->tail_length + length > TB_LAUNCH_TAIL_BYTES ? TB_LAUNCH_TAIL_BYTES - length : guest->tail_length;
    memmove(guest->tail, guest->tail + guest->tail_length - keep, keep);
    memcpy(guest->tail + keep, bytes, length);
    guest->tail_length = keep + length;
    guest->tail[guest->tail_length] = 0;
}

static void errors_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_guest *guest = TB_CONTAINER(watch, struct tb_guest, errors);
    struct tb_launch *launch = guest->launch;
    char bytes[1024];
    ssize_t n = read(watch->descriptor, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        int descriptor = watch->descriptor;
        tb_loop_unwatch(&launch->loop, watch);
        close(descriptor);
        return;
    }
    tb_guest_add_errors(guest, bytes, (size_t)n);
}

/* What the shell said last, before a message quotes it: all of it, and without line ends. */
static void finish_tail(struct tb_guest *guest)
{
    while (guest->errors.descriptor >= 0 && guest->phase < TB_GUEST_SPOKEN) {
        size_t before = guest->tail_length;
        int descriptor = guest->errors.descriptor;
        errors_ready(&guest->errors, EPOLLIN);
        if (guest->errors.descriptor == descriptor && guest->tail_length == before)
            break;
    }
    char *to = guest->tail;
    for (const char *c = guest->tail; c != NULL && *c != 0; c++)
        if (*c == '\n' || *c == '\r') {
            if (to > guest->tail && to[-1] != ' ' && c[1] != 0)
                *to++ = ' ';
        } else {
            *to++ = *c;
        }
    while (to != NULL && to > guest->tail && (to[-1] == ' ' || to[-1] == '.'))
        to--;
    if (to != NULL)
        *to = 0;
    if (guest->tail != NULL && *guest->tail == 0) {
        free(guest->tail);
        guest->tail = NULL;
    }
}

static void patience_over(struct tb_timer *timer)
{
    struct tb_guest *guest = TB_CONTAINER(timer, struct tb_guest, patience);
    if (guest->phase < TB_GUEST_GONE) {
        finish_tail(guest);
        lose(guest, false, 0);
    }
    if (guest->pid > 0)
        kill(-guest->pid, SIGKILL);
    tb_launch_check_done(guest->launch);
}

/* ---- starting
 * ----------------------------------------------------------------------------------------------------------------- */

static void send_setup(struct tb_guest *guest)
{
    const struct tb_launch *launch = guest->launch;
    struct tb_setup setup = launch->setup;
    int rc = TB_OK;
    setup.host = guest->host;
    setup.flags = (guest->target.local ? TB_SETUP_LOCAL : 0) | (launch->realm != NULL ? TB_SETUP_GRID : 0);
    if (launch->realm != NULL)
        rc = tb_realm_setup(launch->realm, &launch->placement, guest->host, &setup);
    if (rc == TB_OK)
        rc = tb_setup_encode(&setup, tb_pipe_begin(&guest->pipe, TB_CONTROL_SETUP));
    if (launch->realm != NULL)
        tb_realm_setup_close(&setup);
    if (rc == TB_OK)
        rc = tb_pipe_end(&guest->pipe);
    if (rc != TB_OK)
        tb_launch_fail(guest->launch, TB_VERDICT_CAUSE, 1, "cannot tell host %s what to start: %s", guest->target.host,
                       tb_error_story());
}

static int start_shell(struct tb_guest *guest)
{
    struct tb_launch *launch = guest->launch;
    struct tb_shell shell;
    int rc = tb_shell_start(&guest->target, &launch->mask, &shell);
    if (rc != TB_OK)
        return rc;
    guest->pid = shell.pid;
    guest->pipe.in = guest->pipe.out = shell.stream;
    rc = tb_loop_watch(&launch->loop, &guest->watch, shell.stream, EPOLLIN, guest_ready);
    if (rc == TB_OK && shell.errors >= 0)
        rc = tb_loop_watch(&launch->loop, &guest->errors, shell.errors, EPOLLIN, errors_ready);
    return rc;
}

void tb_guests_start(struct tb_launch *launch)
{
    while (launch->next_start < launch->host_count && launch->guests[launch->next_start].phase != TB_GUEST_WAITING)
        launch->next_start++;
    for (uint32_t i = launch->next_start; i < launch->host_count; i++) {
        struct tb_guest *guest = &launch->guests[i];
        if (launch->ending || launch->silent_count >= STARTING_LIMIT)
            return;
        if (guest->phase != TB_GUEST_WAITING || (guest->parent != NULL && guest->parent->phase < TB_GUEST_READY))
            continue;
        int rc = TB_OK;
        if (guest->parent != NULL)
            tb_tunnel_start(guest);
        else if (guest->manual)
            rc = tb_door_expect(guest);
        else
            rc = start_shell(guest);
        guest->phase = TB_GUEST_SILENT;
        guest->heard = tb_clock_now_real();
        launch->silent_count++;
        if (rc == TB_OK) {
            send_setup(guest);
        } else {
            tb_launch_miss(guest, tb_error_story());
            tb_guest_give_up(guest);
            give_up_behind(guest);
        }
    }
}

/* ---- ending
 * -------------------------------------------------------------------------------------------------------------------
 */

void tb_guest_ended(struct tb_guest *guest, bool exited, int status)
{
    if (guest->phase >= TB_GUEST_GONE)
        return;
    finish_tail(guest);
    lose(guest, exited, status);
}

static void collect(struct tb_guest *guest, int status)
{
    struct tb_launch *launch = guest->launch;
    tb_timer_clear(&guest->patience);
    if (guest->phase < TB_GUEST_GONE) {
        /* Its last words may still be in the stream. */
        while (guest->phase < TB_GUEST_GONE && hear(guest) == TB_OK)
            ;
        finish_tail(guest);
        if (guest->phase < TB_GUEST_GONE)
            lose(guest, true, status);
    }
    guest->pid = 0;
    tb_timer_clear(&guest->patience);
    if (guest->errors.descriptor >= 0) {
        int descriptor = guest->errors.descriptor;
        tb_loop_unwatch(&launch->loop, &guest->errors);
        close(descriptor);
    }
}

void tb_guests_reap(struct tb_launch *launch)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (uint32_t i = 0; i < launch->host_count; i++)
            if (launch->guests[i].pid == pid) {
                collect(&launch->guests[i], status);
                break;
            }
}

void tb_guests_stop(struct tb_launch *launch, bool now)
{
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_guest *guest = &launch->guests[i];
        if (guest->phase == TB_GUEST_WAITING) {
            guest->phase = TB_GUEST_GONE;
        } else if (guest->phase == TB_GUEST_SILENT && !guest->target.local) {
            if (guest->pid > 0)
                kill(-guest->pid, SIGKILL);
            tb_guest_give_up(guest);
        } else if (guest->phase < TB_GUEST_GONE) {
            tb_put_u8(tb_pipe_begin(&guest->pipe, TB_CONTROL_STOP), now);
            tb_pipe_end(&guest->pipe);
        }
    }
}

void tb_guests_abandon(struct tb_launch *launch)
{
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_guest *guest = &launch->guests[i];
        if (guest->phase < TB_GUEST_GONE)
            tb_guest_give_up(guest);
        /* A local agent sees the end of its stream and kills its ranks; killing it would leave their children. */
        if (guest->pid > 0 && !guest->target.local)
            kill(-guest->pid, SIGKILL);
    }
}

void tb_guests_signal(struct tb_launch *launch, int signal)
{
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_guest *guest = &launch->guests[i];
        if (guest->phase <= TB_GUEST_SILENT || guest->phase == TB_GUEST_GONE)
            continue;
        tb_put_u32(tb_pipe_begin(&guest->pipe, TB_CONTROL_SIGNAL), (uint32_t)signal);
        tb_pipe_end(&guest->pipe);
    }
}

/* What an agent may send again is told when it is worth a message. */
static void tell_window(struct tb_guest *guest)
{
    if (guest->written < guest->launch->setup.window / 4 || guest->phase < TB_GUEST_READY ||
        guest->phase >= TB_GUEST_GONE)
        return;
    tb_put_u32(tb_pipe_begin(&guest->pipe, TB_CONTROL_WINDOW), guest->written);
    tb_pipe_end(&guest->pipe);
    guest->written = 0;
}

/* Before each sleep. From the deepest on, so that everything arrives where a descriptor is; and again while a pipe that
 * was full has got room for what is behind it. */
void tb_guests_flush(struct tb_launch *launch)
{
    for (uint32_t i = 0; i < launch->host_count; i++) {
        tell_window(&launch->guests[i]);
        if (launch->guests[i].phase >= TB_GUEST_READY && launch->guests[i].phase < TB_GUEST_GONE)
            tb_pipe_tell_heard(&launch->guests[i].pipe, HEARD_FRAMES);
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < launch->host_count; i++) {
            struct tb_guest *guest = &launch->guests[launch->order[i]];
            if (guest->phase >= TB_GUEST_GONE || tb_pipe_queued(&guest->pipe) == 0)
                continue;
            if (guest->parent != NULL) {
                moved = (guest->parent->phase < TB_GUEST_GONE && tb_tunnel_flush(guest)) || moved;
                continue;
            }
            if (guest->line != NULL)
                tb_line_flush(guest);
            if (guest->pipe.out < 0)
                continue;
            /* An error here is seen, and told, when reading. */
            int rc = tb_pipe_flush(&guest->pipe);
            tb_loop_change(&launch->loop, &guest->watch, rc == TB_AGAIN ? EPOLLIN | EPOLLOUT : EPOLLIN);
        }
    }
}

bool tb_guests_gone(const struct tb_launch *launch)
{
    for (uint32_t i = 0; i < launch->host_count; i++)
        if (launch->guests[i].phase < TB_GUEST_GONE || launch->guests[i].pid > 0)
            return false;
    return true;
}

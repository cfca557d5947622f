/* remote: running commands here and on other hosts, and waiting for their streams. A loop waits for descriptors and
 * timers; a child is a process of ours; a shell is the command that brings an agent to life on a host. Everything
 * belongs to the one thread of a launcher or an agent. */
#ifndef TB_REMOTE_REMOTE_H
#define TB_REMOTE_REMOTE_H

#include "base/base.h"

#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

#define TB_LOOP_BATCH 32

/* Embedded in what is told. May be taken out, and its memory reused, from inside any callback. */
struct tb_watch {
    int descriptor;  /* -1: not watched */
    uint32_t events; /* EPOLLIN, EPOLLOUT */
    void (*ready)(struct tb_watch *watch, uint32_t events);
};

struct tb_timer {
    struct tb_list node;
    uint64_t due; /* of the loop's clock */
    void (*fire)(struct tb_timer *timer);
};

struct tb_loop {
    const struct tb_clock *clock;
    int epoll;
    bool stop;             /* set to leave tb_loop_run */
    struct tb_list timers; /* few, so unsorted */
    struct epoll_event batch[TB_LOOP_BATCH];
    int batch_at, batch_count;
    void (*settle)(struct tb_loop *loop); /* called before each sleep: flush what was gathered; may be NULL */
};

int tb_loop_open(struct tb_loop *loop, const struct tb_clock *clock);
void tb_loop_close(struct tb_loop *loop);
int tb_loop_run(struct tb_loop *loop);

static inline uint64_t tb_loop_now(const struct tb_loop *loop)
{
    return tb_clock_now(loop->clock);
}

/* TB_ERR_UNSUPPORTED (without a story): a file that is always ready, such as a regular one; it is not watched. */
int tb_loop_watch(struct tb_loop *loop, struct tb_watch *watch, int descriptor, uint32_t events,
                  void (*ready)(struct tb_watch *watch, uint32_t events));
void tb_loop_change(struct tb_loop *loop, struct tb_watch *watch, uint32_t events);
void tb_loop_unwatch(struct tb_loop *loop, struct tb_watch *watch); /* does not close; harmless when not watched */

void tb_timer_init(struct tb_timer *timer, void (*fire)(struct tb_timer *timer));
void tb_timer_set(struct tb_loop *loop, struct tb_timer *timer, uint64_t after); /* nanoseconds from now */
void tb_timer_clear(struct tb_timer *timer);
bool tb_timer_is_set(const struct tb_timer *timer);

/* How long somebody at the other end of a control stream has said nothing, by regular looks. Only time in which we
 * ourselves have looked counts: whoever was stopped, or got no processor, finds what the other one has said meanwhile
 * still to be read. All zero: nothing was looked at yet. */
struct tb_silence {
    uint64_t looked; /* when that was last */
    uint64_t time;   /* of silence */
    uint64_t owing;  /* of it in which nobody could have been heard perhaps; counted when somebody could */
    bool heard;      /* since the last look */
};

enum tb_silence_way {
    TB_SILENCE_OPEN,    /* what is said there comes to us; */
    TB_SILENCE_UNKNOWN, /* it should, but those on the way have said nothing for a moment either; */
    TB_SILENCE_SHUT     /* it cannot */
};

/* At most `most` is added. */
static inline void tb_silence_look(struct tb_silence *silence, uint64_t now, uint64_t most, enum tb_silence_way way)
{
    uint64_t step = silence->looked == 0 ? 0 : now - silence->looked;
    silence->looked = now;
    silence->owing = way == TB_SILENCE_SHUT ? 0 : silence->owing + (step < most ? step : most);
    if (way == TB_SILENCE_OPEN) {
        silence->time += silence->owing;
        silence->owing = 0;
    }
    if (silence->heard)
        silence->time = silence->owing = 0;
    silence->heard = false;
}

/* Blocks the signals of `set` and gives a descriptor that tells them; the mask from before goes to *before. Those that
 * are ignored (nohup) stay so: a descriptor would tell them nevertheless. */
int tb_signals_open(const sigset_t *set, sigset_t *before, int *descriptor);

/* ---- callers ----------------------------------------------------------------------------------------------------- */

#define TB_CALLERS_DOORS 16u

/* Those who have connected to a port of ours and not yet said who they are. They stand in the order in which they came.
 * No place is anybody's own: when all are taken, the newest gets that of the one who has been silent for longest, or,
 * if all have spoken, of the one who spoke first. So a crowd of strangers, however fast it comes, cannot keep out one
 * who speaks at once. What they say is the business of the owner of the port, whose struct for each begins with struct
 * tb_caller. */
struct tb_callers;

struct tb_caller {
    struct tb_list node;
    struct tb_watch watch;
    struct tb_callers *callers;
    uint64_t since;
    struct sockaddr_storage name; /* where it comes from */
};

struct tb_callers_events {
    void *context;
    size_t bytes; /* of the owner's struct for each; all zero behind the caller */
    /* Somebody has come. False: it is closed again. */
    bool (*came)(void *context, struct tb_caller *caller);
    /* It may have said something; called once right after it has come. May end this caller, but no other. */
    void (*ready)(void *context, struct tb_caller *caller);
    /* Somebody needs its place, or its time is over. May be NULL. */
    void (*leaves)(void *context, struct tb_caller *caller);
};

struct tb_callers {
    struct tb_loop *loop; /* NULL: not open */
    struct tb_callers_events events;
    uint64_t patience;    /* with each, in ns */
    uint32_t most, count; /* places */
    uint32_t door_count;
    struct tb_door {
        struct tb_watch watch;
        struct tb_callers *callers;
    } doors[TB_CALLERS_DOORS];
    struct tb_list silent, heard; /* each the oldest first */
    struct tb_timer overdue, pause;
};

void tb_callers_open(struct tb_callers *callers, struct tb_loop *loop, uint32_t most, uint64_t patience,
                     const struct tb_callers_events *events);
/* One more socket that listens, which is taken if that succeeds. */
int tb_callers_listen(struct tb_callers *callers, int socket);
/* It has said something sensible, and is the last to go. */
void tb_caller_heard(struct tb_caller *caller);
/* Forgets it. Its socket is whoever's who calls this. */
int tb_caller_end(struct tb_caller *caller);
void tb_callers_clear(struct tb_callers *callers); /* those who are there are closed; others may come */
/* Closes the doors as well. Harmless on one that is all zero. */
void tb_callers_close(struct tb_callers *callers);

/* ---- children ---------------------------------------------------------------------------------------------------- */

#define TB_CHILD_KEPT 3

struct tb_child {
    const char *path;                 /* of the executable */
    char *const *arguments;           /* ended by NULL */
    char *const *environment;         /* ended by NULL */
    const char *directory;            /* NULL: ours */
    int streams[3];                   /* become 0, 1, 2; -1: as ours. At least 3, if given */
    int keep;                         /* becomes TB_CHILD_KEPT and stays open over exec; -1: none */
    int death_signal;                 /* the child gets it when we die; 0: none */
    const sigset_t *mask;             /* signals blocked in the child */
    const struct rlimit *descriptors; /* limit of open descriptors; NULL: ours */
    const struct rlimit *file_size;   /* that of the size of files */
    const cpu_set_t *cpus;            /* NULL: ours */
    size_t cpus_bytes;
};

/* From now on this process leaves no core file, in which its keys would be found. Children get the limit that it had,
 * which tb_core_limit gives. */
void tb_core_forbid(void);
struct rlimit tb_core_limit(void);

enum tb_child_stage { TB_CHILD_FORK, TB_CHILD_BIND, TB_CHILD_DIRECTORY, TB_CHILD_EXEC };

/* Starts a child in a process group of its own. Returns when it runs its program, or not: then TB_ERR_SYSTEM without a
 * story, errno, and what failed. */
int tb_child_start(const struct tb_child *child, pid_t *pid, enum tb_child_stage *stage);

/* ---- shells ------------------------------------------------------------------------------------------------------ */

/* How to get an agent on a host. */
struct tb_shell_target {
    const char *host;
    const char *user;    /* NULL: none was given */
    unsigned port;       /* of ssh; 0: none was given */
    const char *command; /* called as COMMAND host command; NULL: ssh */
    const char *program; /* path of tombolo there */
    bool local;          /* a child of ours is enough */
};

struct tb_shell {
    pid_t pid;
    int stream; /* socket: standard input and output of the agent */
    int errors; /* pipe from its standard error; -1: it is ours */
};

#define TB_SHELL_WORDS 64

/* In the environment of a shell, so that it is known for what leads to an agent. The agent itself takes it out. */
#define TB_SHELL_MARK_NAME "TOMBOLO_SHELL"
#define TB_SHELL_MARK      TB_SHELL_MARK_NAME "=agent"

/* The words of the command; free with tb_shell_free. */
int tb_shell_words(const struct tb_shell_target *target, char ***words);
void tb_shell_free(char **words);
int tb_shell_start(const struct tb_shell_target *target, const sigset_t *mask, struct tb_shell *shell);

/* Where a command is, as a shell would look: with a slash as it is (relative to `directory`), else along `path`.
 * Allocated. Errors: errno is ENOENT, EACCES or EISDIR, no story. */
char *tb_program_find(const char *name, const char *path, const char *directory);

/* Where a program of Tombolo's own is: beside this one in a build, in libexec of an installation. */
int tb_own_program_find(const char *name, char *path, size_t size);

/* ---- executables ------------------------------------------------------------------------------------------------- */

enum tb_executable_kind {
    TB_EXECUTABLE_OTHER,  /* nothing that we know */
    TB_EXECUTABLE_ELF,    /* a program, if it is built for this machine */
    TB_EXECUTABLE_SCRIPT, /* names its interpreter in its first line */
    TB_EXECUTABLE_TEXT    /* perhaps a script for a shell; an empty file, too */
};

struct tb_executable {
    enum tb_executable_kind kind;
    /* Of an ELF file: */
    unsigned bits, machine; /* as elf.h numbers machines */
    bool big;               /* its byte order */
    char interpreter[256];  /* "": none */
    char needed[4096];      /* names of the libraries that it needs, one behind the other; an empty one ends them */
};

/* TB_ERR_SYSTEM: it cannot be read; errno says why, no story. */
int tb_executable_read(const char *path, struct tb_executable *x);
/* Whether it is for another kind of machine; then "NAME is built for x86-64, host HOST is aarch64". */
bool tb_executable_is_foreign(const struct tb_executable *x, const char *name, const char *host, char *text,
                              size_t size);
/* Why the kernel does not know how to run it (ENOEXEC) on this host, as the end of a sentence; `name` is what the user
 * calls it. */
void tb_executable_explain(const char *path, const char *name, const char *host, char *text, size_t size);

#endif

/* The launcher's state, shared by the files of this folder. One thread owns everything. */
#ifndef TB_LAUNCH_STATE_H
#define TB_LAUNCH_STATE_H

#include "launch/launch.h"
#include "launch/grid_plan.h"
#include "remote/remote.h"

#define TB_LAUNCH_TAIL_BYTES 2048u         /* of a shell's standard error, for the message when it fails */
#define TB_LAUNCH_INPUT      65536         /* bytes of input under way */
#define TB_LAUNCH_MANUAL_NS  600000000000u /* for somebody to type a command */

struct tb_launch;

enum tb_host_agent_phase {
    TB_HOST_AGENT_WAITING, /* its shell is not started yet */
    TB_HOST_AGENT_SILENT,  /* started, has not said anything */
    TB_HOST_AGENT_SPOKEN,  /* the preamble is there */
    TB_HOST_AGENT_READY,   /* has told its addresses */
    TB_HOST_AGENT_STARTED, /* its ranks run */
    TB_HOST_AGENT_GONE     /* has said that all is over, or is given up */
};

/* A host of the job, with the shell that leads to its agent. */
struct tb_host_agent {
    struct tb_launch *launch;
    uint32_t host; /* in the address book */
    struct tb_shell_target target;
    enum tb_host_agent_phase phase;
    pid_t pid; /* of the shell; 0: not started, or collected */
    struct tb_control_stream pipe;
    struct tb_watch watch, errors;
    struct tb_timer patience; /* between the end of the stream and the end of the shell */
    char *tail;
    size_t tail_length;
    uint64_t heard;
    uint32_t written;             /* bytes of output that it may send again */
    uint32_t *pids;               /* of its ranks, if it is a child of ours */
    struct tb_host_agent *parent; /* whose agent starts it, and whose control stream carries its own; NULL: none */
    uint32_t depth;               /* how many there are between us and it */
    bool detached;                /* whoever carried its stream is gone; it is expected to come by another one */
    bool resuming;                /* it has come, and the number of the frame that it expects is still to come: */
    uint32_t next_have, next;
    bool returning;       /* it has come, but does not know yet that it was let in */
    bool asked;           /* whom it can reach, and has not answered */
    bool idle;            /* nothing more comes from its ranks */
    bool manual;          /* somebody starts its agent by hand, */
    struct tb_key key;    /* with a secret from which this is made; */
    struct tb_line *line; /* it has come by the door, and its stream is this; else NULL */
};

/* Output that waits until standard output or error takes it. */
struct tb_chunk {
    struct tb_list node;
    uint32_t host;
    uint32_t length, at;
    uint32_t charge; /* how much of the host's window it takes */
    char bytes[];
};

struct tb_screen {
    struct tb_watch watch;
    struct tb_launch *launch;
    int number;         /* 1 or 2 */
    int descriptor;     /* where we write: the same, or a nonblocking one of our own */
    bool blocking_file; /* always ready: a regular file */
    bool broken;        /* nobody reads any more */
    bool mid_line;      /* the last byte was no newline */
    struct tb_list chunks;
    size_t queued; /* bytes of them: what the windows of the agents allow, and a little of ours */
};

enum tb_verdict_weight { TB_VERDICT_NONE, TB_VERDICT_LATE, TB_VERDICT_ABORT, TB_VERDICT_CAUSE };

struct tb_verdict {
    enum tb_verdict_weight weight;
    int code;
    char text[4096];
};

#define TB_RANK_ENDED      1
#define TB_RANK_MID_OUTPUT 2 /* its standard output stopped inside a line */
#define TB_RANK_MID_ERROR  4

struct tb_launch {
    struct tb_loop loop;
    struct tb_options *options;
    struct tb_placement placement;
    struct tb_setup setup;
    const char *program; /* path of this executable */
    sigset_t mask;       /* signals as they were */
    struct tb_watch signals;
    struct tb_grid_plan *plan; /* NULL: no grid */
    struct tb_door *door;      /* for clusters that are started by hand; NULL: none */
    uint64_t began;
    bool *missing;         /* hosts of the grid that cannot take part */
    uint32_t missed_count; /* of them in this attempt, with those behind them */
    bool again;            /* this attempt is ended to be made again, without them or with more */
    bool wide;             /* the next attempt is made with more hosts */
    bool trying;           /* agents find out who reaches whom */
    uint32_t asked_count;  /* that have not answered */
    uint64_t asked;        /* when */
    struct tb_reach_results results;
    uint32_t host_count;
    struct tb_host_agent *agents;
    uint32_t *order; /* agents, the deepest first */
    uint32_t silent_count, ready_count, idle_count, next_start;
    bool ending, killing, flushing;
    bool hurried;   /* a signal or --timeout ends the job, so readers of its output get little time */
    int interrupts; /* SIGINT and the like so far */
    struct tb_verdict verdict;
    uint8_t *ranks; /* TB_RANK_ flags */
    uint32_t ended_count, unfinalized_count;
    struct tb_ended unfinalized; /* the first that ended without MPI_Finalize */
    struct tb_timer start_timer, job_timer, beat, unfinalized_timer, end_timer, screen_timer, survey_timer;
    uint64_t beat_due;
    struct tb_screen screens[2];
    struct tb_watch input;
    bool input_open, input_ready; /* input_ready: a file that cannot be waited for */
    int64_t input_window;
};

/* launch.c */
/* Ends the job with this verdict, unless there is a weightier one. */
void tb_launch_fail(struct tb_launch *launch, enum tb_verdict_weight weight, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));
void tb_launch_say(struct tb_launch *launch, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
void tb_launch_check_done(struct tb_launch *launch);
struct tb_host_agent *tb_launch_agent_of(struct tb_launch *launch, uint32_t rank);
void tb_launch_repeat(struct tb_launch *launch); /* ends this attempt, to make it again */
void tb_launch_finish(struct tb_launch *launch); /* all ranks of a grid have ended */
/* An agent did not come to life, and this is why. The attempt fails, or is made again without its host. */
void tb_launch_miss(struct tb_host_agent *agent, const char *why);
/* An agent is gone while the job runs. True: the job goes on without it, by other ways. */
bool tb_launch_spare(struct tb_host_agent *agent);
/* Whether all have answered that will; then the job begins, or the next attempt. */
void tb_launch_check_start(struct tb_launch *launch);

/* agent.c */
int tb_host_agents_open(struct tb_launch *launch);
void tb_host_agents_start(struct tb_launch *launch); /* as many shells as may be starting at once */
void tb_host_agents_reap(struct tb_launch *launch);
void tb_host_agents_stop(struct tb_launch *launch, bool now);
void tb_host_agents_abandon(struct tb_launch *launch); /* kills shells that are still there */
void tb_host_agents_signal(struct tb_launch *launch, int signal);
void tb_host_agents_flush(struct tb_launch *launch);
void tb_host_agent_give_up(struct tb_host_agent *agent);
bool tb_host_agents_gone(const struct tb_launch *launch);
void tb_host_agent_digest(struct tb_host_agent *agent, int rc); /* what its pipe has received, rc being how that went */
void tb_host_agent_add_errors(struct tb_host_agent *agent, const char *bytes, size_t length); /* of its shell */
void tb_host_agents_sort(struct tb_launch *launch); /* after somebody has got another parent */
void tb_host_agent_ended(struct tb_host_agent *agent, bool exited, int status); /* its shell has */
const char *tb_host_agent_cluster(const struct tb_host_agent *agent);           /* "": none is known */

/* tunnel.c */
void tb_tunnel_start(struct tb_host_agent *agent);
void tb_tunnel_close(struct tb_host_agent *agent, bool now);
bool tb_tunnel_flush(struct tb_host_agent *agent); /* into the pipe of its parent; true: something was moved */
void tb_tunnel_take(struct tb_host_agent *parent, struct tb_reader *r);        /* TB_CONTROL_TUNNEL, */
void tb_tunnel_take_errors(struct tb_host_agent *parent, struct tb_reader *r); /* _TUNNEL_ERRORS, */
void tb_tunnel_take_attach(struct tb_host_agent *parent, struct tb_reader *r); /* _ATTACH, */
void tb_tunnel_take_end(struct tb_host_agent *parent, struct tb_reader *r);    /* and _TUNNEL_END */

/* door.c */
int tb_door_expect(struct tb_host_agent *agent); /* tells the user what to type */
void tb_door_forget(struct tb_launch *launch);   /* callers that have not proved anything yet */
void tb_line_flush(struct tb_host_agent *agent);
void tb_line_close(struct tb_host_agent *agent);

/* frame.c */
void tb_host_agent_take_frame(struct tb_host_agent *agent, struct tb_control_frame *frame);
void tb_launch_send_routes(struct tb_launch *launch);
void tb_host_agent_send_anchors(struct tb_host_agent *agent); /* who can carry its stream if its parent is lost */
void tb_launch_send_books(struct tb_launch *launch);

/* question.c */
bool tb_reach_survey_begin(struct tb_launch *launch);                        /* false: there is nothing to find out */
void tb_reach_survey_take(struct tb_host_agent *agent, struct tb_reader *r); /* TB_CONTROL_PROBED */
void tb_reach_survey_overdue(struct tb_timer *timer);

/* ending.c */
void tb_ending_rank(struct tb_launch *launch, const struct tb_ended *ended);
void tb_ending_abort(struct tb_launch *launch, uint32_t rank, uint32_t pid, uint32_t code, const char *text,
                     int length);
void tb_ending_agent(struct tb_host_agent *agent, bool exited, int status);
void tb_ending_unfinalized(struct tb_timer *timer);

/* screen.c */
void tb_screen_open(struct tb_screen *screen, struct tb_launch *launch, int descriptor);
void tb_screen_add(struct tb_screen *screen, uint32_t rank, uint32_t host, const char *bytes, size_t length);
void tb_screen_text(struct tb_screen *screen, const char *text, size_t length); /* of ours, or of a shell */
bool tb_screens_empty(const struct tb_launch *launch);
void tb_input_open(struct tb_launch *launch);
void tb_input_allow(struct tb_launch *launch, uint32_t bytes);
void tb_input_resume(struct tb_launch *launch);
void tb_input_pump(struct tb_launch *launch); /* a file that cannot be waited for */

#endif

/* The inside of the emulator: what its loop (emulator.c), its control (emulator_control.c), its ports and the way
 * through it (emulator_port.c), its pipes and its counters (emulator_report.c) share. Nobody else includes this. One
 * thread. */
#ifndef TB_LAB_EMULATOR_STATE_H
#define TB_LAB_EMULATOR_STATE_H

#include "lab/emulator.h"
#include "lab/emulator_frames.h"
#include "lab/emulator_hosts.h"
#include "lab/emulator_lateness.h"
#include "lab/pipe.h"

#include <net/if.h>

#define TB_EMULATOR_PORTS      1024u
#define TB_EMULATOR_PIPES      4096u
#define TB_EMULATOR_NAME_BYTES 400u
#define TB_EMULATOR_BATCH      64u
#define TB_EMULATOR_WORDS      4096u

struct tb_emulator_port {
    char name[IFNAMSIZ];
    char segment_name[TB_EMULATOR_NAME_BYTES];
    uint16_t segment; /* the same number for the same name, from 1 */
    bool trunk;
    int socket;
    uint64_t received, sent;
    uint64_t overrun; /* the kernel had no room for them before we could read them */
    uint64_t giant;   /* longer than an Ethernet frame: segmentation offload is on where it must not be */
    uint64_t unsent;  /* the kernel would not take them */
    struct tb_frame_way routes[TB_EMULATOR_PORTS]; /* to each port */
};

struct tb_emulator_pipe {
    char name[TB_EMULATOR_NAME_BYTES];
    struct tb_pipe pipe;
    /* Copies of a frame that enter at one moment pass a pipe once: what became of the one with this number. */
    uint64_t visit, entered, due;
    enum tb_pipe_fate fate;
};

struct tb_emulator_words {
    uint32_t count;
    char *word[TB_EMULATOR_WORDS]; /* in the message */
};

struct tb_emulator {
    int control, epoll;
    uint64_t seed;
    const char *scheduler;           /* how the kernel was asked to run us */
    uint32_t port_count, pipe_count; /* slots in use, with holes among the ports; pipe 0 has no limits and no name */
    struct tb_emulator_port *ports[TB_EMULATOR_PORTS];
    struct tb_emulator_pipe *pipes[TB_EMULATOR_PIPES];
    struct tb_hosts hosts;
    struct tb_frames frames;
    struct tb_lateness lateness;
    uint64_t visit, exhausted; /* frames that found no memory */
    uint64_t reset_at, reset_cpu;
    struct tb_frame *inbox[TB_EMULATOR_BATCH]; /* where the next frames are received */
    struct tb_emulator_words words;
    char message[TB_EMULATOR_MESSAGE_BYTES + 1], answer[TB_EMULATOR_MESSAGE_BYTES];
};

int tb_emulator_port_open(struct tb_emulator *e, const char *interface, const char *segment, bool trunk,
                          uint32_t *index);
void tb_emulator_port_close(struct tb_emulator *e, uint32_t index);
uint32_t tb_emulator_port_find(const struct tb_emulator *e, const char *interface); /* UINT32_MAX: there is none */
/* Reads the frames that wait at a port and sends them on their way. */
int tb_emulator_port_receive(struct tb_emulator *e, uint32_t index);
/* Sends what is due. */
void tb_emulator_port_send(struct tb_emulator *e);

int tb_emulator_pipe_make(struct tb_emulator *e, const char *name);
int tb_emulator_pipe_find(const struct tb_emulator *e, const char *name, uint32_t *index);

/* What was counted since the last reset, as lines of text. */
void tb_emulator_report(struct tb_emulator *e, char *to, size_t room);
void tb_emulator_reset(struct tb_emulator *e);

/* Reads one message of the control socket and answers it. TB_ERR_CLOSED: the other side is gone. */
int tb_emulator_control(struct tb_emulator *e);

#endif

/* The pulse of a connection, felt while its owner waits for the process behind it. A connection that something on the
 * way has forgotten looks as open as ever: whoever only waits to receive never sends, and whoever has sent hears
 * nothing while TCP repeats. So for as long as somebody waits the two kernels ask each other once a second, and are
 * asked what came of it. A process that computes, is stopped or has no room is not at fault: its kernel answers.
 *
 * Part of a connection of tcp; the thread that owns the transport. */
#ifndef TB_TRANSPORT_TCP_PULSE_H
#define TB_TRANSPORT_TCP_PULSE_H

#include <stdbool.h>
#include <stdint.h>

struct tb_pulse {
    bool felt;
    int alive, idle, interval, limit; /* the options of the socket before */
};

void tb_pulse_feel(struct tb_pulse *pulse, int socket);
/* Nobody waits any more: the options are as before, but for how long TCP may pause before it repeats. */
void tb_pulse_rest(struct tb_pulse *pulse, int socket);
/* Our kernel has asked or sent again and again, and nothing at all has come back. *tried: ns since the last time. */
bool tb_pulse_is_stuck(const struct tb_pulse *pulse, int socket, uint64_t *tried);

#endif

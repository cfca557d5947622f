/* The launcher's connection with `tombolo meet` (name_server.h): what ranks publish and look up goes there if the job
 * was told of one (--meet). It is made when something is asked for the first time, and again after it has broken; names
 * that were published before are gone then. If nobody answers, whoever asks is told so. Belongs to the launcher; its
 * one thread. */
#ifndef TB_LAUNCH_NAME_CLIENT_H
#define TB_LAUNCH_NAME_CLIENT_H

#include "launch/agent_frames.h"
#include "launch/name_place.h"
#include "launch/tls_stream.h"

#define TB_NAME_CLIENT_ASKED 65536u /* questions without an answer */

struct tb_name_client_events {
    void *context;
    void (*answered)(void *context, uint32_t rank, const struct tb_registry_answer *answer);
};

struct tb_name_client {
    struct tb_loop *loop; /* NULL: names are kept in the job */
    struct tb_name_client_events events;
    struct tb_name_place place;
    char tried[TB_NAME_PLACE_BYTES], *next; /* addresses that are still to be tried */
    struct tb_watch watch;                  /* the socket, while nothing is proved */
    struct tb_timer overdue;                /* while it is dialed, or somebody waits for an answer */
    bool heard;                             /* something came since the timer was set */
    struct tb_handshake handshake;
    struct tb_tls_stream tls;
    struct tb_control_stream control;
    bool open, greeted;   /* there is, or will be, a connection; hello was said */
    bool broken;          /* it has ended, and is closed as soon as nobody is inside of it */
    struct tb_list asked; /* and not answered */
    uint32_t asked_count;
};

int tb_name_client_open(struct tb_name_client *client, struct tb_loop *loop, const char *path,
                        const struct tb_name_client_events *events);
void tb_name_client_close(struct tb_name_client *client);
/* TB_CONTROL_REGISTRY of a rank. False: it is not for us. */
bool tb_name_client_take(struct tb_name_client *client, const struct tb_agent_wish *wish);
void tb_name_client_end(struct tb_name_client *client, uint32_t rank); /* it has ended */
void tb_name_client_settle(struct tb_name_client *client);             /* before each sleep */

#endif

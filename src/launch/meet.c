/* What `tombolo meet` does: a name server from its start to its end. */
#include "launch/launch.h"

#include "launch/name_place.h"
#include "launch/name_server.h"
#include "launch/own_addresses.h"
#include "link/link.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The one that runs. */
struct meet {
    struct tb_loop loop;
    struct tb_name_server server;
    struct tb_watch signals;
};

static int complain(void)
{
    fprintf(stderr, "tombolo meet: %s\n", tb_error_story());
    return 1;
}

static void signals_ready(struct tb_watch *watch, uint32_t events)
{
    TB_CONTAINER(watch, struct meet, signals)->loop.stop = true;
}

static void settle(struct tb_loop *loop)
{
    tb_name_server_settle(&TB_CONTAINER(loop, struct meet, loop)->server);
}

static int open_signals(struct meet *meet)
{
    sigset_t set, before;
    int descriptor;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    int rc = tb_signals_open(&set, &before, &descriptor);
    return rc == TB_OK ? tb_loop_watch(&meet->loop, &meet->signals, descriptor, EPOLLIN, signals_ready) : rc;
}

/* Listens, and tells jobs where in the file. */
static int begin(struct meet *meet, const char *path, const char *ports)
{
    char addresses[TB_OWN_ADDRESSES_BYTES], text[TB_NAME_PLACE_BYTES];
    struct tb_name_place place;
    uint16_t port = 0;
    int rc = tb_tls_is_usable();
    if (rc != TB_OK)
        return rc;
    int socket = tb_ports_listen(ports, &port);
    if (socket < 0)
        return tb_error_errno("cannot listen at ports %s", ports);
    tb_own_addresses_print(port, addresses);
    rc = tb_name_place_make(&place, addresses, text);
    if (rc == TB_OK)
        rc = tb_name_server_open(&meet->server, &meet->loop, socket, &place.key);
    if (rc == TB_OK)
        rc = tb_name_place_write(path, text);
    if (rc == TB_OK) {
        printf("tombolo meet: names are kept at %s\nstart jobs with: mpiexec --meet %s ...\n"
               "On other machines they need a copy of this file, which has a secret in it.\n",
               addresses, path);
        fflush(stdout);
    }
    explicit_bzero(text, sizeof text);
    return rc;
}

/* Unless another one has written it since. */
static void take_away(const struct meet *meet, const char *path)
{
    struct tb_name_place place;
    if (tb_name_place_read(&place, path) == TB_OK &&
        memcmp(place.key.bytes, meet->server.key.bytes, sizeof place.key.bytes) == 0)
        unlink(path);
    explicit_bzero(&place, sizeof place);
}

int tb_meet_run(const char *path, const char *ports)
{
    static struct meet meet;
    tb_core_forbid(); /* the secret is in our memory */
    int rc = tb_loop_open(&meet.loop, &tb_clock_real);
    meet.loop.settle = settle;
    if (rc == TB_OK)
        rc = open_signals(&meet);
    if (rc == TB_OK)
        rc = begin(&meet, path, ports);
    if (rc != TB_OK)
        return complain();
    rc = tb_loop_run(&meet.loop);
    take_away(&meet, path);
    tb_name_server_close(&meet.server);
    return rc == TB_OK ? 0 : complain();
}

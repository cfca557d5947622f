/* The control of the emulator: see emulator.h for the words. A message may hold several lines, which are done in turn
 * up to the first that fails. */
#include "lab/emulator_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int find_port(const struct tb_emulator *e, const char *name, uint32_t *index)
{
    *index = tb_emulator_port_find(e, name);
    return *index == UINT32_MAX ? tb_error(TB_ERR_ARGUMENT, "interface %s is not a port", name) : 0;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static int read_address(const char *text, uint8_t address[6])
{
    int end = 0;
    unsigned b[6];
    if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &end) != 6 ||
        text[end] != '\0')
        return tb_error(TB_ERR_ARGUMENT, "\"%s\" is not an Ethernet address such as 02:00:00:00:00:01", text);
    for (int i = 0; i < 6; i++)
        address[i] = (uint8_t)b[i];
    return 0;
}

static int do_port(struct tb_emulator *e, struct tb_emulator_words *w)
{
    uint32_t index, first = 3;
    uint8_t address[6];
    bool trunk = w->count > 3 && strcmp(w->word[3], "trunk") == 0;
    first += trunk;
    if (strlen(w->word[1]) >= IFNAMSIZ || strlen(w->word[2]) >= TB_EMULATOR_NAME_BYTES)
        return tb_error(TB_ERR_ARGUMENT, "the name of interface %s or segment %s is too long", w->word[1], w->word[2]);
    for (uint32_t i = first; i < w->count; i++) {
        int rc = read_address(w->word[i], address);
        if (rc != 0)
            return rc;
    }
    int rc = tb_emulator_port_open(e, w->word[1], w->word[2], trunk, &index);
    for (uint32_t i = first; rc == 0 && i < w->count; i++) {
        rc = read_address(w->word[i], address);
        if (rc == 0)
            tb_hosts_learn(&e->hosts, e->ports[index]->segment, address, index, true);
    }
    return rc;
}

static int do_drop(struct tb_emulator *e, struct tb_emulator_words *w)
{
    uint32_t index;
    int rc = find_port(e, w->word[1], &index);
    if (rc == 0)
        tb_emulator_port_close(e, index);
    return rc;
}

static int do_pipe(struct tb_emulator *e, struct tb_emulator_words *w)
{
    uint32_t index;
    if (strlen(w->word[1]) >= TB_EMULATOR_NAME_BYTES)
        return tb_error(TB_ERR_ARGUMENT, "the name of pipe %s is too long", w->word[1]);
    if (tb_emulator_pipe_find(e, w->word[1], &index) == 0)
        return tb_error(TB_ERR_ARGUMENT, "there is a pipe %s already", w->word[1]);
    return tb_emulator_pipe_make(e, w->word[1]);
}

static int do_route(struct tb_emulator *e, struct tb_emulator_words *w)
{
    uint32_t from = 0, to = 0, pipe = 0;
    struct tb_frame_way way = {0};
    int rc = find_port(e, w->word[1], &from);
    if (rc == 0)
        rc = find_port(e, w->word[2], &to);
    for (uint32_t i = 3; i < w->count && rc == 0; i++) {
        rc = tb_emulator_pipe_find(e, w->word[i], &pipe);
        way.pipes[way.count++] = (uint16_t)pipe;
    }
    if (rc == 0)
        e->ports[from]->routes[to] = way;
    return rc;
}

static int do_half(struct tb_emulator *e, struct tb_emulator_words *w)
{
    uint32_t one = 0, other = 0;
    int rc = tb_emulator_pipe_find(e, w->word[1], &one);
    if (rc == 0)
        rc = tb_emulator_pipe_find(e, w->word[2], &other);
    if (rc == 0 && one == other)
        rc = tb_error(TB_ERR_ARGUMENT, "pipe %s has no other direction than itself", w->word[1]);
    if (rc == 0)
        tb_pipe_join(&e->pipes[one]->pipe, &e->pipes[other]->pipe);
    return rc;
}

static int read_setting(const char *text, struct tb_grid_wire *wire)
{
    const char *equals = strchr(text, '=');
    char *end = NULL;
    errno = 0;
    uint64_t value = equals && equals[1] >= '0' && equals[1] <= '9' ? strtoull(equals + 1, &end, 10) : 0;
    size_t length = equals ? (size_t)(equals - text) : 0;
    if (!end || *end != '\0' || errno != 0)
        return tb_error(TB_ERR_ARGUMENT, "\"%s\" is not NAME=NUMBER", text);
    if (value > UINT64_MAX / 8)
        return tb_error(TB_ERR_ARGUMENT, "%s: too large", text);
    bool share = (length == 4 && strncmp(text, "loss", 4) == 0) || (length == 7 && strncmp(text, "reorder", 7) == 0);
    if (share && value > 1000000)
        return tb_error(TB_ERR_ARGUMENT, "%s: more than a million of a million", text);
    if (length == 9 && strncmp(text, "bandwidth", length) == 0)
        wire->bandwidth = value;
    else if (length == 7 && strncmp(text, "latency", length) == 0)
        wire->latency = value;
    else if (length == 6 && strncmp(text, "jitter", length) == 0)
        wire->jitter = value;
    else if (length == 5 && strncmp(text, "queue", length) == 0)
        wire->queue = value;
    else if (share && length == 4)
        wire->loss = (uint32_t)value;
    else if (share)
        wire->reorder = (uint32_t)value;
    else
        return tb_error(TB_ERR_ARGUMENT, "\"%s\": bandwidth, latency, jitter, loss, reorder or queue can be set", text);
    return 0;
}

static int do_set(struct tb_emulator *e, struct tb_emulator_words *w)
{
    uint32_t pipe = 0;
    int rc = tb_emulator_pipe_find(e, w->word[1], &pipe);
    if (rc != 0)
        return rc;
    struct tb_grid_wire wire = e->pipes[pipe]->pipe.wire;
    for (uint32_t i = 2; i < w->count && rc == 0; i++)
        rc = read_setting(w->word[i], &wire);
    if (rc == 0)
        tb_pipe_set(&e->pipes[pipe]->pipe, &wire);
    return rc;
}

/* What is under way in a wire that is cut does not arrive. */
static int do_cut(struct tb_emulator *e, struct tb_emulator_words *w)
{
    uint32_t pipe = 0;
    int rc = tb_emulator_pipe_find(e, w->word[1], &pipe);
    if (rc == 0) {
        e->pipes[pipe]->pipe.is_cut = true;
        tb_frames_forget(&e->frames, TB_FRAMES_ALL, pipe);
    }
    return rc;
}

static int do_heal(struct tb_emulator *e, struct tb_emulator_words *w)
{
    uint32_t pipe = 0;
    int rc = tb_emulator_pipe_find(e, w->word[1], &pipe);
    if (rc == 0)
        e->pipes[pipe]->pipe.is_cut = false;
    return rc;
}

static int do_reset(struct tb_emulator *e, struct tb_emulator_words *w)
{
    tb_emulator_reset(e);
    return 0;
}

static int do_report(struct tb_emulator *e, struct tb_emulator_words *w)
{
    size_t used = strlen(e->answer);
    used += (size_t)snprintf(e->answer + used, sizeof e->answer - used, "\n");
    tb_emulator_report(e, e->answer + used, sizeof e->answer - used);
    return 0;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static const struct command {
    const char *name;
    uint32_t least, most; /* words */
    int (*run)(struct tb_emulator *e, struct tb_emulator_words *words);
    const char *form;
} commands[] = {
    {"port", 3, TB_EMULATOR_WORDS, do_port, "port INTERFACE SEGMENT [trunk] [MAC...]"},
    {"drop", 2, 2, do_drop, "drop INTERFACE"},
    {"pipe", 2, 2, do_pipe, "pipe NAME"},
    {"half", 3, 3, do_half, "half NAME NAME"},
    {"route", 4, 3 + TB_FRAME_WAY_PIPES, do_route, "route FROM TO NAME..., up to 6 of them"},
    {"set", 3, 8, do_set, "set NAME [bandwidth=N] [latency=N] [jitter=N] [loss=N] [reorder=N] [queue=N]"},
    {"cut", 2, 2, do_cut, "cut NAME"},
    {"heal", 2, 2, do_heal, "heal NAME"},
    {"report", 1, 1, do_report, "report"},
    {"reset", 1, 1, do_reset, "reset"},
};

static int obey(struct tb_emulator *e, char *line)
{
    struct tb_emulator_words *w = &e->words;
    char *rest = NULL;
    w->count = 0;
    for (char *word = strtok_r(line, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (w->count == TB_EMULATOR_WORDS)
            return tb_error(TB_ERR_LIMIT, "more than %u words in a line", TB_EMULATOR_WORDS);
        w->word[w->count++] = word;
    }
    if (w->count == 0)
        return 0;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(w->word[0], commands[i].name) != 0)
            continue;
        if (w->count < commands[i].least || w->count > commands[i].most)
            return tb_error(TB_ERR_ARGUMENT, "expected: %s", commands[i].form);
        return commands[i].run(e, w);
    }
    return tb_error(TB_ERR_ARGUMENT, "there is no command \"%s\"", w->word[0]);
}

int tb_emulator_control(struct tb_emulator *e)
{
    ssize_t length = recv(e->control, e->message, TB_EMULATOR_MESSAGE_BYTES, MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (length <= 0) /* closed, or reset, which is no different to us */
        return TB_ERR_CLOSED;
    e->message[length] = '\0';
    strcpy(e->answer, "ok");
    char *rest = NULL;
    for (char *line = strtok_r(e->message, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (obey(e, line) != 0) {
            snprintf(e->answer, sizeof e->answer, "error %s", tb_error_story());
            break;
        }
    if (send(e->control, e->answer, strlen(e->answer), MSG_NOSIGNAL) < 0 && errno != EAGAIN)
        return TB_ERR_CLOSED;
    return 0;
}

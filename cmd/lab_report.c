#include "lab_report.h"

#include "base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 1024
#define NAME_BYTES 400

/* The value of a key in a line of key=value; 0: it is not there. */
static uint64_t number_of(const char *line, const char *key)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, " %s=", key);
    const char *at = strstr(line, wanted);
    return at != NULL ? strtoull(at + strlen(wanted), NULL, 10) : 0;
}

static void print_time(uint64_t ns)
{
    if (ns < 1000)
        printf("%" PRIu64 " ns", ns);
    else if (ns < 1000000)
        printf("%.3g us", (double)ns / 1e3);
    else if (ns < 1000000000)
        printf("%.3g ms", (double)ns / 1e6);
    else
        printf("%.4g s", (double)ns / 1e9);
}

static void print_bytes(uint64_t bytes)
{
    if (bytes < 1000)
        printf("%" PRIu64 " byte%s", bytes, tb_plural(bytes));
    else if (bytes < 1000000)
        printf("%.3g kB", (double)bytes / 1e3);
    else if (bytes < 1000000000)
        printf("%.4g MB", (double)bytes / 1e6);
    else
        printf("%.5g GB", (double)bytes / 1e9);
}

static void print_rate(uint64_t bits)
{
    if (bits == 0)
        printf("no limit");
    else if (bits < 1000000)
        printf("%.4g kbit/s", (double)bits / 1e3);
    else if (bits < 1000000000)
        printf("%.4g Mbit/s", (double)bits / 1e6);
    else
        printf("%.4g Gbit/s", (double)bits / 1e9);
}

/* ", 3 lost"; nothing where there is none. */
static void print_some(const char *line, const char *key, const char *word)
{
    uint64_t count = number_of(line, key);
    if (count > 0)
        printf(", %" PRIu64 " %s", count, word);
}

/* The emulator's names are words: %XX stands for a byte that cannot be in one. */
static void decode(char *name)
{
    char *to = name;
    for (; *name != 0; name++) {
        unsigned byte;
        bool encoded = *name == '%' && sscanf(name, "%%%2x", &byte) == 1;
        *to++ = encoded ? (char)byte : *name;
        name += encoded ? 2 : 0;
    }
    *to = 0;
}

static void print_pipe(const char *line, char *name)
{
    decode(name);
    uint64_t frames = number_of(line, "frames"), loss = number_of(line, "loss"), jitter = number_of(line, "jitter");
    printf("link %s: %s, ", name, strstr(line, " state=cut") != NULL ? "cut" : "open");
    print_rate(number_of(line, "bandwidth"));
    printf(", latency ");
    print_time(number_of(line, "latency"));
    if (jitter > 0) {
        printf(" +- ");
        print_time(jitter);
    }
    if (loss > 0)
        printf(", loses %.4g %%", (double)loss / 1e4);
    if (number_of(line, "queue") > 0) {
        printf(", queue ");
        print_bytes(number_of(line, "queue"));
    }
    printf("; %" PRIu64 " frame%s, ", frames, tb_plural(frames));
    print_bytes(number_of(line, "bytes"));
    print_some(line, "lost", "lost");
    print_some(line, "full", "dropped since the queue was full");
    print_some(line, "cut", "dropped while it was cut");
    putchar('\n');
}

static void print_port(const char *line, const char *name)
{
    printf("port %s: %" PRIu64 " received, %" PRIu64 " sent", name, number_of(line, "received"),
           number_of(line, "sent"));
    print_some(line, "overrun", "missed by the emulator");
    print_some(line, "giant", "too long");
    print_some(line, "unsent", "not sent");
    putchar('\n');
}

/* "65536..250000" as "64 KiB to 244 KiB". */
static void print_queue(const char *line, const char *key, const char *of)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, " %s=", key);
    const char *at = strstr(line, wanted);
    uint64_t least = number_of(line, key);
    if (at == NULL || least == 0)
        return;
    const char *dots = at + strcspn(at + 1, " ") + 1, *to = strstr(at, "..");
    printf(", queues of %s ", of);
    print_bytes(least);
    if (to != NULL && to < dots) {
        printf(" to ");
        print_bytes(strtoull(to + 2, NULL, 10));
    }
}

static void print_lab(const char *line)
{
    char congestion[32] = "";
    const char *at = strstr(line, " congestion=");
    if (at != NULL)
        sscanf(at, " congestion=%31s", congestion);
    printf("congestion control %s", congestion);
    print_queue(line, "queue", "links");
    print_queue(line, "port_queue", "ports");
    putchar('\n');
}

static void print_late(const char *line)
{
    uint64_t count = number_of(line, "count");
    printf("the emulator was late: %" PRIu64 " frame%s, half of them by less than ", count, tb_plural(count));
    print_time(number_of(line, "p50"));
    printf(", 99 %% by less than ");
    print_time(number_of(line, "p99"));
    printf(", the latest by ");
    print_time(number_of(line, "max"));
    printf("; %" PRIu64 " by more than 0.3 ms\n", number_of(line, "over"));
}

static void print_line(const char *line)
{
    char kind[16] = "", name[NAME_BYTES] = "", scheduler[32] = "";
    sscanf(line, "%15s %399s", kind, name);
    const char *at = strstr(line, " scheduler=");
    if (at != NULL)
        sscanf(at, " scheduler=%31s", scheduler);
    if (strcmp(kind, "lab") == 0) {
        print_lab(line);
    } else if (strcmp(kind, "pipe") == 0) {
        print_pipe(line, name);
    } else if (strcmp(kind, "port") == 0) {
        print_port(line, name);
    } else if (strcmp(kind, "late") == 0) {
        print_late(line);
    } else if (strcmp(kind, "cpu") == 0) {
        printf("it has used ");
        print_time(number_of(line, "used"));
        printf(" of a core in ");
        print_time(number_of(line, "wall"));
        printf(" (scheduling: %s)\n", scheduler);
    } else if (strcmp(kind, "frames") == 0) {
        uint64_t count = number_of(line, "underway");
        printf("%" PRIu64 " frame%s under way", count, tb_plural(count));
        print_some(line, "exhausted", "dropped for want of memory");
        putchar('\n');
    } else if (strcmp(kind, "more") == 0) {
        printf("%s lines more\n", name);
    } else {
        puts(line);
    }
}

void tb_lab_report_print(const char *answer)
{
    char line[LINE_BYTES];
    while (*answer != 0) {
        size_t length = strcspn(answer, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, answer);
        print_line(line);
        answer += length + (answer[length] == '\n');
    }
}

#include "agent/stranger_log.h"

#include <arpa/inet.h>
#include <stdio.h>

#define MINUTE_NS 60000000000u

/* The one that was seen most often stands for the others. */
static void say(struct tb_stranger_log *log, const char *when)
{
    const struct tb_stranger *most = &log->strangers[0];
    for (uint32_t i = 1; i < log->count; i++)
        if (log->strangers[i].times > most->times)
            most = &log->strangers[i];
    char others[64] = "", number[32] = "a connection";
    if (log->count > 1)
        snprintf(others, sizeof others, " and %s%u other%s", log->count == TB_STRANGER_LOG_NAMES ? "at least " : "",
                 log->count - 1, log->count > 2 ? "s" : "");
    if (log->total > 1)
        snprintf(number, sizeof number, "%u connections", log->total);
    bool one = log->total == 1;
    if (log->kind == TB_STRANGER_UNPROVED)
        tb_log(TB_LOG_WARN, "agent", "host %s: %s from %s%s did not prove the job key%s, and %s closed",
               log->member->name, number, most->who, others, when, one ? "was" : "were");
    else
        tb_log(TB_LOG_WARN, "agent", "host %s: %s with %s%s %s ended%s: %s", log->member->name, number, most->who,
               others, one ? "has" : "have", when, log->why);
    log->total = log->count = 0;
    tb_timer_set(log->member->loop, &log->minute, MINUTE_NS);
}

static void minute_over(struct tb_timer *timer)
{
    struct tb_stranger_log *log = TB_CONTAINER(timer, struct tb_stranger_log, minute);
    if (log->total > 0)
        say(log, " in the last minute");
}

static void add(struct tb_stranger_log *log, const char *who)
{
    uint32_t i = 0;
    while (i < log->count && strcmp(log->strangers[i].who, who) != 0)
        i++;
    if (i == log->count && i < TB_STRANGER_LOG_NAMES) {
        log->strangers[log->count++] = (struct tb_stranger){.times = 0};
        snprintf(log->strangers[i].who, sizeof log->strangers[i].who, "%s", who);
    }
    if (i < TB_STRANGER_LOG_NAMES)
        log->strangers[i].times++;
    log->total++;
    if (!tb_timer_is_set(&log->minute))
        say(log, "");
}

void tb_stranger_log_unproved(struct tb_stranger_log *log, const struct sockaddr_storage *from)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    const struct sockaddr_in *four = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
    char who[INET6_ADDRSTRLEN] = "an unknown address";
    if (from->ss_family == AF_INET)
        inet_ntop(AF_INET, &four->sin_addr, who, sizeof who);
    else if (from->ss_family == AF_INET6 && memcmp(&six->sin6_addr, mapped, sizeof mapped) == 0)
        inet_ntop(AF_INET, six->sin6_addr.s6_addr + 12, who, sizeof who);
    else if (from->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &six->sin6_addr, who, sizeof who);
    add(log, who);
}

void tb_stranger_log_nonsense(struct tb_stranger_log *log, struct tb_proc with)
{
    char who[80] = "nobody of this job";
    uint32_t host;
    snprintf(log->why, sizeof log->why, "%s", tb_error_story());
    if (tb_member_find_host(log->member, with, &host) == TB_OK) {
        const char *name = log->member->book->hosts[host].name;
        if (tb_proc_is_agent(with))
            snprintf(who, sizeof who, "the agent of host %.40s", name);
        else
            snprintf(who, sizeof who, "rank %u on host %.40s", with.index, name);
    }
    add(log, who);
}

void tb_stranger_log_open(struct tb_stranger_log *log, const struct tb_member *member, enum tb_stranger_kind kind)
{
    *log = (struct tb_stranger_log){.member = member, .kind = kind};
    tb_timer_init(&log->minute, minute_over);
}

void tb_stranger_log_close(struct tb_stranger_log *log)
{
    if (log->member != NULL)
        tb_timer_clear(&log->minute);
    log->member = NULL;
}

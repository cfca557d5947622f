#include "launch/job_report.h"

#include "launch/visible_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_NS  1000000000u /* for whoever reads our output, once a hurried job is over */
#define ERRORS_LIMIT (32u << 20) /* what may wait for standard error before shells are not heard any more */

static void overdue(struct tb_timer *timer);

void tb_job_report_open(struct tb_job_report *report, struct tb_loop *loop, const char *name,
                        const struct tb_output_options *output, const struct tb_job_report_events *events)
{
    *report = (struct tb_job_report){.loop = loop, .name = name, .events = *events, .merged = output->merged};
    tb_timer_init(&report->timer, overdue);
    for (int i = 0; i < 2; i++) {
        struct tb_screen_style style = {.tags = output->tags,
                                        .times = output->times,
                                        .pattern = output->pattern,
                                        .files = output->files[i],
                                        .beside = output->beside};
        tb_screen_open(&report->screens[i], loop, i + 1, &style, &events->screen);
    }
}

void tb_job_report_add(struct tb_job_report *report, unsigned stream, uint32_t rank, uint32_t host, const char *bytes,
                       size_t length)
{
    tb_screen_add(&report->screens[report->merged ? 0 : stream - 1], rank, host, bytes, length);
}

int tb_job_report_expect(struct tb_job_report *report, uint32_t ranks)
{
    int rc = tb_screen_expect(&report->screens[0], ranks);
    return rc == TB_OK ? tb_screen_expect(&report->screens[1], ranks) : rc;
}

int tb_job_report_grow(struct tb_job_report *report, uint32_t ranks)
{
    int rc = tb_screen_grow(&report->screens[0], ranks);
    return rc == TB_OK ? tb_screen_grow(&report->screens[1], ranks) : rc;
}

static void say_text(struct tb_job_report *report, const char *text)
{
    struct tb_screen *screen = &report->screens[1];
    char *line = NULL, *shown = malloc(TB_VISIBLE_TEXT_GROWTH * strlen(text) + 1);
    bool begun = screen->mid_line || (report->screens[0].mid_line && isatty(1) && isatty(2));
    int length = -1;
    if (shown != NULL) {
        tb_visible_text(text, shown, TB_VISIBLE_TEXT_GROWTH * strlen(text) + 1);
        length = asprintf(&line, "%s%s: %s\n", begun ? "\n" : "", report->name, shown);
    }
    if (length >= 0) { /* no memory: then the screen has none for it either */
        tb_screen_text(screen, line, (size_t)length);
        free(line);
    }
    free(shown);
}

/* Several hosts may have the same to say, and one host again and again. */
static bool was_said(struct tb_job_report *report, const char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *c = text; *c != 0; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    for (uint32_t i = 0; i < report->said_count && i < TB_JOB_REPORT_SAID; i++)
        if (report->said[i] == hash)
            return true;
    report->said[report->said_count++ % TB_JOB_REPORT_SAID] = hash;
    return false;
}

void tb_job_report_say(struct tb_job_report *report, const char *format, ...)
{
    char text[4096];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    if (!was_said(report, text))
        say_text(report, text);
}

void tb_job_report_answer(struct tb_job_report *report, const char *text)
{
    say_text(report, text);
}

void tb_job_report_pass_errors(struct tb_job_report *report, const char *bytes, size_t length)
{
    if (report->screens[1].queued < ERRORS_LIMIT)
        tb_screen_text(&report->screens[1], bytes, length);
}

static bool is_shown(const struct tb_job_report *report)
{
    return tb_screen_is_empty(&report->screens[0]) && tb_screen_is_empty(&report->screens[1]);
}

static void give_verdict(struct tb_job_report *report)
{
    if (report->given)
        return;
    report->given = true;
    if (report->verdict.weight == TB_VERDICT_NONE)
        report->events.succeeded(report->events.context);
    else if (*report->verdict.text != 0)
        say_text(report, report->verdict.text);
}

/* Nobody reads. The verdict may get through on standard error, if that is somewhere else. */
static void overdue(struct tb_timer *timer)
{
    struct tb_job_report *report = TB_CONTAINER(timer, struct tb_job_report, timer);
    give_verdict(report);
    report->loop->stop = true;
}

void tb_job_report_finish(struct tb_job_report *report, bool hurried)
{
    if (hurried && !tb_timer_is_set(&report->timer))
        tb_timer_set(report->loop, &report->timer, PATIENCE_NS);
    if (!is_shown(report))
        return;
    give_verdict(report);
    if (is_shown(report))
        report->loop->stop = true;
}

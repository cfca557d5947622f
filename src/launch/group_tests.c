#include "launch/group_tests.h"

#include "launch/group_story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS             1000000u
#define PATIENCE_NS    (5000u * (uint64_t)MS)  /* for agents to open a group, and to report: so long, */
#define HOST_NS        (1u * (uint64_t)MS)     /* and for each host of the job this much more */
#define GRACE_NS       (100u * (uint64_t)MS)   /* for what is still on its way, when all have reported */
#define MOVES_MOST     3u                      /* to other groups, because somebody uses the one that was drawn */
#define SHORTER_MOST   3u                      /* tests with shorter datagrams */
#define PAUSE_FIRST_NS (10000u * (uint64_t)MS) /* between two tests of a group; then twice as long each time, */
#define PAUSE_MOST_NS  (600000u * (uint64_t)MS)

static void come_due(struct tb_timer *timer);

void tb_group_tests_init(struct tb_group_tests *tests, struct tb_loop *loop, const struct tb_group_tests_events *events)
{
    *tests = (struct tb_group_tests){.loop = loop, .events = *events};
    tb_timer_init(&tests->timer, come_due);
}

/* ---- telling agents ---------------------------------------------------------------------------------------------- */

static struct tb_host_agent *agent_of(const struct tb_group_tests *tests, const struct tb_tested_group *group,
                                      uint32_t index)
{
    struct tb_host_agent *agent = &tests->agents->all[group->choice->hosts[index]];
    return tb_host_agent_is_ready(agent) ? agent : NULL;
}

static int send_order(struct tb_group_tests *tests, struct tb_host_agent *agent, const struct tb_tested_group *group)
{
    struct tb_multicast_order order = {.attempt = 0};
    if (group != NULL)
        order = (struct tb_multicast_order){
            .attempt = group->attempt,
            .place = group->choice->place,
            .address = group->address,
            .local = tests->book->hosts[agent->host].addresses[tests->choices.addresses[agent->host]],
            .ttl = (uint32_t)tb_param.mcast_ttl};
    tb_multicast_order_put(tb_control_stream_begin(&agent->control, TB_CONTROL_GROUP), &order);
    return tb_control_stream_end(&agent->control);
}

static void send_test(const struct tb_tested_group *group, struct tb_host_agent *agent)
{
    struct tb_writer *w = tb_control_stream_begin(&agent->control, TB_CONTROL_GROUP_TEST);
    tb_put_u32(w, group->attempt);
    tb_put_u32(w, group->test);
    tb_put_u32(w, group->piece);
    tb_control_stream_end(&agent->control);
}

/* To all agents of the job: an algorithm for ranks of several clusters depends on all their groups. */
static void tell_verdict(struct tb_group_tests *tests)
{
    uint8_t bits[TB_MULTICAST_PLACES] = {0};
    size_t length = 0;
    for (uint32_t i = 0; i < tests->count; i++) {
        uint32_t place = tests->groups[i].choice->place;
        if (!tests->groups[i].works)
            continue;
        bits[place / 8] |= (uint8_t)(1u << place % 8);
        length = place / 8 + 1;
    }
    tests->version++;
    for (uint32_t i = 0; i < tests->agents->count; i++) {
        struct tb_host_agent *agent = &tests->agents->all[i];
        uint32_t own = tests->group_of[i];
        if (!tb_host_agent_is_ready(agent))
            continue;
        struct tb_writer *w = tb_control_stream_begin(&agent->control, TB_CONTROL_GROUP_VERDICT);
        tb_put_u32(w, tests->version);
        tb_put_bytes(w, bits, length);
        bool works = own != TB_GRID_NONE && tests->groups[own].works;
        tb_put_u32(w, works ? tests->groups[own].piece : 0);
        tb_put_u32(w, works ? tests->groups[own].buffer : 0);
        tb_control_stream_end(&agent->control);
    }
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static uint64_t patience(const struct tb_group_tests *tests)
{
    return PATIENCE_NS + tests->book->host_count * HOST_NS;
}

static void wait_for(struct tb_group_tests *tests, struct tb_tested_group *group, uint64_t ns)
{
    uint64_t now = tb_loop_now(tests->loop);
    group->due = now + ns;
    if (!tb_timer_is_set(&tests->timer) || tests->timer.due > group->due)
        tb_timer_set(tests->loop, &tests->timer, ns);
}

/* ---- a test from its beginning to its end ------------------------------------------------------------------------ */

static void say(const struct tb_group_tests *tests, const char *text)
{
    if (tb_param.explain)
        tests->events.note(tests->events.context, text);
    else
        tb_log(TB_LOG_INFO, "launch", "%s", text);
}

static void judge(struct tb_group_tests *tests, struct tb_tested_group *group, bool works)
{
    char text[1024];
    bool first = tests->version == 0;
    bool news = first || works != group->works;
    group->phase = TB_GROUP_JUDGED;
    group->works = works;
    group->has_worked = group->has_worked || works;
    group->has_failed = group->has_failed || !works;
    group->moves = 0;
    group->due = TB_NEVER;
    group->judged = tb_loop_now(tests->loop);
    group->wanted = false;
    group->pause = group->pause == 0 ? PAUSE_FIRST_NS : 2 * group->pause;
    if (group->pause > PAUSE_MOST_NS)
        group->pause = PAUSE_MOST_NS;
    if (news && group->living > 1) {
        tb_group_story_verdict(group, tests->book, text, sizeof text);
        say(tests, text);
    }
    if (group->has_worked && !works) { /* what was mended is used again */
        group->wanted = true;
        wait_for(tests, group, group->pause);
    }
    tests->unjudged -= first;
    if (tests->unjudged == 0)
        tell_verdict(tests);
}

static void begin_test(struct tb_group_tests *tests, struct tb_tested_group *group)
{
    tb_tested_group_retest(group);
    group->test = ++tests->test;
    for (uint32_t i = 0; i < group->choice->count; i++) {
        struct tb_host_agent *agent = agent_of(tests, group, i);
        if (agent != NULL)
            send_test(group, agent);
    }
    wait_for(tests, group, patience(tests));
}

static void draw_group(struct tb_group_tests *tests, struct tb_tested_group *group)
{
    uint32_t first = group->choice->hosts[0];
    tb_tested_group_reopen(group);
    group->attempt++;
    tb_group_choice_draw(&tests->random, &tests->book->hosts[first].addresses[tests->choices.addresses[first]],
                         &group->address);
}

/* Somebody else uses the group. */
static void move(struct tb_group_tests *tests, struct tb_tested_group *group)
{
    char address[80];
    tb_address_print(&group->address, address, sizeof address);
    tb_log(TB_LOG_INFO, "launch", "multicast group %s is used by somebody else", address);
    if (group->moves++ == MOVES_MOST) {
        snprintf(group->why, sizeof group->why, "%u multicast groups in turn were used by others", MOVES_MOST + 1);
        judge(tests, group, false);
        return;
    }
    draw_group(tests, group);
    for (uint32_t i = 0; i < group->choice->count; i++) {
        struct tb_host_agent *agent = agent_of(tests, group, i);
        if (agent != NULL)
            send_order(tests, agent, group);
    }
    wait_for(tests, group, patience(tests));
}

/* Nothing more will come. */
static void conclude(struct tb_group_tests *tests, struct tb_tested_group *group)
{
    bool longest = tb_tested_group_hears_all(group);
    uint32_t shorter = tb_tested_group_shorter(group);
    if (longest && shorter > 0 && group->shorter < SHORTER_MOST) {
        group->shorter++;
        group->piece = shorter;
        begin_test(tests, group);
        return;
    }
    tb_group_story_unheard(group, tests->book, longest, group->why, sizeof group->why);
    judge(tests, group, false);
}

/* Who has not answered in time. */
static void give_up(struct tb_group_tests *tests, struct tb_tested_group *group)
{
    for (uint32_t i = 0; i < group->choice->count; i++) {
        const struct tb_tested_host *host = &group->hosts[i];
        if (host->gone || (group->phase == TB_GROUP_OPENING ? host->open : host->reported))
            continue;
        snprintf(group->why, sizeof group->why, "host %.200s does not say whether multicast reaches it",
                 tests->book->hosts[group->choice->hosts[i]].name);
        judge(tests, group, false);
        return;
    }
    conclude(tests, group);
}

/* Something has changed: perhaps the test is over. */
static void look(struct tb_group_tests *tests, struct tb_tested_group *group)
{
    if (group->phase == TB_GROUP_JUDGED)
        return;
    if (group->living < 2) {
        *group->why = 0; /* nobody is left who would want to know */
        judge(tests, group, false);
    } else if (group->phase == TB_GROUP_OPENING) {
        if (group->open == group->living)
            begin_test(tests, group);
    } else if (group->reported == group->living) {
        if (tb_tested_group_hears_longest(group))
            judge(tests, group, true);
        else
            wait_for(tests, group, GRACE_NS);
    }
}

static void test_again(struct tb_group_tests *tests, struct tb_tested_group *group)
{
    bool taken = group->taken;
    group->wanted = group->taken = false;
    if (taken)
        move(tests, group);
    else
        begin_test(tests, group);
}

static void come_due(struct tb_timer *timer)
{
    struct tb_group_tests *tests = TB_CONTAINER(timer, struct tb_group_tests, timer);
    uint64_t now = tb_loop_now(tests->loop), next = TB_NEVER;
    for (uint32_t i = 0; i < tests->count; i++) {
        struct tb_tested_group *group = &tests->groups[i];
        if (group->due <= now) {
            group->due = TB_NEVER;
            if (group->phase != TB_GROUP_JUDGED)
                give_up(tests, group);
            else if (group->wanted)
                test_again(tests, group);
        }
        next = group->due < next ? group->due : next;
    }
    if (next != TB_NEVER)
        tb_timer_set(tests->loop, timer, next - now);
}

/* ---- what agents tell -------------------------------------------------------------------------------------------- */

static void take_state(struct tb_group_tests *tests, struct tb_tested_group *group, uint32_t index, struct tb_reader *r)
{
    uint32_t attempt = tb_get_u32(r);
    uint8_t state = tb_get_u8(r);
    struct tb_multicast_fit fit = {.piece = tb_get_u32(r)};
    fit.buffer = tb_get_u32(r);
    size_t length = 0;
    const char *why = tb_get_bytes(r, &length);
    if (tb_reader_end(r) != TB_OK || attempt != group->attempt || group->phase == TB_GROUP_JUDGED)
        return;
    if (state == TB_MULTICAST_TAKEN) {
        move(tests, group);
    } else if (state == TB_MULTICAST_CLOSED) {
        snprintf(group->why, sizeof group->why, "host %.100s has no multicast: %.*s",
                 tests->book->hosts[group->choice->hosts[index]].name, (int)(length < 200 ? length : 200), why);
        judge(tests, group, false);
    } else if (state == TB_MULTICAST_OPEN && fit.piece > 0 && group->phase == TB_GROUP_OPENING) {
        tb_tested_group_take_open(group, index, &fit);
        look(tests, group);
    }
}

static void take_heard(struct tb_group_tests *tests, struct tb_tested_group *group, uint32_t index, struct tb_reader *r)
{
    uint32_t test = tb_get_u32(r);
    uint64_t heard = tb_get_u64(r), longest = tb_get_u64(r);
    if (tb_reader_end(r) != TB_OK || test != group->test || group->phase != TB_GROUP_TESTING)
        return;
    tb_tested_group_take_heard(group, index, heard, longest);
    look(tests, group);
}

/* Those who have not heard of the last verdict yet are in trouble with one that is over. */
static void take_trouble(struct tb_group_tests *tests, struct tb_tested_group *group, struct tb_reader *r)
{
    uint32_t version = tb_get_u32(r);
    uint8_t what = tb_get_u8(r);
    if (tb_reader_end(r) != TB_OK || what >= TB_MULTICAST_TROUBLES || version != tests->version || version == 0 ||
        !group->works || group->phase != TB_GROUP_JUDGED)
        return;
    group->taken = group->taken || what == TB_MULTICAST_OTHER_JOB;
    if (group->wanted)
        return;
    group->wanted = true;
    uint64_t passed = tb_loop_now(tests->loop) - group->judged;
    wait_for(tests, group, passed < group->pause ? group->pause - passed : 0);
}

void tb_group_tests_take(struct tb_group_tests *tests, uint32_t host, enum tb_control kind, struct tb_reader *r)
{
    uint32_t at =
        tests->begun && !tests->stopped && host < tests->book->host_count ? tests->group_of[host] : TB_GRID_NONE;
    if (at == TB_GRID_NONE)
        return;
    struct tb_tested_group *group = &tests->groups[at];
    if (kind == TB_CONTROL_GROUP_STATE)
        take_state(tests, group, tests->index_of[host], r);
    else if (kind == TB_CONTROL_GROUP_HEARD)
        take_heard(tests, group, tests->index_of[host], r);
    else if (kind == TB_CONTROL_GROUP_TROUBLE)
        take_trouble(tests, group, r);
}

void tb_group_tests_lose(struct tb_group_tests *tests, uint32_t host)
{
    uint32_t at = tests->begun && !tests->stopped ? tests->group_of[host] : TB_GRID_NONE;
    if (at == TB_GRID_NONE)
        return;
    tb_tested_group_lose(&tests->groups[at], tests->index_of[host]);
    look(tests, &tests->groups[at]);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int make_room(struct tb_group_tests *tests, uint32_t hosts)
{
    uint32_t groups = 0, members = 0;
    for (uint32_t i = 0; i < tests->choices.count; i++) {
        groups += tests->choices.all[i].family != 0;
        members += tests->choices.all[i].count;
    }
    tests->groups = calloc(groups + 1u, sizeof *tests->groups);
    tests->hosts = calloc(members + 1u, sizeof *tests->hosts);
    tests->group_of = malloc((hosts + 1u) * sizeof *tests->group_of);
    tests->index_of = calloc(hosts + 1u, sizeof *tests->index_of);
    if (tests->groups == NULL || tests->hosts == NULL || tests->group_of == NULL || tests->index_of == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the multicast groups of %u hosts", hosts);
    for (uint32_t i = 0; i < hosts; i++)
        tests->group_of[i] = TB_GRID_NONE;
    return TB_OK;
}

static void add_group(struct tb_group_tests *tests, const struct tb_group_choice *choice, struct tb_tested_host *hosts)
{
    struct tb_tested_group *group = &tests->groups[tests->count];
    tb_tested_group_open(group, choice, hosts);
    draw_group(tests, group);
    for (uint32_t i = 0; i < choice->count; i++) {
        tests->group_of[choice->hosts[i]] = tests->count;
        tests->index_of[choice->hosts[i]] = i;
    }
    tests->count++;
}

int tb_group_tests_choose(struct tb_group_tests *tests, const struct tb_address_book *book,
                          const struct tb_grid_plan *plan, struct tb_host_agents *agents)
{
    uint64_t seed = 0;
    uint32_t used = 0;
    char text[1024];
    tests->book = book;
    tests->agents = agents;
    int rc = tb_random_secret(&seed, sizeof seed);
    tb_random_seed(&tests->random, seed);
    if (rc == TB_OK)
        rc = tb_group_choices_make(&tests->choices, book, plan);
    if (rc == TB_OK)
        rc = make_room(tests, book->host_count);
    for (uint32_t i = 0; i < tests->choices.count && rc == TB_OK; i++) {
        const struct tb_group_choice *choice = &tests->choices.all[i];
        if (choice->family != 0) {
            add_group(tests, choice, tests->hosts + used);
            used += choice->count;
        } else {
            tb_group_story_none(choice, book, text, sizeof text);
            say(tests, text);
        }
    }
    tests->unjudged = tests->count;
    return rc;
}

int tb_group_tests_order(struct tb_group_tests *tests, struct tb_host_agent *agent)
{
    if (tests->count == 0)
        return TB_OK;
    uint32_t at = tests->group_of[agent->host];
    return send_order(tests, agent, at != TB_GRID_NONE ? &tests->groups[at] : NULL);
}

void tb_group_tests_begin(struct tb_group_tests *tests)
{
    tests->begun = tests->count > 0 && !tests->stopped;
    for (uint32_t i = 0; i < tests->count && tests->begun; i++)
        wait_for(tests, &tests->groups[i], patience(tests));
}

void tb_group_tests_stop(struct tb_group_tests *tests)
{
    tests->stopped = true;
    tb_timer_clear(&tests->timer);
}

void tb_group_tests_close(struct tb_group_tests *tests)
{
    const struct tb_group_tests_events events = tests->events;
    struct tb_loop *loop = tests->loop;
    tb_timer_clear(&tests->timer);
    tb_group_choices_close(&tests->choices);
    free(tests->groups);
    free(tests->hosts);
    free(tests->group_of);
    free(tests->index_of);
    tb_group_tests_init(tests, loop, &events);
}

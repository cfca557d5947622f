#include "agent/dialer.h"

#include "agent/attempt.h"
#include "agent/codec.h"
#include "agent/connect_here.h"
#include "agent/wan_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define STAGGER_NS     250000000u
#define PAUSE_NS       20000000u  /* before the addresses are tried again; doubled each time, */
#define PAUSE_MOST_NS  640000000u /* up to this */
#define ROUNDS_DOUBLED 5u
/* Of a dial for the agent itself, who tries again; of one round to another cluster, whatever that one finds: after a
 * link was down, a new connection is there sooner than one that the kernel repeats ever more seldom. */
#define ROUND_NS 4000000000u

struct dial;

/* One address of the other agent. */
struct
try {
    struct tb_attempt attempt;
    struct dial *dial;
    struct tb_address address;
};

struct dial {
    struct tb_list node;
    struct tb_dialer *dialer;
    struct tb_proc self; /* for whom; the agent itself, perhaps */
    bool wide;           /* to another cluster */
    struct tb_proc to;
    enum tb_stream stream;
    uint32_t stripe;
    uint32_t host;
    bool calling;            /* the other side is to connect */
    bool called;             /* the other side has asked for it: nobody here waits for bad news */
    bool gone;               /* that process has ended */
    uint32_t started, count; /* tries */
    uint32_t running;
    uint32_t rounds;         /* how often all addresses have been tried */
    bool worth_another;      /* some try of this round may succeed if it is repeated */
    bool cut;                /* some try of this round has met a link that is down */
    bool unreached;          /* some address has not answered, or the network has said no in its place */
    bool refused;            /* the right agent has said no */
    struct tb_timer pace;    /* the next try or round */
    struct tb_timer overdue; /* set once, whatever happens */
    char story[768];         /* why the tries so far have failed */
    struct try *tries;
};

static void start_next(struct dial *dial);
static void call_other_side(struct dial *dial);
static void attempt_event(struct tb_attempt *attempt, enum tb_attempt_event event);

static void set_timer(struct dial *dial, struct tb_timer *timer, uint64_t after)
{
    tb_timer_set(dial->dialer->member->loop, timer, after);
}

static bool is_for_rank(const struct dial *dial)
{
    return !tb_proc_is_agent(dial->self);
}

/* ---- its end ----------------------------------------------------------------------------------------------------- */

/* Whoever waits begins from the loop: here the caller of the one that ends may still be at work. */
static void end_dial(struct dial *dial)
{
    struct tb_dialer *dialer = dial->dialer;
    struct tb_dial_line *line = &dialer->wishes.lines[dial->called];
    line->running--;
    if (line->count > 0 && !tb_timer_is_set(&dialer->more))
        set_timer(dial, &dialer->more, 0);
    for (uint32_t i = 0; i < dial->started; i++)
        tb_attempt_close(&dial->tries[i].attempt);
    tb_timer_clear(&dial->pace);
    tb_timer_clear(&dial->overdue);
    tb_list_remove(&dial->node);
    free(dial->tries);
    free(dial);
}

static void link_found(struct dial *dial)
{
    if (dial->wide)
        dial->dialer->events.link_found(dial->dialer->events.context, dial->host);
}

static void link_lost(struct dial *dial)
{
    dial->dialer->events.link_lost(dial->dialer->events.context, dial->host, dial->story);
}

/* The other agent listens, so something between the hosts has kept us away, if nobody there has said no. Whose
 * connections come from one side only, or from none, a grid file can say. */
static const char *advise(const struct dial *dial)
{
    bool grid = dial->dialer->member->routes->kind_count > 0;
    if (dial->refused || !dial->unreached || (grid && !is_for_rank(dial)))
        return "";
    return grid ? "; is a firewall between the hosts? (--set ports=LOW-HIGH chooses the ports)"
                : "; is a firewall between the hosts? (--set ports=LOW-HIGH chooses the ports; where only one side can "
                  "connect, or neither, describe the hosts in a grid file and use --grid: docs/guide/grid.md, \"Hosts "
                  "that do not reach each other\")";
}

static void give_up(struct dial *dial, int error)
{
    const struct tb_dialer_events *events = &dial->dialer->events;
    const struct tb_member *member = dial->dialer->member;
    char from[32] = "its agent", to[32] = "the agent";
    if (is_for_rank(dial))
        snprintf(from, sizeof from, "rank %u", dial->self.index);
    if (!tb_proc_is_agent(dial->to))
        snprintf(to, sizeof to, "rank %u", dial->to.index);
    error = dial->gone && !is_for_rank(dial) ? TB_ERR_CLOSED : error;
    tb_error(error, "host %s cannot connect %s to %s on host %s:%s%s", member->name, from, to,
             member->book->hosts[dial->host].name, dial->story, advise(dial));
    const struct dial over = *dial;
    end_dial(dial);
    if (!over.called)
        events->refused(events->context, over.self, over.to, over.stream, over.stripe, error);
}

/* Ends only by success, or if the other side answers that it cannot be. */
static bool is_steadfast(const struct dial *dial)
{
    return dial->wide && !dial->called && is_for_rank(dial);
}

static uint64_t patience_of(const struct dial *dial)
{
    bool own = !is_for_rank(dial) && tb_param.connect_timeout > ROUND_NS;
    return own || dial->wide ? ROUND_NS : tb_param.connect_timeout;
}

/* ---- tries ------------------------------------------------------------------------------------------------------- */

/* What a link that is down looks like, where routers say so. */
static bool is_cut(const struct dial *dial, int error)
{
    return is_steadfast(dial) && (error == EHOSTUNREACH || error == ENETUNREACH || error == ETIMEDOUT ||
                                  error == EHOSTDOWN || error == ENETDOWN);
}

static void close_others(struct dial *dial, const struct try *kept)
{
    for (uint32_t i = 0; i < dial->started; i++) {
        struct try *other = &dial->tries[i];
        if (other == kept || !tb_attempt_is_open(&other->attempt))
            continue;
        tb_attempt_close(&other->attempt);
        dial->running--;
    }
}

/* Closed without a word, or busy: a flooded agent does that. It is asked again after a while; so is who cannot be
 * reached because of a link that is down. */
static void pause_dial(struct dial *dial)
{
    if (dial->cut)
        link_lost(dial);
    uint64_t pause = dial->rounds < ROUNDS_DOUBLED ? PAUSE_NS << dial->rounds : PAUSE_MOST_NS;
    dial->rounds++;
    set_timer(dial, &dial->pace, pause);
}

/* One more thing to the story: what has become of an address. */
static void tell_of(struct try *t, const char *why)
{
    struct dial *dial = t->dial;
    char text[80];
    tb_address_print(&t->address, text, sizeof text);
    size_t used = strlen(dial->story);
    snprintf(dial->story + used, sizeof dial->story - used, "%s %s: %s", used > 0 ? ";" : "", text, why);
}

/* The try is over, and was closed. May end the dial. */
static void end_try(struct try *t, bool worth_another, const char *why)
{
    struct dial *dial = t->dial;
    dial->running--;
    tell_of(t, why);
    dial->worth_another = dial->worth_another || worth_another;
    if (dial->started < dial->count)
        start_next(dial);
    else if (dial->running == 0 && dial->worth_another && !dial->refused)
        pause_dial(dial);
    else if (dial->running == 0)
        give_up(dial, TB_ERR_PEER);
}

/* As above, when the kernel says why. */
static void fail_try(struct try *t, int error, bool worth_another)
{
    bool cut = is_cut(t->dial, error);
    t->dial->cut = t->dial->cut || cut;
    t->dial->unreached = t->dial->unreached || (error != EMFILE && error != ENFILE);
    end_try(t, worth_another || cut, strerror(error));
}

/* An agent of the job has said no. */
static void take_refusal(struct try *t)
{
    struct dial *dial = t->dial;
    uint32_t status = t->attempt.handshake.welcome.status;
    bool busy = status == TB_WELCOME_BUSY;
    if (status ==
        TB_WELCOME_OTHER_HOST) { /* which knows nothing of whom we look for; the next address may lead there */
        end_try(t, false, "leads to another host of the job");
        return;
    }
    link_found(dial);
    dial->gone = dial->gone || status == TB_WELCOME_NO_SUCH_PROCESS;
    dial->refused = dial->refused || !busy;
    end_try(t, busy,
            status == TB_WELCOME_VERSION  ? "has another version of Tombolo"
            : status == TB_WELCOME_BORDER ? "lets only agents connect from here"
            : busy                        ? "is too busy"
                                          : "that rank has ended");
}

/* The other agent has answered. The first one that does is it: two confirms would make two connections. */
static void take_welcome(struct try *t)
{
    struct dial *dial = t->dial;
    link_found(dial);
    close_others(dial, t);
    tb_timer_clear(&dial->pace);
    dial->started = dial->count;
    if (!tb_attempt_confirm(&t->attempt))
        end_try(t, true, "closed the connection");
    else if (dial->wide && is_for_rank(dial))
        tb_wan_watch_prepare(t->attempt.watch.descriptor);
}

static void finish(struct try *t)
{
    struct dial *dial = t->dial;
    const struct tb_dialer_events *events = &dial->dialer->events;
    const struct tb_handshake shaken = t->attempt.handshake;
    const struct tb_connected connected = {.self = dial->self,
                                           .proc = dial->to,
                                           .stream = dial->stream,
                                           .stripe = dial->stripe,
                                           .socket = tb_attempt_take(&t->attempt),
                                           .dialed = true,
                                           .hello = &shaken.hello,
                                           .welcome = &shaken.welcome};
    end_dial(dial);
    events->connected(events->context, &connected);
}

static void attempt_event(struct tb_attempt *attempt, enum tb_attempt_event event)
{
    struct try *t = TB_CONTAINER(attempt, struct try, attempt);
    char why[256];
    switch (event) {
    case TB_ATTEMPT_WELCOMED:
        take_welcome(t);
        break;
    case TB_ATTEMPT_CONNECTED:
        finish(t);
        break;
    case TB_ATTEMPT_FAILED:
        fail_try(t, attempt->error, attempt->error == ECONNRESET);
        break;
    case TB_ATTEMPT_DROPPED:
        end_try(t, true, "closed the connection");
        break;
    case TB_ATTEMPT_CLOSED:
        end_try(t, true,
                "closed the connection without a word: no agent of this job, or it did not accept the job key");
        break;
    case TB_ATTEMPT_REFUSED:
        take_refusal(t);
        break;
    case TB_ATTEMPT_STRANGER:
        end_try(t, false, "is no agent of this job");
        break;
    case TB_ATTEMPT_VERSION:
        end_try(t, false, "has another version of Tombolo");
        break;
    case TB_ATTEMPT_NONSENSE:
        end_try(t, false, "does not speak as an agent should");
        break;
    case TB_ATTEMPT_TROUBLE:
        snprintf(why, sizeof why, "%s", tb_error_story());
        end_try(t, false, why);
        break;
    }
}

static void start_next(struct dial *dial)
{
    const struct tb_member *member = dial->dialer->member;
    struct try *t = &dial->tries[dial->started++];
    dial->running++;
    t->attempt = (struct tb_attempt){.source = dial->self,
                                     .destination = dial->to,
                                     .stream = dial->stream | dial->stripe << TB_STREAM_STRIPE_SHIFT,
                                     .features = is_for_rank(dial) ? 0 : tb_codec_features(member, dial->to),
                                     .small = tb_dialer_uses_small(dial->dialer, dial->host),
                                     .event = attempt_event};
    int rc = tb_attempt_open(&t->attempt, member, &t->address);
    if (rc == TB_ERR_SYSTEM)
        fail_try(t, errno, errno == EMFILE || errno == ENFILE);
    else if (rc != TB_OK)
        end_try(t, false, "cannot be waited for");
    else if (dial->started < dial->count)
        set_timer(dial, &dial->pace, STAGGER_NS);
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void begin_round(struct dial *dial)
{
    dial->started = 0;
    dial->worth_another = dial->cut = false;
    dial->story[0] = 0;
    if (is_steadfast(dial))
        set_timer(dial, &dial->overdue, patience_of(dial));
    start_next(dial);
}

/* The next address; or, when all have been tried and are worth it, the first one again. */
static void dial_next(struct tb_timer *timer)
{
    struct dial *dial = TB_CONTAINER(timer, struct dial, pace);
    if (dial->started == dial->count && dial->running == 0)
        begin_round(dial);
    else if (dial->started < dial->count)
        start_next(dial);
}

static bool is_confirmed(const struct dial *dial)
{
    for (uint32_t i = 0; i < dial->started; i++)
        if (dial->tries[i].attempt.confirmed && tb_attempt_is_open(&dial->tries[i].attempt))
            return true;
    return false;
}

/* Nobody has answered in this round. */
static void try_again(struct dial *dial)
{
    set_timer(dial, &dial->overdue, patience_of(dial));
    if (is_confirmed(dial)) {
        /* Not given up: the rank over there may be using the connection already. */
        link_lost(dial);
        dial->story[0] = 0;
        return;
    }
    link_lost(dial);
    if (dial->calling) {
        dial->story[0] = 0;
        call_other_side(dial);
        return;
    }
    close_others(dial, NULL);
    tb_timer_clear(&dial->pace);
    begin_round(dial);
}

/* Which addresses have not answered. */
static void tell_of_silence(struct dial *dial)
{
    char why[80];
    double time = (double)patience_of(dial) / 1e9;
    uint32_t silent = 0;
    for (uint32_t i = 0; i < dial->started; i++) {
        struct try *t = &dial->tries[i];
        if (!tb_attempt_is_open(&t->attempt))
            continue;
        snprintf(why, sizeof why, "%sno answer within %.10g s", t->attempt.greeted ? "took the connection, then " : "",
                 time);
        tell_of(t, why);
        dial->unreached = true;
        silent++;
    }
    size_t used = strlen(dial->story);
    if (silent == 0)
        snprintf(dial->story + used, sizeof dial->story - used, "%s no %s within %.10g s", used > 0 ? ";" : "",
                 dial->calling ? "connection from there" : "answer", time);
}

static void dial_overdue(struct tb_timer *timer)
{
    struct dial *dial = TB_CONTAINER(timer, struct dial, overdue);
    tell_of_silence(dial);
    if (is_steadfast(dial) && !dial->refused) {
        try_again(dial);
    } else if (dial->called && dial->wide && is_for_rank(dial) && is_confirmed(dial)) {
        dial->story[0] = 0; /* as there: who has called may be using it already */
        set_timer(dial, timer, patience_of(dial));
    } else {
        give_up(dial, TB_ERR_TIMEOUT);
    }
}

/* ---- its beginning ----------------------------------------------------------------------------------------------- */

/* Those of a subnet of ours come first. */
static int list_tries(struct dial *dial)
{
    const struct tb_member *member = dial->dialer->member;
    const struct tb_host *host = &member->book->hosts[dial->host];
    if (host->address_count == 0)
        return tb_error(TB_ERR_PEER, "host %s has told no address", host->name);
    dial->tries = calloc(host->address_count, sizeof *dial->tries);
    if (dial->tries == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a connection");
    for (int far = 0; far <= 1; far++)
        for (uint32_t i = 0; i < host->address_count; i++)
            if (tb_address_is_near(&member->addresses, &host->addresses[i]) == !far) {
                struct try *t = &dial->tries[dial->count++];
                t->dial = dial;
                t->address = host->addresses[i];
                t->attempt.watch.descriptor = -1;
                tb_address_fix_scope(&member->addresses, &t->address);
            }
    return TB_OK;
}

/* Only the other side can connect: the launcher tells it to. */
static void call_other_side(struct dial *dial)
{
    const struct tb_dialer_events *events = &dial->dialer->events;
    dial->calling = true;
    events->call(events->context, dial->host, dial->to, dial->self,
                 dial->stream | dial->stripe << TB_STREAM_STRIPE_SHIFT);
}

/* `wish` says for whom, to whom, and which stream. An agent that wants to hear of one to whom routes lead around a cut
 * does not know any more which of the two can connect, so both try. */
static int begin_dial(struct tb_dialer *dialer, const struct tb_dial_wish *wish)
{
    const struct tb_member *member = dialer->member;
    const struct tb_host_route *route = tb_member_route(member, wish->host);
    if (!(tb_proc_is_agent(wish->self) && tb_proc_is_agent(wish->to)) && !tb_member_lets_ranks(member, wish->host))
        return tb_error(
            TB_ERR_PEER,
            "rank %u may not connect to rank %u itself: between host %s and host %s only agents do (`direct: "
            "yes` on the link in the grid file allows it)",
            wish->self.index, wish->to.index, member->name, member->book->hosts[wish->host].name);
    bool direct = route->means == TB_HOST_ROUTE_DIRECT || route->means == TB_HOST_ROUTE_CALLED;
    bool cut = !direct && route->means == TB_HOST_ROUTE_RELAYED && tb_proc_is_agent(wish->self);
    if (!wish->called && !direct && !cut)
        return tb_error(TB_ERR_PEER, "host %s has no direct way to host %s", member->name,
                        member->book->hosts[wish->host].name);
    struct dial *dial = calloc(1, sizeof *dial);
    if (dial == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a connection");
    *dial = (struct dial){.dialer = dialer,
                          .self = wish->self,
                          .to = wish->to,
                          .host = wish->host,
                          .stream = wish->stream,
                          .stripe = wish->stripe,
                          .called = wish->called,
                          .wide = tb_member_is_wide(member, wish->host)};
    tb_timer_init(&dial->pace, dial_next);
    tb_timer_init(&dial->overdue, dial_overdue);
    bool call = !wish->called && route->means == TB_HOST_ROUTE_CALLED;
    int rc = call ? TB_OK : list_tries(dial);
    if (rc != TB_OK) {
        free(dial);
        return rc;
    }
    tb_list_append(&dialer->dials, &dial->node);
    dialer->wishes.lines[dial->called].running++;
    set_timer(dial, &dial->overdue, patience_of(dial));
    if (call || (cut && !wish->called))
        call_other_side(dial);
    if (!call)
        start_next(dial);
    return TB_OK;
}

/* What the agent itself wants, which is bounded by the hosts, does not wait for what ranks want. */
static int take_wish(struct tb_dialer *dialer, const struct tb_dial_wish *wish)
{
    bool own = tb_proc_is_agent(wish->self) && !wish->called;
    if (own || tb_dial_wishes_have_room(&dialer->wishes, wish))
        return begin_dial(dialer, wish);
    return tb_dial_wishes_add(&dialer->wishes, dialer->member, wish);
}

static void tell_in_vain(void)
{
    tb_log(TB_LOG_INFO, "agent", "called for a connection, in vain: %s", tb_error_story());
}

static void begin_more(struct tb_timer *timer)
{
    struct tb_dialer *dialer = TB_CONTAINER(timer, struct tb_dialer, more);
    const struct tb_dialer_events *events = &dialer->events;
    struct tb_dial_wish wish;
    while (tb_dial_wishes_take(&dialer->wishes, &wish)) {
        int rc = begin_dial(dialer, &wish);
        if (rc != TB_OK && wish.called)
            tell_in_vain();
        else if (rc != TB_OK)
            events->refused(events->context, wish.self, wish.to, wish.stream, wish.stripe, rc);
    }
}

int tb_dialer_connect(struct tb_dialer *dialer, struct tb_proc self, struct tb_proc to, enum tb_stream stream,
                      uint32_t stripe)
{
    uint32_t host;
    int rc = tb_member_find_host(dialer->member, to, &host);
    if (rc != TB_OK)
        return rc;
    bool near = host == dialer->member->host && !tb_proc_is_agent(to) && self.index != to.index;
    if ((uint32_t)stream == TB_STREAM_PAIR && !near)
        return tb_error(TB_ERR_PEER, "process %u shares no memory with process %u", self.index, to.index);
    struct tb_dial_wish wish = {.self = self, .to = to, .stream = stream, .stripe = stripe, .host = host};
    return host == dialer->member->host ? tb_connect_here(dialer, self, to, stream) : take_wish(dialer, &wish);
}

void tb_dialer_called(struct tb_dialer *dialer, struct tb_proc here, struct tb_proc there, uint32_t stream)
{
    const struct tb_member *member = dialer->member;
    const struct tb_dialer_events *events = &dialer->events;
    bool for_agent = here.index == member->self.index;
    struct tb_dial_wish wish = {.to = there,
                                .self = {member->self.job, here.index},
                                .stream = (enum tb_stream)(stream & TB_STREAM_MASK),
                                .stripe = stream >> TB_STREAM_STRIPE_SHIFT,
                                .called = true};
    int rc = tb_member_find_host(member, there, &wish.host);
    if (rc == TB_OK && (wish.stream >= TB_STREAM_COUNT || wish.stripe >= TB_STRIPES_LIMIT ||
                        wish.host == member->host || (!for_agent && !events->has_rank(events->context, here.index))))
        rc = tb_error(TB_ERR_PROTOCOL, "a call for a connection that makes no sense");
    if (rc == TB_OK)
        rc = take_wish(dialer, &wish);
    if (rc != TB_OK)
        tell_in_vain();
}

void tb_dialer_arrived(struct tb_dialer *dialer, const struct tb_connected *connected)
{
    struct dial *dial;
    TB_LIST_EACH (dial, &dialer->dials, struct dial, node)
        if (dial->calling && dial->self.index == connected->self.index && dial->to.index == connected->proc.index &&
            dial->stream == connected->stream && dial->stripe == connected->stripe) {
            link_found(dial);
            end_dial(dial);
        }
}

void tb_dialer_use_small(struct tb_dialer *dialer, uint32_t host)
{
    if (dialer->small == NULL)
        dialer->small = calloc(dialer->member->book->host_count, sizeof dialer->small[0]);
    if (dialer->small != NULL)
        dialer->small[host] = true;
}

bool tb_dialer_uses_small(const struct tb_dialer *dialer, uint32_t host)
{
    return dialer->small != NULL && dialer->small[host];
}

void tb_dialer_forget(struct tb_dialer *dialer, struct tb_proc self)
{
    struct dial *dial;
    tb_dial_wishes_forget(&dialer->wishes, self);
    TB_LIST_EACH (dial, &dialer->dials, struct dial, node)
        if (dial->self.index == self.index)
            end_dial(dial);
}

/* ---- the dialer -------------------------------------------------------------------------------------------------- */

void tb_dialer_open(struct tb_dialer *dialer, const struct tb_member *member, const struct tb_dialer_events *events)
{
    *dialer = (struct tb_dialer){.member = member, .events = *events};
    tb_list_init(&dialer->dials);
    tb_dial_wishes_open(&dialer->wishes);
    tb_timer_init(&dialer->more, begin_more);
    tb_loopback_open(&dialer->loopback);
}

void tb_dialer_close(struct tb_dialer *dialer)
{
    struct dial *dial;
    tb_dial_wishes_close(&dialer->wishes);
    TB_LIST_EACH (dial, &dialer->dials, struct dial, node)
        end_dial(dial);
    tb_timer_clear(&dialer->more);
    free(dialer->small);
    tb_loopback_close(&dialer->loopback);
}

#include "agent/far_host.h"

#define MS           UINT64_C(1000000)
#define ASK_FIRST    (200 * MS) /* while the round trip is not known */
#define ASK_LEAST    (20 * MS)
#define ASK_MOST     (500 * MS)
#define LATE         (200 * MS)  /* the least timer of TCP */
#define TOOK_MOST    (5000 * MS) /* nobody is waited for longer than this, and what is usual */
#define TEMPER_ASKED (500 * MS)
#define TEMPER_TOOK  (1000 * MS)
#define ROOM_FIRST   (512u << 10)
#define ROOM_LEAST   (128u << 10)
#define ROOM_STEP    (16u << 10)
#define SHUN_FIRST   (4000 * MS)  /* how long a hop is avoided behind which frames get lost; doubled each time, */
#define SHUN_MOST    (64000 * MS) /* up to this */

void tb_far_host_open(struct tb_far_host *host, uint32_t number)
{
    *host = (struct tb_far_host){.host = number,
                                 .patience = ASK_FIRST,
                                 .ask_at = TB_NEVER,
                                 .check_at = TB_NEVER,
                                 .room = tb_param.relay_window < ROOM_FIRST ? tb_param.relay_window : ROOM_FIRST};
    tb_list_init(&host->busy);
    tb_list_init(&host->hungry);
    tb_list_init(&host->sending);
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        tb_list_init(&host->turns[i]);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

void tb_far_host_calm(struct tb_far_host *host)
{
    uint64_t usual = host->round_trip + 4 * host->variation;
    host->patience = host->round_trip == 0 ? ASK_FIRST : usual < ASK_LEAST ? ASK_LEAST : usual;
    if (host->patience > ASK_MOST)
        host->patience = ASK_MOST;
}

/* What has waited for a link that was down says little about the usual. */
static uint64_t temper(const struct tb_far_host *host, uint64_t sample, uint64_t more)
{
    uint64_t most = host->round_trip > 0 ? 2 * host->round_trip + more : TOOK_MOST;
    return sample < most ? sample : most;
}

void tb_far_host_learn(struct tb_far_host *host, uint64_t sample)
{
    sample = temper(host, sample > 0 ? sample : 1, TEMPER_ASKED);
    if (host->round_trip == 0) {
        host->round_trip = sample;
        host->variation = sample / 2;
        return;
    }
    uint64_t off = sample > host->round_trip ? sample - host->round_trip : host->round_trip - sample;
    host->variation = (3 * host->variation + off) / 4;
    host->round_trip = (7 * host->round_trip + sample) / 8;
}

void tb_far_host_took(struct tb_far_host *host, uint64_t sample)
{
    sample = temper(host, sample, TEMPER_TOOK);
    host->slowest -= host->slowest / 1024;
    host->slowest = sample > host->slowest ? sample : host->slowest;
}

uint64_t tb_far_host_answer_time(const struct tb_far_host *host)
{
    uint64_t usual = host->round_trip + 4 * host->variation;
    usual = usual > host->slowest ? usual : host->slowest;
    return (usual < TOOK_MOST ? usual : TOOK_MOST) + host->round_trip + LATE;
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

/* Half as much, once for all that was under way when the first of them was lost. */
void tb_far_host_narrow(struct tb_far_host *host, uint64_t sent_at, uint64_t now)
{
    if (sent_at <= host->narrowed_at)
        return;
    host->narrowed_at = now;
    host->room = host->room / 2 > ROOM_LEAST ? host->room / 2 : ROOM_LEAST;
}

/* Twice as much each time that all of it has arrived, until something is lost; then a step more. */
void tb_far_host_widen(struct tb_far_host *host, size_t bytes)
{
    size_t most = tb_param.relay_window * (host->sending_count > 0 ? host->sending_count : 1);
    host->room += host->narrowed_at == 0 ? bytes : bytes * ROOM_STEP / host->room;
    if (host->room > most)
        host->room = most;
}

/* ---- hops -------------------------------------------------------------------------------------------------------- */

static struct tb_far_hop *hop_look(const struct tb_far_host *host, uint32_t via)
{
    for (uint32_t i = 0; i < host->hop_count; i++)
        if (host->hops[i].host == via)
            return (struct tb_far_hop *)&host->hops[i];
    return NULL;
}

/* Made if there is none; when there are too many, the one that has not been good for longest gives way. */
static struct tb_far_hop *hop_find(struct tb_far_host *host, uint32_t via)
{
    struct tb_far_hop *hop = hop_look(host, via);
    if (hop != NULL)
        return hop;
    if (host->hop_count < TB_FAR_HOST_HOPS) {
        hop = &host->hops[host->hop_count++];
    } else {
        hop = &host->hops[0];
        for (uint32_t i = 1; i < host->hop_count; i++)
            if (host->hops[i].good_at < hop->good_at)
                hop = &host->hops[i];
    }
    *hop = (struct tb_far_hop){.host = via};
    return hop;
}

void tb_far_host_load(struct tb_far_host *host, uint32_t via, size_t bytes)
{
    host->under_way += bytes;
    hop_find(host, via)->under_way += bytes;
}

void tb_far_host_unload(struct tb_far_host *host, uint32_t via, size_t bytes)
{
    struct tb_far_hop *hop = hop_look(host, via);
    host->under_way -= bytes;
    if (hop != NULL) /* it may have given way to another meanwhile, and have come back */
        hop->under_way -= bytes < hop->under_way ? bytes : hop->under_way;
}

size_t tb_far_host_loaded(const struct tb_far_host *host, uint32_t via)
{
    const struct tb_far_hop *hop = hop_look(host, via);
    return hop != NULL ? hop->under_way : 0;
}

void tb_far_host_outcome(struct tb_far_host *host, uint32_t via, uint64_t sent_at, bool arrived, uint64_t now)
{
    struct tb_far_hop *hop = hop_find(host, via);
    if (arrived) {
        if (sent_at > hop->good_at)
            hop->good_at = sent_at;
        if (sent_at > hop->shunned - hop->span) /* what comes now is a new story */
            hop->span = 0;
        return;
    }
    if (sent_at <= hop->good_at || now < hop->shunned)
        return;
    uint64_t span = hop->span == 0 ? SHUN_FIRST : 2 * hop->span;
    hop->span = span < SHUN_MOST ? span : SHUN_MOST;
    hop->shunned = now + hop->span;
    tb_log(TB_LOG_INFO, "agent", "frames for host %u get lost behind host %u; it is avoided for %.0f s", host->host,
           via, (double)hop->span / 1e9);
}

bool tb_far_host_shuns(const struct tb_far_host *host, uint32_t via, uint64_t now)
{
    const struct tb_far_hop *hop = hop_look(host, via);
    return hop != NULL && now < hop->shunned;
}

bool tb_far_host_uses(const struct tb_far_host *host, uint32_t via)
{
    return hop_look(host, via) != NULL;
}

void tb_far_host_use(struct tb_far_host *host, uint32_t via)
{
    hop_find(host, via);
}

void tb_far_host_broken(struct tb_far_host *host, uint32_t via, uint64_t now)
{
    hop_find(host, via)->broken_at = now;
}

uint64_t tb_far_host_broken_at(const struct tb_far_host *host, uint32_t via)
{
    const struct tb_far_hop *hop = hop_look(host, via);
    return hop != NULL ? hop->broken_at : 0;
}

/* What the ranks of a window that are on one host share for it: a line of locks for each of them, and, of a window
 * whose memory the library allocates, all of that memory. It is a memfd, which the first of these ranks makes; it tells
 * the others where, with whatever else ranks tell each other when they make a window, and these open it as a file of
 * that process. Whoever cannot (it may be in another PID namespace) has memory of its own, and everybody's accesses go
 * by frames there. Memory that the program has brought along is copied straight from process to process, where the
 * kernel allows that.
 *
 * A line is written by all; the struct belongs to one window of the engine, and is touched with that locked, but for
 * tb_window_host_open, tb_window_host_enter, tb_window_host_settle and tb_window_host_close: nobody has it then. */
#ifndef TB_ENGINE_WINDOW_HOST_H
#define TB_ENGINE_WINDOW_HOST_H

#include "engine/host_lock.h"
#include "engine/host_regions.h"

struct tb_engine;
struct tb_window_host;
struct tb_window_near;

/* Locks of one rank's memory. */
struct tb_window_line {
    struct tb_host_lock_words lock;          /* of passive target */
    alignas(128) _Atomic uint32_t combining; /* held by whoever combines data with it (host_mutex.h) */
    alignas(128) _Atomic uint32_t entered;   /* the rank has this memory */
};

/* What a rank tells all the others. */
struct tb_window_offer {
    uint64_t base, size;    /* its own memory, if the program has brought that along */
    uint64_t unit;          /* bytes of a displacement; not used here */
    uint64_t token;         /* random, and where it stands in the process: proof that the number means the process */
    uint64_t token_address; /* and, of a file that is given, its first bytes */
    uint64_t device, file;  /* of the memory, where this rank is the one that gives it, */
    uint32_t process;
    int32_t descriptor; /* and -1 otherwise */
    uint32_t alignment,
        apart; /* as its config: of the ranks of a host the greatest, and not contiguous if one says so */
};

struct tb_window_host_config {
    uint32_t size, rank; /* of the window */
    /* Its ranks on this host, ascending, this one included. Copied. Those that are to use frames alone are left out. */
    const uint32_t *locals;
    uint32_t local_count;
    bool allocates; /* each rank's memory is part of it */
    /* And that of one rank begins where that of the one before ends; else on a page of its own, or an address that can
     * be divided by `alignment`: a power of two up to 1 GiB, or 0. Ranks need not say the same. */
    bool contiguous;
    uint32_t alignment;
    bool dynamic; /* memory is attached and detached, and each rank tells what it has */
    bool whole;   /* everybody's is needed: it is an error to have less */
};

/* Whether messages between ranks of this host go through memory that these share: if not, nobody wants windows to. The
 * same on all of them. */
bool tb_window_host_is_wanted(const struct tb_engine *engine);

/* Makes everything but the memory, and says what the others must know; base, size and unit are filled in already. */
int tb_window_host_open(const struct tb_window_host_config *config, struct tb_window_offer *offer,
                        struct tb_window_host **host);
/* Offers of all ranks of the window are here: maps the memory. Afterwards all must agree that it went well. */
int tb_window_host_enter(struct tb_window_host *host, const struct tb_window_offer *offers);
/* All have entered. */
void tb_window_host_settle(struct tb_window_host *host);
void tb_window_host_close(struct tb_window_host *host); /* NULL: does nothing */
/* What is in force since it has entered: how memory lies as all ranks of the host have it. Without `locals`. */
const struct tb_window_host_config *tb_window_host_settled(const struct tb_window_host *host);

/* Where the memory of a rank is in this process; NULL: nowhere. That of this rank is always there. No bytes are
 * nowhere, unless they stand between others. */
void *tb_window_host_memory(const struct tb_window_host *host, uint32_t rank);

/* Its functions, for which the struct is the context. */
extern const struct tb_window_near tb_window_host_near;

#endif

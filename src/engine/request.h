/* Requests from within: struct tb_request stands in engine.h, since it belongs to its user. A request ends in
 * tb_request_finish and nowhere else. Touched with the engine locked, except `done`. */
#ifndef TB_ENGINE_REQUEST_H
#define TB_ENGINE_REQUEST_H

#include "engine/context.h"
#include "engine/engine.h"

enum tb_request_kind { TB_REQUEST_NONE, TB_REQUEST_SEND, TB_REQUEST_RECEIVE, TB_REQUEST_PROGRAM, TB_REQUEST_ACCESS };

enum tb_phase {
    TB_PHASE_IDLE,     /* finished, or not on any list yet */
    TB_PHASE_QUEUED,   /* send: its envelope waits for room */
    TB_PHASE_ASKED,    /* send: REQUEST is out */
    TB_PHASE_SENT,     /* send: EAGER is out; waits to have left, for DONE, or both */
    TB_PHASE_READY,    /* send of a cast: CLEAR has come, and others are waited for */
    TB_PHASE_INVITED,  /* send of a cast: its invitation to a multicast waits for room */
    TB_PHASE_TOGETHER, /* send of a cast: has its data by a multicast, or will have */
    TB_PHASE_BULK,     /* send: DATA is being sent */
    TB_PHASE_TAIL,     /* send: all DATA was accepted and has not left */
    TB_PHASE_AHEAD,    /* send: DATA is being sent without having asked */
    TB_PHASE_LEAVING,  /* send: of such a one all was accepted and has not left */
    TB_PHASE_RECALLED, /* send: has left, and the receiver was asked to forget it */
    TB_PHASE_HELD,     /* send: to this process itself, waits for its receive */
    TB_PHASE_POSTED,   /* receive: waits for a message */
    TB_PHASE_COMING,   /* receive: matched, DATA is expected */
    TB_PHASE_HEARING,  /* receive: matched, its data comes by a multicast */
    TB_PHASE_RUNNING,  /* program */
    TB_PHASE_ALONE     /* program that is one composite step, and has no run */
};

void tb_request_begin(struct tb_request *r, struct tb_context *c, enum tb_request_kind kind);
void tb_request_enlist(struct tb_request *r, struct tb_context *c); /* on the lists of peer and context */
void tb_request_finish(struct tb_request *r, int error);
/* What this thread has told last is told again by tb_request_explain, if the request ends with that error. */
void tb_request_keep_story(const struct tb_request *r, int error);
int tb_request_number(struct tb_request *r); /* gives it a slot and a message id */
struct tb_request *tb_request_find(struct tb_engine *e, uint64_t id, enum tb_request_kind kind); /* NULL: stale */
void tb_request_cancel_locked(struct tb_request *r);
/* Of one that is not finished: whether the other side has done nothing for it yet, as far as is known here. */
bool tb_request_is_unanswered(const struct tb_request *r);

#endif

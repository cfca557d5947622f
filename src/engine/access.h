/* Accesses to windows, as their origin sees them: put, get, accumulate and their like. One that can leave at once, and
 * asks for nothing, has no state; others have a struct tb_access each, which walks through both buffers piece by piece
 * while there is room in the transport and what was asked for comes back.
 *
 * A frame says where each of its bytes belongs: one place, or runs of equally long pieces at equal distances, which the
 * origin finds by walking through the layout of the target's datatype. The target needs no datatype then, keeps nothing
 * from one frame to the next, and checks each run on its own; and a frame of a strided type takes two dozen bytes more
 * than one that is dense.
 *
 * Accumulates (everything that combines) of one origin to one target take the stream of short messages whatever their
 * length, and a queue of their own before it: so they are applied in the order of their calls. Other accesses are in no
 * order, and long ones take the stream of long messages. What an origin may have asked of a process and not got yet is
 * bounded (TB_ACCESS_WINDOW); what it sends is applied as it comes, and needs no bound.
 *
 * All functions take the engine's lock, and none waits. Buffers must live until the access has ended here
 * (tb_window_flush_local, or `request`), and their types are held as long. */
#ifndef TB_ENGINE_ACCESS_H
#define TB_ENGINE_ACCESS_H

#include "data/data.h"

struct tb_request;
struct tb_window;

/* Where in the window of which rank. `data.base` is no address here, but how far from the window's base the first item
 * stands; of a dynamic window its address there. */
struct tb_access_target {
    uint32_t rank;
    struct tb_buffer data;
};

/* Bytes that may have been asked of one process and not got yet, a piece more or less. */
#define TB_ACCESS_WINDOW (1u << 20)

/* Each starts an access; origin and target have as many bytes. Data of accumulates, both sides of them, is of one
 * predefined type, whatever their datatypes (tb_access_element). `request` (may be NULL) completes when the access has
 * ended here; `complete` and `user` of it are set before. Errors, also those at once, are told by the request if there
 * is one, and by the next synchronisation if there is none. */
void tb_access_put(struct tb_window *window, const struct tb_buffer *origin, const struct tb_access_target *target,
                   struct tb_request *request);
void tb_access_get(struct tb_window *window, const struct tb_buffer *result, const struct tb_access_target *target,
                   struct tb_request *request);
/* The operation is predefined, MPI_REPLACE and MPI_NO_OP included. */
void tb_access_accumulate(struct tb_window *window, const struct tb_buffer *origin,
                          const struct tb_access_target *target, const struct tb_op *op, struct tb_request *request);
/* With what was there before. `origin` is not read with MPI_NO_OP, and may be NULL. */
void tb_access_fetch(struct tb_window *window, const struct tb_buffer *origin, const struct tb_buffer *result,
                     const struct tb_access_target *target, const struct tb_op *op, struct tb_request *request);
/* One item: the target becomes *origin if it is *compare, and *result what it was. */
void tb_access_compare(struct tb_window *window, const void *origin, const void *compare, void *result,
                       const struct tb_access_target *target);

/* The predefined type that all data of a type is of; NULL: there are several. */
const struct tb_type *tb_access_element(const struct tb_type *type);

#endif

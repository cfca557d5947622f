/* schedule: programs. A program is what one rank does in one collective: a short list of steps on symbolic buffers. The
 * union of all ranks' programs is a schedule. An algorithm makes programs (collectives), the executor runs one
 * (engine), the simulator and the validator are given all of them.
 *
 * Messages are counted in basic elements and cut into pieces between elements. A step covers pieces (first, stride,
 * count; or a list of them) in items of one or several pieces, with at most `window` items in flight; it depends on
 * other steps as a whole, or piece by piece (its k-th piece after their k-th piece), so that a pipelined chain is two
 * steps for any size, and what comes in long items is passed on in short ones.
 *
 * A program is immutable after tb_program_finish; it holds no addresses and can be kept and used many times at once. */
#ifndef TB_SCHEDULE_SCHEDULE_H
#define TB_SCHEDULE_SCHEDULE_H

#include "base/base.h"

/* What a program is for. Travels with every message of it. */
enum tb_operation {
    TB_OPERATION_BARRIER,
    TB_OPERATION_BCAST,
    TB_OPERATION_GATHER,
    TB_OPERATION_GATHERV,
    TB_OPERATION_SCATTER,
    TB_OPERATION_SCATTERV,
    TB_OPERATION_ALLGATHER,
    TB_OPERATION_ALLGATHERV,
    TB_OPERATION_ALLTOALL,
    TB_OPERATION_ALLTOALLV,
    TB_OPERATION_ALLTOALLW,
    TB_OPERATION_REDUCE,
    TB_OPERATION_ALLREDUCE,
    TB_OPERATION_REDUCE_SCATTER,
    TB_OPERATION_REDUCE_SCATTER_BLOCK,
    TB_OPERATION_SCAN,
    TB_OPERATION_EXSCAN,
    TB_OPERATION_NEIGHBOR_ALLGATHER,
    TB_OPERATION_NEIGHBOR_ALLGATHERV,
    TB_OPERATION_NEIGHBOR_ALLTOALL,
    TB_OPERATION_NEIGHBOR_ALLTOALLV,
    TB_OPERATION_NEIGHBOR_ALLTOALLW,
    TB_OPERATION_COUNT
};

/* What may stand in a message in the place of an operation. A barrier that is not one of the program's says what it is
 * for, so that ranks which mean different things are told so. */
enum tb_operation_alias {
    TB_OPERATION_WIN_FENCE = 0x70,
    TB_OPERATION_WIN_FREE,
    TB_OPERATION_FINALIZES, /* of a collective that is given up: a rank has ended its part of MPI without it */
    TB_OPERATION_ELSEWHERE  /* a rank waits in another call for those who are in this one */
};

/* "MPI_Bcast"; for stories about operations that came over the wire, so any number is allowed. */
const char *tb_operation_name(unsigned operation);

enum tb_step_kind {
    TB_STEP_SEND,
    TB_STEP_RECEIVE,
    TB_STEP_COPY,      /* from `slice` to `other` */
    TB_STEP_REDUCE,    /* other = slice op other: `slice` holds what comes first in the order of ranks */
    TB_STEP_COMPOSITE, /* a protocol of its own with a contract; carried out by a driver of the engine */
    TB_STEP_MEASURE,   /* `other`, in SIZES, is how many bytes the pieces of `slice` have */
    TB_STEP_BIND       /* `other`, in WORK, has pieces of as many bytes as `slice`, in SIZES, says */
};

/* The fixed tree: how the data of `count` ranks is combined where results must not depend on where ranks are. It is
 * combined in the order of ranks: what the first so many of them have in all with what the others have, and each of
 * both parts in the same way. The shape follows from the count alone and is as deep as log2 of it, rounded up. Of a
 * reduction it is that of a fold (the first ranks two by two, so that a power of two of numbers is left, and these in a
 * balanced tree), which butterflies and trees of messages can follow. Of a prefix (scan, exscan) the largest power of
 * two below the count comes last, so that prefixes share their parts. */
static inline uint32_t tb_fixed_split(uint32_t count, bool prefix)
{
    uint32_t power = 1u << (31 - __builtin_clz(count)), more = count - power;
    if (prefix)
        return more > 0 ? more : power / 2;
    return more < power / 2 ? power / 2 + more : power;
}

/* What a composite step does for all ranks of the communicator together, or for those that it lists, its members. Each
 * of them has such a step, with the same members, contract, root, driver, place and items. It gives `slice` and gets
 * `other`; count 0 on a rank that gives or gets nothing. Reductions combine along the fixed tree of those whose data
 * it is. What it does it does item by item, each when all members have come to it; it is one item unless it is cut into
 * several. */
enum tb_composite {
    TB_COMPOSITE_BARRIER,   /* nobody has finished it before all have started it */
    TB_COMPOSITE_BCAST,     /* `other` of all but the root is then `slice` of the root */
    TB_COMPOSITE_REDUCE,    /* `other` of the root is the reduction of everyone's `slice`, piece by piece */
    TB_COMPOSITE_ALLREDUCE, /* `other` of everyone is that */
    TB_COMPOSITE_SCAN,      /* `other` is the reduction of the slices of this rank and all before it */
    TB_COMPOSITE_EXSCAN,    /* the same without this rank; rank 0 gets nothing */

    /* Of these a block is one piece, whose length may be another for each pair of ranks; who gives and who gets it must
     * know it. They are one item. Where there are members, rank k is the k-th of them here. */
    TB_COMPOSITE_GATHER,         /* block k of `other` of the root is `slice`, one block, of rank k */
    TB_COMPOSITE_ALLGATHER,      /* `other` of everyone is that */
    TB_COMPOSITE_SCATTER,        /* `other`, one block, of rank k is block k of the root's `slice`; it may go without */
    TB_COMPOSITE_ALLTOALL,       /* block k of `other` of rank i is block i of `slice` of rank k */
    TB_COMPOSITE_REDUCE_SCATTER, /* `other`, one block, of rank i is the reduction of everyone's block i */
    TB_COMPOSITE_COUNT
};

/* Whether `getter` gets something of what `giver` gives, which may be itself. */
static inline bool tb_composite_takes(enum tb_composite composite, uint32_t root, uint32_t getter, uint32_t giver)
{
    switch (composite) {
    case TB_COMPOSITE_BARRIER:
        return false;
    case TB_COMPOSITE_BCAST:
        return giver == root && getter != root;
    case TB_COMPOSITE_REDUCE:
    case TB_COMPOSITE_GATHER:
        return getter == root;
    case TB_COMPOSITE_SCAN:
        return giver <= getter;
    case TB_COMPOSITE_EXSCAN:
        return giver < getter;
    case TB_COMPOSITE_SCATTER:
        return giver == root;
    default:
        return true;
    }
}

/* Whether it is about one rank in particular. */
static inline bool tb_composite_rooted(enum tb_composite composite)
{
    return composite == TB_COMPOSITE_BCAST || composite == TB_COMPOSITE_REDUCE || composite == TB_COMPOSITE_GATHER ||
           composite == TB_COMPOSITE_SCATTER;
}

/* Whether a giver has a block for each rank, or a getter a block of each. */
static inline bool tb_composite_deals(enum tb_composite composite)
{
    return composite >= TB_COMPOSITE_SCATTER;
}

static inline bool tb_composite_collects(enum tb_composite composite)
{
    return composite == TB_COMPOSITE_GATHER || composite == TB_COMPOSITE_ALLGATHER ||
           composite == TB_COMPOSITE_ALLTOALL;
}

static inline bool tb_composite_reduces(enum tb_composite composite)
{
    return composite == TB_COMPOSITE_REDUCE || composite == TB_COMPOSITE_ALLREDUCE || composite == TB_COMPOSITE_SCAN ||
           composite == TB_COMPOSITE_EXSCAN || composite == TB_COMPOSITE_REDUCE_SCATTER;
}

/* Who carries a composite step out. What it costs the simulator has in a table (planner/driver_cost.h): all members
 * are done when everyone's bytes, those that it gives or those that it gets, whichever are more, have passed `passes`
 * times since the last one came, and `rounds` latencies later; or, where hosts are crossed, what the wires take. */
enum tb_driver {
    /* Through memory that the members share; elements of reductions up to TB_COMMON_ELEMENT bytes, and as many ranks as
     * TB_COMMON_DEALS where a block is for one rank; there so many elements are TB_COMMON_ROW bytes at most. */
    TB_DRIVER_COMMON,
    /* From one member to all others at once, over the multicast group of the cluster that they are in, one on each
     * host: TB_COMPOSITE_BCAST, ALLGATHER and SCATTER. */
    TB_DRIVER_MULTICAST,
    TB_DRIVER_COUNT
};
#define TB_COMMON_ELEMENT 4096u
#define TB_COMMON_DEALS   64u
#define TB_COMMON_ROW     16384u

struct tb_contract {
    uint8_t composite; /* enum tb_composite */
    uint8_t driver;    /* enum tb_driver: who of the engine */
    uint16_t rounds, passes;
};

/* Symbolic buffers, bound at each start. */
enum tb_symbol {
    TB_SYMBOL_IN,
    TB_SYMBOL_OUT,
    TB_SYMBOL_WORK,
    /* Numbers of eight bytes, for programs whose sizes are not known to all: ranks measure what they have and tell the
     * others, and who has come to know the sizes of what it is to pass on makes room for it in WORK with a BIND step,
     * which there is at most one of and which begins at piece 0 of WORK. */
    TB_SYMBOL_SIZES,
    TB_SYMBOL_COUNT
};

struct tb_slice {
    enum tb_symbol symbol;
    uint32_t first; /* piece; of a list: index of its first entry in program->lists */
    int32_t stride; /* pieces from one to the next; TB_SLICE_LIST: piece i is lists[first + i] */
    uint32_t count; /* how many; 0 sends or receives one empty message */
};
#define TB_SLICE_LIST INT32_MIN

/* A dependency. Pieces of a step are counted by their position in its slice, from 0 on: an item that ends before
 * position e comes after positions [0, e - lag) of the other step; a negative lag asks for later ones. */
struct tb_after {
    uint32_t step; /* earlier in the program */
    int32_t lag;   /* TB_AFTER_WHOLE: after all of it */
};
#define TB_AFTER_WHOLE INT32_MIN

struct tb_step {
    enum tb_step_kind kind;
    bool upto;     /* RECEIVE: takes any length up to that of its piece; SEND, to such a receive: goes even if empty */
    uint8_t group; /* that the peer is in; 0: of the channel, which of an intercommunicator is the remote group;
                    * 1: the local group of an intercommunicator */
    /* Tells messages between the same two ranks in one collective apart; both ends use the same. Of COMPOSITE: its
     * place, below program->places (tb_step_places), which no other step of the program for the same driver has. */
    uint16_t edge;
    uint32_t peer; /* rank in its group, of SEND and RECEIVE; root of COMPOSITE */
    uint32_t join; /* pieces of its slice that are one item: they lie side by side and go as one message. The last item
                    * may have fewer. TB_JOIN_ALL: all of them */
    uint32_t window; /* items in flight. When it is made, 0 means as many as may be */
    uint32_t items;  /* parts of it that are started and finished by themselves: messages, or copies */
    /* Of SEND and RECEIVE `other` may say how long the pieces are: those of `slice` in WORK then only have room. */
    struct tb_slice slice, other;
    struct tb_contract contract; /* of COMPOSITE */
    uint32_t members;            /* of COMPOSITE: index of the first in program->lists; ranks of the group, ascending */
    uint32_t member_count;       /* 0: all ranks */
    uint32_t after;              /* index of the first dependency in program->after */
    uint32_t after_count;        /* steps that must be done before; they come earlier in the program */
};
#define TB_JOIN_ALL UINT32_MAX

struct tb_program {
    uint32_t step_count;
    uint32_t pieces;      /* that IN and OUT are cut into; the last one may be shorter; 0: no data */
    uint32_t parts;       /* where IN, OUT and WORK are blocks, each block is so many pieces, TB_PART_UNIT */
    uint32_t work_pieces; /* size of WORK */
    uint32_t size_pieces; /* count of SIZES */
    uint32_t list_count;  /* entries of `lists` */
    uint32_t places;      /* that its composite steps may have, but those by multicast; the same on all ranks, whatever
                           * each takes part in */
    bool binds;           /* there is a BIND step: WORK is packed bytes, and there when that is done */
    bool work_whole;      /* WORK is cut as IN is, into as many copies of it as are needed, also where IN is blocks */
    uint32_t looks;       /* at ways between hosts, to find its steps: who rates it must know how long it took */
    bool ordered;         /* made by a builder that ordered steps itself, which takes it time with their square */
    struct tb_step *steps;
    struct tb_after *after;
    uint32_t *lists; /* pieces of the slices that list them, and members of composite steps */
};

#define TB_PROGRAM_STEPS_LIMIT  (1u << 20) /* so many dependencies and entries of lists, too */
#define TB_PROGRAM_PLACES_LIMIT 16u        /* each may need one of as many slots of a board */
#define TB_CAST_PLACES                                                                                                 \
    32u                          /* of TB_DRIVER_MULTICAST: numbers there follow from the collective's own, so         \
                                  * that nobody else needs to count on them */
#define TB_COMPOSITE_ITEMS 4096u /* of one step */

/* That each collective has on a communicator of several hosts, whether or not its program needs them: so ranks that
 * cannot make their program, or have called something else, have as many as the others. */
#define TB_COLLECTIVE_PLACES 2u

/* Bytes of a block's packed form of which its parts are multiples, but for the last that is not empty: a multiple of
 * every basic element, so that no part ends within one. Of reductions whose elements do not divide it, one element. */
#define TB_PART_UNIT 480u

/* Where part `part` of a block begins. */
static inline uint64_t tb_part_start(uint64_t bytes, uint32_t parts, uint64_t unit, uint32_t part)
{
    uint64_t units = bytes / unit + (bytes % unit != 0), each = units / parts + (units % parts != 0);
    return (unsigned __int128)part * each >= units ? bytes : part * each * unit;
}

/* How many places there are for a composite step. */
static inline uint32_t tb_step_places(const struct tb_program *p, const struct tb_step *s)
{
    return s->contract.driver == TB_DRIVER_MULTICAST ? TB_CAST_PLACES : p->places;
}

/* Positions of a step: the pieces of its slice, or of what it gets, if that is more; an empty message has one. */
static inline uint32_t tb_step_count(const struct tb_step *s)
{
    uint32_t count = s->slice.count;
    if (s->kind == TB_STEP_COMPOSITE && s->other.count > count)
        count = s->other.count;
    return count > 0 ? count : 1;
}

/* How many of them are an item. */
static inline uint32_t tb_step_join(const struct tb_step *s)
{
    uint32_t count = tb_step_count(s);
    return s->join < count ? s->join : count;
}

/* How many pieces of a slice an item of a step covers, from position item * join on. */
static inline uint32_t tb_step_item_pieces(const struct tb_step *s, const struct tb_slice *slice, uint32_t item)
{
    uint32_t left = s->join < slice->count ? slice->count - item * s->join : slice->count;
    return left < s->join ? left : s->join;
}

/* How many items of the step `before` must be done before item `item` of `s` may start, because of a dependency. */
static inline uint32_t tb_step_needs(const struct tb_step *s, const struct tb_after *a, const struct tb_step *before,
                                     uint32_t item)
{
    if (a->lag == TB_AFTER_WHOLE)
        return before->items;
    int64_t end = (int64_t)item + 1, limit = tb_step_count(before);
    if (s->join != 1) {
        end *= tb_step_join(s);
        end = end < tb_step_count(s) ? end : tb_step_count(s);
    }
    end -= a->lag;
    end = end < 0 ? 0 : end < limit ? end : limit;
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): an item is at least one piece
    return before->join == 1 ? (uint32_t)end : (uint32_t)((end + tb_step_join(before) - 1) / tb_step_join(before));
}

/* The same as a question, for those who ask it often: whether `item` must wait, since only `done` items of `before` are
 * done, which are not all. */
static inline bool tb_step_waits(const struct tb_step *s, const struct tb_after *a, const struct tb_step *before,
                                 uint32_t done, uint32_t item)
{
    if (a->lag == TB_AFTER_WHOLE)
        return true;
    if (s->join == 1 && before->join == 1)
        return done < (int64_t)item + 1 - a->lag;
    return done < tb_step_needs(s, a, before, item);
}

/* The piece at a position of a slice. */
static inline uint32_t tb_slice_piece(const struct tb_program *p, const struct tb_slice *s, uint32_t i)
{
    return s->stride == TB_SLICE_LIST ? p->lists[s->first + i] : s->first + (uint32_t)s->stride * i;
}

/* Makes a program step by step. After an error every further call does nothing; finish returns it. */
struct tb_builder {
    struct tb_program program;
    uint32_t step_room, after_room, after_total, list_room;
    bool pipelined;   /* the last added step: no dependency of it is a whole one */
    uint8_t *reached; /* of an ordered program: room for a mark for each step */
    uint32_t reached_room;
    int error;
};

void tb_builder_open(struct tb_builder *b, uint32_t pieces);
/* Every step from now on comes after all earlier ones with which it shares a piece that one of the two writes. */
void tb_builder_order(struct tb_builder *b);
/* Adds a step and returns its index. */
uint32_t tb_builder_send(struct tb_builder *b, uint32_t peer, uint16_t edge, struct tb_slice slice);
uint32_t tb_builder_receive(struct tb_builder *b, uint32_t peer, uint16_t edge, struct tb_slice slice);
uint32_t tb_builder_copy(struct tb_builder *b, struct tb_slice from, struct tb_slice to);
uint32_t tb_builder_reduce(struct tb_builder *b, struct tb_slice first, struct tb_slice into);
/* A slice of any pieces, in this order. */
struct tb_slice tb_builder_list(struct tb_builder *b, enum tb_symbol symbol, const uint32_t *pieces, uint32_t count);
/* The last added step depends on `step`: wholly; piece by piece; shifted by one piece, so that a ring's first piece
 * waits for nothing; or by `lag` pieces (struct tb_after). */
void tb_builder_after(struct tb_builder *b, uint32_t step);
void tb_builder_after_pieces(struct tb_builder *b, uint32_t step);
void tb_builder_after_shifted(struct tb_builder *b, uint32_t step);
void tb_builder_after_lag(struct tb_builder *b, uint32_t step, int32_t lag);
/* The last added step: whole dependencies are piece by piece, and so many items may be in flight. */
void tb_builder_pipeline(struct tb_builder *b, uint32_t window);
/* The last added step: all pieces are one item, and all its dependencies are whole ones; or so many pieces are one, and
 * dependencies stay as they are. */
void tb_builder_join(struct tb_builder *b);
void tb_builder_cut(struct tb_builder *b, uint32_t join);
/* The last added step: its peer is in the local group; its pieces are as long as these. */
void tb_builder_local(struct tb_builder *b);
void tb_builder_like(struct tb_builder *b, struct tb_slice shape);
/* The last added step: up to the length of its pieces. */
void tb_builder_upto(struct tb_builder *b);
/* A composite step gets the next place of its program, */
uint32_t tb_builder_composite(struct tb_builder *b, const struct tb_contract *contract, uint32_t root,
                              struct tb_slice give, struct tb_slice get);
/* or, if it is the last added step, this one: steps of ranks that meet have the same place. Members other than all. */
void tb_builder_place(struct tb_builder *b, uint16_t place);
void tb_builder_members(struct tb_builder *b, const uint32_t *ranks, uint32_t count);
/* How many places all ranks count on; without this, as many as this rank's steps have. */
void tb_builder_places(struct tb_builder *b, uint32_t places);
/* Sizes of pieces, and room in WORK for pieces of such sizes. */
uint32_t tb_builder_measure(struct tb_builder *b, struct tb_slice pieces, uint32_t first_size);
uint32_t tb_builder_bind(struct tb_builder *b, uint32_t sizes);
/* The same with pieces in another order than their sizes: piece i is as long as SIZES says at sizes[i]. */
uint32_t tb_builder_bind_list(struct tb_builder *b, const uint32_t *sizes, uint32_t count);
/* WORK is cut as IN. */
void tb_builder_whole(struct tb_builder *b);
/* Each block is so many pieces. */
void tb_builder_parts(struct tb_builder *b, uint32_t parts);
/* Something else went wrong on the way, unless this is TB_OK: that is what finish returns. */
void tb_builder_fail(struct tb_builder *b, int error);
int tb_builder_finish(struct tb_builder *b, struct tb_program **program); /* allocated in one piece */
void tb_program_free(struct tb_program *program);
/* Whether both do the same. */
bool tb_program_same(const struct tb_program *a, const struct tb_program *b);

/* Given the programs of all ranks: every receive has its send with the same edge, order and sizes, no cycle, and every
 * rank ends with the data that `expect` asks for. `initial` and `expect` describe contents symbolically:
 * contents[rank] [symbol][piece] is a number that says which data it is; 0 is undefined. `combine` says what the
 * reduction of two contents is, 0 if they must not meet so (not in order, or one operand twice); it may be NULL. The
 * story names rank and step. */
struct tb_validation {
    uint32_t ranks;
    struct tb_program *const *programs;
    uint64_t *(*initial)(void *context, uint32_t rank, enum tb_symbol symbol); /* array of pieces, or NULL */
    const uint64_t *(*expect)(void *context, uint32_t rank, enum tb_symbol symbol);
    void *context;
    uint64_t (*combine)(void *context, uint64_t first, uint64_t second);
    uint32_t split; /* intercommunicator: so many ranks are its first group, the others its second; 0: there is none */
    /* How long a piece is, so that both ends of a message and of a copy can be compared; NULL: all are alike. WORK is
     * not asked about where a BIND step says it, and may have room for any length. */
#define TB_LENGTH_ANY UINT64_MAX
    uint64_t (*length)(void *context, uint32_t rank, enum tb_symbol symbol, uint32_t piece);
};
int tb_schedule_validate(const struct tb_validation *validation);

#endif

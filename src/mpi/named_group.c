/* Named groups (tombolo.h): whoever joins by a name, and communicators of whoever has. The registry of the job knows
 * the members (inquiry.h); their communicators are made of them alone (subgroup.h), by way of all processes of the job
 * (universe.h): they need not have been started together. */
#pragma GCC visibility push(default)
#include <tombolo.h>
#pragma GCC visibility pop

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/group.h"
#include "mpi/inbox.h"
#include "mpi/inquiry.h"
#include "mpi/multicast_send.h"
#include "mpi/subgroup.h"
#include "mpi/universe.h"

#define NS 1e9

_Static_assert(TOMBOLO_MAX_GROUP_NAME == TB_REGISTRY_NAME_BYTES, "names of groups");

/* ---- questions --------------------------------------------------------------------------------------------------- */

/* A question about a group, or the code of a name that is none, which is argument `position`. */
static int begin_at(const char *call, int position, const char *name, enum tb_registry_kind kind,
                    struct tb_registry_question *question)
{
    tb_require_active(call);
    *question = (struct tb_registry_question){.kind = kind, .patience = TB_REGISTRY_FOREVER};
    if (name == NULL)
        return tb_raise_null(NULL, call, position, "name");
    size_t length = strnlen(name, sizeof question->name);
    if (length == 0 || length == sizeof question->name)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, position, "name",
                                 length == 0 ? "it is empty" : "it is longer than %d bytes",
                                 TOMBOLO_MAX_GROUP_NAME - 1);
    memcpy(question->name, name, length);
    return MPI_SUCCESS;
}

static int begin(const char *call, const char *name, enum tb_registry_kind kind, struct tb_registry_question *question)
{
    return begin_at(call, 1, name, kind, question);
}

static int set_timeout(const char *call, int position, double timeout, struct tb_registry_question *question)
{
    if (isnan(timeout) || (timeout < 0 && timeout != TOMBOLO_FOREVER))
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, position, "timeout", "%g is no number of seconds", timeout);
    question->patience = timeout < 0 || timeout >= 1e9 ? TB_REGISTRY_FOREVER : (uint64_t)(timeout * NS);
    return MPI_SUCCESS;
}

static int set_count(const char *call, int count, int least, struct tb_registry_question *question)
{
    if (count < least)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 2, "count", "%d is no number of members", count);
    question->count = (uint32_t)count;
    return MPI_SUCCESS;
}

static int raise_dead(const char *call, const char *name, const struct tb_registry_answer *answer)
{
    if (answer->more > 0)
        return tb_raise(NULL, MPI_ERR_PROC_ABORTED, call,
                        "process %u of the job, a member of the group \"%s\", has died, and so have %u more; calling "
                        "again goes on without them",
                        answer->who, name, answer->more);
    return tb_raise(NULL, MPI_ERR_PROC_ABORTED, call,
                    "process %u of the job, a member of the group \"%s\", has died; calling again goes on without it",
                    answer->who, name);
}

/* What the registry has answered, as an error; MPI_SUCCESS: it is none. */
static int raise_result(const char *call, const char *name, const struct tb_registry_answer *answer)
{
    switch (answer->result) {
    case TB_REGISTRY_DONE:
        return MPI_SUCCESS;
    case TB_REGISTRY_LATE:
        return tb_raise(NULL, TOMBOLO_ERR_TIMEOUT, call,
                        "the others of the group \"%s\" have not come in time; Tombolo_Group_members tells who is in "
                        "it",
                        name);
    case TB_REGISTRY_NO_GROUP:
        return tb_raise(NULL, TOMBOLO_ERR_NO_GROUP, call,
                        "nobody is in a group \"%s\"; it begins with the first that "
                        "calls Tombolo_Group_join",
                        name);
    case TB_REGISTRY_MEMBER:
        return tb_raise(NULL, TOMBOLO_ERR_MEMBER, call, "this process is a member of the group \"%s\" already", name);
    case TB_REGISTRY_STRANGER:
        return tb_raise(NULL, TOMBOLO_ERR_MEMBER, call, "this process is no member of the group \"%s\"", name);
    case TB_REGISTRY_BUSY:
        return tb_raise(NULL, TOMBOLO_ERR_MEMBER, call,
                        "another thread of this process waits for the same of the group \"%s\"", name);
    case TB_REGISTRY_FROZEN:
        return tb_raise(NULL, TOMBOLO_ERR_FROZEN, call, "the group \"%s\" is frozen: nobody may join it any more",
                        name);
    case TB_REGISTRY_DEAD:
        return raise_dead(call, name, answer);
    case TB_REGISTRY_UNEQUAL:
        return tb_raise(NULL, MPI_ERR_NOT_SAME, call,
                        "the group \"%s\" is frozen and has fewer members than that, or others of it wait for another "
                        "number",
                        name);
    case TB_REGISTRY_FULL:
        return tb_raise(NULL, MPI_ERR_OTHER, call, "the launcher has no room for more groups, or for more that wait");
    default:
        return tb_raise(NULL, MPI_ERR_INTERN, call, "the registry has answered %d of the group \"%s\"",
                        (int)answer->result, name);
    }
}

/* Asks, and waits. The code; the answer is closed by the caller in any case. */
static int ask(const char *call, struct tb_registry_question *question, struct tb_registry_answer *answer)
{
    int error = tb_inquiry_make(call, question, answer);
    if (error < 0)
        return tb_raise_below(NULL, error, call);
    return raise_result(call, question->name, answer);
}

/* The same where only the code matters. */
static int tell(const char *call, struct tb_registry_question *question)
{
    struct tb_registry_answer answer;
    int code = ask(call, question, &answer);
    tb_inquiry_close(&answer);
    return code;
}

/* ---- communicators ----------------------------------------------------------------------------------------------- */

/* Those who have met in a round are the same for all of them, and so is what tells it from others. */
static int make_comm(const char *call, const char *name, const struct tb_registry_answer *answer, MPI_Comm *comm)
{
    uint32_t mine = tb_subgroup_position(answer->members, answer->member_count, tb_self.job.self.index);
    uint64_t number = (uint64_t)answer->id << 24 | (answer->round & 0xffffff);
    struct tb_comm *universe, *made = NULL;
    int error = tb_universe_own(&universe);
    if (error == TB_OK)
        error = tb_subgroup_listed(universe, answer->members, answer->member_count, mine,
                                   tb_topic_match(TB_TOPIC_NAMED_GROUP, number), &made);
    if (error == TB_ERR_PEER || error == TB_ERR_CLOSED || error == TB_ERR_GIVEN_UP)
        return tb_raise(NULL, MPI_ERR_PROC_ABORTED, call,
                        "the communicator of generation %u of the group \"%s\" was not made: %s", answer->generation,
                        name, tb_error_story());
    if (error != TB_OK)
        return tb_raise_below(NULL, error, call);
    struct tb_errhandler *errhandler = tb_errhandler_at(&tb_self.everyone->errhandler);
    tb_errhandler_replace(&made->errhandler, errhandler);
    tb_errhandler_release(errhandler);
    *comm = tb_comm_handle(made);
    return MPI_SUCCESS;
}

static int meet(const char *call, struct tb_registry_question *question, MPI_Comm *comm)
{
    struct tb_registry_answer answer;
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): who has none does not come here
    *comm = MPI_COMM_NULL;
    int code = ask(call, question, &answer);
    if (code == MPI_SUCCESS)
        code = make_comm(call, question->name, &answer, comm);
    tb_inquiry_close(&answer);
    return code;
}

/* Others may write to it as soon as the registry knows it. */
static int become_member(const char *call, struct tb_registry_question *question)
{
    struct tb_registry_answer answer;
    bool reopened;
    int error = tb_inbox_expect(question->name, &reopened);
    if (error < 0)
        return tb_raise_below(NULL, error, call);
    int code = ask(call, question, &answer);
    if (code != MPI_SUCCESS && answer.result != TB_REGISTRY_MEMBER && reopened)
        tb_inbox_dismiss(question->name);
    tb_inquiry_close(&answer);
    return code;
}

int Tombolo_Group_join(const char *name, int count, double timeout, MPI_Comm *comm)
{
    static const char call[] = "Tombolo_Group_join";
    struct tb_registry_question question;
    int code = begin(call, name, TB_REGISTRY_JOIN, &question);
    if (code == MPI_SUCCESS && comm != NULL)
        code = set_count(call, count, 0, &question);
    if (code == MPI_SUCCESS && comm != NULL)
        code = set_timeout(call, 3, timeout, &question);
    if (code == MPI_SUCCESS)
        code = become_member(call, &question);
    if (code != MPI_SUCCESS || comm == NULL)
        return code;
    question.kind = TB_REGISTRY_MEET;
    return meet(call, &question, comm);
}

int Tombolo_Group_comm(const char *name, int count, double timeout, MPI_Comm *comm)
{
    static const char call[] = "Tombolo_Group_comm";
    struct tb_registry_question question;
    int code = begin(call, name, TB_REGISTRY_MEET, &question);
    if (code == MPI_SUCCESS)
        code = set_count(call, count, 0, &question);
    if (code == MPI_SUCCESS)
        code = set_timeout(call, 3, timeout, &question);
    if (code == MPI_SUCCESS && comm == NULL)
        code = tb_raise_null(NULL, call, 4, "comm");
    return code == MPI_SUCCESS ? meet(call, &question, comm) : code;
}

int Tombolo_Group_leave(const char *name)
{
    static const char call[] = "Tombolo_Group_leave";
    struct tb_registry_question question;
    struct tb_registry_answer answer;
    int code = begin(call, name, TB_REGISTRY_LEAVE, &question);
    if (code != MPI_SUCCESS)
        return code;
    code = ask(call, &question, &answer);
    if (code == MPI_SUCCESS)
        tb_inbox_leave(question.name, answer.id);
    tb_inquiry_close(&answer);
    return code;
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

/* What there is to be known of a group; the result is argument `position`. */
static int look(const char *call, const char *name, enum tb_registry_kind kind, const void *result, int position,
                const char *result_name, struct tb_registry_answer *answer)
{
    struct tb_registry_question question;
    *answer = (struct tb_registry_answer){.member_count = 0};
    int code = begin(call, name, kind, &question);
    if (code == MPI_SUCCESS && result == NULL)
        code = tb_raise_null(NULL, call, position, result_name);
    return code == MPI_SUCCESS ? ask(call, &question, answer) : code;
}

int Tombolo_Group_exists(const char *name, int *flag)
{
    static const char call[] = "Tombolo_Group_exists";
    struct tb_registry_question question;
    struct tb_registry_answer answer;
    int code = begin(call, name, TB_REGISTRY_LOOK, &question);
    if (code == MPI_SUCCESS && flag == NULL)
        code = tb_raise_null(NULL, call, 2, "flag");
    if (code != MPI_SUCCESS)
        return code;
    int error = tb_inquiry_make(call, &question, &answer);
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): who has none does not come here
    *flag = error == TB_OK && answer.result == TB_REGISTRY_DONE;
    tb_inquiry_close(&answer);
    return error == TB_OK ? MPI_SUCCESS : tb_raise_below(NULL, error, call);
}

int Tombolo_Group_size(const char *name, int *size)
{
    struct tb_registry_answer answer;
    int code = look("Tombolo_Group_size", name, TB_REGISTRY_LOOK, size, 2, "size", &answer);
    if (code == MPI_SUCCESS)
        *size = (int)answer.member_count;
    tb_inquiry_close(&answer);
    return code;
}

int Tombolo_Group_id(const char *name, int *id)
{
    struct tb_registry_answer answer;
    int code = look("Tombolo_Group_id", name, TB_REGISTRY_LOOK, id, 2, "id", &answer);
    if (code == MPI_SUCCESS) {
        uint32_t mine = tb_subgroup_position(answer.members, answer.member_count, tb_self.job.self.index);
        *id = mine < answer.member_count ? (int)mine : MPI_UNDEFINED;
    }
    tb_inquiry_close(&answer);
    return code;
}

/* Processes as a group of MPI's. */
static int give_group(const char *call, const struct tb_registry_answer *answer, MPI_Group *group)
{
    struct tb_group *made = tb_group_new(answer->member_count, NULL);
    if (made == NULL)
        return tb_raise(NULL, MPI_ERR_NO_MEM, call, "out of memory for a group of %u processes", answer->member_count);
    if (answer->member_count > 0)
        memcpy(made->procs, answer->members, answer->member_count * sizeof *made->procs);
    *group = tb_group_publish(made);
    return MPI_SUCCESS;
}

int Tombolo_Group_members(const char *name, int *generation, MPI_Group *members)
{
    static const char call[] = "Tombolo_Group_members";
    struct tb_registry_answer answer;
    int code = look(call, name, TB_REGISTRY_LOOK, call, 3, "members", &answer);
    if (code == MPI_SUCCESS && generation != NULL)
        *generation = (int)answer.generation;
    if (code == MPI_SUCCESS && members != NULL)
        code = give_group(call, &answer, members);
    tb_inquiry_close(&answer);
    return code;
}

int Tombolo_Group_lost(const char *name, MPI_Group *lost)
{
    static const char call[] = "Tombolo_Group_lost";
    struct tb_registry_answer answer;
    int code = look(call, name, TB_REGISTRY_MISSED, lost, 2, "lost", &answer);
    if (code == MPI_SUCCESS)
        code = give_group(call, &answer, lost);
    tb_inquiry_close(&answer);
    return code;
}

int Tombolo_Group_watch(const char *name, int generation, double timeout, int *current)
{
    static const char call[] = "Tombolo_Group_watch";
    struct tb_registry_question question;
    struct tb_registry_answer answer;
    int code = begin(call, name, TB_REGISTRY_WATCH, &question);
    if (code == MPI_SUCCESS && generation < 0)
        code = tb_raise_argument(NULL, MPI_ERR_ARG, call, 2, "generation", "%d is negative", generation);
    if (code == MPI_SUCCESS)
        code = set_timeout(call, 3, timeout, &question);
    if (code != MPI_SUCCESS)
        return code;
    question.count = (uint32_t)generation;
    code = ask(call, &question, &answer);
    if (code == MPI_SUCCESS && current != NULL)
        *current = (int)answer.generation;
    tb_inquiry_close(&answer);
    return code;
}

/* ---- doing ------------------------------------------------------------------------------------------------------- */

int Tombolo_Group_freeze(const char *name)
{
    static const char call[] = "Tombolo_Group_freeze";
    struct tb_registry_question question;
    int code = begin(call, name, TB_REGISTRY_FREEZE, &question);
    return code == MPI_SUCCESS ? tell(call, &question) : code;
}

int Tombolo_Group_barrier(const char *name, int count, double timeout)
{
    static const char call[] = "Tombolo_Group_barrier";
    struct tb_registry_question question;
    int code = begin(call, name, TB_REGISTRY_BARRIER, &question);
    if (code == MPI_SUCCESS && count != TOMBOLO_GROUP_ALL) /* else it is 0 */
        code = set_count(call, count, 1, &question);
    if (code == MPI_SUCCESS)
        code = set_timeout(call, 3, timeout, &question);
    return code == MPI_SUCCESS ? tell(call, &question) : code;
}

int Tombolo_Group_inbox(const char *name, MPI_Comm *inbox)
{
    static const char call[] = "Tombolo_Group_inbox";
    struct tb_registry_answer answer;
    int code = look(call, name, TB_REGISTRY_LOOK, inbox, 2, "inbox", &answer);
    uint32_t id = answer.id;
    tb_inquiry_close(&answer);
    if (code != MPI_SUCCESS)
        return code;
    int error = tb_inbox_open(name, id, inbox);
    return error == TB_OK ? MPI_SUCCESS : tb_raise_below(NULL, error, call);
}

/* Whom a message is for, of the members of a group: ranks of its inbox. Their number. */
static uint32_t choose(const struct tb_registry_answer *answer, int id, int *ranks)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < answer->member_count; i++)
        if (id == TOMBOLO_GROUP_ALL ? answer->members[i] != tb_self.job.self.index : (uint32_t)id == i)
            // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without memory for them nobody comes here
            ranks[count++] = (int)answer->members[i];
    return count;
}

int Tombolo_Group_send(const void *buffer, MPI_Count count, MPI_Datatype type, int id, int tag, const char *name)
{
    static const char call[] = "Tombolo_Group_send";
    static const struct tb_names names = {call, "buffer", "count", "type", "id", "tag", "name", 1, 2, 3, 4, 5, 6};
    struct tb_registry_question question;
    struct tb_registry_answer answer = {.member_count = 0};
    MPI_Comm inbox = MPI_COMM_NULL;
    int code = begin_at(call, 6, name, TB_REGISTRY_LOOK, &question);
    if (code == MPI_SUCCESS)
        code = ask(call, &question, &answer);
    uint32_t size = answer.member_count;
    if (code == MPI_SUCCESS && id != TOMBOLO_GROUP_ALL && (id < 0 || (uint32_t)id >= size))
        code = tb_raise_argument(NULL, MPI_ERR_RANK, call, 4, "id", "the group \"%s\" has %u members, and no number %d",
                                 name, size, id);
    int *ranks = code == MPI_SUCCESS ? malloc((size + 1) * sizeof *ranks) : NULL;
    if (code == MPI_SUCCESS && ranks == NULL)
        code = tb_raise(NULL, MPI_ERR_NO_MEM, call, "out of memory for messages to %u processes", size);
    if (code == MPI_SUCCESS) {
        int error = tb_inbox_open(name, answer.id, &inbox);
        code = error == TB_OK ? MPI_SUCCESS : tb_raise_below(NULL, error, call);
    }
    if (code == MPI_SUCCESS)
        code = tb_multicast_send(&names, buffer, count, type, ranks, (int)choose(&answer, id, ranks), tag, inbox);
    free(ranks);
    tb_inquiry_close(&answer);
    return code;
}

/* Members of named groups are killed at random moments, in a job that goes on without them, while they and all others
 * join, leave, freeze, wait in barriers, ask, write to groups from inside and outside, and make communicators. It goes
 * in rounds. In each some die, as all know from the seed; no call may take longer than it was given, and none may say
 * what no death explains. Then those who are left compare what they know: each was told of each death once, generations
 * are those who are left, nobody waits for the dead, messages have come, and groups end with their last member, whether
 * it leaves or dies. Groups of the next round have the same names. Rank 0 lives until the end; when it is alone in the
 * job it dies then, as a member. In one world or in several. The job fails in the end, as ranks of it have.
 *
 *     groups_killed SEED [worlds]        whom it kills, and what all do, is that of the seed */
#include "worlds.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define ROUNDS  3
#define STEPS   30   /* of each process in a round */
#define PARTLY  0.05 /* s: often too short for what is waited for, */
#define LONG    60.0 /* and what is sure to come has come by then */
#define SLACK   60.0 /* a call may end so much later than it was to, on a busy machine */
#define LATEST  0.5  /* who is to die does not wait longer for its last step, which may wait for its death */
#define MOST    64   /* ranks */
#define TAG     7
#define LL(set) ((unsigned long long)(set))

/* All who live are in the first one in the whole round, only those who are to die in the last one. */
enum { HOME, INN, ROAD, NAMES, GRAVE = NAMES };
static const char *const names[NAMES + 1] = {"home", "inn", "road", "grave"};

struct place {
    bool member;
    int told;         /* of so many deaths since it has joined, */
    int lost;         /* when the group had lost at most so many */
    int generation;   /* that it has seen last, */
    uint64_t members; /* with these */
};

static struct place places[NAMES];
static bool froze[NAMES];                       /* it has frozen a group of this name in this round */
static uint64_t wrote[NAMES], got[NAMES][MOST]; /* the number of its last message, and of the last of each rank */
static uint64_t living, doomed, known_dead;     /* sets of ranks of test_all, of this round */
static uint64_t seed, chance;
static MPI_Group everybody;
static _Atomic int step;
static int last_step;      /* in which it dies, */
static double last_moment; /* so much after it has begun */

/* ---- sets, and who is to die ------------------------------------------------------------------------------------- */

static uint64_t bit(int rank)
{
    return UINT64_C(1) << rank;
}

static int count_of(uint64_t set)
{
    return __builtin_popcountll(set);
}

static uint64_t chances(int rank, int round)
{
    return ((seed * MOST + (uint64_t)rank) * ROUNDS + (uint64_t)round) << 20;
}

static int pick(int below)
{
    return (int)(test_random(&chance) % (uint64_t)below);
}

/* About half of them; one at least, if there is one besides rank 0. */
static uint64_t choose_doomed(int round)
{
    uint64_t set = 0, state = chances(MOST - 1, round);
    for (int rank = 1; rank < test_size; rank++)
        if ((living & bit(rank)) != 0 && (test_random(&state) % 2 == 0 || (set == 0 && living >> rank == 1)))
            set |= bit(rank);
    return set;
}

static void *die(void *unused)
{
    for (double until = test_now() + LATEST; step < last_step && test_now() < until;)
        test_sleep(0.0005);
    test_sleep(last_moment);
    if (test_failures == 0)
        kill(getpid(), SIGKILL);
    return NULL;
}

/* The members of a group, which is freed, in their order if `ranks` is not null. */
static uint64_t set_of(MPI_Group group, int *ranks)
{
    uint64_t set = 0;
    int size = -1;
    MPI_Group_size(group, &size);
    for (int i = 0; i < size; i++) {
        int rank = -1;
        MPI_Group_translate_ranks(group, 1, &i, everybody, &rank);
        test_need(rank >= 0 && rank < test_size, "a member is no rank of the test");
        set |= bit(rank);
        if (ranks != NULL)
            ranks[i] = rank;
    }
    MPI_Group_free(&group);
    return set;
}

/* ---- what calls may say ------------------------------------------------------------------------------------------ */

static int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

/* It took no longer than it was given, and its class is one of a list that ends with -1. */
static int judge(int line, const char *call, double begin, int code, double timeout, const int *classes)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    double took = test_now() - begin;
    int class = class_of(code), length = 0;
    if (took > timeout + SLACK)
        test_fail(__FILE__, line, "an end in time", "%g s for %s, which has %g", took, call, timeout);
    while (*classes >= 0 && *classes != class)
        classes++;
    if (*classes < 0) {
        MPI_Error_string(code, text, &length);
        test_fail(__FILE__, line, "another class", "class %d (%s) of %s", class, text, call);
    }
    return code;
}

#define TRY(timeout, call, ...)                                                                                        \
    __extension__({                                                                                                    \
        double try_begin = test_now();                                                                                 \
        judge(__LINE__, #call, try_begin, call, timeout, (const int[]){__VA_ARGS__, -1});                              \
    })

/* What becomes of calls of members by one that is none, and of a member's that waits. */
#define STRANGER TOMBOLO_ERR_MEMBER, TOMBOLO_ERR_NO_GROUP
#define WAITS    MPI_SUCCESS, TOMBOLO_ERR_TIMEOUT, MPI_ERR_PROC_ABORTED, MPI_ERR_NOT_SAME

/* A call may have told of deaths: it names one, and says of how many more. */
static void hear(int which, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "", quoted[64];
    int length = 0, index = -1, more = 0, rank = 0;
    if (class_of(code) != MPI_ERR_PROC_ABORTED)
        return;
    MPI_Error_string(code, text, &length);
    snprintf(quoted, sizeof quoted, "group \"%s\"", names[which]);
    CHECK(doomed != 0 && strstr(text, quoted) != NULL, "%s", text);
    if (strstr(text, " was not made: ") != NULL)
        return; /* while it was made somebody died, of whom the next call tells */
    const char *who = strstr(text, "process "), *others = strstr(text, "and so have ");
    CHECK(who != NULL && sscanf(who, "process %d of the job, a member of the", &index) == 1, "%s", text);
    CHECK(others == NULL || sscanf(others, "and so have %d more", &more) == 1, "%s", text);
    CHECK(strstr(text, "calling again goes on without") != NULL, "%s", text);
    while (rank < test_size - 1 && test_indices[rank] != index)
        rank++;
    CHECK((doomed & bit(rank)) != 0 && test_indices[rank] == index, "%llx: %s", LL(doomed), text);
    known_dead |= doomed & bit(rank);
    places[which].told += 1 + more;
}

/* ---- what each does ---------------------------------------------------------------------------------------------- */

/* A communicator of a generation: all of its members have it and use it, or one of them has died; those who were known
 * to be dead when it was asked for are not in it. */
static void use(int which, MPI_Comm comm, int least, uint64_t dead_before)
{
    MPI_Group group;
    uint64_t mine = bit(test_rank), seen = 0;
    int code = MPI_SUCCESS;
    MPI_Comm_group(comm, &group);
    uint64_t members = set_of(group, NULL);
    CHECK((members & dead_before) == 0 && (members & mine) != 0 && count_of(members) >= least,
          "%llx in %s, of whom %llx are dead, at least %d", LL(members), names[which], LL(dead_before), least);
    for (int i = 0; i < 3 && code == MPI_SUCCESS; i++)
        code = MPI_Allreduce(&mine, &seen, 1, MPI_UINT64_T, MPI_BOR, comm);
    if (code == MPI_SUCCESS)
        CHECK_EQUAL(seen, members);
    else
        CHECK((class_of(code) == MPI_ERR_PROC_ABORTED || class_of(code) == MPI_ERR_OTHER) && (members & doomed) != 0,
              "class %d of %llx", class_of(code), LL(members));
    MPI_Comm_free(&comm);
}

/* Who has died since the group began; 0 if there is none. */
static uint64_t lost_of(int which)
{
    MPI_Group group;
    int none = places[which].member ? MPI_SUCCESS : TOMBOLO_ERR_NO_GROUP;
    int code = TRY(0, Tombolo_Group_lost(names[which], &group), MPI_SUCCESS, none);
    uint64_t lost = code == MPI_SUCCESS ? set_of(group, NULL) : 0;
    CHECK((lost & ~doomed) == 0, "%llx of %llx", LL(lost), LL(doomed));
    known_dead |= lost;
    return lost;
}

static void join(int which)
{
    struct place *place = &places[which];
    uint64_t dead_before = known_dead;
    MPI_Comm comm = MPI_COMM_NULL;
    int code, least = 1 + pick(2);
    if (place->member) {
        TRY(0, Tombolo_Group_join(names[which], least, PARTLY, &comm), TOMBOLO_ERR_MEMBER);
        return;
    }
    if (pick(2) == 0)
        code = TRY(0, Tombolo_Group_join(names[which], 0, 0, NULL), MPI_SUCCESS, TOMBOLO_ERR_FROZEN);
    else
        code = TRY(PARTLY, Tombolo_Group_join(names[which], least, PARTLY, &comm), WAITS, TOMBOLO_ERR_FROZEN);
    if (class_of(code) == TOMBOLO_ERR_FROZEN)
        return;
    *place = (struct place){.member = true};
    hear(which, code);
    place->lost = count_of(lost_of(which)) - place->told;
    if (comm != MPI_COMM_NULL)
        use(which, comm, least, dead_before);
}

static void leave(int which)
{
    if (places[which].member)
        TRY(0, Tombolo_Group_leave(names[which]), MPI_SUCCESS);
    else
        TRY(0, Tombolo_Group_leave(names[which]), STRANGER);
    places[which].member = false;
}

static void meet(int which)
{
    MPI_Comm comm = MPI_COMM_NULL;
    uint64_t dead_before = known_dead;
    int least = 1 + pick(3);
    if (!places[which].member) {
        TRY(0, Tombolo_Group_comm(names[which], least, PARTLY, &comm), STRANGER);
        return;
    }
    hear(which, TRY(PARTLY, Tombolo_Group_comm(names[which], least, PARTLY, &comm), WAITS));
    if (comm != MPI_COMM_NULL)
        use(which, comm, least, dead_before);
}

static void stand(int which)
{
    int count = pick(4);
    count = count > 0 ? count : TOMBOLO_GROUP_ALL;
    if (places[which].member)
        hear(which, TRY(PARTLY, Tombolo_Group_barrier(names[which], count, PARTLY), WAITS));
    else
        TRY(0, Tombolo_Group_barrier(names[which], count, PARTLY), STRANGER);
}

/* Of the first two groups those who live on know whether they are frozen. */
static void freeze(int which)
{
    if (!places[which].member)
        TRY(0, Tombolo_Group_freeze(names[which]), STRANGER);
    else if (which == ROAD || (which == HOME && (doomed & bit(test_rank)) == 0 && pick(6) == 0))
        froze[which] = TRY(0, Tombolo_Group_freeze(names[which]), MPI_SUCCESS) == MPI_SUCCESS;
}

/* Nobody of whom it knows that it is dead is a member, and what the calls say of one generation is one thing. */
static void look(int which)
{
    struct place *place = &places[which];
    const char *name = names[which];
    int generation = -1, again = -1, size = -1, id = -1, flag = -1, ranks[MOST],
        none = place->member ? MPI_SUCCESS : TOMBOLO_ERR_NO_GROUP;
    uint64_t dead_before = known_dead;
    MPI_Group group;
    if (TRY(0, Tombolo_Group_members(name, &generation, &group), MPI_SUCCESS, none) != MPI_SUCCESS)
        return;
    uint64_t members = set_of(group, ranks);
    CHECK((members & dead_before) == 0, "%llx of %llx in %s are dead", LL(dead_before), LL(members), name);
    TRY(0, Tombolo_Group_exists(name, &flag), MPI_SUCCESS);
    TRY(0, Tombolo_Group_size(name, &size), MPI_SUCCESS, none);
    TRY(0, Tombolo_Group_id(name, &id), MPI_SUCCESS, none);
    TRY(0, Tombolo_Group_members(name, &again, NULL), MPI_SUCCESS, none);
    if (!place->member) {
        CHECK_EQUAL(members & bit(test_rank), 0);
        CHECK(id == -1 || id == MPI_UNDEFINED, "number %d of one that is no member", id);
        return;
    }
    CHECK_EQUAL(flag, 1);
    CHECK(generation >= place->generation && (generation > place->generation || members == place->members),
          "generation %d of %s with %llx, and %d with %llx before", generation, name, LL(members), place->generation,
          LL(place->members));
    CHECK(again != generation || (size == count_of(members) && id >= 0 && id < size && ranks[id] == test_rank),
          "number %d of %d in %llx", id, size, LL(members));
    place->generation = generation;
    place->members = members;
}

static void watch(int which)
{
    int generation = -1, current = -1;
    if (Tombolo_Group_members(names[which], &generation, NULL) != MPI_SUCCESS)
        return;
    int code = TRY(PARTLY, Tombolo_Group_watch(names[which], generation, PARTLY / 10, &current), MPI_SUCCESS,
                   TOMBOLO_ERR_TIMEOUT, places[which].member ? MPI_SUCCESS : TOMBOLO_ERR_NO_GROUP);
    CHECK(code != MPI_SUCCESS || current != generation, "generation %d of %s twice", current, names[which]);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* To all, or to one. Who lives has it, also where another one is dead. */
static void write_to(int which, bool all)
{
    uint64_t words[100] = {wrote[which] + 1};
    int count = 1 + pick(99), id = all ? TOMBOLO_GROUP_ALL : pick(3);
    test_fill(words + 1, sizeof words - sizeof *words, words[0] * MOST + (uint64_t)test_rank);
    int code = TRY(0, Tombolo_Group_send(words, count, MPI_UINT64_T, id, TAG, names[which]), MPI_SUCCESS,
                   places[which].member ? MPI_SUCCESS : TOMBOLO_ERR_NO_GROUP, all ? MPI_SUCCESS : MPI_ERR_RANK,
                   doomed != 0 ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS);
    if (class_of(code) != TOMBOLO_ERR_NO_GROUP && class_of(code) != MPI_ERR_RANK)
        wrote[which]++;
}

/* One message, if there is one. In the group that nobody leaves they all come. */
static bool read_one(int which, MPI_Comm inbox)
{
    uint64_t words[100] = {0};
    int flag = 0, bytes = 0, from = 0;
    MPI_Status status;
    TRY(0, MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, inbox, &flag, &status), MPI_SUCCESS);
    if (!flag)
        return false;
    TRY(0, MPI_Recv(words, 100, MPI_UINT64_T, status.MPI_SOURCE, TAG, inbox, &status), MPI_SUCCESS);
    while (from < test_size - 1 && test_indices[from] != status.MPI_SOURCE)
        from++;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    CHECK_DATA(words + 1, (size_t)bytes - sizeof *words, words[0] * MOST + (uint64_t)from);
    CHECK(which == HOME ? words[0] == got[which][from] + 1 : words[0] > got[which][from],
          "message %llu of rank %d in %s behind its %llu", LL(words[0]), from, names[which], LL(got[which][from]));
    got[which][from] = words[0];
    return true;
}

static void read_all(int which)
{
    MPI_Comm inbox = MPI_COMM_NULL;
    if (places[which].member)
        TRY(0, Tombolo_Group_inbox(names[which], &inbox), MPI_SUCCESS);
    while (inbox != MPI_COMM_NULL && read_one(which, inbox))
        continue;
}

/* Those who are to die do not receive it. */
static void write_to_grave(int unused)
{
    static char data[300000];
    if ((doomed & bit(test_rank)) == 0 && pick(3) == 0)
        TRY(0, Tombolo_Group_send(data, sizeof data, MPI_BYTE, TOMBOLO_GROUP_ALL, TAG, names[GRAVE]), MPI_SUCCESS,
            TOMBOLO_ERR_NO_GROUP, MPI_ERR_PROC_ABORTED);
}

/* What never has as many members as it wants ends with the next death at home, if not all are known yet. */
static void wait_for_death(int which)
{
    MPI_Comm comm;
    bool stands = pick(2) == 0;
    if (which != HOME || places[HOME].told == count_of(doomed) || pick(2) == 0)
        return;
    hear(HOME, TRY(LONG,
                   stands ? Tombolo_Group_barrier(names[HOME], test_size + 1, LONG)
                          : Tombolo_Group_comm(names[HOME], test_size + 1, LONG, &comm),
                   MPI_ERR_PROC_ABORTED, MPI_ERR_NOT_SAME));
}

/* Where nobody leaves, and a message to one would be missed by all others, it is the other thing. */
static void leave_or_write(int which)
{
    if (which != HOME && pick(2) == 0)
        leave(which);
    else
        write_to(which, which == HOME || pick(2) == 0);
}

static void (*const steps[])(int which) = {join,     join,           meet,           meet,          stand,
                                           stand,    leave_or_write, freeze,         look,          watch,
                                           read_all, write_to_grave, wait_for_death, leave_or_write};

/* ---- a round ----------------------------------------------------------------------------------------------------- */

/* What all who live say, by "or": rank 0 asks and tells them. Afterwards all have come to this place. */
static void combine(uint64_t *words, int count)
{
    uint64_t theirs[MOST];
    for (int rank = 1; rank < test_size && test_rank == 0; rank++)
        if ((living & bit(rank)) != 0) {
            CHECK_EQUAL(MPI_Recv(theirs, count, MPI_UINT64_T, rank, TAG, test_all, MPI_STATUS_IGNORE), MPI_SUCCESS);
            for (int i = 0; i < count; i++)
                words[i] |= theirs[i];
        }
    for (int rank = 1; rank < test_size && test_rank == 0; rank++)
        if ((living & bit(rank)) != 0)
            CHECK_EQUAL(MPI_Send(words, count, MPI_UINT64_T, rank, TAG, test_all), MPI_SUCCESS);
    if (test_rank > 0) {
        CHECK_EQUAL(MPI_Send(words, count, MPI_UINT64_T, 0, TAG, test_all), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Recv(words, count, MPI_UINT64_T, 0, TAG, test_all, MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
}

/* Until the members are these, and at last nobody. */
static void await_members(int which, uint64_t expected)
{
    uint64_t members = 0;
    int generation = 0;
    for (double until = test_now() + LONG; test_now() < until;) {
        MPI_Group group;
        int code = TRY(0, Tombolo_Group_members(names[which], &generation, &group), MPI_SUCCESS, TOMBOLO_ERR_NO_GROUP);
        members = code == MPI_SUCCESS ? set_of(group, NULL) : 0;
        if (members == expected)
            return;
        TRY(PARTLY, Tombolo_Group_watch(names[which], generation, PARTLY, &generation), MPI_SUCCESS,
            TOMBOLO_ERR_TIMEOUT, TOMBOLO_ERR_NO_GROUP);
    }
    CHECK(members == expected, "%llx in %s, where only %llx are left", LL(members), names[which], LL(expected));
}

/* Groups of these names begin anew: the one where all are, and that of those who are to die. */
static void begin_round(int round)
{
    int generation = -1;
    chance = chances(test_rank, round);
    doomed = choose_doomed(round);
    memset(places, 0, sizeof places);
    memset(froze, 0, sizeof froze);
    TRY(0, Tombolo_Group_join(names[HOME], 0, 0, NULL), MPI_SUCCESS);
    places[HOME].member = true;
    if ((doomed & bit(test_rank)) != 0)
        TRY(0, Tombolo_Group_join(names[GRAVE], 0, 0, NULL), MPI_SUCCESS);
    combine(NULL, 0);
    await_members(HOME, living);
    await_members(GRAVE, doomed);
    CHECK_EQUAL(Tombolo_Group_members(names[HOME], &generation, NULL), MPI_SUCCESS);
    CHECK_EQUAL(generation, count_of(living));
    CHECK_EQUAL(lost_of(HOME), 0);
    combine(NULL, 0);
}

/* What is right until they die; who sees what is not right lives to tell it. */
static void live(void)
{
    pthread_t reaper;
    bool mortal = (doomed & bit(test_rank)) != 0;
    step = 0;
    last_step = pick(STEPS);
    last_moment = pick(2) == 0 ? pick(300) * 1e-6 : pick(100) * PARTLY / 50;
    if (mortal)
        test_need(pthread_create(&reaper, NULL, die, NULL) == 0, "there is no thread");
    wait_for_death(HOME); /* some at once, before anybody has frozen it or waits in its barrier */
    for (; step < STEPS && !(mortal && test_failures > 0); step++)
        steps[pick(sizeof steps / sizeof *steps)](pick(NAMES));
    while (mortal) {
        test_need(test_failures == 0, "what it has seen is wrong");
        test_sleep(0.01);
    }
}

/* Who waits for a message of one that was to die is told that it is dead. */
static void bury(void)
{
    for (int rank = 0; rank < test_size; rank++)
        if ((doomed & bit(rank)) != 0)
            CHECK_CLASS(MPI_Recv(NULL, 0, MPI_BYTE, rank, TAG, test_all, MPI_STATUS_IGNORE), MPI_ERR_PROC_ABORTED);
    living &= ~doomed;
    known_dead |= doomed;
}

/* Each member has been told of each death since it came, once, when it has asked once more. */
static void compare_deaths(int which)
{
    struct place *place = &places[which];
    int code = TRY(LONG, Tombolo_Group_barrier(names[which], 1, LONG), MPI_SUCCESS, MPI_ERR_PROC_ABORTED);
    hear(which, code);
    if (code != MPI_SUCCESS)
        TRY(LONG, Tombolo_Group_barrier(names[which], 1, LONG), MPI_SUCCESS);
    int lost = count_of(lost_of(which));
    CHECK(place->told <= lost && place->told >= lost - place->lost, "told of %d in %s, of %d, at most %d before",
          place->told, names[which], lost, place->lost);
    CHECK(which != HOME || lost == count_of(doomed), "%d lost, %d dead", lost, count_of(doomed));
}

/* Barriers of more than there are, and of some of them: nobody else is counted. */
static void compare_barriers(int which, uint64_t members)
{
    bool member = places[which].member;
    int size = count_of(members), some = 1 + (int)(seed % (uint64_t)size);
    uint64_t frozen = froze[which];
    combine(&frozen, 1);
    if (member)
        TRY(PARTLY, Tombolo_Group_barrier(names[which], size + 1, PARTLY), TOMBOLO_ERR_TIMEOUT,
            frozen != 0 || which == ROAD ? MPI_ERR_NOT_SAME : TOMBOLO_ERR_TIMEOUT);
    combine(NULL, 0);
    if (member && count_of(members & (bit(test_rank) - 1)) < some)
        TRY(LONG, Tombolo_Group_barrier(names[which], some, LONG), MPI_SUCCESS);
    combine(NULL, 0);
}

/* The communicator of a generation is of its members, in their order. */
static void compare_communicators(int which, uint64_t members)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group in_comm, in_group;
    int result = -1;
    if (!places[which].member)
        return;
    TRY(LONG, Tombolo_Group_comm(names[which], count_of(members), LONG, &comm), MPI_SUCCESS);
    test_need(comm != MPI_COMM_NULL, "there is no communicator of those who are left");
    MPI_Comm_group(comm, &in_comm);
    TRY(0, Tombolo_Group_members(names[which], NULL, &in_group), MPI_SUCCESS);
    MPI_Group_compare(in_comm, in_group, &result);
    CHECK_EQUAL(result, MPI_IDENT);
    CHECK_EQUAL(set_of(in_comm, NULL), members);
    MPI_Group_free(&in_group);
    use(which, comm, count_of(members), known_dead);
}

/* All who live, members or not, write to a group; those and earlier ones have come to all members. */
static void compare_messages(int which)
{
    uint64_t sent[MOST] = {0};
    bool all_came = false;
    write_to(which, true);
    sent[test_rank] = wrote[which];
    combine(sent, MOST);
    for (double until = test_now() + LONG; places[which].member && !all_came && test_now() < until;) {
        read_all(which);
        all_came = true;
        for (int rank = 0; rank < test_size; rank++)
            all_came = all_came && (rank == test_rank || (living & bit(rank)) == 0 || got[which][rank] == sent[rank]);
    }
    CHECK(all_came || !places[which].member, "messages to %s have not come", names[which]);
}

static void compare(int which)
{
    uint64_t members = places[which].member ? bit(test_rank) : 0, was_doomed = doomed;
    combine(&members, 1);
    await_members(which, members);
    if (places[which].member)
        compare_deaths(which);
    doomed = 0; /* of the next calls none may tell of a death */
    if (members != 0) {
        compare_barriers(which, members);
        compare_communicators(which, members);
        compare_messages(which);
        look(which);
    }
    doomed = was_doomed;
    combine(NULL, 0);
    if (places[which].member)
        leave(which);
    combine(NULL, 0);
    await_members(which, 0);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    worlds_begin(argc, argv);
    test_need(test_size < MOST, "it has more ranks than bits");
    MPI_Comm_set_errhandler(test_all, MPI_ERRORS_RETURN);
    MPI_Comm_group(test_all, &everybody);
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    living = bit(test_size) - 1;
    for (int round = 0; round < ROUNDS; round++) {
        begin_round(round);
        live();
        bury();
        combine(NULL, 0);
        await_members(GRAVE, 0);
        for (int which = 0; which < NAMES; which++)
            compare(which);
    }
    uint64_t failed = test_failures != 0;
    if (failed)
        fprintf(stderr, "rank %d of %d: the seed is %llu\n", test_rank, test_size, LL(seed));
    combine(&failed, 1);
    if (test_rank == 0 && !failed)
        printf("those who are left are well\n");
    if (test_size == 1) {
        fflush(stdout);
        TRY(0, Tombolo_Group_join(names[HOME], 0, 0, NULL), MPI_SUCCESS);
        raise(SIGKILL);
    }
    return test_end();
}

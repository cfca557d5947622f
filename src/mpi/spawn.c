/* Starting processes (MPI-5.0, 11.7 and 11.8): MPI_Comm_spawn, and how the new ones find those who wanted them. */
#include "mpi/spawn.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/agreement.h"
#include "mpi/binding_decls.h"
#include "mpi/info.h"
#include "mpi/party.h"
#include "mpi/wish.h"

/* What one call wants, as its root says it. */
struct wanted {
    const char *call;
    struct tb_comm *comm;
    int count;
    char *const *commands;
    char *const *const *argvs; /* NULL: no program has arguments */
    const int *maxprocs;
    const MPI_Info *infos;
    int first_argument;             /* that of the command, for messages */
    uint32_t started[TB_APP_LIMIT]; /* of each program, so many processes were asked for in the end */
    const char *missing;            /* an array, at `missing_at`, or NULL */
    int missing_at;
};

/* ---- what the root wants ----------------------------------------------------------------------------------------- */

/* The greatest number up to `most` that a value of the key "soft" allows: ranges a:b:c with commas between them. -1: it
 * is not understood, or there is none. */
static long soft_most(const char *value, long most)
{
    long best = -1;
    while (*value != 0) {
        char *end;
        long low = strtol(value, &end, 10), high = low, step = 1;
        if (end == value)
            return -1;
        if (*end == ':')
            high = strtol(end + 1, &end, 10);
        if (*end == ':')
            step = strtol(end + 1, &end, 10);
        if (step < 0) {
            long swap = low;
            low = high + (swap - high) % -step;
            high = swap;
            step = -step;
        }
        if (step == 0 || (*end != ',' && *end != 0))
            return -1;
        long top = high < most ? high : most;
        if (top >= low && low + (top - low) / step * step > best)
            best = low + (top - low) / step * step;
        value = end + (*end == ',');
    }
    return best;
}

/* In one of the folders of the key "path", if it is there, as this host sees it; else as the agents find it. */
static char *find_command(const char *command, const char *path)
{
    char found[PATH_MAX];
    while (path != NULL && *path != 0 && strchr(command, '/') == NULL) {
        int length = (int)strcspn(path, ":");
        if (snprintf(found, sizeof found, "%.*s/%s", length, path, command) < (int)sizeof found &&
            access(found, X_OK) == 0)
            return strdup(found);
        path += length + (path[length] == ':');
    }
    return strdup(command);
}

static char **copy_words(const char *command, const char *path, char *const *argv, uint32_t *count)
{
    uint32_t n = 0;
    while (argv != NULL && argv[n] != NULL && n < TB_APP_WORDS_LIMIT)
        n++;
    char **words = calloc(n + 2u, sizeof *words);
    if (words == NULL)
        return NULL;
    words[0] = find_command(command, path);
    bool whole = words[0] != NULL;
    for (uint32_t i = 0; i < n && whole; i++)
        whole = (words[i + 1] = strdup(argv[i])) != NULL;
    *count = n + 1;
    return words; /* what is missing is noticed by the caller */
}

/* The key "timeout" of one program; *patience is that of all of them, the longest. 0: there is none. A code that is not
 * raised. */
static int want_patience(const struct wanted *w, int i, uint64_t *patience)
{
    uint64_t own = 0;
    if (w->infos[i] != MPI_INFO_NULL && tb_info_seconds(tb_info_find(w->infos[i]), "timeout", &own) != TB_OK)
        return tb_error_code(MPI_ERR_INFO_VALUE, w->call, "argument %d (info): %s", w->first_argument + 3,
                             tb_error_story());
    *patience = own > *patience ? own : *patience;
    return MPI_SUCCESS;
}

static bool add_variable(struct tb_app *app, const char *name, const char *value)
{
    char *made = NULL;
    if (asprintf(&made, "%s=%s", name, value) < 0)
        return false;
    app->variables[app->variable_count++] = made;
    return true;
}

/* What the new processes are told about their start. Whoever starts them does not pass on what it was told itself. A
 * code that is not raised. */
static int want_hints(const struct wanted *w, const struct tb_info *info, struct tb_app *app)
{
    static const char handler_key[] = "mpi_initial_errhandler", kinds_key[] = "mpi_memory_alloc_kinds";
    const char *handler = info != NULL ? tb_info_value(info, handler_key) : NULL;
    const char *kinds = info != NULL ? tb_info_value(info, kinds_key) : NULL;
    if (handler != NULL && tb_first_errhandler_find(handler) < 0)
        return tb_error_code(MPI_ERR_INFO_VALUE, w->call, "argument %d (info): %s as %s: %s", w->first_argument + 3,
                             handler, handler_key, tb_error_story());
    if (kinds != NULL && tb_memory_kinds_check(kinds) != TB_OK)
        return tb_error_code(MPI_ERR_INFO_VALUE, w->call, "argument %d (info): %s as %s: %s", w->first_argument + 3,
                             kinds, kinds_key, tb_error_story());
    app->variables = calloc(3, sizeof *app->variables);
    bool whole = app->variables != NULL &&
                 add_variable(app, TB_FIRST_ERRHANDLER_VARIABLE, handler != NULL ? handler : "mpi_errors_are_fatal") &&
                 add_variable(app, TB_MEMORY_KINDS_VARIABLE, kinds != NULL ? kinds : "");
    return whole ? MPI_SUCCESS : tb_error_code(MPI_ERR_NO_MEM, w->call, "out of memory for what is to be started");
}

/* One program. A code that is not raised. */
static int want_app(const struct wanted *w, int i, uint32_t first, struct tb_spawn_app *app)
{
    const struct tb_info *info = w->infos[i] == MPI_INFO_NULL ? NULL : tb_info_find(w->infos[i]);
    int at = w->first_argument;
    if (w->infos[i] != MPI_INFO_NULL && info == NULL)
        return tb_error_code(MPI_ERR_INFO, w->call, "argument %d (info): this is no info object, or it has been freed",
                             at + 3);
    if (w->commands[i] == NULL || *w->commands[i] == 0)
        return tb_error_code(MPI_ERR_ARG, w->call, "argument %d (command): there is none", at);
    long most = w->maxprocs[i];
    const char *soft = info != NULL ? tb_info_value(info, "soft") : NULL;
    const char *directory = info != NULL ? tb_info_value(info, "wdir") : NULL;
    const char *hosts = info != NULL ? tb_info_value(info, "host") : NULL;
    if (most > 0 && soft != NULL)
        most = soft_most(soft, most);
    if (most <= 0 || most > (long)TB_JOB_RANKS_LIMIT - (long)first)
        return tb_error_code(soft != NULL && w->maxprocs[i] > 0 ? MPI_ERR_INFO_VALUE : MPI_ERR_ARG, w->call,
                             "argument %d (maxprocs): %d processes%s%s cannot be started", at + 2, w->maxprocs[i],
                             soft != NULL ? ", or what the key soft says: " : "", soft != NULL ? soft : "");
    app->app.first_rank = first;
    app->app.ranks = (uint32_t)most;
    app->app.arguments = copy_words(w->commands[i], info != NULL ? tb_info_value(info, "path") : NULL,
                                    w->argvs != NULL ? w->argvs[i] : NULL, &app->app.argument_count);
    int code = want_hints(w, info, &app->app);
    if (code != MPI_SUCCESS)
        return code;
    app->app.directory = strdup(directory != NULL ? directory : "");
    app->hosts = strdup(hosts != NULL ? hosts : "");
    bool whole = app->app.arguments != NULL && app->app.directory != NULL && app->hosts != NULL;
    for (uint32_t k = 0; whole && k < app->app.argument_count; k++)
        whole = app->app.arguments[k] != NULL;
    return whole ? MPI_SUCCESS : tb_error_code(MPI_ERR_NO_MEM, w->call, "out of memory for what is to be started");
}

/* All of it, with who this group is and the context that both will use. A code that is not raised. */
static int want_all(const struct wanted *w, uint64_t context, struct tb_spawn *spawn)
{
    uint32_t first = 0;
    int code = MPI_SUCCESS;
    *spawn = (struct tb_spawn){.model = tb_self.job.first == 0 ? tb_self.job.app : 0};
    if (w->missing != NULL)
        return tb_error_code(MPI_ERR_ARG, w->call, "argument %d (%s): the pointer is null", w->missing_at, w->missing);
    if (w->count == 0)
        return tb_error_code(MPI_ERR_ARG, w->call, "argument 1 (count): there must be 1 to %u programs", TB_APP_LIMIT);
    spawn->apps = calloc((size_t)w->count, sizeof *spawn->apps);
    if (spawn->apps == NULL)
        return tb_error_code(MPI_ERR_NO_MEM, w->call, "out of memory for what is to be started");
    spawn->app_count = (uint32_t)w->count;
    for (int i = 0; i < w->count && code == MPI_SUCCESS; i++) {
        code = want_app(w, i, first, &spawn->apps[i]);
        first += spawn->apps[i].app.ranks;
        if (code == MPI_SUCCESS)
            code = want_patience(w, i, &spawn->patience);
    }
    spawn->parent = tb_party_pack(context, w->comm, &spawn->parent_bytes);
    if (code == MPI_SUCCESS && spawn->parent == NULL)
        code = tb_error_code(MPI_ERR_NO_MEM, w->call, "out of memory for what is to be started");
    return code;
}

static int take_answer(const struct tb_job_answer *answer, struct tb_party *party)
{
    uint32_t first, size;
    int error = tb_spawn_answer_get(answer, &first, &size);
    if (error != TB_OK)
        return error;
    party->procs = malloc(size * sizeof *party->procs);
    if (party->procs == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for %u new processes", size);
    for (party->size = 0; party->size < size; party->size++)
        party->procs[party->size] = first + party->size;
    return TB_OK;
}

/* Has them started, and waits until all have called MPI_Init. */
static void start(struct wanted *w, struct tb_party *party)
{
    struct tb_spawn spawn;
    struct tb_job_answer answer = {0};
    for (int i = 0; i < w->count; i++)
        party->asked += w->maxprocs[i] > 0 ? (uint32_t)w->maxprocs[i] : 0;
    party->context = tb_context_take_between();
    if (party->context == 0) {
        tb_party_fail(party, MPI_ERR_OTHER);
        return;
    }
    int code = want_all(w, party->context, &spawn);
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        size_t named = strlen(w->call) + 2; /* "MPI_Comm_spawn: ", which is said again */
        tb_error_text(code, text);
        party->class = tb_error_class(code);
        snprintf(party->text, sizeof party->text, "%s", strncmp(text, w->call, named - 2) == 0 ? text + named : text);
    } else {
        party->told = party->used = true; /* by those that have joined, whatever becomes of the others */
        int error = tb_wish_ask(w->call, &spawn, NULL, &answer);
        if (error == TB_OK)
            error = take_answer(&answer, party);
        if (error < 0)
            tb_party_fail(party, MPI_ERR_SPAWN);
        for (int i = 0; i < w->count; i++)
            w->started[i] = spawn.apps[i].app.ranks;
        party->uneven = w->count > 1 && party->size < party->asked;
    }
    free(answer.bytes);
    tb_spawn_close(&spawn);
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

/* The code of each process that was asked for, by program, when not all of each were started: `codes` of the root,
 * which the others get. */
static void spread_codes(const struct wanted *w, struct tb_comm *comm, uint32_t root, uint32_t asked, int *codes)
{
    int *all = malloc(asked * sizeof *all), *next = all;
    if (all == NULL) {
        tb_comm_refuse(comm, TB_OPERATION_BCAST, TB_ERR_MEMORY);
        return;
    }
    for (int i = 0; comm->rank == root && i < w->count; i++)
        for (uint32_t k = 0; k < (uint32_t)w->maxprocs[i]; k++)
            *next++ = k < w->started[i] ? MPI_SUCCESS : MPI_ERR_SPAWN;
    if (tb_comm_spread(comm, root, all, asked * sizeof *all) == TB_OK && codes != MPI_ERRCODES_IGNORE)
        memcpy(codes, all, asked * sizeof *all);
    free(all);
}

static void tell_codes(const struct wanted *w, struct tb_comm *comm, uint32_t root, const struct tb_party *party,
                       int code, int *codes)
{
    bool well = code == MPI_SUCCESS;
    if (well && party->uneven) {
        spread_codes(w, comm, root, party->asked, codes);
        return;
    }
    for (uint32_t i = 0; codes != MPI_ERRCODES_IGNORE && i < party->asked; i++)
        codes[i] = !well ? tb_error_class(code) : i < party->size ? MPI_SUCCESS : MPI_ERR_SPAWN;
}

/* All ranks of the communicator; what is wanted matters at the root alone. */
static int spawn(struct wanted *w, MPI_Comm comm, int root, MPI_Comm *intercomm, int *codes)
{
    struct tb_comm *c = tb_comm_find(comm);
    int at = w->first_argument + 4;
    if (c == NULL)
        return tb_raise_comm(w->call, at + 1, "comm", comm);
    if (c->inter)
        return tb_raise_argument(c, MPI_ERR_COMM, w->call, at + 1, "comm", "%s is an inter-communicator",
                                 tb_comm_name(c));
    if ((uint32_t)root >= c->size)
        return tb_raise_argument(c, MPI_ERR_ROOT, w->call, at, "root", "rank %d is outside %s, which has ranks 0 to %u",
                                 root, tb_comm_name(c), c->size - 1);
    if (intercomm == NULL)
        return tb_raise_null(c, w->call, at + 2, "intercomm");
    int own = tb_comm_check_own(c, w->call, at + 1);
    if (own != MPI_SUCCESS)
        return own;
    struct tb_party party = {.class = MPI_SUCCESS};
    bool is_root = c->rank == (uint32_t)root;
    w->comm = c;
    if (is_root)
        start(w, &party);
    *intercomm = MPI_COMM_NULL;
    int code = tb_party_meet(w->call, c, (uint32_t)root, &party, intercomm);
    tell_codes(w, c, (uint32_t)root, &party, code, codes);
    return code;
}

int tb_mpi_Comm_spawn(const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
                      MPI_Comm *intercomm, int array_of_errcodes[])
{
    char *const commands[] = {(char *)command};
    char *const *const argvs[] = {argv};
    struct wanted w = {.call = "MPI_Comm_spawn",
                       .count = 1,
                       .commands = commands,
                       .argvs = argvs,
                       .maxprocs = &maxprocs,
                       .infos = &info,
                       .first_argument = 1};
    return spawn(&w, comm, root, intercomm, array_of_errcodes);
}

/* The first array that is not there: its name, and its place among the arguments. */
static int find_missing(char *const *commands, const int *maxprocs, const MPI_Info *infos, const char **name)
{
    if (commands != NULL && maxprocs != NULL && infos != NULL)
        return 0;
    *name = commands == NULL ? "array_of_commands" : maxprocs == NULL ? "array_of_maxprocs" : "array_of_info";
    return commands == NULL ? 2 : maxprocs == NULL ? 4 : 5;
}

int tb_mpi_Comm_spawn_multiple(int count, char *array_of_commands[], char **array_of_argv[],
                               const int array_of_maxprocs[], const MPI_Info array_of_info[], int root, MPI_Comm comm,
                               MPI_Comm *intercomm, int array_of_errcodes[])
{
    static const char call[] = "MPI_Comm_spawn_multiple";
    struct tb_comm *c = tb_comm_find(comm);
    bool is_root = c != NULL && c->rank == (uint32_t)root;
    const char *missing = NULL;
    int missing_at = 0;
    if (is_root && (count <= 0 || (uint32_t)count > TB_APP_LIMIT))
        count = 0; /* which all are told, as they are of an array that is missing */
    else if (is_root)
        missing_at = find_missing(array_of_commands, array_of_maxprocs, array_of_info, &missing);
    struct wanted w = {.call = call,
                       .count = missing != NULL ? 0 : count,
                       .missing = missing,
                       .missing_at = missing_at,
                       .commands = array_of_commands,
                       .argvs = (char *const *const *)array_of_argv,
                       .maxprocs = array_of_maxprocs,
                       .infos = array_of_info,
                       .first_argument = 2};
    return spawn(&w, comm, root, intercomm, array_of_errcodes);
}

/* ---- the new ones ------------------------------------------------------------------------------------------------ */

int tb_spawn_open_parent(void)
{
    const struct tb_job *job = &tb_self.job;
    struct tb_party party;
    if (job->parent == NULL)
        return TB_OK;
    int error = tb_party_unpack(job->parent, job->parent_bytes, &party);
    if (error == TB_OK)
        error = tb_party_join(tb_self.world, &party, &tb_self.parent);
    if (error != TB_OK)
        return error;
    tb_self.starters = tb_self.parent->remote_size;
    /* Its name from the beginning (MPI-5.0, section 7.8). */
    snprintf(tb_self.parent->name, sizeof tb_self.parent->name, "MPI_COMM_PARENT");
    return TB_OK;
}

int tb_mpi_Comm_get_parent(MPI_Comm *parent)
{
    tb_require_active("MPI_Comm_get_parent");
    if (parent == NULL)
        return tb_raise_null(NULL, "MPI_Comm_get_parent", 1, "parent");
    *parent = tb_self.parent != NULL ? tb_comm_handle(tb_self.parent) : MPI_COMM_NULL;
    return MPI_SUCCESS;
}

/* Reads the text of a plan, line by line. */
#include "planner/plan_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/choice.h"
#include "planner/plan_image.h"

#define BLANKS       " \t\r\v\f"
#define NOT_BEHIND   UINT32_MAX /* a node that nobody has named as a child */
#define DIGEST_CHARS 16

/* A plan that is being read, and the entry that is. */
struct reading {
    struct tb_plan *plan;
    const char *file;
    uint32_t line;
    bool begun;    /* the version was there */
    bool digested; /* and a digest, */
    uint64_t digest;
    uint32_t digest_line;
    bool open; /* an entry */
    struct tb_plan_cell cell;
    bool used, pieced; /* `use` and `piece` were there */
    uint64_t piece;
    uint32_t trees, tree_lines[TB_FOREST_TREES], shares[TB_FOREST_TREES];
    uint32_t *parents; /* of each host in each of its trees */
    uint64_t *order;   /* and when it is served; room for all trees that can be, grown with them */
    uint64_t served;   /* children that have been named */
    uint32_t tree_room;
};

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* Puts file and line before the last story. */
static int told_at(const struct reading *r, uint32_t line, int code)
{
    return tb_error(code, "%s:%u: %s", r->file, line, tb_error_story());
}

/* A value of a field that makes no sense: `should` says what was expected. */
static int wrong(const struct reading *r, const char *field, const char *value, const char *should)
{
    if (value == NULL)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: %s: its value is missing; it should be %s", r->file, r->line, field,
                        should);
    return tb_error(TB_ERR_ARGUMENT, "%s:%u: %s: \"%.80s\" should be %s", r->file, r->line, field, value, should);
}

static int hosts_missing(const struct reading *r)
{
    return tb_error(TB_ERR_ARGUMENT, "%s:%u: the hosts are missing: lines `host NAME slots COUNT in PLACE`", r->file,
                    r->line);
}

static const char *host_name(const struct reading *r, uint32_t host)
{
    return r->plan->hosts[host].name;
}

static char *next_word(char **rest)
{
    return strtok_r(NULL, BLANKS, rest);
}

static int number_take(const struct reading *r, const char *field, const char *word, uint64_t least, uint64_t most,
                       uint64_t *value)
{
    char should[96], low[32], high[32];
    const char *end = word != NULL ? tb_number_read(word, value) : NULL;
    if (end != NULL && *end == 0 && *value >= least && *value <= most)
        return TB_OK;
    tb_number_print(least, low, sizeof low);
    tb_number_print(most, high, sizeof high);
    snprintf(should, sizeof should, "a number from %s to %s", low, high);
    return wrong(r, field, word, should);
}

static int host_take(const struct reading *r, const char *field, const char *word, uint32_t *host)
{
    *host = word != NULL ? tb_plan_find_host(r->plan, word) : TB_PLAN_ANY;
    return *host != TB_PLAN_ANY ? TB_OK
                                : wrong(r, field, word, "a host of the plan, which has a line of its own above");
}

/* ---- the trees of an entry --------------------------------------------------------------------------------------- */

/* The one host that is behind no other. */
static int top_find(struct reading *r, uint32_t tree, uint32_t *top)
{
    const uint32_t *parents = r->parents + (size_t)tree * r->plan->host_count;
    *top = TB_PLAN_ANY;
    for (uint32_t i = 0; i < r->plan->host_count; i++) {
        if (parents[i] != NOT_BEHIND)
            continue;
        if (*top != TB_PLAN_ANY)
            return tb_error(TB_ERR_ARGUMENT, "%s:%u: tree: hosts %s and %s are both behind no other; one is missing",
                            r->file, r->tree_lines[tree], host_name(r, *top), host_name(r, i));
        *top = i;
    }
    if (*top == TB_PLAN_ANY)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: tree: it goes round in a circle: every host is behind another",
                        r->file, r->tree_lines[tree]);
    return TB_OK;
}

/* Whether whoever follows the parents of a host comes to the root; those that have are marked. */
static bool leads_up(const uint32_t *parents, uint32_t hosts, uint32_t root, uint32_t from, bool *marked)
{
    uint32_t at = from, steps = 0;
    while (!marked[at] && at != root && steps++ <= hosts)
        at = parents[at];
    bool does = marked[at] || at == root;
    for (at = from; does && !marked[at]; at = parents[at]) {
        marked[at] = true;
        if (at == root)
            break;
    }
    return does;
}

static int tree_check(struct reading *r, uint32_t tree, uint32_t root, bool *marked)
{
    uint32_t hosts = r->plan->host_count, line = r->tree_lines[tree];
    uint32_t *parents = r->parents + (size_t)tree * hosts;
    if (parents[root] != NOT_BEHIND)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: tree: the root %s is behind %s", r->file, line, host_name(r, root),
                        host_name(r, parents[root]));
    parents[root] = root;
    for (uint32_t i = 0; i < hosts; i++)
        if (parents[i] == NOT_BEHIND)
            return tb_error(TB_ERR_ARGUMENT, "%s:%u: tree: host %s is missing", r->file, line, host_name(r, i));
    memset(marked, 0, hosts * sizeof *marked);
    for (uint32_t i = 0; i < hosts; i++)
        if (!leads_up(parents, hosts, root, i, marked))
            return tb_error(TB_ERR_ARGUMENT,
                            "%s:%u: tree: it goes round in a circle: host %s is not behind the root %s", r->file, line,
                            host_name(r, i), host_name(r, root));
    return TB_OK;
}

static int trees_finish(struct reading *r)
{
    struct tb_plan_cell *cell = &r->cell;
    uint32_t root = cell->root;
    if (tb_choice_rooted(cell->operation) && root == TB_PLAN_ANY)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: root: trees need a host, with which they begin", r->file, cell->line);
    int error = root == TB_PLAN_ANY ? top_find(r, 0, &root) : TB_OK;
    bool *marked = error == TB_OK ? malloc(r->plan->host_count * sizeof *marked) : NULL;
    if (error == TB_OK && marked == NULL)
        error = tb_error(TB_ERR_MEMORY, "no memory for a plan");
    for (uint32_t t = 0; t < r->trees && error == TB_OK; t++)
        error = tree_check(r, t, root, marked);
    free(marked);
    if (error != TB_OK)
        return error;
    const struct tb_forest source = {.nodes = r->plan->host_count,
                                     .root = root,
                                     .trees = r->trees,
                                     .piece = r->piece,
                                     .shares = r->shares,
                                     .parents = r->parents};
    error = tb_forest_make(&cell->trees, &source, r->order);
    return error == TB_OK ? TB_OK : told_at(r, cell->line, error);
}

/* An entry is whole. */
static int cell_finish(struct reading *r)
{
    if (!r->open)
        return TB_OK;
    r->open = false;
    if (!r->used && r->trees == 0)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: what is to run is missing: a line `use ALGORITHM`, or trees", r->file,
                        r->cell.line);
    if (r->used && (r->trees > 0 || r->pieced))
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: use: there are trees as well; either is enough", r->file,
                        r->cell.line);
    int error = r->used ? TB_OK : trees_finish(r);
    if (error != TB_OK)
        return error;
    error = tb_plan_add_cell(r->plan, &r->cell);
    return error == TB_OK ? TB_OK : told_at(r, r->cell.line, error);
}

/* ---- lines of an entry ------------------------------------------------------------------------------------------- */

static int line_end(const struct reading *r, char **rest)
{
    const char *word = next_word(rest);
    return word == NULL
               ? TB_OK
               : tb_error(TB_ERR_ARGUMENT, "%s:%u: \"%.80s\" is too much in this line", r->file, r->line, word);
}

static int use_take(struct reading *r, char **rest)
{
    const char *word = next_word(rest);
    if (word == NULL)
        return wrong(r, "use", NULL, "an algorithm, such as chain:64k");
    if (r->used)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: use: it is there twice", r->file, r->line);
    if (strcmp(word, "planned") == 0)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: use: what is planned are trees; write these", r->file, r->line);
    int error = tb_preference_read(&r->cell.use, r->cell.operation, word);
    if (error != TB_OK)
        return told_at(r, r->line, error);
    r->used = true;
    return line_end(r, rest);
}

static int piece_take(struct reading *r, char **rest)
{
    if (r->pieced)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: piece: it is there twice", r->file, r->line);
    r->pieced = true;
    int error = number_take(r, "piece", next_word(rest), 0, TB_ARGUMENT_PIECE, &r->piece);
    return error == TB_OK ? line_end(r, rest) : error;
}

static int trees_grow(struct reading *r)
{
    size_t hosts = r->plan->host_count;
    uint32_t room = r->tree_room == 0 ? 1 : 2 * r->tree_room;
    uint32_t *parents = realloc(r->parents, room * hosts * sizeof *parents);
    r->parents = parents != NULL ? parents : r->parents;
    uint64_t *order = parents != NULL ? realloc(r->order, room * hosts * sizeof *order) : NULL;
    r->order = order != NULL ? order : r->order;
    if (order == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a plan");
    r->tree_room = room;
    return TB_OK;
}

static int tree_take(struct reading *r, char **rest)
{
    uint64_t share = 1;
    int error = TB_OK;
    if (!tb_plan_has_trees(r->cell.operation))
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: tree: %s cannot go along trees", r->file, r->line,
                        tb_operation_name(r->cell.operation));
    if (r->trees == TB_FOREST_TREES)
        return tb_error(TB_ERR_LIMIT, "%s:%u: tree: there are more than %u", r->file, r->line, TB_FOREST_TREES);
    const char *word = next_word(rest);
    if (word != NULL && strcmp(word, "share") != 0)
        return wrong(r, "tree", word, "\"share\" and a number, or nothing");
    if (word != NULL)
        error = number_take(r, "share", next_word(rest), 1, TB_PLAN_SHARE_LIMIT, &share);
    if (error == TB_OK)
        error = line_end(r, rest);
    if (error == TB_OK && r->trees == r->tree_room)
        error = trees_grow(r);
    if (error != TB_OK)
        return error;
    uint32_t hosts = r->plan->host_count;
    for (uint32_t i = 0; i < hosts; i++)
        r->parents[(size_t)r->trees * hosts + i] = NOT_BEHIND;
    memset(r->order + (size_t)r->trees * hosts, 0, hosts * sizeof *r->order);
    r->tree_lines[r->trees] = r->line;
    r->shares[r->trees++] = (uint32_t)share;
    return TB_OK;
}

/* "a: b c d", of the tree that was begun last. */
static int children_take(struct reading *r, char *word, char **rest)
{
    uint32_t parent, child, hosts = r->plan->host_count;
    word[strlen(word) - 1] = 0;
    if (r->trees == 0)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: a line `tree` should stand before the hosts of one", r->file, r->line);
    uint32_t *parents = r->parents + (size_t)(r->trees - 1) * hosts;
    uint64_t *order = r->order + (size_t)(r->trees - 1) * hosts;
    int error = host_take(r, "tree", word, &parent);
    while (error == TB_OK && (word = next_word(rest)) != NULL) {
        error = host_take(r, "tree", word, &child);
        if (error == TB_OK && child == parent)
            return tb_error(TB_ERR_ARGUMENT, "%s:%u: tree: host %s is behind itself", r->file, r->line, word);
        if (error == TB_OK && parents[child] != NOT_BEHIND)
            return tb_error(TB_ERR_ARGUMENT, "%s:%u: tree: host %s is already behind %s", r->file, r->line, word,
                            host_name(r, parents[child]));
        if (error == TB_OK) {
            parents[child] = parent;
            order[child] = r->served++;
        }
    }
    return error;
}

/* ---- the line that begins an entry ------------------------------------------------------------------------------- */

/* "64k", or "16..64k". */
static int bytes_take(struct reading *r, char *word)
{
    char *dots = word != NULL ? strstr(word, "..") : NULL;
    if (dots != NULL)
        *dots = 0;
    int error = number_take(r, "bytes", word, 0, TB_ARGUMENT_PIECE, &r->cell.from);
    r->cell.to = r->cell.from;
    if (error == TB_OK && dots != NULL)
        error = number_take(r, "bytes", dots + 2, r->cell.from, TB_ARGUMENT_PIECE, &r->cell.to);
    bool none = r->cell.operation == TB_OPERATION_BARRIER || tb_operation_unsized(r->cell.operation);
    if (error == TB_OK && none && r->cell.to > 0)
        return wrong(r, "bytes", word, "0, or not there: no size of this operation is known to all ranks");
    return error;
}

static int root_take(struct reading *r, char *word)
{
    if (word != NULL && strcmp(word, "any") == 0)
        return TB_OK;
    int error = host_take(r, "root", word, &r->cell.root);
    if (error == TB_OK && !tb_choice_rooted(r->cell.operation))
        return wrong(r, "root", word, "any: the operation has none");
    return error;
}

static int cell_take(struct reading *r, enum tb_operation operation, char **rest)
{
    bool sized = operation == TB_OPERATION_BARRIER || tb_operation_unsized(operation), rooted = false, bytes = false;
    int error = cell_finish(r);
    r->open = true;
    r->used = r->pieced = false;
    r->trees = 0;
    r->piece = r->served = 0;
    r->cell = (struct tb_plan_cell){.operation = operation, .root = TB_PLAN_ANY, .line = r->line};
    if (error == TB_OK && r->plan->host_count == 0)
        return hosts_missing(r);
    for (char *word = next_word(rest); word != NULL && error == TB_OK; word = next_word(rest)) {
        bool *twice = strcmp(word, "bytes") == 0 ? &bytes : strcmp(word, "root") == 0 ? &rooted : NULL;
        if (twice == NULL)
            return wrong(r, "entry", word, "\"bytes\" or \"root\", each with its value");
        if (*twice)
            return tb_error(TB_ERR_ARGUMENT, "%s:%u: %s: it is there twice", r->file, r->line, word);
        *twice = true;
        error = twice == &bytes ? bytes_take(r, next_word(rest)) : root_take(r, next_word(rest));
    }
    if (error == TB_OK && !bytes && !sized)
        return wrong(r, "bytes", NULL, "the sizes that it is for, such as 64k or 16..64k");
    return error;
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

static int version_take(struct reading *r, char **rest)
{
    uint64_t version;
    const char *word = next_word(rest), *end = word != NULL ? tb_number_read(word, &version) : NULL;
    if (r->begun)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: tombolo-plan: it is there twice", r->file, r->line);
    r->begun = true;
    if (end == NULL || *end != 0 || version != TB_PLAN_VERSION)
        return wrong(r, "tombolo-plan", word, "1, the only version that there is");
    return line_end(r, rest);
}

static int digest_take(struct reading *r, char **rest)
{
    const char *word = next_word(rest);
    char *end = NULL;
    if (r->digested)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: digest: it is there twice", r->file, r->line);
    r->digest = word != NULL ? strtoull(word, &end, 16) : 0;
    if (word == NULL || strlen(word) != DIGEST_CHARS || strspn(word, "0123456789abcdef") != DIGEST_CHARS)
        return wrong(r, "digest", word, "16 digits of 0-9 and a-f");
    r->digested = true;
    r->digest_line = r->line;
    return line_end(r, rest);
}

/* host NAME slots COUNT [in PLACE/PLACE] */
static int host_line_take(struct reading *r, char **rest)
{
    uint64_t slots = 0;
    const char *name = next_word(rest), *word = next_word(rest), *place = "";
    if (r->open || r->plan->cell_count > 0)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: host: all hosts should stand before the first entry", r->file,
                        r->line);
    if (name == NULL)
        return wrong(r, "host", NULL, "the name of one");
    if (word == NULL || strcmp(word, "slots") != 0)
        return wrong(r, "host", word, "\"slots\" and how many there are");
    int error = number_take(r, "slots", next_word(rest), 1, TB_PLAN_SLOTS_LIMIT, &slots);
    word = error == TB_OK ? next_word(rest) : NULL;
    if (word != NULL && strcmp(word, "in") != 0)
        return wrong(r, "host", word, "\"in\" and the places around it");
    if (word != NULL) {
        place = next_word(rest);
        if (place == NULL)
            return wrong(r, "in", NULL, "the places around it, such as delft/fast");
    }
    if (error == TB_OK)
        error = line_end(r, rest);
    if (error != TB_OK)
        return error;
    error = tb_plan_add_host(r->plan, name, place, (uint32_t)slots);
    return error == TB_OK ? TB_OK : told_at(r, r->line, error);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static int line_take(struct reading *r, char *line)
{
    char *rest = NULL;
    line[strcspn(line, "#")] = 0;
    char *word = strtok_r(line, BLANKS, &rest);
    if (word == NULL)
        return TB_OK;
    if (!r->begun && strcmp(word, "tombolo-plan") != 0)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: this is no plan: it should begin with `tombolo-plan %u`", r->file,
                        r->line, TB_PLAN_VERSION);
    if (strcmp(word, "tombolo-plan") == 0)
        return version_take(r, &rest);
    if (strcmp(word, "digest") == 0)
        return digest_take(r, &rest);
    if (strcmp(word, "host") == 0)
        return host_line_take(r, &rest);
    static const struct {
        const char *word;
        int (*take)(struct reading *r, char **rest);
    } of_entry[] = {{"use", use_take}, {"piece", piece_take}, {"tree", tree_take}};
    bool children = word[strlen(word) - 1] == ':';
    for (size_t i = 0; i < sizeof of_entry / sizeof of_entry[0]; i++) {
        bool is = strcmp(word, of_entry[i].word) == 0;
        if ((is || children) && !r->open)
            return tb_error(TB_ERR_ARGUMENT, "%s:%u: \"%.80s\" belongs to an entry, and there is none yet", r->file,
                            r->line, word);
        if (is)
            return of_entry[i].take(r, &rest);
    }
    if (children)
        return children_take(r, word, &rest);
    enum tb_operation operation = tb_operation_read(word, strlen(word));
    if (operation == TB_OPERATION_COUNT)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: there is no operation \"%.80s\"; one is called bcast, for example",
                        r->file, r->line, word);
    return cell_take(r, operation, &rest);
}

static int whole_check(const struct reading *r)
{
    uint64_t digest = tb_plan_digest(r->plan);
    if (!r->begun)
        return tb_error(TB_ERR_ARGUMENT, "%s:1: this is no plan: it is empty", r->file);
    if (r->plan->host_count == 0)
        return hosts_missing(r);
    if (r->digested && r->digest != digest)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: digest: that of the hosts in this file is %016llx; were they changed?",
                        r->file, r->digest_line, (unsigned long long)digest);
    return tb_plan_check(r->plan, r->file);
}

int tb_plan_parse(struct tb_plan *plan, const char *text, size_t length, const char *file)
{
    struct reading r = {.plan = plan, .file = file};
    int error = TB_OK;
    *plan = (struct tb_plan){0};
    if (length > TB_PLAN_TEXT_LIMIT)
        return tb_error(TB_ERR_LIMIT, "%s: a plan has at most %u bytes", file, TB_PLAN_TEXT_LIMIT);
    char *copy = malloc(length + 1);
    if (copy == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a plan");
    memcpy(copy, text, length);
    copy[length] = 0;
    for (char *at = copy; at < copy + length && error == TB_OK;) {
        char *end = memchr(at, '\n', (size_t)(copy + length - at));
        end = end != NULL ? end : copy + length;
        r.line++;
        const char *foreign = at;
        while (foreign < end && !tb_character_foreign(*foreign))
            foreign++;
        *end = 0;
        error = foreign == end
                    ? line_take(&r, at)
                    : tb_error(TB_ERR_ARGUMENT, "%s:%u: this is no text: there is a byte %d", file, r.line, *foreign);
        at = end + 1;
    }
    if (error == TB_OK)
        error = cell_finish(&r);
    if (error == TB_OK)
        error = whole_check(&r);
    free(r.parents);
    free(r.order);
    free(copy);
    return error;
}

static int file_read(const char *path, char **text, size_t *length)
{
    FILE *from = fopen(path, "re");
    size_t room = 0;
    if (from == NULL)
        return tb_error_errno("cannot read the plan %s", path);
    for (size_t n = 1; n > 0 && *length <= TB_PLAN_TEXT_LIMIT; *length += n) {
        if (*length == room) {
            room = room == 0 ? 1u << 16 : 2 * room;
            char *grown = realloc(*text, room);
            if (grown == NULL) {
                fclose(from);
                return tb_error(TB_ERR_MEMORY, "no memory for a plan");
            }
            *text = grown;
        }
        errno = 0;
        n = fread(*text + *length, 1, room - *length, from);
    }
    int error = ferror(from) ? tb_error_errno("cannot read the plan %s", path) : TB_OK;
    fclose(from);
    return error;
}

int tb_plan_load(struct tb_plan *plan, const char *path)
{
    char *text = NULL;
    size_t length = 0;
    *plan = (struct tb_plan){0};
    int error = file_read(path, &text, &length);
    if (error == TB_OK)
        error = tb_plan_parse(plan, text, length, path);
    free(text);
    return error;
}

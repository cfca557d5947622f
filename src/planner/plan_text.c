#include "planner/plan_text.h"

#include <stdlib.h>
#include <string.h>

#include "planner/choice.h"
#include "planner/plan_image.h"

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static int no_memory(void)
{
    return tb_error(TB_ERR_MEMORY, "no memory for a plan");
}

void tb_plan_close(struct tb_plan *plan)
{
    for (uint32_t i = 0; i < plan->host_count; i++) {
        free(plan->hosts[i].name);
        free(plan->hosts[i].place);
    }
    for (uint32_t i = 0; i < plan->cell_count; i++)
        tb_forest_close(plan->cells[i].trees);
    free(plan->hosts);
    free(plan->cells);
    tb_hash_table_close(&plan->named);
    *plan = (struct tb_plan){0};
}

/* Room for one more element, in an array that has `count`. NULL: there is none, and the array stays. */
static void *room_for_one(void *array, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return array;
    uint32_t wanted = *room == 0 ? 16 : 2 * *room;
    void *grown = realloc(array, wanted * size);
    if (grown != NULL)
        *room = wanted;
    return grown;
}

static uint32_t name_hash(const char *name)
{
    return tb_hash_fold(tb_hash_text(TB_HASH_BASIS, name));
}

uint32_t tb_plan_find_host(const struct tb_plan *plan, const char *name)
{
    uint32_t hash = name_hash(name), at = hash, host;
    while ((host = tb_hash_table_next(&plan->named, hash, &at)) != TB_HASH_NONE)
        if (strcmp(plan->hosts[host].name, name) == 0)
            return host;
    return TB_PLAN_ANY;
}

/* What is written as a word of its own must be one. */
static bool is_word(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && length < TB_PLAN_WORD_BYTES && strcspn(text, " \t\r\n\v\f#") == length;
}

int tb_plan_add_host(struct tb_plan *plan, const char *name, const char *place, uint32_t slots)
{
    if (!is_word(name) || strcmp(name, "any") == 0)
        return tb_error(TB_ERR_ARGUMENT, "\"%.80s\" cannot be the name of a host in a plan", name);
    if (*place != 0 && !is_word(place))
        return tb_error(TB_ERR_ARGUMENT, "host %s cannot be in \"%.80s\" in a plan", name, place);
    if (tb_plan_find_host(plan, name) != TB_PLAN_ANY)
        return tb_error(TB_ERR_ARGUMENT, "host %s is there twice", name);
    if (slots == 0 || slots > TB_PLAN_SLOTS_LIMIT)
        return tb_error(TB_ERR_ARGUMENT, "host %s: slots should be between 1 and %u", name, TB_PLAN_SLOTS_LIMIT);
    if (plan->host_count == TB_PLAN_HOSTS_LIMIT)
        return tb_error(TB_ERR_LIMIT, "there are more than %u hosts", TB_PLAN_HOSTS_LIMIT);
    struct tb_plan_host *hosts = room_for_one(plan->hosts, plan->host_count, &plan->host_room, sizeof *hosts);
    if (hosts == NULL)
        return no_memory();
    plan->hosts = hosts;
    struct tb_plan_host made = {.name = strdup(name), .place = strdup(place), .slots = slots};
    if (made.name == NULL || made.place == NULL ||
        tb_hash_table_add(&plan->named, name_hash(name), plan->host_count) != TB_OK) {
        free(made.name);
        free(made.place);
        return no_memory();
    }
    hosts[plan->host_count++] = made;
    return TB_OK;
}

int tb_plan_add_cell(struct tb_plan *plan, const struct tb_plan_cell *cell)
{
    int error = TB_OK;
    struct tb_plan_cell *cells = NULL;
    if (plan->cell_count == TB_PLAN_CELLS_LIMIT)
        error = tb_error(TB_ERR_LIMIT, "there are more than %u entries", TB_PLAN_CELLS_LIMIT);
    else
        cells = room_for_one(plan->cells, plan->cell_count, &plan->cell_room, sizeof *cells);
    if (cells == NULL) {
        tb_forest_close(cell->trees);
        return error != TB_OK ? error : no_memory();
    }
    plan->cells = cells;
    cells[plan->cell_count++] = *cell;
    return TB_OK;
}

uint64_t tb_plan_digest(const struct tb_plan *plan)
{
    uint64_t digest = 0;
    for (uint32_t i = 0; i < plan->host_count; i++)
        digest = tb_plan_digest_add(digest,
                                    tb_plan_host_key(plan->hosts[i].place, plan->hosts[i].name, plan->hosts[i].slots));
    return digest;
}

static int cells_compare(const void *a, const void *b)
{
    const struct tb_plan_cell *x = *(const struct tb_plan_cell *const *)a, *y = *(const struct tb_plan_cell *const *)b;
    if (x->operation != y->operation)
        return x->operation < y->operation ? -1 : 1;
    if (x->root != y->root)
        return x->root < y->root ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

int tb_plan_check(const struct tb_plan *plan, const char *file)
{
    const struct tb_plan_cell **sorted = malloc((plan->cell_count + 1u) * sizeof *sorted);
    int error = sorted != NULL ? TB_OK : no_memory();
    for (uint32_t i = 0; i < plan->cell_count && error == TB_OK; i++)
        sorted[i] = &plan->cells[i];
    if (error == TB_OK)
        qsort(sorted, plan->cell_count, sizeof *sorted, cells_compare);
    for (uint32_t i = 1; i < plan->cell_count && error == TB_OK; i++) {
        const struct tb_plan_cell *a = sorted[i - 1], *b = sorted[i];
        if (a->operation == b->operation && a->root == b->root && b->from <= a->to)
            error = tb_error(TB_ERR_ARGUMENT,
                             "%s:%u: bytes: the sizes overlap those of line %u, which is for the same "
                             "operation and root",
                             file, a->line > b->line ? a->line : b->line, a->line > b->line ? b->line : a->line);
    }
    free(sorted);
    return error;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

#define COLUMNS 110

/* As comments. Names in it may have bytes that no text has. */
static void title_write(const char *title, FILE *to)
{
    while (*title != 0) {
        fputs(*title == '\n' ? "#" : "# ", to);
        for (; *title != 0 && *title != '\n'; title++)
            putc(tb_character_foreign(*title) ? '?' : *title, to);
        putc('\n', to);
        title += *title != 0;
    }
}

/* The children of a node; a list that is too long for a line goes on in another with the same beginning. */
static void children_write(const struct tb_plan *plan, const struct tb_forest *f, uint32_t tree, uint32_t node,
                           FILE *to)
{
    const uint32_t *first = f->first + (size_t)tree * (f->nodes + 1) + node;
    size_t column = 0;
    for (uint32_t i = first[0]; i < first[1]; i++) {
        const char *child = plan->hosts[f->children[i]].name;
        if (column == 0 || column + 1 + strlen(child) > COLUMNS)
            column = (size_t)fprintf(to, "%s    %s:", column > 0 ? "\n" : "", plan->hosts[node].name);
        column += (size_t)fprintf(to, " %s", child);
    }
    if (column > 0)
        fputc('\n', to);
}

/* Nodes in the order in which they are reached from the root, so that one reads from it on. */
static void tree_write(const struct tb_plan *plan, const struct tb_forest *f, uint32_t tree, uint32_t *list, FILE *to)
{
    const uint32_t *first = f->first + (size_t)tree * (f->nodes + 1);
    uint32_t count = 1;
    list[0] = f->root;
    fprintf(to, "  tree share %u\n", f->shares[tree]);
    for (uint32_t i = 0; i < count; i++) {
        children_write(plan, f, tree, list[i], to);
        for (uint32_t k = first[list[i]]; k < first[list[i] + 1]; k++)
            list[count++] = f->children[k];
    }
}

static void cell_head_write(const struct tb_plan *plan, const struct tb_plan_cell *cell, FILE *to)
{
    char word[64], from[32], end[32];
    tb_operation_word(cell->operation, word, sizeof word);
    tb_number_print(cell->from, from, sizeof from);
    tb_number_print(cell->to, end, sizeof end);
    if (cell->time > 0)
        fprintf(to, "\n# predicted %.3f us%s", (double)cell->time / 1e6, cell->bound > 0 ? "" : "\n");
    if (cell->time > 0 && cell->bound > 0)
        fprintf(to, "; nothing takes less than %.3f us\n", (double)cell->bound / 1e6);
    fprintf(to, "%s%s", cell->time > 0 ? "" : "\n", word);
    if (cell->operation != TB_OPERATION_BARRIER && !tb_operation_unsized(cell->operation))
        fprintf(to, " bytes %s", from);
    if (cell->from != cell->to)
        fprintf(to, "..%s", end);
    if (tb_choice_rooted(cell->operation))
        fprintf(to, " root %s", cell->root == TB_PLAN_ANY ? "any" : plan->hosts[cell->root].name);
    fputc('\n', to);
}

static void cell_write(const struct tb_plan *plan, const struct tb_plan_cell *cell, uint32_t *list, FILE *to)
{
    char text[96];
    cell_head_write(plan, cell, to);
    if (cell->trees == NULL) {
        tb_preference_print(&cell->use, text, sizeof text);
        fprintf(to, "  use %s\n", text);
        return;
    }
    tb_number_print(cell->trees->piece, text, sizeof text);
    if (cell->trees->piece > 0)
        fprintf(to, "  piece %s\n", text);
    for (uint32_t t = 0; t < cell->trees->trees; t++)
        tree_write(plan, cell->trees, t, list, to);
}

int tb_plan_write(const struct tb_plan *plan, const char *title, FILE *to)
{
    uint32_t *list = malloc((plan->host_count + 1u) * sizeof *list);
    if (list == NULL)
        return no_memory();
    title_write(title, to);
    fprintf(to, "tombolo-plan %u\ndigest %016llx\n\n", TB_PLAN_VERSION, (unsigned long long)tb_plan_digest(plan));
    for (uint32_t i = 0; i < plan->host_count; i++) {
        const struct tb_plan_host *host = &plan->hosts[i];
        fprintf(to, "host %s slots %u%s%s\n", host->name, host->slots, *host->place != 0 ? " in " : "", host->place);
    }
    for (uint32_t i = 0; i < plan->cell_count; i++)
        cell_write(plan, &plan->cells[i], list, to);
    free(list);
    return fflush(to) == 0 && !ferror(to) ? TB_OK : tb_error_errno("cannot write the plan");
}

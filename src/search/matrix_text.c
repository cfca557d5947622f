#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/problem.h"
#include "search/search_text.h"
#include "search/text_lines.h"

#define MBIT    125000.0 /* bytes a second */
#define FASTEST 1e12     /* Mbit/s */
#define WORD    64u      /* characters of a number at most */
#define ROWS    16384u
#define CLUSTER "clusters:"

/* Adds a number; the room doubles. */
static int rate_add(uint64_t **rates, size_t count, uint64_t rate)
{
    if ((count & (count - 1)) == 0) {
        uint64_t *more = realloc(*rates, (count == 0 ? 1 : 2 * count) * sizeof *more);
        if (more == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for %zu bandwidths", count);
        *rates = more;
    }
    (*rates)[count] = rate;
    return TB_OK;
}

/* A bandwidth; on the diagonal it may be missing, and is 0 then. */
static int rate_read(struct tb_text_lines *lines, bool diagonal, uint64_t *rate)
{
    char word[WORD + 1], *end;
    size_t length = tb_text_lines_word(lines);
    *rate = 0;
    if (diagonal && length == 1 && *lines->at == '-') {
        lines->at++;
        return TB_OK;
    }
    memcpy(word, lines->at, length > WORD ? WORD : length);
    word[length > WORD ? WORD : length] = '\0';
    double mbit = strtod(word, &end);
    if (*end != '\0' || end == word || length > WORD || !isfinite(mbit))
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: '%s' is no bandwidth", lines->name, lines->line, word);
    if (mbit * MBIT < 1 || mbit > FASTEST)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: a bandwidth of %s Mbit/s cannot be: %g is the least, %g the most",
                        lines->name, lines->line, word, 1 / MBIT, FASTEST);
    *rate = (uint64_t)(mbit * MBIT + 0.5);
    lines->at += length;
    return TB_OK;
}

static int row_read(struct tb_matrix *matrix, struct tb_text_lines *lines, uint32_t row, uint32_t first_line)
{
    uint32_t column = 0;
    uint64_t rate;
    int error = TB_OK;
    while (error == TB_OK && tb_text_lines_more(lines) && column < ROWS) {
        error = rate_read(lines, row == column, &rate);
        if (error == TB_OK)
            error = rate_add(&matrix->rates, (size_t)row * matrix->count + column, rate);
        column++;
    }
    if (error == TB_OK && tb_text_lines_more(lines))
        error = tb_error(TB_ERR_LIMIT, "%s:%u: more than %u bandwidths", lines->name, lines->line, ROWS);
    if (error != TB_OK)
        return error;
    if (row == 0)
        matrix->count = column;
    else if (column != matrix->count)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: %u bandwidth%s, but %u in line %u", lines->name, lines->line, column,
                        tb_plural(column), matrix->count, first_line);
    return TB_OK;
}

static int clusters_read(struct tb_matrix *matrix, struct tb_text_lines *lines)
{
    if (matrix->clusters != NULL)
        return tb_error(TB_ERR_ARGUMENT, "%s:%u: a second line of clusters", lines->name, lines->line);
    matrix->clusters = malloc((size_t)(lines->end - lines->at + 1) * sizeof *matrix->clusters);
    if (matrix->clusters == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the clusters of nodes");
    int error = TB_OK;
    while (error == TB_OK && tb_text_lines_more(lines) && matrix->nodes < TB_SEARCH_NODES)
        error = tb_text_lines_number(lines, ROWS, "cluster", &matrix->clusters[matrix->nodes++]);
    if (error == TB_OK && matrix->nodes == 0)
        error = tb_error(TB_ERR_ARGUMENT, "%s:%u: no clusters behind '%s'", lines->name, lines->line, CLUSTER);
    return error;
}

/* Every node has a cluster; what is missing inside one with several nodes, is missed. */
static int matrix_check(struct tb_matrix *matrix, const char *name, uint32_t clusters_line)
{
    uint64_t fastest = 1;
    for (uint32_t i = 0; matrix->clusters != NULL && i < matrix->nodes; i++) {
        uint32_t cluster = matrix->clusters[i];
        if (cluster >= matrix->count)
            return tb_error(TB_ERR_ARGUMENT, "%s:%u: node %u is in cluster %u, but there are %u", name, clusters_line,
                            i, cluster, matrix->count);
    }
    uint32_t *nodes = calloc(matrix->count, sizeof *nodes);
    if (nodes == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u clusters", matrix->count);
    for (uint32_t i = 0; matrix->clusters != NULL && i < matrix->nodes; i++)
        nodes[matrix->clusters[i]]++;
    int error = TB_OK;
    for (size_t i = 0; i < (size_t)matrix->count * matrix->count; i++)
        fastest = matrix->rates[i] > fastest ? matrix->rates[i] : fastest;
    for (uint32_t i = 0; error == TB_OK && i < matrix->count; i++) {
        uint64_t *rate = &matrix->rates[(size_t)i * matrix->count + i];
        if (*rate == 0 && nodes[i] > 1)
            error =
                tb_error(TB_ERR_ARGUMENT, "%s: cluster %u has %u nodes, but no bandwidth within it", name, i, nodes[i]);
        if (*rate == 0)
            *rate = fastest; /* nobody asks for it */
    }
    free(nodes);
    return error;
}

int tb_matrix_parse(struct tb_matrix *matrix, const char *text, const char *name)
{
    struct tb_text_lines lines = {.name = name, .rest = text};
    uint32_t rows = 0, first_line = 0, clusters_line = 0;
    *matrix = (struct tb_matrix){0};
    int error = TB_OK;
    while (error == TB_OK && tb_text_lines_next(&lines)) {
        if (strncmp(lines.at, CLUSTER, strlen(CLUSTER)) == 0) {
            lines.at += strlen(CLUSTER);
            clusters_line = lines.line;
            error = clusters_read(matrix, &lines);
            continue;
        }
        first_line = rows == 0 ? lines.line : first_line;
        error = row_read(matrix, &lines, rows, first_line);
        if (error == TB_OK && ++rows > matrix->count)
            error = tb_error(TB_ERR_ARGUMENT, "%s:%u: not square: a row more than the %u column%s", name, lines.line,
                             matrix->count, tb_plural(matrix->count));
    }
    if (error == TB_OK && rows == 0)
        error = tb_error(TB_ERR_ARGUMENT, "%s: no matrix: there are no bandwidths in it", name);
    if (error == TB_OK && rows < matrix->count)
        error = tb_error(TB_ERR_ARGUMENT, "%s:%u: not square: %u row%s of %u columns", name, lines.line, rows,
                         tb_plural(rows), matrix->count);
    if (error == TB_OK)
        error = matrix_check(matrix, name, clusters_line);
    if (error != TB_OK)
        tb_matrix_close(matrix);
    else if (matrix->clusters == NULL)
        matrix->nodes = matrix->count;
    return error;
}

void tb_matrix_close(struct tb_matrix *matrix)
{
    free(matrix->rates);
    free(matrix->clusters);
    *matrix = (struct tb_matrix){0};
}

int tb_matrix_read(struct tb_matrix *matrix, const char *path)
{
    char *text;
    *matrix = (struct tb_matrix){0};
    int error = tb_text_load(path, &text);
    if (error == TB_OK)
        error = tb_matrix_parse(matrix, text, path);
    free(text);
    return error;
}

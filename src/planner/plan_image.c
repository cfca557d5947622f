#include "planner/plan_image.h"

#include <stdio.h>
#include <string.h>

#include "planner/plan_text.h"
#include "planner/size_class.h"

/* ---- hosts ------------------------------------------------------------------------------------------------------- */

/* Every bit of the result depends on every bit. */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t tb_plan_host_key(const char *place, const char *name, uint32_t slots)
{
    uint64_t hash = tb_hash_text(TB_HASH_BASIS, place);
    hash = tb_hash_text(tb_hash_text(hash, "/"), name);
    return mixed(tb_hash_number(tb_hash_number(hash, '/'), slots));
}

uint64_t tb_plan_digest_add(uint64_t digest, uint64_t key)
{
    return digest + mixed(key);
}

int tb_plan_place_print(const struct tb_places *places, uint32_t place, char *text, size_t size)
{
    size_t at = 0;
    uint32_t depth = places->rows[place].depth;
    *text = 0;
    for (uint32_t i = 1; i <= depth; i++) {
        uint32_t around = tb_places_up(places, place, i);
        int n = snprintf(text + at, size - at, "%s%s", at > 0 ? "/" : "", tb_places_name(places, around));
        if (n < 0 || (size_t)n >= size - at)
            return tb_error(TB_ERR_LIMIT, "the names of the places around a host are longer than %zu bytes", size - 1);
        at += (size_t)n;
    }
    /* What would end a word in the text of a plan: the name of a site may be any line. */
    for (char *c = text; *c != 0; c++)
        *c = (unsigned char)*c <= ' ' || *c == '#' ? '_' : *c;
    return TB_OK;
}

bool tb_plan_has_trees(enum tb_operation o)
{
    return o == TB_OPERATION_BCAST || o == TB_OPERATION_REDUCE || o == TB_OPERATION_ALLREDUCE ||
           o == TB_OPERATION_BARRIER || o == TB_OPERATION_GATHER || o == TB_OPERATION_SCATTER;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int senseless(const char *what)
{
    return tb_error(TB_ERR_PROTOCOL, "the plan makes no sense: %s", what);
}

static bool fits(const struct tb_plan_head *head, uint64_t offset, uint64_t count, size_t size)
{
    return offset % 8 == 0 && offset >= sizeof *head && offset <= head->bytes && count <= (head->bytes - offset) / size;
}

static bool is_name(const char *name)
{
    return memchr(name, 0, TB_PLAN_NAME_BYTES) != NULL;
}

static bool is_sorted(const struct tb_plan_row *a, const struct tb_plan_row *b)
{
    if (a->operation != b->operation)
        return a->operation < b->operation;
    if (a->root != b->root)
        return a->root < b->root;
    return a->to < b->from;
}

static uint64_t numbers_of(uint64_t trees, uint64_t hosts)
{
    return trees + 2 * trees * hosts;
}

static bool are_trees(const struct tb_plan_image *image, const struct tb_plan_row *row)
{
    uint64_t hosts = image->head->host_count, count = numbers_of(row->trees, hosts);
    if (row->trees > TB_FOREST_TREES || row->top >= hosts || *row->name != 0 || row->piece > TB_ARGUMENT_PIECE ||
        !tb_plan_has_trees((enum tb_operation)row->operation) || row->first > image->head->number_count ||
        count > image->head->number_count - row->first)
        return false;
    const uint32_t *shares = image->numbers + row->first, *parents = shares + row->trees;
    for (uint32_t i = 0; i < row->trees; i++)
        if (shares[i] == 0 || shares[i] > TB_PLAN_SHARE_LIMIT)
            return false;
    for (uint64_t i = 0; i < row->trees * hosts; i++)
        if (parents[i] >= hosts)
            return false;
    return true;
}

static bool is_row(const struct tb_plan_image *image, const struct tb_plan_row *row)
{
    if (row->operation >= TB_OPERATION_COUNT || row->from > row->to ||
        (row->root != TB_PLAN_ANY && row->root >= image->head->host_count) || !is_name(row->name))
        return false;
    return row->trees > 0 ? are_trees(image, row) : *row->name != 0;
}

int tb_plan_image_open(struct tb_plan_image *image, const void *bytes, size_t length)
{
    const struct tb_plan_head *h = bytes;
    const char *base = bytes;
    *image = (struct tb_plan_image){0};
    if (length < sizeof *h || h->magic != TB_PLAN_IMAGE_MAGIC || h->format != TB_PLAN_IMAGE_FORMAT)
        return senseless("it is none, or one of another version");
    if (h->bytes != length || length > TB_PLAN_IMAGE_LIMIT)
        return senseless("it has another length than it says");
    if (h->host_count == 0 || h->host_count > TB_PLAN_HOSTS_LIMIT || h->row_count > TB_PLAN_CELLS_LIMIT ||
        !fits(h, h->hosts, h->host_count, sizeof *image->hosts) ||
        !fits(h, h->rows, h->row_count, sizeof *image->rows) ||
        !fits(h, h->numbers, h->number_count, sizeof *image->numbers))
        return senseless("a part of it lies outside");
    struct tb_plan_image view = {.head = h,
                                 .hosts = (const void *)(base + h->hosts),
                                 .rows = (const void *)(base + h->rows),
                                 .numbers = (const void *)(base + h->numbers)};
    uint64_t digest = 0;
    for (uint32_t i = 0; i < h->host_count; i++)
        digest = tb_plan_digest_add(digest, view.hosts[i]);
    if (digest != h->digest)
        return senseless("its hosts have another digest");
    for (uint32_t i = 0; i < h->row_count; i++)
        if (!is_row(&view, &view.rows[i]) || (i > 0 && !is_sorted(&view.rows[i - 1], &view.rows[i])))
            return senseless("an entry says what cannot be");
    *image = view;
    return TB_OK;
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static bool is_for(const struct tb_plan_row *row, enum tb_operation operation, uint32_t root)
{
    return row->operation == (uint32_t)operation && row->root == root;
}

/* Whether a row comes behind where one for this call would begin. */
static bool is_behind(const struct tb_plan_row *row, enum tb_operation operation, uint32_t root, uint64_t bytes)
{
    if (row->operation != (uint32_t)operation)
        return row->operation > (uint32_t)operation;
    if (row->root != root)
        return row->root > root;
    return row->from > bytes;
}

const struct tb_plan_row *tb_plan_image_find(const struct tb_plan_image *image, enum tb_operation operation,
                                             uint32_t root, uint64_t bytes)
{
    uint32_t low = 0, high = image->head->row_count, size_class = tb_size_class(bytes);
    uint64_t least = tb_size_class_least(size_class);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (is_behind(&image->rows[middle], operation, root, least))
            high = middle;
        else
            low = middle + 1;
    }
    const struct tb_plan_row *before = low > 0 ? &image->rows[low - 1] : NULL;
    const struct tb_plan_row *behind = low < image->head->row_count ? &image->rows[low] : NULL;
    if (before != NULL && is_for(before, operation, root) && before->to >= least)
        return before;
    return behind != NULL && is_for(behind, operation, root) && tb_size_class(behind->from) == size_class ? behind
                                                                                                          : NULL;
}

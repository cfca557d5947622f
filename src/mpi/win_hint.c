/* Hints of windows (MPI-5.0, 12.2): what a program asserts about its use of one, and asks for. */
#include "mpi/win_hint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/hint.h"

void tb_win_hints_begin(struct tb_win_hints *hints)
{
    *hints = (struct tb_win_hints){.standby = true, .ordering = TB_WIN_ORDERED};
}

/* ---- values as text ---------------------------------------------------------------------------------------------- */

static void take_flag(const struct tb_info *info, const char *key, const char *yes, const char *no, bool *flag)
{
    const char *value = tb_info_value(info, key);
    if (value != NULL && strcmp(value, yes) == 0)
        *flag = true;
    if (value != NULL && strcmp(value, no) == 0)
        *flag = false;
}

static bool take_number(const struct tb_info *info, const char *key, uint64_t limit, uint64_t *number)
{
    const char *value = tb_info_value(info, key);
    char *end = NULL;
    if (value == NULL || *value < '0' || *value > '9')
        return false;
    errno = 0;
    unsigned long long read = strtoull(value, &end, 10);
    if (errno != 0 || *end != 0 || read > limit)
        return false;
    *number = read;
    return true;
}

static const char *const order_names[] = {"rar", "raw", "war", "waw"}; /* by bit of enum tb_win_order */
#define ORDER_COUNT 4

/* "none", or a list of those that are kept, separated by commas; false: it is something else. */
static bool read_ordering(const char *value, uint8_t *ordering)
{
    uint8_t read = 0;
    if (strcmp(value, "none") == 0) {
        *ordering = 0;
        return true;
    }
    for (const char *at = value;; at++) {
        int i = 0;
        while (i < ORDER_COUNT && strncmp(at, order_names[i], 3) != 0)
            i++;
        if (i == ORDER_COUNT)
            return false;
        read |= (uint8_t)(1u << i);
        at += 3;
        if (*at == 0) {
            *ordering = read;
            return true;
        }
        if (*at != ',')
            return false;
    }
}

static void write_ordering(uint8_t ordering, char text[32])
{
    size_t used = 0;
    snprintf(text, 32, "none");
    for (int i = 0; i < ORDER_COUNT; i++)
        if (ordering >> i & 1)
            used += (size_t)snprintf(text + used, 32 - used, "%s%s", used > 0 ? "," : "", order_names[i]);
}

/* ---- taking them ------------------------------------------------------------------------------------------------- */

void tb_win_hints_take(struct tb_win_hints *hints, const struct tb_info *info, bool making)
{
    uint64_t number;
    take_flag(info, "same_size", "true", "false", &hints->same_size);
    take_flag(info, "same_disp_unit", "true", "false", &hints->same_unit);
    take_flag(info, "accumulate_ops", "same_op", "same_op_no_op", &hints->same_op);
    const char *ordering = tb_info_value(info, "accumulate_ordering");
    if (ordering != NULL)
        read_ordering(ordering, &hints->ordering);
    if (take_number(info, "mpi_accumulate_granularity", INT32_MAX, &number))
        hints->granularity = (uint32_t)number;
    if (!making)
        return;
    take_flag(info, "no_locks", "true", "false", &hints->no_locks);
    take_flag(info, "alloc_shared_noncontig", "true", "false", &hints->noncontig);
    take_flag(info, "tombolo_standby", "yes", "no", &hints->standby);
    if (take_number(info, "mpi_minimum_memory_alignment", UINT64_C(1) << 30, &number) && (number & (number - 1)) == 0)
        hints->alignment = number;
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

int tb_mpi_Win_set_info(MPI_Win win, MPI_Info info)
{
    static const char call[] = "MPI_Win_set_info";
    struct tb_win *w = tb_win_find(win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    const struct tb_info *i = tb_info_find(info);
    if (i == NULL)
        return tb_win_raise_argument(w, MPI_ERR_INFO, call, 2, "info", "%s",
                                     info == MPI_INFO_NULL ? "it is MPI_INFO_NULL"
                                                           : "this is no handle of an info object, or it was freed");
    tb_win_hints_take(&w->hints, i, false);
    return MPI_SUCCESS;
}

static const char *flag_text(bool flag)
{
    return flag ? "true" : "false";
}

static int put_hints(const struct tb_win *w, struct tb_info *info)
{
    const struct tb_win_hints *h = &w->hints;
    char ordering[32], granularity[16], alignment[24];
    write_ordering(h->ordering, ordering);
    snprintf(granularity, sizeof granularity, "%u", h->granularity);
    snprintf(alignment, sizeof alignment, "%llu", (unsigned long long)h->alignment);
    bool allocates = w->flavor == MPI_WIN_FLAVOR_ALLOCATE || w->flavor == MPI_WIN_FLAVOR_SHARED;
    const struct {
        const char *key, *value;
        bool told;
    } rows[] = {
        {"no_locks", flag_text(h->no_locks), true},
        {"accumulate_ordering", ordering, true},
        {"accumulate_ops", h->same_op ? "same_op" : "same_op_no_op", true},
        {"mpi_accumulate_granularity", granularity, true},
        {"same_size", flag_text(h->same_size), true},
        {"same_disp_unit", flag_text(h->same_unit), true},
        {"alloc_shared_noncontig", flag_text(h->noncontig), allocates},
        {"mpi_minimum_memory_alignment", alignment, allocates && h->alignment > 0},
        {"tombolo_standby", h->standby ? "yes" : "no", true},
    };
    int error = tb_memory_kinds_put(info, w->comm->session);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && error == TB_OK; i++)
        if (rows[i].told)
            error = tb_info_put(info, rows[i].key, rows[i].value);
    return error;
}

int tb_mpi_Win_get_info(MPI_Win win, MPI_Info *info_used)
{
    static const char call[] = "MPI_Win_get_info";
    struct tb_win *w = tb_win_find(win);
    if (w == NULL)
        return tb_raise_win(call, 1, "win", win);
    if (info_used == NULL)
        return tb_win_raise_null(w, call, 2, "info_used");
    struct tb_info *made = tb_info_new();
    int error = made != NULL ? put_hints(w, made) : TB_ERR_MEMORY;
    if (error < 0) {
        if (made != NULL)
            tb_info_free(made);
        return tb_win_raise_below(w, error, call);
    }
    *info_used = tb_info_handle(made);
    return MPI_SUCCESS;
}

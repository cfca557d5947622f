#include "job/start_hints.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"

int tb_first_errhandler_find(const char *name)
{
    static const char *const names[] = {
        [TB_FIRST_FATAL] = "mpi_errors_are_fatal",
        [TB_FIRST_ABORT] = "mpi_errors_abort",
        [TB_FIRST_RETURN] = "mpi_errors_return",
    };
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    tb_error(TB_ERR_ARGUMENT, "should be mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return");
    return -1;
}

/* ---- kinds of memory --------------------------------------------------------------------------------------------- */

static bool is_word(const char *at, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = at[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
            return false;
    }
    return length > 0;
}

int tb_memory_kinds_check(const char *asked)
{
    const char *at = asked;
    bool right = strlen(asked) < TB_MEMORY_KINDS_ROOM - sizeof TB_MEMORY_KINDS;
    while (right && *asked != 0) {
        size_t length = strcspn(at, ":,");
        right = is_word(at, length);
        if (at[length] == 0)
            break;
        at += length + 1;
    }
    return right
               ? TB_OK
               : tb_error(TB_ERR_ARGUMENT, "should be kinds of memory with commas between, as in system,mpi:alloc_mem");
}

static bool is_restrictor(const char *at, size_t length)
{
    static const char *const known[] = {"alloc_mem", "win_allocate", "win_allocate_shared"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i]) == length && memcmp(known[i], at, length) == 0)
            return true;
    return false;
}

/* Only what MPI allocates comes in kinds of kinds: by the call that it was allocated with. */
static bool is_offered(const char *kind, size_t length)
{
    if (length < 4 || memcmp(kind, "mpi:", 4) != 0)
        return false; /* or without a restrictor, and in the list already */
    for (size_t at = 4; at <= length;) {
        size_t end = at;
        while (end < length && kind[end] != ':')
            end++;
        if (!is_restrictor(kind + at, end - at))
            return false;
        at = end + 1;
    }
    return true;
}

static bool is_listed(const char *list, const char *kind, size_t length)
{
    while (*list != 0) {
        size_t n = strcspn(list, ",");
        if (n == length && memcmp(list, kind, length) == 0)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

void tb_memory_kinds_offer(const char *asked, char offered[TB_MEMORY_KINDS_ROOM])
{
    size_t used = (size_t)snprintf(offered, TB_MEMORY_KINDS_ROOM, "%s", TB_MEMORY_KINDS);
    for (const char *at = asked != NULL ? asked : ""; *at != 0;) {
        size_t length = strcspn(at, ",");
        if (is_offered(at, length) && !is_listed(offered, at, length) && used + length + 2 <= TB_MEMORY_KINDS_ROOM)
            used += (size_t)snprintf(offered + used, TB_MEMORY_KINDS_ROOM - used, ",%.*s", (int)length, at);
        at += length + (at[length] == ',');
    }
}

int tb_start_hints_check(void)
{
    if (tb_first_errhandler_find(tb_param.initial_errhandler) < 0)
        return tb_error(TB_ERR_ARGUMENT, "%s=%s: %s", TB_FIRST_ERRHANDLER_VARIABLE, tb_param.initial_errhandler,
                        tb_error_story());
    if (tb_memory_kinds_check(tb_param.memory_alloc_kinds) != TB_OK)
        return tb_error(TB_ERR_ARGUMENT, "%s=%s: %s", TB_MEMORY_KINDS_VARIABLE, tb_param.memory_alloc_kinds,
                        tb_error_story());
    return TB_OK;
}

/* Every option of `mpiexec`, our own and those that users of MPICH and Open MPI have in their fingers: how many values
 * follow it, and what becomes of it. docs/guide/other-launchers.md shows the same table to users. Constant. */
#ifndef TB_LAUNCH_OPTIONS_TABLE_H
#define TB_LAUNCH_OPTIONS_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum tb_option {
    TB_OPTION_COUNT,
    TB_OPTION_HOST,
    TB_OPTION_HOST_FILE,
    TB_OPTION_DEFAULT_HOST_FILE,
    TB_OPTION_PER_HOST,
    TB_OPTION_ONE_PER_HOST,
    TB_OPTION_MAP,
    TB_OPTION_MAP_NODE,
    TB_OPTION_MAP_SLOT,
    TB_OPTION_RANK_BY,
    TB_OPTION_NO_OVERSUBSCRIBE,
    TB_OPTION_NO_LOCAL,
    TB_OPTION_RANK_FILE,
    TB_OPTION_BIND,
    TB_OPTION_BIND_CORE,
    TB_OPTION_BIND_SOCKET,
    TB_OPTION_BIND_CPUS,
    TB_OPTION_BIND_WIDTH,
    TB_OPTION_BIND_REPORT,
    TB_OPTION_KEEP_GOING,
    TB_OPTION_DISPLAY,
    TB_OPTION_DISPLAY_MAP,
    TB_OPTION_PLAN_ONLY,
    TB_OPTION_VARIABLE,
    TB_OPTION_VARIABLE_PAIR,
    TB_OPTION_VARIABLE_FOR_ALL,
    TB_OPTION_VARIABLES,
    TB_OPTION_VARIABLES_FOR_ALL,
    TB_OPTION_ALL_VARIABLES,
    TB_OPTION_NO_VARIABLES,
    TB_OPTION_DIRECTORY,
    TB_OPTION_PATH,
    TB_OPTION_FIRST_ERRHANDLER,
    TB_OPTION_MEMORY_KINDS,
    TB_OPTION_UNIVERSE,
    TB_OPTION_CONFIG_FILE,
    TB_OPTION_TIMEOUT,
    TB_OPTION_PTY,
    TB_OPTION_BUFFERING,
    TB_OPTION_TAG,
    TB_OPTION_PATTERN,
    TB_OPTION_TIMES,
    TB_OPTION_MERGE,
    TB_OPTION_OUTPUT,
    TB_OPTION_OUTPUT_FILES,
    TB_OPTION_OUT_PATTERN,
    TB_OPTION_ERR_PATTERN,
    TB_OPTION_INPUT,
    TB_OPTION_LAUNCHER,
    TB_OPTION_LAUNCHER_EXEC,
    TB_OPTION_LAB,
    TB_OPTION_GRID,
    TB_OPTION_ALLOW_MISSING,
    TB_OPTION_MANUAL,
    TB_OPTION_PLAN,
    TB_OPTION_MEET,
    TB_OPTION_SET,
    TB_OPTION_ENCRYPT,
    TB_OPTION_MCA,
    TB_OPTION_INTERFACE,
    TB_OPTION_VERBOSE,
    TB_OPTION_DEBUG,
    TB_OPTION_PROGRAM,
    TB_OPTION_PREFIX,
    TB_OPTION_OWN_PROGRAM,
    TB_OPTION_HELP,
    TB_OPTION_VERSION,
    TB_OPTION_NONE /* nothing is done: it is silent, ignored or refused */
};

enum tb_option_kind {
    TB_OPTION_OURS,    /* works */
    TB_OPTION_SILENT,  /* means nothing here, and nobody misses it */
    TB_OPTION_IGNORED, /* means nothing here; one line says so */
    TB_OPTION_REFUSED  /* the text says what to write instead */
};

struct tb_option_row {
    const char *name; /* without dashes; one or two are the same */
    uint8_t option;   /* enum tb_option */
    uint8_t values;
    uint8_t kind;     /* enum tb_option_kind */
    const char *text; /* what it does here, or what to write instead */
};

const struct tb_option_row *tb_option_rows(size_t *count);
const struct tb_option_row *tb_option_find(const char *name, size_t length); /* NULL: there is none */

#endif

/* tombolo lab: an emulated grid on this machine. */
#include "command.h"
#include "command_file.h"
#include "command_words.h"
#include "help_texts.h"
#include "lab_report.h"

#include "lab/lab.h"
#include "remote/remote.h"
#include "picture/picture.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_USAGE   2
#define EXIT_NO_HOST 255 /* as ssh */
#define WORDS        24

static const char usage[] = TB_HELP_TOMBOLO_LAB;

static int fail(int code)
{
    fprintf(stderr, "tombolo lab: %s\n", tb_error_story());
    return code;
}

static int misuse(const char *text)
{
    fprintf(stderr, "tombolo lab: %s (tombolo lab --help shows more)\n", text);
    return EXIT_USAGE;
}

/* "--name X" or "--name=X" at *at: its value, and *at stands behind it. */
static const char *value_of(char ***at, const char *name)
{
    char **word = *at;
    size_t length = strlen(name);
    if (strncmp(*word, name, length) != 0)
        return NULL;
    if ((*word)[length] == '=') {
        *at = word + 1;
        return *word + length + 1;
    }
    if ((*word)[length] != 0 || word[1] == NULL)
        return NULL;
    *at = word + 2;
    return word[1];
}

/* ---- up and run -------------------------------------------------------------------------------------------------- */

struct building {
    const char *file;
    struct tb_lab_wish wish;
    char **command; /* behind "--"; NULL: none */
};

static int read_building(struct building *building, char **words)
{
    *building = (struct building){0};
    while (*words != NULL) {
        const char *value = value_of(&words, "--name");
        const char *congestion = value == NULL ? value_of(&words, "--congestion") : NULL;
        if (value != NULL) {
            building->wish.name = value;
        } else if (congestion != NULL) {
            building->wish.congestion = congestion;
        } else if (strcmp(*words, "--") == 0) {
            building->command = words + 1;
            break;
        } else if (**words == '-') {
            return tb_error(TB_ERR_ARGUMENT, "there is no option %s here; only --name NAME and --congestion NAME",
                            *words);
        } else if (building->file != NULL) {
            return tb_error(TB_ERR_ARGUMENT, "what is \"%s\"? A command stands behind --", *words);
        } else {
            building->file = *words++;
        }
    }
    return building->file != NULL ? TB_OK : tb_error(TB_ERR_ARGUMENT, "which grid file?");
}

static int build(const struct tb_grid *grid, const struct building *building, char *name)
{
    char note[TB_LAB_NOTE_BYTES];
    int rc = tb_lab_up(grid, &building->wish, name, note);
    if (rc == TB_OK && *note != 0)
        fprintf(stderr, "tombolo lab: %s\n", note);
    return rc;
}

static int up(char **words)
{
    struct building building;
    struct tb_grid grid;
    char name[TB_LAB_NAME_BYTES];
    int rc = read_building(&building, words);
    if (rc == TB_OK && building.command != NULL)
        rc = tb_error(TB_ERR_ARGUMENT, "`lab up` runs no command; `lab run` does");
    if (rc != TB_OK)
        return fail(EXIT_USAGE);
    rc = tb_grid_load(&grid, building.file);
    if (rc != TB_OK)
        return fail(1);
    building.wish.stay = true;
    rc = build(&grid, &building, name);
    tb_grid_close(&grid);
    if (rc != TB_OK)
        return fail(1);
    printf("%s\n", name);
    return 0;
}

/* A lab ends with us, but its name should be free when we are gone. */
void tb_command_leave_lab(const char *who, const char *lab, int code)
{
    if (tb_lab_down(lab) != TB_OK && code == 128 + SIGKILL)
        fprintf(stderr, "%s: the lab %s was taken down while the command ran in it\n", who, lab);
}

static int execute(void *context)
{
    char **words = context, *path = tb_program_find(words[0], getenv("PATH"), NULL);
    char host[256] = "localhost", why[512];
    signal(SIGXFSZ, SIG_DFL); /* as it was before main */
    if (path != NULL)
        execv(path, words);
    int error = errno;
    snprintf(why, sizeof why, "%s", strerror(error));
    if (path != NULL && error == ENOEXEC) {
        struct tb_executable x;
        if (tb_executable_read(path, &x) == TB_OK && x.kind == TB_EXECUTABLE_TEXT)
            execvp(words[0], words); /* hands it to a shell, as it would any other bytes */
        gethostname(host, sizeof host - 1);
        tb_executable_explain(path, words[0], host, why, sizeof why);
    }
    fprintf(stderr, "tombolo lab: cannot run %s: %s\n", words[0], why);
    free(path);
    return error == ENOENT ? 127 : 126;
}

static int run(char **words)
{
    struct building building;
    struct tb_grid grid;
    char name[TB_LAB_NAME_BYTES];
    int rc = read_building(&building, words), status = 1;
    if (rc == TB_OK && (building.command == NULL || building.command[0] == NULL))
        rc = tb_error(TB_ERR_ARGUMENT, "which command? As in: tombolo lab run GRID.yaml -- mpiexec ...");
    if (rc != TB_OK)
        return fail(EXIT_USAGE);
    rc = tb_grid_load(&grid, building.file);
    if (rc == TB_OK)
        rc = build(&grid, &building, name);
    if (rc != TB_OK)
        return fail(1);
    /* It may be a shell; in a pipeline others need the terminal too. */
    rc = tb_lab_enter(name, TB_LAB_CONSOLE, execute, building.command, isatty(STDOUT_FILENO), &status);
    int code = rc == TB_OK ? status : fail(1);
    tb_command_leave_lab("tombolo lab", name, rc == TB_OK ? code : 0);
    return code;
}

/* ---- exec -------------------------------------------------------------------------------------------------------- */

/* As ssh: all words become one command for a shell. */
static char *join(char **words)
{
    size_t length = 1;
    for (char **word = words; *word != NULL; word++)
        length += strlen(*word) + 1;
    char *text = calloc(1, length), *at = text;
    for (char **word = words; text != NULL && *word != NULL; word++) {
        if (word != words)
            *at++ = ' ';
        at = stpcpy(at, *word);
    }
    return text;
}

static int shell(void *context)
{
    char *own = getenv("SHELL");
    char *command = context;
    char *const interactive[] = {own != NULL && *own != 0 ? own : (char *)"/bin/sh", NULL};
    char *const words[] = {(char *)"sh", (char *)"-c", command, NULL};
    signal(SIGXFSZ, SIG_DFL);
    if (command == NULL)
        execv(interactive[0], interactive);
    else
        execv("/bin/sh", words);
    fprintf(stderr, "tombolo lab: cannot run a shell: %s\n", strerror(errno));
    return 127;
}

/* Options that launchers give to ssh and that mean nothing here, written as ssh reads them: several letters in a word,
 * and for those of the second list a value in the rest of the word or in the next one. */
static bool skip_shell_option(char ***words)
{
    const char *letter = **words;
    if (*letter++ != '-' || *letter == 0)
        return false;
    while (*letter != 0 && strchr("46AaCfGgKkMNnqsTtVvXxYy", *letter) != NULL)
        letter++;
    if (*letter == 0) {
        *words += 1;
        return true;
    }
    if (strchr("BbcDEeFIiJLlmOopQRSWw", *letter) == NULL || (letter[1] == 0 && (*words)[1] == NULL))
        return false;
    *words += letter[1] != 0 ? 1 : 2;
    return true;
}

static int exec(char **words)
{
    const char *lab = NULL, *value;
    char name[TB_LAB_NAME_BYTES];
    for (; *words != NULL && **words == '-';) {
        if ((value = value_of(&words, "--lab")) != NULL)
            lab = value;
        else if (strcmp(*words, "--") == 0)
            words++;
        else if (tb_command_help(words, usage))
            return 0;
        else if (!skip_shell_option(&words))
            return misuse("exec [--lab NAME] HOST [COMMAND]");
    }
    if (*words == NULL)
        return misuse("on which host? exec [--lab NAME] HOST [COMMAND]");
    const char *host = strrchr(*words, '@');
    host = host != NULL ? host + 1 : *words;
    words++;
    while (*words != NULL && skip_shell_option(&words))
        ;
    if (*words != NULL && strcmp(*words, "--") == 0)
        words++;
    char *command = *words != NULL ? join(words) : NULL;
    int status = 1, rc = tb_lab_choose(lab, name);
    if (rc == TB_OK)
        rc = tb_lab_enter(name, host, shell, command, command == NULL, &status);
    free(command);
    return rc == TB_OK ? status : fail(EXIT_NO_HOST);
}

/* ---- ls and down ------------------------------------------------------------------------------------------------- */

static void print_lab(void *context, const char *name, const char *about)
{
    printf("%-20s %s\n", name, about);
}

struct names {
    uint32_t count;
    char all[256][TB_LAB_NAME_BYTES];
};

static void gather(void *context, const char *name, const char *about)
{
    struct names *names = context;
    if (names->count < sizeof names->all / sizeof names->all[0])
        snprintf(names->all[names->count++], TB_LAB_NAME_BYTES, "%s", name);
}

static int down(char **words)
{
    char name[TB_LAB_NAME_BYTES];
    if (*words != NULL && strcmp(*words, "--all") == 0) {
        static struct names names;
        int code = 0;
        tb_lab_list(gather, &names);
        for (uint32_t i = 0; i < names.count; i++)
            if (tb_lab_down(names.all[i]) != TB_OK)
                code = fail(1);
        return code;
    }
    const char *wanted = NULL;
    if (*words != NULL) {
        wanted = value_of(&words, "--lab");
        if (wanted == NULL)
            wanted = *words++;
    }
    if (*words != NULL || (wanted != NULL && *wanted == '-'))
        return misuse("down [NAME | --all]");
    int rc = tb_lab_choose(wanted, name);
    if (rc == TB_OK)
        rc = tb_lab_down(name);
    return rc == TB_OK ? 0 : fail(1);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

struct unit {
    const char *name;
    double factor;
};

/* A number of this unit, or with none of the last one; false: it is neither. */
static bool read_quantity(const char *text, const struct unit *units, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end == text || !isfinite(*value) || *value < 0)
        return false;
    while (*end == ' ')
        end++;
    while (units->name[0] != 0 && strcmp(end, units->name) != 0)
        units++;
    *value *= units->factor;
    return strcmp(end, units->name) == 0;
}

/* "80ms", "0.5 s", "200us"; a mere number is in milliseconds, as in the grid file. */
static int read_time(const char *option, const char *text, uint64_t *ns)
{
    static const struct unit units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 1e6}};
    double value;
    if (!read_quantity(text, units, &value) || value > 3600e9)
        return tb_error(TB_ERR_ARGUMENT, "%s %s: should be a time such as 80ms, 200us or 1s, of at most an hour",
                        option, text);
    *ns = (uint64_t)(value + 0.5);
    return TB_OK;
}

/* "5%" or a part of one: 0.05. */
static int read_share(const char *option, const char *text, uint64_t *ppm)
{
    char *end;
    double value = strtod(text, &end);
    double scale = end != text && strcmp(end, "%") == 0 ? 1e4 : 1e6;
    if (end == text || (*end != 0 && strcmp(end, "%") != 0) || !isfinite(value) || value < 0 || value * scale > 1e6)
        return tb_error(TB_ERR_ARGUMENT, "%s %s: should be a share such as 5%% or 0.05", option, text);
    *ppm = (uint64_t)(value * scale + 0.5);
    return TB_OK;
}

/* In Mbit/s, as in the grid file; 0: not limited. */
static int read_bandwidth(const char *option, const char *text, uint64_t *bits)
{
    static const struct unit units[] = {{"bit/s", 1},    {"kbit/s", 1e3},  {"Mbit/s", 1e6},
                                        {"Gbit/s", 1e9}, {"Tbit/s", 1e12}, {"", 1e6}};
    double value;
    if (!read_quantity(text, units, &value) || value > 1e12 || (value > 0 && value < 1e3))
        return tb_error(TB_ERR_ARGUMENT,
                        "%s %s: should be a number of Mbit/s, or with a unit such as 64kbit/s or 1Gbit/s", option,
                        text);
    *bits = (uint64_t)(value + 0.5);
    return TB_OK;
}

/* Bytes, as in the grid file; 0: as without one. */
static int read_bytes(const char *option, const char *text, uint64_t *bytes)
{
    static const struct unit units[] = {{"k", 0x1p10}, {"m", 0x1p20}, {"g", 0x1p30}, {"", 1}};
    double value;
    if (!read_quantity(text, units, &value) || value > 0x1p40)
        return tb_error(TB_ERR_ARGUMENT, "%s %s: should be a number of bytes such as 64k or 1m", option, text);
    *bytes = (uint64_t)(value + 0.5);
    return TB_OK;
}

static const struct {
    const char *option, *name;
    int (*read)(const char *option, const char *text, uint64_t *value);
} settings[] = {{"--latency", "latency", read_time},
                {"--jitter", "jitter", read_time},
                {"--loss", "loss", read_share},
                {"--reorder", "reorder", read_share},
                {"--bandwidth", "bandwidth", read_bandwidth},
                {"--queue", "queue", read_bytes}};

struct change {
    const char *lab;
    const char *words[WORDS];
    char texts[WORDS][160];
    uint32_t count, set;
};

static int add_word(struct change *change, const char *name, const char *value)
{
    if (change->count == WORDS)
        return tb_error(TB_ERR_LIMIT, "too many options");
    snprintf(change->texts[change->count], sizeof change->texts[0], "%s%s", name, value);
    change->words[change->count] = change->texts[change->count];
    change->count++;
    return TB_OK;
}

/* One option with its value; TB_AGAIN: it is none. */
static int read_option(struct change *change, char ***words, bool sets)
{
    const char *value, *option = **words;
    if ((value = value_of(words, "--lab")) != NULL) {
        change->lab = value;
        return TB_OK;
    }
    if ((value = value_of(words, "--from")) != NULL)
        return add_word(change, "from=", value);
    if ((value = value_of(words, "--to")) != NULL)
        return add_word(change, "to=", value);
    for (size_t i = 0; sets && i < sizeof settings / sizeof settings[0]; i++) {
        if ((value = value_of(words, settings[i].option)) == NULL)
            continue;
        uint64_t number;
        char text[160];
        int rc = settings[i].read(settings[i].option, value, &number);
        if (rc != TB_OK)
            return rc;
        snprintf(text, sizeof text, "%s=%llu", settings[i].name, (unsigned long long)number);
        change->set++;
        return add_word(change, text, "");
    }
    return *option == '-' ? tb_error(TB_ERR_ARGUMENT, "there is no option %s here, or it lacks its value", option)
                          : TB_AGAIN;
}

static int fault(const char *verb, char **words)
{
    static struct change change;
    static char answer[TB_LAB_ANSWER_BYTES];
    char name[TB_LAB_NAME_BYTES];
    bool sets = strcmp(verb, "set") == 0;
    const char *target = NULL;
    change = (struct change){.count = 2}; /* the verb and what it is about */
    int rc = TB_OK;
    while (*words != NULL && rc == TB_OK) {
        rc = read_option(&change, &words, sets);
        if (rc == TB_AGAIN && target == NULL) {
            target = *words++;
            rc = TB_OK;
        } else if (rc == TB_AGAIN) {
            rc = tb_error(TB_ERR_ARGUMENT, "one link or host at a time; what is \"%s\"?", *words);
        }
    }
    if (rc == TB_OK && target == NULL)
        rc = tb_error(TB_ERR_ARGUMENT, "which link or host?");
    if (rc == TB_OK && sets && change.set == 0)
        rc = tb_error(TB_ERR_ARGUMENT, "what should be set? As in: tombolo lab set %s --latency 80ms", target);
    if (rc != TB_OK)
        return fail(EXIT_USAGE);
    change.words[0] = verb;
    change.words[1] = target;
    rc = tb_lab_choose(change.lab, name);
    if (rc == TB_OK)
        rc = tb_lab_ask(name, change.words, change.count, answer, sizeof answer);
    return rc == TB_OK ? 0 : fail(1);
}

static int report(char **words)
{
    static char answer[TB_LAB_ANSWER_BYTES];
    char name[TB_LAB_NAME_BYTES];
    const char *lab = NULL, *value, *request[] = {"report"};
    bool reset = false, raw = false;
    while (*words != NULL) {
        if ((value = value_of(&words, "--lab")) != NULL)
            lab = value;
        else if (strcmp(*words, "--reset") == 0 && !reset)
            reset = *words++ != NULL;
        else if (strcmp(*words, "--raw") == 0 && !raw)
            raw = *words++ != NULL;
        else
            return misuse("report [--lab NAME] [--reset] [--raw]");
    }
    int rc = tb_lab_choose(lab, name);
    if (rc == TB_OK)
        rc = tb_lab_ask(name, request, 1, answer, sizeof answer);
    if (rc != TB_OK)
        return fail(1);
    if (raw)
        fputs(answer, stdout);
    else
        tb_lab_report_print(answer);
    request[0] = "reset";
    if (reset && tb_lab_ask(name, request, 1, answer, sizeof answer) != TB_OK)
        return fail(1);
    return 0;
}

/* ---- draw -------------------------------------------------------------------------------------------------------- */

static int draw(char **words)
{
    struct tb_grid grid;
    const char *file = NULL, *to = "-", *value;
    while (*words != NULL) {
        if ((value = value_of(&words, "-o")) != NULL)
            to = value;
        else if (**words == '-' || file != NULL)
            return misuse("draw GRID.yaml [-o FILE.svg]");
        else
            file = *words++;
    }
    if (file == NULL)
        return misuse("draw GRID.yaml [-o FILE.svg]");
    if (tb_grid_load(&grid, file) != TB_OK)
        return fail(1);
    FILE *out;
    int rc = tb_command_file_open(to, &out);
    if (rc == TB_OK)
        rc = tb_command_file_close(out, to, tb_picture_grid(out, &grid));
    tb_grid_close(&grid);
    return rc == TB_OK ? 0 : fail(1);
}

int tb_command_lab(char **words)
{
    const char *command = words[0] != NULL ? words[0] : "";
    bool asks = command[0] != 0 && strcmp(command, "exec") != 0; /* what help is asked of */
    if (tb_command_help(words, usage) || (asks && tb_command_help(words + 1, usage)))
        return 0;
    if (strcmp(command, "help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (strcmp(command, "up") == 0)
        return up(words + 1);
    if (strcmp(command, "run") == 0)
        return run(words + 1);
    if (strcmp(command, "exec") == 0)
        return exec(words + 1);
    if (strcmp(command, "ls") == 0)
        return words[1] != NULL ? misuse("ls") : (tb_lab_list(print_lab, NULL), 0);
    if (strcmp(command, "down") == 0)
        return down(words + 1);
    if (strcmp(command, "cut") == 0 || strcmp(command, "heal") == 0 || strcmp(command, "set") == 0)
        return fault(command, words + 1);
    if (strcmp(command, "report") == 0)
        return report(words + 1);
    if (strcmp(command, "draw") == 0)
        return draw(words + 1);
    if (*command != 0)
        fprintf(stderr, "tombolo lab: there is no command \"%s\"\n", command);
    fputs(usage, stderr);
    return EXIT_USAGE;
}

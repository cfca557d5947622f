#include "planner/preference.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/size_class.h"

#define RULES_BYTES 4000u /* of a file of rules without its comments */

/* ---- operations -------------------------------------------------------------------------------------------------- */

void tb_operation_word(enum tb_operation operation, char *word, size_t size)
{
    snprintf(word, size, "%s", tb_operation_name(operation) + strlen("MPI_"));
    for (; *word != 0; word++)
        *word = (char)tolower((unsigned char)*word);
}

enum tb_operation tb_operation_read(const char *text, size_t length)
{
    for (int i = 0; i < TB_OPERATION_COUNT; i++) {
        char word[64];
        tb_operation_word((enum tb_operation)i, word, sizeof word);
        if (strlen(word) == length && strncasecmp(word, text, length) == 0)
            return (enum tb_operation)i;
    }
    return TB_OPERATION_COUNT;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* The names of an operation's algorithms, each once; of those alone that are reproducible, if that is asked for. */
static void names_list(enum tb_operation operation, bool reproducible, char *text, size_t size)
{
    size_t at = 0;
    *text = 0;
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        const struct tb_algorithm *row = tb_catalogue[i];
        if (row->operation != operation || at >= size || (reproducible && !tb_algorithm_reproducible(row)))
            continue;
        at += (size_t)snprintf(text + at, size - at, "%s%s%s%s", at > 0 ? ", " : "", row->name,
                               row->argument != NULL ? ":" : "", row->argument != NULL ? row->argument : "");
    }
}

static const struct tb_algorithm *name_find(enum tb_operation operation, const char *name)
{
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        if (tb_catalogue[i]->operation == operation && strcmp(tb_catalogue[i]->name, name) == 0)
            return tb_catalogue[i];
    return NULL;
}

/* A number, or two lengths of pieces, of narrow stages and of wide ones. */
static int argument_read(struct tb_preference *preference, const struct tb_algorithm *row, const char *text,
                         const char *from)
{
    bool pieces = strcmp(row->argument, "pieces") == 0;
    uint64_t narrow = 0, wide = 0;
    const char *end = tb_number_read(from, &narrow);
    narrow = narrow > TB_ARGUMENT_PIECE ? TB_ARGUMENT_PIECE : narrow;
    preference->argument = narrow;
    if (pieces && end != NULL && *end == '/') {
        end = tb_number_read(end + 1, &wide);
        preference->argument = tb_argument_of(narrow, wide);
        if (end != NULL && *end == 0 && preference->argument == 0)
            return tb_error(TB_ERR_ARGUMENT,
                            "\"%s\": of two lengths of pieces one should be the other times a power of two up to %u",
                            text, 1u << TB_ARGUMENT_JOIN);
    }
    if (end == NULL || *end != 0 || preference->argument == 0)
        return tb_error(TB_ERR_ARGUMENT, "\"%s\": the argument of %s (%s) should be a number, such as %s:64k%s", text,
                        row->name, row->argument, row->name, pieces ? ", or two, such as 16k/64k" : "");
    return TB_OK;
}

int tb_preference_read(struct tb_preference *preference, enum tb_operation operation, const char *text)
{
    char names[512];
    *preference = (struct tb_preference){.argument = 0};
    size_t length = strcspn(text, ":");
    if (*text == 0)
        return TB_OK;
    snprintf(preference->name, sizeof preference->name, "%.*s", (int)length, text);
    const struct tb_algorithm *row = length < sizeof preference->name ? name_find(operation, preference->name) : NULL;
    if (row == NULL) {
        names_list(operation, false, names, sizeof names);
        return tb_error(TB_ERR_ARGUMENT, "%s has no algorithm \"%.*s\"; there are: %s", tb_operation_name(operation),
                        (int)length, text, names);
    }
    if (text[length] == 0)
        return TB_OK;
    if (row->argument == NULL)
        return tb_error(TB_ERR_ARGUMENT, "the algorithm %s of %s takes no argument; \"%s\" gives one", row->name,
                        tb_operation_name(operation), text);
    return argument_read(preference, row, text, text + length + 1);
}

void tb_preference_print(const struct tb_preference *preference, char *text, size_t size)
{
    int length = snprintf(text, size, "%s", preference->name);
    if (tb_argument_piece(preference->argument) == 0 || length + 1 >= (int)size)
        return;
    text[length] = ':';
    tb_argument_print(preference->argument, true, text + length + 1, size - (size_t)length - 1);
}

const struct tb_algorithm *tb_preference_find(const struct tb_preference *preference, const struct tb_collective *c)
{
    for (int i = 0; *preference->name != 0 && tb_catalogue[i] != NULL; i++)
        if (strcmp(tb_catalogue[i]->name, preference->name) == 0 && tb_algorithm_fits(tb_catalogue[i], c))
            return tb_catalogue[i];
    return NULL;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static const char *condition_read(const char *text, struct tb_condition *condition)
{
    static const char *const words[] = {"ranks", "hosts", "bytes"};
    static const char *const signs[] = {"<", "<=", ">=", ">", "="};
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if (strncmp(text, words[i], n) != 0)
            continue;
        size_t sign = strspn(text + n, "<>=");
        for (int k = 0; k < 5; k++)
            if (strlen(signs[k]) == sign && strncmp(text + n, signs[k], sign) == 0) {
                condition->what = i;
                condition->how = k;
                return tb_number_read(text + n + sign, &condition->than);
            }
    }
    return NULL;
}

/* One rule, which is changed. */
static int rule_read(struct tb_rule *rule, char *line)
{
    char *rest = NULL, *word = strtok_r(line, " \t\r", &rest), *next;
    *rule = (struct tb_rule){.operation = tb_operation_read(word, strlen(word))};
    if (rule->operation == TB_OPERATION_COUNT)
        return tb_error(TB_ERR_ARGUMENT, "there is no operation \"%s\"; one is called bcast, for example", word);
    for (word = strtok_r(NULL, " \t\r", &rest); word != NULL; word = next) {
        next = strtok_r(NULL, " \t\r", &rest);
        if (next == NULL)
            return tb_preference_read(&rule->preference, rule->operation, word);
        if (rule->condition_count == TB_CONDITIONS_LIMIT)
            return tb_error(TB_ERR_LIMIT, "a rule has at most %u conditions", TB_CONDITIONS_LIMIT);
        const char *end = condition_read(word, &rule->conditions[rule->condition_count++]);
        if (end == NULL || *end != 0)
            return tb_error(TB_ERR_ARGUMENT,
                            "\"%s\" should be a condition such as ranks>=8, hosts<4 or bytes<64k; the last word is "
                            "the algorithm",
                            word);
    }
    return tb_error(TB_ERR_ARGUMENT, "the algorithm is missing; a rule is: bcast ranks>=8 bytes<64k chain:16k");
}

int tb_rules_read(struct tb_rules *rules, const char *text, const char *file)
{
    unsigned number = 1;
    rules->count = 0;
    while (*text != 0) {
        size_t length = strcspn(text, "\n;"), kept = strcspn(text, "#\n;");
        char line[256];
        size_t blank = strspn(text, " \t\r");
        if (kept >= sizeof line)
            return tb_error(TB_ERR_LIMIT, "%s:%u: the rule is too long", file, number);
        snprintf(line, sizeof line, "%.*s", (int)kept, text);
        if (blank < kept) {
            if (rules->count == TB_RULES_LIMIT)
                return tb_error(TB_ERR_LIMIT, "%s:%u: there are more than %u rules", file, number, TB_RULES_LIMIT);
            int error = rule_read(&rules->rules[rules->count], line);
            if (error != TB_OK)
                return tb_error(error, "%s:%u: %s", file, number, tb_error_story());
            rules->count++;
        }
        text += length + (text[length] != 0);
        number++;
    }
    return TB_OK;
}

/* A choice is made for a whole class of sizes, so a bound stands for its class. */
static bool condition_holds(const struct tb_condition *c, uint64_t ranks, uint64_t hosts, uint64_t bytes)
{
    bool of_size = c->what == TB_CONDITION_BYTES;
    uint64_t value = of_size ? tb_size_class(bytes) : c->what == TB_CONDITION_RANKS ? ranks : hosts;
    uint64_t than = of_size ? tb_size_class(c->than) : c->than;
    switch (c->how) {
    case TB_CONDITION_BELOW:
        return value < than;
    case TB_CONDITION_UPTO:
        return value <= than;
    case TB_CONDITION_FROM:
        return value >= than;
    case TB_CONDITION_ABOVE:
        return value > than;
    case TB_CONDITION_IS:
        break;
    }
    return value == than;
}

const struct tb_preference *tb_rules_find(const struct tb_rules *rules, const struct tb_collective *c, uint32_t hosts,
                                          uint64_t bytes)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        const struct tb_rule *r = &rules->rules[i];
        bool holds = r->operation == c->operation;
        for (uint32_t k = 0; k < r->condition_count && holds; k++)
            holds = condition_holds(&r->conditions[k], c->size, hosts, bytes);
        if (holds && tb_preference_find(&r->preference, c) != NULL)
            return &r->preference;
    }
    return NULL;
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* What is not comment, with `;` for line breaks. */
static int rules_squeeze(FILE *from, const char *file, char *text, size_t size)
{
    size_t at = 0;
    bool comment = false;
    for (int c = fgetc(from); c != EOF; c = fgetc(from)) {
        comment = c == '#' || (comment && c != '\n');
        if (comment)
            continue;
        if (at + 1 >= size)
            return tb_error(TB_ERR_LIMIT, "%s: there are more than %zu characters of rules", file, size - 1);
        text[at++] = c == '\n' ? ';' : (char)c;
    }
    text[at] = 0;
    return ferror(from) ? tb_error_errno("cannot read %s", file) : TB_OK;
}

int tb_rules_load(void)
{
    const char *file = tb_param.rules;
    /* A rule has words; a file whose name has spaces would be taken for one. */
    if (*file == 0 || strpbrk(file, " \t;") != NULL)
        return TB_OK;
    FILE *from = fopen(file, "re");
    if (from == NULL)
        return tb_error_errno("rules=%s: cannot read the file", file);
    struct tb_rules rules;
    char text[RULES_BYTES];
    int error = rules_squeeze(from, file, text, sizeof text);
    fclose(from);
    if (error == TB_OK)
        error = tb_rules_read(&rules, text, file);
    return error == TB_OK ? tb_param_set("rules", text, TB_PARAM_LAUNCHER) : error;
}

/* What a parameter prefers must not contradict another one. */
static int wish_check(const struct tb_preference *wish, enum tb_operation operation)
{
    char names[512];
    const struct tb_algorithm *row = *wish->name != 0 ? name_find(operation, wish->name) : NULL;
    if (!tb_param.reproducible || row == NULL || !tb_operation_reduces(operation) || tb_algorithm_reproducible(row))
        return TB_OK;
    names_list(operation, true, names, sizeof names);
    return tb_error(TB_ERR_ARGUMENT,
                    "results of %s depend on where ranks are, and the parameter reproducible is set; of %s it goes "
                    "with: %s",
                    row->name, tb_operation_name(operation), names);
}

int tb_preferences_read(struct tb_preference *wishes, struct tb_rules *rules)
{
    for (int i = 0; i < TB_OPERATION_COUNT; i++) {
        char word[64], value[1024];
        tb_operation_word((enum tb_operation)i, word, sizeof word);
        const struct tb_param_row *row = tb_param_find(word);
        wishes[i] = (struct tb_preference){.argument = 0};
        if (row == NULL)
            continue;
        tb_param_print(row, value, sizeof value);
        int error = tb_preference_read(&wishes[i], (enum tb_operation)i, value);
        if (error == TB_OK)
            error = wish_check(&wishes[i], (enum tb_operation)i);
        if (error != TB_OK)
            return tb_error(error, "parameter %s: %s", word, tb_error_story());
    }
    return tb_rules_read(rules, tb_param.rules, "rules");
}

int tb_levels_read(uint8_t *skip)
{
    static const struct {
        const char *name;
        enum tb_level level;
    } rows[] = {{"site", TB_LEVEL_SITE}, {"cluster", TB_LEVEL_CLUSTER}, {"host", TB_LEVEL_HOST}};
    const char *text = tb_param.levels;
    uint8_t all = 1u << TB_LEVEL_SITE | 1u << TB_LEVEL_CLUSTER | 1u << TB_LEVEL_HOST;
    *skip = strcmp(text, "all") == 0 ? 0 : all;
    if (*skip == 0 || strcmp(text, "none") == 0)
        return TB_OK;
    for (const char *at = text; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < 3 && (strlen(rows[i].name) != length || strncmp(rows[i].name, at, length) != 0))
            i++;
        if (i == 3)
            return tb_error(TB_ERR_ARGUMENT,
                            "parameter levels: `%.*s` is no level: all, none, or some of site, cluster and host",
                            (int)length, at);
        *skip &= (uint8_t) ~(1u << rows[i].level);
    }
    return TB_OK;
}

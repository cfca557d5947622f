/* Host lists and host files. */
#include "launch/launch.h"
#include "launch/text_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_same(const struct tb_host_entry *entry, const char *name, const char *user, unsigned port)
{
    bool same_user = entry->user == NULL || user == NULL ? entry->user == user : strcmp(entry->user, user) == 0;
    return strcmp(entry->name, name) == 0 && same_user && entry->port == port;
}

static uint32_t hash_host(const char *name, const char *user, unsigned port)
{
    uint64_t hash = tb_hash_number(tb_hash_text(TB_HASH_BASIS, name), port);
    return tb_hash_fold(user != NULL ? tb_hash_text(hash, user) : hash);
}

static int find_same(const struct tb_host_list *list, const char *name, const char *user, unsigned port)
{
    uint32_t hash = hash_host(name, user, port), at = hash, i;
    while ((i = tb_hash_table_next(&list->index, hash, &at)) != TB_HASH_NONE)
        if (is_same(&list->entries[i], name, user, port))
            return (int)i;
    return -1;
}

static int find_named(const struct tb_host_list *list, const char *name)
{
    uint32_t hash = hash_host(name, NULL, 0), at = hash, i;
    while ((i = tb_hash_table_next(&list->named, hash, &at)) != TB_HASH_NONE)
        if (strcmp(list->entries[i].name, name) == 0)
            return (int)i;
    return -1;
}

int tb_host_list_find(const struct tb_host_list *list, const char *name, const char *user, unsigned port)
{
    int same = find_same(list, name, user, port);
    return same < 0 && user == NULL && port == 0 ? find_named(list, name) : same;
}

static int parse_number(const char *text, size_t length, uint32_t low, uint32_t high, uint32_t *value)
{
    uint64_t v = 0;
    if (length == 0 || length > 9)
        return TB_ERR_ARGUMENT;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i]))
            return TB_ERR_ARGUMENT;
        v = v * 10 + (uint64_t)(text[i] - '0');
    }
    *value = (uint32_t)v;
    return v >= low && v <= high ? TB_OK : TB_ERR_ARGUMENT;
}

/* One host as it is being read. */
struct draft {
    const char *where; /* file and line, or the option */
    const char *name, *user;
    size_t name_length, user_length;
    uint32_t slots, most;
    uint32_t port;
    char cluster[TB_GRID_NAME_BYTES], site[TB_GRID_NAME_BYTES];
    bool of_grid; /* of which only some take part in a job */
};

/* Names go into command lines and grid files, where quotes would end something. */
static bool is_odd(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (iscntrl((unsigned char)text[i]) || strchr(" \"'\\", text[i]) != NULL)
            return true;
    return false;
}

/* Names the character that nobody sees. */
static int refuse_name(const char *where, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (word[i] == '\t')
            return tb_error(TB_ERR_ARGUMENT, "%s: a tab stands in a host name, behind \"%.*s\"", where, (int)i, word);
        if (iscntrl((unsigned char)word[i]))
            return tb_error(TB_ERR_ARGUMENT, "%s: a control character (0x%02x) stands in a host name, behind \"%.*s\"",
                            where, (unsigned char)word[i], (int)i, word);
    }
    return tb_error(TB_ERR_ARGUMENT, "%s: \"%.*s\" is no host name", where, (int)length, word);
}

/* [user@]host[:slots]. An IPv6 address with slots is written [address]:slots. */
static int parse_host(struct draft *draft, const char *word, size_t length, const char *where)
{
    *draft = (struct draft){.where = where, .name = word, .name_length = length, .slots = 1};
    const char *at = memchr(word, '@', length);
    if (at != NULL) {
        draft->user = word;
        draft->user_length = (size_t)(at - word);
        draft->name = at + 1;
        draft->name_length = length - draft->user_length - 1;
        if (draft->user_length == 0)
            return tb_error(TB_ERR_ARGUMENT, "%s: \"%.*s\" has no user before the @", where, (int)length, word);
    }
    const char *slots = NULL, *end = word + length;
    if (draft->name_length > 0 && *draft->name == '[') {
        const char *closing = memchr(draft->name, ']', draft->name_length);
        if (closing == NULL || (closing + 1 < end && closing[1] != ':'))
            return tb_error(TB_ERR_ARGUMENT, "%s: \"%.*s\" should look like [address]:slots", where, (int)length, word);
        slots = closing + 1 < end ? closing + 2 : NULL;
        draft->name++;
        draft->name_length = (size_t)(closing - draft->name);
    } else {
        const char *colon = memchr(draft->name, ':', draft->name_length);
        if (colon != NULL && memchr(colon + 1, ':', (size_t)(end - colon - 1)) == NULL) {
            slots = colon + 1;
            draft->name_length = (size_t)(colon - draft->name);
        }
    }
    if (slots != NULL && parse_number(slots, (size_t)(end - slots), 0, TB_LAUNCH_SLOTS_LIMIT, &draft->slots) != TB_OK)
        return tb_error(TB_ERR_ARGUMENT, "%s: \"%.*s\": behind the colon should be a number of ranks, not \"%.*s\"",
                        where, (int)length, word, (int)(end - slots), slots);
    /* A name that begins with a dash would be an option of ssh. */
    if (draft->name_length == 0 || draft->name_length > 255 || *draft->name == '-' ||
        (draft->user != NULL && *draft->user == '-') || is_odd(word, length))
        return refuse_name(where, word, length);
    return TB_OK;
}

/* Remembers that the user has named this entry once more. */
static int add_line(struct tb_host_list *list, uint32_t entry)
{
    if (list->line_count == list->line_room) {
        uint32_t room = list->line_room > 0 ? list->line_room * 2 : 8;
        uint32_t *grown = realloc(list->lines, room * sizeof *grown);
        if (grown == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for the list of hosts");
        list->lines = grown;
        list->line_room = room;
    }
    list->lines[list->line_count++] = entry;
    return TB_OK;
}

/* So that the last entry will be found. */
static int add_to_index(struct tb_host_list *list)
{
    uint32_t last = list->count - 1;
    const struct tb_host_entry *entry = &list->entries[last];
    if (find_named(list, entry->name) < 0) {
        int rc = tb_hash_table_add(&list->named, hash_host(entry->name, NULL, 0), last);
        if (rc != TB_OK)
            return rc;
    }
    return tb_hash_table_add(&list->index, hash_host(entry->name, entry->user, entry->port), last);
}

/* What another line says of where a host is: more than the one before, or the same. */
static int add_place(char *to, const char *more, const char *what, const struct tb_host_entry *entry,
                     const struct draft *draft)
{
    if (*more != 0 && *to != 0 && strcmp(to, more) != 0)
        return tb_error(TB_ERR_ARGUMENT, "%s: host %s is in %s %s here, and in %s by %s", draft->where, entry->name,
                        what, more, to, entry->origin);
    if (*more != 0)
        memcpy(to, more, TB_GRID_NAME_BYTES);
    return TB_OK;
}

static int add(struct tb_host_list *list, const struct draft *draft)
{
    char name[256], user[256] = "";
    memcpy(name, draft->name, draft->name_length);
    name[draft->name_length] = 0;
    if (draft->user_length >= sizeof user)
        return tb_error(TB_ERR_LIMIT, "the name of the user on host %s is too long", name);
    if (draft->user != NULL)
        memcpy(user, draft->user, draft->user_length);
    uint32_t slots = draft->slots;
    int known = find_same(list, name, draft->user != NULL ? user : NULL, draft->port);
    if (known >= 0) {
        struct tb_host_entry *entry = &list->entries[known];
        entry->slots += slots;
        entry->most = draft->most > 0 ? draft->most : entry->most;
        if (entry->slots > TB_LAUNCH_SLOTS_LIMIT)
            return tb_error(TB_ERR_LIMIT, "host %s has too many slots", name);
        int rc = add_place(entry->cluster, draft->cluster, "cluster", entry, draft);
        if (rc == TB_OK)
            rc = add_place(entry->site, draft->site, "site", entry, draft);
        return rc == TB_OK ? add_line(list, (uint32_t)known) : rc;
    }
    uint32_t limit = draft->of_grid ? TB_GRID_HOSTS_LIMIT : TB_JOB_HOSTS_LIMIT;
    if (list->count >= limit)
        return tb_error(TB_ERR_LIMIT, "more than %u hosts", limit);
    if (list->count == list->room) {
        uint32_t room = list->room > 0 ? list->room * 2 : 8;
        struct tb_host_entry *grown = realloc(list->entries, room * sizeof *grown);
        if (grown == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for the list of hosts");
        list->entries = grown;
        list->room = room;
    }
    struct tb_host_entry *entry = &list->entries[list->count];
    *entry = (struct tb_host_entry){.name = strdup(name), .port = draft->port, .slots = slots, .most = draft->most};
    if (draft->user != NULL)
        entry->user = strndup(draft->user, draft->user_length);
    memcpy(entry->cluster, draft->cluster, sizeof entry->cluster);
    memcpy(entry->site, draft->site, sizeof entry->site);
    snprintf(entry->origin, sizeof entry->origin, "%s", draft->where != NULL ? draft->where : "");
    list->count++; /* from here on closing the list frees it */
    if (entry->name == NULL || (draft->user != NULL && entry->user == NULL))
        return tb_error(TB_ERR_MEMORY, "no memory for the list of hosts");
    int rc = add_to_index(list);
    return rc == TB_OK ? add_line(list, list->count - 1) : rc;
}

int tb_host_list_parse(struct tb_host_list *list, const char *text, const char *where)
{
    struct draft draft;
    const char *at = text;
    for (;;) {
        size_t length = strcspn(at, ",");
        int rc = parse_host(&draft, at, length, where);
        if (rc == TB_OK)
            rc = add(list, &draft);
        if (rc != TB_OK)
            return rc;
        if (at[length] == 0)
            return TB_OK;
        at += length + 1;
    }
}

static bool is_key(const char *word, size_t length, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strlen(*names) == length && memcmp(*names, word, length) == 0)
            return true;
    return false;
}

/* The name of a cluster or site. */
static int parse_place(const char *key, char *to, const char *value, size_t length, const char *where)
{
    if (length == 0 || length >= TB_GRID_NAME_BYTES)
        return tb_error(TB_ERR_ARGUMENT, "%s: the name of the %s is missing or too long", where, key);
    /* As in a grid file, which may be made of this one. */
    if (!tb_grid_is_name(value, length))
        return tb_error(TB_ERR_ARGUMENT,
                        "%s: %s=%.*s: a name has letters, digits, '.', '_' and '-', and begins with a letter "
                        "or digit",
                        where, key, (int)length, value);
    memcpy(to, value, length);
    to[length] = 0;
    return TB_OK;
}

/* key=value, in our words and in those of MPICH and Open MPI; a mere number is one of slots. */
static int parse_key(struct draft *draft, const char *word, size_t length, const char *where)
{
    static const char *const slots[] = {"slots", "count", "cpus", "cpu", NULL};
    static const char *const most[] = {"max_slots", "max-slots", "slots_max", NULL};
    static const char *const users[] = {"user", "username", NULL}, *const port[] = {"port", NULL};
    static const char *const cluster[] = {"cluster", NULL}, *const site[] = {"site", NULL};
    /* What MPICH and Open MPI write there for the network or the processors; here --set and --bind choose. */
    static const char *const ignored[] = {"ifname", "binding", "sockets", "cores", "maxcpus", NULL};
    const char *equals = memchr(word, '=', length);
    size_t key = equals != NULL ? (size_t)(equals - word) : length;
    const char *value = equals != NULL ? equals + 1 : "";
    size_t value_length = equals != NULL ? length - key - 1 : 0;
    if (equals == NULL && parse_number(word, length, 0, TB_LAUNCH_SLOTS_LIMIT, &draft->slots) == TB_OK)
        return TB_OK;
    if (is_key(word, key, slots)) {
        if (parse_number(value, value_length, 0, TB_LAUNCH_SLOTS_LIMIT, &draft->slots) == TB_OK)
            return TB_OK;
        return tb_error(TB_ERR_ARGUMENT, "%s: slots should be a number of ranks, not \"%.*s\"", where,
                        (int)value_length, value);
    }
    if (is_key(word, key, most)) {
        if (parse_number(value, value_length, 1, TB_LAUNCH_SLOTS_LIMIT, &draft->most) == TB_OK)
            return TB_OK;
        return tb_error(TB_ERR_ARGUMENT, "%s: max_slots should be a number of ranks, not \"%.*s\"", where,
                        (int)value_length, value);
    }
    if (is_key(word, key, port)) {
        if (parse_number(value, value_length, 1, 65535, &draft->port) == TB_OK)
            return TB_OK;
        return tb_error(TB_ERR_ARGUMENT, "%s: port should be between 1 and 65535, not \"%.*s\"", where,
                        (int)value_length, value);
    }
    if (is_key(word, key, users)) {
        draft->user = value;
        draft->user_length = value_length;
        return value_length > 0 && *value != '-' && !is_odd(value, value_length)
                   ? TB_OK
                   : tb_error(TB_ERR_ARGUMENT, "%s: \"%.*s\" is no name of a user", where, (int)value_length, value);
    }
    if (is_key(word, key, cluster))
        return parse_place(cluster[0], draft->cluster, value, value_length, where);
    if (is_key(word, key, site))
        return parse_place(site[0], draft->site, value, value_length, where);
    if (equals != NULL && is_key(word, key, ignored))
        return TB_OK;
    if (draft->name_length == 4 && memcmp(draft->name, "rank", 4) == 0 && equals != NULL)
        return tb_error(TB_ERR_ARGUMENT, "%s: this is a line of a rankfile, for --rankfile FILE", where);
    return tb_error(TB_ERR_ARGUMENT,
                    "%s: \"%.*s\" is none of slots=N, max_slots=N, port=N, user=NAME, cluster=NAME and "
                    "site=NAME",
                    where, (int)length, word);
}

static int parse_line(struct tb_host_list *list, const char *line, size_t length, const char *where)
{
    static const char blanks[] = " \t\r\v\f";
    const char *comment = memchr(line, '#', length), *end = comment != NULL ? comment : line + length;
    struct draft draft = {0};
    for (const char *at = line; at < end;) {
        while (at < end && memchr(blanks, *at, sizeof blanks - 1) != NULL)
            at++;
        const char *word = at;
        while (at < end && memchr(blanks, *at, sizeof blanks - 1) == NULL)
            at++;
        if (at == word)
            break;
        int rc = draft.name == NULL ? parse_host(&draft, word, (size_t)(at - word), where)
                                    : parse_key(&draft, word, (size_t)(at - word), where);
        if (rc != TB_OK)
            return rc;
    }
    return draft.name != NULL ? add(list, &draft) : TB_OK;
}

int tb_host_list_read(struct tb_host_list *list, const char *text, const char *name)
{
    unsigned number = 1;
    for (const char *line = text; *line != 0; number++) {
        size_t length = strcspn(line, "\n");
        char where[512];
        snprintf(where, sizeof where, "%s:%u", name, number);
        int rc = parse_line(list, line, length, where);
        if (rc != TB_OK)
            return rc;
        line += length + (line[length] == '\n');
    }
    return TB_OK;
}

int tb_host_list_load(struct tb_host_list *list, const char *path)
{
    char *text = NULL;
    uint32_t before = list->count;
    int rc = tb_text_file_read(path, "host file", &text);
    if (rc == TB_OK)
        rc = tb_host_list_read(list, text, path);
    if (rc == TB_OK && list->count == before && before == 0)
        rc = tb_error(TB_ERR_ARGUMENT, "the host file %s names no host", path);
    free(text);
    return rc;
}

int tb_host_list_take(struct tb_host_list *list, const struct tb_grid *grid, const bool *missing)
{
    for (uint32_t i = 0; i < grid->host_count; i++) {
        const struct tb_grid_host *host = &grid->hosts[i];
        const struct tb_grid_cluster *cluster = &grid->clusters[host->cluster];
        char where[160];
        struct draft draft = {.where = where,
                              .name = host->name,
                              .name_length = strlen(host->name),
                              .slots = host->slots,
                              .of_grid = true};
        if (missing != NULL && missing[i])
            draft.slots = 0;
        snprintf(draft.cluster, sizeof draft.cluster, "%s", cluster->name);
        if (cluster->site != TB_GRID_NONE)
            snprintf(draft.site, sizeof draft.site, "%s", grid->sites[cluster->site].name);
        snprintf(where, sizeof where, "%s:%u", grid->file != NULL ? grid->file : "", host->line);
        int rc = add(list, &draft);
        if (rc != TB_OK)
            return rc;
    }
    return TB_OK;
}

void tb_host_list_close(struct tb_host_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        free(list->entries[i].name);
        free(list->entries[i].user);
    }
    free(list->entries);
    tb_hash_table_close(&list->index);
    tb_hash_table_close(&list->named);
    free(list->lines);
    *list = (struct tb_host_list){0};
}

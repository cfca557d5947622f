#include "topology/yaml.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define DEPTH_LIMIT 64

static const yaml_node_t *node_at(const struct tb_yaml *yaml, int node)
{
    const yaml_document_t *document = yaml->document;
    TB_ASSERT(node > 0 && node <= document->nodes.top - document->nodes.start);
    return document->nodes.start + node - 1;
}

enum tb_yaml_kind tb_yaml_kind(const struct tb_yaml *yaml, int node)
{
    switch (node_at(yaml, node)->type) {
    case YAML_SEQUENCE_NODE:
        return TB_YAML_LIST;
    case YAML_MAPPING_NODE:
        return TB_YAML_MAP;
    default:
        return TB_YAML_TEXT;
    }
}

uint32_t tb_yaml_line(const struct tb_yaml *yaml, int node)
{
    return (uint32_t)node_at(yaml, node)->start_mark.line + 1;
}

const char *tb_yaml_text(const struct tb_yaml *yaml, int node)
{
    const yaml_node_t *at = node_at(yaml, node);
    TB_ASSERT(at->type == YAML_SCALAR_NODE);
    return (const char *)at->data.scalar.value;
}

uint32_t tb_yaml_count(const struct tb_yaml *yaml, int node)
{
    const yaml_node_t *at = node_at(yaml, node);
    if (at->type == YAML_SEQUENCE_NODE)
        return (uint32_t)(at->data.sequence.items.top - at->data.sequence.items.start);
    TB_ASSERT(at->type == YAML_MAPPING_NODE);
    return (uint32_t)(at->data.mapping.pairs.top - at->data.mapping.pairs.start);
}

int tb_yaml_item(const struct tb_yaml *yaml, int node, uint32_t i)
{
    TB_ASSERT(i < tb_yaml_count(yaml, node));
    return node_at(yaml, node)->data.sequence.items.start[i];
}

int tb_yaml_key(const struct tb_yaml *yaml, int node, uint32_t i)
{
    TB_ASSERT(i < tb_yaml_count(yaml, node));
    return node_at(yaml, node)->data.mapping.pairs.start[i].key;
}

int tb_yaml_value(const struct tb_yaml *yaml, int node, uint32_t i)
{
    TB_ASSERT(i < tb_yaml_count(yaml, node));
    return node_at(yaml, node)->data.mapping.pairs.start[i].value;
}

/* Whether a line has a range such as n[1-4], which YAML takes for a list where it stands inside [...] without quotes.
 */
static bool has_range(const char *text, size_t length, size_t line)
{
    const char *at = text, *end = text + length;
    for (size_t i = 0; i < line && at < end; i++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline != NULL ? newline + 1 : end;
    }
    for (; at + 2 < end && *at != '\n'; at++) {
        if (isalnum((unsigned char)at[0]) && at[1] == '[' && isdigit((unsigned char)at[2]))
            return true;
    }
    return false;
}

/* Whether a line begins with blanks of which one is a tab, which YAML does not allow. */
static bool has_tab(const char *text, size_t length, size_t line)
{
    const char *at = text, *end = text + length;
    for (size_t i = 0; i < line && at < end; i++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline != NULL ? newline + 1 : end;
    }
    while (at < end && *at == ' ')
        at++;
    return at < end && *at == '\t';
}

static int tell_syntax(const yaml_parser_t *parser, const char *text, size_t length, const char *file)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return tb_error(TB_ERR_MEMORY, "no memory for %s", file);
    size_t line = parser->problem_mark.line;
    if (parser->error == YAML_READER_ERROR) { /* knows only the byte */
        line = 0;
        for (size_t i = 0; i < length && i < parser->problem_offset; i++)
            line += text[i] == '\n';
    }
    for (size_t i = line + 1; i-- > (line > 0 ? line - 1 : 0);) /* the line before may be to blame */
        if (has_tab(text, length, i))
            return tb_error(TB_ERR_ARGUMENT, "%s:%zu: this is no YAML: a tab stands where only spaces may", file,
                            i + 1);
    bool range = has_range(text, length, line) || (line > 0 && has_range(text, length, line - 1));
    return tb_error(TB_ERR_ARGUMENT, "%s:%zu: this is no YAML: %s%s%s%s", file, line + 1,
                    parser->context != NULL ? parser->context : "", parser->context != NULL ? ", " : "",
                    parser->problem != NULL ? parser->problem : "it cannot be read",
                    range ? " (inside [...] a range of hosts needs quotes, as in \"n[1-4]:2\")" : "");
}

/* libyaml's time grows with the square of how deep lists and maps nest, and it sets no limit; so the depth is found out
 * beforehand, event by event. */
static int check_depth(const char *text, size_t length, const char *file)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return tb_error(TB_ERR_MEMORY, "no memory for %s", file);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    int rc = TB_OK;
    unsigned depth = 0;
    for (bool more = true; more && rc == TB_OK;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            rc = tell_syntax(&parser, text, length, file);
            break;
        }
        more = event.type != YAML_STREAM_END_EVENT;
        depth += event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT;
        depth -= event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
        if (depth > DEPTH_LIMIT)
            rc = tb_error(TB_ERR_ARGUMENT, "%s:%zu: lists and maps nest too deep; expected at most %d levels", file,
                          event.start_mark.line + 1, DEPTH_LIMIT);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return rc;
}

/* What the readers above rely on: there is one document, it is not empty, and texts end where C thinks they do. */
static int check_document(struct tb_yaml *yaml, yaml_parser_t *parser, const char *text, size_t length)
{
    const yaml_document_t *document = yaml->document;
    if (document->nodes.top == document->nodes.start)
        return tb_error(TB_ERR_ARGUMENT, "%s:1: the file is empty; expected `sites:` or `clusters:`", yaml->file);
    yaml->root = 1;
    for (const yaml_node_t *node = document->nodes.start; node < document->nodes.top; node++) {
        if (node->type == YAML_SCALAR_NODE && memchr(node->data.scalar.value, 0, node->data.scalar.length) != NULL)
            return tb_error(TB_ERR_ARGUMENT, "%s:%zu: a text with a zero byte in it; expected plain text", yaml->file,
                            node->start_mark.line + 1);
    }
    yaml_document_t second;
    if (!yaml_parser_load(parser, &second))
        return tell_syntax(parser, text, length, yaml->file);
    size_t line = second.start_mark.line;
    bool more = second.nodes.top != second.nodes.start;
    yaml_document_delete(&second);
    if (more)
        return tb_error(TB_ERR_ARGUMENT, "%s:%zu: a second document begins here; expected one a file", yaml->file,
                        line + 1);
    return TB_OK;
}

int tb_yaml_open(struct tb_yaml *yaml, const char *text, size_t length, const char *file)
{
    *yaml = (struct tb_yaml){.file = file};
    int rc = check_depth(text, length, file);
    if (rc != TB_OK)
        return rc;
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return tb_error(TB_ERR_MEMORY, "no memory for %s", file);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    yaml_document_t *document = malloc(sizeof *document);
    if (document == NULL) {
        rc = tb_error(TB_ERR_MEMORY, "no memory for %s", file);
    } else if (!yaml_parser_load(&parser, document)) {
        rc = tell_syntax(&parser, text, length, file);
        free(document);
    } else {
        yaml->document = document;
        rc = check_document(yaml, &parser, text, length);
        if (rc != TB_OK)
            tb_yaml_close(yaml);
    }
    yaml_parser_delete(&parser);
    return rc;
}

void tb_yaml_close(struct tb_yaml *yaml)
{
    if (yaml->document != NULL)
        yaml_document_delete(yaml->document);
    free(yaml->document);
    *yaml = (struct tb_yaml){0};
}

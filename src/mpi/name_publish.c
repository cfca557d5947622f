/* Published names (MPI-5.0, 11.8.4): a service is found by a name, which stands for a port. They are kept by the
 * registry of the job (inquiry.h), for its processes, as long as the one that has published them takes part in MPI. */
#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/info.h"
#include "mpi/inquiry.h"

_Static_assert(MPI_MAX_PORT_NAME <= TB_REGISTRY_VALUE_BYTES, "names of ports");

static bool is_set(const struct tb_info *info, const char *key, const char *value)
{
    const char *found = info != NULL ? tb_info_value(info, key) : NULL;
    return found != NULL && strcmp(found, value) == 0;
}

/* The three arguments that the calls have in common. */
static int begin(const char *call, enum tb_registry_kind kind, const char *service, MPI_Info info, const char *port,
                 const struct tb_info **hints, struct tb_registry_question *question)
{
    tb_require_active(call);
    *question = (struct tb_registry_question){.kind = kind, .patience = 0};
    if (service == NULL || port == NULL)
        return tb_raise_null(NULL, call, service == NULL ? 1 : 3, service == NULL ? "service_name" : "port_name");
    *hints = info != MPI_INFO_NULL ? tb_info_find(info) : NULL;
    if (info != MPI_INFO_NULL && *hints == NULL)
        return tb_raise_info(NULL, call, 2, info);
    size_t length = strnlen(service, sizeof question->name);
    if (length == 0 || length == sizeof question->name)
        return tb_raise_argument(NULL, MPI_ERR_SERVICE, call, 1, "service_name",
                                 length == 0 ? "it is empty" : "it is longer than %u bytes",
                                 TB_REGISTRY_NAME_BYTES - 1);
    memcpy(question->name, service, length);
    return MPI_SUCCESS;
}

static int set_port(const char *call, const char *port, struct tb_registry_question *question)
{
    size_t length = strnlen(port, MPI_MAX_PORT_NAME);
    if (length == 0 || length == MPI_MAX_PORT_NAME)
        return tb_raise_argument(NULL, MPI_ERR_PORT, call, 3, "port_name",
                                 length == 0 ? "it is empty" : "it is longer than %d bytes", MPI_MAX_PORT_NAME - 1);
    memcpy(question->value, port, length);
    return MPI_SUCCESS;
}

static int ask(const char *call, struct tb_registry_question *question, struct tb_registry_answer *answer)
{
    int error = tb_inquiry_make(call, question, answer);
    tb_inquiry_close(answer);
    if (error < 0)
        return tb_raise_below(NULL, error, call);
    switch (answer->result) {
    case TB_REGISTRY_DONE:
        return MPI_SUCCESS;
    case TB_REGISTRY_TAKEN:
        return tb_raise(NULL, MPI_ERR_SERVICE, call,
                        "the name \"%s\" is published already; the info key tombolo_replace=true puts another port in "
                        "its place",
                        question->name);
    case TB_REGISTRY_OTHER:
        return tb_raise(NULL, MPI_ERR_SERVICE, call, "the name \"%s\" is published, but for another port",
                        question->name);
    case TB_REGISTRY_UNKNOWN:
    case TB_REGISTRY_LATE:
        return tb_raise(NULL, question->kind == TB_REGISTRY_LOOKUP ? MPI_ERR_NAME : MPI_ERR_SERVICE, call,
                        "nobody in this job, or in one that it shares names with (mpiexec --meet), has published the "
                        "name \"%s\"%s",
                        question->name, answer->result == TB_REGISTRY_LATE ? " in time" : ", or it was withdrawn");
    case TB_REGISTRY_DEAD:
        return tb_raise(NULL, question->kind == TB_REGISTRY_LOOKUP ? MPI_ERR_NAME : MPI_ERR_SERVICE, call,
                        "\"%s\": the tombolo meet that keeps names for this job (mpiexec --meet) does not answer: has "
                        "it ended, or does a firewall keep mpiexec from it?",
                        question->name);
    case TB_REGISTRY_FULL:
        return tb_raise(NULL, MPI_ERR_SERVICE, call, "the launcher has no room for more names");
    default:
        return tb_raise(NULL, MPI_ERR_INTERN, call, "the registry has answered %d of \"%s\"", (int)answer->result,
                        question->name);
    }
}

int tb_mpi_Publish_name(const char *service_name, MPI_Info info, const char *port_name)
{
    static const char call[] = "MPI_Publish_name";
    struct tb_registry_question question;
    struct tb_registry_answer answer;
    const struct tb_info *hints = NULL;
    int code = begin(call, TB_REGISTRY_PUBLISH, service_name, info, port_name, &hints, &question);
    if (code == MPI_SUCCESS)
        code = set_port(call, port_name, &question);
    if (is_set(hints, "tombolo_replace", "true") || is_set(hints, "ompi_unique", "false"))
        question.flags = TB_REGISTRY_REPLACES;
    return code == MPI_SUCCESS ? ask(call, &question, &answer) : code;
}

int tb_mpi_Unpublish_name(const char *service_name, MPI_Info info, const char *port_name)
{
    static const char call[] = "MPI_Unpublish_name";
    struct tb_registry_question question;
    struct tb_registry_answer answer;
    const struct tb_info *hints;
    int code = begin(call, TB_REGISTRY_UNPUBLISH, service_name, info, port_name, &hints, &question);
    if (code == MPI_SUCCESS)
        code = set_port(call, port_name, &question);
    return code == MPI_SUCCESS ? ask(call, &question, &answer) : code;
}

/* Seconds for which a name may be waited for. */
static int set_patience(const char *call, const struct tb_info *hints, struct tb_registry_question *question)
{
    const uint64_t longest = 1000000000 * (uint64_t)1000000000;
    if (hints != NULL && tb_info_seconds(hints, "tombolo_timeout", &question->patience) != TB_OK)
        return tb_raise(NULL, MPI_ERR_INFO_VALUE, call, "%s", tb_error_story());
    if (question->patience >= longest)
        question->patience = TB_REGISTRY_FOREVER;
    return MPI_SUCCESS;
}

int tb_mpi_Lookup_name(const char *service_name, MPI_Info info, char *port_name)
{
    static const char call[] = "MPI_Lookup_name";
    struct tb_registry_question question;
    struct tb_registry_answer answer;
    const struct tb_info *hints = NULL;
    int code = begin(call, TB_REGISTRY_LOOKUP, service_name, info, port_name, &hints, &question);
    if (code == MPI_SUCCESS)
        code = set_patience(call, hints, &question);
    if (code == MPI_SUCCESS)
        code = ask(call, &question, &answer);
    if (code == MPI_SUCCESS)
        memcpy(port_name, answer.value, strlen(answer.value) + 1);
    return code;
}

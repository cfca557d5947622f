/* Events and their source (MPI-5.0, 15.3.8): what tools see of event.h. All are bound to no object. */
#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/event.h"
#include "mpi/info.h"
#include "mpi/tool.h"

#define SOURCE_TICKS INT64_C(1000000000)

static const struct event_row {
    const char *name, *description;
    enum tb_mpit_category category;
    int count;
    MPI_Datatype types[TB_EVENT_VALUES];
    MPI_Aint displacements[TB_EVENT_VALUES];
} rows[TB_EVENT_COUNT] = {
    [TB_EVENT_UNEXPECTED] = {"tombolo_unexpected_message",
                             "a message of the program came before its receive: process of the job, tag, bytes",
                             TB_MPIT_ENGINE,
                             3,
                             {MPI_INT, MPI_INT, MPI_COUNT},
                             {0, 4, 8}},
    [TB_EVENT_LOST] = {"tombolo_process_lost",
                       "a process of the job is gone, or cannot be reached any more: which",
                       TB_MPIT_JOB,
                       1,
                       {MPI_INT},
                       {0}},
    [TB_EVENT_CONNECTION] = {"tombolo_connection_lost",
                             "nothing passes between this process and another one any more, though nobody has said "
                             "that it is gone: which, and the error class of calls that need it",
                             TB_MPIT_TRANSPORT,
                             2,
                             {MPI_INT, MPI_INT},
                             {0, 4}},
    [TB_EVENT_ROUTES] = {"tombolo_routes_changed",
                         "messages to other hosts take other ways from now on: how often that has happened",
                         TB_MPIT_JOB,
                         1,
                         {MPI_COUNT},
                         {0}},
};

uint32_t tb_mpit_event_count(void)
{
    return TB_EVENT_COUNT;
}

enum tb_mpit_category tb_mpit_event_category(uint32_t index)
{
    return rows[index].category;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static int give_number(int *number, int value)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    tb_mpit_number(number, value);
    return tb_mpit_leave(number != NULL ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}

int tb_mpi_T_source_get_num(int *num_sources)
{
    return give_number(num_sources, 1);
}

int tb_mpi_T_source_get_info(int source_index, char *name, int *name_len, char *desc, int *desc_len,
                             MPI_T_source_order *ordering, MPI_Count *ticks_per_second, MPI_Count *max_ticks,
                             MPI_Info *info)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (source_index != 0)
        return tb_mpit_leave(MPI_T_ERR_INVALID_INDEX);
    tb_mpit_text("tombolo", name, name_len);
    tb_mpit_text("what has happened in this process, in order, by the clock of its host", desc, desc_len);
    if (ordering != NULL)
        *ordering = MPI_T_SOURCE_ORDERED;
    if (ticks_per_second != NULL)
        *ticks_per_second = SOURCE_TICKS;
    if (max_ticks != NULL)
        *max_ticks = INT64_MAX;
    if (info != NULL)
        *info = MPI_INFO_NULL;
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (source_index != 0 || timestamp == NULL)
        return tb_mpit_leave(source_index != 0 ? MPI_T_ERR_INVALID_INDEX : MPI_T_ERR_INVALID);
    *timestamp = (MPI_Count)tb_clock_now_real();
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_event_get_num(int *num_events)
{
    return give_number(num_events, TB_EVENT_COUNT);
}

static bool is_event(int index)
{
    return index >= 0 && index < TB_EVENT_COUNT;
}

/* As many of its elements as there is room for. */
static void give_elements(const struct event_row *row, MPI_Datatype *types, MPI_Aint *displacements, int *count)
{
    int room = count != NULL ? *count : 0;
    for (int i = 0; i < row->count && i < room; i++) {
        if (types != NULL)
            types[i] = row->types[i];
        if (displacements != NULL)
            displacements[i] = row->displacements[i];
    }
    tb_mpit_number(count, row->count);
}

int tb_mpi_T_event_get_info(int event_index, char *name, int *name_len, int *verbosity,
                            MPI_Datatype array_of_datatypes[], MPI_Aint array_of_displacements[], int *num_elements,
                            MPI_T_enum *enumtype, MPI_Info *info, char *desc, int *desc_len, int *bind)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (!is_event(event_index))
        return tb_mpit_leave(MPI_T_ERR_INVALID_INDEX);
    const struct event_row *row = &rows[event_index];
    tb_mpit_text(row->name, name, name_len);
    tb_mpit_text(row->description, desc, desc_len);
    tb_mpit_number(verbosity, MPI_T_VERBOSITY_USER_DETAIL);
    give_elements(row, array_of_datatypes, array_of_displacements, num_elements);
    tb_mpit_number(bind, MPI_T_BIND_NO_OBJECT);
    if (enumtype != NULL)
        *enumtype = MPI_T_ENUM_NULL;
    if (info != NULL)
        *info = MPI_INFO_NULL;
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_event_get_index(const char *name, int *event_index)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (name == NULL || event_index == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    for (int i = 0; i < TB_EVENT_COUNT; i++) {
        if (strcmp(name, rows[i].name) != 0)
            continue;
        *event_index = i;
        return tb_mpit_leave(MPI_SUCCESS);
    }
    return tb_mpit_leave(MPI_T_ERR_INVALID_NAME);
}

/* ---- registrations ----------------------------------------------------------------------------------------------- */

int tb_mpi_T_event_handle_alloc(int event_index, void *obj_handle, MPI_Info info,
                                MPI_T_event_registration *event_registration)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    if (!is_event(event_index))
        return tb_mpit_leave(MPI_T_ERR_INVALID_INDEX);
    if (event_registration == NULL || tb_self.state == TB_STATE_FORKED)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    struct tb_mpit_registration *made = malloc(sizeof *made);
    struct tb_event_listener *l = made != NULL ? tb_event_listen((enum tb_event_kind)event_index) : NULL;
    if (l == NULL) {
        free(made);
        return tb_mpit_leave(MPI_T_ERR_MEMORY);
    }
    made->listener = l;
    void *handle = tb_mpit_slot_take(&tb_self.mpit->registrations, TB_MPIT_REGISTRATION, made);
    if (handle == NULL) {
        tb_event_leave(l, NULL, NULL);
        free(made);
        return tb_mpit_leave(MPI_T_ERR_OUT_OF_HANDLES);
    }
    tb_event_set_handle(l, handle);
    *event_registration = handle;
    return tb_mpit_leave(MPI_SUCCESS);
}

/* With the lock, if it is MPI_SUCCESS. */
static int enter_registration(MPI_T_event_registration registration, struct tb_event_listener **listener)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    const struct tb_mpit_registration *r =
        tb_mpit_slot_find(&tb_self.mpit->registrations, TB_MPIT_REGISTRATION, registration);
    *listener = r != NULL ? r->listener : NULL;
    return r != NULL ? MPI_SUCCESS : tb_mpit_leave(MPI_T_ERR_INVALID_HANDLE);
}

/* There are no hints, so none is kept. */
int tb_mpi_T_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info info)
{
    struct tb_event_listener *l;
    int code = enter_registration(event_registration, &l);
    return code == MPI_SUCCESS ? tb_mpit_leave(code) : code;
}

static int give_info(MPI_T_event_registration registration, MPI_Info *info_used)
{
    struct tb_event_listener *l;
    int code = enter_registration(registration, &l);
    if (code != MPI_SUCCESS)
        return code;
    if (info_used == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    struct tb_info *made = tb_info_new();
    if (made == NULL)
        return tb_mpit_leave(MPI_T_ERR_MEMORY);
    *info_used = tb_info_handle(made);
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_event_handle_get_info(MPI_T_event_registration event_registration, MPI_Info *info_used)
{
    return give_info(event_registration, info_used);
}

int tb_mpi_T_event_handle_free(MPI_T_event_registration event_registration, void *user_data,
                               MPI_T_event_free_cb_function free_cb_function)
{
    struct tb_event_listener *l;
    int code = enter_registration(event_registration, &l);
    if (code != MPI_SUCCESS)
        return code;
    tb_mpit_slot_give(&tb_self.mpit->registrations, event_registration);
    tb_mpit_leave(MPI_SUCCESS);
    tb_event_leave(l, free_cb_function, user_data); /* calls the tool */
    return MPI_SUCCESS;
}

/* TB_EVENT_SAFETIES: it is no level. */
static uint32_t safety_of(MPI_T_cb_safety safety)
{
    static const MPI_T_cb_safety levels[TB_EVENT_SAFETIES] = {MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
                                                              MPI_T_CB_REQUIRE_THREAD_SAFE,
                                                              MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE};
    uint32_t at = 0;
    while (at < TB_EVENT_SAFETIES && levels[at] != safety)
        at++;
    return at;
}

int tb_mpi_T_event_register_callback(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
                                     MPI_Info info, void *user_data, MPI_T_event_cb_function event_cb_function)
{
    struct tb_event_listener *l;
    int code = enter_registration(event_registration, &l);
    if (code != MPI_SUCCESS)
        return code;
    uint32_t safety = safety_of(cb_safety);
    if (safety == TB_EVENT_SAFETIES)
        return tb_mpit_leave(MPI_T_ERR_INVALID);
    tb_event_set_function(l, safety, event_cb_function, user_data);
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_event_callback_set_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
                                     MPI_Info info)
{
    struct tb_event_listener *l;
    int code = enter_registration(event_registration, &l);
    if (code != MPI_SUCCESS)
        return code;
    return tb_mpit_leave(safety_of(cb_safety) < TB_EVENT_SAFETIES ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}

int tb_mpi_T_event_callback_get_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
                                     MPI_Info *info_used)
{
    return safety_of(cb_safety) < TB_EVENT_SAFETIES ? give_info(event_registration, info_used) : MPI_T_ERR_INVALID;
}

int tb_mpi_T_event_set_dropped_handler(MPI_T_event_registration event_registration,
                                       MPI_T_event_dropped_cb_function dropped_cb_function)
{
    struct tb_event_listener *l;
    int code = enter_registration(event_registration, &l);
    if (code != MPI_SUCCESS)
        return code;
    tb_event_set_dropped(l, dropped_cb_function);
    return tb_mpit_leave(MPI_SUCCESS);
}

/* ---- instances --------------------------------------------------------------------------------------------------- */

static void write_element(const struct tb_event_record *record, int at, void *to)
{
    int number = (int)record->values[at];
    MPI_Count count = record->values[at];
    if (rows[record->event].types[at] == MPI_INT)
        memcpy(to, &number, sizeof number);
    else
        memcpy(to, &count, sizeof count);
}

/* With the lock, if it is MPI_SUCCESS. */
static int enter_instance(MPI_T_event_instance instance, const void *result, const struct tb_event_record **record)
{
    int code = tb_mpit_enter();
    if (code != MPI_SUCCESS)
        return code;
    *record = tb_event_record(instance);
    if (*record == NULL)
        return tb_mpit_leave(MPI_T_ERR_INVALID_HANDLE);
    return result != NULL ? MPI_SUCCESS : tb_mpit_leave(MPI_T_ERR_INVALID);
}

int tb_mpi_T_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
    const struct tb_event_record *record;
    int code = enter_instance(event_instance, buffer, &record);
    if (code != MPI_SUCCESS)
        return code;
    if (element_index < 0 || element_index >= rows[record->event].count)
        return tb_mpit_leave(MPI_T_ERR_INVALID_INDEX);
    write_element(record, element_index, buffer);
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
    const struct tb_event_record *record;
    int code = enter_instance(event_instance, buffer, &record);
    if (code != MPI_SUCCESS)
        return code;
    for (int i = 0; i < rows[record->event].count; i++)
        write_element(record, i, (char *)buffer + rows[record->event].displacements[i]);
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
    const struct tb_event_record *record;
    int code = enter_instance(event_instance, event_timestamp, &record);
    if (code != MPI_SUCCESS)
        return code;
    *event_timestamp = (MPI_Count)record->time;
    return tb_mpit_leave(MPI_SUCCESS);
}

int tb_mpi_T_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
    const struct tb_event_record *record;
    int code = enter_instance(event_instance, source_index, &record);
    if (code != MPI_SUCCESS)
        return code;
    *source_index = 0;
    return tb_mpit_leave(MPI_SUCCESS);
}

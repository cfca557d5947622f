/* What the tool information interface says about itself, before MPI_Init and while MPI is active: strings and their
 * lengths, enumerations, categories, and events. */
#include "test.h"

#define NAMES 512

#define CODE(call, expected) CHECK_EQUAL(call, expected)
#define OK(call)             CHECK_EQUAL(call, MPI_SUCCESS)

/* ---- strings ----------------------------------------------------------------------------------------------------- */

/* What all calls that give a text have in common; `kind` and `index` say which one to call. */
static int get_text(int kind, int index, char *name, int *name_len, char *desc, int *desc_len)
{
    switch (kind) {
    case 0:
        return MPI_T_cvar_get_info(index, name, name_len, NULL, NULL, NULL, desc, desc_len, NULL, NULL);
    case 1:
        return MPI_T_pvar_get_info(index, name, name_len, NULL, NULL, NULL, NULL, desc, desc_len, NULL, NULL, NULL,
                                   NULL);
    default:
        return MPI_T_category_get_info(index, name, name_len, desc, desc_len, NULL, NULL, NULL);
    }
}

static void check_strings(int kind, int index, char *whole)
{
    char name[2048], desc[2048];
    int name_len = -5, desc_len = 1;
    OK(get_text(kind, index, NULL, &name_len, NULL, &desc_len));
    int need = name_len, need_desc = desc_len;
    CHECK(need > 1 && need <= 128 && need_desc > 1 && need_desc < 1024, "%d and %d characters", need, need_desc);
    memset(name, 'Z', sizeof name);
    memset(desc, 'Z', sizeof desc);
    name_len = desc_len = 0;
    OK(get_text(kind, index, name, &name_len, desc, &desc_len));
    CHECK(name_len == need && desc_len == need_desc && name[0] == 'Z' && desc[0] == 'Z', "%d %d", name_len, desc_len);
    OK(get_text(kind, index, name, NULL, desc, NULL));
    CHECK(name[0] == 'Z' && desc[0] == 'Z', "a text without a length was written");
    name_len = 4;
    desc_len = 1;
    OK(get_text(kind, index, name, &name_len, desc, &desc_len));
    CHECK(name_len == need && desc_len == need_desc, "%d %d", name_len, desc_len);
    CHECK(strlen(name) == 3 && name[4] == 'Z' && desc[0] == 0 && desc[1] == 'Z', "cut to '%s'", name);
    name_len = need;
    desc_len = need_desc;
    OK(get_text(kind, index, name, &name_len, desc, &desc_len));
    CHECK((int)strlen(name) + 1 == need && name[need] == 'Z', "'%s' of %d", name, need);
    CHECK((int)strlen(desc) + 1 == need_desc && desc[need_desc] == 'Z', "'%s' of %d", desc, need_desc);
    snprintf(whole, 128, "%s", name);
}

static int get_index(int kind, const char *name, int index, int *found)
{
    int class = -1;
    if (kind == 0)
        return MPI_T_cvar_get_index(name, found);
    if (kind == 2)
        return MPI_T_category_get_index(name, found);
    MPI_T_pvar_get_info(index, NULL, NULL, NULL, &class, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    CODE(MPI_T_pvar_get_index(name, class + 1, found), name != NULL ? MPI_T_ERR_INVALID_NAME : MPI_T_ERR_INVALID);
    return MPI_T_pvar_get_index(name, class, found);
}

static void check_names(void)
{
    static char names[NAMES][128];
    int counts[3] = {0};
    OK(MPI_T_cvar_get_num(&counts[0]));
    OK(MPI_T_pvar_get_num(&counts[1]));
    OK(MPI_T_category_get_num(&counts[2]));
    for (int kind = 0; kind < 3; kind++) {
        CHECK(counts[kind] > 5 && counts[kind] <= NAMES, "%d of kind %d", counts[kind], kind);
        for (int i = 0; i < counts[kind]; i++) {
            int found = -1;
            check_strings(kind, i, names[i]);
            OK(get_index(kind, names[i], i, &found));
            CHECK_EQUAL(found, i);
            for (int j = 0; j < i; j++)
                CHECK(strcmp(names[i], names[j]) != 0, "%d and %d are both %s", i, j, names[i]);
        }
        int length = 0, found = -1;
        CODE(get_text(kind, counts[kind], NULL, &length, NULL, &length), MPI_T_ERR_INVALID_INDEX);
        CODE(get_text(kind, -1, NULL, &length, NULL, &length), MPI_T_ERR_INVALID_INDEX);
        CODE(get_index(kind, "no such name", 0, &found), MPI_T_ERR_INVALID_NAME);
        CODE(get_index(kind, "", 0, &found), MPI_T_ERR_INVALID_NAME);
        CODE(get_index(kind, NULL, 0, &found), MPI_T_ERR_INVALID);
    }
}

static void check_enum(MPI_T_enum e)
{
    int count = -1, length = 0;
    OK(MPI_T_enum_get_info(e, &count, NULL, &length));
    CHECK(count > 1 && length > 1, "%d items, a name of %d", count, length);
    OK(MPI_T_enum_get_info(e, NULL, NULL, NULL));
    for (int i = 0; i < count; i++) {
        char name[128];
        int value = -1;
        length = sizeof name;
        OK(MPI_T_enum_get_item(e, i, &value, name, &length));
        CHECK(value == i && length == (int)strlen(name) + 1, "item %d is %d, %s", i, value, name);
        OK(MPI_T_enum_get_item(e, i, NULL, NULL, NULL));
    }
    CODE(MPI_T_enum_get_item(e, count, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    CODE(MPI_T_enum_get_item(e, -1, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
}

static void check_enums(void)
{
    int count = 0, found = 0;
    MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count; i++) {
        MPI_T_enum e = MPI_T_ENUM_NULL;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        int class = -1;
        OK(MPI_T_pvar_get_info(i, NULL, NULL, NULL, &class, &type, &e, NULL, NULL, NULL, NULL, NULL, NULL));
        CHECK((e != MPI_T_ENUM_NULL) == (type == MPI_INT), "variable %d", i);
        CHECK((class == MPI_T_PVAR_CLASS_STATE) == (type == MPI_INT), "variable %d has class %d", i, class);
        if (e != MPI_T_ENUM_NULL) {
            check_enum(e);
            found++;
        }
    }
    CHECK_EQUAL(found, 4);
    CODE(MPI_T_enum_get_info(MPI_T_ENUM_NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_enum_get_item((MPI_T_enum)(uintptr_t)0x31415926, 0, NULL, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
}

/* ---- categories and events --------------------------------------------------------------------------------------- */

/* Where parameters are, which their rows say. */
static void check_places(void)
{
    static const char *const places[][2] = {
        {"tombolo_pair_ring", "tombolo_transport"},   {"tombolo_shm_ring", "tombolo_transport"},
        {"tombolo_fault", "tombolo_transport"},       {"tombolo_switch_queue", "tombolo_planner"},
        {"tombolo_ack_share", "tombolo_planner"},     {"tombolo_levels", "tombolo_planner"},
        {"tombolo_wire_work", "tombolo_planner"},     {"tombolo_lanes", "tombolo_engine"},
        {"tombolo_try_timeout", "tombolo_job"},       {"tombolo_log", "tombolo_base"},
        {"tombolo_allgatherv", "tombolo_collectives"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int variable = -1, category = -1, count = 0, members[NAMES];
        bool found = false;
        OK(MPI_T_cvar_get_index(places[i][0], &variable));
        OK(MPI_T_category_get_index(places[i][1], &category));
        OK(MPI_T_category_get_info(category, NULL, NULL, NULL, NULL, &count, NULL, NULL));
        OK(MPI_T_category_get_cvars(category, NAMES, members));
        for (int k = 0; k < count && k < NAMES; k++)
            found = found || members[k] == variable;
        CHECK(found, "%s should be in %s", places[i][0], places[i][1]);
    }
}

/* Every variable is in one category; every category but the first is in the first. */
static void check_categories(void)
{
    int categories = 0, cvars = 0, pvars = 0, seen[3][NAMES] = {{0}}, number = -1, again = -2;
    int all_events = 0, listed[NAMES] = {0};
    MPI_T_event_get_num(&all_events);
    MPI_T_category_get_num(&categories);
    MPI_T_cvar_get_num(&cvars);
    MPI_T_pvar_get_num(&pvars);
    for (int c = 0; c < categories; c++) {
        int counts[3], events = -1, members[NAMES];
        OK(MPI_T_category_get_info(c, NULL, NULL, NULL, NULL, &counts[0], &counts[1], &counts[2]));
        for (int kind = 0; kind < 3; kind++) {
            members[0] = -7;
            int (*list)(int, int, int[]) = kind == 0   ? MPI_T_category_get_cvars
                                           : kind == 1 ? MPI_T_category_get_pvars
                                                       : MPI_T_category_get_categories;
            OK(list(c, 0, members));
            OK(list(c, 0, NULL));
            CHECK_EQUAL(members[0], -7);
            members[counts[kind]] = -7;
            OK(list(c, NAMES, members));
            CHECK_EQUAL(members[counts[kind]], -7);
            for (int i = 0; i < counts[kind]; i++)
                seen[kind][members[i]]++;
            CODE(list(categories, NAMES, members), MPI_T_ERR_INVALID_INDEX);
            CODE(list(c, -1, members), MPI_T_ERR_INVALID);
        }
        OK(MPI_T_category_get_num_events(c, &events));
        OK(MPI_T_category_get_events(c, NAMES, members));
        for (int i = 0; i < events; i++)
            listed[members[i]]++;
    }
    for (int i = 0; i < cvars; i++)
        CHECK_EQUAL(seen[0][i], 1);
    for (int i = 0; i < pvars; i++)
        CHECK_EQUAL(seen[1][i], 1);
    for (int i = 0; i < categories; i++)
        CHECK_EQUAL(seen[2][i], i > 0);
    for (int i = 0; i < all_events; i++)
        CHECK_EQUAL(listed[i], 1);
    OK(MPI_T_category_changed(&number));
    OK(MPI_T_category_changed(&again));
    CHECK_EQUAL(number, again);
    CODE(MPI_T_category_get_num_events(-1, &number), MPI_T_ERR_INVALID_INDEX);
}

/* Every event has a name by which it is found, and elements that do not overlap. */
static void check_event(int index)
{
    char name[256] = "", text[256] = "";
    int name_room = sizeof name, text_room = sizeof text, found = -1, count = 8, least = 1, bind = -1;
    MPI_Datatype types[8];
    MPI_Aint places[8];
    OK(MPI_T_event_get_info(index, name, &name_room, NULL, types, places, &count, NULL, NULL, text, &text_room, &bind));
    CHECK(name_room == (int)strlen(name) + 1 && text_room > 1, "event %d is \"%s\": \"%s\"", index, name, text);
    CHECK_EQUAL(bind, MPI_T_BIND_NO_OBJECT);
    OK(MPI_T_event_get_index(name, &found));
    CHECK_EQUAL(found, index);
    CHECK(count >= 1 && count <= 8, "%d elements", count);
    for (int i = 1; i < count; i++) {
        int size = 0;
        MPI_Type_size(types[i - 1], &size);
        CHECK(places[i] >= places[i - 1] + size, "element %d of %s", i, name);
    }
    OK(MPI_T_event_get_info(index, NULL, NULL, NULL, types, places, &least, NULL, NULL, NULL, NULL, NULL));
    CHECK_EQUAL(least, count);
}

static void check_events(void)
{
    int number = -1, events = 0;
    MPI_Count when = 0, later = 0, ticks = 0;
    MPI_T_event_registration registration = NULL;
    MPI_T_source_order order;
    OK(MPI_T_source_get_num(&number));
    CHECK_EQUAL(number, 1);
    OK(MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, &order, &ticks, NULL, NULL));
    CHECK(order == MPI_T_SOURCE_ORDERED && ticks > 0, "%lld ticks a second", (long long)ticks);
    OK(MPI_T_source_get_timestamp(0, &when));
    OK(MPI_T_source_get_timestamp(0, &later));
    CHECK(when > 0 && later >= when, "%lld, then %lld", (long long)when, (long long)later);
    OK(MPI_T_event_get_num(&events));
    CHECK_EQUAL(events, 4);
    for (int i = 0; i < events; i++)
        check_event(i);
    CODE(MPI_T_event_get_num(NULL), MPI_T_ERR_INVALID);
    CODE(MPI_T_source_get_info(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), MPI_T_ERR_INVALID_INDEX);
    CODE(MPI_T_source_get_timestamp(1, &when), MPI_T_ERR_INVALID_INDEX);
    CODE(MPI_T_source_get_timestamp(0, NULL), MPI_T_ERR_INVALID);
    CODE(MPI_T_event_get_info(events, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
         MPI_T_ERR_INVALID_INDEX);
    CODE(MPI_T_event_get_index("x", &number), MPI_T_ERR_INVALID_NAME);
    CODE(MPI_T_event_handle_alloc(-1, NULL, MPI_INFO_NULL, &registration), MPI_T_ERR_INVALID_INDEX);
    CODE(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, NULL), MPI_T_ERR_INVALID);
    CODE(MPI_T_event_handle_free(registration, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, NULL),
         MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_event_set_dropped_handler(registration, NULL), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_event_read(NULL, 0, &number), MPI_T_ERR_INVALID_HANDLE);
    CODE(MPI_T_event_get_timestamp(NULL, &when), MPI_T_ERR_INVALID_HANDLE);
}

int main(int argc, char **argv)
{
    int provided = -1;
    if (test_peer())
        return 0;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    check_names();
    test_begin(&argc, &argv);
    check_names();
    check_enums();
    check_categories();
    check_places();
    check_events();
    MPI_Finalize();
    check_names();
    OK(MPI_T_finalize());
    return test_verdict();
}

#include "link/tls_library.h"

#include <dlfcn.h>
#include <stdio.h>

#define CALL_ROW(name) {#name, offsetof(struct tb_tls_library, name)},

static const struct {
    const char *name;
    size_t offset;
} calls[] = {TB_TLS_CALLS(CALL_ROW)};

void tb_tls_library_open(struct tb_tls_library *library, const char *name)
{
    memset(library, 0, sizeof(*library));
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    bool found = handle != NULL;
    for (size_t i = 0; found && i < sizeof(calls) / sizeof(calls[0]); i++) {
        void *call = dlsym(handle, calls[i].name);
        memcpy((char *)library + calls[i].offset, &call, sizeof(call));
        found = call != NULL;
    }
    if (found)
        return;
    const char *why = dlerror();
    snprintf(library->trouble, sizeof(library->trouble),
             "encrypted streams between gateways need OpenSSL 3, but %s cannot be used (%s): install it (Debian and "
             "Ubuntu: libssl3 or libssl3t64), or switch encryption off (gateway_tls=no)",
             name, why != NULL ? why : "no reason given");
    if (handle != NULL)
        dlclose(handle);
}

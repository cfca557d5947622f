/* Errors are codes; 0 is success. The first to see an error tells its story with tb_error(); everybody above passes the
 * code on. The story is kept per thread until the next tb_error() of that thread.
 *
 * Positive codes are not errors: they say how a call that may not block went. */
#ifndef TB_BASE_ERROR_H
#define TB_BASE_ERROR_H

#include <stddef.h>

enum {
    TB_OK = 0,
    TB_AGAIN = 1,   /* nothing was done: no room or nothing there yet; try again after progress */
    TB_PENDING = 2, /* accepted; its end will be told by a callback */

    TB_ERR_MEMORY = -1,       /* out of memory */
    TB_ERR_SYSTEM = -2,       /* a system call failed */
    TB_ERR_ARGUMENT = -3,     /* the caller or the user gave something wrong */
    TB_ERR_LIMIT = -4,        /* a limit of ours was reached */
    TB_ERR_PEER = -5,         /* another process is gone or cannot be reached */
    TB_ERR_TRUNCATE = -6,     /* a message was longer than the buffer for it */
    TB_ERR_PROTOCOL = -7,     /* bytes that make no sense, or another version */
    TB_ERR_FORBIDDEN = -8,    /* no permission, or the job key was not proved */
    TB_ERR_CLOSED = -9,       /* the other end closed in good order */
    TB_ERR_TIMEOUT = -10,     /* a deadline passed */
    TB_ERR_UNSUPPORTED = -11, /* not possible here */
    TB_ERR_CANCELLED = -12,   /* ended by a cancel */
    TB_ERR_MISMATCH = -13,    /* ranks called different collectives, or with different arguments */
    TB_ERR_INTERNAL = -14,    /* a bug of ours */
    TB_ERR_GIVEN_UP = -15,    /* another rank has given up a collective */
    TB_ERR_EPOCH = -17,       /* what other ranks would have to do in a window never comes */
    TB_ERR_PARTIAL = -16      /* a message ends within an element of the type that it is received as */
};

/* Records the story (what failed, where, why, what to try) and returns `code`. */
int tb_error(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
/* As tb_error(TB_ERR_SYSTEM, ...) with ": " and the text of errno behind it. Both name the limit of the shell (ulimit)
 * that memory, descriptors or a file may have met. */
int tb_error_errno(const char *format, ...) __attribute__((format(printf, 1, 2), cold));
/* "; `ulimit -n` is 64": the limit that an errno speaks of, if there is one, else "". EAGAIN: it is that of a process
 * or thread that was to be started. */
const char *tb_error_limit(int error, char *text, size_t size);
/* The last story of this thread; "" if there is none. Valid until the next tb_error of this thread. */
const char *tb_error_story(void);
/* A short name of a code, for a story that nobody told. */
const char *tb_error_name(int code);

/* The end of this process because of a bug of ours. Writes to standard error and aborts. */
_Noreturn void tb_panic(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* A static analyser does not see into another file; this tells it that the code comes back, which is never 0 there. */
#ifdef __clang_analyzer__
#define tb_error(code, ...)                                                                                            \
    __extension__({                                                                                                    \
        int tb_error_code_ = (code);                                                                                   \
        (void)(tb_error)(tb_error_code_, __VA_ARGS__);                                                                 \
        tb_error_code_;                                                                                                \
    })
#define tb_error_errno(...)                                                                                            \
    __extension__({                                                                                                    \
        (void)(tb_error_errno)(__VA_ARGS__);                                                                           \
        TB_ERR_SYSTEM;                                                                                                 \
    })
#endif

/* Stays on in every build. */
#define TB_ASSERT(condition)                                                                                           \
    do {                                                                                                               \
        if (__builtin_expect(!(condition), 0))                                                                         \
            tb_panic(__FILE__, __LINE__, "assertion failed: %s", #condition);                                          \
    } while (0)

#endif

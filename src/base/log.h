/* The log goes to standard error, one line an event: seconds, who (set once), folder, text. The level comes from the
 * parameter `log` (TOMBOLO_LOG=error|warn|info|debug|trace). Any thread may call. */
#ifndef TB_BASE_LOG_H
#define TB_BASE_LOG_H

enum tb_log_level { TB_LOG_ERROR, TB_LOG_WARN, TB_LOG_INFO, TB_LOG_DEBUG, TB_LOG_TRACE };

extern int tb_log_threshold; /* read through tb_log(); TB_LOG_WARN until parameters are read */

void tb_log_identify(const char *who); /* "rank 3", "agent venus2", "launcher" */
void tb_log_write(enum tb_log_level level, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

#define tb_log(level, where, ...)                                                                                      \
    do {                                                                                                               \
        if (__builtin_expect((int)(level) <= tb_log_threshold, 0))                                                     \
            tb_log_write((level), (where), __VA_ARGS__);                                                               \
    } while (0)

#endif

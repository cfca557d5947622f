#include "launch/options_table.h"

#include "launch/launch.h"

#include <string.h>

#define WORKS(name, values, option, text)                                                                              \
    {                                                                                                                  \
        name, TB_OPTION_##option, values, TB_OPTION_OURS, text                                                         \
    }
#define SILENT(name, values, text)                                                                                     \
    {                                                                                                                  \
        name, TB_OPTION_NONE, values, TB_OPTION_SILENT, text                                                           \
    }
#define IGNORED(name, values, text)                                                                                    \
    {                                                                                                                  \
        name, TB_OPTION_NONE, values, TB_OPTION_IGNORED, text                                                          \
    }
#define REFUSED(name, values, text)                                                                                    \
    {                                                                                                                  \
        name, TB_OPTION_NONE, values, TB_OPTION_REFUSED, text                                                          \
    }

static const char debugger[] = "mpiexec -n 1 gdb --args ./program : -n 3 ./program";
static const char gpus[] = "a script that sets CUDA_VISIBLE_DEVICES from TOMBOLO_LOCAL_RANK and starts the program";
static const char no_daemon[] = "nothing: no daemon runs beside a job";
static const char name_server[] = "--meet FILE, with tombolo meet FILE beside the jobs";
static const char no_recovery[] =
    "--keep-going: the job goes on without a rank that dies, and nothing is started again";
static const char copy_first[] = "scp, before the job";
static const char always[] = "always so";
static const char tuning[] = "`tombolo info` lists the parameters that there are";

/* clang-format off */
static const struct tb_option_row rows[] = {
    /* How many ranks, and where. */
    WORKS("n", 1, COUNT, "number of ranks"),
    WORKS("np", 1, COUNT, "-n"),
    WORKS("c", 1, COUNT, "-n"),
    WORKS("H", 1, HOST, "hosts, as in h1:4,h2:4"),
    WORKS("host", 1, HOST, "-H"),
    WORKS("hosts", 1, HOST, "-H"),
    WORKS("hostlist", 1, HOST, "-H"),
    WORKS("machine", 1, HOST, "-H"),
    WORKS("machines", 1, HOST, "-H"),
    WORKS("machinelist", 1, HOST, "-H"),
    WORKS("f", 1, HOST_FILE, "host file"),
    WORKS("hostfile", 1, HOST_FILE, "-f"),
    WORKS("machinefile", 1, HOST_FILE, "-f"),
    WORKS("default-hostfile", 1, DEFAULT_HOST_FILE, "-f, if no hosts are named otherwise"),
    WORKS("ppn", 1, PER_HOST, "so many ranks on each host, whatever its slots"),
    WORKS("perhost", 1, PER_HOST, "-ppn"),
    WORKS("npernode", 1, PER_HOST, "-ppn"),
    WORKS("N", 1, PER_HOST, "-ppn"),
    WORKS("pernode", 0, ONE_PER_HOST, "-ppn 1"),
    WORKS("map", 1, MAP, "slot, node or cluster: who gets the next rank"),
    WORKS("map-by", 1, MAP, "slot and what is below a host: --map slot; node: --map node; ppr:N:node: -ppn N; seq; "
                            "PE=N: --cpus-per-rank"),
    WORKS("bynode", 0, MAP_NODE, "--map node"),
    WORKS("rr", 0, MAP_NODE, "--map node"),
    WORKS("byslot", 0, MAP_SLOT, "--map slot"),
    WORKS("bycore", 0, MAP_SLOT, "--map slot"),
    WORKS("rank-by", 1, RANK_BY, "ranks are numbered as --map deals them"),
    REFUSED("npersocket", 1, "-ppn N --bind socket"),
    REFUSED("ppr", 1, "-ppn N"),
    REFUSED("order-nodes", 1, "the order that you want behind -H"),
    REFUSED("rankmap", 1, "--rankfile FILE"),
    SILENT("oversubscribe", 0, always),
    WORKS("nooversubscribe", 0, NO_OVERSUBSCRIBE, "more ranks than slots are an error"),
    WORKS("nolocal", 0, NO_LOCAL, "no ranks on this host"),
    WORKS("skip-launch-node", 0, NO_LOCAL, "--nolocal"),
    WORKS("rankfile", 1, RANK_FILE, "lines `rank N=host slot=PROCESSORS`"),
    WORKS("rf", 1, RANK_FILE, "--rankfile"),
    WORKS("display-map", 0, DISPLAY_MAP, "tells which ranks go where"),
    WORKS("display-allocation", 0, DISPLAY_MAP, "--display-map"),
    WORKS("display", 1, DISPLAY, "map, allocation: --display-map; bind: --report-bindings"),
    WORKS("do-not-launch", 0, PLAN_ONLY, "--display-map, and that is all"),
    REFUSED("display-topo", 0, "lstopo"),
    REFUSED("display-diffable-map", 0, "--display-map"),
    REFUSED("display-devel-map", 0, "--display-map"),
    REFUSED("display-devel-allocation", 0, "--display-map"),
    WORKS("grid", 1, GRID, "the clusters of a grid file"),
    WORKS("lab", 1, LAB, "the grid of a file, emulated here"),
    WORKS("allow-missing", 0, ALLOW_MISSING, "with --grid: without hosts that do not answer"),
    WORKS("plan", 1, PLAN, "a plan of tombolo plan, which collectives follow"),
    WORKS("meet", 1, MEET, "names that ranks publish are kept by a tombolo meet, for several jobs"),
    WORKS("manual", 1, MANUAL, "with --grid: a cluster that is started by hand"),

    /* Processors. */
    WORKS("bind", 1, BIND, "none, thread, core, l1cache, l2cache, l3cache, numa, socket; core:2: two of them a rank"),
    WORKS("bind-to", 1, BIND, "--bind"),
    WORKS("binding", 1, BIND, "--bind"),
    WORKS("bind-to-core", 0, BIND_CORE, "--bind core"),
    WORKS("bind-to-socket", 0, BIND_SOCKET, "--bind socket"),
    WORKS("cpu-list", 1, BIND_CPUS, "these processors, one a rank in turn; 0+1 are for one rank"),
    WORKS("cpu-set", 1, BIND_CPUS, "--cpu-list"),
    WORKS("cpus-per-rank", 1, BIND_WIDTH, "so many cores for each rank"),
    WORKS("cpus-per-proc", 1, BIND_WIDTH, "--cpus-per-rank"),
    WORKS("report-bindings", 0, BIND_REPORT, "tells where each rank is bound"),
    SILENT("use-hwthread-cpus", 0, "--bind thread binds to hardware threads"),
    REFUSED("membind", 1, "numactl --membind=NODES ./program as the program"),
    REFUSED("gpus-per-proc", 1, gpus),
    REFUSED("gpu-subdevs-per-proc", 1, gpus),
    REFUSED("g", 1, gpus),

    /* What the ranks get. */
    WORKS("x", 1, VARIABLE, "NAME, NAME=VALUE or PREFIX*: a variable for this program"),
    WORKS("env", 2, VARIABLE_PAIR, "-x NAME=VALUE"),
    WORKS("genv", 2, VARIABLE_FOR_ALL, "-x NAME=VALUE for all programs of the job"),
    WORKS("envlist", 1, VARIABLES, "-x for each of a list; those that are not set are left out"),
    WORKS("genvlist", 1, VARIABLES_FOR_ALL, "-envlist for all programs of the job"),
    WORKS("envall", 0, ALL_VARIABLES, "the whole environment, also on other hosts"),
    WORKS("genvall", 0, ALL_VARIABLES, "-envall"),
    WORKS("envnone", 0, NO_VARIABLES, "only PATH, HOME, what -x names, and who a rank is"),
    WORKS("genvnone", 0, NO_VARIABLES, "-envnone"),
    REFUSED("prepend-env", 2, "-x NAME=VALUE"),
    REFUSED("append-env", 2, "-x NAME=VALUE"),
    REFUSED("unset-env", 1, "env -u NAME ./program as the program"),
    WORKS("wdir", 1, DIRECTORY, "working directory"),
    WORKS("wd", 1, DIRECTORY, "--wdir"),
    REFUSED("set-cwd-to-session-dir", 0, "--wdir DIR"),
    WORKS("initial-errhandler", 1, FIRST_ERRHANDLER, "mpi_errors_are_fatal (default), mpi_errors_abort or "
                                                     "mpi_errors_return: what MPI errors do at first"),
    WORKS("memory-alloc-kinds", 1, MEMORY_KINDS, "kinds of memory that this program asks for, such as "
                                                 "system,mpi:alloc_mem"),
    WORKS("memory-allocation-kinds", 1, MEMORY_KINDS, "-memory-alloc-kinds"),
    WORKS("usize", 1, UNIVERSE, "what MPI_UNIVERSE_SIZE says: a number, SYSTEM (default), or INFINITE: nothing; "
          "hosts take part until there is room for so many"),
    WORKS("path", 1, PATH, "where programs are looked for first"),
    WORKS("configfile", 1, CONFIG_FILE, "the rest of the command line, a line for each program"),
    WORKS("app", 1, CONFIG_FILE, "-configfile"),
    WORKS("encrypt", 1, ENCRYPT, "clusters (default) or all: what is encrypted"),
    WORKS("set", 1, SET, "NAME=VALUE: a parameter"),
    WORKS("stdin", 1, INPUT, "which rank gets standard input; none"),
    REFUSED("index-argv-by-rank", 0, "TOMBOLO_RANK, which each rank finds in its environment"),

    /* Output and end. */
    WORKS("pty", 0, PTY, "standard output of each rank is a pseudo-terminal"),
    WORKS("tag-output", 0, TAG, "begins each line with its rank"),
    WORKS("l", 0, TAG, "--tag-output"),
    WORKS("prepend-rank", 0, TAG, "--tag-output"),
    WORKS("prepend-pattern", 1, PATTERN, "begins each line with a text: %r rank, %h host, %p number of the host, %g 0"),
    WORKS("timestamp-output", 0, TIMES, "begins each line with the time"),
    WORKS("merge-stderr-to-stdout", 0, MERGE, "one stream for both"),
    WORKS("output", 1, OUTPUT, "tag, rank, timestamp, merge, dir=DIR, file=FILE"),
    WORKS("output-filename", 1, OUTPUT_FILES, "DIR/1/rank.N/stdout and stderr, here, beside the screen; DIR:nocopy: "
                                              "without it"),
    WORKS("outfile-pattern", 1, OUT_PATTERN, "standard output into files instead of the screen; patterns as for "
                                             "-prepend-pattern"),
    WORKS("outfile", 1, OUT_PATTERN, "-outfile-pattern"),
    WORKS("errfile-pattern", 1, ERR_PATTERN, "the same for standard error"),
    WORKS("errfile", 1, ERR_PATTERN, "-errfile-pattern"),
    REFUSED("output-from", 1, "-outfile-pattern out.%r"),
    WORKS("stream-buffering", 1, BUFFERING, "0, 1, 2: --set stream_buffering=none, line, full"),
    REFUSED("xml", 0, "--tag-output"),
    REFUSED("xml-file", 1, "--output-filename DIR"),
    REFUSED("xterm", 1, debugger),
    REFUSED("debug", 0, debugger),
    REFUSED("tv", 0, debugger),
    REFUSED("debugger", 1, debugger),
    REFUSED("stop-on-exec", 0, debugger),
    REFUSED("stop-in-init", 0, debugger),
    REFUSED("stop-in-app", 0, debugger),
    REFUSED("output-proctable", 1, debugger),
    WORKS("timeout", 1, TIMEOUT, "seconds, after which the job is ended with code 124"),
    SILENT("report-state-on-timeout", 0, always),
    IGNORED("get-stack-traces", 0, "gdb -p PID shows them"),
    IGNORED("spawn-timeout", 1, "--set start_timeout=TIME"),
    IGNORED("memprofile", 0, ""),
    IGNORED("set-sid", 0, ""),
    IGNORED("show-progress", 0, ""),
    IGNORED("leave-session-attached", 0, ""),
    IGNORED("report-child-jobs-separately", 0, ""),
    IGNORED("forward-signals", 1, "SIGUSR1, SIGUSR2, stop and continue are passed on always"),
    IGNORED("print-all-exitcodes", 0, "a code that is not 0 is told always"),
    WORKS("v", 0, VERBOSE, "--set log=info"),
    WORKS("verbose", 0, VERBOSE, "-v"),
    WORKS("d", 0, DEBUG, "--set log=debug"),
    WORKS("debug-devel", 0, DEBUG, "-d"),
    WORKS("debug-daemons", 0, DEBUG, "-d"),
    WORKS("debug-daemons-file", 0, DEBUG, "-d"),
    SILENT("q", 0, "nothing is said without need"),
    SILENT("quiet", 0, "nothing is said without need"),
    REFUSED("report-pid", 1, "mpiexec ... & echo $!"),
    WORKS("help", 0, HELP, "lists our own options"),
    WORKS("h", 0, HELP, "--help"),
    WORKS("version", 0, VERSION, "says which version this is"),
    WORKS("V", 0, VERSION, "--version"),
    WORKS("info", 0, VERSION, "--version"),

    /* How hosts are reached, and the network. */
    WORKS("launcher", 1, LAUNCHER, "a command that is called as `CMD host command`; ssh, rsh, fork as in MPICH"),
    WORKS("bootstrap", 1, LAUNCHER, "--launcher"),
    WORKS("launcher-exec", 1, LAUNCHER_EXEC, "--launcher"),
    WORKS("bootstrap-exec", 1, LAUNCHER_EXEC, "--launcher"),
    REFUSED("rmk", 1, "-f FILE, or -H with the hosts of your allocation"),
    WORKS("tombolo", 1, PROGRAM, "where tombolo is on the other hosts"),
    WORKS("prefix", 1, PREFIX, "--tombolo DIR/bin/tombolo"),
    WORKS("own-program", 0, OWN_PROGRAM, "the program is one of Tombolo's own, such as tombolo-probe"),
    SILENT("noprefix", 0, always),
    SILENT("app-prefix", 1, "ranks find their library by themselves"),
    SILENT("no-app-prefix", 0, always),
    REFUSED("launch-agent", 1, "--tombolo PATH"),
    REFUSED("exec-agent", 1, "--tombolo PATH"),
    SILENT("allow-run-as-root", 0, always),
    WORKS("iface", 1, INTERFACE, "--set interfaces=NAME"),
    WORKS("mca", 2, MCA, "btl_tcp_if_include: --set interfaces=; plm_rsh_agent: --launcher; others are ignored"),
    WORKS("omca", 2, MCA, "--mca"),
    WORKS("gmca", 2, MCA, "--mca"),
    WORKS("gomca", 2, MCA, "--mca"),
    WORKS("prtemca", 2, MCA, "--mca"),
    WORKS("pmixmca", 2, MCA, "--mca"),
    WORKS("gprtemca", 2, MCA, "--mca"),
    WORKS("gpmixmca", 2, MCA, "--mca"),
    IGNORED("am", 1, tuning),
    IGNORED("amca", 1, tuning),
    IGNORED("tune", 1, tuning),
    IGNORED("runtime-options", 1, tuning),
    IGNORED("topolib", 1, tuning),
    IGNORED("demux", 1, tuning),
    IGNORED("pmi-port", 0, tuning),
    IGNORED("profile", 0, tuning),
    IGNORED("localhost", 1, tuning),
    IGNORED("hybrid-hosts", 0, tuning),
    IGNORED("disable-x", 0, tuning),
    SILENT("enable-x", 0, ""),
    IGNORED("disable-hostname-propagation", 0, tuning),
    SILENT("enable-hostname-propagation", 0, ""),
    WORKS("keep-going", 0, KEEP_GOING, "the death of a rank does not end the job"),
    SILENT("enable-auto-cleanup", 0, always),
    WORKS("disable-auto-cleanup", 0, KEEP_GOING, "--keep-going"),
    WORKS("enable-recovery", 0, KEEP_GOING, "--keep-going"),
    WORKS("continuous", 0, KEEP_GOING, "--keep-going"),
    REFUSED("max-restarts", 1, no_recovery),
    SILENT("disable-recovery", 0, always),
    REFUSED("with-ft", 1, no_recovery),
    REFUSED("s", 0, copy_first),
    REFUSED("preload-binary", 0, copy_first),
    REFUSED("preload-files", 1, copy_first),
    REFUSED("hnp", 1, no_daemon),
    REFUSED("dvm", 1, no_daemon),
    REFUSED("ompi-server", 1, name_server),
    REFUSED("nameserver", 1, name_server),
    REFUSED("report-uri", 1, no_daemon),
    REFUSED("add-host", 1, no_daemon),
    REFUSED("add-hostfile", 1, no_daemon),
    SILENT("personality", 1, "programs of all MPIs are started alike"),
    IGNORED("do-not-resolve", 0, ""),
    IGNORED("novm", 0, ""),
    IGNORED("use-regexp", 0, ""),
    IGNORED("max-vm-size", 1, ""),
    IGNORED("cf", 1, ""),
    IGNORED("cartofile", 1, ""),
};
/* clang-format on */

const struct tb_option_row *tb_option_rows(size_t *count)
{
    *count = sizeof rows / sizeof rows[0];
    return rows;
}

const struct tb_option_row *tb_option_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
            return &rows[i];
    return NULL;
}

void tb_options_list(FILE *to)
{
    static const char *const kinds[] = {[TB_OPTION_OURS] = "works",
                                        [TB_OPTION_SILENT] = "not needed",
                                        [TB_OPTION_IGNORED] = "ignored",
                                        [TB_OPTION_REFUSED] = "write instead"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s%s", strlen(rows[i].name) > 1 ? "--" : "-", rows[i].name,
                 rows[i].values == 2   ? " A B"
                 : rows[i].values == 1 ? " A"
                                       : "");
        fprintf(to, "%-34s %-14s %s\n", name, kinds[rows[i].kind], rows[i].text);
    }
}

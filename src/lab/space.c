/* Making namespaces. */
#include "lab/space.h"

#include "lab/passing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKSHOP "/tmp" /* where files are made for a moment, before they are bound to their place */

static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, text, strlen(text));
    int saved = errno;
    close(fd);
    errno = saved;
    return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int refuse(const char *what)
{
    if (errno == ENOSPC || errno == EUSERS)
        return tb_error(TB_ERR_LIMIT,
                        "%s: there are as many namespaces as this machine allows; sysctl user.max_user_namespaces, "
                        "user.max_net_namespaces, user.max_mnt_namespaces and others of user.* set the limits",
                        what);
    return tb_error_errno("cannot make the namespaces of %s", what);
}

pid_t tb_space_fork(void)
{
    unsigned long flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | SIGCHLD;
    pid_t pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
    if (pid < 0 && errno == EPERM)
        pid = (pid_t)syscall(SYS_clone, flags | CLONE_NEWUSER, NULL, NULL, NULL, NULL);
    if (pid >= 0)
        return pid;
    if (errno == EPERM || errno == EINVAL || errno == ENOSYS || errno == EACCES)
        tb_error(
            TB_ERR_FORBIDDEN,
            "this machine lets you make no namespaces, of which a lab consists (%s). Run it as root, or have an "
            "administrator allow them: sysctl kernel.unprivileged_userns_clone=1 (Debian), "
            "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), user.max_user_namespaces=10000 (others); in a "
            "container, start that with the right to do so (docker run --privileged)",
            strerror(errno));
    else
        (void)refuse("the lab");
    return -1;
}

static bool in_own_user_space(void)
{
    char text[64] = "";
    int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    return n == 0; /* not yet written */
}

/* The user keeps the number that it has, so that programs and files look as they always do. */
static int map_user(uid_t uid, gid_t gid)
{
    char text[64];
    if (!in_own_user_space())
        return TB_OK;
    snprintf(text, sizeof text, "%u %u 1", uid, uid);
    if (write_file("/proc/self/uid_map", text) != 0)
        return tb_error_errno("cannot map user %u into the lab", uid);
    if (write_file("/proc/self/setgroups", "deny") != 0 && errno != ENOENT)
        return tb_error_errno("cannot give up groups in the lab");
    snprintf(text, sizeof text, "%u %u 1", gid, gid);
    if (write_file("/proc/self/gid_map", text) != 0)
        return tb_error_errno("cannot map group %u into the lab", gid);
    return TB_OK;
}

int tb_space_settle(uid_t uid, gid_t gid)
{
    int rc = map_user(uid, gid);
    if (rc != TB_OK)
        return rc;
    tb_space_keep_rights();
    if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
        return tb_error_errno("cannot have mounts of its own for the lab");
    /* Where parts of /proc are hidden (containers), a fresh one is refused, and the old one will do. */
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0 && errno != EPERM)
        return tb_error_errno("cannot mount /proc for the lab");
    return TB_OK;
}

void tb_space_keep_rights(void)
{
    static const unsigned rights[] = {CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_NET_ADMIN, CAP_NET_RAW, CAP_NET_BIND_SERVICE};
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    if (geteuid() == 0 || syscall(SYS_capget, &head, sets) != 0)
        return;
    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++)
        sets[rights[i] / 32].inheritable |= sets[rights[i] / 32].permitted & 1u << rights[i] % 32;
    if (syscall(SYS_capset, &head, sets) != 0)
        return;
    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++)
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, rights[i], 0, 0);
}

/* ---- one machine ------------------------------------------------------------------------------------------------- */

/* A file made in the workshop takes the place of one of the system. */
static int replace(const char *path, const char *name, const char *text)
{
    char made[64];
    snprintf(made, sizeof made, WORKSHOP "/%s", name);
    int fd = open(made, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return tb_error_errno("cannot make a file for the lab");
    bool fine = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    if (!fine)
        return tb_error(TB_ERR_MEMORY, "no memory for %s of the lab", path);
    if (mount(made, path, NULL, MS_BIND, NULL) != 0 && errno != ENOENT)
        return tb_error_errno("cannot give the machines of the lab a %s of their own", path);
    return TB_OK;
}

/* What a machine sees of the kernel's devices belongs to a network: /sys shows the interfaces of whoever mounts it. */
static void mount_own_system(void)
{
    char path[64];
    int groups = open("/sys/fs/cgroup", O_PATH | O_CLOEXEC);
    if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0 && groups >= 0) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", groups);
        (void)mount(path, "/sys/fs/cgroup", NULL, MS_BIND | MS_REC, NULL);
    }
    if (groups >= 0)
        close(groups);
    (void)mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
}

/* By this some libraries (UCX) tell whether two processes share a machine; those of different hosts do not. */
static int replace_boot_identity(void)
{
    uint8_t bytes[16];
    char text[64];
    int rc = tb_random_secret(bytes, sizeof bytes);
    if (rc != TB_OK)
        return rc;
    size_t used = 0;
    for (int i = 0; i < 16; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%02x",
                                 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
    snprintf(text + used, sizeof text - used, "\n");
    return replace("/proc/sys/kernel/random/boot_id", "boot_id", text);
}

static int furnish(const char *name, const char *names)
{
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC) != 0)
        return refuse(name);
    if (sethostname(name, strnlen(name, HOST_NAME_MAX)) != 0) /* that of a router can be longer */
        return tb_error_errno("cannot set the host name %s", name);
    if (mount("tmpfs", WORKSHOP, "tmpfs", MS_NOSUID | MS_NODEV, NULL) != 0)
        return tb_error_errno("cannot mount a tmpfs for the lab");
    int rc = replace("/etc/hosts", "hosts", names);
    if (rc == TB_OK) /* there is no name server in a lab; nobody should wait for one */
        rc = replace("/etc/resolv.conf", "resolv.conf", "# A lab has no name server.\n");
    (void)replace_boot_identity();
    umount2(WORKSHOP, MNT_DETACH);
    mount_own_system();
    return rc;
}

static int open_parts(int *parts)
{
    static const char *const names[] = {
        [TB_SPACE_MOUNT] = "mnt", [TB_SPACE_NET] = "net", [TB_SPACE_UTS] = "uts", [TB_SPACE_IPC] = "ipc"};
    char path[64];
    for (int i = 0; i < TB_SPACE_PARTS; i++) {
        snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        parts[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (parts[i] < 0)
            return tb_error_errno("cannot open %s", path);
    }
    return TB_OK;
}

int tb_space_make(struct tb_space *space, const char *name, const char *names)
{
    int ends[2];
    for (int i = 0; i < TB_SPACE_PARTS; i++)
        space->parts[i] = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return tb_error_errno("cannot make a socket for the lab");
    pid_t pid = fork();
    if (pid == 0) {
        int rc = furnish(name, names);
        if (rc == TB_OK)
            rc = open_parts(space->parts);
        rc = rc == TB_OK ? tb_pass(ends[1], "ok", space->parts, TB_SPACE_PARTS)
                         : tb_pass(ends[1], tb_error_story(), NULL, 0);
        _exit(rc == TB_OK ? 0 : 1);
    }
    char answer[1024];
    uint32_t count = TB_SPACE_PARTS;
    close(ends[1]);
    int rc = pid > 0 ? tb_pass_take(ends[0], answer, sizeof answer, space->parts, &count)
                     : tb_error_errno("cannot make a process for %s", name);
    close(ends[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    if (rc == TB_OK && strcmp(answer, "ok") != 0)
        rc = tb_error(TB_ERR_SYSTEM, "%s", answer);
    return rc;
}

int tb_space_make_bare(struct tb_space *space)
{
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < TB_SPACE_PARTS; i++)
        space->parts[i] = -1;
    int rc = home >= 0 && unshare(CLONE_NEWNET) == 0 ? TB_OK : refuse("the switches");
    if (rc == TB_OK) {
        space->parts[TB_SPACE_NET] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        if (space->parts[TB_SPACE_NET] < 0)
            rc = tb_error_errno("cannot open a network namespace");
        int back = tb_space_return(home);
        return rc == TB_OK ? back : rc;
    }
    if (home >= 0)
        close(home);
    return rc;
}

int tb_space_visit(const struct tb_space *space)
{
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home >= 0 && setns(space->parts[TB_SPACE_NET], CLONE_NEWNET) == 0)
        return home;
    tb_error_errno("cannot enter a network of the lab");
    if (home >= 0)
        close(home);
    return -1;
}

int tb_space_return(int home)
{
    int rc = setns(home, CLONE_NEWNET) == 0 ? TB_OK : tb_error_errno("cannot leave a network of the lab");
    close(home);
    return rc;
}

int tb_space_tune(const char *path, const char *value)
{
    char full[128];
    snprintf(full, sizeof full, "/proc/sys/net/%s", path);
    if (write_file(full, value) != 0)
        return tb_error_errno("cannot set %s to %s in the lab", full, value);
    return TB_OK;
}

/* What kind of file an executable is: read from its first bytes, and of an ELF file also from its program headers.
 * Nothing in it is believed: every place is read by its own bounded read, and a file that ends too early, or says
 * nonsense, is one of which less is known. */
#include "remote/remote.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES     512  /* without a zero byte here it is text */
#define SEGMENTS_LIMIT 128u /* program headers that are looked at */
#define DYNAMIC_LIMIT  1024u

/* An ELF file while it is being read. */
struct elf {
    int file;
    bool wide;    /* 64 bits */
    bool swapped; /* its byte order is not ours */
    uint64_t headers;
    unsigned header_bytes, header_count;
};

struct segment {
    uint32_t type;
    uint64_t offset, address, bytes;
};

static bool read_at(int file, void *to, size_t bytes, uint64_t offset)
{
    return offset <= INT64_MAX - bytes && pread(file, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

static uint64_t number(const struct elf *elf, const unsigned char *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        bool low_first = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != elf->swapped;
        value |= (uint64_t)at[low_first ? i : bytes - 1 - i] << 8 * i;
    }
    return value;
}

/* A field that is there in both classes. */
#define FIELD(elf, bytes, type, name)                                                                                  \
    ((elf)->wide ? number(elf, (bytes) + offsetof(Elf64_##type, name), sizeof(((Elf64_##type *)0)->name))              \
                 : number(elf, (bytes) + offsetof(Elf32_##type, name), sizeof(((Elf32_##type *)0)->name)))

static bool read_segment(const struct elf *elf, unsigned i, struct segment *segment)
{
    unsigned char bytes[sizeof(Elf64_Phdr)];
    size_t size = elf->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    if (elf->header_bytes < size || elf->headers > INT64_MAX / 2 ||
        !read_at(elf->file, bytes, size, elf->headers + (uint64_t)i * elf->header_bytes))
        return false;
    segment->type = (uint32_t)FIELD(elf, bytes, Phdr, p_type);
    segment->offset = FIELD(elf, bytes, Phdr, p_offset);
    segment->address = FIELD(elf, bytes, Phdr, p_vaddr);
    segment->bytes = FIELD(elf, bytes, Phdr, p_filesz);
    return true;
}

/* Where in the file this address is; false: nowhere. */
static bool find_address(const struct elf *elf, uint64_t address, uint64_t *offset)
{
    struct segment s;
    for (unsigned i = 0; i < elf->header_count && read_segment(elf, i, &s); i++)
        if (s.type == PT_LOAD && address >= s.address && address - s.address < s.bytes) {
            *offset = s.offset + (address - s.address);
            return true;
        }
    return false;
}

/* A text that ends with a zero byte within `size`; false: none. */
static bool read_text(int file, uint64_t offset, char *text, size_t size)
{
    ssize_t n = offset <= INT64_MAX - size ? pread(file, text, size, (off_t)offset) : -1;
    if (n > 0 && memchr(text, 0, (size_t)n) != NULL && *text != 0)
        return true;
    *text = 0;
    return false;
}

static bool read_dynamic(const struct elf *elf, const struct segment *dynamic, unsigned i, uint64_t *tag,
                         uint64_t *value)
{
    unsigned char bytes[sizeof(Elf64_Dyn)];
    size_t size = elf->wide ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
    if (i >= DYNAMIC_LIMIT || (i + 1) * size > dynamic->bytes || dynamic->offset > INT64_MAX / 2 ||
        !read_at(elf->file, bytes, size, dynamic->offset + i * size))
        return false;
    *tag = FIELD(elf, bytes, Dyn, d_tag);
    *value = FIELD(elf, bytes, Dyn, d_un.d_val);
    return *tag != DT_NULL;
}

static void read_needed(const struct elf *elf, const struct segment *dynamic, struct tb_executable *x)
{
    uint64_t tag, value, strings = 0, bytes = 0, offset;
    for (unsigned i = 0; read_dynamic(elf, dynamic, i, &tag, &value); i++) {
        strings = tag == DT_STRTAB ? value : strings;
        bytes = tag == DT_STRSZ ? value : bytes;
    }
    if (strings == 0 || !find_address(elf, strings, &offset))
        return;
    size_t used = 0;
    for (unsigned i = 0; read_dynamic(elf, dynamic, i, &tag, &value); i++) {
        char name[256];
        if (tag != DT_NEEDED || value >= bytes || offset > INT64_MAX / 2 || value > INT64_MAX / 2 ||
            !read_text(elf->file, offset + value, name, sizeof name))
            continue;
        size_t length = strlen(name) + 1;
        if (used + length + 1 > sizeof x->needed)
            return;
        memcpy(x->needed + used, name, length);
        used += length;
    }
}

static void read_elf(int file, const unsigned char *head, size_t length, struct tb_executable *x)
{
    struct elf elf = {.file = file,
                      .wide = head[EI_CLASS] == ELFCLASS64,
                      .swapped = (head[EI_DATA] == ELFDATA2LSB) != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)};
    x->kind = TB_EXECUTABLE_ELF;
    x->bits = elf.wide ? 64 : 32;
    x->big = head[EI_DATA] == ELFDATA2MSB;
    x->machine = (unsigned)FIELD(&elf, head, Ehdr, e_machine);
    if (length < (elf.wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
        return;
    elf.headers = FIELD(&elf, head, Ehdr, e_phoff);
    elf.header_bytes = (unsigned)FIELD(&elf, head, Ehdr, e_phentsize);
    elf.header_count = (unsigned)FIELD(&elf, head, Ehdr, e_phnum);
    if (elf.header_count > SEGMENTS_LIMIT)
        elf.header_count = SEGMENTS_LIMIT;
    struct segment s;
    for (unsigned i = 0; i < elf.header_count && read_segment(&elf, i, &s); i++)
        if (s.type == PT_INTERP)
            read_text(file, s.offset, x->interpreter, sizeof x->interpreter);
        else if (s.type == PT_DYNAMIC)
            read_needed(&elf, &s, x);
}

int tb_executable_read(const char *path, struct tb_executable *x)
{
    unsigned char head[TEXT_BYTES];
    *x = (struct tb_executable){.kind = TB_EXECUTABLE_OTHER};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return TB_ERR_SYSTEM;
    ssize_t n = pread(file, head, sizeof head, 0);
    int error = errno;
    if (n >= 20 && memcmp(head, ELFMAG, SELFMAG) == 0)
        read_elf(file, head, (size_t)n, x);
    else if (n >= 2 && head[0] == '#' && head[1] == '!')
        x->kind = TB_EXECUTABLE_SCRIPT;
    else if (n >= 0 && memchr(head, 0, (size_t)n) == NULL && !(n >= SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0))
        x->kind = TB_EXECUTABLE_TEXT;
    close(file);
    errno = error;
    return n < 0 ? TB_ERR_SYSTEM : TB_OK;
}

static void print_machine(const struct tb_executable *x, char *text, size_t size)
{
    static const struct {
        unsigned machine, bits;
        const char *little, *big;
    } known[] = {{EM_X86_64, 64, "x86-64", NULL},
                 {EM_X86_64, 32, "x32", NULL},
                 {EM_386, 32, "i386", NULL},
                 {EM_AARCH64, 64, "aarch64", "aarch64 (big-endian)"},
                 {EM_ARM, 32, "arm", "arm (big-endian)"},
                 {EM_RISCV, 64, "riscv64", NULL},
                 {EM_RISCV, 32, "riscv32", NULL},
                 {EM_PPC64, 64, "ppc64le", "ppc64"},
                 {EM_S390, 64, NULL, "s390x"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *name = x->big ? known[i].big : known[i].little;
        if (x->machine == known[i].machine && x->bits == known[i].bits && name != NULL) {
            snprintf(text, size, "%s", name);
            return;
        }
    }
    snprintf(text, size, "a machine with number %u (%u bits)", x->machine, x->bits);
}

/* The kind of machine that we run on: the one that we are built for. */
static void print_own(char *text, size_t size)
{
    struct tb_executable own;
    if (tb_executable_read("/proc/self/exe", &own) == TB_OK && own.kind == TB_EXECUTABLE_ELF)
        print_machine(&own, text, size);
    else
        snprintf(text, size, "another kind of machine");
}

bool tb_executable_is_foreign(const struct tb_executable *x, const char *name, const char *host, char *text,
                              size_t size)
{
    char here[64], there[64];
    if (x->kind != TB_EXECUTABLE_ELF)
        return false;
    print_own(here, sizeof here);
    print_machine(x, there, sizeof there);
    if (strcmp(here, there) == 0)
        return false;
    snprintf(text, size, "%s is built for %s, host %s is %s", name, there, host, here);
    return true;
}

void tb_executable_explain(const char *path, const char *name, const char *host, char *text, size_t size)
{
    struct tb_executable x;
    char here[64];
    if (tb_executable_read(path, &x) == TB_OK && tb_executable_is_foreign(&x, name, host, text, size))
        return;
    print_own(here, sizeof here);
    if (x.kind == TB_EXECUTABLE_ELF)
        snprintf(text, size, "it is built for %s, but no whole program", here);
    else
        snprintf(text, size, "it is neither a program for %s nor a script", here);
}

/* Lets a copy of a Node.js that lives in a shared library, as Debian's does, leave when its program has come to its
 * natural end, before Node takes V8 apart. node.c calls this in the zygote, before the zygote forks. Node.js 18 keeps
 * no record of its exit that could be found, but it calls its own node::EmitProcessExit() through a slot of the
 * library's procedure linkage table, and that function returns the exit code after every exit listener was called. This
 * file puts its own function into that slot. */
#include "zygote/node_exit.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EMIT_EXIT "_ZN4node15EmitProcessExitEPNS_11EnvironmentE"

/* v8::Maybe<int>: what node::EmitProcessExit() returns. */
struct maybe_int {
    bool is_set;
    int32_t value;
};
typedef struct maybe_int (*emit_exit_function)(void *environment);

static emit_exit_function original;
static void (*leave_with)(int code);

/* Worker threads call it too, at their own end. */
static struct maybe_int emit_exit(void *environment)
{
    struct maybe_int code = original(environment);
    if (code.is_set && gettid() == getpid())
        leave_with(code.value);
    return code;
}

/* What the dynamic section of one object says about its procedure linkage table. */
struct linkage {
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * slots;
    size_t slots_size;
};

/* The loader has added the object's address to the pointers of most dynamic sections, but not of all. */
static uintptr_t address_in(const struct dl_phdr_info *object, const ElfW(Dyn) * entry)
{
    uintptr_t value = entry->d_un.d_ptr;
    return value < object->dlpi_addr ? value + object->dlpi_addr : value;
}

static struct linkage read_linkage(const struct dl_phdr_info *object, const ElfW(Dyn) * entry)
{
    struct linkage linkage = {0};
    for (; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            linkage.symbols = (const void *)address_in(object, entry);
        else if (entry->d_tag == DT_STRTAB)
            linkage.names = (const char *)address_in(object, entry);
        else if (entry->d_tag == DT_JMPREL)
            linkage.slots = (const void *)address_in(object, entry);
        else if (entry->d_tag == DT_PLTRELSZ)
            linkage.slots_size = entry->d_un.d_val;
    }
    return linkage;
}

static uintptr_t slot_of(const struct dl_phdr_info *object, const struct linkage *linkage)
{
    if (!linkage->symbols || !linkage->names || !linkage->slots)
        return 0;
    for (size_t i = 0; i < linkage->slots_size / sizeof *linkage->slots; i++) {
        const ElfW(Sym) *symbol = linkage->symbols + ELF64_R_SYM(linkage->slots[i].r_info);
        if (strcmp(linkage->names + symbol->st_name, EMIT_EXIT) == 0)
            return object->dlpi_addr + linkage->slots[i].r_offset;
    }
    return 0;
}

/* Called for each loaded object; `found` gets the address of the slot. */
static int find_slot(struct dl_phdr_info *object, size_t size, void *found)
{
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *dynamic = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        struct linkage linkage = read_linkage(object, dynamic);
        *(uintptr_t *)found = slot_of(object, &linkage);
    }
    return *(uintptr_t *)found != 0;
}

bool node_leaves_at_exit(void (*leave)(int code))
{
    uintptr_t slot = 0;
    if (!dl_iterate_phdr(find_slot, &slot))
        return false;
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)(slot & ~(page_size - 1));
    if (mprotect(page, page_size, PROT_READ | PROT_WRITE))
        return false;
    original = *(emit_exit_function *)slot;
    leave_with = leave;
    *(emit_exit_function *)slot = emit_exit;
    return true;
}

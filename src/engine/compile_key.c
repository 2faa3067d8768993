/* Owns what counts for the identity of a compile step. Leaving something out here would give somebody the wrong
 * program, so everything that goes into the cell is in; the time of day is not, and a program that holds the time of
 * its compilation keeps that of the first. Reads the file system only to tell compilers apart. */
#include "engine/compile_key.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

/* Changes with what an entry holds or what a key means. */
#define FORMAT "cordon compiled 1 " CORDON_VERSION

const char *const compile_key_markers[] = {"/etc/ld.so.cache",
                                           "/var/lib/dpkg/status",
                                           "/var/lib/rpm",
                                           "/lib/apk/db/installed",
                                           "/usr/include",
                                           "/usr/local/bin",
                                           "/usr/local/lib",
                                           "/usr/local/include",
                                           "/opt",
                                           NULL};

/* Every item carries its length, so that no two lists of items run together into the same bytes. */
static void put(struct sha256 *hash, const void *bytes, size_t length)
{
    uint64_t prefix = length;
    sha256_add(hash, &prefix, sizeof prefix);
    sha256_add(hash, bytes, length);
}

static void put_text(struct sha256 *hash, const char *text)
{
    put(hash, text, strlen(text));
}

static void put_number(struct sha256 *hash, uint64_t number)
{
    sha256_add(hash, &number, sizeof number);
}

static void put_list(struct sha256 *hash, char *const *items)
{
    size_t count = 0;
    while (items && items[count])
        count++;
    put_number(hash, count);
    for (size_t i = 0; i < count; i++)
        put_text(hash, items[i]);
}

/* What distinguishes one installed file from the next. A replaced file has another inode or another time of change,
 * even where a package carries old times of modification. */
static int put_file(struct sha256 *hash, const char *path)
{
    struct stat st;
    put_text(hash, path);
    if (stat(path, &st) < 0) {
        put_number(hash, 0);
        return -1;
    }
    const uint64_t identity[] = {st.st_dev,
                                 st.st_ino,
                                 (uint64_t)st.st_size,
                                 (uint64_t)st.st_mtim.tv_sec,
                                 (uint64_t)st.st_mtim.tv_nsec,
                                 (uint64_t)st.st_ctim.tv_sec,
                                 (uint64_t)st.st_ctim.tv_nsec};
    put(hash, identity, sizeof identity);
    return 0;
}

int compile_key_make(const struct compile_key_input *input, struct compile_key *key)
{
    const struct plan_source *plan = input->plan;
    struct utsname machine;
    struct sha256 hash;
    if (uname(&machine) < 0 || !input->tools[0])
        return -1;
    sha256_begin(&hash);
    put_text(&hash, FORMAT);
    put_text(&hash, machine.machine);
    put_number(&hash, input->tenant != NULL);
    put_text(&hash, input->tenant ? input->tenant : "");
    put_text(&hash, input->language);
    put_text(&hash, input->environment);
    put_list(&hash, plan->argv);
    put_list(&hash, plan->envp);
    put_list(&hash, plan->etc);
    put(&hash, plan->limits->value, sizeof plan->limits->value);
    put_number(&hash, input->outputs_count);
    for (size_t i = 0; i < input->outputs_count; i++)
        put_text(&hash, input->outputs[i]);
    put_number(&hash, plan->file_count);
    for (size_t i = 0; i < plan->file_count; i++) {
        put_text(&hash, plan->files[i].path);
        put_number(&hash, plan->files[i].mode);
        put(&hash, plan->files[i].content, plan->files[i].length);
    }
    for (const char *const *tool = input->tools; *tool; tool++)
        if (put_file(&hash, *tool) < 0)
            return -1;
    put_number(&hash, 0);
    for (const char *const *marker = input->markers; *marker; marker++)
        put_file(&hash, *marker);
    sha256_end(&hash, key->bytes);
    return 0;
}

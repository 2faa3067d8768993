/* Owns the directory of kept compile steps: finding, adding, removing. An entry appears by rename and is never changed,
 * so a reader sees all of it or none, and one that was opened stays whole when somebody removes it. */
#include "engine/compile_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/cache_place.h"

#define NAME_LENGTH   (2 * SHA256_BYTES)
#define TEMPORARY     ".new-"
#define TEMPORARY_AGE 3600 /* seconds after which nobody is writing it any more */
#define TOUCH_AGE     60   /* seconds within which a use need not be noted again */
#define SETTLED_AGE   2    /* seconds after which a change would show in the times */
#define KNOWN_COUNT   256

/* An entry whose hashes this process has checked. As long as the file is the same and unchanged, so are they. */
struct known {
    struct compile_key key;
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
};

struct compile_cache {
    char *directory; /* NULL: the user's */
    char *tenant;    /* NULL: none */
    uint64_t bytes;
    pthread_mutex_t lock;
    struct known known[KNOWN_COUNT]; /* by the key's first byte */
};

struct compile_cache *compile_cache_new(const char *directory, size_t bytes, const char *tenant)
{
    struct compile_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    pthread_mutex_init(&cache->lock, NULL);
    cache->bytes = bytes ? bytes : COMPILE_CACHE_BYTES;
    cache->directory = directory ? strdup(directory) : NULL;
    cache->tenant = tenant ? strdup(tenant) : NULL;
    if ((directory && !cache->directory) || (tenant && !cache->tenant)) {
        compile_cache_free(cache);
        return NULL;
    }
    return cache;
}

void compile_cache_free(struct compile_cache *cache)
{
    if (!cache)
        return;
    pthread_mutex_destroy(&cache->lock);
    free(cache->directory);
    free(cache->tenant);
    free(cache);
}

const char *compile_cache_tenant(const struct compile_cache *cache)
{
    return cache->tenant;
}

int compile_cache_open(const struct compile_cache *cache)
{
    return cache->directory ? cache_place_open_path(cache->directory) : cache_place_open("compiled");
}

static struct known *known_slot(struct compile_cache *cache, const struct compile_key *key)
{
    return &cache->known[key->bytes[0] % KNOWN_COUNT];
}

static struct known describe(const struct compile_key *key, const struct stat *st)
{
    struct known known = {0};
    known.key = *key;
    known.device = st->st_dev;
    known.inode = st->st_ino;
    known.size = st->st_size;
    known.modified = st->st_mtim;
    known.changed = st->st_ctim;
    return known;
}

static bool is_known(struct compile_cache *cache, const struct known *known)
{
    pthread_mutex_lock(&cache->lock);
    bool same = !memcmp(known_slot(cache, &known->key), known, sizeof *known);
    pthread_mutex_unlock(&cache->lock);
    return same;
}

/* A file that changed just now could change once more without another time to show for it. */
static void remember(struct compile_cache *cache, const struct known *known)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec - known->changed.tv_sec <= SETTLED_AGE)
        return;
    pthread_mutex_lock(&cache->lock);
    *known_slot(cache, &known->key) = *known;
    pthread_mutex_unlock(&cache->lock);
}

/* The time of use is set by hand: most file systems are mounted so that reading does not. */
static void touch(int fd, struct stat *st)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    if (time(NULL) - st->st_atim.tv_sec < TOUCH_AGE)
        return;
    if (futimens(fd, times) == 0)
        fstat(fd, st);
}

static bool read_entry(struct compile_cache *cache, int fd, const struct compile_key *key, struct collected *made,
                       struct outcome *outcome)
{
    struct stat before, after;
    if (fstat(fd, &before) < 0 || !S_ISREG(before.st_mode) || !cache_place_is_own(&before))
        return false;
    touch(fd, &before);
    const struct known known = describe(key, &before);
    bool trusted = is_known(cache, &known);
    if (compile_entry_read(fd, key, trusted, made, outcome) < 0)
        return false;
    if (trusted || fstat(fd, &after) < 0)
        return true;
    const struct known still = describe(key, &after);
    if (!memcmp(&known, &still, sizeof known))
        remember(cache, &known);
    return true;
}

bool compile_cache_find(struct compile_cache *cache, const struct compile_key *key, struct collected *made,
                        struct outcome *outcome)
{
    char name[NAME_LENGTH + 1];
    sha256_text(key->bytes, name);
    auto_close int dir = compile_cache_open(cache);
    if (dir < 0)
        return false;
    auto_close int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ELOOP)
            unlinkat(dir, name, 0);
        return false;
    }
    if (read_entry(cache, fd, key, made, outcome))
        return true;
    unlinkat(dir, name, 0);
    return false;
}

struct listed {
    char name[NAME_LENGTH + 1];
    uint64_t bytes;
    struct timespec used;
};

struct listing {
    struct listed *items;
    size_t count;
    uint64_t bytes;
};

static int compare_used(const void *a, const void *b)
{
    const struct timespec *x = &((const struct listed *)a)->used, *y = &((const struct listed *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static bool is_entry_name(const char *name)
{
    return strlen(name) == NAME_LENGTH && strspn(name, "0123456789abcdef") == NAME_LENGTH;
}

static int add_listed(struct listing *listing, const char *name, const struct stat *st)
{
    /* Doubles at powers of two, so no capacity needs keeping. */
    if ((listing->count & (listing->count - 1)) == 0) {
        void *items = reallocarray(listing->items, listing->count ? listing->count * 2 : 1, sizeof *listing->items);
        if (!items)
            return -1;
        listing->items = items;
    }
    struct listed *item = &listing->items[listing->count++];
    bool read_later = st->st_atim.tv_sec > st->st_mtim.tv_sec;
    *item = (struct listed){.bytes = (uint64_t)st->st_size, .used = read_later ? st->st_atim : st->st_mtim};
    memcpy(item->name, name, sizeof item->name);
    listing->bytes += item->bytes;
    return 0;
}

/* Everything that is an entry; what a writer that died left behind goes at once. */
static void list_entries(DIR *stream, struct listing *listing)
{
    int dir = dirfd(stream);
    time_t now = time(NULL);
    struct stat st;
    for (const struct dirent *entry; (entry = readdir(stream));) {
        bool temporary = !strncmp(entry->d_name, TEMPORARY, strlen(TEMPORARY));
        if ((!temporary && !is_entry_name(entry->d_name)) || fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (temporary && now - st.st_mtim.tv_sec > TEMPORARY_AGE)
            unlinkat(dir, entry->d_name, 0);
        else if (!temporary && add_listed(listing, entry->d_name, &st) < 0)
            return;
    }
}

static bool is_too_much(const struct compile_cache *cache, const struct listing *listing, size_t removed)
{
    return listing->bytes > cache->bytes || listing->count - removed > COMPILE_CACHE_ENTRIES_MAX;
}

static void shrink(const struct compile_cache *cache, int dir)
{
    int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = own < 0 ? NULL : fdopendir(own);
    if (!stream) {
        cleanup_close(&own);
        return;
    }
    struct listing listing = {0};
    list_entries(stream, &listing);
    if (listing.count && is_too_much(cache, &listing, 0))
        qsort(listing.items, listing.count, sizeof *listing.items, compare_used);
    for (size_t i = 0; i < listing.count && is_too_much(cache, &listing, i); i++) {
        /* Somebody else may have removed it first. */
        unlinkat(dir, listing.items[i].name, 0);
        listing.bytes -= listing.items[i].bytes;
    }
    free(listing.items);
    closedir(stream);
}

void compile_cache_keep(struct compile_cache *cache, const struct compile_key *key, const struct collected *made,
                        const struct outcome *outcome)
{
    uint64_t random;
    char name[NAME_LENGTH + 1], temporary[32];
    auto_close int dir = compile_cache_open(cache);
    if (dir < 0 || getrandom(&random, sizeof random, 0) != sizeof random)
        return;
    sha256_text(key->bytes, name);
    snprintf(temporary, sizeof temporary, TEMPORARY "%016llx", (unsigned long long)random);
    auto_close int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    /* One that takes half of the room would put everything else out. */
    if (compile_entry_write(fd, key, made, outcome, cache->bytes / 2) < 0 || renameat(dir, temporary, dir, name) < 0) {
        unlinkat(dir, temporary, 0);
        return;
    }
    shrink(cache, dir);
}

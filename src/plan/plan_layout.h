/* The bytes of a plan: a header, tables of fixed-size rows, then strings and file contents, all found by offset from
 * the start. Written by plan_write.c, checked and read by plan_map.c; library and warden are built together, so a
 * version field only guards against mixing builds. */
#ifndef PLAN_PLAN_LAYOUT_H
#define PLAN_PLAN_LAYOUT_H

#include <fcntl.h>
#include <stdint.h>

#include "plan/limits.h"

#define PLAN_MAGIC   UINT32_C(0x6e6c7063)
#define PLAN_VERSION UINT32_C(2)
/* What a compile step leaves may be larger than what a request may carry. */
#define PLAN_BYTES_MAX   (UINT64_C(1) << 30)
#define PLAN_STRINGS_MAX 65536
#define PLAN_SEALS       (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

#define PLAN_FLAG_VALUE_PIPE UINT32_C(1)
#define PLAN_FLAG_TERMINALS  UINT32_C(2)
#define PLAN_FLAGS_KNOWN     (PLAN_FLAG_VALUE_PIPE | PLAN_FLAG_TERMINALS)

/* Bytes of the block. A string's length leaves out its NUL, which is there and is the only one. */
struct plan_ref {
    uint64_t offset;
    uint64_t length;
};

/* Rows of a table; the offset is a multiple of eight. */
struct plan_table {
    uint64_t offset;
    uint64_t count;
};

struct plan_file_row {
    struct plan_ref path;
    struct plan_ref content;
    uint32_t mode;
    uint32_t zero;
};

struct plan_mount_row {
    struct plan_ref destination;
    uint32_t writable;
    uint32_t zero;
};

enum plan_list { PLAN_ARGV, PLAN_ENVP, PLAN_CANDIDATES, PLAN_ETC, PLAN_HANDOVER, PLAN_LIST_COUNT };

struct plan_header {
    uint32_t magic;
    uint32_t version;
    uint64_t size; /* of the whole block */
    int64_t limit[LIMIT_COUNT];
    uint32_t optional;
    uint32_t flags;
    uint64_t pool, slots;
    struct plan_table list[PLAN_LIST_COUNT]; /* rows: struct plan_ref of a string */
    struct plan_table files;
    struct plan_table mounts;
};

_Static_assert(sizeof(struct plan_header) % 8 == 0 && sizeof(struct plan_file_row) % 8 == 0 &&
                   sizeof(struct plan_mount_row) % 8 == 0,
               "rows are written one after another and must stay aligned");

#endif

/* Owns the automaton that looks for known values. Hyperscan is not used for these: its compiler takes milliseconds, and
 * every run may bring values of its own. The trie keeps its children as lists, because almost every node has one.
 * Called by the forms, which fill it, and by the streams. */
#include "output/redact_literals.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define FILTER_BITS 16

struct node {
    uint32_t child, sibling; /* 0: none; the root is nobody's child */
    uint32_t fail;
    uint32_t depth;
    uint32_t longest; /* literal that ends here, or 0 */
    unsigned char byte;
};

struct literals {
    struct node *nodes;
    uint32_t count, capacity;
    uint32_t first[256];                     /* the root's children */
    uint64_t begins[1 << (FILTER_BITS - 6)]; /* hashes of every literal's first bytes: most text is passed over */
    size_t deepest;
};

/* Of the first LITERAL_MIN bytes. */
static uint32_t hash_of(const unsigned char *text)
{
    uint32_t word;
    _Static_assert(sizeof word == LITERAL_MIN, "all of a literal's least length, and no byte more");
    memcpy(&word, text, sizeof word);
    return word * UINT32_C(2654435761) >> (32 - FILTER_BITS);
}

struct literals *literals_new(void)
{
    struct literals *literals = calloc(1, sizeof *literals);
    if (!literals)
        return NULL;
    literals->capacity = 256;
    literals->count = 1;
    literals->nodes = calloc(literals->capacity, sizeof *literals->nodes);
    if (!literals->nodes) {
        free(literals);
        return NULL;
    }
    return literals;
}

void literals_free(struct literals *literals)
{
    if (!literals)
        return;
    explicit_bzero(literals->nodes, literals->count * sizeof *literals->nodes);
    free(literals->nodes);
    explicit_bzero(literals, sizeof *literals);
    free(literals);
}

size_t literals_bytes(const struct literals *literals)
{
    return sizeof *literals + literals->capacity * sizeof *literals->nodes;
}

size_t literals_longest(const struct literals *literals)
{
    return literals->deepest;
}

size_t literals_depth(const struct literals *literals, uint32_t state)
{
    return literals->nodes[state].depth;
}

static uint32_t child_of(const struct literals *literals, uint32_t node, unsigned char byte)
{
    if (!node)
        return literals->first[byte];
    uint32_t child = literals->nodes[node].child;
    while (child && literals->nodes[child].byte != byte)
        child = literals->nodes[child].sibling;
    return child;
}

/* realloc() would leave a copy of the values behind. */
static bool grow(struct literals *literals)
{
    if (literals->count < literals->capacity)
        return true;
    if (literals->capacity > UINT32_MAX / 4)
        return false;
    struct node *larger = calloc((size_t)literals->capacity * 2, sizeof *larger);
    if (!larger)
        return false;
    memcpy(larger, literals->nodes, literals->count * sizeof *larger);
    explicit_bzero(literals->nodes, literals->count * sizeof *larger);
    free(literals->nodes);
    literals->nodes = larger;
    literals->capacity *= 2;
    return true;
}

static uint32_t add_child(struct literals *literals, uint32_t node, unsigned char byte)
{
    if (!grow(literals))
        return 0;
    uint32_t child = literals->count++;
    literals->nodes[child] = (struct node){.byte = byte, .depth = literals->nodes[node].depth + 1};
    if (node) {
        literals->nodes[child].sibling = literals->nodes[node].child;
        literals->nodes[node].child = child;
    } else
        literals->first[byte] = child;
    return child;
}

bool literals_add(struct literals *literals, const void *bytes, size_t length)
{
    const unsigned char *text = bytes;
    if (length < LITERAL_MIN)
        return true;
    uint32_t node = 0;
    for (size_t i = 0; i < length; i++) {
        uint32_t next = child_of(literals, node, text[i]);
        node = next ? next : add_child(literals, node, text[i]);
        if (!node)
            return false;
    }
    literals->nodes[node].longest = (uint32_t)length;
    uint32_t hash = hash_of(text);
    literals->begins[hash / 64] |= UINT64_C(1) << hash % 64;
    if (length > literals->deepest)
        literals->deepest = length;
    return true;
}

static uint32_t step(const struct literals *literals, uint32_t state, unsigned char byte)
{
    for (;;) {
        uint32_t next = child_of(literals, state, byte);
        if (next || !state)
            return next;
        state = literals->nodes[state].fail;
    }
}

/* `child` comes from a node whose own fail link, and those of everything less deep, are known. */
static void link_child(struct literals *literals, uint32_t parent, uint32_t child)
{
    struct node *node = &literals->nodes[child];
    node->fail = parent ? step(literals, literals->nodes[parent].fail, node->byte) : 0;
    if (!node->longest)
        node->longest = literals->nodes[node->fail].longest;
}

bool literals_finish(struct literals *literals)
{
    auto_free uint32_t *queue = malloc(literals->count * sizeof *queue);
    if (!queue)
        return false;
    size_t head = 0, tail = 0;
    for (unsigned byte = 0; byte < 256; byte++)
        if (literals->first[byte]) {
            link_child(literals, 0, literals->first[byte]);
            queue[tail++] = literals->first[byte];
        }
    while (head < tail) {
        uint32_t parent = queue[head++];
        for (uint32_t child = literals->nodes[parent].child; child; child = literals->nodes[child].sibling) {
            link_child(literals, parent, child);
            queue[tail++] = child;
        }
    }
    return true;
}

/* The first position at which a literal may begin; the last bytes, too few to tell, always may. */
static size_t pass_over(const struct literals *literals, const unsigned char *text, size_t i, size_t length)
{
    for (; i + LITERAL_MIN <= length; i++) {
        uint32_t hash = hash_of(text + i);
        if (literals->begins[hash / 64] >> hash % 64 & 1)
            break;
    }
    return i;
}

uint32_t literals_scan(const struct literals *literals, uint32_t state, const void *bytes, size_t length,
                       uint64_t offset, literals_found found, void *context)
{
    const unsigned char *text = bytes;
    for (size_t i = 0; i < length; i++) {
        if (!state)
            i = pass_over(literals, text, i, length);
        state = step(literals, state, text[i]);
        uint32_t longest = literals->nodes[state].longest;
        if (longest)
            found(context, offset + i + 1 - longest, offset + i + 1);
    }
    return state;
}

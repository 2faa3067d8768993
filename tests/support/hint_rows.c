/* Prints each row of the advice tables as "TEXT<tab>HINT", so that tests/e2e/test_hints.py can see that a failure
 * reaches it. With a language: explains standard input as what a program of that language wrote before it failed, as
 * "CATEGORY<tab>MESSAGE<tab>HINT". */
#include <stdio.h>
#include <string.h>

#include "explain/explain.h"
#include "explain/hints.h"
#include "lang/catalog.h"

static int explain_input_text(const char *languages, const char *id)
{
    static char text[65536];
    size_t length = fread(text, 1, sizeof text - 1, stdin);
    struct catalog *catalog;
    const struct manifest *manifest;
    struct explanation got;
    if (catalog_open((const char *const[]){languages, NULL}, &catalog, NULL) < 0 ||
        catalog_find(catalog, id, &manifest, NULL) < 0)
        return 1;
    struct explain_input input = {
        .manifest = manifest, .status = CORDON_STATUS_NONZERO_EXIT, .stderr_text = text, .stderr_length = length};
    if (explain(&input, &got) == 1)
        printf("%s\t%s\t%s\n", got.category, got.message ? got.message : "", got.hint ? got.hint : "");
    explanation_free(&got);
    catalog_close(catalog);
    return 0;
}

int main(int argc, char **argv)
{
    const char *text, *hint;
    if (argc == 3)
        return explain_input_text(argv[1], argv[2]);
    for (size_t i = 0; hint_row(i, &text, &hint); i++)
        printf("%s\t%s\n", text, hint);
    return 0;
}

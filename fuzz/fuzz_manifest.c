/* libFuzzer target: any bytes as a language's manifest. What is refused must say why in one line that names the file,
 * and what is accepted must have what every run of it relies on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "lang/manifest.h"
#include "plan/path.h"

static void check_manifest(const struct manifest *manifest)
{
    if (!manifest->id || !*manifest->id || !manifest->name || !manifest->file || !manifest->run)
        __builtin_trap();
    if (!request_path_is_safe(manifest->file))
        __builtin_trap();
}

/* A manifest's id is its file's name, which is x here. */
static const char *place(void)
{
    static char path[64] = "/tmp/fuzz-manifest-XXXXXX";
    static bool made;
    if (!made && mkdtemp(path))
        strcat(path, "/x.yaml");
    made = true;
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct manifest *manifest = NULL;
    cordon_error err = {0};
    FILE *file = fopen(place(), "w");
    if (!file)
        return 0;
    fwrite(bytes, 1, length, file);
    fclose(file);
    if (manifest_load(place(), &manifest, &err) == 0) {
        check_manifest(manifest);
        manifest_free(manifest);
    } else if (!err.code || !*err.text || strchr(err.text, '\n'))
        __builtin_trap();
    unlink(place());
    return 0;
}

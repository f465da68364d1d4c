/* SPDX-License-Identifier: Apache-2.0 */
#include "data/paths.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/mem.h"

#define MAX_DEPTH 32 /* of folders: links may go round in circles */

static ls_status_t add_name(ls_paths_t *paths, const char *name)
{
    const size_t used   = paths->count * sizeof(char *);
    ls_status_t  status = LS_OK;

    if ((paths->count & (paths->count - 1)) == 0) { /* full at each power of two */
        const size_t room = (paths->count == 0 ? 1 : 2 * (size_t)paths->count) * sizeof(char *);

        status = ls_mem_resize((void **)&paths->names, used, room, "list of data files");
    }
    if (status == LS_OK) {
        status = ls_mem_strdup(name, "path of a data file", &paths->names[paths->count]);
    }
    if (status == LS_OK) {
        paths->count++;
    }
    return status;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static ls_status_t add_any(ls_paths_t *paths, const char *path, unsigned depth);

static ls_status_t add_folder(ls_paths_t *paths, const char *path, unsigned depth)
{
    struct dirent **entries = NULL;
    const int       count   = scandir(path, &entries, is_visible, alphasort);
    ls_status_t     status  = LS_OK;

    if (count < 0) {
        return ls_error_set_errno("%s: the folder cannot be read", path);
    }
    if (depth == MAX_DEPTH) {
        status = ls_error_set(LS_ERR_INVALID, "%s: more than %d folders inside each other", path, MAX_DEPTH);
    }
    for (int i = 0; i < count; i++) {
        char name[PATH_MAX];

        if (status == LS_OK &&
            snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name) >= (int)sizeof(name)) {
            status = ls_error_set(LS_ERR_INVALID, "%s/%s: the name is too long", path, entries[i]->d_name);
        }
        if (status == LS_OK) {
            status = add_any(paths, name, depth + 1);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

static ls_status_t add_any(ls_paths_t *paths, const char *path, unsigned depth)
{
    struct stat about;

    if (stat(path, &about) != 0) {
        return ls_error_set_errno("%s: it cannot be opened", path);
    }
    return S_ISDIR(about.st_mode) ? add_folder(paths, path, depth) : add_name(paths, path);
}

static ls_status_t add_pattern(ls_paths_t *paths, const char *pattern)
{
    glob_t      found  = {0};
    const int   code   = glob(pattern, GLOB_ERR, NULL, &found);
    ls_status_t status = LS_OK;

    if (code == GLOB_NOMATCH) {
        status = ls_error_set(LS_ERR_INVALID, "%s: no file matches this pattern", pattern);
    } else if (code != 0) {
        status = ls_error_set_errno("%s: the files of this pattern cannot be listed", pattern);
    }
    for (size_t i = 0; i < found.gl_pathc && status == LS_OK; i++) {
        status = add_any(paths, found.gl_pathv[i], 0);
    }
    globfree(&found);
    return status;
}

ls_status_t ls_paths_add(ls_paths_t *paths, const char *path)
{
    const unsigned before = paths->count;
    struct stat    about;
    ls_status_t    status;

    if (stat(path, &about) != 0 && errno == ENOENT && strpbrk(path, "*?[") != NULL) {
        status = add_pattern(paths, path);
    } else {
        status = add_any(paths, path, 0);
    }
    if (status == LS_OK && paths->count == before) {
        status = ls_error_set(LS_ERR_INVALID, "%s: there is no file in this folder", path);
    }
    return status;
}

void ls_paths_clear(ls_paths_t *paths)
{
    for (unsigned i = 0; i < paths->count; i++) {
        ls_mem_free(paths->names[i]);
    }
    ls_mem_free(paths->names);
    *paths = (ls_paths_t){0};
}

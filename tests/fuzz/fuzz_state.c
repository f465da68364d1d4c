/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: a snapshot on disk.  The input is a number of two bytes, so many bytes of manifest, and the data.  The reader
 * gets them as they are, then with the hashes of the parts and of the manifest put right: what an accident never passes, and
 * somebody who writes into the folder does.  Parts that are given out must lie in the data, one after another.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lockstep_state.h"

#define MOST_TEXT   65536
#define HASH_DIGITS 16
#define NAME        "fuzz"

static char folder[] = "fuzz-state-XXXXXX";
static int  manifest = -1, data = -1;

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static int make(const char *ending)
{
    char      path[64];
    const int length = snprintf(path, sizeof(path), "%s/" NAME "%s", folder, ending);
    const int fd     = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (length < 0 || fd < 0) {
        abort();
    }
    return fd;
}

static void put(int fd, const void *bytes, size_t size)
{
    if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size) {
        abort();
    }
}

/* A manifest that was accepted gives parts that can be read, and ends where they do. */
static void read_snapshot(size_t data_size)
{
    ls_state_h             state;
    uint64_t               size, sum = 0;
    volatile unsigned char seen = 0;

    if (ls_state_open(folder, NAME, &state) != LS_OK) {
        return;
    }
    for (unsigned part = 0; part < ls_state_num_parts(state); part++) {
        const unsigned char *bytes = ls_state_part(state, part, &size);

        for (uint64_t i = 0; i < size; i++) {
            seen = (unsigned char)(seen + bytes[i]);
        }
        sum += size;
    }
    if (sum > data_size || ls_state_part(state, ls_state_num_parts(state), &size) != NULL || size != 0) {
        abort();
    }
    ls_state_close(state);
}

/* "part OFFSET SIZE HASH": the hash becomes the data's, where there is such data. */
static void mend_part(char *line, size_t length, const uint8_t *bytes, size_t num_bytes)
{
    char     copy[80], digits[HASH_DIGITS + 1];
    uint64_t offset, size;
    int      at = 0;

    if (length >= sizeof(copy)) {
        return;
    }
    memcpy(copy, line, length);
    copy[length] = '\0';
    if (sscanf(copy, "part %" SCNu64 " %" SCNu64 " %n", &offset, &size, &at) == 2 && (size_t)at + HASH_DIGITS <= length &&
        size <= num_bytes && offset <= num_bytes - size) {
        snprintf(digits, sizeof(digits), "%016" PRIx64, ls_hash(bytes + offset, (size_t)size));
        memcpy(line + at, digits, HASH_DIGITS);
    }
}

/* Mends each line, and puts a right last one behind them; returns the length. */
static size_t mend(char *text, size_t length, const uint8_t *bytes, size_t num_bytes)
{
    unsigned num_parts = 0;
    size_t   end;

    for (size_t at = 0; at < length; at = end + 1) {
        const char *newline = memchr(text + at, '\n', length - at);

        end = newline == NULL ? length : (size_t)(newline - text);
        mend_part(text + at, end - at, bytes, num_bytes);
        num_parts += text[at] == 'p';
    }
    return length + (size_t)sprintf(text + length, "end %u %016" PRIx64 "\n", num_parts, ls_hash(text, length));
}

static void remove_files(void)
{
    ls_state_remove(folder, NAME);
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static char    text[MOST_TEXT + 80];
    const uint8_t *bytes;
    size_t         length, num_bytes;

    if (manifest < 0) {
        if (mkdtemp(folder) == NULL) {
            abort();
        }
        manifest = make(".manifest");
        data     = make(".data");
        atexit(remove_files);
    }
    if (size < 2) {
        return 0;
    }
    length    = (size_t)input[0] + 256 * (size_t)input[1];
    length    = length > size - 2 ? size - 2 : length;
    bytes     = input + 2 + length;
    num_bytes = size - 2 - length;
    put(data, bytes, num_bytes);
    put(manifest, input + 2, length);
    read_snapshot(num_bytes);
    memcpy(text, input + 2, length);
    length = mend(text, length, bytes, num_bytes);
    put(manifest, text, length);
    read_snapshot(num_bytes);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner's paths against a reader of one byte after another, and the fast numbers against the careful
 * ones. */
#include "data/csv_scan.h"

#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "data/csv_plain.h"
#include "data/decimal.h"

#define MOST 700

static const ls_csv_marks_t marks = {.delimiter = ',', .quote = '"'};

static const ls_csv_scan_ops_t *(*const paths[])(void) = {ls_csv_scan_c_get, ls_csv_scan_avx2_get,
                                                          ls_csv_scan_avx512_get};

/* Exactly as many bytes as there are, and the slack, so that ASan sees what is read beyond. */
static char *random_text(size_t length)
{
    static const char letters[] = "\"\"\",,\n\n\r\rab1";
    char             *text      = malloc(length + LS_CSV_SCAN_SLACK);

    for (size_t i = 0; i < length; i++) {
        text[i] = letters[(size_t)rand() % (sizeof(letters) - 1)];
        text[i] = rand() % 500 == 0 ? '\0' : text[i];
    }
    memset(text + length, '"', LS_CSV_SCAN_SLACK);
    return text;
}

static ls_csv_count_t count_slowly(const char *before, const char *text, size_t length)
{
    ls_csv_count_t count = {.bad_quote = {LS_CSV_SCAN_NONE, LS_CSV_SCAN_NONE}, .nul = LS_CSV_SCAN_NONE};

    for (unsigned start = 0; start < 2; start++) {
        unsigned inside    = start;
        int      is_closed = (start == 0 && before[1] == '"');

        for (size_t i = 0; i < length; i++) {
            const char last   = i > 0 ? text[i - 1] : before[1];
            const char older  = i > 1 ? text[i - 2] : i == 1 ? before[1] : before[0];
            int        is_bad = is_closed && strchr(",\n\r\"", text[i]) == NULL;

            is_bad |= (is_closed && text[i] == '\0');
            is_closed = 0;
            if (text[i] == '"') {
                inside ^= 1;
                is_closed = !inside;
                is_bad |= (inside && last != ',' && last != '\n' && last != '"');
            }
            if (is_bad && count.bad_quote[start] == LS_CSV_SCAN_NONE) {
                count.bad_quote[start] = i;
            }
            if (text[i] == '\0' && count.nul == LS_CSV_SCAN_NONE) {
                count.nul = i;
            }
            count.rows[start] +=
                (text[i] == '\n' && !inside && last != '\n' && !(last == '\r' && older == '\n'));
        }
        count.is_odd = inside ^ start;
    }
    return count;
}

static void check_count(const ls_csv_scan_ops_t *ops, const char *before, const char *text, size_t length)
{
    const ls_csv_count_t expected = count_slowly(before, text, length);
    ls_csv_count_t       got;

    ops->count(&marks, before, text, length, &got);
    for (int start = 0; start < 2; start++) {
        CHECK_EQ_INT(got.rows[start], expected.rows[start]);
        CHECK_EQ_INT(got.bad_quote[start], expected.bad_quote[start]);
    }
    CHECK_EQ_INT(got.nul, expected.nul);
    CHECK_EQ_INT(got.is_odd, expected.is_odd);
}

static void check_ends(const ls_csv_scan_ops_t *ops, unsigned is_inside, const char *text, size_t length)
{
    uint32_t *positions  = malloc((length + LS_CSV_SCAN_ROOM_BEHIND) * sizeof(*positions));
    unsigned  got_inside = is_inside;
    size_t    num_lines = 0, num = 0, lines = 0;
    size_t    got = ops->ends(&marks, text, length, &got_inside, positions, &num_lines);

    for (size_t i = 0; i < length; i++) {
        is_inside ^= (text[i] == '"');
        if (!is_inside && (text[i] == ',' || text[i] == '\n')) {
            CHECK(num < got && positions[num] == i);
            num++;
            lines += (text[i] == '\n');
        }
    }
    CHECK_EQ_INT(got, num);
    CHECK_EQ_INT(num_lines, lines);
    CHECK_EQ_INT(got_inside, is_inside);
    free(positions);
}

/* As ends(), from the beginning of a row; or bad, where the careful reader finds something wrong. */
static void check_good_ends(const ls_csv_scan_ops_t *ops, const char *text, size_t length)
{
    const size_t         bytes    = (length + LS_CSV_SCAN_ROOM_BEHIND) * sizeof(uint32_t);
    const ls_csv_count_t expected = count_slowly("\n\n", text, length);
    uint32_t            *good = malloc(bytes), *all = malloc(bytes);
    unsigned             inside[2] = {0, 0};
    size_t               lines[2];
    const size_t         num      = ops->ends(&marks, text, length, &inside[0], all, &lines[0]);
    const size_t         num_good = ops->good_ends(&marks, text, length, &inside[1], good, &lines[1]);

    if (expected.nul != LS_CSV_SCAN_NONE || expected.bad_quote[0] != LS_CSV_SCAN_NONE) {
        CHECK(num_good == LS_CSV_SCAN_BAD);
    } else {
        CHECK(num_good == num && inside[0] == inside[1] && lines[0] == lines[1] &&
              memcmp(good, all, num * sizeof(*all)) == 0);
    }
    free(good);
    free(all);
}

static void test_all_paths_see_the_same_rows_and_fields(void)
{
    static const char befores[][3] = {"\n\n", "\n\r", "a,", ",\"", "\"\"", "ab", "\r\n"};

    srand(1);
    for (int trial = 0; trial < 3000; trial++) {
        const size_t length = (size_t)rand() % MOST;
        char        *text   = random_text(length);

        for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
            const ls_csv_scan_ops_t *ops = paths[i]();

            if (ops != NULL) {
                check_count(ops, befores[trial % 7], text, length);
                check_ends(ops, (unsigned)trial % 2, text, length);
                check_good_ends(ops, text, trial % 2 ? length : length % 12); /* few are good by chance */
            }
        }
        free(text);
    }
}

static const char *random_number(void)
{
    static char  text[80];
    const double value = ((double)rand() / RAND_MAX - 0.5) * (rand() % 3 == 0 ? 1e7 : 2);

    switch (rand() % 6) {
    case 0:
        snprintf(text, sizeof(text), "%.17g", value);
        break;
    case 1:
        snprintf(text, sizeof(text), "%.*f", rand() % 22, value);
        break;
    case 2:
        snprintf(text, sizeof(text), "%.*e", rand() % 20, value);
        break;
    case 3:
        snprintf(text, sizeof(text), "%d", rand() - RAND_MAX / 2);
        break;
    case 4: /* no numbers, or not plain ones */
        snprintf(text, sizeof(text), "%s",
                 (const char *[]){"", "-", ".", "1.2.3", "e+05", "1e5", "- 1", "\"1\"", "1..", "-.e+01", "+1",
                                  "12345678901234567890", "0.e-01"}[rand() % 13]);
        break;
    default:
        snprintf(text, sizeof(text), "%s%d.%c5", rand() % 2 ? "-" : "", rand() % 100,
                 rand() % 30 == 0 ? 'x' : '0' + rand() % 10);
    }
    return text;
}

/* Fields one after another, as in a single row; what is taken must be what decimal.c takes, bit for bit. */
static void test_plain_numbers_are_the_careful_ones(void)
{
    const ls_csv_plain_ops_t *ops       = ls_csv_plain_get();
    int                       num_taken = 0, num_left = 0;

    srand(2);
    for (int trial = 0; trial < 200000 && ops != NULL; trial++) {
        char     memory[LS_CSV_PLAIN_SLACK + 80 + LS_CSV_SCAN_SLACK];
        char    *data    = memory + LS_CSV_PLAIN_SLACK;
        uint32_t ends[2] = {UINT32_MAX, 0};
        double   got = 0, expected = 0;
        int64_t  whole = 0, expected_whole = 0;

        memset(memory, "0.,-9"[trial % 5], sizeof(memory));
        ends[1]                    = (uint32_t)snprintf(data, 80, "%s", random_number());
        data[ends[1]]              = ',';
        const ls_csv_plain_t field = {.data = data, .ends = ends + 1, .stride = 1, .count = 1};

        const bool is_number = ls_decimal_double(data, data + ends[1], &expected);
        const bool is_whole  = ls_decimal_int64(data, data + ends[1], &expected_whole);

        if (ops->doubles(&field, &got) == 1) {
            CHECK(is_number && memcmp(&got, &expected, sizeof(got)) == 0);
            num_taken++;
        } else {
            num_left++;
        }
        if (ops->integers(&field, &whole) == 1) {
            CHECK(is_whole && whole == expected_whole);
        }
    }
    CHECK(ops == NULL || (num_taken > 1000 && num_left > 1000));
}

int main(void)
{
    RUN(test_all_paths_see_the_same_rows_and_fields);
    RUN(test_plain_numbers_are_the_careful_ones);
    return check_report();
}

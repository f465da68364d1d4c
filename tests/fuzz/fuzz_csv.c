/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    return fuzz_reader("csv", input, size);
}

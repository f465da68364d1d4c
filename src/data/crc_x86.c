/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32 by carry-less multiplication, four lanes of 16 bytes folded at a time (Gopal et al., "Fast CRC
 * Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009: the constants are the paper's); CRC-32C
 * by the instruction made for it, which waits three cycles for each 8 bytes; where there are multiplications
 * of 64 bytes at a time, four such lanes are folded first, by the same method, four times as fast.
 */
#include "data/crc_int.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

bool ls_crc_x86_has_32(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

bool ls_crc_x86_has_32c(void)
{
    return __builtin_cpu_supports("sse4.2");
}

bool ls_crc_x86_has_32c_wide(void)
{
    return ls_crc_x86_has_32c() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

__attribute__((target("pclmul,sse4.1"))) static __m128i fold(__m128i lane, __m128i constants, __m128i next)
{
    const __m128i low  = _mm_clmulepi64_si128(lane, constants, 0x00);
    const __m128i high = _mm_clmulepi64_si128(lane, constants, 0x11);

    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* 128 bits to 32: fold to 64, then Barrett's reduction. */
__attribute__((target("pclmul,sse4.1"))) static uint32_t reduce(__m128i lane, __m128i by_16)
{
    const __m128i by_4    = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i mask    = _mm_setr_epi32(~0, 0, ~0, 0);
    __m128i       rest;

    rest = _mm_clmulepi64_si128(lane, by_16, 0x10);
    lane = _mm_xor_si128(_mm_srli_si128(lane, 8), rest);
    rest = _mm_srli_si128(lane, 4);
    lane = _mm_clmulepi64_si128(_mm_and_si128(lane, mask), by_4, 0x00);
    lane = _mm_xor_si128(lane, rest);
    rest = _mm_clmulepi64_si128(_mm_and_si128(lane, mask), barrett, 0x10);
    rest = _mm_clmulepi64_si128(_mm_and_si128(rest, mask), barrett, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(lane, rest), 1);
}

__attribute__((target("pclmul,sse4.1"))) uint32_t ls_crc_x86_32(uint32_t crc, const unsigned char *bytes,
                                                                size_t count)
{
    const __m128i  by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i  by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i *block = (const __m128i *)(const void *)bytes;
    __m128i        lanes[4];

    for (int i = 0; i < 4; i++) {
        lanes[i] = _mm_loadu_si128(block + i);
    }
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128((int)~crc));
    for (block += 4, count -= 64; count >= 64; block += 4, count -= 64) {
        for (int i = 0; i < 4; i++) {
            lanes[i] = fold(lanes[i], by_64, _mm_loadu_si128(block + i));
        }
    }
    for (int i = 1; i < 4; i++) {
        lanes[0] = fold(lanes[0], by_16, lanes[i]);
    }
    for (; count >= 16; block++, count -= 16) {
        lanes[0] = fold(lanes[0], by_16, _mm_loadu_si128(block));
    }
    return ~reduce(lanes[0], by_16);
}

__attribute__((target("sse4.2"))) uint32_t ls_crc_x86_32c(uint32_t crc, const unsigned char *bytes,
                                                          size_t count)
{
    uint64_t state = ~crc;

    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t word;

        memcpy(&word, bytes, 8);
        state = _mm_crc32_u64(state, word);
    }
    for (; count > 0; bytes++, count--) {
        state = _mm_crc32_u8((uint32_t)state, *bytes);
    }
    return ~(uint32_t)state;
}

__attribute__((target("avx512f,vpclmulqdq"))) static __m512i fold_wide(__m512i lane, __m512i constants,
                                                                       __m512i next)
{
    const __m512i low  = _mm512_clmulepi64_epi128(lane, constants, 0x00);
    const __m512i high = _mm512_clmulepi64_epi128(lane, constants, 0x11);

    return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* xor of the three */
}

/* Constants: x^(8 n + 31) and x^(8 n - 33) modulo the polynomial, for n bytes on, all with their bits
 * reversed. */
__attribute__((target("avx512f,vpclmulqdq,sse4.2"))) uint32_t ls_crc_x86_32c_wide(uint32_t             crc,
                                                                                  const unsigned char *bytes,
                                                                                  size_t               count)
{
    const __m512i by_256 = _mm512_broadcast_i32x4(_mm_set_epi64x(0xb9e02b86, 0xdcb17aa4));
    const __m512i by_64  = _mm512_broadcast_i32x4(_mm_set_epi64x(0x9e4addf8, 0x740eef02));
    __m512i       lanes[4];
    uint64_t      words[8], state = 0;

    for (int i = 0; i < 4; i++) {
        lanes[i] = _mm512_loadu_si512(bytes + 64 * i);
    }
    lanes[0] = _mm512_xor_si512(lanes[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
    for (bytes += LS_CRC_WIDE_BYTES, count -= LS_CRC_WIDE_BYTES; count >= LS_CRC_WIDE_BYTES;
         bytes += LS_CRC_WIDE_BYTES, count -= LS_CRC_WIDE_BYTES) {
        for (int i = 0; i < 4; i++) {
            lanes[i] = fold_wide(lanes[i], by_256, _mm512_loadu_si512(bytes + 64 * i));
        }
    }
    for (int i = 1; i < 4; i++) {
        lanes[0] = fold_wide(lanes[0], by_64, lanes[i]);
    }
    for (; count >= 64; bytes += 64, count -= 64) {
        lanes[0] = fold_wide(lanes[0], by_64, _mm512_loadu_si512(bytes));
    }
    _mm512_storeu_si512(words, lanes[0]); /* 64 bytes that have the same checksum as all before */
    for (int i = 0; i < 8; i++) {
        state = _mm_crc32_u64(state, words[i]);
    }
    return ls_crc_x86_32c(~(uint32_t)state, bytes, count);
}

#else

bool ls_crc_x86_has_32c_wide(void)
{
    return false;
}

uint32_t ls_crc_x86_32c_wide(uint32_t crc, const unsigned char *bytes, size_t count)
{
    return ls_crc_32c_plain(crc, bytes, count);
}

bool ls_crc_x86_has_32(void)
{
    return false;
}

bool ls_crc_x86_has_32c(void)
{
    return false;
}

uint32_t ls_crc_x86_32(uint32_t crc, const unsigned char *bytes, size_t count)
{
    return ls_crc_32_plain(crc, bytes, count);
}

uint32_t ls_crc_x86_32c(uint32_t crc, const unsigned char *bytes, size_t count)
{
    return ls_crc_32c_plain(crc, bytes, count);
}

#endif

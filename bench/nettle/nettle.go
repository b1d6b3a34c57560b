// SPDX-License-Identifier: Apache-2.0

// Package nettle runs the hash functions of GNU Nettle in this process, so that they
// can be timed in turns with ours on the same core. Loops run in C. The package is for
// benchmarks only.
package nettle

/*
#cgo LDFLAGS: -lnettle
#include <nettle/gosthash94.h>
#include <nettle/streebog.h>

static void streebog256(const unsigned char *data, size_t n, int rounds, unsigned char *out) {
	struct streebog256_ctx c;
	streebog256_init(&c);
	while (rounds-- > 0) {
		streebog256_update(&c, n, data);
		streebog256_digest(&c, STREEBOG256_DIGEST_SIZE, out); // also starts a new hash
	}
}

static void gosthash94cp(const unsigned char *data, size_t n, int rounds, unsigned char *out) {
	struct gosthash94_ctx c;
	gosthash94_init(&c);
	while (rounds-- > 0) {
		gosthash94cp_update(&c, n, data);
		gosthash94cp_digest(&c, GOSTHASH94CP_DIGEST_SIZE, out);
	}
}
*/
import "C"

import "unsafe"

func pointer(b []byte) *C.uchar { return (*C.uchar)(unsafe.Pointer(unsafe.SliceData(b))) }

// Streebog256 hashes data rounds times and returns the last value.
func Streebog256(data []byte, rounds int) []byte {
	out := make([]byte, 32)
	C.streebog256(pointer(data), C.size_t(len(data)), C.int(rounds), pointer(out))
	return out
}

// CryptoPro94 hashes data rounds times with GOST R 34.11-94 and the CryptoPro set, and
// returns the last value.
func CryptoPro94(data []byte, rounds int) []byte {
	out := make([]byte, 32)
	C.gosthash94cp(pointer(data), C.size_t(len(data)), C.int(rounds), pointer(out))
	return out
}

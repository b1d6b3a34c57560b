// SPDX-License-Identifier: Apache-2.0

// Package gost28147 implements the block cipher GOST 28147-89 (RFC 5830) with its
// parameter sets, the modes CNT and CFB, the message authentication code ("imit"),
// CryptoPro key meshing and the key wrap algorithms of RFC 4357.
//
// Begin with NewCNT to encipher a stream and with Wrap or WrapCryptoPro to wrap a key.
// NewCipher returns the block cipher alone. The package has only the modes that
// stored, exported and old keys need.
//
// Blocks have 8 bytes and keys 32 bytes. Both are read as little-endian words, as in
// RFC 5830 and in all formats that carry them. The cipher runs in constant time: no
// table index and no branch depends on a key or on data.
package gost28147

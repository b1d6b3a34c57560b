// Package gost28147 owns the block cipher GOST 28147-89 (RFC 5830) with its
// parameter sets, and of its modes what stored, exported and old keys need: CNT,
// CFB, the message authentication code ("imit"), CryptoPro key meshing and the key
// wrap algorithms of RFC 4357.
//
// Blocks are 8 octets, keys 32 octets, both read as little-endian words as in RFC
// 5830 and all formats that carry them. The cipher is constant time: keys and data
// pass through no table index and no branch.
package gost28147

// SPDX-License-Identifier: Apache-2.0

// Package field implements arithmetic modulo the primes of the GOST R 34.10 curves and
// modulo the orders of their groups. It uses fixed numbers of limbs. No branch and no
// index depends on a value, and it does not allocate.
//
//	type   prime                sets                                     arithmetic
//	P256A  2^256 - 617          CryptoPro A, XchA; TC26 256 A, B         minus4.go
//	P256B  2^255 + 3225         CryptoPro B; TC26 256 C                  plus4.go
//	P256C  no special form      CryptoPro C, XchB; TC26 256 D            mont4.go
//	P256T  2^255 + 1073         test set of GOST R 34.10-2001            plus4.go
//	P512A  2^512 - 569          TC26 512 A, C                            minus8.go
//	P512B  2^511 + 111          TC26 512 B                               plus8.go
//	P512T  no special form      TC26 512 test                            mont8.go
//
// Begin with these types and, for the orders, with NewModulus. Every prime has a file
// with a type. All types have the same methods, so the point formulas have the same
// text for all primes. Most methods are one line and are inlined. They call functions
// named after the form of the prime. Results may be stored over operands. Any value of
// a type is valid input. A number may have several representatives. Only Limbs,
// PutBytes and IsZero reduce a value below the prime.
//
// # Implementations
//
// Multiplication, squaring, the steps of an inversion and the reading of a table have
// two implementations each. The Go code is in the files *_product.go, lookup.go and
// invert.go. The assembly, with MULX, ADCX, ADOX and AVX2, is in *_amd64.s. The files
// implementations_*.go choose one by the variables of package impl. The routines in*, which take
// their arguments in registers, are for the formulas of package point, which call them
// by name.
//
// The assembly is straight-line code and loops with a public count. It uses conditional
// moves (CMOV) and masks (SBB) instead of branches on values. TestAssembly checks that
// no conditional jump and no address depends on a value.
package field

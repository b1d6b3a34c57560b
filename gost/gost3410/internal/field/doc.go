// Package field owns arithmetic modulo the primes of GOST R 34.10 curves and
// modulo the orders of their groups: fixed limbs, no branch and no index that
// depends on a value, nothing allocated.
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
// Every prime has its file with a type whose methods are all alike, so that the
// point formulas are one text for all of them. The methods are one line each
// and are inlined; the work is in functions named after the form of the prime.
// Results may be stored over operands. Any value of a type is valid input;
// values that have several representatives are told apart only by Limbs,
// PutBytes and IsZero.
//
// # Where assembly goes
//
// Multiplication and squaring are alone in the files *_noasm.go. An assembly
// twin of, say, minus4_noasm.go declares the same functions in minus4_amd64.go
// and gives the portable file the constraint !amd64; nothing else changes. The
// seam for whole point additions is in package point.
package field

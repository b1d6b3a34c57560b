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
// # Twins
//
// Multiplication, squaring, the steps of an inversion and the reading of a table have
// two twins each: Go, in the files *_product.go, lookup.go and invert.go, and assembly
// with MULX, ADCX, ADOX and AVX2, in *_amd64.s. The files twins_*.go choose between
// them by what package twin says. The routines in*, with registers for arguments, are
// there for the formulas of package point, which call them by name.
//
// The assembly is straight lines of code with loops of a fixed count; it moves by
// condition (CMOV) and masks by SBB, and takes no address from a value. TestAssembly
// reads it for jumps (only JNZ behind a DECQ of a counter) and for operands in memory
// (only those of pointers from the arguments and SP).
package field

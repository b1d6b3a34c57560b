// SPDX-License-Identifier: Apache-2.0

package main

import "golang.org/x/sys/cpu"

// A floor is the minimum of the ratio to the peer. 0 means no minimum.
type floor struct {
	ratio    float64
	portable float64 // the minimum for the build without assembly
	needs    *feature
}

// A feature is the set of instructions that the assembly of a work needs.
type feature struct{ has bool }

func (f *feature) present() bool { return f == nil || f.has }

var (
	// scalar is for products of large numbers.
	scalar = &feature{cpu.X86.HasBMI2 && cpu.X86.HasADX && cpu.X86.HasAVX2}
	// bytes64 is for block functions on vectors of 64 bytes.
	bytes64 = &feature{cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512GFNI}
	// lanes is for eight products at a time.
	lanes = &feature{scalar.has && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512IFMA}
	// clmul is for products of polynomials.
	clmul = &feature{bytes64.has && cpu.X86.HasAVX512VPCLMULQDQ}
)

// floors has the works with a minimum ratio, by name. The peer is gost-engine unless
// the name names another.
var floors = map[string]floor{
	"Streebog-256, 16 MiB":                         {2.7, 0.9, bytes64},
	"Streebog-256, 16 MiB, to nettle":              {2.3, 0, bytes64},
	"Streebog-256, 1 KiB":                          {2.6, 0.8, bytes64},
	"Streebog-256, two messages of 64 KiB":         {3.3, 0.9, bytes64},
	"GOST R 34.11-94 CryptoPro, 64 KiB, to nettle": {1.0, 0.4, nil},

	"sign 2001 CryptoPro-A":     {2.0, 1.5, scalar},
	"sign 2012-256 CryptoPro-A": {2.0, 1.5, scalar},
	"sign 2012-256 CryptoPro-B": {3, 1.2, scalar},
	"sign 2012-256 CryptoPro-C": {2.5, 1.2, scalar},
	"sign 2012-256 TC26 A":      {3, 1.2, scalar},
	"sign 2012-512 TC26 A":      {1.5, 1.2, scalar},
	"sign 2012-512 TC26 B":      {4, 1.2, scalar},
	"sign 2012-512 TC26 C":      {3, 1.2, scalar},

	"sign eight at a time 2001 CryptoPro-A":     {6, 0, lanes},
	"sign eight at a time 2012-256 CryptoPro-A": {6, 0, lanes},
	"sign eight at a time 2012-256 CryptoPro-B": {6, 0, lanes},
	"sign eight at a time 2012-256 CryptoPro-C": {6, 0, lanes},
	"sign eight at a time 2012-512 TC26 A":      {5, 0, lanes},
	"sign eight at a time 2012-512 TC26 B":      {8, 0, lanes},

	"verify 2001 CryptoPro-A":                      {1.8, 1.3, scalar},
	"verify 2012-256 CryptoPro-A":                  {1.8, 1.3, scalar},
	"verify with a known key 2001 CryptoPro-A":     {4, 0, scalar},
	"verify with a known key 2012-256 CryptoPro-A": {4, 0, scalar},
	"verify eight at a time 2001 CryptoPro-A":      {5, 0, lanes},
	"verify eight at a time 2012-256 CryptoPro-A":  {5, 0, lanes},
	"verify eight at a time 2012-256 TC26 A":       {5, 0, lanes},
	"verify eight at a time 2012-512 TC26 A":       {5, 0, lanes},
	"verify eight at a time 2012-512 TC26 C":       {5, 0, lanes},

	"verify eight at a time with a known key 2012-256 CryptoPro-A": {10, 0, lanes},
	"verify eight at a time with a known key 2012-512 TC26 A":      {12, 0, lanes},

	"CMS detached, 1 KiB, 2012-256 CryptoPro-A":            {2.5, 1.2, bytes64},
	"CMS detached, 100 MiB, 2012-256 CryptoPro-A":          {2.5, 0.9, bytes64},
	"encrypt CMS, 1 KiB, 28147-89":                         {3, 1.3, bytes64},
	"decrypt CMS, 1 KiB, 28147-89":                         {3, 1.3, bytes64},
	"encrypt CMS, 1 KiB, Kuznyechik":                       {3, 1.5, bytes64},
	"decrypt CMS, 1 KiB, Kuznyechik":                       {3, 1, bytes64},
	"encrypt CMS, 1 KiB, Kuznyechik OMAC":                  {3, 1, bytes64},
	"decrypt CMS, 1 KiB, Kuznyechik OMAC":                  {3, 0, bytes64},
	"encrypt CMS, 100 MiB, 28147-89":                       {1, 0, bytes64},
	"decrypt CMS, 100 MiB, 28147-89":                       {5, 0, bytes64},
	"encrypt CMS, 100 MiB, Kuznyechik":                     {5, 0, bytes64},
	"decrypt CMS, 100 MiB, Kuznyechik":                     {5, 0, bytes64},
	"encrypt CMS, 100 MiB, Kuznyechik OMAC":                {1.5, 0, bytes64},
	"decrypt CMS, 100 MiB, Kuznyechik OMAC":                {1.5, 0, bytes64},
	"Kuznyechik CTR, 1 MiB":                                {1, 0, nil},
	"Magma CTR, 1 MiB":                                     {1, 0, nil},
	"Kuznyechik MGM, 1 MiB, to two passes of engine's CTR": {2, 0, clmul},

	"generate 2001 CryptoPro-A":     {2, 1.2, scalar},
	"generate 2012-256 CryptoPro-A": {2, 1.2, scalar},
	"generate 2012-256 CryptoPro-B": {2, 1.2, scalar},
	"generate 2012-256 CryptoPro-C": {2, 1.2, scalar},
	"generate 2012-256 TC26 A":      {2, 1.2, scalar},
	"generate 2012-512 TC26 A":      {2, 1.2, scalar},
	"generate 2012-512 TC26 B":      {2, 1.2, scalar},
	"generate 2012-512 TC26 C":      {2, 1.2, scalar},
	"VKO 2001 CryptoPro-A":          {2, 1.2, scalar},
	"VKO 2012-256 CryptoPro-A":      {2, 1.2, scalar},
	"VKO 2012-256 CryptoPro-B":      {2, 1.2, scalar},
	"VKO 2012-256 CryptoPro-C":      {2, 1.2, scalar},
	"VKO 2012-256 TC26 A":           {2, 1.2, scalar},
	"VKO 2012-512 TC26 A":           {2, 1.2, scalar},
	"VKO 2012-512 TC26 B":           {2, 1.2, scalar},
	"VKO 2012-512 TC26 C":           {2, 1.2, scalar},
}

// narrow has the minimum ratios of works that need AVX-512 in floors, on processors
// with the instructions of scalar alone. A work without an entry has no minimum there.
var narrow = map[string]float64{
	"Streebog-256, 16 MiB":                        1.5,
	"Streebog-256, 1 KiB":                         1.45,
	"Streebog-256, two messages of 64 KiB":        1.5,
	"CMS detached, 1 KiB, 2012-256 CryptoPro-A":   2.2,
	"CMS detached, 100 MiB, 2012-256 CryptoPro-A": 1.4,

	"sign eight at a time 2001 CryptoPro-A":     3,
	"sign eight at a time 2012-256 CryptoPro-A": 3,
	"sign eight at a time 2012-256 CryptoPro-B": 3,
	"sign eight at a time 2012-256 CryptoPro-C": 3,
	"sign eight at a time 2012-512 TC26 A":      2.5,
	"sign eight at a time 2012-512 TC26 B":      4,
}

const notes = `Processor time of the process, on one core. Ratios are medians over turns. The column "floor" is
the minimum of the ratio on its left. A work below it is timed up to three times.
"not measured": the processor lacks the instructions of the assembly. With AVX2, BMI2 and
ADX alone every work is measured, and some floors are lower.
"to nettle": the peer is nettle, not gost-engine.
Signatures include the check of gost3410 against hardware faults. CMS does not include the
verification against the certificate unless the name says so. It costs as much as "verify with a known key".
Encryption has one recipient by key transport. The engine reads messages of Kuznyechik with shorter sections than
it writes with: it does the work of decryption, and its results are wrong behind the first one.
The engine has no MGM. MGM enciphers every block twice, so it is compared with two passes
of the engine's CTR. Our ciphers run in constant time; those of the engine look up tables by secrets.`

package main

import "golang.org/x/sys/cpu"

// A floor is the least ratio to the peer that counts as good. 0 is no floor.
type floor struct {
	ratio    float64
	portable float64 // of the build without assembly
	needs    *feature
}

// A feature is what the processor needs for the assembly behind a floor.
type feature struct{ has bool }

func (f *feature) present() bool { return f == nil || f.has }

var (
	// scalar is what products of large numbers use.
	scalar = &feature{cpu.X86.HasBMI2 && cpu.X86.HasADX && cpu.X86.HasAVX2}
	// bytes64 is what the block functions on vectors of octets use.
	bytes64 = &feature{cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512GFNI}
	// lanes is what eight products at a time use.
	lanes = &feature{scalar.has && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512IFMA}
	// clmul is what products of polynomials use.
	clmul = &feature{bytes64.has && cpu.X86.HasAVX512VPCLMULQDQ}
)

// floors has every work that must not fall below a ratio. Peer is gost-engine unless
// the name says another.
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
	"sign 2012-256 TC26 A":      {1.8, 1.2, scalar},
	"sign 2012-512 TC26 A":      {1.5, 1.2, scalar},
	"sign 2012-512 TC26 B":      {4, 1.2, scalar},
	"sign 2012-512 TC26 C":      {1.5, 1.2, scalar},

	"sign eight at a time 2001 CryptoPro-A":     {6, 0, lanes},
	"sign eight at a time 2012-256 CryptoPro-A": {6, 0, lanes},
	"sign eight at a time 2012-512 TC26 A":      {5, 0, lanes},

	"verify 2001 CryptoPro-A":                              {1.8, 1.3, scalar},
	"verify 2012-256 CryptoPro-A":                          {1.8, 1.3, scalar},
	"verify with a known key 2001 CryptoPro-A":             {4, 0, scalar},
	"verify with a known key 2012-256 CryptoPro-A":         {4, 0, scalar},
	"verify eight at a time 2001 CryptoPro-A":              {5, 0, lanes},
	"verify eight at a time 2012-256 CryptoPro-A":          {5, 0, lanes},
	"verify eight at a time 2012-256 TC26 A":               {5, 0, lanes},
	"verify eight at a time 2012-512 TC26 A":               {5, 0, lanes},
	"verify eight at a time 2012-512 TC26 C":               {5, 0, lanes},
	"CMS detached, 1 KiB, 2012-256 CryptoPro-A":            {2.5, 1.2, bytes64},
	"CMS detached, 100 MiB, 2012-256 CryptoPro-A":          {2.5, 0.9, bytes64},
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

const notes = `Processor time of the process, on one core. Ratios are medians over turns; a work below its floor is timed up to three times.
"not measured": the processor lacks the instructions of the assembly.
Signatures are by gost3410 with its check against faults. CMS is without the
verification against the certificate, which costs what "verify with a known key" says.
The engine has no MGM; the mode enciphers every block twice, so it is compared with
two passes of the engine's CTR. "to nettle": the peer is nettle, not gost-engine.
Our ciphers are constant time, the engine's look up tables by secrets.`

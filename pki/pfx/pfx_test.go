// SPDX-License-Identifier: Apache-2.0

package pfx_test

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/judge"
	"tamga/internal/testsize"
	"tamga/pki/pfx"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Files of RFC 9548, appendices A.2.1 and A.3.1.
var published = map[string]string{
	"A.2.1": `MIIFKwIBAzCCBMQGCSqGSIb3DQEHAaCCBLUEggSxMIIErTCCAswGCSqGSIb3DQEH
AaCCAr0EggK5MIICtTCCArEGCyqGSIb3DQEMCgEDoIICSjCCAkYGCiqGSIb3DQEJ
FgGgggI2BIICMjCCAi4wggHboAMCAQICBAGMuoQwCgYIKoUDBwEBAwIwODENMAsG
A1UEChMEVEsyNjEnMCUGA1UEAxMeQ0EgVEsyNjogR09TVCAzNC4xMC0xMiAyNTYt
Yml0MB4XDTAxMDEwMTAwMDAwMFoXDTQ5MTIzMTAwMDAwMFowOzENMAsGA1UEChME
VEsyNjEqMCgGA1UEAxMhT1JJR0lOQVRPUjogR09TVCAzNC4xMC0xMiA1MTItYml0
MIGgMBcGCCqFAwcBAQECMAsGCSqFAwcBAgECAQOBhAAEgYC0i7davCkOGGVcYqFP
tS1fUIROzB0fYARIe0tclTRpare/qzRuVRapqzzO+K21LDpYVfDPs2Sqa13ZN+Ts
/JUlv59qCFB2cYpFyB/0kh4+K79yvz7r8+4WE0EmZf8T3ae/J1Jo6xGunecH1/G4
hMts9HYLnxbwJDMNVGuIHV6gzqOBhzCBhDBjBgNVHSMEXDBagBSsbA5MRGaiQpbi
nwk7JWbzy6RTKqE8pDowODENMAsGA1UEChMEVEsyNjEnMCUGA1UEAxMeQ0EgVEsy
NjogR09TVCAzNC4xMC0xMiAyNTYtYml0ggQBjLqBMB0GA1UdDgQWBBR+BlcJmAyt
awioV+55AFg6ydegpDAKBggqhQMHAQEDAgNBAApeqfHQG6YvR5Pt5oDMiNFiIdey
K5a0qf5gdBe2czLfF1A9Q8M9ya658Xl53zLzgOQXVCfYQsg4DFQBrPyHBBAxVDAj
BgkqhkiG9w0BCRUxFgQUeVV0+dS25MICJChpmGc/8AoUwE0wLQYJKoZIhvcNAQkU
MSAeHgBwADEAMgBGAHIAaQBlAG4AZABsAHkATgBhAG0AZTCCAdkGCSqGSIb3DQEH
AaCCAcoEggHGMIIBwjCCAb4GCyqGSIb3DQEMCgECoIIBVzCCAVMwWQYJKoZIhvcN
AQUNMEwwKQYJKoZIhvcNAQUMMBwECKf4N7NMwugqAgIIADAMBggqhQMHAQEEAgUA
MB8GCSqFAwcBAQUCAjASBBAlmt2WDfaPJlsAs0mLKglzBIH1DMvEacbbWRNDVSnX
JLWygYrKoipdOjDA/2HEnBZ34uFOLNheUqiKpCPoFpbR2GBiVYVTVK9ibiczgaca
EQYzDXtcS0QCZOxpKWfteAlbdJLC/SqPurPYyKi0MVRUPROhbisFASDT38HDH1Dh
0dL5f6ga4aPWLrWbbgWERFOoOPyh4DotlPF37AQOwiEjsbyyRHq3HgbWiaxQRuAh
eqHOn4QVGY92/HFvJ7u3TcnQdLWhTe/lh1RHLNF3RnXtN9if9zC23laDZOiWZplU
yLrUiTCbHrtn1RppPDmLFNMt9dJ7KKgCkOi7Zm5nhqPChbywX13wcfYxVDAjBgkq
hkiG9w0BCRUxFgQUeVV0+dS25MICJChpmGc/8AoUwE0wLQYJKoZIhvcNAQkUMSAe
HgBwADEAMgBGAHIAaQBlAG4AZABsAHkATgBhAG0AZTBeME4wCgYIKoUDBwEBAgME
QAkBKw4ihn7pSIYTEhu0bcvTPZjI3WgVxCkUVlOsc80G69EKFEOTnObGJGSKJ51U
KkOsXF0a7+VBZf3BcVVQh9UECIVEtO+VpuskAgIIAA==`,
	"A.3.1": `MIIFjAIBAzCCBSUGCSqGSIb3DQEHAaCCBRYEggUSMIIFDjCCA0EGCSqGSIb3DQEH
BqCCAzIwggMuAgEAMIIDJwYJKoZIhvcNAQcBMFUGCSqGSIb3DQEFDTBIMCkGCSqG
SIb3DQEFDDAcBAgUuSVGsSwGjQICCAAwDAYIKoUDBwEBBAIFADAbBgkqhQMHAQEF
AQIwDgQM9Hk3dagtS48+G/x+gIICwWGPqxxN+sTrKbruRf9R5Ya9cf5AtO1frqMn
f1eULfmZmTg/BdE51QQ+Vbnh3v1kmspr6h2+e4Wli+ndEeCWG6A6X/G22h/RAHW2
YrVmf6cCWxW+YrqzT4h/8RQL/9haunD5LmHPLVsYrEai0OwbgXayDSwARVJQLQYq
sLNmZK5ViN+fRiS5wszVJ3AtVq8EuPt41aQEKwPy2gmH4S6WmnQRC6W7aoqmIifF
PJENJNn5K2M1J6zNESs6bFtYNKMArNqtvv3rioY6eAaaLy6AV6ljsekmqodHmQjv
Y4eEioJs0xhpXhZY69PXT+ZBeHv6MSheBhwXqxAd1DqtPTafMjNK8rqKCap9TtPG
vONvo5W9dgwegxRRQzlum8dzV4m1W9Aq4W7t8/UcxDWRz3k6ijFPlGaA9+8ZMTEO
RHhBRvM6OY2/VNNxbgxWfGYuPxpSi3YnCZIPmBEe5lU/Xv7KjzFusGM38F8YR61k
4/QNpKI1QUv714YKfaUQznshGGzILv1NGID62pl1+JI3vuawi2mDMrmkuM9QFU9v
/kRP+c2uBHDuOGEUUSNhF08p7+w3vxplatGWXH9fmIsPBdk2f3wkn+rwoqrEuijM
I/bCAylU/M0DMKhAo9j31UYSZdi4fsfRWYDJMq/8FPn96tuo+oCpbqv3NUwpZM/8
Li4xqgTHtYw/+fRG0/P6XadNEiII/TYjenLfVHXjAHOVJsVeCu/t3EsMYHQddNCh
rFk/Ic2PdIQOyB4/enpW0qrKegSbyZNuF1WI4zl4mI89L8dTQBUkhy45yQXZlDD8
k1ErYdtdEsPtz/4zuSpbnmwCEIRoOuSXtGuJP+tbcWEXRKM2UBgi3qBjpn7DU18M
tsrRM9pDdadl8mT/Vfh9+B8dZBZVxgQu70lMPEGexbUkYHuFCCnyi9J0V92StbIz
Elxla1VebjCCAcUGCSqGSIb3DQEHAaCCAbYEggGyMIIBrjCCAaoGCyqGSIb3DQEM
CgECoIIBQzCCAT8wVQYJKoZIhvcNAQUNMEgwKQYJKoZIhvcNAQUMMBwECP0EQk0O
1twvAgIIADAMBggqhQMHAQEEAgUAMBsGCSqFAwcBAQUBATAOBAzwxSqgAAAAAAAA
AAAEgeUqj9mI3RDfK5hMd0EeYws7foZK/5ANr2wUhP5qnDjAZgn76lExJ+wuvlnS
9PChfWVugvdl/9XJgQvvr9Cu4pOh4ICXplchcy0dGk/MzItHRVC5wK2nTxwQ4kKT
kG9xhLFzoD16dhtqX0+/dQg9G8pE5EzCBIYRXLm1Arcz9k7KVsTJuNMjFrr7EQuu
Tr80ATSQOtsq50zpFyrpznVPGCrOdIjpymZxNdvw48bZxqTtRVDxCYATOGqz0pwH
ClWULHD9LIajLMB2GhBKyQw6ujIlltJs0T+WNdX/AT2FLi1LFSS3+Cj9MVQwIwYJ
KoZIhvcNAQkVMRYEFHlVdPnUtuTCAiQoaZhnP/AKFMBNMC0GCSqGSIb3DQEJFDEg
Hh4AcAAxADIARgByAGkAZQBuAGQAbAB5AE4AYQBtAGUwXjBOMAoGCCqFAwcBAQID
BEDp4e22JmXdnvR0xA99yQuzQuJ8pxBeOpsLm2dZQqt3Fje5zqW1uk/7VOcfV5r2
bKm8nsLOs2rPT8hBOoeAZvOIBAjGIUHw6IjG2QICCAA=`,
}

const publishedPassword = "Пароль для PFX"

func TestPublished(t *testing.T) {
	for name, text := range published {
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			t.Fatal(err)
		}
		b, err := pfx.Parse(data, publishedPassword)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if b.Suite != suite.GOST2012x512 || b.Certificate == nil || b.Name != "p12FriendlyName" || len(b.Others) != 0 {
			t.Errorf("%s: %+v", name, b)
		}
		if _, err := pfx.Parse(data, "пароль"); !errors.Is(err, pfx.ErrPassword) {
			t.Errorf("%s: a wrong password: %v", name, err)
		}
	}
}

func seeded(n byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{n}) }

// bundle makes a key with a certificate of a new authority.
func bundle(t testing.TB, su *suite.Suite, others int) *pfx.Bundle {
	t.Helper()
	source := seeded(byte(len(su.Name)))
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	certify := func(key crypto.Signer, n byte) *x509gost.Certificate {
		subject, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: fmt.Sprint("Мария ", n)}})
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509gost.CreateCertificate(&x509gost.Template{
			Subject: subject, SerialNumber: []byte{n + 1}, NotBefore: from, NotAfter: from.AddDate(5, 0, 0),
		}, nil, key.Public(), su, su, x509gost.SignWith(source, key, su))
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509gost.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	key, err := su.Generate(source)
	if err != nil {
		t.Fatal(err)
	}
	b := &pfx.Bundle{Key: key, Suite: su, Certificate: certify(key, 0), Name: "Ключ Марии"}
	for i := range others {
		other := key // making RSA keys takes long
		if su.IsGOST() {
			if other, err = su.Generate(source); err != nil {
				t.Fatal(err)
			}
		}
		b.Others = append(b.Others, certify(other, byte(i+1)))
	}
	return b
}

var ciphers = map[string]pfx.Cipher{"kuznyechik": pfx.Kuznyechik, "magma": pfx.Magma, "gost28147": pfx.GOST28147, "aes": pfx.AES256}

func TestRoundTrip(t *testing.T) {
	for _, su := range suite.All() {
		b := bundle(t, su, 3)
		for name, c := range ciphers {
			data, err := pfx.Create(seeded(9), b, "пароль", pfx.Options{Cipher: c, Iterations: 10})
			if err != nil {
				t.Fatalf("%s, %s: %v", su.Name, name, err)
			}
			got, err := pfx.Parse(data, "пароль")
			if err != nil {
				t.Fatalf("%s, %s: %v", su.Name, name, err)
			}
			if got.Suite != su || got.Name != b.Name || len(got.Others) != 3 || !bytes.Equal(got.Certificate.Raw, b.Certificate.Raw) || !sameSecret(t, got, b) {
				t.Errorf("%s, %s: another bundle came back", su.Name, name)
			}
			if _, err := pfx.Parse(data, "Пароль"); !errors.Is(err, pfx.ErrPassword) {
				t.Errorf("%s, %s: a wrong password: %v", su.Name, name, err)
			}
			if bytes.Contains(data, []byte("Мария")) {
				t.Errorf("%s, %s: the certificate is not encrypted", su.Name, name)
			}
		}
	}
}

func sameSecret(t testing.TB, a, b *pfx.Bundle) bool {
	t.Helper()
	first, err := x509gost.MarshalPrivateKey(a.Key, a.Suite)
	if err != nil {
		t.Fatal(err)
	}
	second, err := x509gost.MarshalPrivateKey(b.Key, b.Suite)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(first, second)
}

// OpenSSL with gost-engine reads our files. Thirty certificates make contents longer than
// the section of Magma and many times the key meshing of 28147-89.
func TestOpenSSLReads(t *testing.T) {
	tool := judge.OpenSSL(t)
	for i, su := range suite.All() {
		for j, others := range []int{0, 30} {
			b := bundle(t, su, others)
			for k, name := range slices.Sorted(maps.Keys(ciphers)) {
				c := ciphers[name]
				if !su.IsGOST() && c != pfx.AES256 {
					continue
				}
				if testsize.Of() < testsize.Whole && (i+j+k)%2 != 0 {
					continue // each suite with each cipher, and each cipher with both numbers
				}
				data, err := pfx.Create(seeded(9), b, "пароль", pfx.Options{Cipher: c, Iterations: 2048})
				if err != nil {
					t.Fatal(err)
				}
				tool.Write("ours.p12", data)
				out, err := tool.Run("pkcs12", "-in", "ours.p12", "-passin", "pass:пароль", "-nodes")
				if err != nil {
					t.Errorf("%s, %s, %d others: %v", su.Name, name, others, err)
					continue
				}
				if n := strings.Count(out, "BEGIN CERTIFICATE"); n != others+1 || !strings.Contains(out, "BEGIN PRIVATE KEY") {
					t.Errorf("%s, %s: %d certificates, want %d", su.Name, name, n, others+1)
				}
				// The exported key belongs to the certificate: it signs, the certificate verifies.
				tool.Write("all.pem", []byte(out))
				if _, err := tool.Run("pkey", "-in", "all.pem", "-pubout", "-out", "a.pem"); err != nil {
					t.Errorf("%s, %s: %v", su.Name, name, err)
				}
				certificate := strings.Index(out, "-----BEGIN CERTIFICATE")
				tool.Write("cert.pem", []byte(out[certificate:]))
				public, err := tool.Run("x509", "-in", "cert.pem", "-noout", "-pubkey")
				if err != nil || public != string(tool.Read("a.pem")) {
					t.Errorf("%s, %s: the key is not that of the certificate: %v", su.Name, name, err)
				}
			}
		}
	}
}

// We read the files that OpenSSL writes.
func TestReadsOpenSSL(t *testing.T) {
	tool := judge.OpenSSL(t)
	long := strings.Repeat("длинное имя ", 60) // needs more than one key of the key meshing
	for _, c := range []struct {
		name, algorithm string
		options         []string
		macs            []string
		ciphers         []string
	}{
		{"gost2001", "gost2001", []string{"-pkeyopt", "paramset:A"}, []string{"md_gost12_512", "md_gost94"}, []string{"gost89"}},
		{"gost2012-256", "gost2012_256", []string{"-pkeyopt", "paramset:A"}, []string{"md_gost12_512", "md_gost12_256"}, []string{"gost89", "kuznyechik-ctr-acpkm", "magma-ctr-acpkm"}},
		{"gost2012-512", "gost2012_512", []string{"-pkeyopt", "paramset:A"}, []string{"md_gost12_512"}, []string{"gost89", "kuznyechik-ctr-acpkm", "aes-256-cbc"}},
		{"rsa-2048", "rsa:2048", nil, []string{"sha256", "sha1", "sha512"}, []string{"aes-256-cbc", "aes-128-cbc"}},
		{"ecdsa-p256", "ec", []string{"-pkeyopt", "ec_paramgen_curve:P-256"}, []string{"sha384"}, []string{"aes-192-cbc"}},
	} {
		args := append([]string{"req", "-x509", "-newkey", c.algorithm, "-nodes", "-utf8", "-keyout", "k.pem", "-out", "c.pem", "-days", "100",
			"-subj", "/CN=Мария/O=" + long[:100] + "/OU=x", "-addext", "nsComment=" + strings.Repeat("long ", 300)}, c.options...)
		if _, err := tool.Run(args...); err != nil {
			t.Fatal(err)
		}
		for i, mac := range c.macs {
			for j, sealed := range c.ciphers {
				if testsize.Of() < testsize.Whole && i%len(c.ciphers) != j && j%len(c.macs) != i {
					continue // each of both is still tried
				}
				if _, err := tool.Run("pkcs12", "-export", "-inkey", "k.pem", "-in", "c.pem", "-name", "Ключ", "-keypbe", sealed, "-certpbe", sealed,
					"-macalg", mac, "-iter", "3000", "-passout", "pass:пароль", "-out", "theirs.p12"); err != nil {
					t.Fatal(err)
				}
				b, err := pfx.Parse(tool.Read("theirs.p12"), "пароль")
				if err != nil {
					t.Errorf("%s, %s, %s: %v", c.name, sealed, mac, err)
					continue
				}
				if b.Suite.Name != c.name || b.Certificate == nil || b.Name != "Ключ" {
					t.Errorf("%s, %s, %s: %+v", c.name, sealed, mac, b)
				}
				pkcs8, err := x509gost.MarshalPrivateKey(b.Key, b.Suite)
				if err != nil {
					t.Fatal(err)
				}
				tool.Write("ours.der", pkcs8)
				ours, err := tool.Run("pkey", "-inform", "DER", "-in", "ours.der", "-pubout")
				theirs, err2 := tool.Run("pkey", "-in", "k.pem", "-pubout")
				if errors.Join(err, err2) != nil || ours != theirs {
					t.Errorf("%s, %s: another key: %v %v", c.name, sealed, err, err2)
				}
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	tool := judge.OpenSSL(t)
	if _, err := tool.Run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "k.pem", "-out", "c.pem", "-subj", "/CN=x"); err != nil {
		t.Fatal(err)
	}
	export := func(args ...string) []byte {
		t.Helper()
		if _, err := tool.Run(append([]string{"pkcs12", "-export", "-inkey", "k.pem", "-in", "c.pem", "-passout", "pass:x", "-out", "p.p12"}, args...)...); err != nil {
			t.Fatal(err)
		}
		return tool.Read("p.p12")
	}
	endless := func() []byte {
		if testsize.Of() >= testsize.Whole {
			return export("-iter", "2000000")
		}
		// The number is written into a file with few iterations: 02 03 begins an INTEGER.
		few, many := []byte{2, 3, 1, 0x11, 0x71}, []byte{2, 3, 0x7a, 0x12, 0}
		return bytes.ReplaceAll(export("-iter", "70001"), few, many)
	}
	for _, c := range []struct {
		what string
		data []byte
		says string
	}{
		{"an old cipher", export("-keypbe", "PBE-SHA1-3DES", "-certpbe", "PBE-SHA1-3DES"), "want PBES2"},
		{"no integrity", export("-nomac"), "not protected"},
		{"iterations without end", endless(), "iterations allowed"},
		{"no key", export("-nokeys"), "no private key"},
		{"something else", []byte("-----BEGIN CERTIFICATE-----"), "pfx:"},
		{"nothing", nil, "pfx:"},
		{"too long", make([]byte, pfx.MaxSize+1), "allowed"},
	} {
		if b, err := pfx.Parse(c.data, "x"); err == nil || !strings.Contains(err.Error(), c.says) || b != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	b := bundle(t, suite.GOST2012x256, 0)
	for what, change := range map[string]func(b *pfx.Bundle, o *pfx.Options, password *string){
		"no password":         func(_ *pfx.Bundle, _ *pfx.Options, p *string) { *p = "" },
		"no cipher":           func(_ *pfx.Bundle, o *pfx.Options, _ *string) { o.Cipher = 99 },
		"too many iterations": func(_ *pfx.Bundle, o *pfx.Options, _ *string) { o.Iterations = pfx.MaxIterations },
		"another certificate": func(b *pfx.Bundle, _ *pfx.Options, _ *string) {
			b.Certificate = bundle(t, suite.GOST2012x512, 0).Certificate
		},
	} {
		bad, o, password := *b, pfx.Options{Iterations: 10}, "x"
		change(&bad, &o, &password)
		if _, err := pfx.Create(seeded(1), &bad, password, o); err == nil {
			t.Errorf("%s: a file was made", what)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range published {
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, c := range ciphers {
		data, err := pfx.Create(seeded(1), bundle(f, suite.GOST2012x256, 1), publishedPassword, pfx.Options{Cipher: c, Iterations: 2})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := pfx.Parse(data, publishedPassword)
		if (b == nil) == (err == nil) {
			t.Fatalf("%v, %v", b, err)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package stock

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/oath/otp"
	"tamga/internal/judge"
)

var judged = flag.Int("judged", 100, "random containers that pskctool judges")

// container is a PSKC container of one token; with a key, encrypted.
func container(t Token, key []byte, random *rand.Rand) []byte {
	b64 := base64.StdEncoding.EncodeToString
	encrypt := func(plain []byte) []byte {
		padding := aes.BlockSize - len(plain)%aes.BlockSize
		sealed := make([]byte, aes.BlockSize+len(plain)+padding)
		for i := range sealed {
			sealed[i] = byte(random.Uint32())
		}
		copy(sealed[aes.BlockSize:], plain)
		sealed[len(sealed)-1] = byte(padding)
		block, err := aes.NewCipher(key)
		if err != nil {
			panic(err)
		}
		cipher.NewCBCEncrypter(block, sealed[:aes.BlockSize]).CryptBlocks(sealed[aes.BlockSize:], sealed[aes.BlockSize:])
		return sealed
	}
	var out bytes.Buffer
	fmt.Fprint(&out, `<?xml version="1.0" encoding="UTF-8"?>
<KeyContainer Version="1.0" xmlns="urn:ietf:params:xml:ns:keyprov:pskc" xmlns:ds="http://www.w3.org/2000/09/xmldsig#" xmlns:xenc="http://www.w3.org/2001/04/xmlenc#">`)
	value := "<PlainValue>" + b64(t.Secret) + "</PlainValue>"
	if key != nil {
		method := fmt.Sprintf(`<xenc:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes%d-cbc"/>`, 8*len(key))
		data := func(sealed []byte) string {
			return "<xenc:CipherData><xenc:CipherValue>" + b64(sealed) + "</xenc:CipherValue></xenc:CipherData>"
		}
		macKey := []byte("a key of the MAC, of 32 bytes...")
		fmt.Fprintf(&out, `<EncryptionKey><ds:KeyName>Pre-shared-key</ds:KeyName></EncryptionKey><MACMethod Algorithm="http://www.w3.org/2000/09/xmldsig#hmac-sha1"><MACKey>%s%s</MACKey></MACMethod>`, method, data(encrypt(macKey)))
		sealed := encrypt(t.Secret)
		mac := hmac.New(sha1.New, macKey)
		mac.Write(sealed)
		value = "<EncryptedValue>" + method + data(sealed) + "</EncryptedValue><ValueMAC>" + b64(mac.Sum(nil)) + "</ValueMAC>"
	}
	kind, moving := "hotp", fmt.Sprintf("<Counter><PlainValue>%d</PlainValue></Counter>", t.Counter)
	if t.Time {
		kind = "totp"
		moving = fmt.Sprintf("<Time><PlainValue>0</PlainValue></Time><TimeInterval><PlainValue>%d</PlainValue></TimeInterval><TimeDrift><PlainValue>%d</PlainValue></TimeDrift>", t.Period/time.Second, t.Drift)
	}
	fmt.Fprintf(&out, `<KeyPackage><DeviceInfo><Manufacturer>oath.TEST</Manufacturer><SerialNo>%s</SerialNo></DeviceInfo><Key Id="id%d" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:%s"><AlgorithmParameters><Suite>HMAC-%s</Suite><ResponseFormat Encoding="DECIMAL" Length="%d"/></AlgorithmParameters><Data><Secret>%s</Secret>%s</Data></Key></KeyPackage></KeyContainer>`,
		t.Serial, random.Uint32(), kind, t.Algorithm, t.Digits, value, moving)
	return out.Bytes()
}

// TestJudgedByPskctool: random containers are what the schema wants, pskctool reads the
// same in the plain ones as we do, and we read what pskctool writes. It cannot open
// encrypted ones; those are opened with what the plain one says as the judge.
func TestJudgedByPskctool(t *testing.T) {
	tool := judge.OATHToolkit(t)
	random := rand.New(rand.NewPCG(6030, 1))
	for n := range *judged {
		want := Token{
			Serial: fmt.Sprintf("SN%08d", random.Uint32N(1e8)), Time: n%2 == 0,
			Algorithm: []otp.Algorithm{otp.SHA1, otp.SHA256, otp.SHA512, otp.Streebog256, otp.Streebog512}[random.IntN(5)],
			Digits:    6 + random.IntN(3), Secret: make([]byte, 16+random.IntN(100)),
		}
		for i := range want.Secret {
			want.Secret[i] = byte(random.Uint32())
		}
		if want.Time {
			want.Period, want.Drift = time.Duration(10+random.IntN(200))*time.Second, random.Int64N(200)-100
		} else {
			want.Counter = random.Int64N(1 << 40)
		}
		plain := container(want, nil, random)
		is := func(what string, file []byte, with Opening) {
			t.Helper()
			got, err := ReadPSKC(bytes.NewReader(file), with)
			if err != nil {
				t.Fatalf("%s: %v\n%s", what, err, file)
			}
			if d := cmp.Diff([]Token{want}, got); d != "" {
				t.Fatalf("%s: %s\n%s", what, d, file)
			}
		}
		is("plain", plain, Opening{})
		said := tool.PSKC(plain)
		base64Secret := base64.StdEncoding.EncodeToString(want.Secret)
		for name, value := range map[string]string{
			"SerialNo": want.Serial, "Key Secret (base64)": base64Secret,
			"Response Format Length": strconv.Itoa(want.Digits), "Response Format Encoding": "DECIMAL",
		} {
			if said[name] != value {
				t.Fatalf("pskctool says %s %q, want %q: %v", name, said[name], value, said)
			}
		}
		if want.Time {
			// It prints a drift without its sign.
			if said["Key TimeInterval"] != fmt.Sprint(int(want.Period/time.Second)) || said["Key TimeDrift"] != fmt.Sprint(uint32(want.Drift)) {
				t.Fatalf("pskctool says %v of %+v", said, want)
			}
		} else if said["Key Counter"] != fmt.Sprint(want.Counter) {
			t.Fatalf("pskctool says %v of %+v", said, want)
		}
		if n%10 == 0 {
			signed := tool.SignPSKC(plain)
			if !strings.Contains(string(signed), "SignatureValue") {
				t.Fatalf("pskctool did not sign: %s", signed)
			}
			is("written by pskctool", signed, Opening{})
		}
		key := make([]byte, []int{16, 24, 32}[n%3])
		for i := range key {
			key[i] = byte(random.Uint32())
		}
		sealed := container(want, key, random)
		if bytes.Contains(sealed, []byte(base64Secret)) {
			t.Fatal("the container is not encrypted")
		}
		is("encrypted", sealed, Opening{Key: key})
		if n%10 == 1 {
			tool.ValidPSKC(sealed)
		}
	}
	t.Logf("%d containers", *judged)
}

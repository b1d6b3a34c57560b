// SPDX-License-Identifier: Apache-2.0

package stock

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/oath/otp"
)

const seed = "12345678901234567890" // of the examples of RFC 6030

// The values of RFC 6030, figures 6 and 7, in containers of the same structure.
const (
	figure6 = `<?xml version="1.0" encoding="UTF-8"?>
<KeyContainer Version="1.0" xmlns="urn:ietf:params:xml:ns:keyprov:pskc" xmlns:ds="http://www.w3.org/2000/09/xmldsig#" xmlns:xenc="http://www.w3.org/2001/04/xmlenc#">
 <EncryptionKey><ds:KeyName>Pre-shared-key</ds:KeyName></EncryptionKey>
 <MACMethod Algorithm="http://www.w3.org/2000/09/xmldsig#hmac-sha1"><MACKey>
  <xenc:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>
  <xenc:CipherData><xenc:CipherValue>
   ESIzRFVmd4iZABEiM0RVZgKn6WjLaTC1sbeBMSvIhRejN9vJa2BOlSaMrR7I5wSX
  </xenc:CipherValue></xenc:CipherData>
 </MACKey></MACMethod>
 <KeyPackage>
  <DeviceInfo><Manufacturer>Manufacturer</Manufacturer><SerialNo>987654321</SerialNo></DeviceInfo>
  <CryptoModuleInfo><Id>CM_ID_001</Id></CryptoModuleInfo>
  <Key Id="12345678" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp">
   <Issuer>Issuer</Issuer>
   <AlgorithmParameters><ResponseFormat Length="8" Encoding="DECIMAL"/></AlgorithmParameters>
   <Data>
    <Secret>
     <EncryptedValue>
      <xenc:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>
      <xenc:CipherData><xenc:CipherValue>AAECAwQFBgcICQoLDA0OD+cIHItlB3Wra1DUpxVvOx2lef1VmNPCMl8jwZqIUqGv</xenc:CipherValue></xenc:CipherData>
     </EncryptedValue>
     <ValueMAC>Su+NvtQfmvfJzF6bmQiJqoLRExc=</ValueMAC>
    </Secret>
    <Counter><PlainValue>0</PlainValue></Counter>
   </Data>
  </Key>
 </KeyPackage>
</KeyContainer>`

	figure7 = `<?xml version="1.0" encoding="UTF-8"?>
<pskc:KeyContainer xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc" xmlns:xenc11="http://www.w3.org/2009/xmlenc11#" xmlns:pkcs5="http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#" xmlns:xenc="http://www.w3.org/2001/04/xmlenc#" Version="1.0">
 <pskc:EncryptionKey><xenc11:DerivedKey>
  <xenc11:KeyDerivationMethod Algorithm="http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#pbkdf2">
   <pkcs5:PBKDF2-params>
    <Salt><Specified>Ej7/PEpyEpw=</Specified></Salt>
    <IterationCount>1000</IterationCount>
    <KeyLength>16</KeyLength>
    <PRF/>
   </pkcs5:PBKDF2-params>
  </xenc11:KeyDerivationMethod>
  <xenc:ReferenceList><xenc:DataReference URI="#ED"/></xenc:ReferenceList>
  <xenc11:MasterKeyName>My Password 1</xenc11:MasterKeyName>
 </xenc11:DerivedKey></pskc:EncryptionKey>
 <pskc:MACMethod Algorithm="http://www.w3.org/2000/09/xmldsig#hmac-sha1"><pskc:MACKey>
  <xenc:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>
  <xenc:CipherData><xenc:CipherValue>2GTTnLwM3I4e5IO5FkufoOEiOhNj91fhKRQBtBJYluUDsPOLTfUvoU2dStyOwYZx</xenc:CipherValue></xenc:CipherData>
 </pskc:MACKey></pskc:MACMethod>
 <pskc:KeyPackage>
  <pskc:DeviceInfo><pskc:Manufacturer>TokenVendorAcme</pskc:Manufacturer><pskc:SerialNo>987654321</pskc:SerialNo></pskc:DeviceInfo>
  <pskc:CryptoModuleInfo><pskc:Id>CM_ID_001</pskc:Id></pskc:CryptoModuleInfo>
  <pskc:Key Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp" Id="123456">
   <pskc:Issuer>Example-Issuer</pskc:Issuer>
   <pskc:AlgorithmParameters><pskc:ResponseFormat Length="8" Encoding="DECIMAL"/></pskc:AlgorithmParameters>
   <pskc:Data><pskc:Secret>
    <pskc:EncryptedValue Id="ED">
     <xenc:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>
     <xenc:CipherData><xenc:CipherValue>oTvo+S22nsmS2Z/RtcoF8Hfh+jzMe0RkiafpoDpnoZTjPYZu6V+A4aEn032yCr4f</xenc:CipherValue></xenc:CipherData>
    </pskc:EncryptedValue>
    <pskc:ValueMAC>LP6xMvjtypbfT9PdkJhBZ+D6O4w=</pskc:ValueMAC>
   </pskc:Secret></pskc:Data>
  </pskc:Key>
 </pskc:KeyPackage>
</pskc:KeyContainer>`

	// A TOTP key with all that this program reads, with values of our own.
	plain = `<?xml version="1.0"?>
<!-- a comment --><KeyContainer Version="1.0" Id="exampleID1" xmlns="urn:ietf:params:xml:ns:keyprov:pskc">
 <KeyPackage>
  <DeviceInfo><Manufacturer>Manufacturer</Manufacturer><SerialNo> TT-100 </SerialNo><StartDate>2026-01-01T00:00:00Z</StartDate><ExpiryDate>2031-01-01T00:00:00+03:00</ExpiryDate></DeviceInfo>
  <Key Id="12345678" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:totp">
   <Issuer>Issuer</Issuer>
   <AlgorithmParameters><Suite>HMAC-SHA256</Suite><ResponseFormat Encoding="DECIMAL" Length="7" CheckDigits="false"/></AlgorithmParameters>
   <Data>
    <Secret><PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=</PlainValue></Secret>
    <Time><PlainValue>42</PlainValue></Time>
    <TimeInterval><PlainValue>60</PlainValue></TimeInterval>
    <TimeDrift><PlainValue>-3</PlainValue></TimeDrift>
   </Data>
   <Policy><StartDate>2025-01-01T00:00:00Z</StartDate><ExpiryDate>2030-05-05T00:00:00Z</ExpiryDate><KeyUsage>OTP</KeyUsage></Policy>
  </Key>
 </KeyPackage>
</KeyContainer>`
)

var preShared = Opening{Key: mustHex("12345678901234567890123456789012"), Password: "qwerty"}

func mustHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func TestPSKC(t *testing.T) {
	for name, c := range map[string]struct {
		container string
		want      Token
	}{
		"figure 6": {figure6, Token{Serial: "987654321", Algorithm: otp.SHA1, Digits: 8, Secret: []byte(seed)}},
		"figure 7": {figure7, Token{Serial: "987654321", Algorithm: otp.SHA1, Digits: 8, Secret: []byte(seed)}},
		"plain": {plain, Token{
			Serial: "TT-100", Time: true, Algorithm: otp.SHA256, Digits: 7, Period: time.Minute, Drift: -3, Secret: []byte(seed),
			NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2030, 5, 5, 0, 0, 0, 0, time.UTC),
		}},
		"without a device": {strings.Replace(plain, "<SerialNo> TT-100 </SerialNo>", "", 1), Token{
			Serial: "12345678", Time: true, Algorithm: otp.SHA256, Digits: 7, Period: time.Minute, Drift: -3, Secret: []byte(seed),
			NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2030, 5, 5, 0, 0, 0, 0, time.UTC),
		}},
	} {
		got, err := ReadPSKC(strings.NewReader(c.container), preShared)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff([]Token{c.want}, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// One broken container for each rule.
func TestHostilePSKC(t *testing.T) {
	body := func(container, old, new string) string {
		t.Helper()
		if !strings.Contains(container, old) {
			t.Fatalf("%q is not there", old)
		}
		return strings.Replace(container, old, new, 1)
	}
	many := strings.Repeat(plain[strings.Index(plain, "<KeyPackage>"):strings.Index(plain, "</KeyContainer>")], 40)
	for name, c := range map[string]struct{ container, want string }{
		"nothing":            {"", "no complete XML"},
		"no XML":             {"\x00\x01", "line 1"},
		"half":               {plain[:len(plain)/2], "no complete XML"},
		"half a tag":         {plain[:len(plain)-3], "no complete XML"},
		"another document":   {"<html></html>", "KeyContainer"},
		"an external entity": {`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>` + strings.Replace(plain[strings.Index(plain, "<Key"):], "TT-100", "&e;", 1), "document type"},
		"a bomb":             {`<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>` + plain[strings.Index(plain, "<Key"):], "document type"},
		"an inner entity":    {body(plain, "TT-100", "&e;"), "no entities"},
		"a directive inside": {body(plain, "<Issuer>", "<!ELEMENT x ANY><Issuer>"), "line 6"},
		"another encoding":   {body(plain, `version="1.0"`, `version="1.0" encoding="KOI8-R"`), "UTF-8"},
		"another version":    {body(plain, `Version="1.0"`, `Version="2.0"`), "version"},
		"too deep":           {body(plain, "<Issuer>", strings.Repeat("<a>", 40)+strings.Repeat("</a>", 40)+"<Issuer>"), "deeper"},
		"a long element":     {body(plain, "Manufacturer<", strings.Repeat("x", 2*maxElement)+"<"), "longer than"},
		"a long comment":     {"<!--" + strings.Repeat("x", 2*maxElement) + "-->" + plain, "longer than"},
		"an unknown element": {body(plain, "<KeyPackage>", "<Package/><KeyPackage>"), `"Package"`},
		"two roots":          {plain + plain[strings.Index(plain, "<KeyContainer"):], `"KeyContainer"`},
		"no tokens":          {`<KeyContainer Version="1.0"/>`, "no tokens"},
		"a serial twice":     {body(plain, "</KeyContainer>", many+"</KeyContainer>"), "and 20 more"},
		"a hostile serial":   {body(plain, "TT-100", "=cmd|calc!A1"), "serial number"},
		"two keys":           {body(plain, "</Key>", `</Key><Key Id="2"/>`), "2 keys"},
		"no key":             {body(figure6, "</KeyPackage>", "</KeyPackage><KeyPackage/>"), "key package 2: it holds 0"},
		"OCRA":               {body(plain, "pskc:totp", "pskc:ocra"), "algorithm"},
		"another suite":      {body(plain, "HMAC-SHA256", "MD5"), "suite"},
		"hexadecimal codes":  {body(plain, `"DECIMAL"`, `"HEXADECIMAL"`), "response format"},
		"a check digit":      {body(plain, `"false"`, `"true"`), "response format"},
		"ten digits":         {body(plain, `Length="7"`, `Length="10"`), "10 digits"},
		"a short secret":     {body(plain, "MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=", "MTIz"), "3 bytes"},
		"no secret":          {body(plain, "<PlainValue>MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=</PlainValue>", ""), "the secret is missing"},
		"no Base64":          {body(plain, "MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=", "MTIzNDU2!"), "Base64"},
		"a period of zero":   {body(plain, ">60<", ">0<"), "period"},
		"a huge period":      {body(plain, ">60<", ">9223372036854775807<"), "period"},
		"a negative period":  {body(plain, ">60<", ">-9223372036854775808<"), "period"},
		"a huge drift":       {body(plain, ">-3<", ">-9223372036854775808<"), "drift"},
		"a negative counter": {body(figure6, "<PlainValue>0<", "<PlainValue>-1<"), "counter"},
		"a huge counter":     {body(figure6, "<PlainValue>0<", "<PlainValue>9223372036854775807<"), "counter"},
		"no number":          {body(figure6, "<PlainValue>0<", "<PlainValue>zero<"), "whole number"},
		"another use":        {body(plain, "<KeyUsage>OTP<", "<KeyUsage>Encrypt<"), "not for one-time passwords"},
		"an unknown policy":  {body(plain, "<KeyUsage>", "<Bells/><KeyUsage>"), "rules"},
		"a counted policy":   {body(plain, "<KeyUsage>", "<NumberOfTransactions>3</NumberOfTransactions><KeyUsage>"), "rules"},
		"a PIN in the code":  {body(plain, "<KeyUsage>", `<PINPolicy PINUsageMode="Prepend"/><KeyUsage>`), "PIN"},
		"expired at birth":   {body(plain, "2030-05-05", "2020-05-05"), "expires before"},
		"no date":            {body(plain, "2030-05-05", "someday"), "dates"},

		"another key":      {figure6, "MAC is wrong"},
		"no key to open":   {figure6, "give it"},
		"another password": {figure7, "MAC is wrong"},
		"no password":      {figure7, "password: give it"},
		"a changed secret": {body(figure6, "AAECAwQF", "AAECAwQG"), "MAC is wrong"},
		"a changed MAC":    {body(figure6, "Su+NvtQf", "Su+NvtQg"), "MAC is wrong"},
		"no MAC":           {body(figure6, "Su+NvtQfmvfJzF6bmQiJqoLRExc=", ""), "without a MAC"},
		"no MAC method":    {figure6[:strings.Index(figure6, "<MACMethod")] + figure6[strings.Index(figure6, "</MACMethod>")+12:], "the key and the MAC"},
		"MAC before key":   {body(figure6, "<EncryptionKey><ds:KeyName>Pre-shared-key</ds:KeyName></EncryptionKey>", ""), "before, or without"},
		"no blocks":        {body(figure6, "ESIzRFVmd4iZABEiM0RVZgKn6WjLaTC1sbeBMSvIhRejN9vJa2BOlSaMrR7I5wSX", "ESIz"), "whole blocks"},
		"another cipher":   {body(figure6, "aes128-cbc", "tripledes-cbc"), "AES in CBC"},
		"a longer cipher":  {body(figure6, "aes128-cbc", "aes256-cbc"), "key of 32 bytes"},
		"another MAC":      {body(figure6, "#hmac-sha1", "#hmac-md5"), "MAC"},
		"a certificate":    {body(figure6, "<ds:KeyName>Pre-shared-key</ds:KeyName>", "<ds:X509Data/>"), "certificate"},
		"endless work":     {body(figure7, ">1000<", ">2000000000<"), "iterations"},
		"no work":          {body(figure7, ">1000<", ">0<"), "iterations"},
		"a long key":       {body(figure7, ">16<", ">1000000<"), "16, 24 or 32"},
		"no salt":          {body(figure7, "Ej7/PEpyEpw=", ""), "salt"},
		"another function": {body(figure7, "<PRF/>", `<PRF Algorithm="md5"/>`), "PBKDF2"},
		"no parameters":    {figure7[:strings.Index(figure7, "<pkcs5:PBKDF2-params>")] + figure7[strings.Index(figure7, "</pkcs5:PBKDF2-params>")+23:], "parameters"},
	} {
		with := preShared
		switch name {
		case "another key":
			with.Key = mustHex("12345678901234567890123456789013")
		case "no key to open", "no password":
			with = Opening{}
		case "another password":
			with.Password = "qwertz"
		}
		got, err := ReadPSKC(strings.NewReader(c.container), with)
		switch {
		case err == nil:
			t.Errorf("%s: read as %+v", name, got)
		case !strings.Contains(err.Error(), c.want) && name != "another key" && name != "another password":
			t.Errorf("%s: %v, want %q", name, err, c.want)
		case !strings.HasPrefix(err.Error(), "stock: "):
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			for _, secret := range []string{"MTIzNDU2", "12345678901234567890", "AAECAwQ", "qwerty", "cmd|"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%s: the error quotes the file: %v", name, err)
				}
			}
		}
	}
}

func FuzzPSKC(f *testing.F) {
	for _, container := range []string{figure6, figure7, plain} {
		f.Add(container)
	}
	f.Fuzz(func(t *testing.T, container string) {
		if strings.Contains(container, "IterationCount") && !strings.Contains(container, ">1000<") {
			return // it may well ask for seconds of work
		}
		list, err := ReadPSKC(strings.NewReader(container), preShared)
		if (err == nil) != (len(list) > 0) {
			t.Fatalf("%d tokens and %v", len(list), err)
		}
		for _, k := range list {
			if err := k.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

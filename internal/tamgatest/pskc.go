// SPDX-License-Identifier: Apache-2.0

package tamgatest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"strings"
)

// EncryptedContainer is a PSKC container of one HOTP token, under a password.
func EncryptedContainer(serial string, secret []byte, password string) string {
	b64 := base64.StdEncoding.EncodeToString
	salt := []byte("salt of eight or more")
	key, err := pbkdf2.Key(sha1.New, password, salt, 2000, 16)
	if err != nil {
		panic(err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	seal := func(plain []byte) []byte {
		padding := aes.BlockSize - len(plain)%aes.BlockSize
		sealed := append([]byte("an IV of 16 octe"), plain...)
		sealed = append(sealed, strings.Repeat(string(rune(padding)), padding)...)
		cipher.NewCBCEncrypter(block, sealed[:16]).CryptBlocks(sealed[16:], sealed[16:])
		return sealed
	}
	macKey := []byte("key of the MAC")
	sealed := seal(secret)
	mac := hmac.New(sha1.New, macKey)
	mac.Write(sealed)
	method := `<xenc:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/><xenc:CipherData><xenc:CipherValue>%s</xenc:CipherValue></xenc:CipherData>`
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<KeyContainer Version="1.0" xmlns="urn:ietf:params:xml:ns:keyprov:pskc" xmlns:xenc="http://www.w3.org/2001/04/xmlenc#" xmlns:xenc11="http://www.w3.org/2009/xmlenc11#" xmlns:pkcs5="http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#">
<EncryptionKey><xenc11:DerivedKey><xenc11:KeyDerivationMethod Algorithm="http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#pbkdf2"><pkcs5:PBKDF2-params><Salt><Specified>%s</Specified></Salt><IterationCount>2000</IterationCount><KeyLength>16</KeyLength><PRF/></pkcs5:PBKDF2-params></xenc11:KeyDerivationMethod></xenc11:DerivedKey></EncryptionKey>
<MACMethod Algorithm="http://www.w3.org/2000/09/xmldsig#hmac-sha1"><MACKey>`+method+`</MACKey></MACMethod>
<KeyPackage><DeviceInfo><SerialNo>%s</SerialNo></DeviceInfo><Key Id="1" Algorithm="urn:ietf:params:xml:ns:keyprov:pskc:hotp"><AlgorithmParameters><ResponseFormat Length="6" Encoding="DECIMAL"/></AlgorithmParameters><Data><Secret><EncryptedValue>`+method+`</EncryptedValue><ValueMAC>%s</ValueMAC></Secret><Counter><PlainValue>40</PlainValue></Counter></Data></Key></KeyPackage></KeyContainer>`,
		b64(salt), b64(seal(macKey)), serial, b64(sealed), b64(mac.Sum(nil)))
}

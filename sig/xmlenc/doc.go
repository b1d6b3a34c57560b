// SPDX-License-Identifier: Apache-2.0

// Package xmlenc encrypts and decrypts XML documents (XML Encryption Syntax and Processing 1.1) for
// recipients with certificates, with GOST 28147-89 as CryptoPro's programs do, or with AES and RSA.
//
// Begin with [Encrypt], [Parse] and [Encrypted.Decrypt]. Recipients, their keys and the errors are those of
// package cms, because the encrypted key of GOST is the same element in both.
//
// A document has one EncryptedData, which contains everything that is needed: the method, an EncryptedKey for
// each recipient, and the encrypted bytes. References to other places (CipherReference, RetrievalMethod,
// ReferenceList) are refused, and so is a second EncryptedData: programs differ in what they decrypt then.
//
// The GOST algorithm has no authentication code. A changed byte of the content shows only in the plaintext,
// which is therefore not parsed: an error of the parser would tell a forger about it.
package xmlenc

import (
	"errors"
	"fmt"

	"tamga/sig/xmltree"
)

const (
	nsEnc   = "http://www.w3.org/2001/04/xmlenc#"
	nsEnc11 = "http://www.w3.org/2009/xmlenc11#"
	nsDS    = "http://www.w3.org/2000/09/xmldsig#"
	nsPro   = "urn:ietf:params:xml:ns:cpxmlsec:algorithms:"
)

// Part is what of a document is encrypted.
type Part int

const (
	// Element encrypts the root element with its tags.
	Element Part = iota
	// Content encrypts what is between the tags of the root element.
	Content
)

// uri returns the value of the attribute Type.
func (p Part) uri() string {
	if p == Content {
		return nsEnc + "Content"
	}
	return nsEnc + "Element"
}

// ErrNotEncrypted is the error of Parse for a document without EncryptedData.
var ErrNotEncrypted = errors.New("xmlenc: the document has no EncryptedData")

// malformed returns an error about an element.
func malformed(t *xmltree.Tree, n xmltree.Node, format string, args ...any) error {
	line, column := t.Position(t.Start(n))
	return fmt.Errorf("xmlenc: line %d, column %d: %s", line, column, fmt.Sprintf(format, args...))
}

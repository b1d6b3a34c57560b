// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"testing"
)

//go:embed xmlenc.py
var xmlencProgram string

// XMLEncryption decrypts and makes documents of XML Encryption with the algorithms of CryptoPro, for which
// no distribution has a program: a reader in Python makes a CMS message of the document, and OpenSSL with
// gost-engine does the rest.
type XMLEncryption struct {
	tool   *Tool
	python string
}

// NewXMLEncryption finds both programs.
func NewXMLEncryption(t testing.TB) *XMLEncryption {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		missing(t, "python3 is not installed")
	}
	return &XMLEncryption{OpenSSL(t), python}
}

// Decrypt returns the plaintext for a recipient. certPEM and keyPEM are the certificate and the key.
func (x *XMLEncryption) Decrypt(document, certPEM, keyPEM []byte) ([]byte, error) {
	message, err := x.run(document, "to-cms")
	if err != nil {
		return nil, err
	}
	_, err = x.tool.Run("cms", "-decrypt", "-binary", "-inform", "DER", "-in", x.tool.Write("message", message),
		"-recip", x.tool.Write("cert.pem", certPEM), "-inkey", x.tool.Write("key.pem", keyPEM), "-out", "got")
	if err != nil {
		return nil, err
	}
	return x.tool.Read("got"), nil
}

// Encrypt returns a document that is one EncryptedData. kind is its Type, uri the name of the encrypted key,
// and set OpenSSL's name of the parameter set.
func (x *XMLEncryption) Encrypt(text, certDER, certPEM []byte, kind, uri, set string) ([]byte, error) {
	x.tool.Write("recipient.der", certDER)
	// XML has no place for the parameter set of the content: it is the set of the encrypted key.
	x.tool.env = []string{"CRYPT_PARAMS=" + set}
	if _, err := x.tool.Run("cms", "-encrypt", "-binary", "-outform", "DER", "-in", x.tool.Write("text", text), "-out", "theirs", "-gost89",
		"-recip", x.tool.Write("cert.pem", certPEM)); err != nil {
		return nil, err
	}
	return x.run(x.tool.Read("theirs"), "to-xml", kind, uri)
}

func (x *XMLEncryption) run(in []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, x.python, append([]string{"-c", xmlencProgram}, args...)...)
	cmd.Dir = x.tool.Dir
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("judge: the reader of XML Encryption: %w: %s", err, errs.String())
	}
	return out.Bytes(), nil
}

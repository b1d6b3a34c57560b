// SPDX-License-Identifier: Apache-2.0

package asic_test

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/asic"
)

//go:embed testdata/container.py
var containerProgram string

// python runs the reader of containers, which was written from the standard, in a directory.
func python(t *testing.T, dir, files string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), judge.Program(t, "python3"), "-c", containerProgram, filepath.Join(dir, "container"), dir, files).CombinedOutput()
	return string(out), err
}

// A reader in another language accepts the structure of each container and takes out signatures and what they cover,
// which OpenSSL verifies for CAdES and xmlsec for XAdES. Each refuses a changed copy.
func TestJudged(t *testing.T) {
	openssl, xmlsec := judge.OpenSSL(t), judge.XMLSecGOST(t)
	for n, s := range suite.All() {
		root, signer := parties(t, s)
		for i, m := range modes {
			for j, cosigned := range []bool{false, true} {
				if testsize.Of() < testsize.Whole && (2*n+3*i+j)%5 > 0 {
					continue
				}
				name := fmt.Sprintf("%s %s cosigned %v", s.Name, m, cosigned)
				made := sigtest.Make(t, asic.New(), signer, m.job())
				if cosigned {
					made = sigtest.Make(t, asic.New(), signer, &sig.Job{Document: sigtest.Document(made), Params: sig.Params{"ASiCFormat": m.format, "CmsSignatureType": "Cosign"}})
				}
				dir := t.TempDir()
				judged := func(container []byte) error {
					if err := os.WriteFile(filepath.Join(dir, "container"), container, 0o600); err != nil {
						t.Fatal(err)
					}
					out, err := python(t, dir, xmlsec.Dir)
					if err != nil {
						return fmt.Errorf("python: %v: %s", err, out)
					}
					for line := range strings.Lines(out) {
						kind, signature, content := split3(line)
						read := func(name string) []byte {
							b, err := os.ReadFile(filepath.Join(dir, name))
							if err != nil {
								t.Fatal(err)
							}
							return b
						}
						switch kind {
						case "cms":
							openssl.Write("message.der", read(signature))
							openssl.Write("content.bin", read(content))
							openssl.Write("root.pem", root.PEM())
							if _, err := openssl.Run("cms", "-verify", "-binary", "-inform", "DER", "-in", "message.der", "-content", "content.bin", "-out", "out.bin",
								"-CAfile", "root.pem", "-purpose", "any", "-attime", fmt.Sprint(sigtest.Time.Unix())); err != nil {
								return err
							}
						case "xml":
							if s == suite.GOST2001 {
								continue // xmlsec knows only older names of its algorithms
							}
							if err := xmlsec.VerifyBeside(read(signature), root.PEM(), sigtest.Time, "SignedProperties"); err != nil {
								return err
							}
						default:
							return fmt.Errorf("python printed %q", line)
						}
					}
					if out == "" {
						return fmt.Errorf("no signature")
					}
					return nil
				}
				if err := judged(made); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				all := entries(t, made)
				for i, e := range all {
					if i == 0 || e.content == "" {
						continue
					}
					changed := make([]sigtest.ZipEntry, len(all))
					for j, o := range all {
						changed[j] = sigtest.ZipEntry{Name: o.name, Content: o.content, Store: j == 0}
					}
					b := []byte(e.content)
					b[len(b)/2] ^= 1
					changed[i].Content = string(b)
					if err := judged(sigtest.Zip(changed, "")); err == nil {
						t.Errorf("%s: %s changed and accepted", name, e.name)
					}
				}
			}
		}
	}
}

// split3 splits a line into three words.
func split3(line string) (a, b, c string) {
	words := append(strings.Fields(line), "", "", "")
	return words[0], words[1], words[2]
}

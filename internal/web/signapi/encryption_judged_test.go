// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"tamga/gost/gost3410"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// encryptedForm is a row of the table of docs/encryption.md: a key, a cipher and a way to send its key.
type encryptedForm struct {
	suite      string
	parameters map[string]string // of our encryption, without defaults
	openssl    string            // option of openssl cms; "": it has no such form
	most       int               // OpenSSL reads ours up to this size; 0: of every size
	bouncy     string            // form of judge.Castle.Encrypt; "": it has no such form
	unread     bool              // Bouncy Castle does not read ours
	integrity  string
}

// encryptedForms are all forms that the service writes.
func encryptedForms() (list []encryptedForm) {
	none, verified := "None", "Verified"
	gost := []string{"gost2001", "gost2012-256", "gost2012-512"}
	for _, management := range []string{"Transport", "Agreement"} {
		for _, s := range gost {
			f := encryptedForm{suite: s, parameters: map[string]string{"Algorithm": "28147-89", "KeyManagement": management}, openssl: "-gost89", bouncy: strings.ToLower(management) + " 28147-89", integrity: none}
			// Bouncy Castle does not read keys of 512 bits without digestParamSet, which the transport has as the
			// certificate has it.
			f.unread = s == "gost2012-512" && management == "Transport"
			list = append(list, f)
		}
		for _, s := range gost[1:] {
			for _, c := range []struct {
				name, option string
				most         int
			}{
				// gost-engine 3.0.1 reads with shorter sections than it writes with, which shows behind the first one.
				{"Magma", "-magma-ctr-acpkm", 1 << 10}, {"Kuznyechik", "-kuznyechik-ctr-acpkm", 4 << 10},
			} {
				for _, integrity := range []string{"None", "OMAC"} {
					f := encryptedForm{suite: s, parameters: map[string]string{"Algorithm": c.name, "KeyManagement": management, "Integrity": integrity}, openssl: c.option, most: c.most, integrity: none}
					if integrity == "OMAC" {
						f.openssl, f.most, f.integrity = c.option+"-omac", c.most-16, verified
					}
					list = append(list, f)
				}
			}
		}
		if management == "Transport" {
			continue
		}
		for i := range list {
			if list[i].parameters["KeyManagement"] == management {
				list[i].openssl = "" // gost-engine has no agreement for these forms
			}
		}
	}
	return append(list,
		encryptedForm{suite: "rsa-2048", parameters: map[string]string{"Algorithm": "28147-89"}, openssl: "-gost89", bouncy: "transport 28147-89", integrity: none},
		encryptedForm{suite: "rsa-2048", parameters: map[string]string{"Algorithm": "AES256-CBC"}, openssl: "-aes-256-cbc", bouncy: "transport AES256-CBC", integrity: none},
		encryptedForm{suite: "rsa-2048", parameters: map[string]string{"Algorithm": "AES256-GCM"}, openssl: "-aes-256-gcm", bouncy: "oaep AES256-GCM", integrity: verified},
		encryptedForm{suite: "ecdsa-p256", parameters: map[string]string{"Algorithm": "AES256-CBC"}, openssl: "-aes-256-cbc", bouncy: "agreement AES256-CBC", integrity: none},
		// Bouncy Castle 1.72 has no class that reads this form.
		encryptedForm{suite: "ecdsa-p256", parameters: map[string]string{"Algorithm": "AES256-GCM"}, openssl: "-aes-256-gcm", bouncy: "agreement AES256-GCM", unread: true, integrity: verified},
	)
}

func (f *encryptedForm) title() string {
	key := map[string]string{"gost2001": "34.10-2001", "gost2012-256": "34.10-2012, 256", "gost2012-512": "34.10-2012, 512", "rsa-2048": "RSA", "ecdsa-p256": "ECDSA"}[f.suite]
	cipher := "`" + f.parameters["Algorithm"] + "`"
	if f.parameters["Integrity"] == "OMAC" {
		cipher += " `OMAC`"
	}
	if m := f.parameters["KeyManagement"]; m != "" {
		cipher += " `" + m + "`"
	}
	return key + " | " + cipher
}

// judgedSizes are those where padding, meshing and blocks begin.
var judgedSizes = []int{0, 1, 8, 1023, 1024, 1025, 100_000}

// party is a recipient whose key the judges have.
type party struct {
	der, pem, pkcs8, castle []byte
}

func newParty(t *testing.T, name string) party {
	t.Helper()
	s, _ := suite.ByName(name)
	if name == "rsa-2048" {
		s = suite.RSASHA256
	}
	key, err := s.Generate(nil)
	if err != nil {
		t.Fatal(err)
	}
	subject, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "Recipient"}})
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509gost.CreateCertificate(&x509gost.Template{
		Subject: subject, SerialNumber: []byte{1}, NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2049, 1, 1, 0, 0, 0, 0, time.UTC),
	}, nil, key.Public(), s, s, x509gost.SignWith(nil, key, s))
	if err != nil {
		t.Fatal(err)
	}
	p := party{der: der, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	pkcs8, err := x509gost.MarshalPrivateKey(key, s)
	if err != nil {
		t.Fatal(err)
	}
	p.pkcs8, p.castle = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), castleKey(t, key, s)
	return p
}

// castleKey returns a private key in the form that Bouncy Castle reads: see judge.Castle.Decrypt.
func castleKey(t *testing.T, key crypto.Signer, s *suite.Suite) []byte {
	t.Helper()
	private, gost := key.(*gost3410.PrivateKey)
	if !gost {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	params, err := s.ParametersOf(private.Set())
	if err != nil {
		t.Fatal(err)
	}
	digest := params.Digest
	if digest == nil {
		digest = s.Hash.OID
	}
	type algorithm struct {
		OID    asn1.ObjectIdentifier
		Params struct{ Set, Digest asn1.ObjectIdentifier }
	}
	inner, err := asn1.Marshal(private.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	a := algorithm{OID: s.KeyOID}
	a.Params.Set, a.Params.Digest = params.OID, digest
	der, err := asn1.Marshal(struct {
		Version   int
		Algorithm algorithm
		Key       []byte
	}{0, a, inner})
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// outcome is what came of the messages of a form in a direction.
type outcome struct{ tried, right bool }

// mark returns the cell of a table.
func (j outcome) mark(most int) string {
	switch {
	case !j.tried:
		return "–"
	case !j.right:
		return "no"
	case most > 0:
		return fmt.Sprintf("≤ %d KiB", (most+16)>>10)
	}
	return "yes"
}

// TestEncryptionJudged sends each form in each size through the service on both databases. OpenSSL and Bouncy Castle
// read what it encrypts, and it reads what they encrypt. The results are the table of docs/encryption.md.
func TestEncryptionJudged(t *testing.T) {
	t.Parallel()
	tool, castle := judge.OpenSSL(t), judge.BouncyCastle(t)
	forms := encryptedForms()
	parties := map[string]party{}
	for _, s := range suites {
		parties[s.name] = newParty(t, s.name)
	}
	rows := make([][4]outcome, len(forms)) // OpenSSL reads ours, we read OpenSSL's, Bouncy Castle reads ours, we read its
	for i := range rows {
		for j := range rows[i] {
			rows[i][j].right = true
		}
	}
	for d, database := range []string{"SQLite", "PostgreSQL"} {
		var settings []string
		if database == "PostgreSQL" {
			settings = []string{"--set", "database=" + storetest.PostgreSQL(t).Migrated(t)}
		}
		c := openV2(t, t.TempDir(), settings...)
		for i := range forms {
			f := &judgedForm{v2: c, t: t, encryptedForm: &forms[i], tool: tool, castle: castle, to: parties[forms[i].suite], row: &rows[i], name: database + ", " + forms[i].title()}
			for n, size := range judgedSizes {
				if testsize.Of() < testsize.Whole && (n+i+d)%3 != 0 {
					continue // each form with several sizes, and each size with several forms
				}
				f.check(size)
			}
			if testsize.Of() == testsize.Full && database == "SQLite" {
				c.bearer = c.Token() // all forms together take longer than a token is valid
				f.check(100 << 20)
			}
		}
	}
	var table strings.Builder
	for i := range forms {
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", forms[i].title(), rows[i][0].mark(forms[i].most), rows[i][1].mark(0), rows[i][2].mark(0), rows[i][3].mark(0))
	}
	for page, marks := range map[string]*strings.Replacer{
		"encryption.md": strings.NewReplacer(), "ru/encryption.md": strings.NewReplacer("| yes ", "| да ", "KiB", "КиБ", "| no ", "| нет "),
	} {
		want := marks.Replace(marks.Replace(table.String())) // neighbours share a bar
		if text := tamgatest.ReadFile(t, "../../../docs/"+page); !strings.Contains(string(text), "\n|---|---|---|---|---|---|\n"+want+"\n") {
			t.Errorf("docs/%s has another table; want the rows\n%s", page, want)
		}
	}
}

// judgedForm is a form that is tried on a server.
type judgedForm struct {
	*v2
	*encryptedForm
	t      *testing.T
	tool   *judge.Tool
	castle *judge.Castle
	to     party
	row    *[4]outcome
	name   string
}

// says notes the result of a direction.
func (f *judgedForm) says(direction, size int, right bool, what string, err error) {
	f.t.Helper()
	f.row[direction].tried = true
	if !right || err != nil {
		f.row[direction].right = false
		f.t.Errorf("%s, %d bytes: %s: %v", f.name, size, what, err)
	}
}

// check tries one size in all directions.
func (f *judgedForm) check(size int) {
	f.t.Helper()
	large := size > 100_000
	text := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(text)
	own := f.Cert(f.suite, false)
	if size > 0 { // the service encrypts no empty document
		message := f.encrypted(text, f.to.der)
		if f.openssl != "" && (f.most == 0 || size <= f.most) {
			f.tool.Write("message", message)
			f.tool.Write("cert.pem", f.to.pem)
			f.tool.Write("key.pem", f.to.pkcs8)
			_, err := f.tool.Run("cms", "-decrypt", "-binary", "-inform", "DER", "-in", "message", "-recip", "cert.pem", "-inkey", "key.pem", "-out", "got")
			f.says(0, size, err == nil && bytes.Equal(f.tool.Read("got"), text), "OpenSSL does not read ours", err)
		}
		if f.bouncy != "" && !f.unread && !large {
			got, err := f.castle.Decrypt(message, f.to.castle)
			f.says(2, size, bytes.Equal(got, text), "Bouncy Castle does not read ours", err)
		}
		got, integrity, err := f.opened(f.encrypted(text, f.certificate(own.PEM)), own.ID)
		if err != nil || !bytes.Equal(got, text) || integrity != f.integrity {
			f.t.Errorf("%s, %d bytes: we do not read our own: %q %v", f.name, size, integrity, err)
		}
	}
	if f.openssl != "" {
		f.tool.Write("text", text)
		args := []string{"cms", "-encrypt", "-binary", "-outform", "DER", "-in", "text", "-out", "theirs", f.openssl, "-recip", f.Path(own.PEM)}
		if f.suite == "ecdsa-p256" {
			args = append(args, "-keyopt", "ecdh_kdf_md:sha256")
		}
		if _, err := f.tool.Run(args...); err != nil {
			f.t.Fatal(err)
		}
		got, integrity, err := f.opened(f.tool.Read("theirs"), own.ID)
		f.says(1, size, bytes.Equal(got, text) && integrity == f.integrity, "we do not read OpenSSL's", err)
	}
	if f.bouncy != "" && !large {
		theirs, err := f.castle.Encrypt(f.bouncy, f.certificate(own.PEM), text)
		if err != nil {
			f.t.Fatal(err)
		}
		got, integrity, err := f.opened(theirs, own.ID)
		f.says(3, size, bytes.Equal(got, text) && integrity == f.integrity, "we do not read Bouncy Castle's", err)
	}
}

// certificate returns a certificate of the user, DER.
func (f *judgedForm) certificate(file string) []byte {
	f.t.Helper()
	block, _ := pem.Decode(tamgatest.ReadFile(f.t, f.Path(file)))
	return block.Bytes
}

// encrypted has the service encrypt a text.
func (f *judgedForm) encrypted(text, der []byte) (message []byte) {
	f.t.Helper()
	status, answer := f.send("POST", f.Dev.BaseURL+"/api/documents/encrypt", fields{
		"Content": text, "Encryption": fields{"Type": "CMS", "Certificates": [][]byte{der}, "Parameters": f.parameters},
	})
	if err := json.Unmarshal(answer, &message); err != nil || status != 200 {
		f.t.Fatalf("%s: %d %.300s", f.name, status, answer)
	}
	return message
}

// opened has the service decrypt a message.
func (f *judgedForm) opened(message []byte, id int64) (text []byte, integrity string, err error) {
	body, err := json.Marshal(fields{"Content": message, "Decryption": fields{"Type": 0, "CertificateId": id}})
	if err != nil {
		return nil, "", err
	}
	request, err := http.NewRequestWithContext(f.t.Context(), "POST", f.Dev.BaseURL+"/api/documents/decrypt", bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Authorization", "Bearer "+f.bearer)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, "", err
	}
	status, answer := tamgatest.ReadAll(f.t, response)
	if status != 200 {
		return nil, "", fmt.Errorf("%d %.300s", status, answer)
	}
	return text, response.Header.Get("Tamga-Integrity"), json.Unmarshal(answer, &text)
}

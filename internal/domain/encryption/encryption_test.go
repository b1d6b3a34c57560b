// SPDX-License-Identifier: Apache-2.0

package encryption_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/blob"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/encryption"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signing"
	"tamga/internal/sigtest"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

const userID = "00000000-0000-4000-8000-000000000001"

// text is a document in memory.
type text struct{ *bytes.Reader }

func document(b []byte) text { return text{bytes.NewReader(b)} }

// nothing is a store in which no operation is recorded.
type nothing struct{ operation.Store }

func (nothing) Outside(context.Context) error { return nil }
func (nothing) Atomic(ctx context.Context, _ lock.Set, fn func(context.Context) error) error {
	return fn(ctx)
}

// world are the certificates of a user with keys in memory.
type world struct {
	*encryption.Service
	t         testing.TB
	list      []*keys.Certificate
	private   map[int64]cms.RecipientKey
	refused   map[int64]error // by certificates that do not decrypt
	denied    error           // of the policy
	opened    []int64         // certificates whose keys were used
	scratches []*signing.Intake
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, private: map[int64]cms.RecipientKey{}, refused: map[int64]error{}}
	spool, err := blob.NewSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	signer := &signing.Service{Spool: spool, Results: spool.Sealed()}
	w.Service = &encryption.Service{Keys: w, Policy: w, Snapshots: w, Now: time.Now, Rand: rand.Reader, Scratch: func() *signing.Intake {
		w.scratches = append(w.scratches, signer.NewScratch())
		return w.scratches[len(w.scratches)-1]
	}}
	s, err := operation.New(operation.Settings{Life: time.Hour, Lease: time.Minute}, operation.Deps{Store: nothing{}, Now: time.Now, Rand: rand.Reader}, w.Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	w.Operations = s
	return w
}

// own adds a certificate of the user with its key.
func (w *world) own(cert *x509gost.Certificate, key any) *keys.Certificate {
	w.t.Helper()
	c := &keys.Certificate{ID: int64(len(w.list) + 1), UserID: userID, X509: cert}
	w.list = append(w.list, c)
	private, err := cms.NewRecipientKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	w.private[c.ID] = private
	return c
}

func (w *world) List(context.Context, string) ([]*keys.Certificate, error) { return w.list, nil }
func (w *world) ResolveIn(_ context.Context, _ *keys.Snapshot, _, id string) (*keys.Certificate, error) {
	for _, c := range w.list {
		if fmt.Sprint(c.ID) == id {
			return c, nil
		}
	}
	return nil, fault.New(fault.InvalidCertificate, "none")
}
func (w *world) Decrypts(_ context.Context, _ *keys.Snapshot, _ string, c *keys.Certificate) error {
	return w.refused[c.ID]
}
func (w *world) DecryptIn(_ context.Context, _ *keys.Snapshot, _ string, c *keys.Certificate, _ string) (cms.Opening, error) {
	w.opened = append(w.opened, c.ID)
	return cms.Opening{Certificate: c.X509, Key: w.private[c.ID]}, nil
}
func (w *world) CheckPIN(context.Context, audit.Principal, string, string, bool) (bool, string, error) {
	return true, "", nil
}
func (w *world) Receiving(context.Context, time.Time) (func(*x509gost.Certificate) error, error) {
	return func(*x509gost.Certificate) error { return nil }, nil
}
func (w *world) PermitBy(policy.Set, policy.Action) error           { return w.denied }
func (w *world) NeedsConfirmationBy(policy.Set, policy.Action) bool { return false }
func (w *world) Current(context.Context, audit.Principal, *signing.Snapshot) (*signing.Snapshot, error) {
	return &signing.Snapshot{UserID: userID}, nil
}

// decrypt decrypts one message as v1 does.
func (w *world) decrypt(ctx context.Context, message sig.Document, certificate string, params map[string]string) (plain []byte, integrity string, err error) {
	w.t.Helper()
	who := audit.Principal{UserID: userID}
	order, err := w.Decrypting(who, &encryption.DecryptOrder{
		Type: encryption.CMS, Certificate: certificate, Params: params, Messages: []encryption.Input{{Content: message}}, Form: operation.FormTransaction,
	}, operation.Refuses)
	if err != nil {
		return nil, "", err
	}
	op, _, err := w.Operations.Start(ctx, order)
	if err != nil {
		return nil, "", err
	}
	defer op.Close()
	var out bytes.Buffer
	if _, err := op.Documents[0].Content.WriteTo(&out); err != nil {
		return nil, "", err
	}
	return out.Bytes(), op.Documents[0].Integrity, nil
}

func (w *world) encrypt(content []byte, o cms.Encryption, to ...*x509gost.Certificate) []byte {
	w.t.Helper()
	var message bytes.Buffer
	if err := cms.Encrypt(w.t.Context(), &message, bytes.NewReader(content), int64(len(content)), to, o); err != nil {
		w.t.Fatal(err)
	}
	return message.Bytes()
}

// Without a certificate the default one is taken, else the first of the message. One that does not decrypt is left out.
func TestChosenCertificate(t *testing.T) {
	w := newWorld(t)
	root := sigtest.Root(t, suite.GOST2012x256)
	var certs []*x509gost.Certificate
	for i := range 4 {
		p := root.Signer(t, suite.GOST2012x256, fmt.Sprint("Signer ", i))
		w.own(p.Certificate, p.Key)
		certs = append(certs, p.Certificate)
	}
	content := []byte("the text")
	message := w.encrypt(content, cms.Encryption{}, certs[:3]...)
	e, err := cms.ParseEnveloped(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		t.Fatal(err)
	}
	var inOrder []int64
	for _, r := range e.Recipients {
		for _, c := range w.list {
			if r.Names(c.X509) {
				inOrder = append(inOrder, c.ID)
			}
		}
	}
	check := func(name string, want ...int64) {
		t.Helper()
		w.opened = nil
		list, err := w.Parse(t.Context(), audit.Principal{UserID: userID}, nil, encryption.CMS, []encryption.Input{{Content: document(message)}})
		if err != nil || !slices.Equal(list[0].Certificates, want) {
			t.Errorf("%s: parsed %v, %v, want %v", name, list, err, want)
		}
		got, _, err := w.decrypt(t.Context(), document(message), "0", nil)
		if err != nil || !bytes.Equal(got, content) || len(w.opened) != 1 || w.opened[0] != want[0] {
			t.Errorf("%s: %q with %v, %v", name, got, w.opened, err)
		}
	}
	check("in the order of the message", inOrder...)
	last := inOrder[2]
	w.list[last-1].Default = true
	check("the default one first", last, inOrder[0], inOrder[1])
	w.refused[last] = fault.New(fault.WrongOperation, "it only signs")
	check("without one that only signs", inOrder[0], inOrder[1])
	w.refused[inOrder[0]], w.refused[inOrder[1]] = w.refused[last], w.refused[last]
	if _, _, err := w.decrypt(t.Context(), document(message), "", nil); !fault.Is(err, fault.WrongOperation) {
		t.Errorf("with none that decrypts: %v", err)
	}
	if _, _, err := w.decrypt(t.Context(), document(message), "4", nil); !fault.Is(err, fault.InvalidCertificate) {
		t.Errorf("with one that is no recipient: %v", err)
	}
	w.denied = fault.New(fault.AccessDenied, "denied")
	w.opened = nil
	if _, _, err := w.decrypt(t.Context(), document(message), "", nil); !fault.Is(err, fault.AccessDenied) || w.opened != nil {
		t.Errorf("denied: %v, %v", err, w.opened)
	}
}

// Published messages: one names its sender, whose certificate comes with the order.
func TestPublishedMessages(t *testing.T) {
	file, err := os.ReadFile("../../../pki/cms/testdata/enveloped.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Certificates, Keys map[string][]byte
		Messages           []struct {
			Name, Recipient, Sender, Integrity string
			Text, Message                      []byte
		}
	}
	if err := json.Unmarshal(file, &all); err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, m := range all.Messages {
		w := newWorld(t)
		cert, err := x509gost.ParseCertificate(all.Certificates[m.Recipient])
		if err != nil {
			t.Fatal(err)
		}
		key, _, err := x509gost.ParsePrivateKey(all.Keys[m.Recipient])
		if err != nil {
			t.Fatal(err)
		}
		w.own(cert, key)
		var params map[string]string
		if m.Sender != "" {
			named++
			if _, _, err := w.decrypt(t.Context(), document(m.Message), "", nil); !fault.Is(err, fault.ParametersRequired) {
				t.Errorf("%s without the certificate of the sender: %v", m.Name, err)
			}
			params = map[string]string{"originatorcertificate": base64.StdEncoding.EncodeToString(all.Certificates[m.Sender])}
		}
		got, integrity, err := w.decrypt(t.Context(), document(m.Message), "", params)
		if err != nil || !bytes.Equal(got, m.Text) || integrity != m.Integrity {
			t.Errorf("%s: %q, integrity %q, %v", m.Name, got, integrity, err)
		}
	}
	if named == 0 || len(all.Messages) < 4 {
		t.Errorf("%d messages, %d that name their sender", len(all.Messages), named)
	}
}

// Messages in each text form are read as the bytes that they have, and nothing of them stays open.
func TestTexts(t *testing.T) {
	w := newWorld(t)
	p := sigtest.Root(t, suite.GOST2012x256).Signer(t, suite.GOST2012x256, "Signer")
	w.own(p.Certificate, p.Key)
	content := bytes.Repeat([]byte("0123456789abcdef"), 40_000)
	message := w.encrypt(content, cms.Encryption{Cipher: cms.Kuznyechik}, p.Certificate)
	armour := string(pem.EncodeToMemory(&pem.Block{Type: "CMS", Bytes: message}))
	code := base64.StdEncoding.EncodeToString(message)
	wide := []byte{0xff, 0xfe}
	for _, c := range []byte(armour) {
		wide = append(wide, c, 0)
	}
	for name, text := range map[string]string{
		"PEM": armour, "Base64": code, "Base64 in quotes": `"` + code + `"`, "UTF-16": string(wide),
		"S/MIME": "Content-Type: application/pkcs7-mime; smime-type=enveloped-data\n\n" + code,
	} {
		w.scratches = nil
		list, err := w.Parse(t.Context(), audit.Principal{UserID: userID}, nil, encryption.Any, []encryption.Input{{Content: document([]byte(text))}})
		if err != nil || list[0].Fault != nil || !slices.Equal(list[0].Certificates, []int64{1}) {
			t.Errorf("%s: parsed %+v, %v", name, list, err)
		}
		got, integrity, err := w.decrypt(t.Context(), document([]byte(text)), "", nil)
		if err != nil || !bytes.Equal(got, content) || integrity != "Verified" {
			t.Errorf("%s: %d bytes, integrity %q, %v", name, len(got), integrity, err)
		}
		if len(w.scratches) < 3 {
			t.Errorf("%s: %d scratch documents", name, len(w.scratches))
		}
		for i, s := range w.scratches {
			if _, err := s.ReadAt(make([]byte, 1), 0); err == nil {
				t.Errorf("%s: scratch document %d is open", name, i)
			}
		}
		half := text[:len(text)/4*2+1]
		if _, _, err := w.decrypt(t.Context(), document([]byte(half)), "", nil); !fault.Is(err, fault.InvalidContent) {
			t.Errorf("%s, half of it: %v", name, err)
		}
		if _, _, err := w.decrypt(t.Context(), broken{document([]byte(text)), int64(len(text)) / 2}, "", nil); !errors.Is(err, errStorage) {
			t.Errorf("%s in a storage that is away: %v", name, err)
		}
	}
}

// TestPlainName: names of results are never empty, and lead to no other directory.
func TestPlainName(t *testing.T) {
	for file, want := range map[string]string{
		"a.txt.p7m": "a.txt", "a.ENC": "a", "a.p7e": "a", "a.txt": "a.txt", ".p7m": "document", "...p7m": "document", "....enc": "document", "": "document", "..": "document",
		"../../etc/passwd.p7m": "passwd", `..\..\evil.txt.p7m`: "evil.txt", "a/.p7m": "document", "/..p7m": "document", " .p7m": "document", ".hidden.p7m": ".hidden", "a.p7m.p7m": "a.p7m",
	} {
		if got, _ := encryption.PlainName(file); got != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
	for file, want := range map[string]bool{".p7m": true, "a.p7m": true, "p7m": false, "a.p7m.txt": false} {
		if _, ended := encryption.PlainName(file); ended != want {
			t.Errorf("%q: has an ending: %t", file, ended)
		}
	}
}

// broken is a document that cannot be read from a position.
type broken struct {
	text
	from int64
}

var errStorage = errors.New("the storage is away")

func (b broken) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.from {
		return 0, errStorage
	}
	return b.text.ReadAt(p, off)
}

// After a failure no scratch document can be read, and errors that are no fault of the message stay what they are.
func TestFailures(t *testing.T) {
	w := newWorld(t)
	p := sigtest.Root(t, suite.GOST2012x256).Signer(t, suite.GOST2012x256, "Signer")
	c := w.own(p.Certificate, p.Key)
	content := bytes.Repeat([]byte("0123456789abcdef"), 40_000)
	message := w.encrypt(content, cms.Encryption{Cipher: cms.Kuznyechik}, p.Certificate)
	bad := bytes.Clone(message)
	bad[len(bad)-1] ^= 1
	if _, _, err := w.decrypt(t.Context(), document(bad), "", nil); !fault.Is(err, fault.InvalidContent) {
		t.Errorf("a wrong code: %v", err)
	}
	last := w.scratches[len(w.scratches)-1]
	if n, err := last.ReadAt(make([]byte, 1), 0); n != 0 || err == nil || err == io.EOF {
		t.Errorf("the plaintext of a wrong message can be read: %d, %v", n, err)
	}
	// The first reading is for the digest.
	if _, _, err := w.decrypt(t.Context(), broken{document(message), int64(len(message)) / 2}, "", nil); !errors.Is(err, errStorage) {
		t.Errorf("a storage that is away: %v", err)
	}
	w.private[c.ID] = failing{errStorage}
	if _, _, err := w.decrypt(t.Context(), document(message), "", nil); !errors.Is(err, errStorage) {
		t.Errorf("a holder that is away: %v", err)
	}
	w.private[c.ID] = failing{cms.ErrDecrypt}
	if _, _, err := w.decrypt(t.Context(), document(message), "", nil); !fault.Is(err, fault.InvalidContent) {
		t.Errorf("a key that does not decrypt: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := w.decrypt(ctx, document(message), "", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that is gone: %v", err)
	}
	for _, wrong := range [][]byte{message[:len(message)/2], []byte("no message"), append([]byte{0x30, 0x80}, bytes.Repeat([]byte{0xa0, 0x80}, 100_000)...)} {
		if _, _, err := w.decrypt(t.Context(), document(wrong), "", nil); !fault.Is(err, fault.InvalidContent) {
			t.Errorf("%d bytes: %v", len(wrong), err)
		}
	}
}

// failing is a key with an error.
type failing struct{ err error }

func (f failing) Agree(context.Context, cms.KeyAgreement) ([]byte, error)   { return nil, f.err }
func (f failing) Decrypt(context.Context, cms.KeyTransport) ([]byte, error) { return nil, f.err }

// TestParameters encrypts with each value of the parameters.
func TestParameters(t *testing.T) {
	w := newWorld(t)
	root := sigtest.Root(t, suite.GOST2012x256)
	gost, rsa := root.Signer(t, suite.GOST2012x256, "GOST"), root.Signer(t, suite.RSASHA256, "RSA")
	w.own(gost.Certificate, gost.Key)
	w.own(rsa.Certificate, rsa.Key)
	content := []byte("the text")
	type params = map[string]string
	for _, c := range []struct {
		params    params
		to        []*x509gost.Certificate
		cipher    string
		integrity string // "": the fault
		code      string
	}{
		{nil, []*x509gost.Certificate{gost.Certificate}, "28147-89", "None", ""},
		{nil, []*x509gost.Certificate{gost.Certificate, rsa.Certificate, gost.Certificate}, "28147-89", "None", ""},
		{nil, []*x509gost.Certificate{rsa.Certificate}, "AES256-CBC", "None", ""},
		{params{"Algorithm": "magma"}, []*x509gost.Certificate{gost.Certificate}, "Magma", "Verified", ""},
		{params{"algorithm": "Kuznyechik", "INTEGRITY": "none"}, []*x509gost.Certificate{gost.Certificate}, "Kuznyechik", "None", ""},
		{params{"Algorithm": "Kuznyechik", "Integrity": "OMAC", "KeyManagement": "Agreement"}, []*x509gost.Certificate{gost.Certificate}, "Kuznyechik", "Verified", ""},
		{params{"KeyManagement": "agreement", "AllowInvalid": "False"}, []*x509gost.Certificate{gost.Certificate}, "28147-89", "None", ""},
		{params{"Algorithm": "AES256-GCM"}, []*x509gost.Certificate{rsa.Certificate}, "AES256-GCM", "Verified", ""},
		{params{"Algorithm": "AES256-GCM"}, []*x509gost.Certificate{gost.Certificate}, "", "", fault.InvalidRecipients},
		{params{"Algorithm": "Magma"}, []*x509gost.Certificate{gost.Certificate, rsa.Certificate}, "", "", fault.InvalidRecipients},
		{params{"Algorithm": "DES"}, []*x509gost.Certificate{gost.Certificate}, "", "", fault.InvalidParameters},
		{params{"Algorithm": "AES256-GCM", "Integrity": "None"}, []*x509gost.Certificate{rsa.Certificate}, "", "", fault.InvalidParameters},
		{params{"Integrity": "OMAC"}, []*x509gost.Certificate{gost.Certificate}, "", "", fault.InvalidParameters},
		{params{"Integrity": "HMAC"}, []*x509gost.Certificate{gost.Certificate}, "", "", fault.InvalidParameters},
		{params{"KeyManagement": "Password"}, []*x509gost.Certificate{gost.Certificate}, "", "", fault.InvalidParameters},
		{params{"AllowInvalid": "perhaps"}, []*x509gost.Certificate{gost.Certificate}, "", "", fault.InvalidParameters},
		{params{"Compression": "1"}, []*x509gost.Certificate{gost.Certificate}, "", "", fault.InvalidParameters},
		{nil, nil, "", "", fault.InvalidRecipients},
		{nil, slices.Repeat([]*x509gost.Certificate{gost.Certificate}, encryption.MaxKeys+1), "", "", fault.InvalidRecipients},
	} {
		name := fmt.Sprint(c.params, " for ", len(c.to))
		order := &encryption.EncryptOrder{Type: encryption.CMS, Params: c.params, Documents: []encryption.Input{{Content: document(content)}}, Form: operation.FormTransaction}
		for _, cert := range c.to {
			order.Recipients = append(order.Recipients, cert.Raw)
		}
		var noted string
		order.Noted = func(s string) { noted = s }
		message, err := func() ([]byte, error) {
			o, err := w.Encrypting(t.Context(), audit.Principal{UserID: userID}, order)
			if err != nil {
				return nil, err
			}
			op, _, err := w.Operations.Start(t.Context(), o)
			if err != nil {
				return nil, err
			}
			defer op.Close()
			var out bytes.Buffer
			_, err = op.Documents[0].Content.WriteTo(&out)
			return out.Bytes(), err
		}()
		if c.code != "" {
			if !fault.Is(err, c.code) {
				t.Errorf("%s: %v, want %s", name, err, c.code)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		e, err := cms.ParseEnveloped(bytes.NewReader(message), int64(len(message)))
		if err != nil {
			t.Fatal(err)
		}
		cipher, _, err := e.ContentCipher()
		agreed := c.params["KeyManagement"] != "" && len(e.Recipients) == 1
		if err != nil || cipher.Name != c.cipher || agreed != (e.Recipients[0].Kind == cms.Agreement) || len(e.Recipients) > 2 {
			t.Errorf("%s: %v, %v, %d recipients", name, cipher, err, len(e.Recipients))
		}
		if want := fmt.Sprintf("%x of %d bytes, plaintext of %d bytes", suite.Streebog256.Digest(message).Sum, len(message), len(content)); !strings.Contains(noted, want) || !strings.Contains(noted, fmt.Sprintf("certificate %x (%x)", c.to[0].SerialNumber, suite.Streebog256.Digest(c.to[0].Raw).Sum)) {
			t.Errorf("%s: noted %q", name, noted)
		}
		if got, integrity, err := w.decrypt(t.Context(), document(message), "", nil); err != nil || !bytes.Equal(got, content) || integrity != c.integrity {
			t.Errorf("%s: %q, %q, %v", name, got, integrity, err)
		}
	}
}

// TestAuditedRecipients: an audit entry names recipients up to its bound, and says how many are not named.
func TestAuditedRecipients(t *testing.T) {
	w := newWorld(t)
	root := sigtest.Root(t, suite.GOST2012x256)
	order := &encryption.EncryptOrder{Type: encryption.CMS, Documents: []encryption.Input{{Content: document([]byte("a"))}}, Form: operation.FormTransaction}
	var noted string
	order.Noted = func(s string) { noted = s }
	for i := range 103 {
		order.Recipients = append(order.Recipients, root.Signer(t, suite.GOST2012x256, fmt.Sprint("Signer ", i)).Certificate.Raw)
	}
	o, err := w.Encrypting(t.Context(), audit.Principal{UserID: userID}, order)
	if err != nil {
		t.Fatal(err)
	}
	op, _, err := w.Operations.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer op.Close()
	for i, der := range order.Recipients {
		if named := strings.Contains(noted, fmt.Sprintf("(%x)", suite.Streebog256.Digest(der).Sum)); named != (i < 100) {
			t.Errorf("recipient %d is named: %t", i, named)
		}
	}
	if !strings.HasPrefix(noted, "103 recipients, ") || !strings.Contains(noted, "), 3 more; message ") {
		t.Errorf("noted %s", noted)
	}
}

// A large message is decrypted in little memory.
func TestLargeMessage(t *testing.T) {
	w := newWorld(t)
	p := sigtest.Root(t, suite.GOST2012x256).Signer(t, suite.GOST2012x256, "Signer")
	w.own(p.Certificate, p.Key)
	const size = 48 << 20
	name := filepath.Join(t.TempDir(), "message")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := cms.Encrypt(t.Context(), out, io.LimitReader(zeros{}, size), size, []*x509gost.Certificate{p.Certificate}, cms.Encryption{Cipher: cms.Kuznyechik}); err != nil {
		t.Fatal(err)
	}
	info, err := out.Stat()
	if err != nil {
		t.Fatal(err)
	}
	order, err := w.Decrypting(audit.Principal{UserID: userID}, &encryption.DecryptOrder{
		Type: encryption.CMS, Messages: []encryption.Input{{Content: operation.NewSection(out, 0, info.Size())}}, Form: operation.FormTransaction,
	}, operation.Refuses)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	op, _, err := w.Operations.Start(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	defer op.Close()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 24<<20 { // half of it, since the race detector allocates, too
		t.Errorf("%d bytes were allocated for a message of %d", took, info.Size())
	}
	if n := op.Documents[0].Content.Size(); n != size {
		t.Errorf("the plaintext has %d bytes", n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

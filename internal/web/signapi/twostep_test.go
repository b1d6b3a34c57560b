// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/raw"
)

// client is someone with a key of their own, from an authority that is unknown here.
func client(t testing.TB, su *suite.Suite) *sigtest.Party {
	return sigtest.Root(t, su).Signer(t, su, "client")
}

// value signs what presign answered.
func value(t testing.TB, p *sigtest.Party, answer presigned) []byte {
	t.Helper()
	return p.Sign(t, suite.Digest{Hash: p.Suite.Hash, Sum: answer.HashValue})
}

var detached = object{"CADESType": "BES", "IsDetached": "true"}

func presignBody(p *sigtest.Party, params object) object {
	return object{"Document": []byte("document"), "RawCertificate": p.Certificate.Raw, "SignatureType": "CAdES", "SignatureParams": params}
}

// TestTwoSteps runs both steps with every suite, form of signature, spelling of keys, and
// byte order of a value.
func TestTwoSteps(t *testing.T) {
	d := newDesk(t, nil)
	for _, su := range suite.All() {
		p := client(t, su)
		for _, c := range []struct {
			name, prefix string
			format       sig.Format
			presign      object
			postsign     object
			original     bool // the document is sent besides the result
		}{
			{"detached", "/api", cades.New(), object{"signatureType": "CAdES", "signatureParams": detached}, object{"SignatureType": "CAdES"}, true},
			{"attached", "/rest/api", cades.New(), object{"SignatureType": 2, "SignatureParams": object{"isDetached": false}}, object{"signatureType": "2", "signatureParams": object{"IsDetached": "False", "PDFReason": ""}}, false},
			{"bare", "/api", raw.New(), object{"signaturetype": "gost3410"}, object{}, true},
		} {
			for _, order := range []func([]byte) []byte{func(b []byte) []byte { return b }, reversed} {
				if su == suite.RSASHA256 || su == suite.ECDSAP256 {
					order = func(b []byte) []byte { return b }
				}
				c.presign["Document"], c.presign["RawCertificate"] = []byte("document"), p.Certificate.Raw
				status, text := d.call(t, "POST", c.prefix+"/signatures/presign", c.presign)
				var answer presigned
				if err := json.Unmarshal(text, &answer); status != 200 || err != nil {
					t.Fatalf("%s %s: presign %d %s", su.Name, c.name, status, text)
				}
				if answer.CacheObjectID == "" || answer.CacheObjectID != answer.Cyrillic || len(answer.HashValue) != su.Hash.Size || !strings.Contains(string(text), `"СacheObjectId"`) {
					t.Fatalf("%s %s: presign %s", su.Name, c.name, text)
				}
				c.postsign["SignatureValue"] = order(value(t, p, answer))
				c.postsign["SignedHashValue"] = answer.HashValue
				delete(c.postsign, "CacheObjectId")
				delete(c.postsign, "СacheObjectId")
				if c.prefix == "/api" {
					c.postsign["CacheObjectId"] = answer.CacheObjectID
				} else {
					c.postsign["СacheObjectId"] = answer.CacheObjectID
				}
				status, text = d.call(t, "POST", c.prefix+"/signatures/postsign", c.postsign)
				message := bytesOf(t, status, text)
				var original []byte
				if c.original {
					original = []byte("document")
				}
				valid(t, c.format, message, original, p)
			}
		}
	}
	d.down() // a document goes when its answer is out
	if n := d.kept(t); n != 0 {
		t.Errorf("%d documents are kept of what was completed", n)
	}
}

// TestRawCertificate: every form clients send their certificate in.
func TestRawCertificate(t *testing.T) {
	d := newDesk(t, nil)
	p := client(t, suite.GOST2012x256)
	other := client(t, suite.GOST2012x512)
	// A message as container: the certificates of signer and authorities.
	container := sigtest.Make(t, cades.New(), p, &sig.Job{Document: sigtest.Document([]byte("x")), Params: sig.Params{"IncludeCertChain": "True"}})
	chain := string(p.PEM())
	for _, c := range p.Chain {
		chain = string((&sigtest.Party{Certificate: c}).PEM()) + chain
	}
	expired := newDesk(t, nil)
	expired.clock.pass(20 * 365 * 24 * time.Hour)
	early := newDesk(t, nil)
	early.clock.pass(-2 * 365 * 24 * time.Hour)
	for _, c := range []struct {
		name string
		at   *desk
		raw  any
		says string // "" is accepted
	}{
		{"DER", d, p.Certificate.Raw, ""},
		{"DER in lines", d, inLines(p.Certificate.Raw), ""},
		{"PEM in Base64", d, p.PEM(), ""},
		{"PEM as it is", d, "\r\n" + string(p.PEM()), ""},
		{"PEM with its authority first", d, chain, ""},
		{"the same twice", d, string(p.PEM()) + string(p.PEM()), ""},
		{"a container in lines", d, inLines(container), ""},
		{"none", d, nil, "missing"},
		{"empty", d, "", "missing"},
		{"no Base64", d, "*", "not Base64"},
		{"no certificate", d, []byte("no certificate"), "want an X.509 certificate"},
		{"a number", d, 17, "not Base64"},
		{"cut off", d, p.Certificate.Raw[:100], "want an X.509 certificate"},
		{"two that may be it", d, string(p.PEM()) + string(other.PEM()), "2 certificates"},
		{"PEM of nonsense", d, "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n", "want an X.509 certificate"},
		{"expired", expired, p.Certificate.Raw, "expired"},
		{"not yet valid", early, p.Certificate.Raw, "not valid before"},
	} {
		body := presignBody(p, detached)
		body["RawCertificate"] = c.raw
		if c.says == "" {
			answer := c.at.presign(t, body)
			status, text := c.at.call(t, "POST", "/api/signatures/postsign", object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": value(t, p, answer)})
			if status != 200 {
				t.Errorf("%s: %d %s", c.name, status, text)
			}
			continue
		}
		code, says := refusal(t, c.at, "/api/signatures/presign", body)
		if code != fault.InvalidCertificate || !strings.Contains(says, c.says) {
			t.Errorf("%s: %s %s", c.name, code, says)
		}
	}
	if n := expired.kept(t) + early.kept(t); n != 0 {
		t.Errorf("%d documents are kept of what was refused", n)
	}
}

func refusal(t testing.TB, d *desk, path string, body object) (code, says string) {
	t.Helper()
	status, text := d.call(t, "POST", path, body)
	return refused(t, status, text)
}

func TestPreSignBadInput(t *testing.T) {
	d := newDesk(t, nil)
	p := client(t, suite.GOST2012x256)
	for _, c := range []struct {
		name       string
		change     object
		code, says string
	}{
		{"no document", object{"Document": ""}, fault.ContentRequired, "Document"},
		{"no Base64", object{"Document": "*"}, fault.InvalidContent, "Document is not Base64"},
		{"no type", object{"SignatureType": ""}, fault.InvalidSignatureParams, "not served"},
		{"unknown type", object{"SignatureType": "PGP"}, fault.InvalidSignatureParams, "not served"},
		{"wrong level", object{"SignatureParams": object{"CADESType": "Z"}}, fault.InvalidSignatureParams, "CADESType"},
		{"a hash of another length", object{"SignatureParams": object{"Hash": "True"}}, fault.InvalidSignatureParams, "32 bytes"},
		{"a time stamp from nowhere", object{"SignatureParams": object{"CADESType": "T"}}, fault.InvalidSignatureParams, "TSPAddress: missing"},
		{"a time stamp from somewhere", object{"SignatureParams": object{"CADESType": "2", "TSPAddress": "http://192.0.2.1/"}}, fault.InvalidSignatureParams, "only registered"},
		{"two spellings", object{"SignatureParams": object{"Hash": "True", "hash": "False"}}, fault.InvalidParameters, "SignatureParams.hash is given twice"},
	} {
		body := presignBody(p, detached)
		for k, v := range c.change {
			body[k] = v
		}
		if code, says := refusal(t, d, "/api/signatures/presign", body); code != c.code || !strings.Contains(says, c.says) {
			t.Errorf("%s: %s %s", c.name, code, says)
		}
	}
	if n := d.kept(t); n != 0 {
		t.Errorf("%d documents are kept of what was refused", n)
	}
}

// TestPostSignContradicts: values that the second step repeats must agree with the first,
// and the object remains after a contradiction.
func TestPostSignContradicts(t *testing.T) {
	d := newDesk(t, nil)
	p := client(t, suite.GOST2012x256)
	answer := d.presign(t, presignBody(p, detached))
	v := value(t, p, answer)
	for _, c := range []struct {
		name       string
		change     object
		code, says string
	}{
		{"type", object{"SignatureType": "GOST3410"}, fault.InvalidSignatureParams, "SignatureType"},
		{"hash", object{"SignedHashValue": v}, fault.InvalidSignatureParams, "SignedHashValue"},
		{"hash no Base64", object{"SignedHashValue": "*"}, fault.InvalidSignatureParams, "SignedHashValue is not Base64"},
		{"parameter", object{"SignatureParams": object{"isdetached": "0"}}, fault.InvalidSignatureParams, "isdetached: differs"},
		{"new parameter", object{"SignatureParams": object{"Hash": "True"}}, fault.InvalidSignatureParams, "Hash: was not given"},
		{"new original", object{"SignatureParams": object{"OriginalDocument": "QQ=="}}, fault.InvalidSignatureParams, "OriginalDocument: differs"},
		{"two names", object{"СacheObjectId": "x"}, fault.InvalidParameters, "given twice"},
		{"no value", object{"SignatureValue": ""}, fault.InvalidSignatureParams, "SignatureValue is missing"},
		{"no Base64", object{"SignatureValue": "*"}, fault.InvalidSignatureParams, "SignatureValue is not Base64"},
		{"no object", object{"CacheObjectId": ""}, fault.InvalidObjectState, "missing"},
		{"unknown object", object{"CacheObjectId": "00000000-0000-4000-8000-000000000000"}, fault.InvalidObjectState, "not known"},
		{"hostile object", object{"CacheObjectId": "' OR 1=1 --\x00"}, fault.InvalidObjectState, "not known"},
	} {
		body := object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": v}
		for k, v := range c.change {
			body[k] = v
		}
		if code, says := refusal(t, d, "/api/signatures/postsign", body); code != c.code || !strings.Contains(says, c.says) {
			t.Errorf("%s: %s %s", c.name, code, says)
		}
	}
	// All of it repeated as it was, in other words.
	status, text := d.call(t, "POST", "/api/signatures/postsign", object{
		"CacheObjectId": answer.CacheObjectID, "СacheObjectId": answer.CacheObjectID, "SignatureValue": inLines(v), "SignedHashValue": answer.HashValue,
		"SignatureType": "cades", "SignatureParams": object{"isDetached": true, "CADESType": " bes ", "TSPAddress": ""},
	})
	valid(t, cades.New(), bytesOf(t, status, text), []byte("document"), p)
}

// TestPostSignOnce: of fifty at once exactly one is served, and none after it.
func TestPostSignOnce(t *testing.T) {
	d := newDesk(t, nil)
	p := client(t, suite.GOST2012x256)
	answer := d.presign(t, presignBody(p, object{"IsDetached": "false"}))
	body := object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": value(t, p, answer)}
	var mu sync.Mutex
	var all sync.WaitGroup
	served := 0
	for range 50 {
		all.Go(func() {
			status, text := d.call(t, "POST", "/api/signatures/postsign", body)
			mu.Lock()
			defer mu.Unlock()
			if status == 200 {
				served++
				valid(t, cades.New(), bytesOf(t, status, text), nil, p)
			} else if !strings.Contains(string(text), fault.InvalidObjectState) || status != 400 {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	all.Wait()
	if served != 1 {
		t.Errorf("%d of 50 were served", served)
	}
	if code, says := refusal(t, d, "/api/signatures/postsign", body); code != fault.InvalidObjectState || !strings.Contains(says, "used already") {
		t.Errorf("afterwards: %s %s", code, says)
	}
}

// TestRestart: what was prepared outlives the process, and so does a completion
// that was killed in the middle, once its lease has run out.
func TestRestart(t *testing.T) {
	d := newDesk(t, nil)
	p := client(t, suite.GOST2012x512)
	answer := d.presign(t, presignBody(p, object{"IsDetached": "false"}))
	killed := d.presign(t, presignBody(p, detached))
	now := d.clock.now()
	if ok, err := d.service.Prepared.ClaimPrepared(t.Context(), killed.CacheObjectID, "of a process that is gone", now, now.Add(time.Minute), 5); !ok || err != nil {
		t.Fatal(ok, err)
	}
	d = d.again(t)
	complete := func(answer presigned) (int, []byte) {
		return d.call(t, "POST", "/api/signatures/postsign", object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": value(t, p, answer)})
	}
	status, text := complete(answer)
	valid(t, cades.New(), bytesOf(t, status, text), nil, p)
	status, text = complete(killed)
	if code, says := refused(t, status, text); code != fault.InvalidObjectState || !strings.Contains(says, "being completed") {
		t.Errorf("%s %s", code, says)
	}
	completed, err := d.service.Complete(t.Context(), audit.Principal{}, &signing.CompleteOrder{ID: killed.CacheObjectID, Value: value(t, p, killed)})
	if f, ok := fault.As(err); completed != nil || !ok || f.After <= 0 || f.After > time.Minute {
		t.Errorf("%v: does not say when to repeat the request", err)
	}
	d.clock.pass(time.Minute)
	status, text = complete(killed)
	valid(t, cades.New(), bytesOf(t, status, text), []byte("document"), p)
	d = d.again(t)
	status, text = complete(answer)
	if code, _ := refused(t, status, text); code != fault.InvalidObjectState {
		t.Errorf("spent before the restart: %d %s", status, text)
	}
}

// extended is a store of prepared objects that notices extensions.
type extended struct {
	signing.PreparedStore
	held chan bool
}

func (s extended) ExtendPrepared(ctx context.Context, id, lease string, until time.Time) (bool, error) {
	held, err := s.PreparedStore.ExtendPrepared(ctx, id, lease, until)
	select {
	case s.held <- held && err == nil:
	case <-ctx.Done():
	}
	return held, err
}

// slow is a format whose Finish lasts for two extensions of the lease.
type slow struct {
	sig.Described
	held chan bool
}

func (f slow) Finish(ctx context.Context, job *sig.Job, state, signature []byte) (sig.Result, error) {
	for range 2 {
		if !<-f.held {
			return nil, errBroken
		}
	}
	return f.Described.Finish(ctx, job, state, signature)
}

// TestSlowCompletion: a completion that asks a time-stamp service has a lease, and extends it if it takes longer.
func TestSlowCompletion(t *testing.T) {
	held := make(chan bool)
	root := sigtest.Root(t, suite.GOST2012x256)
	p, services := root.Signer(t, suite.GOST2012x256, "client"), sigtest.NewServices(t, root)
	d := newDesk(t, func(s *signing.Service, a *API) *API {
		s.Prepared, s.Formats, s.TwoStep.Lease, s.Evidence = extended{s.Prepared, held}, sig.Formats{slow{cades.New(), held}}, 3*time.Millisecond, services
		return a
	})
	answer := d.presign(t, presignBody(p, object{"CADESType": "T", "TSPAddress": "", "IsDetached": "False"}))
	status, text := d.call(t, "POST", "/api/signatures/postsign", object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": value(t, p, answer)})
	if got := levelsOf(t, bytesOf(t, status, text), nil, p, services); len(got) != 1 || got[0] != "T" {
		t.Errorf("levels %v", got)
	}
}

// TestWrongValues: four wrong values do no harm, five discard the object, counted
// beyond the life of a process.
func TestWrongValues(t *testing.T) {
	d := newDesk(t, nil)
	root := sigtest.Root(t, suite.GOST2012x256)
	p, other := root.Signer(t, suite.GOST2012x256, "client"), root.Signer(t, suite.GOST2012x256, "other")
	one, two := d.presign(t, presignBody(p, detached)), d.presign(t, presignBody(p, detached))
	good := value(t, p, one)
	flipped := append([]byte{good[0] ^ 1}, good[1:]...)
	wrong := [][]byte{{1}, flipped, reversed(flipped), make([]byte, 64), value(t, other, one)}
	for i, v := range wrong {
		last := i == len(wrong)-1
		if last {
			d = d.again(t)
		}
		answers := []presigned{two}
		if !last {
			answers = append(answers, one)
		}
		for _, answer := range answers {
			code, says := refusal(t, d, "/api/signatures/postsign", object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": v})
			if code != fault.InvalidSignatureParams || !strings.Contains(says, "SignatureValue is no signature") || strings.Contains(says, "presign again") != last {
				t.Errorf("wrong value %d: %s %s", i, code, says)
			}
		}
	}
	status, text := d.call(t, "POST", "/api/signatures/postsign", object{"CacheObjectId": one.CacheObjectID, "SignatureValue": good})
	valid(t, cades.New(), bytesOf(t, status, text), []byte("document"), p)
	code, says := refusal(t, d, "/api/signatures/postsign", object{"CacheObjectId": two.CacheObjectID, "SignatureValue": value(t, p, two)})
	if code != fault.InvalidObjectState || !strings.Contains(says, "discarded") {
		t.Errorf("a right value after five wrong ones: %s %s", code, says)
	}
	d.down()
	if n := d.kept(t); n != 0 {
		t.Errorf("%d documents are kept", n)
	}
}

// TestExpiry: an object is kept for its time and leaves nothing behind.
func TestExpiry(t *testing.T) {
	d := newDesk(t, func(s *signing.Service, a *API) *API { s.TwoStep.Life = time.Minute; return a })
	p := client(t, suite.GOST2012x256)
	answers := []presigned{d.presign(t, presignBody(p, detached)), d.presign(t, presignBody(p, detached))}
	d.clock.pass(time.Minute - time.Millisecond)
	if err := d.service.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, after := range []time.Duration{0, time.Millisecond} {
		d.clock.pass(after)
		status, text := d.call(t, "POST", "/api/signatures/postsign", object{"CacheObjectId": answers[i].CacheObjectID, "SignatureValue": value(t, p, answers[i])})
		if i == 0 {
			valid(t, cades.New(), bytesOf(t, status, text), []byte("document"), p)
		} else if code, says := refused(t, status, text); code != fault.InvalidObjectState || !strings.Contains(says, "expired") {
			t.Errorf("%s %s", code, says)
		}
	}
	d.clock.pass(time.Hour)
	if err := d.service.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, found, err := d.service.Prepared.FindPrepared(t.Context(), answers[1].CacheObjectID); found || err != nil {
		t.Errorf("after the sweep: found %v, %v", found, err)
	}
	d.down()
	if n := d.kept(t); n != 0 {
		t.Errorf("after the sweep: %d documents", n)
	}
}

// failing is a format whose Finish fails as long as it is told to.
type failing struct {
	sig.Described
	mu  sync.Mutex
	err error
}

func (f *failing) Finish(ctx context.Context, job *sig.Job, state, signature []byte) (sig.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	return f.Described.Finish(ctx, job, state, signature)
}

// TestFailureSpendsNothing: a right value whose document cannot be made leaves the
// object as it was.
func TestFailureSpendsNothing(t *testing.T) {
	f := &failing{Described: cades.New()}
	d := newDesk(t, func(s *signing.Service, a *API) *API { s.Formats = sig.Formats{f}; return a })
	p := client(t, suite.GOST2012x256)
	answer := d.presign(t, presignBody(p, detached))
	body := object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": value(t, p, answer)}
	for _, c := range []struct {
		err        error
		status     int
		code, says string
	}{
		{errBroken, 500, "internal_error", "An error has occurred"},
		{&sig.ErrEvidence{What: "time stamp", Text: "the service did not answer in time", Err: errBroken}, 500, fault.Failed, "time stamp: the service did not answer in time"},
		{&sig.ErrDocument{What: "Document", Text: "is no message"}, 400, fault.InvalidContent, "is no message"},
	} {
		f.err = c.err
		status, text := d.call(t, "POST", "/api/signatures/postsign", body)
		if status != c.status || !strings.Contains(string(text), c.code) || !strings.Contains(string(text), c.says) || strings.Contains(string(text), errBroken.Error()) {
			t.Errorf("%v: %d %s", c.err, status, text)
		}
	}
	f.err = nil
	status, text := d.call(t, "POST", "/api/signatures/postsign", body)
	valid(t, cades.New(), bytesOf(t, status, text), []byte("document"), p)
}

// TestQuotas: what callers may have prepared is bounded, by address without a
// token and by user with one, and is free again when it is completed.
func TestQuotas(t *testing.T) {
	d := newDesk(t, func(s *signing.Service, a *API) *API {
		s.TwoStep.Caller = signing.Quota{Objects: 2, Bytes: 1 << 20}
		return a
	})
	p := client(t, suite.GOST2012x256)
	attached := object{"CADESType": "BES", "IsDetached": "false"}
	first := d.presign(t, presignBody(p, attached))
	d.presign(t, presignBody(p, attached))
	status, text := d.call(t, "POST", "/api/signatures/presign", presignBody(p, attached))
	if code, _ := refused(t, status, text); status != 429 || code != fault.TooManyRequests || d.kept(t) != 2 {
		t.Errorf("a third object: %d %s, %d documents", status, text, d.kept(t))
	}
	status, _ = d.call(t, "POST", "/api/signatures/postsign", object{"CacheObjectId": first.CacheObjectID, "SignatureValue": value(t, p, first)})
	if status != 200 {
		t.Fatal(status)
	}
	large := presignBody(p, attached)
	large["Document"] = make([]byte, 2<<20)
	if status, text = d.call(t, "POST", "/api/signatures/presign", large); status != 429 {
		t.Errorf("bytes: %d %s", status, text)
	}
	// Of a detached signature no document is kept, so its size does not count.
	large["SignatureParams"] = detached
	d.presign(t, large)
	if d.kept(t) != 1 {
		t.Errorf("%d documents are kept", d.kept(t))
	}
}

// TestTwoStepsWithToken: closed to anonymous callers, the routes serve users.
func TestTwoStepsWithToken(t *testing.T) {
	d := newDesk(t, func(s *signing.Service, _ *API) *API { return New(Deps{Signer: s, Certificates: certificates(nil)}) })
	p := client(t, suite.GOST2012x256)
	for _, r := range []struct{ method, path string }{
		{"POST", "/signatures/presign"}, {"POST", "/signatures/postsign"}, {"POST", "/signatures/enhance"},
		{"PATCH", "/signatures/postsign"}, {"POST", "/documents/enhancesignature"},
	} {
		status, text := d.call(t, r.method, "/api"+r.path, object{})
		if code, _ := refused(t, status, text); status != 401 || code != fault.Unauthorized {
			t.Errorf("%s %s: %d %s", r.method, r.path, status, text)
		}
	}
	body, err := json.Marshal(presignBody(p, detached))
	if err != nil {
		t.Fatal(err)
	}
	if status, text := d.send(t, "POST", "/api/signatures/presign", "1", strings.NewReader(string(body))); status != 200 {
		t.Errorf("%d %s", status, text)
	}
}

// besideBlobs calls a function once, before a document is opened.
type besideBlobs struct {
	signing.Blobs
	meanwhile func()
}

func (b *besideBlobs) OpenBlob(ctx context.Context, name string) (signing.Blob, error) {
	if do := b.meanwhile; do != nil {
		b.meanwhile = nil
		do()
	}
	return b.Blobs.OpenBlob(ctx, name)
}

// TestWrongBeside sends wrong values for an object that another call is completing. They are refused without
// being counted, and the other call ends as if they had not come.
func TestWrongBeside(t *testing.T) {
	blobs := &besideBlobs{}
	d := newDesk(t, func(s *signing.Service, a *API) *API {
		blobs.Blobs, s.Blobs = s.Blobs, blobs
		return a
	})
	p := client(t, suite.GOST2012x256)
	attached := object{"CADESType": "BES", "IsDetached": "false"}
	answer := d.presign(t, presignBody(p, attached))
	blobs.meanwhile = func() {
		for range 6 {
			code, says := refusal(t, d, "/api/signatures/postsign", object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": make([]byte, 64)})
			if code != fault.InvalidObjectState || !strings.Contains(says, "is being completed by another request") {
				t.Errorf("%s %s", code, says)
			}
		}
	}
	status, text := d.call(t, "POST", "/api/signatures/postsign", object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": value(t, p, answer)})
	if blobs.meanwhile != nil {
		t.Error("the document was not opened")
	}
	valid(t, cades.New(), bytesOf(t, status, text), []byte("document"), p)
}

// TestAdmit: who comes too often is refused before anything is read or written down.
func TestAdmit(t *testing.T) {
	left := 2
	var seen []string
	d := newDesk(t, func(s *signing.Service, _ *API) *API {
		return New(Deps{Signer: s, Certificates: certificates(nil), Anonymous: &Anonymous{Limit: 1 << 20, Admit: func(remote string) error {
			seen = append(seen, remote)
			if left--; left < 0 {
				return fault.New(fault.TooManyRequests, "too many")
			}
			return nil
		}}})
	})
	p := client(t, suite.GOST2012x256)
	answer := d.presign(t, presignBody(p, detached))
	if status, text := d.call(t, "POST", "/api/signatures/presign", object{"Document": make([]byte, 1<<20)}); status != 413 {
		t.Errorf("a large request: %d %s", status, text)
	}
	body := object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": value(t, p, answer)}
	if status, text := d.call(t, "POST", "/api/signatures/postsign", body); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	status, text := d.call(t, "POST", "/api/signatures/presign", presignBody(p, detached))
	if code, _ := refused(t, status, text); status != 429 || code != fault.TooManyRequests {
		t.Errorf("%d %s", status, text)
	}
	for _, remote := range seen {
		if remote != "127.0.0.1" {
			t.Errorf("the caller is %q", remote)
		}
	}
	entries, err := store.Audit{DB: d.db}.Last(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range entries {
		lines = append(lines, e.Operation+" "+e.Phase+" "+e.Object)
	}
	object := "prepared object " + answer.CacheObjectID
	// Refused calls of anonymous callers leave nothing.
	want := []string{"PreSignDocument done " + object, "PostSignDocument done " + object}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	// Neither holds for callers with a token.
	large := presignBody(p, detached)
	large["Document"] = make([]byte, 1<<20)
	with, err := json.Marshal(large)
	if err != nil {
		t.Fatal(err)
	}
	before := len(seen)
	if status, text := d.send(t, "POST", "/api/signatures/presign", "1", strings.NewReader(string(with))); status != 200 || len(seen) != before {
		t.Errorf("with a token: %d %s", status, text)
	}
}

// TestLargeTwoSteps: a document beyond memory goes through the spool and the
// directory of documents, its Base64 in any case.
func TestLargeTwoSteps(t *testing.T) {
	d := newDesk(t, nil)
	p := client(t, suite.GOST2001) // not what documents of anonymous callers are digested with
	document := make([]byte, 5<<20)
	for i := range document {
		document[i] = byte(i * i >> 5)
	}
	text := `{"Document":"` + base64.StdEncoding.EncodeToString(document) + `","RawCertificate":"` + base64.StdEncoding.EncodeToString(p.Certificate.Raw) +
		`","SignatureType":"CAdES","SignatureParams":{"IsDetached":"False"}}`
	status, body := d.send(t, "POST", "/api/signatures/presign", "", strings.NewReader(text))
	var answer presigned
	if err := json.Unmarshal(body, &answer); status != 200 || err != nil {
		t.Fatalf("%d %s", status, body)
	}
	status, body = d.call(t, "POST", "/api/signatures/postsign", object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": value(t, p, answer)})
	message := bytesOf(t, status, body)
	valid(t, cades.New(), message, nil, p)
	if !strings.Contains(string(message), string(document)) {
		t.Error("the message does not hold the document")
	}
}

func BenchmarkTwoSteps(b *testing.B) {
	d := newDesk(b, nil)
	p := client(b, suite.GOST2012x256)
	for b.Loop() {
		answer := d.presign(b, presignBody(p, detached))
		if status, text := d.call(b, "POST", "/api/signatures/postsign", object{"CacheObjectId": answer.CacheObjectID, "SignatureValue": value(b, p, answer)}); status != 200 {
			b.Fatalf("%d %s", status, text)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "signatures/s")
}

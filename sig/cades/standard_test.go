// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"tamga/gost/gost341194"
	"tamga/gost/streebog"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
)

// This file recomputes the attributes of CAdES-X Long Type 1 from RFC 5126 alone, with
// its own DER reader and the bare hash functions. It uses nothing of the packages under
// test. The bytes of identifiers are written out.

// node is one DER element with the elements inside when it is constructed.
type node struct {
	tag   byte
	whole []byte
	body  []byte
	in    []node
}

func walk(t testing.TB, b []byte) (list []node) {
	t.Helper()
	for len(b) > 0 {
		if len(b) < 2 || b[0]&0x1f == 0x1f {
			t.Fatalf("not DER: %x", b[:min(8, len(b))])
		}
		head, n := 2, int(b[1])
		if n >= 0x80 {
			head += n & 0x7f
			n = 0
			for _, x := range b[2:head] {
				n = n<<8 | int(x)
			}
		}
		if n > len(b)-head {
			t.Fatal("not DER: cut short")
		}
		e := node{tag: b[0], whole: b[:head+n], body: b[head : head+n]}
		if b[0]&0x20 != 0 {
			e.in = walk(t, e.body)
		}
		list, b = append(list, e), b[head+n:]
	}
	return list
}

// hashes of the identifiers in hexadecimal, by the functions themselves.
var hashes = map[string]func([]byte) []byte{
	"2a850302 0209":       func(b []byte) []byte { h := gost341194.NewCryptoPro(); h.Write(b); return h.Sum(nil) },
	"2a850307 01010202":   func(b []byte) []byte { h := streebog.New256(); h.Write(b); return h.Sum(nil) },
	"2a850307 01010203":   func(b []byte) []byte { h := streebog.New512(); h.Write(b); return h.Sum(nil) },
	"60864801 6503040201": func(b []byte) []byte { h := sha256.Sum256(b); return h[:] },
}

// sum returns the digest of data by the algorithm of an AlgorithmIdentifier.
func sum(t testing.TB, algorithm node, data []byte) []byte {
	t.Helper()
	name := hex.EncodeToString(algorithm.in[0].body)
	h := hashes[name[:8]+" "+name[8:]]
	if h == nil {
		t.Fatalf("digest algorithm %s", name)
	}
	return h(data)
}

// attribute types under 1.2.840.113549.1.9.16.2.
const (
	aTimeStamp, aCertRefs, aRevRefs, aCertVals, aRevVals, aEsc = 14, 21, 22, 23, 24, 25
)

func TestByTheStandardAlone(t *testing.T) {
	for _, s := range suite.All() {
		for _, form := range []string{"answers", "lists"} {
			t.Run(s.Name+"/"+form, func(t *testing.T) {
				w := newWorld(t, s)
				w.services.ResponderChecked = true
				if form == "lists" {
					w.services.By[w.signer.Certificate] = sigtest.ByList
					w.services.By[w.sub.Certificate] = sigtest.ByList
				}
				message := w.make(t, w.signer, "T", &sig.Job{Document: sigtest.Document(text)})
				message, err := w.enhance(t, message, "XLT1", nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				signedData := walk(t, message)[0].in[1].in[0]
				signer := signedData.in[len(signedData.in)-1].in[0]
				certificates := signedData.in[3] // [0]
				if certificates.tag != 0xa0 || signer.in[len(signer.in)-1].tag != 0xa1 {
					t.Fatal("unexpected shape")
				}
				value := signer.in[5].body
				attrs := map[int]node{}
				for _, a := range signer.in[len(signer.in)-1].in {
					oid := a.in[0].body
					if !bytes.HasPrefix(oid, []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x02}) || len(a.in[1].in) != 1 {
						t.Fatalf("attribute %x", oid)
					}
					attrs[int(oid[10])] = a
				}
				if len(attrs) != 6 {
					t.Fatalf("%d attributes", len(attrs))
				}
				of := func(a int) node { return attrs[a].in[1].in[0] }

				// T-1: the imprint covers the bytes of the signature value.
				imprint(t, of(aTimeStamp), value)
				// T-8: value, then type and value set of each attribute, without headers.
				imprint(t, of(aEsc), slices.Concat(value, attrs[aTimeStamp].body, attrs[aCertRefs].body, attrs[aRevRefs].body))

				// T-3: the path without the signer's own, up to the anchor, by long hashes.
				path := [][]byte{w.sub.Certificate.Raw, w.root.Certificate.Raw}
				refs := of(aCertRefs).in
				if len(refs) != len(path) {
					t.Fatalf("%d certificate references", len(refs))
				}
				for i, r := range refs {
					otherHash(t, r.in[0], path[i])
					tbs := walk(t, path[i])[0].in[0].in // [0] version, serial, algorithm, issuer
					issuerSerial := r.in[1]
					if name := issuerSerial.in[0].in[0]; name.tag != 0xa4 || !bytes.Equal(name.body, tbs[3].whole) || !bytes.Equal(issuerSerial.in[1].whole, tbs[1].whole) {
						t.Errorf("issuerSerial of reference %d", i)
					}
				}

				// T-6, T-7: values.
				certVals := of(aCertVals).in
				for i, c := range path {
					if !slices.ContainsFunc(certVals, func(n node) bool { return bytes.Equal(n.whole, c) }) {
						t.Errorf("certificate-values lack certificate %d of the path", i)
					}
				}
				if !slices.ContainsFunc(append(certVals, certificates.in...), func(n node) bool { return bytes.Equal(n.whole, w.signer.Certificate.Raw) }) {
					t.Error("the signer's certificate is nowhere")
				}
				var crls, answers []node
				for _, v := range of(aRevVals).in {
					switch v.tag {
					case 0xa0:
						crls = v.in[0].in
					case 0xa1:
						answers = v.in[0].in
					default:
						t.Errorf("revocation-values with [%x]", v.tag)
					}
				}
				stamped := genTime(t, of(aTimeStamp))
				for _, a := range answers { // BasicOCSPResponse: ResponseData first
					data := a.in[0]
					if a.tag != 0x30 || data.in[0].tag != 0xa2 && data.in[0].tag != 0xa1 {
						t.Error("not a BasicOCSPResponse")
					}
					fresh(t, stamped, data.in[1].body)
					if responder := a.in[3].in[0].in[0].whole; !slices.ContainsFunc(certVals, func(n node) bool { return bytes.Equal(n.whole, responder) }) {
						t.Error("certificate-values lack the responder's")
					}
				}
				for _, c := range crls {
					fresh(t, stamped, append([]byte("20"), c.in[0].in[3].body...)) // thisUpdate
				}

				// T-4, T-5: the signer first, then one per certificate, the anchor's empty.
				entries := of(aRevRefs).in
				if len(entries) != len(refs)+1 || len(entries[len(entries)-1].in) != 0 {
					t.Fatalf("%d revocation references", len(entries))
				}
				for i, e := range entries[:len(entries)-1] {
					subject := [][]byte{w.signer.Certificate.Raw, w.sub.Certificate.Raw}[i]
					serial := walk(t, subject)[0].in[0].in[1]
					issuer := walk(t, subject)[0].in[0].in[3]
					one := e.in[0].in[0].in[0].in[0]
					if form == "lists" {
						k := slices.IndexFunc(crls, func(n node) bool { return bytes.Equal(n.in[0].in[2].whole, issuer.whole) })
						if e.in[0].tag != 0xa0 || k < 0 {
							t.Fatal("no list")
						}
						otherHash(t, one.in[0], crls[k].whole)
						if id := one.in[1]; !bytes.Equal(id.in[0].whole, issuer.whole) || !bytes.Equal(id.in[1].whole, crls[k].in[0].in[3].whole) || !bytes.Equal(id.in[2].whole, []byte{2, 1, 7}) {
							t.Error("crlIdentifier")
						}
						continue
					}
					k := slices.IndexFunc(answers, func(n node) bool { // responses, first, certID, serial
						return bytes.Equal(n.in[0].in[2].in[0].in[0].in[3].whole, serial.whole)
					})
					if e.in[0].tag != 0xa1 || k < 0 {
						t.Fatal("no answer")
					}
					if id := one.in[0]; !bytes.Equal(id.in[0].whole, answers[k].in[0].in[0].whole) || !bytes.Equal(id.in[1].whole, answers[k].in[0].in[1].whole) {
						t.Error("ocspIdentifier is not that of the answer")
					}
					otherHash(t, one.in[1], answers[k].whole)
				}

				// T-9: the values cover the service's path and checked responders too.
				for _, subject := range [][]byte{w.services.TSA.Certificate.Raw, w.services.TSA.Chain[0].Raw} {
					serial := walk(t, subject)[0].in[0].in[1]
					if !slices.ContainsFunc(answers, func(n node) bool {
						return bytes.Equal(n.in[0].in[2].in[0].in[0].in[3].whole, serial.whole)
					}) {
						t.Errorf("nothing about the service's certificate %x", serial.body)
					}
				}
				for _, a := range answers {
					issuer := walk(t, a.in[3].in[0].in[0].whole)[0].in[0].in[3]
					if !slices.ContainsFunc(crls, func(n node) bool { return bytes.Equal(n.in[0].in[2].whole, issuer.whole) }) {
						t.Error("nothing about a responder that is to be checked")
					}
				}
			})
		}
	}
}

// imprint checks the imprint of a time stamp, by its own algorithm.
func imprint(t testing.TB, token node, data []byte) {
	t.Helper()
	info := tstInfo(t, token)
	m := info.in[2]
	if !bytes.Equal(m.in[1].body, sum(t, m.in[0], data)) {
		t.Error("the imprint is another")
	}
}

func tstInfo(t testing.TB, token node) node {
	t.Helper()
	return walk(t, token.in[1].in[0].in[2].in[1].in[0].body)[0]
}

func genTime(t testing.TB, token node) time.Time {
	t.Helper()
	for _, n := range tstInfo(t, token).in {
		if n.tag == 0x18 {
			return parseTime(t, n.body)
		}
	}
	t.Fatal("no genTime")
	return time.Time{}
}

func parseTime(t testing.TB, b []byte) time.Time {
	t.Helper()
	at, err := time.Parse("20060102150405Z", string(b))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// fresh checks that revocation data is not older than the time stamp (T-11).
func fresh(t testing.TB, stamped time.Time, at []byte) {
	t.Helper()
	if made := parseTime(t, at); made.Before(stamped) {
		t.Errorf("data of %v for a time stamp of %v", made, stamped)
	}
}

// otherHash checks OtherHash in its long form.
func otherHash(t testing.TB, n node, data []byte) {
	t.Helper()
	if n.tag != 0x30 || !bytes.Equal(n.in[1].body, sum(t, n.in[0], data)) {
		t.Error("otherHash is another")
	}
}

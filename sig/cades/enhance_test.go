// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/cades"
)

func TestEnhance(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	second := w.root.Signer(t, suite.GOST2012x512, "Second")
	bes := sigtest.Make(t, cades.New(), w.signer, &sig.Job{Document: sigtest.Document(text), Params: sig.Params{"IsDetached": "True"}})
	bes = sigtest.Make(t, cades.New(), second, add("Cosign", bes, text, nil))
	bes = sigtest.Make(t, cades.New(), second, add("Countersign", bes, nil, nil))
	raise := func(message []byte, level string, more sig.Params) []byte {
		t.Helper()
		out, err := w.enhance(t, message, level, nil, more)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, test := range []struct {
		name, want string
		message    func() []byte
	}{
		{"all to T", "T T", func() []byte { return raise(bes, "T", nil) }},
		{"all to XLT1", "XLT1 XLT1", func() []byte { return raise(bes, "XLT1", nil) }},
		{"by two steps", "XLT1 XLT1", func() []byte { return raise(raise(bes, "T", nil), "XLT1", nil) }},
		{"the second", "BES XLT1", func() []byte { return raise(bes, "XLT1", sig.Params{"SignatureIndex": "1"}) }},
		{"one each", "T XLT1", func() []byte {
			return raise(raise(bes, "XLT1", sig.Params{"SignatureIndex": "1"}), "T", nil)
		}},
		{"the rest", "XLT1 XLT1", func() []byte {
			return raise(raise(bes, "T", sig.Params{"SignatureIndex": "0"}), "XLT1", nil)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			message := test.message()
			sameEarlier(t, bes, message, 0, 1)
			for i, s := range mustParse(t, bes).Signers {
				sameSignature(t, s, mustParse(t, message).Signers[i])
			}
			if got := strings.Join(levels(t, verify(t, message, text, w.root)), " "); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
	t.Run("countersigner", func(t *testing.T) {
		message := raise(bes, "XLT1", sig.Params{"SignatureIndex": "0.0"})
		r := verify(t, message, text, w.root)
		if got := levels(t, r); !slices.Equal(got, []string{"BES", "BES"}) || r.Signatures[0].Countersigners[0].Level != "XLT1" {
			t.Errorf("%v, countersigner %+v", got, r.Signatures[0].Countersigners)
		}
	})
	t.Run("there already", func(t *testing.T) {
		for level, message := range map[string][]byte{"T": raise(bes, "T", nil), "XLT1": raise(bes, "XLT1", nil)} {
			before := w.services.Calls("stamp")
			if again := raise(message, level, nil); !bytes.Equal(again, message) || w.services.Calls("stamp") != before {
				t.Errorf("%s: changed, or a service was asked", level)
			}
		}
	})
	t.Run("with the original", func(t *testing.T) {
		for _, params := range []sig.Params{nil, {"Hash": "True"}} {
			original := text
			if params != nil {
				original = suite.Streebog256.Digest(text).Sum
			}
			if _, err := w.enhance(t, bes, "T", original, params); err != nil {
				t.Errorf("%v: %v", params, err)
			}
			var doc *sig.ErrDocument
			if _, err := w.enhance(t, bes, "T", original[:len(original):len(original)], nil); params == nil && err != nil {
				t.Error(err)
			}
			original = bytes.Clone(original)
			original[0] ^= 1
			if _, err := w.enhance(t, bes, "T", original, params); !errors.As(err, &doc) || doc.What != "OriginalDocument" {
				t.Errorf("%v, another: %v", params, err)
			}
		}
	})
}

func TestEnhanceRefusals(t *testing.T) {
	w := newWorld(t, suite.GOST2012x256)
	attached := sign(t, w.signer, 0)
	detached := sign(t, w.signer, 1)
	xlt1 := w.make(t, w.signer, "XLT1", &sig.Job{Document: sigtest.Document(text)})
	stamped := w.make(t, w.signer, "T", &sig.Job{Document: sigtest.Document(text)})
	certs := [][]byte{w.signer.Certificate.Raw}
	plain := cms.MessageDigest(w.signer.Suite.Hash.Digest(text))
	noCertificate := build(t, w.signer, cms.OIDData, nil, cms.ContentType(cms.OIDData), plain)
	noProtection := build(t, w.signer, cms.OIDData, certs, cms.ContentType(cms.OIDData), plain)
	bare := func() []byte { // no signed attributes, detached
		d := w.signer.Suite.Hash.Digest(text)
		head, tail, err := cms.Encode(cms.OIDData, -1, certs, nil, []cms.Signer{{Certificate: w.signer.Certificate, Suite: w.signer.Suite, Signature: w.signer.Sign(t, d)}})
		if err != nil {
			t.Fatal(err)
		}
		return append(head, tail...)
	}()
	half := unsigned(t, stamped, 0, func(attrs []cms.Attribute) []cms.Attribute {
		return append(attrs, cms.NewAttribute(cms.OIDCertificateRefs, []byte{0x30, 0}))
	})
	otherStamp := unsigned(t, attached, 0, func([]cms.Attribute) []cms.Attribute {
		token, err := w.services.TimeStamp(context.Background(), "", w.signer.Suite.Hash.Digest(text))
		if err != nil {
			t.Fatal(err)
		}
		return []cms.Attribute{cms.NewAttribute(cms.OIDSignatureTimeStamp, token.Token().Raw)}
	})
	tests := []struct {
		name, level   string
		message, orig []byte
		params        sig.Params
		faults        []string
		what, text    string
	}{
		{"down to BES", "BES", attached, nil, nil, []string{"CADESType"}, "", "never lowers"},
		{"no level", "", attached, nil, nil, []string{"CADESType"}, "", "never lowers"},
		{"down to T", "T", xlt1, nil, nil, []string{"CADESType"}, "", "never lowers"},
		{"not a message", "T", text, nil, nil, nil, "Document", "not a message"},
		{"index beyond", "T", attached, nil, sig.Params{"SignatureIndex": "3"}, []string{"SignatureIndex"}, "", "0 to 0"},
		{"content changed", "T", change(t, attached, text), nil, nil, nil, "Document", "does not cover"},
		{"value changed", "T", change(t, attached, mustParse(t, attached).Signers[0].Signature), nil, nil, nil, "Document", "is not valid"},
		{"detached, value changed", "XLT1", change(t, detached, mustParse(t, detached).Signers[0].Signature), nil, nil, nil, "Document", "is not valid"},
		{"another original", "XLT1", detached, text[1:], nil, nil, "OriginalDocument", "signature 0"},
		{"no attributes and no original", "T", bare, nil, nil, []string{"OriginalDocument"}, "", "is missing"},
		{"no attributes", "T", bare, text, nil, nil, "Document", "not CAdES-BES"},
		{"no signing-certificate", "T", noProtection, nil, nil, nil, "Document", "not CAdES-BES"},
		{"no certificate", "T", noCertificate, nil, nil, nil, "Document", "is not in the message"},
		{"half-made", "XLT1", half, nil, nil, nil, "Document", "some but not all"},
		{"time stamp of something else", "XLT1", otherStamp, nil, nil, nil, "Document", "time stamp of signature 0"},
	}
	for _, test := range tests {
		before := w.services.Calls("stamp")
		_, err := w.enhance(t, test.message, test.level, test.orig, test.params)
		var doc *sig.ErrDocument
		errors.As(err, &doc)
		if got := sigtest.Faults(err); err == nil || !slices.Equal(got, test.faults) || (doc == nil) != (test.what == "") || doc != nil && doc.What != test.what || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v, want %v %s %q", test.name, err, test.faults, test.what, test.text)
		}
		if w.services.Calls("stamp") != before {
			t.Errorf("%s: a time stamp was asked for", test.name)
		}
	}
}

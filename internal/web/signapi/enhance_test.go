// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/raw"
)

// raiser is a format that answers an enhancement with what it was asked, and asks
// for a time stamp where the level needs one.
type raiser struct{ sig.Described }

func (raiser) Enhance(ctx context.Context, job *sig.Job) (sig.Result, error) {
	text := func(d sig.Document) string {
		if d == nil {
			return ""
		}
		b, err := io.ReadAll(io.NewSectionReader(d, 0, d.Size()))
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	r := job.Params.Reader()
	stamper := cmp.Or(job.TSPAddress, r.String("TSPAddress"))
	if level := r.String("CADESType"); level == "T" {
		if _, err := job.Evidence.TimeStamp(ctx, stamper, suite.Digest{}); err != nil {
			return nil, err
		}
	}
	return sig.Parts(sig.Bytes(fmt.Appendf(nil, "%s|%s|%s", text(job.Document), text(job.Original), stamper))), nil
}

// network is an Evidence that remembers whom it was to ask.
type network struct {
	asked []string
	err   error
}

func (n *network) TimeStamp(_ context.Context, address string, _ suite.Digest) (*tsp.Verified, error) {
	n.asked = append(n.asked, address)
	return nil, n.err
}

func (n *network) Revocation(context.Context, *x509gost.Certificate, *x509gost.Certificate, time.Time) (sig.Proof, error) {
	return sig.Proof{}, errBroken
}

func (n *network) Issuer(context.Context, *x509gost.Certificate) (*x509gost.Certificate, error) {
	return nil, errBroken
}

func TestEnhance(t *testing.T) {
	net := &network{}
	d := newDesk(t, func(s *signing.Service, a *API) *API {
		s.Formats, s.Evidence = sig.Formats{raw.New(), raiser{cades.New()}}, net
		return a
	})
	args := func(change object) object {
		o := object{"SignatureType": "CAdES", "SignatureParams": object{"CADESType": "T", "TSPAddress": registered}}
		maps.Copy(o, change)
		return o
	}
	nested := func(params object) object {
		return object{"Content": []byte("c"), "Signature": object{"Type": "cades", "Parameters": params}}
	}
	for _, c := range []struct {
		name, method, path string
		body               object
		want               string // content of the answer
		code, says         string // or the error
		asked              bool   // the time-stamp service
	}{
		{"the first field", "POST", "/signatures/enhance", args(object{"Content": []byte("c"), "Document": []byte("d"), "signature": []byte("s")}), "s||" + registered, "", "", true},
		{"the second", "POST", "/signatures/enhance", args(object{"SignatureValue": []byte("v"), "SignedMessage": []byte("m"), "Signature": ""}), "v||" + registered, "", "", true},
		{"the third", "POST", "/signatures/enhance", args(object{"SignedDocument": []byte("d"), "SignedMessage": []byte("m")}), "d||" + registered, "", "", true},
		{"the fourth", "POST", "/signatures/enhance", args(object{"signedMessage": []byte("m"), "Document": []byte("d")}), "m||" + registered, "", "", true},
		{"the fifth", "POST", "/signatures/enhance", args(object{"document": []byte("d"), "Content": []byte("c")}), "d||" + registered, "", "", true},
		{"the last", "POST", "/signatures/enhance", args(object{"content": []byte("c")}), "c||" + registered, "", "", true},
		{"compatibility", "PATCH", "/signatures/postsign", args(object{"Content": []byte("c")}), "c||" + registered, "", "", true},
		{"the older shape", "POST", "/documents/enhancesignature", nested(object{"CADESType": "T", "TSPAddress": registered}), "c||" + registered, "", "", true},
		{"the default service", "POST", "/signatures/enhance", args(object{"Content": []byte("c"), "SignatureParams": object{"cadestype": "T", "tspaddress": ""}}), "c||" + registered, "", "", true},
		{"an original", "POST", "/signatures/enhance", args(object{"Content": []byte("c"), "SignatureParams": object{"originalDocument": []byte("o")}}), "c|o|", "", "", false},
		{"a number and no level", "POST", "/signatures/enhance", object{"Content": []byte("c"), "SignatureType": 2}, "c||", "", "", false},

		{"nothing", "POST", "/signatures/enhance", args(nil), "", fault.ContentRequired, "Signature is missing", false},
		{"nothing, compatibility", "PATCH", "/signatures/postsign", object{}, "", fault.ContentRequired, "Signature is missing", false},
		{"nothing, older", "POST", "/documents/enhancesignature", object{"Signature": object{}}, "", fault.ContentRequired, "Content is missing", false},
		{"no signature, older", "POST", "/documents/enhancesignature", object{"Content": "QQ=="}, "", fault.InvalidSignatureParams, "Signature is missing", false},
		{"no Base64", "POST", "/signatures/enhance", args(object{"SignedMessage": "*"}), "", fault.InvalidContent, "SignedMessage is not Base64", false},
		{"no type", "POST", "/signatures/enhance", args(object{"Content": "QQ==", "SignatureType": nil}), "", fault.InvalidSignatureParams, "not served", false},
		{"a type without levels", "POST", "/signatures/enhance", args(object{"Content": "QQ==", "SignatureType": "GOST3410"}), "", fault.InvalidSignatureParams, "no higher levels", false},
		{"no address", "POST", "/signatures/enhance", args(object{"Content": "QQ==", "SignatureParams": object{"CADESType": "XLT1"}}), "", fault.InvalidSignatureParams, "TSPAddress: missing", false},
		{"an address of its own", "POST", "/signatures/enhance", args(object{"Content": "QQ==", "SignatureParams": object{"CADESType": "T", "TSPAddress": "http://10.0.0.1/"}}), "", fault.InvalidSignatureParams, "only registered", false},
		{"no address at all", "POST", "/signatures/enhance", args(object{"Content": "QQ==", "SignatureParams": object{"CADESType": 1, "TSPAddress": "file:///etc/passwd"}}), "", fault.InvalidSignatureParams, "http or https", false},
	} {
		net.asked = nil
		for _, prefix := range []string{"/api", "/rest/api"} {
			status, text := d.call(t, c.method, prefix+c.path, c.body)
			if c.code == "" {
				if got := string(bytesOf(t, status, text)); got != c.want {
					t.Errorf("%s: got %s", c.name, got)
				}
			} else if code, says := refused(t, status, text); code != c.code || !strings.Contains(says, c.says) {
				t.Errorf("%s: got %s %s", c.name, code, says)
			}
		}
		if asked := len(net.asked) > 0; asked != c.asked || asked && net.asked[0] != registered {
			t.Errorf("%s: asked %q", c.name, net.asked)
		}
	}
	// An outage of another service is no fault of the client, and the answer names it.
	net.err = &sig.ErrEvidence{What: "time stamp", Text: "the service answered status 503", Err: errBroken}
	status, text := d.call(t, "POST", "/api/signatures/enhance", args(object{"Content": "QQ=="}))
	if code, says := refused(t, status, text); status != 500 || code != fault.Failed || says != "time stamp: the service answered status 503" {
		t.Errorf("an outage: %d %s", status, text)
	}
}

// TestEnhanceLarge: messages of any size pass through.
func TestEnhanceLarge(t *testing.T) {
	d := newDesk(t, func(s *signing.Service, a *API) *API { s.Formats = sig.Formats{raiser{cades.New()}}; return a })
	message := bytes.Repeat([]byte("message "), 1<<17)
	status, text := d.call(t, "POST", "/api/signatures/enhance", object{"Content": message, "SignatureType": "CAdES", "SignatureParams": object{"OriginalDocument": message}})
	if got := bytesOf(t, status, text); string(got) != string(message)+"|"+string(message)+"|" {
		t.Errorf("%d bytes", len(got))
	}
}

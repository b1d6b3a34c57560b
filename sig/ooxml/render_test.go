// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"bytes"
	"encoding/base64"
	"slices"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig/xmltree"
)

// TestCanonical: the digests of a rendered signature are those of its canonical forms, with
// every character that names and identifiers may have.
func TestCanonical(t *testing.T) {
	signer := sigtest.Root(t, suite.GOST2012x256).Signer(t, suite.GOST2012x256, "Signer").Certificate
	odd := x509gost.Certificate{Raw: signer.Raw, SerialNumber: signer.SerialNumber}
	odd.Issuer = x509gost.Name{Attributes: []x509gost.Attribute{{OID: suite.OID{2, 5, 4, 3}, Value: "«A» & 'B' <c> \"d\"/>\t\u007f"}}}
	ids := []string{"rId1", "a/>b", `"`, "'", "<>&", "\t\n\r", "ё"}
	for name, x := range map[string]signatureXML{
		"nothing signed": {},
		"parts":          {refs: []reference{{uri: "/a.xml?ContentType=a/b&c>d", digest: []byte{1, 2}}, {uri: "/b", digest: []byte{3}}}},
		"relationships":  {refs: []reference{{uri: "/_rels/.rels", ids: ids, digest: []byte{1}}}},
		"many":           {refs: slices.Repeat([]reference{{uri: "/_rels/.rels", ids: ids, digest: []byte{1}}}, 1000)},
	} {
		for _, c := range []*x509gost.Certificate{signer, &odd} {
			x.suite, x.at, x.certs = suite.GOST2012x256, sigtest.Time, []*x509gost.Certificate{c}
			head, tail, digest, err := x.render()
			if err != nil {
				t.Fatal(err)
			}
			tree, err := parseXML(nil, "it", slices.Concat(head, tail))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			sum := func(n xmltree.Node) []byte {
				h := x.suite.Hash.New()
				if err := tree.Subtree(n).Canonicalize(h, xmltree.Method{Form: xmltree.C14N10}); err != nil {
					t.Fatal(err)
				}
				return h.Sum(nil)
			}
			info := tree.Child(tree.Root(), nsDS, "SignedInfo")
			if !bytes.Equal(sum(info), digest.Sum) {
				t.Errorf("%s: the digest of SignedInfo is wrong", name)
			}
			values := slices.Collect(tree.Find(info, nsDS, "DigestValue"))
			for i, id := range []string{idPackage, idOffice, idProperties} {
				if want := base64.StdEncoding.EncodeToString(sum(tree.ByID(id)[0])); tree.StringValue(values[i]) != want {
					t.Errorf("%s: the digest of %s is %s, want %s", name, id, tree.StringValue(values[i]), want)
				}
			}
		}
	}
}

// TestIssuerText: the issuer's name is that of RFC 4514, with the characters that XML does not have
// escaped, and the serial number has its sign.
func TestIssuerText(t *testing.T) {
	issuer, err := x509gost.BuildName([]x509gost.Attribute{
		{OID: x509gost.OIDINN, Value: "007700000000"}, {OID: x509gost.OIDOrganizationalUnit, Value: "#1 & 2"}, {OID: x509gost.OIDCommonName, Value: "A\uFFFE"},
	})
	if err != nil {
		t.Fatal(err)
	}
	x := signatureXML{suite: suite.GOST2012x256, at: sigtest.Time, certs: []*x509gost.Certificate{{Issuer: issuer, SerialNumber: []byte{0xfe, 1}}}}
	head, tail, _, err := x.render()
	if err != nil {
		t.Fatal(err)
	}
	tree, err := parseXML(nil, "it", slices.Concat(head, tail))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"X509IssuerName": `CN=A\EF\BF\BE,OU=\#1 & 2,1.2.643.3.131.1.1=#120c303037373030303030303030`, "X509SerialNumber": "-511",
	} {
		for n := range tree.Find(tree.Root(), nsDS, name) {
			if got := tree.StringValue(n); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
			want = ""
		}
		if want != "" {
			t.Errorf("no %s", name)
		}
	}
}

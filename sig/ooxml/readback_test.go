// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"bytes"
	"slices"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig/ooxml"
)

// TestReadBack damages prepared states: a document whose signature no program would find
// is never returned.
func TestReadBack(t *testing.T) {
	root := sigtest.Root(t, suite.ECDSAP256)
	signer := root.Signer(t, suite.ECDSAP256, "Signer")
	plain := sigtest.Zip(word(), "")
	once := sign(t, signer, plain)
	type change = ooxml.Change
	find := func(list []change, name string) *change {
		i := slices.IndexFunc(list, func(c change) bool { return c.Name == name })
		if i < 0 {
			t.Fatalf("%s is not among the changes", name)
		}
		return &list[i]
	}
	swap := func(name, old, new string) func(*string, *[]change) {
		return func(_ *string, list *[]change) {
			c := find(*list, name)
			if !bytes.Contains(c.Content, []byte(old)) {
				t.Fatalf("%s does not have %q: %s", name, old, c.Content)
			}
			c.Content = bytes.ReplaceAll(c.Content, []byte(old), []byte(new))
		}
	}
	drop := func(name string) func(*string, *[]change) {
		return func(_ *string, list *[]change) {
			find(*list, name)
			*list = slices.DeleteFunc(*list, func(c change) bool { return c.Name == name })
		}
	}
	const types, rels, originRels = "[Content_Types].xml", "_rels/.rels", "_xmlsignatures/_rels/origin.sigs.rels"
	for _, c := range []struct {
		what     string
		document []byte
		spoil    func(part *string, list *[]change)
	}{
		{"nothing", plain, func(*string, *[]change) {}},
		{"nothing, the second time", once, func(*string, *[]change) {}},
		{"the content types stay", plain, drop(types)},
		{"the signature has another content type", plain, swap(types, "digital-signature-xmlsignature+xml", "other+xml")},
		{"the origin has another content type", plain, swap(types, "digital-signature-origin", "other")},
		{"the content types are no XML", plain, swap(types, "<Types", "<Types<")},
		{"the package does not lead to the origin", plain, drop(rels)},
		{"the package leads to another origin", plain, swap(rels, "origin.sigs", "other.sigs")},
		{"the origin is not there", plain, drop("_xmlsignatures/origin.sigs")},
		{"the origin has no relationships", plain, drop(originRels)},
		{"the origin leads elsewhere", plain, swap(originRels, "sig1.xml", "sig7.xml")},
		{"the origin leads elsewhere, the second time", once, swap(originRels, "sig2.xml", "sig7.xml")},
		{"the signature has another name", plain, func(part *string, _ *[]change) { *part = "_xmlsignatures/sig8.xml" }},
	} {
		j := job(c.document)
		j.Certificate, j.Chain, j.Time = signer.Certificate, signer.Chain, sigtest.Time
		prepared, err := ooxml.New().Prepare(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		spoiled, err := ooxml.EditState(prepared.State, c.spoil)
		if err != nil {
			t.Fatal(err)
		}
		result, err := ooxml.New().Finish(t.Context(), j, spoiled, signer.Sign(t, prepared.Digest))
		if (err == nil) != (c.what[:7] == "nothing") || err != nil && result != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

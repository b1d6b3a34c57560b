// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"bytes"

	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/sig"
)

// Describe implements sig.Describer.
func (*Format) Describe() sig.Description { return description }

var description = sig.Description{
	Types: []sig.Type{
		{Name: "CAdES", Number: "2", Usual: sig.Params{"Hash": "False", "CADESType": typeBES, "IsDetached": "True"}},
		{Name: "CMS", Number: "5", Usual: sig.Params{"Hash": "False", "IsDetached": "True"}},
	},
	Kind: "cms", Noun: "signed message", Expected: "a CMS message (DER, BER, PEM or Base64)",
	Suffix:  ".sig",
	Extends: extends,
	Params:  []sig.Param{{Name: "CADESType", Choices: types}, {Name: authenticatedParam, Kind: sig.Object}},
	Forms: []sig.Form{
		{Name: "cosign", Noun: "one more signature on a signed message", Type: "CAdES", Extends: true, Extensions: []string{"p7s", "p7m", "sig"}, Params: atLevels(kindCosign)},
		{Name: "countersign", Noun: "a signature on the first signature of a message", Type: "CAdES", Extends: true, Params: atLevels(kindCountersign)},
		{Name: "cades", Noun: "CAdES, a signature beside the file", Type: "CAdES", Any: true, Attachable: true, Params: atLevels(kindSign)},
	},
	Recognises: func(head []byte, _ int64) bool { return LooksLikeMessage(head) },
	Inspect:    inspect,
}

// extends reports whether a signature with these parameters is added to a message.
func extends(p sig.Params) bool {
	return p.Reader().Enum("CmsSignatureType", kinds, kindSign) != kindSign
}

// oidSignedData is the DER of the identifier 1.2.840.113549.1.7.2 (RFC 5652, section
// 5.1).
var oidSignedData = []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02}

// LooksLikeMessage reports whether head begins with a SEQUENCE whose first element is the
// type signed-data, with a length in any form of BER.
func LooksLikeMessage(head []byte) bool {
	if len(head) < 2 || head[0] != 0x30 {
		return false
	}
	skip := 2
	if head[1] > 0x80 {
		skip += int(head[1] & 0x7f)
	}
	return skip <= len(head) && bytes.HasPrefix(head[skip:], oidSignedData)
}

// inspect reads whether a message contains its document and which hash algorithms its
// signatures use. Only the command line calls it, for a file of its caller, so the limits of
// cms.Parse are enough.
func inspect(d sig.Document) (sig.Contents, error) {
	m, err := cms.Parse(d, d.Size())
	if err != nil {
		return sig.Contents{}, err
	}
	c := sig.Contents{Detached: m.Detached, Hashes: []*suite.Hash{}}
	for _, s := range m.Signers {
		if h, err := s.Hash(); err == nil {
			c.Hashes = append(c.Hashes, h)
		}
	}
	return c, nil
}

// atLevels returns the parameters of signatures of a kind at all levels.
func atLevels(kind string) map[sig.Level]sig.Params {
	list := map[sig.Level]sig.Params{}
	for _, c := range types {
		list[c.Level] = sig.Params{"CADESType": c.Name}
		if kind != kindSign {
			list[c.Level]["CmsSignatureType"] = kind
		}
	}
	return list
}

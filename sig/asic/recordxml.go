// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"bytes"
	"errors"
	"fmt"

	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/sig"
	"tamga/sig/xmltree"
)

const nsERS = "urn:ietf:params:xml:ns:ers"

// Limits for a record in XML: a time stamp takes a canonical form of all before it.
const (
	maxXMLStamps = 64
	maxXMLHashes = 1 << 14
)

// canonicalForms are the canonical forms that records name.
var canonicalForms = map[string]xmltree.Method{
	"http://www.w3.org/TR/2001/REC-xml-c14n-20010315":              {Form: xmltree.C14N10},
	"http://www.w3.org/TR/2001/REC-xml-c14n-20010315#WithComments": {Form: xmltree.C14N10, Comments: true},
	"http://www.w3.org/2006/12/xml-c14n11":                         {Form: xmltree.C14N11},
	"http://www.w3.org/2006/12/xml-c14n11#WithComments":            {Form: xmltree.C14N11, Comments: true},
	"http://www.w3.org/2001/10/xml-exc-c14n#":                      {Form: xmltree.Exclusive},
	"http://www.w3.org/2001/10/xml-exc-c14n#WithComments":          {Form: xmltree.Exclusive, Comments: true},
}

// xmlRecord reads an evidence record in XML (RFC 6283), with the canonical forms of its time stamps.
func (v *verifier) xmlRecord(data []byte) (*tsp.Record, []xmltree.Method, error) {
	t, err := xmltree.Parse(data, xmltree.Options{Size: maxRecord, Budget: v.of.budget})
	if err != nil {
		return nil, nil, err
	}
	root := t.Root()
	sequence := t.Child(root, nsERS, "ArchiveTimeStampSequence")
	switch {
	case !t.Is(root, nsERS, "EvidenceRecord"):
		return nil, nil, fmt.Errorf("its root element is %s; EvidenceRecord expected", quote(t.Name(root).String()))
	case t.Child(root, nsERS, "EncryptionInformation") != xmltree.None:
		return nil, nil, errors.New("it is of encrypted documents, which is not supported")
	case sequence == xmltree.None:
		return nil, nil, errors.New("it has no ArchiveTimeStampSequence")
	}
	r, forms, hashes := &tsp.Record{}, []xmltree.Method{}, 0
	var chains []xmltree.Node
	for chain := range t.Elements(sequence) {
		if t.Is(chain, nsERS, "ArchiveTimeStampChain") {
			chains = append(chains, chain)
		}
	}
	for c, chain := range chains {
		if order, _ := t.Get(chain, "Order"); order != fmt.Sprint(c+1) {
			return nil, nil, errors.New("its chains are not in their order")
		}
		algorithm := algorithmOf(t, chain, "DigestMethod")
		h, known := suite.HashByXML(algorithm)
		named := algorithmOf(t, chain, "CanonicalizationMethod")
		form, ok := canonicalForms[named]
		if !known || !ok {
			return nil, nil, fmt.Errorf("its digest method %s or its canonical form %s is not supported", quote(algorithm), quote(named))
		}
		var before []byte // the time stamp before
		n := 0
		for one := range t.Elements(chain) {
			if !t.Is(one, nsERS, "ArchiveTimeStamp") {
				continue
			}
			n++
			if order, _ := t.Get(one, "Order"); order != fmt.Sprint(n) {
				return nil, nil, errors.New("its time stamps are not in their order")
			}
			if len(r.Stamps) == maxXMLStamps {
				return nil, nil, fmt.Errorf("it has more than %d time stamps", maxXMLStamps)
			}
			s := tsp.RecordStamp{Hash: h, Renews: before}
			if n == 1 && c > 0 {
				set := t.Subtree(sequence)
				for _, later := range chains[c:] {
					set.Remove(later)
				}
				if s.Beside, err = canonical(set, form); err != nil {
					return nil, nil, err
				}
				if err := v.of.budget.Hold(int64(len(s.Beside))); err != nil {
					return nil, nil, err
				}
			}
			if tree := t.Child(one, nsERS, "HashTree"); tree != xmltree.None {
				for list := range t.Elements(tree) {
					var sums [][]byte
					for value := range t.Elements(list) {
						if hashes++; hashes > maxXMLHashes || !t.Is(value, nsERS, "DigestValue") {
							return nil, nil, errors.New("its HashTree is malformed, or too large")
						}
						sum, err := t.Base64(value, 1024, func(format string, args ...any) error { return fmt.Errorf(format, args...) })
						if err != nil || len(sum) != h.Size {
							return nil, nil, errors.New("its HashTree has a malformed digest")
						}
						sums = append(sums, sum)
					}
					if len(sums) == 0 {
						return nil, nil, errors.New("its HashTree has an empty list")
					}
					s.Tree = append(s.Tree, sums)
				}
			}
			stamp, token := t.Child(one, nsERS, "TimeStamp"), xmltree.None
			if stamp != xmltree.None {
				token = t.Child(stamp, nsERS, "TimeStampToken")
			}
			if token == xmltree.None {
				return nil, nil, errors.New("it has no TimeStampToken")
			}
			der, err := t.Base64(token, 2*tsp.MaxResponse, func(format string, args ...any) error { return fmt.Errorf(format, args...) })
			if err != nil {
				return nil, nil, err
			}
			if s.Token, err = tsp.ParseTokenWithin(der, v.of.budget.Hold); err != nil {
				return nil, nil, err
			}
			if s.Token.Info.Digest.Hash != h {
				return nil, nil, errors.New("the algorithms of its time stamps do not match")
			}
			if before, err = canonical(t.Subtree(stamp), form); err != nil {
				return nil, nil, err
			}
			r.Stamps, forms = append(r.Stamps, s), append(forms, form)
		}
		if n == 0 {
			return nil, nil, errors.New("it has a chain without a time stamp")
		}
	}
	if len(r.Stamps) == 0 {
		return nil, nil, errors.New("it has no time stamp")
	}
	return r, forms, nil
}

// algorithmOf returns the algorithm that a child of an element names, "" without one.
func algorithmOf(t *xmltree.Tree, n xmltree.Node, local string) string {
	child := t.Child(n, nsERS, local)
	if child == xmltree.None {
		return ""
	}
	algorithm, _ := t.Get(child, "Algorithm")
	return algorithm
}

// canonical returns the canonical form of a set, which is freed.
func canonical(set *xmltree.NodeSet, form xmltree.Method) ([]byte, error) {
	defer set.Free()
	var b bytes.Buffer
	err := set.Canonicalize(&b, form)
	return b.Bytes(), err
}

// canonicalDigest returns the digest of a document for a record in XML: a document in XML is digested in its canonical form
// (RFC 6283, 3.2.1).
func (v *verifier) canonicalDigest(f *file, h *suite.Hash, form xmltree.Method) (suite.Digest, error) {
	if f.Size > maxMessage {
		return f.digest(v.ctx, h)
	}
	data, err := f.content(v.ctx, maxMessage)
	if err != nil {
		return suite.Digest{}, err
	}
	if begin := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n"); !bytes.HasPrefix(begin, []byte("<")) {
		return f.digest(v.ctx, h)
	}
	t, err := xmltree.Parse(data, xmltree.Options{Size: maxMessage, Budget: v.of.budget})
	if failed := v.of.budget.Err(); failed != nil {
		return suite.Digest{}, failed
	}
	if err != nil {
		return f.digest(v.ctx, h)
	}
	text, err := canonical(t.All(), form)
	if err != nil {
		return suite.Digest{}, &sig.ErrDocument{What: "Document", Text: "has no canonical form", Err: err}
	}
	return h.Digest(text), nil
}

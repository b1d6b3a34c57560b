// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tamga/pki/cms"
	"tamga/sig"
)

// position names a signature of a message: the index of the signature of the message,
// then of its countersignature, and so on, each from 0 in the order of the bytes. It is
// empty if none is named.
type position []int

// String returns the form of SignatureIndex: "0", or "0.1" for the second
// countersignature of the first signature.
func (p position) String() string {
	parts := make([]string, len(p))
	for i, n := range p {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ".")
}

// readPosition reads SignatureIndex.
func readPosition(r *sig.ParamReader) position {
	v := r.String("SignatureIndex")
	if v == "" {
		return nil
	}
	var p position
	for _, part := range strings.Split(v, ".") {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil || len(p) > cms.MaxCountersignatures {
			r.Fault("SignatureIndex", fmt.Sprintf("is %s; the index of a signature from 0 expected, or for example 0.1 for the second countersignature of the first signature", quote(v)))
			return nil
		}
		p = append(p, int(n))
	}
	return p
}

// find returns the signatures from the one of the message to the one at the position. If
// there is none, it adds a fault that says how many there are.
func (p position) find(m *cms.Message, r *sig.ParamReader) []*cms.SignerInfo {
	var line []*cms.SignerInfo
	list, what := m.Signers, "the message has"
	for i, n := range p {
		if n >= len(list) {
			text := fmt.Sprintf("is %s, but %s no signature", p, what)
			if len(list) > 0 {
				text = fmt.Sprintf("is %s, but %s %d of them; 0 to %d expected", p, what, len(list), len(list)-1)
			}
			r.Fault("SignatureIndex", text)
			return nil
		}
		line = append(line, list[n])
		// A malformed one is not counted, here and in a report.
		list, _ = list[n].Countersignatures()
		what = fmt.Sprintf("signature %s has countersignatures: it has", p[:i+1])
	}
	return line
}

// replace returns the SignerInfo of the message in which raw replaces the one at the end
// of the line: every signature above it contains the next one.
func (p position) replace(line []*cms.SignerInfo, raw []byte) ([]byte, error) {
	for i := len(line) - 2; i >= 0; i-- {
		var err error
		if raw, err = line[i].ReplaceCountersignature(p[i+1], raw); err != nil {
			return nil, err
		}
	}
	return raw, nil
}

// frozen are the archive time stamps, which cover all unsigned attributes before them:
// the earlier two their bytes, the last every value.
var frozen = []struct {
	oid      []int
	appended bool // more attributes may be appended
}{
	{cms.OIDArchiveTimeStamp, false},
	{cms.OIDArchiveTimeStampV2, false},
	{cms.OIDArchiveTimeStampV3, true},
}

// checkFrozen refuses a change that would invalidate an archive time stamp on the line:
// appending to the last signature, or rewriting a value in those above.
func checkFrozen(p position, line []*cms.SignerInfo) error {
	for i, s := range line {
		last := i == len(line)-1
		for _, f := range frozen {
			if slices.ContainsFunc(s.UnsignedAttrs, func(a cms.Attribute) bool { return a.OID.Equal(f.oid) }) && !(last && f.appended) {
				return &sig.ErrDocument{What: "Document", Text: fmt.Sprintf(
					"signature %s has an archive time stamp, which the change would invalidate", p[:i+1])}
			}
		}
	}
	return nil
}

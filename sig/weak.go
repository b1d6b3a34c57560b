// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"fmt"
	"time"

	"tamga/pki/suite"
)

// Codes of the findings that a signature depends on an algorithm that has ended: a hash function that can be forged, or a
// signature algorithm whose end a setting has.
const (
	CodeWeak       = "digest-algorithm-weak"
	CodeWeakScheme = "signature-algorithm-weak"
)

// WeakHash returns the finding that a hash function was already weak at by, the time at which the
// signature is known to have existed (its best time). It returns false if the hash function was
// strong then.
func (c *Check) WeakHash(h *suite.Hash, by time.Time) (Finding, bool) {
	return weakAt(CodeWeak, c.Ends.Hash(h), by)
}

// WeakScheme is WeakHash for the algorithm of a signature and its hash function.
func (c *Check) WeakScheme(s *suite.Scheme, by time.Time) (Finding, bool) {
	if f, weak := c.WeakHash(s.Hash, by); weak {
		return f, true
	}
	return weakAt(CodeWeakScheme, c.Ends.Scheme(s), by)
}

func weakAt(code string, w suite.Weakness, by time.Time) (Finding, bool) {
	if !w.At(by) {
		return Finding{}, false
	}
	return Finding{
		Code: code, Indication: IndicationOf(code),
		Text: fmt.Sprintf("the signature uses %s, which proves nothing since %s, and nothing proves that it existed before", w.What, w.Since.Format(time.DateOnly)),
	}, true
}

// WeakStamp returns the finding that a time stamp proves no time because of the Weakness of its
// token. It returns false for the zero weakness.
func WeakStamp(w suite.Weakness) (Finding, bool) {
	if w == (suite.Weakness{}) {
		return Finding{}, false
	}
	return Finding{
		Code: CodeWeak, Indication: IndicationOf(CodeWeak),
		Text: fmt.Sprintf("the time stamp uses %s, which proves nothing since %s, and so it proves no time", w.What, w.Since.Format(time.DateOnly)),
	}, true
}

// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"fmt"
	"time"

	"tamga/pki/suite"
)

// CodeWeak is the code of the finding that a signature depends on a hash function that can be
// forged.
const CodeWeak = "digest-algorithm-weak"

// WeakHash returns the finding that a hash function was already weak at by, the time at which the
// signature is known to have existed (its best time). It returns false if the hash function was
// strong then.
func WeakHash(h *suite.Hash, by time.Time) (Finding, bool) {
	w := h.Weakness()
	if !w.At(by) {
		return Finding{}, false
	}
	return Finding{
		Code: CodeWeak, Indication: IndicationOf(CodeWeak),
		Text: fmt.Sprintf("the signature uses %s, which can be forged since %s, and nothing proves that it existed before", w.What, w.Since.Format(time.DateOnly)),
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
		Text: fmt.Sprintf("the time stamp uses %s, which can be forged since %s, and proves no time", w.What, w.Since.Format(time.DateOnly)),
	}, true
}

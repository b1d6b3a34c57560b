package sig

import (
	"fmt"
	"time"

	"tamga/pki/suite"
)

// CodeWeak is the code of the finding that a signature rests on a hash function
// that can be forged.
const CodeWeak = "digest-algorithm-weak"

// weakSince says from when on a hash function proves nothing any more. A signature
// that existed before then still counts.
var weakSince = map[*suite.Hash]time.Time{
	// NIST SP 800-131A disallows it for signatures after 2013. The first public
	// collision is of 2017, attacks below the bound were known since 2005.
	suite.SHA1: time.Date(2014, 1, 1, 0, 0, 0, 0, time.UTC),
}

// WeakHash returns the finding that a hash function was already weak at the moment
// by which the signature is known to have existed: the best time of the signature.
// It reports false if the hash function was strong then.
func WeakHash(h *suite.Hash, by time.Time) (Finding, bool) {
	since, weak := weakSince[h]
	if !weak || by.Before(since) {
		return Finding{}, false
	}
	return Finding{
		Code: CodeWeak, Indication: CryptoConstraintsFailureNoPOE,
		Text: fmt.Sprintf("the signature rests on %s, which can be forged since %s, and nothing proves that it existed before", h.Name, since.Format(time.DateOnly)),
	}, true
}

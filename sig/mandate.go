// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"strings"
	"time"
)

// Mandate is the power of attorney by which the signer of a document acts, if powers were given with the document. See
// package power.
type Mandate struct {
	// Number is the number of the power, and Chain has those of the powers that it was passed on from, nearest first.
	Number string
	Chain  []string
	// Principals gave the first power of the chain, and Representative is the party that the signer is. Both are a name with INN.
	Principals     []string
	Representative string
	// From and Until are when the power is in force: at From, and no longer at Until.
	From, Until time.Time
	// Codes are the powers that are granted, as codes, and Words are those that are granted in words.
	Codes, Words []string
	// Joint reports that the representatives act only together.
	Joint bool
	// Power, Signer and Rights are the verdicts of three parts: the power with its signatures, dates and withdrawal, the
	// signer as its representative, and the powers granted. Document is the verdict of the signature without a power.
	Power, Signer, Rights, Document Verdict
}

// mandateCode is the prefix of the code of every finding about a power of attorney.
const mandateCode = "power-"

// AboutMandate reports whether a finding is about a power of attorney, and not about the signature.
func (f *Finding) AboutMandate() bool { return strings.HasPrefix(f.Code, mandateCode) }

// moscow is where the days of a power begin and end.
var moscow = time.FixedZone("MSK", 3*60*60)

// Days returns the first and the last day on which the power is in force, in Moscow.
func (m *Mandate) Days() (from, until string) {
	return m.From.In(moscow).Format(time.DateOnly), m.Until.Add(-time.Nanosecond).In(moscow).Format(time.DateOnly)
}

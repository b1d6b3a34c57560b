// SPDX-License-Identifier: Apache-2.0

package raw

import "tamga/sig"

// Describe implements sig.Describer.
func (*Format) Describe() sig.Description { return description }

var description = sig.Description{
	Types: []sig.Type{{Name: "GOST3410", Number: "1", Usual: sig.Params{"Hash": "False"}}},
	Kind:  "raw", Noun: "bare signature", Expected: "a bare signature",
	Suffix: ".sig",
	Bare:   true,
	// Any bytes may be a signature value if they are few enough.
	Recognises: func(_ []byte, size int64) bool { return 0 < size && size <= maxValue },
	Inspect:    func(sig.Document) (sig.Contents, error) { return sig.Contents{Detached: true}, nil },
}

// SPDX-License-Identifier: Apache-2.0

package ooxml

import "tamga/sig"

// Describe implements sig.Describer.
func (*Format) Describe() sig.Description { return description }

var description = sig.Description{
	Types: []sig.Type{{Name: "MSOffice", Number: "4"}},
	Kind:  "office", Noun: "Office document", Expected: "an Office document",
	Recognises: func(head []byte, _ int64) bool { return LooksLikePackage(head) },
}

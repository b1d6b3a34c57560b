// SPDX-License-Identifier: Apache-2.0

package ooxml

import "tamga/sig"

// Describe implements sig.Describer.
func (*Format) Describe() sig.Description { return description }

var description = sig.Description{
	Types: []sig.Type{{Name: "MSOffice", Number: "4"}},
	Kind:  "office", Noun: "Office document", Expected: "an Office document",
	Forms: []sig.Form{{
		Name: "office", Noun: "Office document with its signature inside", Type: "MSOffice",
		Extensions: []string{"docx", "docm", "dotx", "xlsx", "xlsm", "xltx", "pptx", "pptm", "potx", "ppsx"},
		Params:     map[sig.Level]sig.Params{sig.LevelBasic: {}},
	}},
	Recognises: func(head []byte, _ int64) bool { return LooksLikePackage(head) },
}

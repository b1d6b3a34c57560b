// SPDX-License-Identifier: Apache-2.0

package sig

import "slices"

// Unsigned reports whether the document has no signatures, and nothing else is wrong with it.
func (r *Report) Unsigned() bool {
	return len(r.Signatures) == 0 && len(r.Findings) > 0 &&
		!slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Indication != "" && f.Code != "no-signature" })
}

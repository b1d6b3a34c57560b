// SPDX-License-Identifier: Apache-2.0

// Package extension has no code of its own. Its tests keep two parts of docs/architecture.md true:
// the table of section 4, which says what it takes to add a thing, and the walk of section 3, which
// says what a request passes.
package extension

// SPDX-License-Identifier: Apache-2.0

// Package browser has the tests that drive Chromium over the pages of a running server. Begin
// with the tables in pages_test.go (each page) and stories_test.go (what people do).
//
// It is a module of its own: the program has none of its dependencies. It has no code but tests.
package browser

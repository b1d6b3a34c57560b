// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/base64"
	"strings"
	"time"
)

// OrNull returns s for a key of an answer, nil (null) when it is empty.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	copied := s // an empty s takes no memory
	return &copied
}

// TimeOrNull returns t in RFC 3339, UTC, for a key of an answer, nil (null) for the zero
// time.
func TimeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return OrNull(t.UTC().Format(time.RFC3339))
}

// Truth reads a boolean as clients write one in text: true or 1, false or 0, in any
// letter case, with white space around it. It reports false as ok for any other text.
func Truth(text string) (value, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "1":
		return true, true
	case "false", "0":
		return false, true
	}
	return false, false
}

var toURLAlphabet = strings.NewReplacer("+", "-", "/", "_")

// DecodeBase64URL reads Base64 in the URL or the standard alphabet, with padding or
// without.
func DecodeBase64URL(text string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(toURLAlphabet.Replace(strings.TrimRight(text, "=")))
}

// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
)

// What the surfaces with pages for people share.

// ContentHash returns the source expression that allows a style or a script with this text
// in a Content-Security-Policy.
func ContentHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// CookieOf returns the value of a cookie in a header Cookie, "" for none or more than one.
func CookieOf(header, name string) string {
	cookies, err := http.ParseCookie(header)
	if err != nil {
		return ""
	}
	value := ""
	for _, c := range cookies {
		if c.Name != name {
			continue
		}
		if value != "" {
			return ""
		}
		value = c.Value
	}
	return value
}

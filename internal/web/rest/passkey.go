// SPDX-License-Identifier: Apache-2.0

package rest

import _ "embed"

// PasskeyScript is the script of pages that ask for a passkey. Such a page has a form with
// data-passkey ("create" or "get"), data-options (the options as JSON) and a hidden field
// passkey for the answer; in it a button with data-passkey-start, which is hidden without
// scripts, and texts with data-passkey-off and data-passkey-failed.
//
//go:embed passkey.js
var PasskeyScript string

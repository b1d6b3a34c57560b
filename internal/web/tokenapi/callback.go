// SPDX-License-Identifier: Apache-2.0

package tokenapi

import (
	"cmp"
	"encoding/json"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
)

// The closed set of callbackBody.Result.
const (
	callbackSuccess = "success"
	callbackError   = "error"
)

// callbackBody is what a client is told at its CallbackUri. It has no token: the client
// gets it with its next poll.
type callbackBody struct {
	Result           string
	TransactionId    string
	Error            *string
	ErrorDescription *string
}

// RenderCallback returns the body of the callback of a confirmation that was answered. It is
// a [confirm.Render].
func RenderCallback(r *confirm.Record) (string, error) {
	b := callbackBody{Result: callbackSuccess, TransactionId: r.ID}
	if r.State != confirm.Confirmed {
		code := cmp.Or(r.Code, fault.InvalidTransaction)
		b.Result, b.Error, b.ErrorDescription = callbackError, &code, &r.Message
	}
	text, err := json.Marshal(b)
	return string(text), err
}

// SPDX-License-Identifier: Apache-2.0

package message_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/device/message"
)

// TestVectors reads the messages of testdata, which OpenSSL verifies too (messages.py).
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/messages.json")
	must(t, err)
	var rows []struct {
		Key     []byte
		Payload json.RawMessage
		Message message.Signed
	}
	must(t, json.Unmarshal(text, &rows))
	payloads := map[string]any{
		message.Poll: &message.PollRequest{}, message.Operation: &message.OperationRequest{},
		message.Confirm: &message.Decision{}, message.Decline: &message.Decision{},
	}
	seen := map[string]int{}
	for _, r := range rows {
		m, err := message.Parse(r.Message)
		must(t, err)
		if m.Kid == "" || len(m.Key) > 0 {
			t.Errorf("%s: a known device sends no key", m.Type)
		}
		if !m.Verify(r.Key) {
			t.Errorf("%s %s: the signature does not verify", m.Algorithm, m.Type)
		}
		seen[m.Algorithm+" "+m.Type]++
		// The payload has no key that the type does not know, and none is lost.
		v := reflect.New(reflect.TypeOf(payloads[m.Type]).Elem()).Interface()
		must(t, json.Unmarshal(r.Payload, v))
		again, err := json.Marshal(v)
		must(t, err)
		if d := cmp.Diff(string(m.Payload), string(again)); d != "" {
			t.Errorf("%s: the payload of the vector and of the message: %s", m.Type, d)
		}
	}
	if len(seen) != 8 {
		t.Errorf("there are vectors of %v, want four types with either algorithm", seen)
	}
}

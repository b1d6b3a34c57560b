// SPDX-License-Identifier: Apache-2.0

package signapi

import (
	"encoding/json"
	"testing"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/operation"
)

// Both services describe every state with the words of their closed sets.
func TestOperationInWords(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	failed := fault.New(fault.InvalidPIN, "wrong")
	for state, want := range map[operation.State]struct{ status, action, actionStatus, document string }{
		operation.Created:    {"Created", "Pending", "Considering", ""},
		operation.Challenged: {"Created", "Pending", "Considering", ""},
		operation.Confirmed:  {"Processing", "Pending", "Approved", "InProgress"},
		operation.Declined:   {"Error", "Pending", "Declined", "Declined"},
		operation.Cancelled:  {"Error", "Error", "Approved", "Error"},
		operation.Completed:  {"Completed", "Executed", "Approved", "Completed"},
		operation.Error:      {"Error", "Error", "Approved", "Error"},
		operation.Expired:    {"Error", "Error", "Approved", "Error"},
	} {
		t.Run(string(state), func(t *testing.T) {
			op := &operation.Operation{
				ID: "id", Owner: audit.Principal{UserID: "user"}, State: state, Async: true, CreatedAt: at, UpdatedAt: at, CompleteBefore: at,
				Callback: "https://example.org/", Called: state == operation.Completed, Documents: []operation.Document{{ID: "part", OriginalRef: "in"}},
			}
			switch {
			case state == operation.Completed:
				op.Documents[0].Name, op.Documents[0].RefID = "name", "out"
			case !state.Active() && state != operation.Declined:
				op.Fault = failed
			}
			info := describeOperation(op)
			a := info.Actions[0]
			if info.State != state || info.Status != want.status || a.State != want.action || a.Status != want.actionStatus {
				t.Errorf("%s, %s, the action %s, %s", info.State, info.Status, a.State, a.Status)
			}
			if info.CallbackReceived != op.Called || *info.Callback != op.Callback || !info.IsAsync || info.CompletedAt != nil || *info.CreatedAt != at.Unix() {
				t.Errorf("%+v", info)
			}
			if (info.Error != nil) != (op.Fault != nil) || (a.Error != nil) != (op.Fault != nil) || (a.ResultValue != nil) != (state == operation.Completed) {
				t.Errorf("%+v", info)
			}
			p, err := (&Operating{}).render(op)
			if err != nil {
				t.Fatal(err)
			}
			var text jsonText
			if _, err := p.WriteTo(&text); err != nil {
				t.Fatal(err)
			}
			var answer struct {
				Operation struct {
					Status string
					Result *struct {
						ProcessedDocuments []struct{ Status string }
					}
				}
			}
			if err := json.Unmarshal(text, &answer); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			o := answer.Operation
			if o.Status != want.status || (o.Result == nil) != (want.document == "") || o.Result != nil && o.Result.ProcessedDocuments[0].Status != want.document {
				t.Errorf("%s", text)
			}
		})
	}
}

type jsonText []byte

func (j *jsonText) Write(p []byte) (int, error) {
	*j = append(*j, p...)
	return len(p), nil
}

// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"tamga/internal/tamgatest"
)

// TestOperationKeepsItsWords reads an operation in each way in which it can end. Its actions and
// parameters are those that it was created with.
func TestOperationKeepsItsWords(t *testing.T) { onBothEngines(t, testOperationKeepsItsWords) }

func testOperationKeepsItsWords(t *testing.T, database string) {
	c := confirmingAt(t, database, "worded", "otpviasms?level=1")
	c.Command("cert", "issue", "worded", "--default")
	token := c.TokenOf("worded", tamgatest.Password)
	type operation struct {
		ID                string `json:"Id"`
		Parameters, State string
		Actions           []struct {
			ID string `json:"Id"`
		}
	}
	read := func(id string) (o operation) {
		t.Helper()
		status, text := c.Do(t.Context(), "GET", c.Dev.IDPURL+"/operations/"+id, token, nil)
		if err := json.Unmarshal(text, &o); err != nil || status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		return o
	}
	for state, end := range map[string]func(id string){
		"Cancelled": func(id string) {
			if status, text := c.Do(t.Context(), "DELETE", c.Dev.IDPURL+"/operations/"+id, token, nil); status != 200 {
				t.Fatalf("%d %s", status, text)
			}
		},
		"Error": func(id string) { // five wrong codes
			first := c.ask("/v2.0/confirmation", "Bearer "+token, c.begin(fmt.Sprintf(`,"OperationId":%q`, id)))
			bad := c.answerTo(first.Challenge.ContextData.RefID, wrong(c.Code(c.phone)))
			for range 5 {
				c.ask("/v2.0/confirmation", "Bearer "+token, bad)
			}
		},
	} {
		status, text := c.Call("POST", "/api/v2/signature", token, map[string]any{
			"BinaryData":        []any{map[string]any{"Content": []byte("one"), "ContentInfo": "one.txt"}},
			"Signature":         map[string]any{"Type": "CMS", "Parameters": tamgatest.Parameters{"IsDetached": "False"}, "CertificateId": 0},
			"ForceConfirmation": true,
		})
		var created struct{ Operation struct{ ID string } }
		if err := json.Unmarshal(text, &created); err != nil || status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		before := read(created.Operation.ID)
		end(created.Operation.ID)
		after := read(created.Operation.ID)
		if after.State != state || len(before.Actions) != 1 || before.Actions[0].ID == "" || len(after.Actions) != 1 ||
			after.Actions[0].ID != before.Actions[0].ID || before.Parameters == "" || after.Parameters != before.Parameters {
			t.Errorf("%s: before %+v, after %+v", state, before, after)
		}
	}
}

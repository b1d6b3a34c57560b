// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tamga/internal/domain/oath/otp"
	"tamga/internal/tamgatest"
)

// TestConfirmedContainer makes one container of three documents in an operation that its user confirms. What cannot
// become one container is refused before the user is asked.
func TestConfirmedContainer(t *testing.T) {
	t.Parallel()
	users := tamgatest.NewUMS(tamgatest.Start(t))
	server := users.Server
	secret := []byte("secret of a token 01")
	key, err := otp.New(otp.SHA1, 6, secret)
	if err != nil {
		t.Fatal(err)
	}
	step := int64(0)
	code := func() string { step++; return key.Code(step - 1) }
	file := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(file, fmt.Appendf(nil, "serial,type,secret_hex\ndev,HOTP,%x\n", secret), 0o600); err != nil {
		t.Fatal(err)
	}
	server.Command("token", "import", file)
	c := &v2{Server: server, t: t, bearer: users.Tokens[tamgatest.Ours]}
	call := func(method, address string, body, into any) {
		t.Helper()
		status, answer := c.send(method, address, body)
		if status != 200 {
			t.Fatalf("%s: %d %.300s", address, status, answer)
		}
		if into != nil {
			if err := json.Unmarshal(answer, into); err != nil {
				t.Fatal(err)
			}
		}
	}
	person := server.URL + "/STS/ums/user/" + server.Dev.User.ID
	call("POST", person+"/oath", fields{"Serial": "dev", "FirstOtp": code(), "SecondOtp": code()}, nil)
	call("POST", person+"/authmethod/oath?level=1", nil, nil)
	c.bearer = server.Token()
	order := func(names ...string) fields {
		var data []fields
		for _, name := range names {
			data = append(data, fields{"Content": []byte("text of " + name), "ContentInfo": name})
		}
		return fields{"BinaryData": data, "ForceConfirmation": true, "Signature": fields{
			"Type": "ASiC", "Parameters": fields{"Container": "one", "ASiCFormat": "XAdES"}, "CertificateId": fmt.Sprint(server.Cert("gost2012-256", false).ID),
		}}
	}
	c.refusal("invalid_signature_params", order("a.txt", "A.txt"))
	original := order("a.txt", "b.txt")
	original["BinaryData"].([]fields)[1] = fields{"RefId": c.upload("b.txt", []byte("second")), "RelatedRefId": c.upload("c.txt", []byte("third"))}
	c.refusal("invalid_signature_params", original)
	created := c.operation(order("a.txt", "b.txt", "c.txt"))
	confirm := func(more string, value any) (answer struct {
		AccessToken string
		Challenge   struct{ TextChallenge []struct{ RefID string } }
	}) {
		call("POST", server.URL+"/STS/v2.0/confirmation", fields{"Resource": server.Dev.Resource, "ClientId": server.Dev.ClientID, more: value}, &answer)
		return answer
	}
	asked := confirm("OperationId", created.ID.String())
	if len(asked.Challenge.TextChallenge) != 1 {
		t.Fatalf("%+v", asked)
	}
	given := confirm("ChallengeResponse", fields{"TextChallengeResponse": []any{fields{"RefId": asked.Challenge.TextChallenge[0].RefID, "Value": code()}}})
	c.bearer = given.AccessToken
	for range 2 { // a repeated call has the same result
		signed := c.operation("{}").Result.ProcessedDocuments
		if len(signed) != 3 || signed[1].Content != nil || signed[2].Content != nil {
			t.Fatalf("%+v", signed)
		}
		for name, content := range map[string]string{"a.txt": "text of a.txt", "b.txt": "text of b.txt", "c.txt": "text of c.txt"} {
			if got := contained(t, signed[0].Content); got[name] != content || len(got) != 3 {
				t.Errorf("%v", got)
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tamga/internal/domain/oath/otp"
	"tamga/internal/tamgatest"
)

// BenchmarkConfirmed measures the processor time of the server for one operation of v2 on 1,000 documents of 1 KiB
// that its user confirms: create-ms until the operation is stored, sign-ms to carry it out after the confirmation. Run it with
//
//	go test -run '^$' -bench Confirmed -benchtime 10x ./cmd/tamga
func BenchmarkConfirmed(b *testing.B) {
	s := newConfirming(b, plainProgram(b))
	s.operation() // warm
	s.create, s.sign = 0, 0
	for b.Loop() {
		s.operation()
	}
	b.ReportMetric(s.create.Seconds()*1e3/float64(b.N), "create-ms")
	b.ReportMetric(s.sign.Seconds()*1e3/float64(b.N), "sign-ms")
}

// confirming is a server with a user who confirms by a token that counts.
type confirming struct {
	b      *testing.B
	server *tamgatest.Server
	key    *otp.Key
	step   int64
	token  string
	body   []byte

	documents int // of an operation

	create, sign time.Duration
}

func newConfirming(b *testing.B, program string) *confirming {
	documents := make([]any, 1000)
	for i := range documents {
		documents[i] = map[string]any{"Content": bytes.Repeat([]byte{byte(i)}, 1024), "ContentInfo": fmt.Sprintf("%d.txt", i)}
	}
	return confirmingAt(b, tamgatest.NewUMS(tamgatest.StartProgram(b, program, b.TempDir(), "--set", "tokens.access_life=1h")), documents)
}

// confirmingAt returns a user of a server who confirms operations on documents.
func confirmingAt(b *testing.B, users *tamgatest.UMS, documents []any) *confirming {
	s := &confirming{b: b, documents: len(documents), server: users.Server}
	secret := []byte("secret of a token 01")
	var err error
	if s.key, err = otp.New(otp.SHA1, 6, secret); err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "tokens.csv")
	if err := os.WriteFile(file, fmt.Appendf(nil, "serial,type,secret_hex\ndev,HOTP,%x\n", secret), 0o600); err != nil {
		b.Fatal(err)
	}
	s.server.Command("token", "import", file)
	person := s.server.URL + "/STS/ums/user/" + s.server.Dev.User.ID
	s.call("POST", person+"/oath", users.Tokens[tamgatest.Ours], map[string]string{"Serial": "dev", "FirstOtp": s.code(), "SecondOtp": s.code()}, nil)
	s.call("POST", person+"/authmethod/oath?level=1", users.Tokens[tamgatest.Ours], nil, nil)
	s.token = s.server.Token()
	s.body, err = json.Marshal(map[string]any{
		"BinaryData": documents, "ForceConfirmation": true,
		"Signature": map[string]any{"Type": "CAdES", "CertificateId": fmt.Sprint(s.server.Cert("gost2012-256", false).ID), "Parameters": tamgatest.Parameters{"CADESType": "BES", "IsDetached": "False"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func (s *confirming) code() string {
	s.step++
	return s.key.Code(s.step - 1)
}

// call sends a request that must succeed.
func (s *confirming) call(method, address, token string, body, into any) {
	s.b.Helper()
	text, isText := body.([]byte)
	if !isText {
		var err error
		if text, err = json.Marshal(body); err != nil {
			s.b.Fatal(err)
		}
	}
	status, answer := s.server.Do(s.b.Context(), method, address, token, bytes.NewReader(text))
	if status != 200 {
		s.b.Fatalf("%s: %d %.300s", address, status, answer)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			s.b.Fatalf("%s: %v: %.300s", address, err, answer)
		}
	}
}

// operation creates an operation, has it confirmed and carried out.
func (s *confirming) operation() {
	s.b.Helper()
	timed := func(to *time.Duration, do func()) {
		before := s.server.ProcessorTime()
		do()
		*to += s.server.ProcessorTime() - before
	}
	var created struct{ Operation struct{ ID string } }
	timed(&s.create, func() { s.call("POST", s.server.Dev.BaseURL+"/api/v2/signature", s.token, s.body, &created) })
	confirm := func(more string, value any) (answer struct {
		AccessToken string
		Challenge   struct{ TextChallenge []struct{ RefID string } }
	}) {
		s.call("POST", s.server.URL+"/STS/v2.0/confirmation", s.token, map[string]any{"Resource": s.server.Dev.Resource, "ClientId": s.server.Dev.ClientID, more: value}, &answer)
		return answer
	}
	asked := confirm("OperationId", created.Operation.ID)
	if len(asked.Challenge.TextChallenge) != 1 {
		s.b.Fatalf("a challenge has no text to answer: %+v", asked)
	}
	given := confirm("ChallengeResponse", map[string]any{"TextChallengeResponse": []any{map[string]any{"RefId": asked.Challenge.TextChallenge[0].RefID, "Value": s.code()}}})
	var signed struct {
		Operation struct {
			Result struct{ ProcessedDocuments []struct{ Content []byte } }
		}
	}
	timed(&s.sign, func() {
		s.call("POST", s.server.Dev.BaseURL+"/api/v2/signature", given.AccessToken, []byte("{}"), &signed)
	})
	if got := signed.Operation.Result.ProcessedDocuments; len(got) != s.documents || len(got[s.documents-1].Content) == 0 {
		s.b.Fatalf("%d results", len(got))
	}
}

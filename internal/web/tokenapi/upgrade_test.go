// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/cluster"
	"tamga/internal/tamgatest"
)

// confirmingCommit is the release that the upgrade begins with: the last one before the
// migrations from 0060.
const confirmingCommit = "c4041e75886d6fe54731836bdbf5b7b7695ef706"

// TestUpgradeOfConfirmations runs a process of an earlier release beside a new one. What waits
// under the old one is confirmed and carried out by either, once, and neither signs without
// the confirmation. Building the earlier release takes long, so the test needs
// TAMGA_TEST_FULL_FAULTS. TAMGA_TEST_OLDER is the path of one that was built before.
func TestUpgradeOfConfirmations(t *testing.T) {
	if os.Getenv("TAMGA_TEST_FULL_FAULTS") == "" {
		t.Skip("set TAMGA_TEST_FULL_FAULTS: it builds an earlier release")
	}
	t.Parallel()
	program := os.Getenv("TAMGA_TEST_OLDER")
	if program == "" {
		var err error
		if program, err = cluster.BuildCommit(t.Context(), "", confirmingCommit, t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	address := storetest.PostgreSQL(t).Database(t)
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	older := tamgatest.StartProgram(t, program, t.TempDir(), "--set", "database="+address,
		"--set", "messages.budgets.sms.recipient=0", "--set", "confirmation.codes.resend=0s")
	h := &household{confirming: &confirming{t: t, UMS: &tamgatest.UMS{Server: older, Tokens: map[string]string{}}}, db: db}
	h.Tokens[tamgatest.Ours] = h.TokenOf(h.Dev.Operator.Login, h.Dev.Operator.Password)
	h.id, h.phone = h.Dev.User.ID, "79250000077"
	phones := "/ums/user/" + h.id + "/phones"
	h.OK(tamgatest.Ours, "POST", phones, fmt.Sprintf("%q", h.phone))
	h.OK(tamgatest.Ours, "POST", phones+"/"+h.phone+"/confirm", "")
	h.OK(tamgatest.Ours, "POST", phones+"/"+h.phone+"/secondaryauth", "")
	h.assign("otpviasms?level=1")
	h.OK(tamgatest.Ours, "POST", "/ums/user/"+h.id+"/operationpolicy", "[2]")
	h.token = h.Token()

	// What waits when the new process begins: an operation that nobody was asked about, one with
	// a code, and one that is confirmed.
	created := func(process *tamgatest.Server) (id string) {
		t.Helper()
		var made struct{ Operation struct{ ID string } }
		status, answer, err := send(process, "/SignServer/api/v2/signature", h.token, v2Order)
		if err != nil || json.Unmarshal(answer, &made) != nil || made.Operation.ID == "" {
			t.Fatalf("%d %s, %v", status, answer, err)
		}
		return made.Operation.ID
	}
	asked := func(process *tamgatest.Server, id string) (ref, code string) {
		t.Helper()
		// The title of a challenge was an object in the earlier release, and is not read here.
		var first struct {
			Challenge *struct{ ContextData struct{ RefID string } }
		}
		status, text, err := send(process, "/STS/v2.0/confirmation", h.token, h.begin(fmt.Sprintf(`,"OperationId":%q`, id)))
		if err != nil || json.Unmarshal(text, &first) != nil || first.Challenge == nil {
			t.Fatalf("%d %s, %v", status, text, err)
		}
		return first.Challenge.ContextData.RefID, h.Code(h.phone)
	}
	waiting := created(older)
	challenged := created(older)
	ref, code := asked(older, challenged)
	confirmed := created(older)
	confirmedRef, confirmedCode := asked(older, confirmed)
	token := h.confirm(older, confirmedRef, confirmedCode)
	if token == "" {
		t.Fatal("the earlier release did not confirm")
	}

	newer := h.Another()
	// once has both processes carry an operation out at the same time, twice.
	once := func(name, id, token string) {
		t.Helper()
		if token == "" {
			t.Errorf("%s: not confirmed", name)
			return
		}
		var mu sync.Mutex
		var signatures [][]byte
		var callers sync.WaitGroup
		for i := range 16 {
			callers.Go(func() {
				signature, status := h.execute([]*tamgatest.Server{older, newer}[i%2], token)
				mu.Lock()
				defer mu.Unlock()
				if signature != nil {
					signatures = append(signatures, signature)
				} else if status != 503 { // while another caller signs
					t.Errorf("%s: carrying out is answered %d", name, status)
				}
			})
		}
		callers.Wait()
		for _, process := range []*tamgatest.Server{older, newer} {
			signature, status := h.execute(process, token)
			if signature == nil {
				t.Errorf("%s: later %d", name, status)
			}
			signatures = append(signatures, signature)
		}
		for _, s := range signatures {
			if !bytes.Equal(s, signatures[0]) {
				t.Errorf("%s: two signatures left", name)
				break
			}
		}
		for _, state := range []string{"Confirmed", "Completed"} {
			if n := h.entries(id, state); n != 1 {
				t.Errorf("%s: %d entries %s, want one", name, n, state)
			}
		}
	}
	once("confirmed under the old process", confirmed, token)
	once("challenged under the old process", challenged, h.confirm(newer, ref, code))
	ref, code = asked(newer, waiting)
	once("created under the old process", waiting, h.confirm(older, ref, code))
	late := created(newer)
	ref, code = asked(older, late)
	once("created under the new process", late, h.confirm(newer, ref, code))

	for name, process := range map[string]*tamgatest.Server{"the old process": older, "the new process": newer} {
		status, answer, err := send(process, "/SignServer/api/documents", h.token, `{"Content":"cGF5","Signature":{"Type":"CMS","Parameters":{"IsDetached":"true"},"CertificateId":0}}`)
		if err != nil || status != 400 || !bytes.Contains(answer, []byte("authn_method_not_confirmed")) {
			t.Errorf("%s signs without a confirmation: %d %.200s, %v", name, status, answer, err)
		}
	}
}

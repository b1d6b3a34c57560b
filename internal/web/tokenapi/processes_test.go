// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// household is an installation over PostgreSQL with several processes, and the user demo, who
// confirms by SMS.
type household struct {
	*confirming
	db    *sql.DB
	token string
	path  string          // of its operations
	order json.RawMessage // with ForceConfirmation
}

func startHousehold(t *testing.T) (h *household, proxy *storetest.Proxy) {
	t.Helper()
	address := storetest.PostgreSQL(t).Database(t)
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	h = &household{confirming: &confirming{t: t, UMS: tamgatest.StartUMS(t, "--set", "database="+address, "--set", "messages.budgets.sms.recipient=0")}, db: db}
	h.id, h.phone = h.Dev.User.ID, "79250000077"
	phones := "/ums/user/" + h.id + "/phones"
	h.OK(tamgatest.Ours, "POST", phones, fmt.Sprintf("%q", h.phone))
	h.OK(tamgatest.Ours, "POST", phones+"/"+h.phone+"/confirm", "")
	h.OK(tamgatest.Ours, "POST", phones+"/"+h.phone+"/secondaryauth", "")
	h.assign("otpviasms?level=1")
	h.token = h.Token()
	h.path, h.order = "/api/v2/signature", json.RawMessage(v2Order)
	return h, storetest.NewProxy(t, address)
}

// challenged creates an operation and asks for its code.
func (h *household) challenged() (id, ref, code string) {
	h.t.Helper()
	var created struct{ Operation struct{ ID string } }
	status, answer := h.Call("POST", h.path, h.token, h.order)
	if json.Unmarshal(answer, &created) != nil || created.Operation.ID == "" {
		h.t.Fatalf("%d %s", status, answer)
	}
	id = created.Operation.ID
	first := h.ask("/v2.0/confirmation", "Bearer "+h.token, h.begin(fmt.Sprintf(`,"OperationId":%q`, id)))
	return id, first.Challenge.ContextData.RefID, h.Code(h.phone)
}

// send sends a request to one of the processes, which may be gone.
func send(process *tamgatest.Server, path, token, body string) (status int, answer []byte, err error) {
	request, err := http.NewRequest("POST", process.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// confirm answers a challenge, or polls without a code, and returns the confirmed token, "" for
// none.
func (h *household) confirm(process *tamgatest.Server, ref, code string) (token string) {
	body := h.poll(ref)
	if code != "" {
		body = h.answerTo(ref, code)
	}
	_, answer, err := send(process, "/STS/v2.0/confirmation", h.token, body)
	var got struct{ AccessToken string }
	if err != nil || json.Unmarshal(answer, &got) != nil {
		return ""
	}
	return got.AccessToken
}

// execute carries an operation out and returns the signature or the plaintext, nil for none.
func (h *household) execute(process *tamgatest.Server, token string) (signature []byte, status int) {
	status, answer, err := send(process, "/SignServer"+h.path, token, "{}")
	var got struct {
		Operation struct {
			Result struct{ ProcessedDocuments []struct{ Content []byte } }
		}
	}
	if err != nil || status != 200 || json.Unmarshal(answer, &got) != nil || len(got.Operation.Result.ProcessedDocuments) != 1 {
		return nil, status
	}
	return got.Operation.Result.ProcessedDocuments[0].Content, status
}

// entries counts the audit entries of a record with a state.
func (h *household) entries(id, state string) (n int) {
	h.t.Helper()
	err := h.db.QueryRow("SELECT COUNT(*) FROM audit WHERE operation = 'Confirmation' AND object = $1 AND detail LIKE $2", id, state+" %").Scan(&n)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// TestConfirmedByProcesses has 64 callers confirm and carry out the same operation at the
// same time, over three processes: it is confirmed once and signed once.
func TestConfirmedByProcesses(t *testing.T) {
	t.Parallel()
	h, _ := startHousehold(t)
	processes := []*tamgatest.Server{h.Server, h.Another(), h.Another()}
	id, ref, code := h.challenged()
	var mu sync.Mutex
	var confirmed int
	var signatures [][]byte
	var callers sync.WaitGroup
	begin := make(chan struct{})
	for i := range 64 {
		callers.Go(func() {
			process := processes[i%len(processes)]
			<-begin
			token := h.confirm(process, ref, code)
			if token == "" { // another caller was faster
				token = h.confirm(process, ref, "")
			}
			if token == "" {
				return
			}
			signature, status := h.execute(process, token)
			mu.Lock()
			defer mu.Unlock()
			if confirmed++; signature != nil {
				signatures = append(signatures, signature)
			} else { // a caller waits while another one signs
				t.Errorf("carrying out is answered %d", status)
			}
		})
	}
	close(begin)
	callers.Wait()
	if confirmed == 0 || len(signatures) == 0 {
		t.Errorf("%d tokens, %d signatures", confirmed, len(signatures))
	}
	for _, s := range signatures[1:] {
		if !bytes.Equal(s, signatures[0]) {
			t.Fatal("two signatures left")
		}
	}
	for _, state := range []string{"Confirmed", "Completed"} {
		if n := h.entries(id, state); n != 1 {
			t.Errorf("%d entries %s, want one", n, state)
		}
	}
}

// TestConfirmedAndKilled kills the process of a client between the confirmation, the
// signature and its record: in place of each second thing that it says to its database, of each tenth in the short form. At
// most one signature leaves, and the client gets it from another process. So it is with decryption.
func TestConfirmedAndKilled(t *testing.T) {
	t.Parallel()
	h, proxy := startHousehold(t)
	t.Run("signature", func(t *testing.T) { testConfirmedAndKilled(t, h, proxy, nil) })
	text := []byte("pay\n")
	d := &decrypting{h.confirming, h.token, text}
	h.path = "/api/v2/decryption"
	h.order = must(json.Marshal(object{"ForceConfirmation": true, "Decryption": object{"Type": 0},
		"BinaryData": []object{{"Content": d.encrypt(object{"Algorithm": "Magma"}, d.certificate("gost2012-256", false))}}}))
	t.Run("decryption", func(t *testing.T) { testConfirmedAndKilled(t, h, proxy, text) })
}

// testConfirmedAndKilled is TestConfirmedAndKilled for the operations of a household. want is their result, nil if it
// is another one each time.
func testConfirmedAndKilled(t *testing.T, h *household, proxy *storetest.Proxy, want []byte) {
	rounds, during, step := 0, 0, 2
	if testsize.Of() < testsize.Whole {
		step = 10
	}
	for n := 1; ; n += step {
		id, ref, code := h.challenged()
		mortal := h.Another("--set", "database="+proxy.URL)
		stopped := proxy.StopAt(n)
		type outcome struct {
			token     string
			signature []byte
		}
		done := make(chan outcome, 1)
		go func() {
			o := outcome{token: h.confirm(mortal, ref, code)}
			if o.token != "" {
				o.signature, _ = h.execute(mortal, o.token)
			}
			done <- o
		}()
		var first outcome
		ended := false
		select {
		case <-stopped:
			mortal.Kill()
			proxy.Resume()
			if first = <-done; first.signature != nil {
				t.Fatalf("round %d: a signature came from a process without a database", n)
			}
		case first = <-done:
			ended = true
			proxy.Resume()
			mortal.Kill()
		}
		before := h.entries(id, "Completed")
		if h.entries(id, "Confirmed") > before {
			during++
		}
		token := first.token
		// The answer was lost: the client polls, and sends the code again, until the database has noticed
		// that the process is dead.
		for try := 0; token == "" && try < 100; try++ {
			if token = h.confirm(h.Server, ref, ""); token == "" {
				token = h.confirm(h.Server, ref, code)
			}
		}
		// The client waits until the lease of the dead process has ended. Its last statement may reach the
		// database only now, so the lease is ended more than once.
		var signature []byte
		var status int
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			signature, status = h.execute(h.Server, token)
		}()
		for waits := true; waits; {
			if _, err := h.db.Exec("UPDATE operations SET leased_until = LEAST(leased_until, 1) WHERE id = $1", id); err != nil {
				t.Fatal(err)
			}
			select {
			case <-answered:
				waits = false
			case <-time.After(50 * time.Millisecond):
			}
		}
		if signature == nil {
			t.Fatalf("round %d: the other process answers %d", n, status)
		}
		if again, _ := h.execute(h.Server, token); !bytes.Equal(again, signature) || first.signature != nil && !bytes.Equal(first.signature, signature) {
			t.Fatalf("round %d: two signatures left", n)
		}
		if want != nil && !bytes.Equal(signature, want) {
			t.Fatalf("round %d: the result is %q, want %q", n, signature, want)
		}
		for _, state := range []string{"Confirmed", "Completed"} {
			if got := h.entries(id, state); got != 1 {
				t.Errorf("round %d: %d entries %s, want one", n, got, state)
			}
		}
		if rounds++; ended {
			break
		}
	}
	if rounds < 5 || during < 2 {
		t.Errorf("%d rounds, %d between confirmed and completed", rounds, during)
	}
	t.Logf("%d rounds, %d of them between confirmed and completed", rounds, during)
}

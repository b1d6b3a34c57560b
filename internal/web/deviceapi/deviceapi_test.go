// SPDX-License-Identifier: Apache-2.0

package deviceapi_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/device/message"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
	"tamga/internal/web/deviceapi"
	"tamga/internal/web/rest"
	"tamga/internal/web/umsapi"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

const (
	systemID = "6e1f3f64-8f0b-4a3e-9b57-0d6a0f3f7a01"
	phone    = "79261234567"
)

// world is a server with the operators' routes about devices and the devices' own.
type world struct {
	*httptest.Server
	t        testing.TB
	channels []notify.Channel
	code     string // activation code that was sent last
	paint    error
	userID   string
	other    string // a user the operator does not reach
	mu       sync.Mutex
	entries  []audit.Entry

	db        *store.DB
	approvals *device.Approvals
	confirm   *confirm.Service
	opened    int // documents
	closed    int
	later     time.Duration // by which the clock of confirmations is ahead
}

func (w *world) Available() []notify.Channel               { return w.channels }
func (w *world) Emit(context.Context, notify.Event) error  { return nil }
func (w *world) Call(context.Context, notify.Call) error   { return nil }
func (w *world) DevicesGone(context.Context, string) error { return nil }
func (w *world) EndAll(context.Context, string) error      { return nil }
func (w *world) Forgive(context.Context, string) error     { return nil }
func (w *world) Record(_ context.Context, e audit.Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entries = append(w.entries, e)
	return nil
}

func (w *world) Begin(ctx context.Context, e audit.Entry) func(context.Context) error {
	err := w.Record(ctx, e)
	return func(context.Context) error { return err }
}

func (w *world) Order(_ context.Context, d notify.Direct) error {
	if d.Template == notify.TemplateDeviceCode {
		w.code = d.Data["Code"]
	}
	return nil
}

func newWorld(t *testing.T, change ...func(*device.Settings)) *world {
	t.Helper()
	w := &world{t: t, channels: []notify.Channel{notify.Email, notify.SMS}}
	db := storetest.SQLite(t)
	ring, err := vault.NewRing("test", map[string][]byte{"test": make([]byte, vault.MasterKeySize)}, rand.Reader)
	must(t, err)
	naming, err := user.NewNaming(user.DefaultComponents(), false)
	must(t, err)
	accounts := store.Users{DB: db}
	users := &user.Service{
		Store: accounts, GroupStore: accounts, LoginStore: accounts, NameStore: accounts, SearchStore: accounts,
		Sessions: w, Confirmations: storetest.Unconfirmed{}, Events: w, Naming: naming, Now: time.Now, Rand: rand.Reader,
	}
	contacts := store.Contacts{DB: db}
	codes, err := contact.NewCodes(contact.DefaultSettings().Codes, contacts, ring, time.Now, rand.Reader)
	must(t, err)
	mux := http.NewServeMux()
	w.Server = httptest.NewServer(mux)
	t.Cleanup(w.Close)
	settings := device.DefaultSettings()
	settings.ServiceURL = w.URL + "/DssApiGateway"
	settings.Systems = []device.System{{ID: systemID, Name: "Tamga"}}
	for _, c := range change {
		c(&settings)
	}
	w.approvals, err = device.NewApprovals(settings, device.ApprovalDeps{
		Devices: store.Devices{DB: db}, Keys: store.Devices{DB: db}, Vault: ring, Users: users, Messages: w, Now: time.Now, Rand: rand.Reader,
	})
	must(t, err)
	records := store.Confirmations{DB: db}
	rules := confirm.DefaultSettings()
	rules.Methods = []string{"mydss"}
	w.confirm, err = confirm.New(rules, confirm.Deps{
		Store: records, Answers: records, Codes: contacts, Assigned: records, Devices: approvers{w.approvals},
		Messages: w, Vault: ring, Audit: w, Now: func() time.Time { return time.Now().Add(w.later) }, Rand: rand.Reader,
	})
	must(t, err)
	w.db = db
	devices, err := device.New(settings, device.Deps{
		Devices: store.Devices{DB: db}, KInits: store.Devices{DB: db}, Nonces: store.Devices{DB: db}, Keys: store.Devices{DB: db}, Browsers: store.Browsers{DB: db}, Vault: ring, Users: users, Contacts: contacts, Codes: codes, Messages: w, Methods: w, Confirmations: w.confirm,
		Paint: func(text string) ([]byte, error) { return []byte("GIF89a" + text), w.paint },
		Now:   time.Now, Rand: rand.Reader,
	})
	must(t, err)
	add := func(a user.Account) user.User {
		for _, g := range []string{"Default", "Other"} {
			if _, err := users.AddGroup(t.Context(), g, ""); err != nil && !fault.Is(err, fault.InvalidObjectState) {
				t.Fatal(err)
			}
		}
		u, err := users.Add(t.Context(), a)
		must(t, err)
		return u
	}
	operator := add(user.Account{Login: "operator", Operator: true, Groups: []string{"Default"}})
	w.userID = add(user.Account{Login: "petrov", Group: "Default"}).ID
	w.other = add(user.Account{Login: "other", Group: "Other"}).ID
	for value, confirmed := range map[string]bool{phone: true, "79260000000": false} {
		_, err := contacts.AddContact(t.Context(), contact.Contact{UserID: w.userID, Type: contact.PhoneNumber, Value: value, CreatedAt: time.Now()}, value, false)
		must(t, err)
		if confirmed {
			must(t, contacts.ConfirmContact(t.Context(), w.userID, contact.PhoneNumber, value))
		}
	}
	gate := &rest.Gate{
		Identify: func(_ context.Context, token string) (audit.Principal, error) {
			if token != "operator" {
				return audit.Principal{}, fault.New(fault.Unauthorized, "no")
			}
			return audit.Principal{UserID: operator.ID, Login: operator.Login, Operator: true}, nil
		},
		Permit: umsapi.New(users, nil, nil, nil, umsapi.Rules{Local: "realsts"}).Permit,
		Audit:  w, Log: slog.New(slog.DiscardHandler), Limits: rest.Limits{Ordinary: 1 << 20},
	}
	rest.Mount(mux, "/STS", gate, umsapi.DeviceRoutes(devices))
	rest.Mount(mux, "/DssApiGateway", gate, deviceapi.New(deviceapi.Deps{
		Devices: devices, Confirm: w.confirm, Documents: w, Readable: readable, Admit: func(string) error { return nil },
	}).Routes())
	return w
}

// readable is the largest document that a device may read, in bytes.
const readable = 100

// opened is a document of the world. closed counts.
type opened struct {
	*strings.Reader
	closed *int
}

func (o opened) Close() error { *o.closed++; return nil }

// ConfirmedDocument implements deviceapi.Documents.
func (w *world) ConfirmedDocument(_ context.Context, who audit.Principal, id string, index int, original bool) (deviceapi.Document, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened++
	return opened{strings.NewReader(fmt.Sprintf("%s %s %d %t", who.UserID, id, index, original)), &w.closed}, nil
}

// ask sends a request as the operator and returns the status and the body.
func (w *world) ask(method, path, body string) (int, []byte) {
	w.t.Helper()
	request, err := http.NewRequest(method, w.URL+path, strings.NewReader(body))
	must(w.t, err)
	request.Header.Set("Authorization", "Bearer operator")
	response, err := http.DefaultClient.Do(request)
	must(w.t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(w.t, err)
	return response.StatusCode, answer
}

// mydss is ask below mydss of the user; the answer is parsed.
func (w *world) mydss(method, path, body string, want int) map[string]any {
	w.t.Helper()
	status, text := w.ask(method, "/STS/ums/user/"+w.userID+path, body)
	if status != want {
		w.t.Fatalf("%s %s: %d %s, want %d", method, path, status, text, want)
	}
	var answer map[string]any
	if len(text) > 0 {
		must(w.t, json.Unmarshal(text, &answer))
	}
	return answer
}

// gadget is a device.
type gadget struct {
	w      *world
	suite  *suite.Suite
	key    crypto.Signer
	spki   []byte
	kid    string
	number int64
}

func (w *world) gadget(s *suite.Suite) *gadget {
	w.t.Helper()
	key, err := s.Generate(rand.Reader)
	must(w.t, err)
	spki, err := x509gost.MarshalPublicKey(key.Public(), s)
	must(w.t, err)
	return &gadget{w: w, suite: s, key: key, spki: spki}
}

func (g *gadget) send(kind string, payload any) (int, message.Answer, string) {
	g.w.t.Helper()
	return g.w.post(kind, g.say(kind, payload))
}

// say makes the next message.
func (g *gadget) say(kind string, payload any) message.Signed {
	g.w.t.Helper()
	g.number++
	h := message.Header{Type: kind, Service: g.w.URL + "/DssApiGateway", Kid: g.kid, Number: g.number, Time: time.Now().Unix()}
	if kind == message.Register {
		h.Kid, h.Key = "", g.spki
	}
	m, err := message.Sign(h, payload, g.key, g.suite, rand.Reader)
	must(g.w.t, err)
	return m
}

// post sends a message to the address of a type.
func (w *world) post(kind string, m message.Signed) (int, message.Answer, string) {
	w.t.Helper()
	body, err := json.Marshal(m)
	must(w.t, err)
	response, err := http.Post(w.URL+"/DssApiGateway/v1/"+kind, "application/json", bytes.NewReader(body))
	must(w.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(w.t, err)
	var a message.Answer
	if response.StatusCode == 200 {
		must(w.t, json.Unmarshal(text, &a))
	}
	return response.StatusCode, a, string(text)
}

// TestDeviceOverHTTP takes a device through everything, as operator and device see it.
func TestDeviceOverHTTP(t *testing.T) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256} {
		t.Run(s.Name, func(t *testing.T) {
			w := newWorld(t)
			g := w.gadget(s)
			created := w.mydss("POST", "/mydss/init", `{"msisdn":"+7 926 123-45-67","SystemId":"`+systemID+`"}`, 200)
			keys(t, created, "KeyInfo", "QrCode", "QRCodeData")
			info := created["KeyInfo"].(map[string]any)
			keys(t, info, "EncryptedBlobs", "PublicKey", "Seed", "ActivationRequired", "ServiceUrl", "Alias",
				"Uid", "Kid", "DeviceName", "NotBefore", "NotAfter", "State", "UserName", "Profile", "NonceRequired")
			kid := info["Kid"].(string)
			if info["State"] != "Active" || info["ActivationRequired"] != true || info["Uid"] != w.userID || info["UserName"] != "petrov" {
				t.Errorf("the key is %v", info)
			}
			text := created["QRCodeData"].(string)
			if picture, err := base64.StdEncoding.DecodeString(created["QrCode"].(string)); err != nil || string(picture) != "GIF89a"+text {
				t.Errorf("the picture is %q, %v", picture, err)
			}
			var raw map[string]any
			must(t, json.Unmarshal([]byte(text), &raw))
			keys(t, raw, "type", "version", "data")
			keys(t, raw["data"].(map[string]any), "kid", "uid", "service_url", "key_content", "activation_required", "weakness")
			got := w.mydss("POST", "/mydss/init/get", "", 200)
			if d := cmp.Diff(created, got); d != "" {
				t.Errorf("got again it is another: %s", d)
			}

			q, err := message.ParseQR(text)
			must(t, err)
			content, err := message.ReadSecret(q.(message.KInit).Data.KeyContent)
			must(t, err)
			status, a, _ := g.send(message.Register, message.Registration{
				KInit:  &message.KInitAnswer{Kid: kid, Proof: message.KInitProof(content, kid, g.spki), Code: w.code},
				Device: message.About{Name: "Phone"},
			})
			if status != 200 || a.Kid != kid || a.UID != w.userID || a.State != "NotVerified" || a.PollAfter != 5 {
				t.Fatalf("registered: %d %+v", status, a)
			}
			g.kid = kid

			verification := w.mydss("POST", "/mydss/verify/get", `{"Kid":"`+kid+`"}`, 200)
			keys(t, verification, "QrCode", "QrCodeData", "Data")
			data := verification["Data"].(map[string]any)
			keys(t, data, "type", "version", "data")
			keys(t, data["data"].(map[string]any), "kid", "uid", "service_url", "seed", "nonce")
			q, err = message.ParseQR(verification["QrCodeData"].(string))
			must(t, err)
			v := q.(message.Verification).Data
			nonce, err := message.ReadSecret(v.Nonce)
			must(t, err)
			seed, err := base64.RawURLEncoding.DecodeString(v.Seed)
			must(t, err)
			status, a, _ = g.send(message.Verify, message.VerificationAnswer{Proof: message.VerificationProof(nonce, seed, kid, g.spki)})
			if status != 200 || a.State != "Active" {
				t.Fatalf("verified: %d %+v", status, a)
			}
			for _, method := range []string{"GET", "POST"} {
				info := w.mydss(method, "/mydss", "", 200)
				keys(t, info, "UserId", "Keys", "InitializationToken")
				list := info["Keys"].([]any)
				if len(list) != 1 || list[0].(map[string]any)["State"] != "Active" || list[0].(map[string]any)["NonceRequired"] != false {
					t.Errorf("%s says %v", method, info)
				}
			}

			status, a, _ = g.send(message.Push, message.PushAddress{Address: "token", OSType: 2, SystemID: systemID})
			if status != 200 || !a.PushListed {
				t.Errorf("push: %d %+v", status, a)
			}
			checkPush(t, w, kid)

			blocked := w.mydss("POST", "/mydss/lockout", `{"Kid":`+kid+`,"Lock":true}`, 200) // the number as a number
			keys(t, blocked, "Uid", "Kid", "DeviceName", "NotBefore", "NotAfter", "State", "UserName", "Profile", "NonceRequired")
			if blocked["State"] != "Blocked" || blocked["DeviceName"] != "Phone" {
				t.Errorf("blocked it is %v", blocked)
			}
			if status, _, _ := g.send(message.Poll, struct{}{}); status != 403 {
				t.Errorf("a blocked device: %d", status)
			}
			w.mydss("POST", "/mydss/lockout", `{"Kid":"`+kid+`","Lock":"False"}`, 200)
			w.mydss("POST", "/mydss/lockout", `{"Kid":"`+kid+`"}`, 400)
			status, _, text = g.send(message.Poll, struct{}{})
			if status != 200 || !strings.Contains(text, `"operations":[]`) {
				t.Errorf("poll: %d %s", status, text)
			}
			w.mydss("POST", "/mydss/delete", `{"Kid":"`+kid+`"}`, 200)
			if status, _, _ := g.send(message.Poll, struct{}{}); status != 401 {
				t.Errorf("a deleted device: %d", status)
			}
			// A second device, unassigned at first.
			g.kid = ""
			_, a, _ = g.send(message.Register, message.Registration{})
			g.kid = a.Kid
			assigned := w.mydss("POST", "/mydss/assign", `{"Kid":"`+a.Kid+`"}`, 200)
			if assigned["State"] != "NotVerified" || assigned["NonceRequired"] != true {
				t.Errorf("assigned it is %v", assigned)
			}
			if blocked := w.mydss("POST", "/mydss/lockout", `{"Kid":"`+a.Kid+`","Lock":true}`, 200); blocked["State"] != "NotVerified,Blocked" {
				t.Errorf("blocked it is %v", blocked)
			}
			w.mydss("DELETE", "/mydss", "", 200)
			if status, _, _ := g.send(message.Leave, struct{}{}); status != 401 {
				t.Errorf("one of all that were deleted: %d", status)
			}
			for _, e := range w.entries {
				if e.Operation == "PollDevice" {
					t.Error("a poll is in the audit log")
				}
				if e.Operation == "VerifyDevice" && e.Phase == audit.Done && (e.Object != kid || e.Principal.Login != "petrov" || e.Principal.Method != "mydss") {
					t.Errorf("the audit log has %+v", e)
				}
			}
		})
	}
}

// checkPush walks the operations on push addresses.
func checkPush(t *testing.T, w *world, kid string) {
	t.Helper()
	const address = `{"Address":"token","OsType":2,"SystemId":"` + systemID + `"}`
	want := map[string]any{
		"PushAddress": map[string]any{"Address": "token", "OsType": 2.0, "SystemId": systemID},
		"SystemId":    systemID, "SystemName": "Tamga", "Kid": kid, "DeviceName": "Phone", "State": "Active", "ExtendedInfo": nil,
		"DataSource": "All", "Type": "PushAddress", "Contact": address,
		"Confirmed": true, "Primary": false, "Notification": true, "Usages": nil,
	}
	list := func(path string, want ...map[string]any) {
		t.Helper()
		status, text := w.ask("GET", "/STS/ums/user/"+w.userID+"/pushaddress"+path, "")
		var got []map[string]any
		if err := json.Unmarshal(text, &got); err != nil || status != 200 {
			t.Fatalf("%s: %d %s", path, status, text)
		}
		if want == nil {
			want = []map[string]any{}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}
	for _, path := range []string{"/true", "/false", "", "/", "?DataSource=all&ActiveOnly=true", "?dataSource=All", "?DataSource=Tokens", "?DataSource=tokens&ActiveOnly=true"} {
		list(path, want)
	}
	w.mydss("GET", "/pushaddress?DataSource=some", "", 400)
	w.mydss("GET", "/pushaddress/some", "", 400)
	for method, notification := range map[string]string{"PATCH": "false", "POST": "True"} {
		want["Notification"] = notification == "True"
		if d := cmp.Diff(want, w.mydss(method, "/pushaddress/notification/"+notification, address, 200)); d != "" {
			t.Errorf("%s: %s", notification, d)
		}
	}
	want["Notification"] = true
	w.mydss("POST", "/pushaddress/notification/true", address, 200)
	w.mydss("POST", "/pushaddress/notification/maybe", address, 400)
	w.mydss("POST", "/pushaddress/notification/true", `{}`, 400)
	w.mydss("POST", "/pushaddress/notification/true", `{"Address":"other"}`, 400)
	if d := cmp.Diff(want, w.mydss("DELETE", "/pushaddress/", address, 200)); d != "" {
		t.Errorf("deleted: %s", d)
	}
	list("")
	w.mydss("DELETE", "/pushaddress", address, 400)
	want["Notification"], want["DataSource"] = false, "Tokens"
	list("?DataSource=Tokens", want)
	want["DataSource"] = "All"
	for _, method := range []string{"POST", "PATCH"} {
		if d := cmp.Diff(want, w.mydss(method, "/pushaddress/restore", `{"Address":"token","OsType":"2"}`, 200)); d != "" {
			t.Errorf("restored: %s", d)
		}
	}
	list("/true", want)
}

// TestErrorsOverHTTP: the error table of the specification with its statuses; which
// comes first is tested where it is decided.
func TestErrorsOverHTTP(t *testing.T) {
	init := func(body string) func(w *world) { return func(w *world) { w.mydss("POST", "/mydss/init", body, 200) } }
	begun := init(`{"Msisdn":"` + phone + `"}`)
	registered := func(w *world) {
		g := w.gadget(suite.ECDSAP256)
		_, a, _ := g.send(message.Register, message.Registration{})
		w.mydss("POST", "/mydss/assign", `{"Kid":"`+a.Kid+`"}`, 200)
	}
	for _, c := range []struct {
		path, body string
		adjust     func(*device.Settings)
		before     func(w *world)
		status     int
		code       string
	}{
		{"assign", `{"Kid":"1"}`, nil, nil, 400, "key_not_found"},
		{"assign", ``, nil, nil, 400, "key_not_found"},
		{"init/get", ``, nil, nil, 400, "key_not_found"},
		{"init/sendqr", `{"Email":"a@b.ru"}`, nil, nil, 400, "key_not_found"},
		{"sendqr", `{"Email":"a@b.ru"}`, nil, nil, 400, "key_not_found"},
		{"init/resendotp", `{}`, nil, nil, 400, "key_not_found"},
		{"init", `{}`, nil, begun, 400, "initialization_key_already_exists"},
		{"init", `{"Msisdn":"` + phone + `"}`, func(s *device.Settings) { s.Devices = 1 }, registered, 400, "maximum_tokens_count_exceeded"},
		{"init", `{"SystemId":"00000000-0000-4000-8000-000000000000"}`, nil, nil, 400, "invalid_system_id"},
		{"init", `{}`, nil, nil, 400, "invalid_contact_info"},
		{"init", `{"Email":"petrov"}`, nil, nil, 400, "invalid_contact_info"},
		{"init/resendotp", `{}`, nil, begun, 400, "invalid_contact_info"},
		{"init/sendqr", `{}`, nil, begun, 400, "invalid_contact_info"},
		{"init/sendqr", `{"Email":"petrov"}`, nil, begun, 400, "invalid_email"},
		{"sendqr", `{"Email":"petrov"}`, nil, begun, 400, "invalid_email"},
		{"init", `{"Msisdn":"` + phone + `"}`, nil, func(w *world) { w.channels = nil }, 400, "wrong_operation"},
		{"init", `{"Msisdn":"79269999999"}`, nil, nil, 400, "wrong_operation"},
		{"init/resendotp", `{"Msisdn":"79269999999"}`, nil, begun, 400, "wrong_operation"},
		{"init/sendqr", `{"Email":"a@b.ru"}`, nil, begun, 400, "wrong_operation"},
		{"init/sendqr", `{"Email":"a@b.ru"}`, func(s *device.Settings) { s.SendQR, s.ConfirmedContacts = false, false }, begun, 400, "wrong_operation"},
		{"init/delete", ``, nil, nil, 400, "wrong_operation"},
		{"init", `{"Msisdn":"79260000000"}`, nil, nil, 400, "contact_confirmation_required"},
		{"init/resendotp", `{"Msisdn":"79260000000"}`, nil, begun, 400, "contact_confirmation_required"},
		{"init", `{"Msisdn":"` + phone + `"}`, func(s *device.Settings) { s.InstallationLimit = 1 }, registered, 400, "invalid_license"},
		{"init", `{"Msisdn":"` + phone + `"}`, nil, func(w *world) { w.paint = errors.New("no ink") }, 500, "internal_error"},
		{"lockout", `{"Kid":"1","Lock":true}`, nil, nil, 400, "key_not_found"},
		{"verify/get", `{"Kid":"1"}`, nil, nil, 400, "key_not_found"},
		{"delete", `{"Kid":"1"}`, nil, nil, 400, "key_not_found"},
	} {
		t.Run(c.path+" "+c.code, func(t *testing.T) {
			var adjust []func(*device.Settings)
			if c.adjust != nil {
				adjust = append(adjust, c.adjust)
			}
			w := newWorld(t, adjust...)
			if c.before != nil {
				c.before(w)
			}
			for _, id := range []string{w.other, "00000000-0000-4000-8000-000000000000"} {
				status, body := w.ask("POST", "/STS/ums/user/"+id+"/mydss/"+c.path, c.body)
				if status != 404 || !strings.Contains(string(body), `"User not found"`) {
					t.Errorf("of another user: %d %s", status, body)
				}
			}
			got := w.mydss("POST", "/mydss/"+c.path, c.body, c.status)
			if got["error"] != c.code {
				t.Errorf("%s, want %s", got, c.code)
			}
		})
	}
	// The habits of a client that is out there, where no code is wanted.
	w := newWorld(t, func(s *device.Settings) { s.ActivationCodes = false })
	w.mydss("POST", "/mydss/init", `{"UserContactInfo":"`+phone+`","UserContactInfoType":"PhoneNumber"}`, 200)
}

// TestDeviceDoor: what is no message of a device.
func TestDeviceDoor(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		body string
		want int
	}{
		{``, 400}, {`{}`, 400}, {`[]`, 400}, {`{"protected":1}`, 400},
		{`{"protected":"e30","payload":"e30","signature":"e30"}`, 400},
		{`{"protected":"` + strings.Repeat("A", 1<<16) + `"}`, 413},
	} {
		for _, kind := range []string{"register", "verify", "push", "poll", "leave"} {
			response, err := http.Post(w.URL+"/DssApiGateway/v1/"+kind, "application/json", strings.NewReader(c.body))
			must(t, err)
			response.Body.Close()
			if response.StatusCode != c.want {
				t.Errorf("%s of %.40s: %d, want %d", kind, c.body, response.StatusCode, c.want)
			}
			if response.Header.Get("Date") == "" {
				t.Error("the answer does not tell the time")
			}
		}
	}
}

// keys compares the keys of an object.
func keys(t *testing.T, got map[string]any, want ...string) {
	t.Helper()
	wanted := map[string]bool{}
	for _, k := range want {
		wanted[k] = true
	}
	had := map[string]bool{}
	for k := range got {
		had[k] = true
	}
	if !reflect.DeepEqual(had, wanted) {
		t.Errorf("the object has the keys %v, want %v", had, wanted)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/oath/otp"
	"tamga/internal/domain/oath/stock"
	"tamga/internal/domain/user"
	"tamga/internal/judge"
)

// oathBench is a bench with an operator, a user and tokens in stock.
type oathBench struct {
	*bench
	t    testing.TB
	op   audit.Principal
	user string
	keys map[string]*otp.Key
}

const period = 30 * time.Second

func newOathBench(t testing.TB) *oathBench { return newOathBenchOn(t, newBench(t)) }

func newOathBenchOn(t testing.TB, on *bench) *oathBench {
	b := &oathBench{bench: on, t: t, keys: map[string]*otp.Key{}}
	b.op = b.operator(t, "op", "Default")
	b.user = b.register(t, b.op, map[user.IdentifierType]string{user.Login: "petrov"})
	for i, a := range []otp.Algorithm{otp.SHA1, otp.SHA256, otp.SHA512, otp.Streebog256, otp.Streebog512} {
		b.stock(stock.Token{Serial: fmt.Sprintf("H%d", i), Algorithm: a, Digits: 6 + i%3, Counter: int64(100 * i)})
		b.stock(stock.Token{Serial: fmt.Sprintf("T%d", i), Time: true, Algorithm: a, Digits: 6 + i%3, Period: period})
	}
	return b
}

// stock puts a token with a secret at random into the stock.
func (b *oathBench) stock(t stock.Token) {
	b.t.Helper()
	t.Secret = make([]byte, 32)
	rand.Read(t.Secret)
	if known, err := b.ImportTokens(b.t.Context(), []stock.Token{t}); err != nil || len(known) > 0 {
		b.t.Fatal(known, err)
	}
	var err error
	if b.keys[t.Serial], err = otp.New(t.Algorithm, t.Digits, t.Secret); err != nil {
		b.t.Fatal(err)
	}
}

// at is the code a token shows at a step, or for TOTP so many steps from now.
func (b *oathBench) at(serial string, step int64) string {
	if serial[0] == 'T' {
		step += otp.Step(b.clock.Now(), period)
	}
	return b.keys[serial].Code(step)
}

// wrong is a code that a token shows nowhere near.
func (b *oathBench) wrong(serial string) string {
	return b.at(serial, 500_000)
}

func (b *oathBench) assign(serial string, codes ...string) error {
	t := oath.Codes{Serial: serial}
	if len(codes) > 0 {
		t.FirstOTP = codes[0]
	}
	if len(codes) > 1 {
		t.SecondOTP = codes[1]
	}
	return b.SetToken(b.t.Context(), b.op, b.user, t)
}

func (b *oathBench) sync(serial, first, second string) error {
	return b.SyncToken(b.t.Context(), b.op, b.user, oath.Codes{Serial: serial, FirstOTP: first, SecondOTP: second})
}

func (b *oathBench) check(code string) error {
	return b.CheckOneTimePassword(b.t.Context(), b.user, code)
}

// is fails the test unless err is the fault of a code, "" for none.
func (b *oathBench) is(what string, err error, want string) {
	b.t.Helper()
	if got := faultOf(err); got != want || err != nil && want == "" {
		b.t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func (b *oathBench) token() string {
	b.t.Helper()
	got, err := b.Token(b.t.Context(), b.op, b.user)
	if err != nil {
		return faultOf(err)
	}
	return got.Serial + " " + string(got.Type)
}

func TestTokens(t *testing.T) {
	b := newOathBench(t)
	for _, c := range []struct {
		name  string
		do    error
		fault string
		has   string
	}{
		{"nothing yet", nil, "", fault.KeyNotFound},
		{"no codes", b.assign("H0"), fault.InvalidParameters, fault.KeyNotFound},
		{"no serial", b.assign("", "123456"), fault.InvalidParameters, fault.KeyNotFound},
		{"an unknown serial", b.assign("X9", "123456"), fault.KeyNotFound, fault.KeyNotFound},
		{"a wrong code", b.assign("H0", b.wrong("H0")), fault.InvalidCode, fault.KeyNotFound},
		{"half a code", b.assign("H0", "1"), fault.InvalidCode, fault.KeyNotFound},
		{"the wrong second code", b.assign("H0", b.at("H0", 0), b.at("H0", 2)), fault.InvalidCode, fault.KeyNotFound},
		{"sync without a token", b.sync("", "123456", "123456"), fault.KeyNotFound, fault.KeyNotFound},
		{"remove without a token", b.RemoveToken(t.Context(), b.op, b.user), fault.KeyNotFound, fault.KeyNotFound},
		{"check without a token", b.check("123456"), fault.InvalidCode, fault.KeyNotFound},
	} {
		b.is(c.name, c.do, c.fault)
		if got := b.token(); got != c.has {
			t.Errorf("%s: %s, want %s", c.name, got, c.has)
		}
	}
	b.messages.events = nil
	for _, algorithm := range "01234" {
		h, T := "H"+string(algorithm), "T"+string(algorithm)
		first := int64(algorithm-'0') * 100
		b.is("assign "+h, b.assign(" "+strings.ToLower(h)+" ", b.at(h, first+3)), "")
		if got := b.token(); got != h+" HOTP" {
			t.Errorf("has %s", got)
		}
		b.is("the same code", b.check(b.at(h, first+3)), fault.InvalidCode)
		b.is("an earlier one", b.check(b.at(h, first+2)), fault.InvalidCode)
		b.is("the next", b.check(b.at(h, first+4)), "")
		b.is("the last of the window", b.check(b.at(h, first+14)), "")
		b.is("beyond the window", b.check(b.at(h, first+25)), fault.InvalidCode)
		b.is("sync in the wrong order", b.sync(h, b.at(h, first+26), b.at(h, first+25)), fault.InvalidCode)
		b.is("sync with one code", b.sync(h, b.at(h, first+26), ""), fault.InvalidParameters)
		b.is("sync of another token", b.sync(T, b.at(h, first+26), b.at(h, first+27)), fault.KeyNotFound)
		b.is("sync", b.sync("", b.at(h, first+500), b.at(h, first+501)), "")
		b.is("after it", b.check(b.at(h, first+502)), "")
		b.is("before it", b.check(b.at(h, first+400)), fault.InvalidCode)

		b.is("another instead", b.assign(T, b.at(T, 1)), "")
		if got := b.token(); got != T+" TOtp" {
			t.Errorf("has %s", got)
		}
		b.is("the same code", b.check(b.at(T, 1)), fault.InvalidCode)
		b.is("an earlier one", b.check(b.at(T, 0)), fault.InvalidCode)
		b.clock.add(2 * period)
		b.is("the next", b.check(b.at(T, 1)), "")
		b.is("the former token", b.check(b.at(h, first+503)), fault.InvalidCode)
		b.clock.add(time.Minute)
	}
	if got, _ := b.Tokens(t.Context(), oath.Query{Free: true, Limit: 100}); len(got) != 9 {
		t.Errorf("%d tokens are in stock, want 9", len(got))
	}
	b.is("remove", b.RemoveToken(t.Context(), b.op, b.user), "")
	if got := b.token(); got != fault.KeyNotFound {
		t.Errorf("has %s", got)
	}
	want := notify.Event{Type: notify.UserAccountChanged, UserID: b.user, Actor: b.op.UserID}
	factor := notify.Event{Type: notify.UserFactorChanged, UserID: b.user, Actor: b.op.UserID, Factor: notify.FactorToken}
	counts := map[notify.Event]int{}
	for _, e := range b.messages.events {
		counts[e]++
	}
	if d := cmp.Diff(map[notify.Event]int{want: 5*3 + 1, factor: 10}, counts); d != "" {
		t.Error(d)
	}
}

// Tokens of others: a token out of reach or of another user looks like an unknown one, and
// nothing is counted for it.
func TestTokensOfOthers(t *testing.T) {
	b := newOathBench(t)
	if _, err := b.users.AddGroup(t.Context(), "Other", ""); err != nil {
		t.Fatal(err)
	}
	foreign := b.operator(t, "foreign", "Other")
	theirs := b.register(t, foreign, map[user.IdentifierType]string{user.Login: "sidorov"})
	b.is("assign", b.assign("H0", b.at("H0", 0)), "")
	for _, serial := range []string{"H0", "none"} {
		err := b.SetToken(t.Context(), foreign, theirs, oath.Codes{Serial: serial, FirstOTP: b.at("H0", 1)})
		if err == nil || err.Error() != "key_not_found: Serial: there is no such token in stock" {
			t.Errorf("the token %s: %v", serial, err)
		}
	}
	for range 20 {
		b.is("set", b.SetToken(t.Context(), foreign, b.user, oath.Codes{Serial: "H0", FirstOTP: b.wrong("H0")}), fault.UserNotFound)
		b.is("sync", b.SyncToken(t.Context(), foreign, b.user, oath.Codes{FirstOTP: b.wrong("H0"), SecondOTP: "1"}), fault.UserNotFound)
		b.is("steal", b.SetToken(t.Context(), foreign, theirs, oath.Codes{Serial: "H0", FirstOTP: b.wrong("H0")}), fault.KeyNotFound)
	}
	for name, do := range map[string]func() error{
		"info":   func() error { _, err := b.Token(t.Context(), foreign, b.user); return err },
		"remove": func() error { return b.RemoveToken(t.Context(), foreign, b.user) },
		"app":    func() error { _, err := b.CreateAppToken(t.Context(), foreign, b.user); return err },
	} {
		b.is(name, do(), fault.UserNotFound)
	}
	b.is("the budget is whole", b.check(b.at("H0", 1)), "")
	b.is("an app belongs to one user", func() error {
		app, err := b.CreateAppToken(t.Context(), foreign, theirs)
		if err != nil {
			t.Fatal(err)
		}
		return b.assign(app.Serial, "123456")
	}(), fault.KeyNotFound)

	// What is deleted with its user: the app, not the token.
	if err := b.users.Delete(t.Context(), foreign, theirs, false); err != nil {
		t.Fatal(err)
	}
	if err := b.users.Delete(t.Context(), b.op, b.user, false); err != nil {
		t.Fatal(err)
	}
	if err := b.oathService.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := b.Tokens(t.Context(), oath.Query{Limit: 100})
	if err != nil || len(list) != 10 {
		t.Errorf("%d tokens are left, %v", len(list), err)
	}
	b.user = b.register(t, b.op, map[user.IdentifierType]string{user.Login: "petrova"})
	b.is("assigned again", b.assign("H0", b.at("H0", 1)), fault.InvalidCode)
	b.is("assigned again", b.assign("H0", b.at("H0", 2)), "")
}

// An app is set up by what the picture says, and its secret is told once.
func TestAppToken(t *testing.T) {
	b := newOathBench(t)
	b.is("a token before it", b.assign("H0", b.at("H0", 0)), "")
	app, err := b.CreateAppToken(t.Context(), b.op, b.user)
	if err != nil {
		t.Fatal(err)
	}
	if got := judge.ZBar(t).Read(app.QR, "gif"); got != app.URI {
		t.Errorf("the picture says %q, want %q", got, app.URI)
	}
	u, err := url.Parse(app.URI)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(app.Secret)
	if err != nil || len(secret) != 20 {
		t.Fatalf("%d bytes, %v", len(secret), err)
	}
	if d := cmp.Diff("otpauth totp /Tamga:petrov algorithm=SHA1&digits=6&issuer=Tamga&period=30&secret="+app.Secret, u.Scheme+" "+u.Host+" "+u.Path+" "+u.Query().Encode()); d != "" {
		t.Error(d)
	}
	if got := b.token(); got != app.Serial+" TOtp" || app.Type != oath.TOTP {
		t.Errorf("has %s", got)
	}
	if b.keys["Tapp"], err = otp.New(otp.SHA1, 6, secret); err != nil {
		t.Fatal(err)
	}
	b.is("check", b.check(b.at("Tapp", 0)), "")
	b.clock.add(period)
	b.is("set by its serial number", b.assign(app.Serial, b.at("Tapp", 0)), "")
	b.clock.add(period)
	b.is("sync", b.sync(app.Serial, b.at("Tapp", 50), b.at("Tapp", 51)), "")
	second, err := b.CreateAppToken(t.Context(), b.op, b.user)
	if err != nil || second.Serial == app.Serial || second.Secret == app.Secret {
		t.Errorf("the second app is the first: %v", err)
	}
	if list, _ := b.Tokens(t.Context(), oath.Query{Limit: 100}); len(list) != 11 {
		t.Errorf("%d tokens, want ten in stock and an app", len(list))
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, app); got != "oath.AppData" {
			t.Errorf("%s prints %s", verb, got)
		}
	}
	// A name is a label, whatever it holds, and never more than a picture takes.
	for _, login := range []string{"a:b&secret=x#?", strings.Repeat("я", 128), "Иван Петров"} {
		id := b.register(t, b.op, map[user.IdentifierType]string{user.Login: login})
		app, err := b.CreateAppToken(t.Context(), b.op, id)
		if err != nil {
			t.Errorf("%s: %v", login, err)
			continue
		}
		if u, err := url.Parse(app.URI); err != nil || strings.Count(u.Path, ":") != 1 || len(u.Query()) != 5 || u.Query().Get("secret") != app.Secret || u.Fragment != "" {
			t.Errorf("%s makes %s", login, app.URI)
		}
	}
}

// The method works with the token that is assigned; without one it opens nothing, and
// what was opened with another one ends.
func TestMethodNeedsToken(t *testing.T) {
	b := newOathBench(t)
	b.set(t, b.op, b.user, "oath")
	raw := func() string {
		t.Helper()
		data, err := b.RawData(t.Context(), b.op, b.user, []string{"oath"})
		if err != nil || len(data.Methods) != 1 {
			t.Fatal(data, err)
		}
		return fmt.Sprint(data.Methods[0].Confirmed, data.Methods[0].Parameters)
	}
	if got := raw(); got != "false []" {
		t.Errorf("without a token: %s", got)
	}
	b.is("assign", b.assign("T0", b.at("T0", 0)), "")
	if got := raw(); got != "true [{Serial T0} {Type TOtp}]" {
		t.Errorf("with a token: %s", got)
	}
	b.is("remove", b.RemoveToken(t.Context(), b.op, b.user), "")
	if got := raw(); got != "false []" {
		t.Errorf("after it: %s", got)
	}
}

// Class 27: nothing that is kept, answered or printed holds a secret.
func TestSeedsAreSealed(t *testing.T) {
	b := newOathBench(t)
	secret := bytes.Repeat([]byte("seed"), 8)
	if _, err := b.ImportTokens(t.Context(), []stock.Token{{Serial: "S1", Algorithm: otp.SHA1, Digits: 6, Secret: bytes.Clone(secret)}}); err != nil {
		t.Fatal(err)
	}
	k, err := otp.New(otp.SHA1, 6, secret)
	if err != nil {
		t.Fatal(err)
	}
	b.keys["S1"] = k
	b.is("assign", b.assign("S1", k.Code(0)), "")
	b.is("wrong", b.check(b.wrong("S1")), fault.InvalidCode)
	row, found, err := b.tokens().OathToken(t.Context(), "s1")
	if err != nil || !found {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%s %+v %+v", row.Sealed, row, b.messages)
	for _, form := range []string{string(secret), hex.EncodeToString(secret), base32.StdEncoding.EncodeToString(secret)[:20], fmt.Sprint(secret[:8])[1:20]} {
		if strings.Contains(text, form) {
			t.Errorf("the secret is there as %s", form)
		}
	}
}

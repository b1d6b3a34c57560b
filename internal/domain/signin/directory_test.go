// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/directory"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signin"
	tokens "tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// corporate is a directory that accepts one password and notes what it is asked.
type corporate struct {
	mu     sync.Mutex
	asked  []string // DN and password
	decoys int
	away   error
	begun  chan struct{} // gets each question that waits; see held
	held   chan struct{} // a question waits until it is closed; nil: it does not wait
	name   string        // "" is corp

	calls, waited int
	called        *sync.Cond
}

// wait waits for one more question: a local password that matches does not wait for the directory.
func (c *corporate) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.waited++; c.calls < c.waited; {
		c.called.Wait()
	}
}

// note counts a question, with mu held.
func (c *corporate) note() {
	c.calls++
	c.called.Broadcast()
}

func (c *corporate) Name() string { return cmp.Or(c.name, "corp") }

// hold waits while held says so.
func (c *corporate) hold() {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	if held != nil {
		select {
		case c.begun <- struct{}{}:
		case <-held:
		}
		<-held
	}
}

func (c *corporate) Check(_ context.Context, dn, entry, password string) (bool, error) {
	c.hold()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.note()
	c.asked = append(c.asked, dn+" "+entry+" "+password)
	return c.away == nil && password == "there-is-one", c.away
}

func (c *corporate) Decoy(context.Context) error {
	c.hold()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.note()
	c.decoys++
	return c.away
}

// TestPasswordOfDirectory signs in a user whose password is in a directory. Each attempt asks the directory once,
// also for other logins, and no password of another user is sent.
func TestPasswordOfDirectory(t *testing.T) {
	b := newBench(t)
	corp := &corporate{}
	corp.called = sync.NewCond(&corp.mu)
	grant := func(login, password string) error {
		_, err := b.grant(t.Context(), login, password)
		if password != "" {
			corp.wait()
		}
		return err
	}
	b.services = b.serviceWith(t, settings(), deps{Keys: b.keys, Directories: []signin.Directory{corp}})
	anna, err := b.users.Add(t.Context(), user.Account{Login: "anna", Group: "Default"})
	if err != nil {
		t.Fatal(err)
	}
	links := store.Directories{Users: store.Users{DB: b.db}}
	if err := b.GrantMethod(t.Context(), anna.ID, "password"); err != nil {
		t.Fatal(err)
	}
	if err := links.PutLink(t.Context(), "corp", directory.Link{UserID: anna.ID, Entry: "1", DN: "uid=anna"}); err != nil {
		t.Fatal(err)
	}
	try := func(login, password, want string) {
		t.Helper()
		corp.asked, corp.decoys = nil, 0
		err := grant(login, password)
		if got := code(t, err); got != want {
			t.Errorf("%s with %.20q: %v, want %q", login, password, err, want)
		}
	}
	wantAsked := func(asked string, decoys int) {
		t.Helper()
		if got := strings.Join(corp.asked, ", "); got != asked || corp.decoys != decoys {
			t.Errorf("asked %q and %d decoys, want %q and %d", got, corp.decoys, asked, decoys)
		}
	}
	try("anna", "there-is-one", "")
	wantAsked("uid=anna 1 there-is-one", 0)
	try("Anna", "another-one", tokens.InvalidGrant)
	wantAsked("uid=anna 1 another-one", 0)
	try("anna", "", tokens.InvalidGrant)
	wantAsked("", 0)
	try("unknown", "there-is-one", tokens.InvalidGrant)
	wantAsked("", 1)
	try("demo", "there-is-one", tokens.InvalidGrant)
	wantAsked("", 1)
	try("demo", secret, "")
	wantAsked("", 1)

	// A local password is neither set nor used.
	if err := b.SetPassword(t.Context(), anna.ID, "a local password"); !errors.Is(err, signin.ErrOfDirectory) {
		t.Errorf("a local password: %v", err)
	}

	// While the directory is away, wrong passwords of all have one answer, and local users sign in.
	corp.away = &fault.Outage{Part: "directory", Err: errors.New("no answer")}
	for _, x := range []struct{ login, password string }{{"anna", "there-is-one"}, {"anna", "another-one"}, {"unknown", "there-is-one"}, {"demo", "there-is-one"}} {
		if err := grant(x.login, x.password); !errors.Is(err, corp.away) {
			t.Errorf("%s while the directory is away: %v", x.login, err)
		}
	}
	try("demo", secret, "")
	corp.away = nil
	try("anna", "there-is-one", "") // ends the count

	// The limits are those of local passwords. A user who is locked out is not asked about.
	for range settings().Failures {
		try("anna", "another-one", tokens.InvalidGrant)
	}
	try("anna", "there-is-one", tokens.InvalidGrant)
	wantAsked("", 1)
	if err := b.users.Unlock(t.Context(), anna.ID); err != nil {
		t.Fatal(err)
	}
	try("anna", "there-is-one", "")
	if err := b.users.Lock(t.Context(), anna.ID); err != nil {
		t.Fatal(err)
	}
	try("anna", "there-is-one", tokens.InvalidGrant)
	wantAsked("", 1)
	if err := b.users.Unlock(t.Context(), anna.ID); err != nil {
		t.Fatal(err)
	}

	// Without the method, and of a directory that is in the configuration no more.
	if err := links.PutLink(t.Context(), "corp", directory.Link{UserID: b.demo.ID, Entry: "1"}); !errors.Is(err, directory.ErrLinked) {
		t.Errorf("two users of one entry: %v", err)
	}
	if err := b.WithdrawMethod(t.Context(), anna.ID, "password"); err != nil {
		t.Fatal(err)
	}
	try("anna", "there-is-one", tokens.InvalidGrant)
	wantAsked("", 1)
	b.services = b.serviceWith(t, settings(), deps{Keys: b.keys})
	if err := b.GrantMethod(t.Context(), anna.ID, "password"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.grant(t.Context(), "anna", "there-is-one"); code(t, err) != tokens.InvalidGrant {
		t.Error(err)
	}
}

// TestTwoDirectories has one directory away. A wrong password gets the same answer whichever directory has the user.
func TestTwoDirectories(t *testing.T) {
	b := newBench(t)
	directories := map[string]*corporate{}
	var list []signin.Directory
	for _, name := range []string{"first", "second"} {
		c := &corporate{name: name}
		c.called = sync.NewCond(&c.mu)
		directories[name], list = c, append(list, c)
	}
	b.services = b.serviceWith(t, settings(), deps{Keys: b.keys, Directories: list})
	links := store.Directories{Users: store.Users{DB: b.db}}
	for name := range directories {
		u, err := b.users.Add(t.Context(), user.Account{Login: "of-" + name, Group: "Default"})
		if err == nil {
			err = b.GrantMethod(t.Context(), u.ID, "password")
		}
		if err == nil {
			err = links.PutLink(t.Context(), name, directory.Link{UserID: u.ID, Entry: "1", DN: "uid=" + name})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	outage := &fault.Outage{Part: "directory", Err: errors.New("no answer")}
	for _, away := range []string{"", "first", "second"} {
		for name, c := range directories {
			if c.away = nil; name == away {
				c.away = outage
			}
		}
		for _, login := range []string{"of-first", "of-second", "demo", "unknown"} {
			_, err := b.grant(t.Context(), login, "another-one")
			for _, c := range directories {
				c.wait()
			}
			if away == "" && code(t, err) != tokens.InvalidGrant || away != "" && !errors.Is(err, outage) {
				t.Errorf("%q is away: %s: %v", away, login, err)
			}
		}
		for _, name := range []string{"first", "second"} {
			_, err := b.grant(t.Context(), "of-"+name, "there-is-one")
			for _, c := range directories {
				c.wait()
			}
			if away == name && !errors.Is(err, outage) || away != name && err != nil {
				t.Errorf("%q is away: a user of %s with the right password: %v", away, name, err)
			}
		}
	}
}

// TestSlowDirectory has more attempts than may wait for a directory. The others get an answer at once, and local users sign in. Such
// an attempt does not count for a user of the directory, which was not asked; it does for a user whose password is here.
func TestSlowDirectory(t *testing.T) {
	b := newBench(t)
	corp := &corporate{held: make(chan struct{}), begun: make(chan struct{})}
	corp.called = sync.NewCond(&corp.mu)
	b.services = b.serviceWith(t, settings(), deps{Keys: b.keys, Directories: []signin.Directory{corp}})
	anna, err := b.users.Add(t.Context(), user.Account{Login: "anna", Group: "Default"})
	if err == nil {
		err = b.GrantMethod(t.Context(), anna.ID, "password")
	}
	if err == nil {
		err = store.Directories{Users: store.Users{DB: b.db}}.PutLink(t.Context(), "corp", directory.Link{UserID: anna.ID, Entry: "1", DN: "uid=anna"})
	}
	if err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	for n := range signin.MostAsked {
		waiting.Go(func() {
			if _, err := b.grant(t.Context(), fmt.Sprint("unknown", n), "there-is-one"); code(t, err) != tokens.InvalidGrant {
				t.Errorf("an attempt that waited: %v", err)
			}
		})
		<-corp.begun // the derivations before it have ended: their number is bounded, too
	}
	for _, login := range []string{"unknown", "demo"} {
		_, err := b.grant(t.Context(), login, "another-one")
		if f, is := fault.As(err); !is || f.Code != fault.Unavailable || f.After <= 0 {
			t.Errorf("%s: %v", login, err)
		}
	}
	if _, err := b.grant(t.Context(), "demo", secret); err != nil {
		t.Errorf("a local user: %v", err)
	}
	for range settings().Failures + 1 {
		for _, x := range []struct{ login, password string }{{"anna", "there-is-one"}, {"anna", "another-one"}, {"demo", "another-one"}} {
			if _, err := b.grant(t.Context(), x.login, x.password); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s with %s: %v", x.login, x.password, err)
			}
		}
	}
	close(corp.held)
	waiting.Wait()
	if _, err := b.grant(t.Context(), "unknown", "there-is-one"); code(t, err) != tokens.InvalidGrant {
		t.Errorf("after the end: %v", err)
	}
	if _, err := b.grant(t.Context(), "anna", "there-is-one"); err != nil {
		t.Errorf("a user of the directory after the end: %v", err)
	}
	if _, err := b.grant(t.Context(), "demo", secret); code(t, err) != tokens.InvalidGrant {
		t.Errorf("a local user after many wrong passwords: %v", err)
	}
	// No place was lost.
	corp.mu.Lock()
	corp.held, corp.begun = make(chan struct{}), make(chan struct{})
	held := corp.held
	corp.mu.Unlock()
	for n := range signin.MostAsked {
		waiting.Go(func() { b.grant(t.Context(), fmt.Sprint("again", n), "there-is-one") })
		<-corp.begun
	}
	close(held)
	waiting.Wait()
}

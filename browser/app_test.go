// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// pushed is what the push service of a test got.
type pushed struct {
	authorization string
	body          []byte
}

// pushService is the push service of a browser, and the flags of a server that reaches it.
func pushService(t *testing.T) (address string, got chan pushed, flags []string) {
	t.Helper()
	got = make(chan pushed, 16)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- pushed{r.Header.Get("Authorization"), body}
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(s.Close)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.URL, got, []string{"--set", "messages.push.web.allow_networks=['127.0.0.1']", "--set", "messages.push.authorities_file=" + roots}
}

// subscribing replaces the push service of Chromium, which it has none of here: a page that subscribes gets an address and keys of
// the test.
const subscribing = `{
  const subscription = {
    endpoint: ENDPOINT, options: {}, unsubscribe: async () => { sessionStorage.removeItem('subscribed'); return true },
    getKey: name => Uint8Array.from(atob(({p256dh: PUBLIC, auth: SECRET})[name]), c => c.charCodeAt(0)).buffer,
  }
  PushManager.prototype.getSubscription = async () => sessionStorage.getItem('subscribed') ? subscription : null
  PushManager.prototype.subscribe = async options => {
    if (!options.userVisibleOnly || options.applicationServerKey.length !== 65) throw new Error('the options are wrong')
    sessionStorage.setItem('subscribed', 'yes')
    return subscription
  }
}`

// registration returns the identifier of the service worker of the window, as often as it is received.
func (b *tab) registration() <-chan serviceworker.RegistrationID {
	b.Helper()
	seen, latest := make(chan serviceworker.RegistrationID, 64), make(chan serviceworker.RegistrationID)
	if err := chromedp.Listen(b.ctx, func(event any) {
		if e, ok := event.(*serviceworker.EventWorkerRegistrationUpdated); ok {
			for _, r := range e.Registrations {
				if !r.IsDeleted && r.ScopeURL == b.URL+"/" {
					seen <- r.RegistrationID
				}
			}
		}
	}); err != nil {
		b.Fatal(err)
	}
	call(b, serviceworker.Enable, cdp.Empty{})
	go func() {
		id := <-seen
		for {
			select {
			case id = <-seen:
			case latest <- id:
			case <-b.ctx.Done():
				return
			}
		}
	}()
	return latest
}

// sibling opens another window of the same browser: its cookies and its service worker are those of b.
func (s *stage) sibling(b *tab) *tab {
	b.Helper()
	other := &tab{T: b.T, stage: s, look: b.look, statuses: true}
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithListener(other.hear))
	b.Cleanup(end)
	other.ctx = ctx
	other.run()
	return other
}

// TestApp installs the pages as an app, gets a message through the push service of the test and approves what it is about with a
// passkey.
func TestApp(t *testing.T) {
	service, got, flags := pushService(t)
	s := start(t, append(tamgatest.WithPasskeys(), flags...)...)
	b := s.tab(t, looks[2])
	b.authenticator()
	ums := tamgatest.NewUMS(s.Server)
	of := "/ums/user/" + s.Dev.User.ID
	b.signIn("/devices", s.Dev.User.Login, s.Dev.User.Password)
	b.fill(`form[action$="/passkey"] input[name=name]`, "Phone")
	b.press(`form[action$="/passkey"] button`)
	b.wait(`[data-passkey-start]`)
	b.press(`[data-passkey-start]`)
	b.wait(`button[popovertarget="passkey-0"]`)
	ums.OK(tamgatest.Ours, "POST", of+"/authmethod/passkey?level=1", "")
	ums.OK(tamgatest.Ours, "POST", of+"/operationpolicy", "[2]")

	// registration has the identifier of the service worker in this window as often as it is asked for.
	registration := b.registration()

	// Chromium finds nothing that keeps a person from installing it.
	b.open("/devices")
	manifest := call(b, page.GetAppManifest, page.GetAppManifestParams{})
	if len(manifest.Errors) > 0 || !strings.HasSuffix(manifest.URL, "/manifest/en") || !strings.Contains(manifest.Data, `"start_url"`) {
		t.Errorf("the manifest at %s has %+v", manifest.URL, manifest.Errors)
	}
	for _, e := range call(b, page.GetInstallabilityErrors, cdp.Empty{}).InstallabilityErrors {
		if e.ErrorID != "in-incognito" { // windows of tests have their own cookies
			t.Errorf("it cannot be installed: %s %v", e.ErrorID, e.ErrorArguments)
		}
	}
	b.until(`!!navigator.serviceWorker.controller`)

	// The person switches notifications on.
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte("0123456789abcdef")
	encoded := func(bytes []byte) string { return quote(base64.StdEncoding.EncodeToString(bytes)) }
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: strings.NewReplacer("ENDPOINT", quote(service+"/send/1"), "PUBLIC", encoded(key.PublicKey().Bytes()), "SECRET", encoded(secret)).Replace(subscribing),
	})
	_, err = chromedp.CallBrowser(b.ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: browser.PermissionSettingGranted, Origin: s.URL,
		BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.open("/devices")
	b.see("Notifications of this browser are off.")
	b.check("notifications-off")
	b.press(`form[data-subscribe] button`)
	b.see("Notifications of this browser are on.")
	b.see("This browser")
	b.check("notifications-on")

	// deliver hands a message that the push service got to the service worker, as the browser does with one that it has decrypted.
	deliver := func(text string) {
		t.Helper()
		call(b, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{Origin: s.URL, RegistrationID: <-registration, Data: text})
	}
	// next reads the next message with http_ece.
	next := func() string {
		t.Helper()
		select {
		case m := <-got:
			message, err := judge.Pushed(t, key, secret, m.body, m.authorization)
			if err != nil {
				t.Fatal(err)
			}
			return message.Text
		case <-b.ctx.Done():
			t.Fatal("no message came")
			return ""
		}
	}
	// shown waits for a notification with a text and returns the page that it opens.
	shown := func(text string) string {
		t.Helper()
		const all = `(async () => (await (await navigator.serviceWorker.ready).getNotifications()).filter(n => n.body === TEXT))()`
		of := strings.ReplaceAll(all, "TEXT", quote(text))
		for value[int](b, `(async () => (await `+of+`).length)()`) == 0 {
			b.pause("no notification says %s", text)
		}
		return value[string](b, `(async () => { const [n] = await `+of+`; n.close(); return n.data.to })()`)
	}
	b.press(`form[action$="/browser-try"] button`)
	b.see("The trial message is on its way.")
	deliver(next())
	if to := shown("Уведомления в этом браузере работают."); to != s.URL+"/confirm" { // messages are in the language of the installation
		t.Errorf("the trial opens %s", to)
	}
	deliver("no JSON") // is shown all the same
	shown("Something waits for your confirmation.")
	for _, path := range []string{"https://other.example/", "//other.example/", `/\\other.example/`, "javascript:alert(1)"} {
		deliver(`{"id":"1","title":"t","text":` + quote(path) + `,"path":` + quote(path) + `}`)
		if to := shown(path); to != s.URL+"/confirm" {
			t.Errorf("a message opens %s", to)
		}
	}

	// A signature that is begun at a desk is approved on this phone.
	desk := s.tab(t, looks[0])
	desk.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	desk.attach(`input[name=file]`, "contract.txt", "text")
	desk.press(`main form button:not([name]):not([type])`)
	desk.wait(`main a[href^="/confirm/"]`)
	at := value[string](desk, `document.querySelector('main a[href^="/confirm/"]').pathname`)
	message := next()
	if strings.Contains(message, "contract") {
		t.Errorf("the message names the document: %s", message)
	}
	deliver(message)
	to := shown("Операция ждёт вашего подтверждения.")
	if to != s.URL+at {
		t.Errorf("the notification opens %s, the operation is at %s", to, at)
	}
	b.open(strings.TrimPrefix(to, s.URL))
	b.see("contract.txt")
	b.press(`button[value=passkey]`)
	b.wait(`input[name=number]`) // which the page at the desk shows
	desk.open(at)
	desk.wait(`.number`)
	b.fill(`input[name=number]`, value[string](desk, `document.querySelector(".number").textContent`))
	b.press(`[data-passkey-start]`)
	b.wait(`main a[href^="/signed/document/"]`)
	desk.open(at)
	desk.see("Done")

	// The service worker keeps the shell alone, and what an older version kept goes. Two windows have the new one.
	b.open("/documents")
	kept := func() string {
		t.Helper()
		return value[string](b, `(async () => {
			const list = []
			for (const name of await caches.keys()) {
				for (const r of await (await caches.open(name)).keys()) list.push(new URL(r.url).pathname.replace(/-[0-9a-f]{12}/, ''))
			}
			return list.sort().join(' ')
		})()`)
	}
	const shell = "/assets/app-192.png /assets/tamga.css /offline/en /offline/ru"
	if k := kept(); k != shell {
		t.Errorf("the browser keeps %s", k)
	}
	value[bool](b, `(async () => {
		for (const r of await navigator.serviceWorker.getRegistrations()) await r.unregister()
		for (const name of await caches.keys()) await caches.delete(name)
		await (await caches.open('tamga-older')).put('/start', new Response('old'))
		return true
	})()`)
	b.open("/start")
	b.until(`!!navigator.serviceWorker.controller`)
	other := s.sibling(b)
	other.open("/start")
	other.until(`!!navigator.serviceWorker.controller`)
	for kept() != shell {
		b.pause("the browser keeps %s", kept())
	}

	// Without a server the app begins with a page that says so.
	for _, f := range append(b.findings(), desk.findings()...) {
		t.Error(f)
	}
	s.Stop()
	b.open("/start")
	b.see("No connection")
	b.picture("offline")
}

// TestNewerApp has two releases of the service worker at one address: the newer one replaces the older in two windows, and
// what the older one kept is gone.
func TestNewerApp(t *testing.T) {
	var target atomic.Pointer[url.URL]
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target.Load())
		r.Out.Host = r.In.Host
	}})
	defer front.Close()
	turn := func(s *tamgatest.Server) {
		to, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		target.Store(to)
	}
	s := start(t, "--set", "public_url="+front.URL, "--set", "pages.name=Older")
	newer := tamgatest.Start(t, "--set", "public_url="+front.URL, "--set", "pages.name=Newer")
	turn(s.Server)
	s.URL = front.URL
	b := s.tab(t, looks[0])
	b.open("/verify")
	b.until(`!!navigator.serviceWorker.controller`)
	other := s.sibling(b)
	other.open("/verify")
	other.until(`!!navigator.serviceWorker.controller`)
	const kept = `(async () => (await caches.keys()).join(' '))()`
	older := value[string](b, kept)
	if !strings.HasPrefix(older, "tamga-") || strings.Contains(older, " ") {
		t.Fatalf("the browser keeps %q", older)
	}
	turn(newer)
	value[bool](b, `(async () => { await (await navigator.serviceWorker.getRegistration()).update(); return true })()`)
	for {
		if now := value[string](b, kept); now != older && !strings.Contains(now, older) && now != "" {
			break
		}
		b.pause("the browser keeps %s", older)
	}
	// Both windows have the newer one, without being opened again, and its page without a network names it.
	const active = `(async () => (await (await fetch((await navigator.serviceWorker.getRegistration()).active.scriptURL)).text()).includes('Newer') && !!navigator.serviceWorker.controller)()`
	for _, window := range []*tab{b, other} {
		if !value[bool](window, active) {
			t.Error("a window has no newer service worker")
		}
	}
	front.Close()
	other.open("/verify")
	other.see("No connection")
	other.see("Newer")
}

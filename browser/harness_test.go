// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

func TestMain(m *testing.M) { tamgatest.Main(tests{m}) }

// tests ends the browser after the last test.
type tests struct{ all *testing.M }

func (t tests) Run() int {
	defer func() { quit() }()
	return t.all.Run()
}

// full reports whether the long forms run.
func full() bool { return testsize.Of() == testsize.Full }

// patience ends a test whose browser hangs. A busy machine is much faster.
const patience = 10 * time.Minute

// stage is a running "tamga serve --dev" and a Chromium.
type stage struct {
	*tamgatest.Server
	chromium context.Context
	axe      string
	pictures string // folder of the screenshots, empty: none are made
	foreign  string // a signature by a certificate of an unknown issuer; empty: the test has none
}

// start starts the server, and Chromium if no test has done so. More are further flags of the server.
func start(t *testing.T, more ...string) *stage {
	t.Helper()
	s := &stage{axe: judge.Axe(t), pictures: os.Getenv("TAMGA_SCREENSHOTS")}
	program := judge.Chromium(t)
	if s.pictures == "" && flag.Lookup("test.artifacts").Value.String() == "true" {
		s.pictures = t.ArtifactDir()
	}
	if s.pictures != "" {
		if err := os.MkdirAll(s.pictures, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.Server = tamgatest.Start(t, more...)
	var err error
	if s.chromium, err = chromium(program); err != nil {
		t.Fatalf("starting Chromium: %v", err)
	}
	return s
}

var (
	browserMu sync.Mutex
	running   context.Context // of the browser, nil before its start
	quit      = func() {}     // ends the browser
)

// chromium returns the context of the browser of all tests. Each window has its own cookies and its
// own cache, so that tests share nothing in it, and a start takes several seconds of processor time.
func chromium(program string) (context.Context, error) {
	browserMu.Lock()
	defer browserMu.Unlock()
	if running != nil {
		return running, nil
	}
	// Without a graphics card, drawing as if there was one takes longer.
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-gpu", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		end()
		stop()
		return nil, err
	}
	running, quit = ctx, func() {
		chromedp.Cancel(ctx) // waits until the files of the browser are deleted
		stop()
	}
	return ctx, nil
}

// look is how a person sees the pages.
type look struct {
	name     string
	language string
	width    int64
	phone    bool
	dark     bool
	noScript bool
}

// looks cover both languages, sizes and colour schemes. The long form has each with each.
var looks = []look{
	{name: "desktop-en", language: "en", width: 1280},
	{name: "desktop-ru", language: "ru", width: 1280, dark: true},
	{name: "phone-en", language: "en", width: 360, phone: true, dark: true},
	{name: "phone-ru", language: "ru", width: 360, phone: true},
}

// shortLooks are those of the short form: each language, width and colour scheme once.
var shortLooks = []look{looks[0], {name: "phone-ru-dark", language: "ru", width: 360, phone: true, dark: true}}

// moreLooks are further ones of the full size.
var moreLooks = []look{
	{name: "desktop-en-dark", language: "en", width: 1280, dark: true},
	{name: "desktop-ru-light", language: "ru", width: 1280},
	{name: "narrow-en", language: "en", width: 320, phone: true},
	{name: "narrow-ru", language: "ru", width: 320, phone: true, dark: true},
	{name: "wide-ru", language: "ru", width: 2560},
	{name: "no-script-en", language: "en", width: 1280, noScript: true},
}

// tab is a browser window of one person: its cookies are its own.
type tab struct {
	*testing.T
	*stage
	look   look
	people *people // nil: the test has none
	ctx    context.Context

	mu         sync.Mutex
	complaints []string // of the browser since they were last looked at
	statuses   bool     // complaints about statuses count, too
}

// tab opens a window.
func (s *stage) tab(t *testing.T, l look) *tab {
	t.Helper()
	b := &tab{T: t, stage: s, look: l, statuses: true}
	ctx, end := chromedp.NewContext(s.chromium, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.hear))
	t.Cleanup(end)
	b.ctx = ctx
	b.run() // opens the window
	b.ctx, end = context.WithTimeout(ctx, patience)
	t.Cleanup(end)
	scheme, height := "light", int64(800)
	if l.dark {
		scheme = "dark"
	}
	if l.phone {
		height = 740
	}
	call(b, log.Enable, cdp.Empty{})
	call(b, network.Enable, network.EnableParams{})
	call(b, audits.Enable, cdp.Empty{})
	call(b, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": l.language}})
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: height, DeviceScaleFactor: 1, Mobile: l.phone})
	call(b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: l.phone})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: l.noScript})
	return b
}

// call sends a command of the DevTools protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.Helper()
	r, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// hear gathers what the browser complains about.
func (b *tab) hear(event any) {
	complaint := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			complaint = "console: " + string(e.Type)
			for _, a := range e.Args {
				complaint += " " + string(a.Value) + a.Description
			}
		}
	case *runtime.EventExceptionThrown:
		complaint = "script: " + e.ExceptionDetails.Text
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceNetwork && !b.statuses {
			return
		}
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			complaint = fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *audits.EventIssueAdded:
		if d := e.Issue.Details.ContentSecurityPolicyIssueDetails; d != nil {
			complaint = fmt.Sprintf("policy: %s of %s", d.ViolatedDirective, d.BlockedURL)
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "data" && u.Scheme != "blob" && u.Scheme+"://"+u.Host != b.URL {
			complaint = "request to another host: " + e.Request.URL
		}
	}
	if complaint != "" {
		b.mu.Lock()
		b.complaints = append(b.complaints, complaint)
		b.mu.Unlock()
	}
}

// run carries out actions and ends the test if one fails. If the page is replaced between finding an
// element and the action on it, the actions begin again.
func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	err := chromedp.Do(b.ctx, actions...)
	for err != nil && strings.Contains(err.Error(), "Could not find node with given id") {
		b.pause("%v", err)
		err = chromedp.Do(b.ctx, actions...)
	}
	if err != nil {
		at, _ := chromedp.Run(b.ctx, chromedp.Location())
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`))
		b.Fatalf("%v\nat %s:\n%s", err, at, text)
	}
}

// open goes to a page and waits until it is loaded.
func (b *tab) open(path string) {
	b.Helper()
	b.navigate(b.URL + path)
}

func (b *tab) navigate(address string) {
	b.Helper()
	b.run(chromedp.Navigate(address))
}

// wait waits until the page has a visible element.
func (b *tab) wait(selector string) {
	b.Helper()
	b.run(chromedp.WaitVisible(chromedp.CSS(selector)))
}

// see waits until the page shows a text.
func (b *tab) see(text string) {
	b.Helper()
	b.until(`document.readyState === "complete" && document.body.innerText.includes(` + quote(text) + `)`)
}

// until waits until an expression is true on the page. A page that is being replaced has no
// answer and is asked again.
func (b *tab) until(expression string) {
	b.Helper()
	for {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		if err == nil && ok {
			return
		}
		b.pause("never true: %s (%v)", expression, err)
	}
}

// pause waits a moment. It ends the test with a message if the time of the window is over.
func (b *tab) pause(format string, values ...any) {
	b.Helper()
	if chromedp.Do(b.ctx, chromedp.Sleep(10*time.Millisecond)) != nil {
		b.Fatalf(format, values...)
	}
}

// value returns the value of an expression on the page.
func value[T any](b *tab, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// fill types a text into a field.
func (b *tab) fill(selector, text string) {
	b.Helper()
	b.run(chromedp.Clear(chromedp.CSS(selector)), chromedp.SendKeys(chromedp.CSS(selector), text))
}

// press clicks a button or a link.
func (b *tab) press(selector string) {
	b.Helper()
	b.run(chromedp.Click(chromedp.CSS(selector)))
}

// attach chooses files in a field. They are pairs of a name and a content.
func (b *tab) attach(selector string, files ...string) {
	b.Helper()
	dir := b.TempDir()
	var paths []string
	for i := 0; i+1 < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.WriteFile(path, []byte(files[i+1]), 0o600); err != nil {
			b.Fatal(err)
		}
		paths = append(paths, path)
	}
	b.run(chromedp.SetUploadFiles(chromedp.CSS(selector), paths))
}

// downloads lets the window save files and returns the folder they are saved to.
func (b *tab) downloads() string {
	b.Helper()
	dir := b.TempDir()
	_, err := chromedp.CallBrowser(b.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID, DownloadPath: dir,
	})
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

// signIn signs in through the sign-in page and stays at the page path.
func (b *tab) signIn(path, login, password string) {
	b.Helper()
	b.open(path)
	b.fillSignIn(login, password)
	b.until(`document.readyState === "complete" && location.pathname + location.search === ` + quote(path))
}

func quote(value any) string {
	quoted, _ := json.Marshal(value)
	return string(quoted)
}

// signature returns a detached signature of demo with a time stamp.
func (b *tab) signature(text string) string {
	b.Helper()
	return string(b.Signed("POST", "/api/documents", b.Token(), tamgatest.Request([]byte(text), "CAdES", b.Cert("gost2012-256", false).ID,
		tamgatest.Parameters{"CADESType": "T", "IsDetached": "True", "TSPAddress": b.Dev.TSPURL})))
}

// message returns an encrypted message for demo.
func (b *tab) message(text string, params map[string]any) string {
	b.Helper()
	file, err := os.ReadFile(b.Path(b.Cert("gost2012-256", false).PEM))
	if err != nil {
		b.Fatal(err)
	}
	block, _ := pem.Decode(file)
	return string(b.Signed("POST", "/api/documents/encrypt", b.Token(), map[string]any{
		"Content": []byte(text), "Encryption": map[string]any{"Certificates": [][]byte{block.Bytes}, "Parameters": params},
	}))
}

// saved waits until the browser has saved a file in a folder of downloads, and returns it.
func (b *tab) saved(dir, name string) string {
	b.Helper()
	for {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil && len(text) > 0 {
			return string(text)
		}
		b.pause("%s was not saved: %v", name, err)
	}
}

// barrier is a finding of axe-core.
type barrier struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// check judges the page in the window as it is, and keeps its picture under the name.
func (b *tab) check(name string) {
	b.Helper()
	b.until(`document.readyState === "complete"`)
	for _, f := range b.findings() {
		b.Errorf("%s: %s", name, f)
	}
	b.picture(name)
}

// findings returns what is wrong with the page in the window.
func (b *tab) findings() (list []string) {
	b.Helper()
	if b.look.noScript { // axe is a script, too
		call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: false})
		defer call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	}
	type judged struct {
		Language, Title string
		Width           int64
		Barriers        []barrier
	}
	// The text of axe comes with the call, since a page runs no script of others.
	found := value[judged](b, b.axe+`;axe.run(document, {resultTypes: ["violations"], selectors: false}).then(r => ({
		Language: document.documentElement.lang, Title: document.title, Width: document.documentElement.scrollWidth,
		Barriers: r.violations.map(v => ({ID: v.id, Help: v.help, Nodes: v.nodes.map(n => ({HTML: n.html, FailureSummary: n.failureSummary}))}))}))`)
	for _, f := range found.Barriers {
		for _, n := range f.Nodes {
			list = append(list, fmt.Sprintf("axe-core: %s: %s\n%s\n%s", f.ID, f.Help, n.HTML, n.FailureSummary))
		}
	}
	if found.Language != b.look.language {
		list = append(list, fmt.Sprintf("it is in the language %q, want %q", found.Language, b.look.language))
	}
	if found.Title == "" {
		list = append(list, "it has no title")
	}
	if found.Width > b.look.width {
		list = append(list, fmt.Sprintf("it is %d pixels wide in a window of %d", found.Width, b.look.width))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		list = append(list, "the browser complains: "+c)
	}
	b.complaints = nil
	return list
}

// picture keeps a picture of the whole page if there is a folder for it.
func (b *tab) picture(name string) {
	b.Helper()
	if b.pictures == "" {
		return
	}
	picture := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: new(true)}).Data
	file := filepath.Join(b.pictures, name+"-"+b.look.name+".png")
	if err := os.WriteFile(file, picture, 0o644); err != nil {
		b.Fatal(err)
	}
}

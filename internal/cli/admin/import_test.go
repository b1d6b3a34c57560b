// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/cli/program"
	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// importReport is the report of tamga import --json.
type importReport struct {
	DryRun  bool `json:"dry_run"`
	Refused []struct {
		Line               int
		Login, Field, Code string
		Reason             string
	}
	Report struct {
		Records, Added, Unchanged, Contacts, Certificates, Keys int
		Refused                                                 int `json:"refused_records"`
		Stopped                                                 string
	}
}

// importer imports into an installation.
type importer struct {
	*testing.T
	s     *tamgatest.Server
	flags []string
}

func newImporter(t *testing.T, database string) *importer {
	dir := t.TempDir()
	tamgatest.WriteFile(t, filepath.Join(dir, "master.key"), strings.Repeat("0123456789abcdef", 4)+"\n")
	config := tamgatest.WriteFile(t, filepath.Join(dir, "tamga.yaml"), "database: "+database+`
public_url: "http://sign.example.org"
certificates: {exportable: true}
master_keys: {active: "1", files: {"1": master.key}}
`)
	i := &importer{t, &tamgatest.Server{T: t}, []string{"--config", config}}
	i.s.MustRun("migrate", "--config", config)
	i.s.MustRun("group", "add", "Default", "--config", config)
	return i
}

// run imports a text from standard input, with a dry run before. Both reports must be equal but for the
// users that exist since.
func (i *importer) run(text string, flags ...string) importReport {
	i.Helper()
	before := i.state()
	dry := i.once(text, append([]string{"--dry-run"}, flags...)...)
	if after := i.state(); after != before {
		i.Fatalf("a dry run changed\n%s\nto\n%s", before, after)
	}
	real := i.once(text, flags...)
	if !dry.DryRun || real.DryRun {
		i.Error("the reports do not say which is the dry run")
	}
	dry.DryRun = false
	if a, b := fmt.Sprintf("%+v", dry), fmt.Sprintf("%+v", real); a != b {
		i.Errorf("the dry run reports\n%s\nand the run\n%s", a, b)
	}
	return real
}

func (i *importer) once(text string, flags ...string) (report importReport) {
	i.Helper()
	r := tamgatest.Run(i.Context(), text, slices.Concat([]string{"import", "-", "--json"}, flags, i.flags)...)
	if err := json.Unmarshal([]byte(r.Out), &report); err != nil {
		i.Fatalf("%v, %v:\n%s%s", err, r.Failure, r.Out, r.Err)
	}
	if failed := report.Report.Refused > 0 || report.Report.Stopped != ""; failed != (r.Code == 1) {
		i.Errorf("exit code %d of %+v", r.Code, report)
	}
	return report
}

// state is what an import may change.
func (i *importer) state() string {
	return i.s.MustRun(append([]string{"user", "list", "--json"}, i.flags...)...) + i.s.MustRun(append([]string{"audit", "--operation", "AddUser"}, i.flags...)...)
}

// refusals returns the refusals in short.
func refusals(r importReport) (list []string) {
	for _, x := range r.Refused {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", x.Line, x.Login, x.Field, x.Code)))
	}
	return list
}

// TestImport imports sound and hostile records, each after a dry run, and repeats them.
func TestImport(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		testImport(t, "sqlite:tamga.db")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		testImport(t, storetest.PostgreSQL(t).Migrated(t))
	})
}

func testImport(t *testing.T, database string) {
	i := newImporter(t, database)
	i.s.MustRun(append([]string{"user", "add", "taken", "--group", "Default", "--password-file", tamgatest.PasswordFile(t)}, i.flags...)...)
	text := "\ufefflogin;group;name;phone;phone_roles;email;dn.CN;dn.INN;locked\r\n" +
		"petrov;Default;Петров П. П.;8 926 123-45-67;primary confirmed notification codes;p@example.org;Петров;500100732259;\r\n" +
		"PETROV;Default;Петров П. П.;79261234567;;;;;\r\n" + // the same user
		"petrov;Default;Another;;;;;;\r\n" +
		"pеtrov;Default;mixed letters;;;;;;\r\n" + // the second letter is Cyrillic
		"taken;Nowhere;;;;;;;\r\n" +
		"sidorov;Nowhere;;;;;;;\r\n" +
		"ivanov;Default;;79261234567;;;;;\r\n" + // the phone of petrov
		"ivanov;Default;;79261234568;codes;;;;\r\n" +
		"ivanov;Default;;123;;;;;\r\n" +
		"ivanov;Default;;;;no address;;;\r\n" +
		"ivanov;Default;;;;;;77;\r\n" +
		"ivanov;Default;;79261234568;boss;;;;\r\n" +
		";Default;;;;;;;\r\n" +
		"79261234567;Default;;;;;;;\r\n" + // a phone that petrov signs in with
		"оса;Default;;;;;;;\r\n" +
		"oca;Default;;;;;;;\r\n" + // looks like the one before
		"ivanov;Default;Ivanov;;;i@example.org;;;true\r\n"
	want := []string{
		"4 petrov name invalid_object_state",
		"5 pеtrov login invalid_parameters",
		"6 taken group invalid_object_state",
		"7 sidorov group invalid_parameters",
		"8 ivanov phone duplicate_phone",
		"9 ivanov phone contact_confirmation_required",
		"10 ivanov phone invalid_phone",
		"11 ivanov email invalid_email",
		"12 ivanov dn invalid_parameters",
		"13 ivanov phone invalid_parameters",
		"14  login invalid_parameters",
		"15 79261234567 login duplicate_login",
		"17 oca login duplicate_login",
	}
	first := i.run(text)
	if got := refusals(first); !slices.Equal(got, want) {
		t.Errorf("refused\n%s", strings.Join(got, "\n"))
		for _, x := range first.Refused {
			t.Log(x)
		}
	}
	if x := first.Report; x.Records != 17 || x.Added != 3 || x.Unchanged != 1 || x.Contacts != 3 {
		t.Errorf("%+v", x)
	}
	users := i.state()
	if again := i.run(text); again.Report.Added != 0 || again.Report.Unchanged != 4 || len(again.Refused) != len(want) {
		t.Errorf("again: %+v", again)
	}
	if now := i.state(); now != users {
		t.Errorf("a repeated import changed\n%s\nto\n%s", users, now)
	}
	if !strings.Contains(users, "AddUser") || strings.Count(users, `"locked": true`) != 1 {
		t.Errorf("no audit entries, or no lock: %s", users)
	}
	// What was read before a break stays, and the report says so.
	broken := i.run(`[{"login":"early","group":"Default"},{"login":"late"`)
	if broken.Report.Added != 1 || !strings.Contains(broken.Report.Stopped, "line 1") {
		t.Errorf("%+v", broken)
	}
	text = i.s.TryCommand(append([]string{"import", "--group", "Default", tamgatest.WriteFile(t, filepath.Join(t.TempDir(), "x.csv"), "login,phone\nnew,1\n")}, i.flags...)...).Out
	if !strings.HasPrefix(text, "line 2 (new): phone: want 7 to 15 digits") || !strings.Contains(text, "1 records: 0 users added") {
		t.Error(text)
	}
}

// TestImportExamples imports the example files of docs/import.md.
func TestImportExamples(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"users.csv": "2 records: 2 users added with 3 contacts", "users.json": "2 records: 2 users added with 4 contacts"} {
		i := newImporter(t, "sqlite:tamga.db")
		out := i.s.MustRun(append([]string{"import", filepath.Join("..", "..", "..", "docs", "import", name)}, i.flags...)...)
		if !strings.HasPrefix(out, want) {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// TestImportCertificates binds certificates and imports keys.
func TestImportCertificates(t *testing.T) {
	t.Parallel()
	i := newImporter(t, "sqlite:tamga.db")
	run := func(args ...string) string { t.Helper(); return i.s.MustRun(append(args, i.flags...)...) }
	dir := t.TempDir()
	password := tamgatest.PasswordFile(t)
	run("user", "add", "source", "--group", "Default", "--password-file", password)
	run("cert", "issue", "source")
	// A certificate from elsewhere, and a key of another installation with the same authority.
	run("ca", "export", "-o", filepath.Join(dir, "roots.pem"))
	block, _ := pem.Decode(tamgatest.ReadFile(t, filepath.Join(dir, "roots.pem")))
	record := func(login string, certificates ...string) string {
		line, err := json.Marshal(map[string]any{"login": login, "group": "Default", "certificates": certificates})
		if err != nil {
			t.Fatal(err)
		}
		return string(line) + "\n"
	}
	der := base64.StdEncoding.EncodeToString(block.Bytes)
	report := i.run(record("anna", der) + record("anna", string(pem.EncodeToMemory(block))) + record("boris", der) + record("boris", "AAAA") +
		record("boris", "?") + record("boris", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n") + record("boris"))
	want := []string{"3 boris certificate invalid_object_state", "4 boris certificate invalid_certificate", "5 boris certificate invalid_parameters", "6 boris certificate invalid_parameters"}
	if got := refusals(report); !slices.Equal(got, want) || report.Report.Added != 2 || report.Report.Certificates != 1 || report.Report.Unchanged != 1 {
		t.Errorf("%q %+v", got, report)
	}
	// A key comes with its certificate, and is compared by the certificate.
	pair, wrong := filepath.Join(dir, "source.p12"), tamgatest.WriteFile(t, filepath.Join(dir, "wrong"), "wrong")
	run("key", "export", "1", "-o", pair, "--password-file", password)
	keyed := func(login string, key ...string) string {
		line, err := json.Marshal(map[string]any{"login": login, "group": "Default", "keys": []map[string]string{{"file": key[0], "password_file": key[1]}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(line) + "\n"
	}
	if got := refusals(i.run(keyed("vera", pair, password))); !slices.Equal(got, []string{"1 vera key invalid_object_state"}) { // it is the key of source
		t.Errorf("%q", got)
	}
	run("user", "delete", "source", "--yes")
	report = i.run(keyed("vera", pair, password) + keyed("vera", pair, password) + keyed("anna", pair, password) + keyed("gleb", pair, wrong) + keyed("gleb", wrong, password) + keyed("gleb", "missing.p12", password))
	want = []string{"3 anna key invalid_object_state", "4 gleb key invalid_parameters", "5 gleb key invalid_parameters", "6 gleb key"}
	if got := refusals(report); !slices.Equal(got, want) || report.Report.Keys != 1 || report.Report.Added != 1 || report.Report.Unchanged != 1 {
		t.Errorf("%q %+v", got, report)
	}
	if list := run("cert", "list", "vera"); !strings.Contains(list, "default") {
		t.Errorf("vera has %s", list)
	}
	if list := run("user", "certificate", "list", "anna"); strings.Count(list, "\n") != 1 {
		t.Errorf("anna has %s", list)
	}
}

// generated is an import file of many lines. It calls at before it hands out a line.
type generated struct {
	lines, next int
	at          func(line int)
	rest        []byte
}

func (g *generated) Read(b []byte) (int, error) {
	for len(g.rest) == 0 {
		switch {
		case g.next > g.lines:
			return 0, io.EOF
		case g.next == 0:
			g.rest = []byte("login,phone,phone_roles,email,dn.CN\n")
		default:
			g.at(g.next)
			g.rest = fmt.Appendf(nil, "user%d,7926%07d,primary confirmed,u%d@example.org,User %d\n", g.next, g.next, g.next, g.next)
		}
		g.next++
	}
	n := copy(b, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

// TestImportMany imports many lines in bounded memory, is broken off in the middle and repeated.
func TestImportMany(t *testing.T) {
	lines := 1200
	if testsize.Of() == testsize.Full {
		lines = 50_000
	}
	if os.Getenv("TAMGA_TEST_MILLION") != "" { // without the race detector: ten minutes of processor time with it for 100,000 lines
		lines = 1_000_000
	}
	i := newImporter(t, "sqlite:tamga.db")
	run := func(at func(cancel context.CancelFunc, line int)) (importReport, error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var out bytes.Buffer
		in := &generated{lines: lines, at: func(line int) { at(cancel, line) }}
		err := program.Run(ctx, tamgatest.Version, slices.Concat([]string{"import", "-", "--json", "--group", "Default"}, i.flags), in, &out, io.Discard)
		var report importReport
		if err := json.Unmarshal(out.Bytes(), &report); err != nil {
			t.Fatalf("%v: %s", err, &out)
		}
		return report, err
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var early, late uint64
	broken, err := run(func(cancel context.CancelFunc, line int) {
		switch line {
		case lines / 2:
			early = heap()
		case lines - 150: // a batch before the end
			late = heap()
			cancel()
		}
	})
	if err == nil || broken.Report.Stopped == "" || broken.Report.Added == 0 || broken.Report.Added >= lines {
		t.Errorf("broken off: %v, %+v", err, broken.Report)
	}
	if late > early+2<<20 {
		t.Errorf("%d bytes in the middle, %d at the end", early, late)
	}
	whole, err := run(func(context.CancelFunc, int) {})
	if err != nil || whole.Report.Unchanged != broken.Report.Added || whole.Report.Added+whole.Report.Unchanged != lines || len(whole.Refused) > 0 {
		t.Errorf("repeated: %v, %+v after %+v", err, whole.Report, broken.Report)
	}
}

// TestImportKilled kills an import in the middle of its lines. Each record before is there as a whole,
// and the same command adds the others.
func TestImportKilled(t *testing.T) {
	t.Parallel()
	i := newImporter(t, "sqlite:tamga.db")
	const lines, killed, refused = 450, 300, 130 // batches have 100 records
	read := func(last int) string {
		var text strings.Builder
		whole, err := io.ReadAll(&generated{lines: lines, at: func(int) {}})
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.SplitAfter(string(whole), "\n") {
			switch {
			case n > last:
			case n == refused:
				text.WriteString("a line, with a \" lost quote\n")
			default:
				text.WriteString(line)
			}
		}
		return text.String()
	}
	cmd := tamgatest.ProcessOf(t, slices.Concat([]string{"import", "-", "--group", "Default"}, i.flags)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	if _, err := io.WriteString(in, read(killed)); err != nil { // and no end of the file
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(said, fmt.Sprintf("line %d: ", refused+1)) {
		t.Fatalf("%q, %v", said, err)
	}
	// The batch with the refused line is in the database now.
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	report := i.once(read(lines), "--group", "Default").Report
	if report.Records != lines || report.Refused != 1 || report.Added+report.Unchanged != lines-1 || report.Unchanged < 199 || report.Unchanged > killed {
		t.Errorf("continued: %+v", report)
	}
}

// TestImportAudit checks that the audit log has the counts of an import that refused records, and that neither an
// unknown group nor a wrong number is found late.
func TestImportAudit(t *testing.T) {
	t.Parallel()
	i := newImporter(t, "sqlite:"+filepath.Join(t.TempDir(), "tamga.db"))
	const text = "login,dn.CN,dn.INN\nanna,Anna,12\nboris,Boris,500100732259\nvera,Vera,500100732258\n"
	r := tamgatest.Run(t.Context(), text, append([]string{"import", "-", "--group", "Nowhere"}, i.flags...)...)
	if r.Code != 1 || r.Out != "" || !strings.Contains(r.Failure.Error(), "--group Nowhere: there is no such group") {
		t.Errorf("an unknown group: %d, %v\n%s", r.Code, r.Failure, r.Out)
	}
	if got := refusals(i.once(text, "--group", "Default")); len(got) != 2 || got[0] != "2 anna dn invalid_parameters" || got[1] != "4 vera dn invalid_parameters" {
		t.Errorf("wrong numbers: %q", got)
	}
	out := i.s.MustRun(append([]string{"audit", "--operation", "ImportUsers", "--json"}, i.flags...)...)
	if !strings.Contains(out, `"outcome":"incomplete"`) || !strings.Contains(out, `"detail":"3 records: 1 added, 0 unchanged, 2 refused"`) {
		t.Errorf("the audit log has\n%s", out)
	}
	if got := i.once(text, "--group", "Default", "--any-numbers"); got.Report.Added != 2 || got.Report.Unchanged != 1 {
		t.Errorf("with --any-numbers: %+v", got.Report)
	}
}

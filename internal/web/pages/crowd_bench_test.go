// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// BenchmarkPages reads the pages of an installation with many users, one after the other, each
// until its last byte. It reports the 50th and the 99th percentile and the processor time of the
// server, which has a process of its own. The people whose pages are read are drawn at random.
//
//	TAMGA_BENCH_USERS=1000000 go test -run '^$' -bench Pages -benchtime 1000x -timeout 2h ./internal/web/pages
//
// TAMGA_BENCH_USERS is the number of users, 10,000 without it. TAMGA_BENCH_DATABASE is the address
// of an empty PostgreSQL database to use instead of a server of the benchmark. TAMGA_BENCH_KEEP is
// a folder that keeps the installations, since filling one takes longer than reading it: the next
// run with the same folder and database does not fill them again.
func BenchmarkPages(b *testing.B) {
	users := 10_000
	if text := os.Getenv("TAMGA_BENCH_USERS"); text != "" {
		var err error
		if users, err = strconv.Atoi(text); err != nil {
			b.Fatalf("TAMGA_BENCH_USERS: %v", err)
		}
	}
	folder := func(b *testing.B, engine string) string {
		if keep := os.Getenv("TAMGA_BENCH_KEEP"); keep != "" {
			return filepath.Join(keep, engine)
		}
		return b.TempDir()
	}
	b.Run("SQLite", func(b *testing.B) {
		dir := folder(b, "sqlite")
		readPages(b, dir, "sqlite:"+filepath.Join(dir, "tamga.db"), users)
	})
	b.Run("PostgreSQL", func(b *testing.B) {
		address := os.Getenv("TAMGA_BENCH_DATABASE")
		if address == "" {
			if os.Getenv("TAMGA_BENCH_KEEP") != "" {
				b.Fatal("TAMGA_BENCH_KEEP: a server of the benchmark keeps nothing; name a database in TAMGA_BENCH_DATABASE")
			}
			// As docs/operations.md advises: texts compare by their bytes.
			address = storetest.OwnPostgreSQL(b, "fsync=on", "max_wal_size=8GB", "shared_buffers=512MB").Database(b, "TEMPLATE template0 LC_COLLATE 'C'")
		}
		readPages(b, folder(b, "postgresql"), address, users, "--set", "database="+address)
	})
}

// readPages fills an installation and measures its pages.
func readPages(b *testing.B, dir, address string, users int, flags ...string) {
	flags = append(flags, "--set", "messages.budgets.sms.recipient=0", "--set", "users.second_operator=[gives_secret]", "--set", "certificates.approval=operator")
	var furnished struct{ Signed, Waiting, Change string } // pages of what furnish made
	kept := filepath.Join(dir, "furnished.json")           // written last
	if text, err := os.ReadFile(kept); err == nil {
		if err := json.Unmarshal(text, &furnished); err != nil {
			b.Fatal(err)
		}
	} else {
		server := tamgatest.StartProcess(b, dir, flags...)
		furnished.Signed, furnished.Waiting, furnished.Change = furnish(b, server)
		if err := server.Stop(); err != nil {
			b.Fatal(err)
		}
		fill(b, address, server.Dev.User.ID, server.Dev.Operator.ID, users)
		text, _ := json.Marshal(furnished)
		if err := os.WriteFile(kept, text, 0o600); err != nil {
			b.Fatal(err)
		}
	}

	server := tamgatest.StartProcess(b, dir, flags...)
	// The sessions begin after the restart: the address of the server is a new one.
	sessions := map[string]*pagetest.Browser{"anonymous": pagetest.New(b, server)}
	for name, who := range map[string][2]string{
		"demo": {server.Dev.User.Login, server.Dev.User.Password}, "all": {server.Dev.Operator.Login, server.Dev.Operator.Password}, "few": {tamgatest.TwoGroup, tamgatest.Password},
	} {
		sessions[name] = pagetest.New(b, server)
		sessions[name].SignIn("/start", who[0], who[1])
	}
	// Those with an even number may have a copy of a record whose sealed part only its first user can open.
	person := func() string { return pagetest.PersonAt(storetest.CrowdID(1 + 2*rand.IntN(users/2))) }
	// The searches begin after the operators.
	search := func(column, operation, value string) string {
		return "/operator/people?after=user&" + url.Values{"column0": {column}, "operation0": {operation}, "value0": {value}}.Encode()
	}
	today := time.Now().UTC()
	day := func(ago int) string { return today.AddDate(0, 0, -ago).Format(time.DateOnly) }
	for _, row := range []struct {
		who   string
		pages []string
	}{
		{"anonymous", []string{"/", "/verify", "/sign-in", "/reference", "/reference/GetUsers"}},
		{"demo", []string{
			"/start", "/sign", furnished.Signed, "/verify", "/confirm", furnished.Waiting, "/documents", "/signatures", "/signatures?q=nothing", "/encrypt", "/decrypt", "/verify/reports", "/certificates", "/certificates/1", "/certificates/request", "/devices", "/account",
			"/account/history", "/account/history?all=yes",
		}},
		{"all", []string{
			"/operator", "/operator/people", "/operator/people?after=user5", "/operator/people/new", "/operator/people/ID", "/operator/people/ID/history", "/operator/people/ID/lock",
			"/operator/people/ID/sign-in", "/operator/people/ID/certificates", "/operator/people/ID/devices", "/operator/people/ID/operations", "/operator/people/ID/rules", "/operator/people/ID/account",
			// The one search, by an operator of all groups: the goal is 200 ms. us and ex begin a word of each person.
			"/operator/people?q=user777", "/operator/people?q=us", "/operator/people?q=us+ex", "/operator/people?q=user7+example", "/operator/people?q=nobody",
			"/operator/people?q=8+(900)+000-07-77", "/operator/people?q=user777%40example.ru", "/operator/people/import", "/operator/audit?what=all", "/operator/audit?failed=yes", "/operator/audit?what=views",
			"/operator/requests", "/operator/operations", "/operator/approvals", furnished.Change, "/operator/groups", "/operator/groups?after=group+4", "/operator/groups/group-access?of=Default",
			"/operator/audit", "/operator/messages", "/operator/messages?state=dead", "/operator/messages?state=pending", "/operator/messages/preview",
			"/operator/tokens", "/operator/tokens?free=yes", "/operator/tokens/token-import", "/operator/webhooks", "/operator/webhooks/webhook-add",
			"/operator/services", "/operator/installation",

			search("Login", "Like", "nobody"), search("Login", "Equal", "user777"), search("Login", "Like", "7"), search("Rdn", "Like", "nobody"),
			search("PhoneNumber", "Like", "9999999"), search("PhoneNumber", "Equal", "79000000777"), search("Email", "Like", "nobody"), search("Email", "Equal", "user777@example.ru"),
			search("Group", "Equal", "large"), search("Group", "Equal", "group 77"), search("IsLocked", "Equal", "True"), search("AuthMethod", "Equal", "certificate"),
			search("CreateDate", "Equal", "2001-01-01"), search("LastLoginDate", "Equal", "2001-01-01"), search("PhoneNumberConfirmed", "Equal", "False"),
			search("EmailConfirmed", "Equal", "False"), search("TokenSerial", "Equal", "OATH-777"), search("TokenSerial", "Like", "nothing"), search("TokenType", "Equal", "TOTP"),
			"/operator/people?after=user&column0=Login&operation0=Like&value0=7&column1=IsLocked&operation1=Equal&value1=True&column2=Rdn&operation2=Like&value2=nobody",

			// Of those who go on searching.
			search("Login", "Like", "nobody") + "&far=yes", search("Rdn", "Like", "nobody") + "&far=yes", search("PhoneNumber", "Like", "9999999") + "&far=yes",
			search("Email", "Like", "nobody") + "&far=yes", search("IsLocked", "Equal", "True") + "&far=yes", search("CreateDate", "Equal", "2001-01-01") + "&far=yes",
			search("PhoneNumberConfirmed", "Equal", "False") + "&far=yes", "/operator/audit?far=yes&login=nobody",

			"/operator/audit?user=" + storetest.CrowdID(777), "/operator/audit?login=user777", "/operator/audit?login=nobody", "/operator/audit?operation=SignDocument",
			"/operator/audit?operation=Nothing", "/operator/audit?outcome=access_denied", "/operator/audit?outcome=nothing", "/operator/audit?since=" + day(1),
			"/operator/audit?until=" + day(5), "/operator/audit?since=" + day(7) + "&until=" + day(5), "/operator/audit?attempts=yes",
			"/operator/audit?operation=Nothing&until=" + day(5), "/operator/audit?user=" + server.Dev.User.ID + "&operation=Nothing",
		}},
		{"few", []string{
			"/operator", "/operator/people", "/operator/requests", "/operator/operations", "/operator/approvals", search("Login", "Like", "nobody"), search("Rdn", "Like", "nobody"),
			search("PhoneNumber", "Equal", "79000000777"), search("IsLocked", "Equal", "True"),
		}},
	} {
		for _, page := range row.pages {
			b.Run(row.who+page, func(b *testing.B) {
				who := sessions[row.who]
				read := func() time.Duration {
					at := strings.Replace(page, "/operator/people/ID", person(), 1)
					begin := time.Now()
					who.Shows(who.Get(at))
					return time.Since(begin)
				}
				read() // the first reader pays for caches
				times := make([]time.Duration, 0, b.N)
				used := server.ProcessorTime()
				for b.Loop() {
					times = append(times, read())
				}
				used = server.ProcessorTime() - used
				slices.Sort(times)
				b.ReportMetric(times[len(times)/2].Seconds()*1e3, "p50-ms")
				b.ReportMetric(times[len(times)*99/100].Seconds()*1e3, "p99-ms")
				b.ReportMetric(used.Seconds()*1e3/float64(len(times)), "server-ms")
			})
		}
	}
}

// furnish makes one of each thing that pages list, and returns the pages of what was signed, of
// what waits for the user demo and of a change that waits for a second operator.
func furnish(b *testing.B, server *tamgatest.Server) (signed, waiting, change string) {
	w := tamgatest.NewUMS(server)
	demo, ours := "/ums/user/"+w.Dev.User.ID, pagetest.Operator(w, w.Dev.Operator.Login)
	phone := demo + "/phones/79250000078"
	w.OK(tamgatest.Ours, "POST", demo+"/phones", `"79250000078"`)
	w.OK(tamgatest.Ours, "POST", phone+"/confirm", "")
	w.OK(tamgatest.Ours, "POST", phone+"/secondaryauth", "")
	w.OK(tamgatest.Ours, "POST", demo+"/authmethod/otpviasms?level=1", "")
	p := pagetest.New(b, server)
	p.SignIn("/start", w.Dev.User.Login, w.Dev.User.Password)
	files := []pagetest.File{{Field: "file", Name: "one.txt", Content: "one"}, {Field: "file", Name: "two.txt", Content: "two"}}
	signed = p.Shows(p.Upload("/sign", map[string]string{"certificate": "1"}, files...), ">Signed<").At.RequestURI()
	p.Shows(p.Post("/certificates/request", url.Values{"suite": {"gost2012-256"}, "name.2.5.4.3": {"Demo User"}}))
	w.OK(tamgatest.Ours, "POST", demo+"/operationpolicy", fmt.Sprintf("[%d, %d]", pagetest.BitSignDocument, pagetest.BitSignDocuments))
	waiting = p.Find(p.Shows(p.Upload("/sign", map[string]string{"certificate": "1"}, files...), "Waits for confirmation"), pagetest.ConfirmLink)[1]
	p.Shows(p.Post(waiting, url.Values{"choice": {"otpviasms"}}))

	var id string
	w.OK(tamgatest.Ours, "POST", "/ums/user", `{"Login":"waits"}`).Into(b, &id)
	ours.Is(ours.SendCommand(pagetest.PersonAt(id)+"/password-show", nil), 400, "another operator must approve this")
	change = ours.Find(ours.Shows(ours.Get("/operator/approvals")), regexp.MustCompile(`href="(/operator/approvals/[0-9a-f-]{36})"`))[1]
	ours.Shows(ours.Upload("/operator/tokens/token-import", map[string]string{"tokens": "serial,type,secret_hex\nH-1,HOTP,3132333435363738393031323334353637383930\n"}))
	return signed, waiting, change
}

// fill makes an installation of many users out of what furnish has made.
func fill(b *testing.B, address, demo, operator string, users int) {
	c := storetest.OpenCrowd(b, address)
	c.AddUsers(users)
	c.LetReach(operator, true)
	c.Do("INSERT INTO operator_groups (user_id, group_name) SELECT u.id, g.name FROM users u, user_groups g WHERE u.login = $1 AND g.name IN ('group 1', 'group 2', 'group 3')", tamgatest.TwoGroup)

	now := time.Now().UnixMilli()
	at := func(d time.Duration) string { return strconv.FormatInt(now+d.Milliseconds(), 10) }
	const day = 24 * time.Hour
	id := func(kind int) string {
		return fmt.Sprintf("'%08d-0000-4000-8000-' || CAST(100000000000 + i AS TEXT)", kind)
	}
	some := func(step int) string { return storetest.CrowdUser(fmt.Sprintf("i * %d %% %d", step, users)) } // a user of each copy
	own := "user_id = '" + demo + "'"
	ago := func(number int, span time.Duration) string { // spread over a span until now
		return fmt.Sprintf("%d - (%d - i) * %d", now, number, span.Milliseconds()/int64(number))
	}

	// A key and a certificate of each user. One of a hundred certificates is revoked.
	serial := c.Bytes("CAST(1000000000000 + i AS TEXT)")
	c.Copy("keys", own+" AND NOT has_pin", users, map[string]string{"id": id(1), "user_id": some(1)})
	c.Copy("issued_certificates", "serial IN (SELECT serial FROM certificates WHERE "+own+")", users, map[string]string{
		"serial": serial, "revoked_at": "CASE WHEN i % 100 = 0 THEN " + at(-day) + " ELSE 0 END",
	})
	c.Copy("certificates", own, users, map[string]string{"id": "", "user_id": some(1), "key_id": id(1), "serial": serial})
	c.Copy("certificate_requests", own+" AND status = 2", users, map[string]string{"id": "", "user_id": some(1), "status": "3", "key_id": id(1), "created_at": ago(users, 300*day)})
	c.Copy("certificate_requests", own+" AND status = 2", users/100, map[string]string{"id": "", "user_id": some(97), "key_id": "NULL", "created_at": ago(users/100, 10*day)})

	// Two entries of each user in the audit log, one of 200 about the user demo. The first entries
	// are older than their copies.
	operation := "CASE i % 10 WHEN 0 THEN 'SignDocument' WHEN 1 THEN 'SignDocument' WHEN 2 THEN 'GetCertificates' WHEN 3 THEN 'StartPage' WHEN 4 THEN 'LogOn' WHEN 5 THEN 'CreateRequest' ELSE 'IssueToken' END"
	number := "(i / 2 * 7919 % " + strconv.Itoa(users) + ")"
	who := "CASE WHEN i % 200 < 2 THEN '" + demo + "' ELSE " + storetest.CrowdUser(number) + " END"
	c.Copy("audit", "phase = 'done' AND outcome = 'ok' AND "+own, 2*users, map[string]string{
		"id": "", "at": ago(2*users, 30*day), "request_id": id(2), "operation": operation, "phase": "CASE WHEN i % 2 = 0 THEN 'attempt' ELSE 'done' END",
		"outcome": "CASE WHEN i % 2 = 0 THEN '' WHEN i % 101 = 0 THEN 'access_denied' ELSE 'ok' END", "object": "CASE WHEN i % 20 = 9 THEN " + who + " ELSE '' END",
		"user_id": who, "login": "'user' || CAST(" + number + " AS TEXT)",
	})
	c.Do("UPDATE audit SET at = $1 WHERE request_id NOT LIKE '%-0000-4000-8000-%'", now-(31*day).Milliseconds())

	// Operations and their confirmations: under way and ended.
	c.Copy("operations", own, users/5, map[string]string{"id": id(3), "user_id": some(5), "keep_until": at(30 * day), "created_at": ago(users/5, 30*day)})
	c.Copy("operations", own, users/200, map[string]string{
		"id": id(4), "user_id": some(199), "state": "'Confirmed'", "is_async": "TRUE", "keep_until": "0", "due_at": at(day), "complete_before": at(day), "created_at": ago(users/200, day),
	})
	c.Do("UPDATE confirmations SET due_at = $1, confirm_before = $1 WHERE ended_at = 0", now+day.Milliseconds())
	c.Copy("confirmations", own, users/5, map[string]string{"id": id(5), "ref_id": id(6), "user_id": some(5), "state": "'Completed'", "ended_at": at(-time.Hour), "created_at": ago(users/5, 30*day)})
	c.Copy("confirmations", own+" AND ended_at = 0", users/200, map[string]string{"id": id(7), "ref_id": id(8), "user_id": some(198), "due_at": at(day), "created_at": ago(users/200, day)})

	// Messages: sent, given up and waiting for their time.
	for _, m := range []struct {
		state, due, done string
		number           int
	}{{"sent", "0", at(-time.Hour), users / 2}, {"dead", "0", at(-time.Hour), users / 500}, {"pending", at(day), "0", users / 500}} {
		c.Copy("outbox", own, m.number, map[string]string{
			"id": "", "message_id": "'" + m.state + "-' || CAST(i AS TEXT)", "lane": id(9), "user_id": some(3), "state": "'" + m.state + "'", "due_at": m.due, "done_at": m.done,
			"expires_at": at(2 * day), "lease": "''", "leased_until": "0", "created_at": ago(m.number, day),
		})
	}

	// Tokens of one user in ten, and a stock.
	c.Copy("oath_tokens", "serial_key = 'H-1'", users/10, map[string]string{"serial_key": "'OATH-' || CAST(i AS TEXT)", "serial": "'OATH-' || CAST(i AS TEXT)", "user_id": some(10), "assigned_at": at(-day)})
	c.Copy("oath_tokens", "serial_key = 'H-1'", users/50, map[string]string{"serial_key": "'FREE-' || CAST(i AS TEXT)", "serial": "'FREE-' || CAST(i AS TEXT)"})
	// Changes of users in all groups that wait for a second operator.
	c.Copy("approval_requests", "ended_at = 0", users/2000, map[string]string{
		"id": id(10), "object": some(1999), "requester": "'operator-' || CAST(i % 5000 AS TEXT)", "digest": c.Bytes("CAST(i AS TEXT)"), "created_at": ago(users/2000, time.Hour), "expires_at": at(day),
	})
	c.Copy("documents", own+" AND state = 1", 1000, map[string]string{"id": id(11), "uploaded_at": ago(1000, 30*day), "expires_at": at(30 * day)})
	c.Copy("documents", own+" AND state = 1", users/2, map[string]string{"id": id(12), "user_id": some(2), "uploaded_at": ago(users/2, 30*day), "expires_at": at(30 * day)})
	c.Copy("access_tokens", "NOT revoked", users/10, map[string]string{"id": id(13), "user_id": some(10), "expires_at": at(day)})
	c.Settle()
}

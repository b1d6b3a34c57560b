// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/adapter/store"
	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
	"tamga/internal/files"
	"tamga/pki/x509gost"
)

// Times before the end of certificates at which the doctor warns.
const (
	serverCertificateWarning = 30 * 24 * time.Hour
	authorityWarning         = 365 * 24 * time.Hour
)

// files opens what the configuration names, and looks at modes.
func (e *examination) files(_ context.Context, name cli.Word) {
	faults := app.Inspect(e.conf)
	for _, f := range faults {
		e.findings = append(e.findings, cli.FaultFinding(name, f))
	}
	if len(faults) == 0 {
		e.ok(name, "all files that the configuration names can be read")
	}
	if info, err := os.Stat(e.file); err == nil && files.ModeOfOthers(info.Mode())&0o022 != 0 {
		e.fault(name, cli.Say("chmod go-w %s", e.file), "%s can be changed by other users", e.file)
	}
	seen := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(e.conf.MasterKeys.Files)) {
		// The service may get a copy of the file. Copies have modes of their own.
		named := e.conf.Path(e.conf.MasterKeys.Files[id])
		given := files.Credential(named)
		for _, file := range []string{given, named} {
			dir := filepath.Dir(file)
			if info, err := os.Stat(dir); err == nil && !seen[dir] && files.Replaceable(dir, info) {
				e.fault(name, cli.Say("chmod go-w %s", dir), "other users can replace files in %s, where a master key is", dir)
			}
			seen[dir] = true
		}
		if given != named && files.OpenToOthers(named) {
			e.fault(name, cli.Say("chmod 600 %s", named), "other users can read master key %s in %s", id, named)
		}
	}
}

// port checks that the address can be listened on, or that the service answers there.
func (e *examination) port(ctx context.Context, name cli.Word) {
	listener, err := net.Listen("tcp", e.conf.Listen)
	if err == nil {
		listener.Close()
		e.ok(name, "%s is free", e.conf.Listen)
		return
	}
	// systemd listens at a port below 1024. This user may not.
	forbidden := errors.Is(err, syscall.EACCES)
	if !forbidden && !errors.Is(err, syscall.EADDRINUSE) {
		e.listenFault(name, err)
		return
	}
	asking, cancel := context.WithTimeout(ctx, portTime)
	defer cancel()
	if _, asked := app.AskReady(asking, e.conf); asked != nil {
		if forbidden && errors.Is(asked, syscall.ECONNREFUSED) {
			e.listenFault(name, err)
			return
		}
		e.fault(name, cli.Say("find the program with: ss -ltnp; stop it, or set listen to another port"), "another program than this service has %s: %v", e.conf.Listen, asked)
		return
	}
	e.ok(name, "the service listens on %s", e.conf.Listen)
}

func (e *examination) listenFault(name cli.Word, err error) {
	e.fault(name, cli.Say("set listen to an address of this machine with a port that is free and, below 1024, allowed for this user; or let systemd listen: tamga.socket"), "listen: %v", err)
}

// portTime bounds the question whether the service has its port.
const portTime = 2500 * time.Millisecond

// leastFree is the free space of a disk below which the doctor warns.
const leastFree = 1 << 30

// disk writes to the disks and looks at their free space.
func (e *examination) disk(_ context.Context, name cli.Word) {
	dirs := app.Disks(e.conf)
	for _, setting := range slices.Sorted(maps.Keys(dirs)) {
		dir := app.Nearest(dirs[setting])
		free, known := app.FreeSpace(dir)
		if err := app.CheckDisk(dir); err != nil {
			switch {
			case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
				e.fault(name, cli.Say("make room, or move the directory to a larger disk"), "%s: nothing can be written to %s: %v", setting, dir, err)
			default:
				e.fault(name, cli.Say("give the directory to the user of the service, and mount its disk for writing"), "%s: nothing can be written to %s: %v", setting, dir, err)
			}
			continue
		}
		switch {
		case !known:
		case free < leastFree:
			e.warn(name, cli.Say("make room, or move the directory to a larger disk"), "%s: %s has %s of free space", setting, dir, files.Size(free))
		default:
			e.ok(name, "%s: %s has %s of free space", setting, dir, files.Size(free))
		}
	}
}

// proxies checks that the settings of TLS and of proxies fit to the public address.
func (e *examination) proxies(_ context.Context, name cli.Word) {
	u, err := url.Parse(e.conf.BaseURL())
	host, _, _ := net.SplitHostPort(e.conf.Listen)
	loopback := host == "localhost" || net.ParseIP(host).IsLoopback()
	switch {
	case err != nil:
	case u.Scheme == "https" && e.conf.TLS.CertificateFile == "" && len(e.conf.TrustedProxies) == 0:
		e.warn(name, cli.Say("name the proxy in trusted_proxies, so that limits by address see the clients and not the proxy"), "public_url is https, so a proxy has the TLS, but trusted_proxies is empty")
	case u.Scheme == "http" && e.conf.TLS.CertificateFile == "" && !loopback:
		e.fault(name, cli.Say("set tls.certificate_file and tls.key_file, or listen on loopback behind a proxy with TLS"), "passwords and PINs pass %s in the clear", e.conf.Listen)
	default:
		e.ok(name, "TLS and proxies fit to %s", e.conf.BaseURL())
	}
}

// production warns about settings that are for trying out.
func (e *examination) production(_ context.Context, name cli.Word) {
	before := len(e.findings)
	if e.conf.Users.FactorDelay == 0 {
		e.warn(name, cli.Say("set users.factor_delay: 24h"), "an operator can replace what a user signs in with at once")
	}
	if len(e.conf.Users.SecondOperator) == 0 {
		e.warn(name, cli.Say("set users.second_operator: [gives_secret, weakens_policy, deletes]"), "one operator alone can delete users and reset passwords")
	}
	if c := e.conf.Certificates; c.BuiltIn && c.Approval == "automatic" && !c.FixedNames {
		e.warn(name, cli.Say("set certificates.approval: operator, or certificates.fixed_names: true"), "users get certificates of the built-in authority in any name at once")
	}
	if e.conf.Messages.Capture {
		e.warn(name, cli.Say("remove messages.capture and configure a sender"), "messages are shown to every client instead of being sent")
	}
	if u, err := url.Parse(e.conf.BaseURL()); err == nil && u.Scheme == "http" {
		e.warn(name, cli.Say("serve public_url by https"), "people use %s without TLS", e.conf.BaseURL())
	}
	if len(e.findings) == before {
		e.ok(name, "settings are those of production")
	}
}

// tls checks the certificate of the server.
func (e *examination) tls(_ context.Context, name cli.Word) {
	file := e.conf.TLS.CertificateFile
	if file == "" {
		return
	}
	list, err := files.Certificates(e.conf.Path(file))
	if err != nil {
		return // files has said it
	}
	left := time.Until(list[0].NotAfter)
	ends := list[0].NotAfter.UTC().Format(time.DateOnly)
	switch {
	case left <= 0:
		e.fault(name, cli.Say("replace the certificate, and run: systemctl reload tamga"), "tls.certificate_file: the certificate ended on %s", ends)
	case left < serverCertificateWarning:
		e.warn(name, cli.Say("replace the certificate"), "tls.certificate_file: the certificate ends on %s", ends)
	default:
		e.ok(name, "the certificate is valid until %s", ends)
	}
	u, err := url.Parse(e.conf.BaseURL())
	standard, parseErr := x509.ParseCertificate(list[0].Raw)
	if err == nil && parseErr == nil && u.Scheme == "https" {
		if err := standard.VerifyHostname(u.Hostname()); err != nil {
			e.warn(name, cli.Say("get a certificate for this name, unless a proxy with its own certificate is in front"), "%v", err)
		}
	}
}

// browsers checks what browsers need to show notifications. That their key can be read is a check of files.
func (e *examination) browsers(_ context.Context, name cli.Word) {
	u, err := url.Parse(e.conf.BaseURL())
	switch {
	case err != nil:
	case !app.TellsBrowsers(e.conf):
		e.ok(name, "notifications of browsers are off: %s is not set", app.BrowserKeySetting)
	case u.Scheme != "https" && !net.ParseIP(u.Hostname()).IsLoopback() && u.Hostname() != "localhost":
		e.warn(name, cli.Say("serve public_url by https"), "browsers show notifications of pages by https alone")
	default:
		e.ok(name, "browsers can show notifications")
	}
}

// saidBefore reports whether an error is that of a file which the check of files has found, with a remedy that fits.
func (e *examination) saidBefore(err error) bool {
	return err != nil && slices.ContainsFunc(e.said, func(f cli.Finding) bool { return f.State == broken && f.Text.String() == err.Error() })
}

// databaseTime bounds a check of the database, and of the storage of documents.
const databaseTime = 4 * time.Second

// database opens the database and compares its schema.
func (e *examination) database(ctx context.Context, name cli.Word) {
	if file, ok := strings.CutPrefix(e.conf.Database, "sqlite:"); ok {
		if _, err := os.Stat(e.conf.Path(file)); err != nil {
			e.fault(name, cli.Say("run: tamga init --config %s for a new installation; otherwise put the file back", e.file), "database: %v", err)
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, databaseTime)
	defer cancel()
	base, err := app.Open(ctx, e.conf, app.ForCommand, slog.New(slog.DiscardHandler))
	if e.saidBefore(err) {
		return
	}
	var encoding *store.EncodingError
	if errors.As(err, &encoding) {
		e.fault(name, cli.Say("make another database and name it in database: %s", encoding.Command()), "%v", err)
		return
	}
	if errors.Is(err, store.ErrEarlyBuild) {
		e.fault(name, cli.Say("keep the earlier program for this database, or make another database and name it in database: tamga migrate, then tamga import"), "%v", err)
		return
	}
	if err != nil {
		e.fault(name, databaseRemedy(err), "%v", err)
		return
	}
	close := true
	defer func() {
		if close {
			base.Close()
		}
	}()
	err = base.DB.Migrated(ctx)
	var schema *store.SchemaError
	switch {
	case errors.As(err, &schema) && schema.Newer():
		e.warn(name, cli.Say("update the program on this machine"), "%v", err)
	case errors.As(err, &schema):
		e.fault(name, cli.Say("run: tamga migrate --config %s", e.file), "%v", err)
		return
	case err != nil:
		e.fault(name, databaseRemedy(err), "%v", err)
		return
	}
	services, err := base.Services(ctx)
	if e.saidBefore(err) {
		return
	}
	if err != nil {
		check := name
		remedy := cli.Say("correct the cause that the message names")
		if errors.Is(err, vault.ErrWrongKey) || strings.Contains(err.Error(), "master key") {
			check, remedy = masterKeys, cli.Say("put the master key back that the database was used with; nothing else opens what is sealed under it")
		}
		e.fault(check, remedy, "%v", err)
		return
	}
	close = false
	e.services = services
	before := len(e.findings)
	e.encrypted(name)
	checking, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	if err := services.DB.CheckFile(checking); err != nil {
		e.fault(name, databaseRemedies[store.DamagedFile], "%v", err)
	}
	if owner, err := services.DB.OtherOwner(ctx); err != nil {
		e.fault(name, databaseRemedy(err), "%v", err)
	} else if owner != "" {
		e.fault(name, databaseRemedies[store.NotWholeOwner], "tables of the database belong to the role %s, so they cannot be migrated and the audit log gets no new months", owner)
	}
	if len(e.findings) == before {
		e.ok(name, "reachable, with the schema of this release")
	}
}

// encrypted looks whether connections over TCP have TLS, and whether the server must prove its name.
func (e *examination) encrypted(name cli.Word) {
	u, err := url.Parse(e.conf.Database)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		return
	}
	host := u.Hostname()
	if h := u.Query().Get("host"); h != "" {
		host = h
	}
	if host == "" || strings.HasPrefix(host, "/") {
		return // a socket
	}
	switch u.Query().Get("sslmode") {
	case "verify-full", "verify-ca":
	case "disable":
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			e.warn(name, tlsRemedy, "connections to %s have no TLS", host)
		}
	case "":
		e.warn(name, tlsRemedy, "the address of database has no sslmode, so TLS is used only if the server offers it, and no certificate is checked")
	default:
		e.warn(name, tlsRemedy, "sslmode does not check who the server is")
	}
}

var tlsRemedy = cli.Say("add to the address of database: sslmode=verify-full&sslrootcert=FILE; or sslmode=disable for a server on this machine")

func (e *examination) clock(_ context.Context, name cli.Word) {
	if err := e.services.DB.CheckClock(e.conf.ClockOffset); err != nil {
		e.fault(name, cli.Say("synchronize both machines by NTP"), "%v", err)
		return
	}
	e.ok(name, "%s from the clock of the database", e.services.DB.ClockOffset().Round(time.Millisecond))
}

// keyReport returns what is sealed under which master key. It counts records, so the checks that follow share the answer.
func (e *examination) keyReport(ctx context.Context) (*app.KeyReport, error) {
	if e.keys == nil {
		report, err := e.services.KeyReport(ctx)
		if err != nil {
			return nil, err
		}
		e.keys = report
	}
	return e.keys, nil
}

// masterKeys looks for records under keys that are gone or old.
func (e *examination) masterKeys(ctx context.Context, name cli.Word) {
	report, err := e.keyReport(ctx)
	if err != nil {
		e.fault(name, cli.Say("correct the cause that the message names"), "%v", err)
		return
	}
	bad := false
	for _, k := range report.Keys {
		switch {
		case k.ID == e.conf.MasterKeys.Active || k.Total == 0:
		case !k.InRing:
			bad = true
			e.fault(name, cli.Say("put the file of this key back and name it in master_keys.files"), "%d records are sealed under master key %s, which is not in the configuration", k.Total, k.ID)
		default:
			bad = true
			e.warn(name, cli.Say("run: tamga key reseal --config %s", e.file), "%d records are still sealed under master key %s", k.Total, k.ID)
		}
	}
	if !bad {
		e.ok(name, "master key %s opens the vault", e.conf.MasterKeys.Active)
	}
}

// processes compares the servers that run.
func (e *examination) processes(ctx context.Context, name cli.Word) {
	report, err := e.keyReport(ctx)
	if err != nil {
		return // masterKeys has said it
	}
	versions := map[string]bool{}
	for _, p := range report.Processes {
		versions[p.Version] = true
		if p.Active != e.conf.MasterKeys.Active {
			e.warn(name, cli.Say("give it the same master_keys"), "process %s seals with master key %s, the configuration here says %s", p, p.Active, e.conf.MasterKeys.Active)
		}
	}
	if len(versions) > 1 {
		e.warn(name, cli.Say("complete the update on all machines"), "servers of different versions are running: %s", strings.Join(slices.Sorted(maps.Keys(versions)), ", "))
	}
	e.ok(name, "%d servers are running", len(report.Processes))
}

// documents checks the storage of documents.
func (e *examination) documents(ctx context.Context, name cli.Word) {
	ctx, cancel := context.WithTimeout(ctx, databaseTime)
	defer cancel()
	remedy := cli.Say("give blob_dir to the user of the service")
	if e.conf.Bucket.Endpoint != "" {
		remedy = cli.Say("check bucket.endpoint, the name of the bucket, both keys and their rights, and the authorities of the server")
	}
	storage, err := e.services.Storage(ctx)
	if err == nil {
		err = storage.Storage.Ready(ctx)
	}
	if err != nil {
		e.fault(name, remedy, "documents cannot be kept: %v", err)
		return
	}
	e.ok(name, "documents can be kept")
}

// authorities checks the certificates and revocation lists of the built-in authority, and the
// certificates of other authorities.
func (e *examination) authorities(ctx context.Context, name cli.Word) {
	now := e.services.DB.Now()
	own, err := e.services.Authority.All(ctx)
	if err != nil {
		e.fault(name, cli.Say("start the service once, or run: tamga init --config %s", e.file), "%v", err)
		return
	}
	ends := func(who cli.Sentence, c *x509gost.Certificate, remedy cli.Sentence) {
		left, day := c.NotAfter.Sub(now), c.NotAfter.UTC().Format(time.DateOnly)
		switch {
		case left <= 0:
			e.fault(name, remedy, "the certificate of %s ended on %s", who, day)
		case left < authorityWarning:
			e.warn(name, remedy, "the certificate of %s ends on %s", who, day)
		}
	}
	before := len(e.findings)
	for _, a := range own {
		if a.Current && a.Outside {
			ends(cli.Say("the authority %s", a.Name), a.Certificate, cli.Say("run: tamga ca request %s --config %s, and install the certificate of the outside authority", a.Name, e.file))
		} else if a.Current {
			ends(cli.Say("the authority %s", a.Name), a.Certificate, cli.Say("run: tamga ca renew %s --config %s, or tamga ca rollover for a new key", a.Name, e.file))
		}
	}
	for i, a := range e.conf.Certificates.Authorities {
		list, err := files.Certificates(e.conf.Path(a.CertificatesFile))
		if err != nil {
			continue // files has said it
		}
		for _, c := range list {
			ends(cli.Say("%s in certificates.authorities[%d]", c.Subject, i), c, cli.Say("add the next certificate of this authority to its file"))
		}
	}
	lists, err := e.services.Authority.CRLs(ctx)
	if err != nil {
		e.fault(name, cli.Say("correct the cause that the message names; without lists certificates cannot be checked"), "revocation lists: %v", err)
	}
	for _, l := range lists {
		if !now.Before(l.NextUpdate) {
			e.fault(name, cli.Say("start the service: it renews its lists"), "the revocation list of %s ended", l.Issuer)
		}
	}
	if len(e.findings) == before {
		e.ok(name, "no certificate of an authority ends within a year")
	}
}

// messages looks for messages that are not delivered.
func (e *examination) messages(ctx context.Context, name cli.Word) {
	late, dead, err := store.Outbox{DB: e.services.DB}.Backlog(ctx, e.services.DB.Now().Add(-10*time.Minute))
	if err != nil {
		e.fault(name, cli.Say("correct the cause that the message names"), "%v", err)
		return
	}
	if late > 0 {
		e.warn(name, cli.Say("see whether the service runs, and why senders fail: tamga message list --config %s", e.file), "%d messages wait since more than ten minutes", late)
	}
	if dead > 0 {
		e.warn(name, cli.Say("see why: tamga message list --state dead --config %s; tamga message resend sends them again", e.file), "%d messages were given up", dead)
	}
	if late+dead == 0 {
		e.ok(name, "no message waits")
	}
}

// auditExport looks for audit entries that the collector does not get. Whether it is reachable is a check of the network.
func (e *examination) auditExport(ctx context.Context, name cli.Word) {
	export := &e.conf.Audit.Export
	if export.Address == "" {
		return
	}
	before := len(e.findings)
	if host, _, err := net.SplitHostPort(export.Address); err == nil && export.Security == "none" && !config.IsLoopback(host) {
		e.warn(name, cli.Say("set audit.export.security: tls, and take entries by TLS at the collector"), "audit entries pass the network to %s in the clear", export.Address)
	}
	f, err := e.services.DB.Figures(ctx)
	if err != nil {
		e.fault(name, cli.Say("correct the cause that the message names"), "%v", err)
		return
	}
	if f.Exported && !f.ExportOldest.IsZero() && e.services.DB.Now().Sub(f.ExportOldest) > 10*time.Minute {
		e.warn(name, cli.Say("see whether the service runs, and why the collector takes no entries"), "the collector lacks %d audit entries, the first of %s", f.ExportLag, f.ExportOldest.UTC().Format(time.RFC3339))
	}
	if len(e.findings) == before {
		e.ok(name, "audit entries go to %s", export.Address)
	}
}

// operators checks that there are enough operators.
func (e *examination) operators(ctx context.Context, name cli.Word) {
	list, err := e.services.Users.Operators(ctx)
	switch {
	case err != nil:
		e.fault(name, cli.Say("correct the cause that the message names"), "%v", err)
	case len(list) == 0:
		e.warn(name, cli.Say("run: tamga operator add LOGIN --group NAME --config %s", e.file), "there is no operator")
	case len(list) == 1 && len(e.conf.Users.SecondOperator) > 0:
		e.warn(name, cli.Say("run: tamga operator add LOGIN --group NAME --config %s", e.file), "users.second_operator wants two operators, but there is one")
	default:
		e.ok(name, "%d operators", len(list))
	}
	if err != nil || !e.conf.Pages.Enabled {
		return
	}
	isOperator := func(id string) bool {
		return slices.ContainsFunc(list, func(u user.User) bool { return u.ID == id })
	}
	remedy := cli.Say("name identifiers of operators; this prints them: tamga operator list --config %s", e.file)
	for _, named := range []struct {
		setting string
		ids     []string
	}{{"pages.administrators", e.conf.Pages.Administrators}, {"pages.auditors", e.conf.Pages.Auditors}} {
		for _, id := range named.ids {
			if !isOperator(id) {
				e.warn(name, remedy, "%s: %s is not the identifier of an operator", named.setting, id)
			}
		}
	}
	if !slices.ContainsFunc(e.conf.Pages.Administrators, isOperator) {
		e.warn(name, remedy, "pages.administrators names no operator, so groups and messages cannot be managed on the pages")
	}
}

// dependencyRemedies are what to do about a service in the network, by its part.
var dependencyRemedies = map[string]cli.Sentence{
	"mail":         cli.Say("start the mail server, or correct messages.mail: address, security, user and password; messages wait meanwhile"),
	"sms":          cli.Say("start the message centre, or correct messages.sms: its address, system_id and password; messages wait meanwhile"),
	"push":         cli.Say("let this machine reach the push service, or correct messages.push; messages wait meanwhile"),
	"sign_in":      cli.Say("start the identity provider, or correct its issuer in external; users with a login there cannot sign in"),
	"stamps":       cli.Say("check the name, the firewall and evidence.proxy; certificates and stamps need the service"),
	"revocation":   cli.Say("check the name, the firewall and evidence.proxy; certificates and stamps need the service"),
	"directory":    cli.Say("start a server of the directory, or correct servers, authorities_file, bind_dn and its password in directories; its people cannot sign in meanwhile"),
	"audit_export": cli.Say("check the collector of audit entries, audit.export.address, audit.export.security and audit.export.authorities_file; entries are kept and delivered later"),
	"traces":       cli.Say("start the collector of traces, or correct tracing.endpoint; traces are lost meanwhile"),
}

// dependencyNames are the services for people.
var dependencyNames = map[string]cli.Word{
	"mail": "the mail server", "sms": "the SMS service", "push": "the push service", "sign_in": "the identity provider", "stamps": "the time-stamp service",
	"revocation": "OCSP or revocation lists", "audit_export": "the collector of audit entries", "directory": "the directory", "traces": "the collector of traces",
}

// network reaches what the installation needs in the network, all at once.
func (e *examination) network(ctx context.Context, name cli.Word) {
	if e.offline {
		return
	}
	list, done, err := app.DependenciesOf(e.conf)
	if err != nil {
		return // files has said it
	}
	defer done()
	reached := 0
	var refused *guard.Refused
	app.CheckAll(ctx, list, func(d app.Dependency, err error) {
		switch {
		case err == nil:
			reached++
		case errors.As(err, &refused):
			e.warn(name, cli.Say("name its network or its host in evidence.allow_networks; nothing is sent there otherwise"), "%s %s (%s): %v", dependencyNames[d.Part], d.Name, d.Setting, err)
		case d.Part == "mail" && strings.Contains(err.Error(), "STARTTLS"):
			e.fault(name, cli.Say("switch STARTTLS on at the mail server, or set messages.mail.security: tls, or none for a server on this machine"), "%s: %v", d.Setting, err)
		case slices.Contains([]string{"mail", "sms", "push", "sign_in", "audit_export", "directory"}, d.Part):
			e.fault(name, dependencyRemedies[d.Part], "%s %s (%s): %v", dependencyNames[d.Part], d.Name, d.Setting, err)
		default:
			e.warn(name, dependencyRemedies[d.Part], "%s %s (%s): %v", dependencyNames[d.Part], d.Name, d.Setting, err)
		}
	})
	if reached > 0 {
		e.ok(name, "%d services are reachable", reached)
	}
}

// public asks this service at its public address if a server runs. An answer of any status means that it is reachable.
func (e *examination) public(ctx context.Context, name cli.Word) {
	if e.offline {
		return
	}
	report, err := e.keyReport(ctx)
	if err != nil || len(report.Processes) == 0 {
		return // processes has said it
	}
	ctx, cancel := context.WithTimeout(ctx, publicTime)
	defer cancel()
	if err := askPublic(ctx, e.conf.BaseURL()); err != nil {
		e.warn(name, cli.Say("check the name, the proxy in front and its certificate"), "this service at its public address: %v", err)
	}
}

// publicTime bounds the question to the public address.
const publicTime = 2500 * time.Millisecond

func askPublic(ctx context.Context, base string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	response, err := (&http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(request)
	if err != nil {
		return err
	}
	io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10))
	return response.Body.Close()
}

// front checks that the front end for GOST-TLS reaches the socket of the service.
func (e *examination) front(_ context.Context, name cli.Word) {
	if e.conf.GOSTTLS.Socket == "" {
		return
	}
	if dir, err := app.FrontEndMayEnter(e.conf); err != nil {
		e.fault(name, cli.Say("run: chmod o+x %s; with systemd set RuntimeDirectoryMode=0755", dir), "gost_tls.socket: %v", err)
		return
	}
	e.ok(name, "the front end can reach %s", e.conf.Path(e.conf.GOSTTLS.Socket))
}

// peers looks at the revocation lists of the authorities of operators.
func (e *examination) peers(_ context.Context, name cli.Word) {
	for i, file := range e.conf.OperatorCertificates.RevocationFiles {
		lists, err := files.RevocationLists(e.conf.Path(file))
		if err != nil {
			continue // files has said it
		}
		for _, l := range lists {
			if !time.Now().Before(l.NextUpdate) {
				e.fault(name, cli.Say("put the present list of the authority into the file, and run: systemctl reload tamga"),
					"operator_certificates.revocation_files[%d]: the revocation list of %s ended on %s, so no operator signs in with a certificate", i, l.Issuer, l.NextUpdate.UTC().Format(time.DateOnly))
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package gosttls

import (
	"bytes"
	"context"
	"crypto"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/files"
	"tamga/pki/x509gost"
)

type gostTLSCheckCommand struct {
	Dir  string           `default:"gost-tls" placeholder:"DIR" help:"Directory with the files of gost-tls init."`
	From cli.Installation `embed:""`
}

// frontEndCheck is one check: its name, and what is wrong or "".
type frontEndCheck struct {
	Trap  cli.Sentence `json:"trap"`
	Wrong cli.Sentence `json:"wrong,omitzero"`
}

func (g *gostTLSCheckCommand) Run(c *cli.Console) error {
	dir, err := filepath.Abs(g.Dir)
	if err != nil {
		return err
	}
	h, err := g.From.Open(c)
	if err != nil {
		return err
	}
	defer h.Close()
	socket, err := filepath.Abs(h.Config.Path(h.Config.GOSTTLS.Socket))
	if err != nil {
		return err
	}
	checks, err := checkFrontEnd(c.Context, dir, socket, h.Config, time.Now())
	if err != nil {
		return err
	}
	faults := 0
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, k := range checks {
		mark := c.Text("ok")
		if !k.Wrong.IsZero() {
			mark = c.Text("WRONG")
			faults++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", mark, c.Say(k.Trap), c.Say(k.Wrong))
	}
	table.Flush()
	if err := g.From.Answer(c, checks, "%s", text.String()); err != nil {
		return err
	}
	if faults > 0 {
		return fmt.Errorf("%d of %d checks failed", faults, len(checks))
	}
	return nil
}

// checkFrontEnd checks the files of a front end for known mistakes.
func checkFrontEnd(ctx context.Context, dir, socket string, conf *config.Config, now time.Time) ([]frontEndCheck, error) {
	text, err := os.ReadFile(filepath.Join(dir, FrontEndConfig))
	if err != nil {
		return nil, fmt.Errorf("no front end in %s; make one with tamga gost-tls init: %w", dir, err)
	}
	proxy := ParseProxy(string(text))
	checks := proxy.Check(socket)
	add := func(trap, wrong cli.Sentence) { checks = append(checks, frontEndCheck{trap, wrong}) }

	_, uidErr := app.FrontEndUID(conf)
	add(cli.Say("gost_tls.front_end_user is a user of this machine"), message(uidErr))
	add(cli.Say("gost_tls.socket is set, and other users cannot replace it"), socketWrong(conf.GOSTTLS.Socket, socket))
	_, mayEnter := app.FrontEndMayEnter(conf)
	add(cli.Say("the front end may enter the directory of the socket"), message(mayEnter))
	for _, file := range proxy.bundles {
		add(cli.Say("the server certificate %s", file), bundleWrong(file, now))
	}
	for _, file := range proxy.authorities {
		add(cli.Say("the authorities of operators in %s", file), authoritiesWrong(file))
	}
	openssl := filepath.Join(dir, FrontEndOpenSSL)
	add(cli.Say("the engine is loaded by %s", openssl), opensslWrong(openssl))
	add(cli.Say("OPENSSL_CONF of this shell is not loaded a second time"), doubleWrong(openssl, os.Getenv("OPENSSL_CONF")))
	if program, err := exec.LookPath("haproxy"); err == nil {
		add(cli.Say("HAProxy accepts the configuration"), trial(ctx, openssl, program, "-c", "-q", "-f", filepath.Join(dir, FrontEndConfig)))
	} else {
		add(cli.Say("HAProxy accepts the configuration"), cli.Say("haproxy is not installed; run: apt-get install haproxy libengine-gost-openssl"))
	}
	return checks, nil
}

// message returns the text of an error, "" for nil.
func message(err error) cli.Sentence {
	if err == nil {
		return cli.Sentence{}
	}
	return cli.Say("%v", err)
}

// ProxyConfig is the part of a HAProxy configuration that is checked.
type ProxyConfig struct {
	lines                []proxyLine
	bundles, authorities []string
}

type proxyLine struct {
	section string
	words   []string
}

// has reports whether the line begins with these words.
func (l proxyLine) has(words ...string) bool {
	return len(l.words) >= len(words) && slices.Equal(l.words[:len(words)], words)
}

// after returns the word after an option, "" if the line lacks the option.
func (l proxyLine) after(option string) string {
	if i := slices.Index(l.words, option); i >= 0 && i+1 < len(l.words) {
		return l.words[i+1]
	}
	return ""
}

var proxySections = []string{"global", "defaults", "frontend", "backend", "listen"}

// ParseProxy splits a configuration into lines of words. It does not handle quotes: gost-tls init writes
// none.
func ParseProxy(text string) *ProxyConfig {
	p := &ProxyConfig{}
	section := ""
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if slices.Contains(proxySections, words[0]) {
			section = strings.Join(words, " ")
			continue
		}
		l := proxyLine{section, words}
		p.lines = append(p.lines, l)
		if l.has("bind") && slices.Contains(words, "ssl") {
			for i, w := range words[:len(words)-1] {
				switch w {
				case "crt":
					p.bundles = append(p.bundles, words[i+1])
				case "ca-file":
					p.authorities = append(p.authorities, words[i+1])
				}
			}
		}
	}
	return p
}

// Check checks the lines for known mistakes. socket is the absolute path of gost_tls.socket.
func (p *ProxyConfig) Check(socket string) []frontEndCheck {
	var checks []frontEndCheck
	add := func(trap, wrong cli.Sentence, ok bool) {
		if ok {
			wrong = cli.Sentence{}
		}
		checks = append(checks, frontEndCheck{trap, wrong})
	}
	var binds []proxyLine
	for _, l := range p.lines {
		if l.has("bind") {
			binds = append(binds, l)
		}
	}
	add(cli.Say("there is a port with TLS"), cli.Say("no bind line has ssl"), slices.ContainsFunc(binds, func(l proxyLine) bool { return slices.Contains(l.words, "ssl") }))
	for _, l := range binds {
		at := strings.Join(l.words[:min(2, len(l.words))], " ")
		add(cli.Say("%s: speaks TLS", at), cli.Say("anyone can connect to a plain port: remove it"), slices.Contains(l.words, "ssl"))
		add(cli.Say("%s: TLS 1.2 alone", at), cli.Say("want ssl-min-ver TLSv1.2 ssl-max-ver TLSv1.2: a client that is offered TLS 1.3 never sends its GOST certificate"),
			l.after("ssl-min-ver") == "TLSv1.2" && l.after("ssl-max-ver") == "TLSv1.2")
		add(cli.Say("%s: GOST suites alone", at), cli.Say("want ciphers %s", Ciphers), onlyGOST(l.after("ciphers")))
		add(cli.Say("%s: one certificate, not a mixed port", at), cli.Say("want one crt, of a GOST key"), count(l.words, "crt") == 1 && count(l.words, "crt-list") == 0)
		add(cli.Say("%s: demands a certificate", at), cli.Say("want verify required and a ca-file"), l.after("verify") == "required" && l.after("ca-file") != "")
		add(cli.Say("%s: no session tickets", at), cli.Say("want no-tls-tickets: a resumed session brings no certificate"), slices.Contains(l.words, "no-tls-tickets"))
	}
	find := func(words ...string) int {
		return slices.IndexFunc(p.lines, func(l proxyLine) bool { return l.has(words...) })
	}
	add(cli.Say("queries are not logged"), cli.Say("option httplog logs queries, which may have secrets: want a log-format with %%HP"), find("option", "httplog") < 0)
	add(cli.Say("no session cache"), cli.Say("want tune.ssl.cachesize 0 in global"), find("tune.ssl.cachesize", "0") >= 0)

	set := find("http-request", "set-header", "client-cert")
	add(cli.Say("the certificate is forwarded"), cli.Say("want http-request set-header client-cert :%%[ssl_c_der,base64]:"),
		set >= 0 && slices.Equal(p.lines[set].words[3:], []string{":%[ssl_c_der,base64]:"}))
	for _, family := range []struct {
		name  string
		exact bool // one name, not a prefix
	}{{"client-cert", false}, {"client_cert", false}, {"x-tamga-tls-", false}, {"x-forwarded-", false}, {"forwarded", true}} {
		i := slices.IndexFunc(p.lines, func(l proxyLine) bool {
			return l.has("http-request", "del-header", family.name) && (family.exact || l.after("-m") == "beg")
		})
		rule := family.name
		if !family.exact {
			rule += " -m beg"
		}
		conditional := i >= 0 && (slices.Contains(p.lines[i].words, "if") || slices.Contains(p.lines[i].words, "unless"))
		add(cli.Say("clients cannot forge %s", family.name), cli.Say("want http-request del-header %s, without a condition, before set-header", rule), i >= 0 && !conditional && (set < 0 || i < set))
	}
	deny := find("http-request", "deny", "deny_status", "421", "unless")
	add(cli.Say("foreign Host names are refused"), cli.Say("want http-request deny deny_status 421 unless { req.hdr(host),field(1,:) -m str -i NAME }"),
		deny >= 0 && slices.Contains(p.lines[deny].words, "req.hdr(host),field(1,:)") && slices.Contains(p.lines[deny].words, "str"))
	var servers []string
	for _, l := range p.lines {
		if l.has("server") && len(l.words) > 2 {
			servers = append(servers, l.words[2])
		}
	}
	add(cli.Say("requests go to the service's socket"), cli.Say("want one server at unix@%s", socket), slices.Equal(servers, []string{"unix@" + socket}))
	return checks
}

// count returns how often word is in words.
func count(words []string, word string) (n int) {
	for _, w := range words {
		if w == word {
			n++
		}
	}
	return n
}

// onlyGOST reports whether all suites of a list are GOST suites.
func onlyGOST(ciphers string) bool {
	for c := range strings.SplitSeq(ciphers, ":") {
		if !strings.Contains(c, "GOST") {
			return false
		}
	}
	return true
}

// socketWrong checks the directory of the socket.
func socketWrong(configured, socket string) cli.Sentence {
	if configured == "" {
		return cli.Say("want gost_tls.socket in the configuration")
	}
	info, err := os.Stat(filepath.Dir(socket))
	switch {
	case err != nil:
		return message(err)
	case files.ModeOfOthers(info.Mode())&0o002 != 0 && info.Mode()&os.ModeSticky == 0:
		return cli.Say("%s can be written by all users; run chmod o-w on it", filepath.Dir(socket))
	}
	return cli.Sentence{}
}

// bundleWrong checks the certificate and key of the server.
func bundleWrong(file string, now time.Time) cli.Sentence {
	info, err := os.Stat(file)
	if err != nil {
		return message(err)
	}
	if files.ModeOfOthers(info.Mode()) != 0 {
		return cli.Say("the key can be read by other users; run chmod 600 on the file")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return message(err)
	}
	defer clear(data)
	var leaf *x509gost.Certificate
	var key crypto.Signer
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "CERTIFICATE" && leaf == nil:
			if leaf, err = x509gost.ParseCertificate(block.Bytes); err != nil {
				return message(err)
			}
		case block.Type == "PRIVATE KEY":
			if key, _, err = x509gost.ParsePrivateKey(block.Bytes); err != nil {
				return message(err)
			}
		}
	}
	switch {
	case leaf == nil || key == nil:
		return cli.Say("want a certificate and its key (PRIVATE KEY) as PEM")
	case leaf.Suite == nil || !strings.HasPrefix(leaf.Suite.Name, "gost2012"):
		return cli.Say("the key is not GOST R 34.10-2012; want a port for GOST only")
	case now.Before(leaf.NotBefore):
		return cli.Say("the certificate is not valid before %s", leaf.NotBefore.Format(time.RFC3339))
	case now.After(leaf.NotAfter):
		return cli.Say("the certificate expired on %s; make another with tamga gost-tls init --force", leaf.NotAfter.Format(time.RFC3339))
	case now.AddDate(0, 0, 14).After(leaf.NotAfter):
		return cli.Say("the certificate expires on %s; make another with tamga gost-tls init --force", leaf.NotAfter.Format(time.RFC3339))
	case !slices.ContainsFunc(leaf.ExtKeyUsage, func(o x509gost.OID) bool { return o.Equal(x509gost.OID{1, 3, 6, 1, 5, 5, 7, 3, 1}) }):
		return cli.Say("the certificate is not for servers (extendedKeyUsage serverAuth)")
	}
	if public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(leaf.PublicKey) {
		return cli.Say("the key does not belong to the certificate")
	}
	return cli.Sentence{}
}

// authoritiesWrong checks the authorities whose client certificates a handshake accepts.
func authoritiesWrong(file string) cli.Sentence {
	data, err := os.ReadFile(file)
	if err != nil {
		return message(err)
	}
	list, err := x509gost.ParseCertificates(data)
	if err != nil {
		return message(err)
	}
	for _, c := range list {
		if !c.IsCA {
			return cli.Say("%s is not the certificate of an authority", cli.Printable(c.Subject.String()))
		}
	}
	return cli.Sentence{}
}

// opensslWrong checks the OpenSSL configuration that loads the engine.
func opensslWrong(file string) cli.Sentence {
	data, err := os.ReadFile(file)
	if err != nil {
		return message(err)
	}
	engine := ""
	active := false
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, "=")
		switch name, value = strings.TrimSpace(name), strings.TrimSpace(value); name {
		case "dynamic_path":
			engine = value
		case "activate":
			active = value == "1"
		}
	}
	if engine == "" {
		return cli.Say("want dynamic_path with the path of gost-engine")
	}
	if _, err := os.Stat(engine); err != nil {
		return cli.Say("gost-engine is not installed; run: apt-get install libengine-gost-openssl (%v); without it HAProxy reports that it finds no private key", err)
	}
	if !active {
		return cli.Say("the default provider is not activated; want its section with activate = 1")
	}
	return cli.Sentence{}
}

// doubleWrong checks that OPENSSL_CONF of the shell does not load the engine too.
func doubleWrong(file, variable string) cli.Sentence {
	if variable == "" || variable == file {
		return cli.Sentence{}
	}
	if data, err := os.ReadFile(variable); err == nil && bytes.Contains(data, []byte("engine_id")) {
		return cli.Say("%s loads an engine too; start HAProxy with %s only", variable, file)
	}
	return cli.Sentence{}
}

// trial runs a program with the engine and returns its output if it fails.
func trial(ctx context.Context, openssl, program string, args ...string) cli.Sentence {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "OPENSSL_CONF="+openssl)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return cli.Sentence{}
	}
	return cli.Say("%s", strings.TrimSpace(errors.Join(err, errors.New(cli.Printable(strings.TrimSpace(string(out))))).Error()))
}

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"

	"tamga/internal/config"
	"tamga/internal/domain/authority"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// The files of gost-tls init.
const (
	frontEndConfig  = "haproxy.cfg"
	frontEndOpenSSL = "openssl-gost.cnf"
	frontEndServer  = "server.bundle.pem"
	frontEndClients = "operators-ca.pem"
	frontEndRoot    = "server-ca.pem"
)

//go:embed gosttls/*.tmpl
var frontEndTemplates embed.FS

// gostCiphers are the TLS 1.2 suites with GOST that gost-engine has, the newer ones
// first.
const gostCiphers = "GOST2012-KUZNYECHIK-KUZNYECHIKOMAC:GOST2012-MAGMA-MAGMAOMAC:IANA-GOST2012-GOST8912-GOST8912:LEGACY-GOST2012-GOST8912-GOST8912"

// frontEndUID is the user the front end runs as; it is our own unless configured.
func frontEndUID(c *config.Config) (int, error) {
	name := c.GOSTTLS.FrontEndUser
	if name == "" {
		return os.Getuid(), nil
	}
	if uid, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(uid), nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, fmt.Errorf("gost_tls.front_end_user: %w", err)
	}
	return strconv.Atoi(u.Uid)
}

// listenFrontEnd opens the socket of the TLS front end. What comes in there is
// believed about client certificates, so connections of any other user are closed.
func listenFrontEnd(config *config.Config, log *slog.Logger) (net.Listener, error) {
	uid, err := frontEndUID(config)
	if err != nil {
		return nil, err
	}
	file := config.Path(config.GOSTTLS.Socket)
	if err := removeStale(file); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", file)
	if err != nil {
		return nil, fmt.Errorf("gost_tls.socket: %w", err)
	}
	mode := fs.FileMode(0o600)
	if uid != os.Getuid() {
		// The kernel tells who connects; the mode only has to let them in.
		mode = 0o666
	}
	if err := os.Chmod(file, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("gost_tls.socket: %w", err), l.Close())
	}
	return &frontEndListener{l.(*net.UnixListener), uid, log}, nil
}

// removeStale removes a socket that a process left behind which is no more.
func removeStale(file string) error {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("gost_tls.socket: %w", err)
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("gost_tls.socket: %s is there and no socket", file)
	}
	if conn, err := net.Dial("unix", file); err == nil {
		conn.Close()
		return fmt.Errorf("gost_tls.socket: another process listens at %s: every process has a socket of its own", file)
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("gost_tls.socket: %w", err)
	}
	return nil
}

// frontEndListener takes connections of one user only.
type frontEndListener struct {
	*net.UnixListener
	uid int
	log *slog.Logger
}

func (l *frontEndListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := peerUID(conn)
		if err == nil && uid == l.uid {
			return conn, nil
		}
		l.log.Warn("gost_tls: a connection of a user who is not the front end was closed", "uid", uid, "front_end_uid", l.uid, "error", err)
		conn.Close()
	}
}

type gostTLSCommand struct {
	Init    gostTLSInitCommand    `cmd:"" help:"Write the configuration, key and certificate of a HAProxy that speaks GOST-TLS in front of the service."`
	Check   gostTLSCheckCommand   `cmd:"" help:"Look for the known traps in the configuration of the front end."`
	Certify gostTLSCertifyCommand `cmd:"" help:"Certify the key of an operator's request (PKCS #10) with the built-in authority."`
	Revoke  gostTLSRevokeCommand  `cmd:"" help:"Revoke a certificate that certify or init made: it counts no more from the next request on."`
}

type gostTLSInitCommand struct {
	Dir    string     `default:"gost-tls" placeholder:"DIR" help:"Directory for the files, which is made."`
	Name   []string   `placeholder:"HOST" help:"Name or IP address clients use; may be repeated. Default: that of public_url."`
	Listen string     `default:":4430" placeholder:"ADDRESS" help:"Where HAProxy listens: [HOST]:PORT."`
	Suite  string     `default:"gost2012-256" enum:"gost2012-256,gost2012-512" help:"Kind of the server's key: gost2012-256 or gost2012-512."`
	Force  bool       `help:"Write over what is there: a new key and certificate."`
	From   configFrom `embed:""`
}

func (g *gostTLSInitCommand) Run(c *console) error {
	su, ok := suite.ByName(g.Suite)
	if !ok {
		return fmt.Errorf("--suite %s: unknown", g.Suite)
	}
	dir, err := filepath.Abs(g.Dir)
	if err != nil {
		return err
	}
	if strings.ContainsAny(dir, " \t\"'\\#$") {
		return fmt.Errorf("--dir %s: HAProxy's configuration takes no spaces, quotes or dollar signs in paths", dir)
	}
	for _, name := range []string{frontEndConfig, frontEndServer} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil && !g.Force {
			return fmt.Errorf("%s is there already: --force makes everything anew, with a new key", filepath.Join(dir, name))
		}
	}
	return administer(c, &g.From, "InitGOSTTLS", "", func(ctx context.Context, h *house) error {
		if h.config.GOSTTLS.Socket == "" {
			return errors.New("gost_tls.socket is not set: name the Unix socket between the front end and the service in the configuration")
		}
		socket, err := filepath.Abs(h.config.Path(h.config.GOSTTLS.Socket))
		if err != nil {
			return err
		}
		names := g.Name
		if len(names) == 0 {
			u, err := url.Parse(h.config.BaseURL())
			if err != nil {
				return err
			}
			names = []string{u.Hostname()}
		}
		if err := h.authority.Bootstrap(ctx); err != nil {
			return err
		}
		made, err := frontEndFiles(ctx, h, su, frontEndValues{
			Dir: dir, Listen: g.Listen, Names: names, Socket: socket, Ciphers: gostCiphers, Engine: cmp.Or(findEngine(), enginePlaces[0]),
		})
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, f := range made {
			if err := replaceFile(filepath.Join(dir, f.name), f.data, f.mode); err != nil {
				return err
			}
		}
		return g.From.answer(c, map[string]any{"dir": dir, "names": names, "listen": g.Listen, "socket": socket},
			`The front end for %[2]s is in %[1]s. Start it beside the service with

  OPENSSL_CONF=%[1]s/%[3]s haproxy -f %[1]s/%[4]s

Clients trust %[1]s/%[5]s. Look for traps with: tamga gost-tls check --dir %[1]s
`, dir, strings.Join(names, ", "), frontEndOpenSSL, frontEndConfig, frontEndRoot)
	})
}

// frontEndValues fill the templates.
type frontEndValues struct {
	Dir, Listen     string
	Names           []string
	Socket, Ciphers string
	Engine          string
	User, Group     string
}

type frontEndFile struct {
	name string
	mode fs.FileMode
	data []byte
}

// frontEndFiles makes a key and a certificate for the front end and fills the
// templates.
func frontEndFiles(ctx context.Context, h *house, su *suite.Suite, v frontEndValues) ([]frontEndFile, error) {
	if name := h.config.GOSTTLS.FrontEndUser; name != "" {
		v.User = name
		if u, err := user.Lookup(name); err == nil {
			if g, err := user.LookupGroupId(u.Gid); err == nil {
				v.Group = g.Name
			}
		}
	}
	key, err := su.Generate(rand.Reader)
	if err != nil {
		return nil, err
	}
	plain, err := x509gost.MarshalPrivateKey(key, su)
	if err != nil {
		return nil, err
	}
	defer clear(plain)
	subject, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: v.Names[0]}})
	if err != nil {
		return nil, err
	}
	certificate, err := h.authority.Issue(ctx, authority.Request{Suite: su, PublicKey: key.Public(), Subject: subject, ServerNames: v.Names})
	if err != nil {
		return nil, err
	}
	roots, err := h.authority.Roots(ctx)
	if err != nil {
		return nil, err
	}
	issuing, err := h.authority.Issuing(ctx)
	if err != nil {
		return nil, err
	}
	clients, err := h.operatorAuthorities()
	if err != nil {
		return nil, err
	}
	if h.config.OperatorCertificates.BuiltIn {
		clients = append(clients, roots[0], issuing[0]) // those of GOST come first
	}
	bundle := append(pemOf(certificate), pemOf(issuing[0])...)
	bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: plain})...)
	var trusted []byte
	for _, c := range clients {
		trusted = append(trusted, pemOf(c)...)
	}
	files := []frontEndFile{
		{frontEndServer, 0o600, bundle},
		{frontEndClients, 0o644, trusted},
		{frontEndRoot, 0o644, pemOf(roots[0])},
	}
	templates, err := template.ParseFS(frontEndTemplates, "gosttls/*.tmpl")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{frontEndConfig, frontEndOpenSSL} {
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, name+".tmpl", v); err != nil {
			return nil, err
		}
		files = append(files, frontEndFile{name, 0o644, text.Bytes()})
	}
	return files, nil
}

// enginePlaces are where distributions put gost-engine.
var enginePlaces = []string{
	"/usr/lib/x86_64-linux-gnu/engines-3/gost.so",
	"/usr/lib/*/engines-3/gost.so",
	"/usr/lib64/engines-3/gost.so",
	"/usr/lib/engines-3/gost.so",
	"/usr/local/lib*/engines-3/gost.so",
}

func findEngine() string {
	for _, pattern := range enginePlaces {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

type gostTLSCertifyCommand struct {
	Request string        `arg:"" help:"File with the request, PEM or DER: it proves that its maker has the key, and names its subject."`
	Output  string        `short:"o" required:"" placeholder:"FILE" help:"File for the certificate (PEM)."`
	Life    time.Duration `placeholder:"TIME" help:"Life of the certificate, such as 2160h; that of users' certificates when absent."`
	From    configFrom    `embed:""`
}

func (g *gostTLSCertifyCommand) Run(c *console) error {
	data, err := os.ReadFile(g.Request)
	if err != nil {
		return err
	}
	if block, _ := pem.Decode(data); block != nil {
		data = block.Bytes
	}
	request, err := x509gost.ParseRequest(data)
	if err != nil {
		return fmt.Errorf("%s: %w", g.Request, err)
	}
	if err := request.CheckSignature(); err != nil {
		return fmt.Errorf("%s: it does not prove that its maker has the key: %w", g.Request, err)
	}
	return administer(c, &g.From, "CertifyOperator", request.Subject.String(), func(ctx context.Context, h *house) error {
		if err := h.authority.Bootstrap(ctx); err != nil {
			return err
		}
		certificate, err := h.authority.Issue(ctx, authority.Request{Suite: request.Suite, PublicKey: request.PublicKey, Subject: request.Subject, Life: g.Life})
		if err != nil {
			return err
		}
		if err := replaceFile(g.Output, pemOf(certificate), 0o644); err != nil {
			return err
		}
		return g.From.answer(c, map[string]string{"certificate": g.Output, "subject": certificate.Subject.String()},
			"%s is certified in %s.\n", printable(certificate.Subject.String()), g.Output)
	})
}

type gostTLSRevokeCommand struct {
	Certificate string     `arg:"" help:"File with the certificate, PEM or DER."`
	From        configFrom `embed:""`
}

func (g *gostTLSRevokeCommand) Run(c *console) error {
	list, err := readCertificates(g.Certificate)
	if err != nil {
		return err
	}
	subject := list[0].Subject.String()
	return administer(c, &g.From, "RevokeOperatorCertificate", subject, func(ctx context.Context, h *house) error {
		// Cessation of operation: 5 (RFC 5280, 5.3.1).
		if err := h.authority.Revoke(ctx, list[0].SerialNumber, 5, time.Now()); err != nil {
			return err
		}
		return g.From.answer(c, map[string]string{"revoked": subject}, "%s is revoked.\n", printable(subject))
	})
}

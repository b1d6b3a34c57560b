// SPDX-License-Identifier: Apache-2.0

// Package gosttls has the sub-command gost-tls, which sets up and checks HAProxy as a front end for TLS
// with GOST cipher suites. Command is the sub-command. ParseProxy and ProxyConfig.Check find errors in
// the configuration of HAProxy.
//
// The socket between the front end and the service is in package app.
package gosttls

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
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/authority"
	"tamga/internal/files"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// The files of gost-tls init.
const (
	FrontEndConfig  = "haproxy.cfg"
	FrontEndOpenSSL = "openssl-gost.cnf"
	FrontEndServer  = "server.bundle.pem"
	frontEndClients = "operators-ca.pem"
	FrontEndRoot    = "server-ca.pem"
)

//go:embed templates/*.tmpl
var frontEndTemplates embed.FS

// Ciphers are the GOST suites of TLS 1.2 in gost-engine, newer ones first.
const Ciphers = "GOST2012-KUZNYECHIK-KUZNYECHIKOMAC:GOST2012-MAGMA-MAGMAOMAC:IANA-GOST2012-GOST8912-GOST8912:LEGACY-GOST2012-GOST8912-GOST8912"

// Command is the sub-command gost-tls.
type Command struct {
	Init    gostTLSInitCommand    `cmd:"" help:"Write the configuration, key and certificate of HAProxy as the GOST-TLS front end of the service."`
	Check   gostTLSCheckCommand   `cmd:"" help:"Check the configuration of the front end for known mistakes."`
	Certify gostTLSCertifyCommand `cmd:"" help:"Issue a certificate for the request of an operator (PKCS #10) with the built-in authority."`
	Revoke  gostTLSRevokeCommand  `cmd:"" help:"Revoke a certificate that certify or init made. Takes effect with the next request."`
}

type gostTLSInitCommand struct {
	Dir    string           `default:"gost-tls" placeholder:"DIR" help:"Directory for the files. It is made if it is missing."`
	Name   []string         `placeholder:"HOST" help:"Host name or IP address that clients use. May be repeated. Default: the one of public_url."`
	Listen string           `default:":4430" placeholder:"ADDRESS" help:"Address that HAProxy listens on: [HOST]:PORT."`
	Suite  string           `default:"gost2012-256" enum:"gost2012-256,gost2012-512" help:"Algorithms of the server key: gost2012-256 or gost2012-512."`
	Force  bool             `help:"Overwrite existing files, with a new key and certificate."`
	From   cli.Installation `embed:""`
}

func (g *gostTLSInitCommand) Run(c *cli.Console) error {
	su, ok := suite.ByName(g.Suite)
	if !ok {
		return fmt.Errorf("--suite %s: want gost2012-256 or gost2012-512", g.Suite)
	}
	dir, err := filepath.Abs(g.Dir)
	if err != nil {
		return err
	}
	if strings.ContainsAny(dir, " \t\"'\\#$") {
		return fmt.Errorf("--dir %s: the configuration of HAProxy allows no spaces, quotes, backslashes, # or $ in paths", dir)
	}
	for _, name := range []string{FrontEndConfig, FrontEndServer} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil && !g.Force {
			return fmt.Errorf("%s already exists; overwrite all files, with a new key, with --force", filepath.Join(dir, name))
		}
	}
	return cli.Administer(c, &g.From, "InitGOSTTLS", "", func(ctx context.Context, s *app.Services) error {
		if s.Config.GOSTTLS.Socket == "" {
			return errors.New("gost_tls.socket is not set; name the Unix socket between the front end and the service in the configuration")
		}
		socket, err := filepath.Abs(s.Config.Path(s.Config.GOSTTLS.Socket))
		if err != nil {
			return err
		}
		names := g.Name
		if len(names) == 0 {
			u, err := url.Parse(s.Config.BaseURL())
			if err != nil {
				return err
			}
			names = []string{u.Hostname()}
		}
		if err := s.Authority.Bootstrap(ctx); err != nil {
			return err
		}
		made, err := frontEndFiles(ctx, s, su, frontEndValues{
			Dir: dir, Listen: g.Listen, Names: names, Socket: socket, Ciphers: Ciphers, Engine: cmp.Or(findEngine(), enginePlaces[0]),
		})
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, f := range made {
			if err := files.Replace(filepath.Join(dir, f.name), f.data, f.mode); err != nil {
				return err
			}
		}
		return g.From.Answer(c, map[string]any{"dir": dir, "names": names, "listen": g.Listen, "socket": socket},
			`The front end for %[2]s is in %[1]s. Start it beside the service with

  OPENSSL_CONF=%[1]s/%[3]s haproxy -f %[1]s/%[4]s

Clients must trust %[1]s/%[5]s. Check the files with: tamga gost-tls check --dir %[1]s
`, dir, strings.Join(names, ", "), FrontEndOpenSSL, FrontEndConfig, FrontEndRoot)
	})
}

// frontEndValues are the values in the templates.
type frontEndValues struct {
	Dir, Listen     string
	Names           []string
	Socket, Ciphers string
	Engine          string
	User, Group     string
}

// frontEndFile is a file to write.
type frontEndFile struct {
	name string
	mode fs.FileMode
	data []byte
}

// frontEndFiles makes a key and a certificate for the front end and executes the templates.
func frontEndFiles(ctx context.Context, s *app.Services, su *suite.Suite, v frontEndValues) ([]frontEndFile, error) {
	if name := s.Config.GOSTTLS.FrontEndUser; name != "" {
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
	certificate, err := s.Authority.Issue(ctx, authority.Request{Suite: su, PublicKey: key.Public(), Subject: subject, ServerNames: v.Names})
	if err != nil {
		return nil, err
	}
	path, err := s.AuthorityPath(ctx)
	if err != nil {
		return nil, err
	}
	root := path[len(path)-1]
	clients, err := s.OperatorAuthorities()
	if err != nil {
		return nil, err
	}
	if s.Config.OperatorCertificates.BuiltIn {
		clients = append(clients, path...)
	}
	bundle := files.PEM(certificate)
	for _, c := range path[:len(path)-1] {
		bundle = append(bundle, files.PEM(c)...)
	}
	bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: plain})...)
	var trusted []byte
	for _, c := range clients {
		trusted = append(trusted, files.PEM(c)...)
	}
	files := []frontEndFile{
		{FrontEndServer, 0o600, bundle},
		{frontEndClients, 0o644, trusted},
		{FrontEndRoot, 0o644, files.PEM(root)},
	}
	templates, err := template.ParseFS(frontEndTemplates, "templates/*.tmpl")
	if err != nil {
		return nil, err
	}
	for _, name := range []string{FrontEndConfig, FrontEndOpenSSL} {
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, name+".tmpl", v); err != nil {
			return nil, err
		}
		files = append(files, frontEndFile{name, 0o644, text.Bytes()})
	}
	return files, nil
}

// enginePlaces are the paths of gost-engine in distributions.
var enginePlaces = []string{
	"/usr/lib/x86_64-linux-gnu/engines-3/gost.so",
	"/usr/lib/*/engines-3/gost.so",
	"/usr/lib64/engines-3/gost.so",
	"/usr/lib/engines-3/gost.so",
	"/usr/local/lib*/engines-3/gost.so",
}

// findEngine returns the path of gost-engine, "" if it is not found.
func findEngine() string {
	for _, pattern := range enginePlaces {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

type gostTLSCertifyCommand struct {
	Request string           `arg:"" help:"File with the request, PEM or DER. It has the public key and the subject."`
	Output  string           `short:"o" required:"" placeholder:"FILE" help:"Output file for the certificate (PEM)."`
	Life    time.Duration    `placeholder:"TIME" help:"Lifetime of the certificate, for instance 2160h. Default: the one of certificates of users."`
	From    cli.Installation `embed:""`
}

func (g *gostTLSCertifyCommand) Run(c *cli.Console) error {
	data, err := os.ReadFile(g.Request)
	if err != nil {
		return err
	}
	data = x509gost.Narrow(data)
	if block, _ := pem.Decode(data); block != nil {
		data = block.Bytes
	}
	request, err := x509gost.ParseRequest(data)
	if err != nil {
		return fmt.Errorf("%s: %w", g.Request, err)
	}
	if err := request.CheckSignature(); err != nil {
		return fmt.Errorf("%s: the signature of the request is invalid: %w", g.Request, err)
	}
	return cli.Administer(c, &g.From, "CertifyOperator", request.Subject.String(), func(ctx context.Context, s *app.Services) error {
		if err := s.Authority.Bootstrap(ctx); err != nil {
			return err
		}
		certificate, err := s.Authority.Issue(ctx, authority.Request{Suite: request.Suite, PublicKey: request.PublicKey, Subject: request.Subject, Life: g.Life})
		if err != nil {
			return err
		}
		if err := files.Replace(g.Output, files.PEM(certificate), 0o644); err != nil {
			return err
		}
		return g.From.Answer(c, map[string]string{"certificate": g.Output, "subject": certificate.Subject.String()},
			"The certificate of %s is in %s.\n", cli.Printable(certificate.Subject.String()), g.Output)
	})
}

type gostTLSRevokeCommand struct {
	Certificate string           `arg:"" help:"File with the certificate, PEM or DER."`
	From        cli.Installation `embed:""`
}

func (g *gostTLSRevokeCommand) Run(c *cli.Console) error {
	list, err := files.Certificates(g.Certificate)
	if err != nil {
		return err
	}
	subject := list[0].Subject.String()
	return cli.Administer(c, &g.From, "RevokeOperatorCertificate", subject, func(ctx context.Context, s *app.Services) error {
		// Cessation of operation: 5 (RFC 5280, 5.3.1).
		if err := s.Authority.Revoke(ctx, list[0].SerialNumber, 5, s.DB.Now()); err != nil {
			return err
		}
		return g.From.Answer(c, map[string]string{"revoked": subject}, "%s is revoked.\n", cli.Printable(subject))
	})
}

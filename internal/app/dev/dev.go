// SPDX-License-Identifier: Apache-2.0

// Package dev makes the installation of serve --dev: a configuration, keys, an authority, an
// operator and the user demo. Config returns the configuration of a directory, Furnish makes what is
// missing, and Read reads dev.json, which describes the running server to programs.
//
// The package starts no server: package serve does.
package dev

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tamga/internal/app"
	"tamga/internal/config"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/user"
	"tamga/internal/files"
	webconsole "tamga/internal/web/console"
	"tamga/internal/web/pages"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Read reads dev.json of a directory. If there is none, the error wraps os.ErrNotExist.
func Read(dir string) (*Description, error) {
	path := filepath.Join(dir, "dev.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	dev := &Description{}
	if err := json.Unmarshal(text, dev); err != nil {
		return nil, fmt.Errorf("%s: not a dev.json of tamga serve --dev: %w", path, err)
	}
	return dev, nil
}

// Names of files in the directory of serve --dev, and of the group of its users.
const (
	devFile    = "dev.json"
	devSecrets = "dev-secrets.json" // exists until the first start is complete
	devGroup   = "Default"

	devBrowserKey = "webpush.pem" // for notifications of browsers
)

// Config returns the configuration of serve --dev for the directory dir and makes the directory, its
// master key and the key for notifications of browsers if they are missing. settings are NAME=VALUE. anywhere permits addresses other than
// loopback.
func Config(dir string, settings []string, anywhere bool) (*config.Config, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the data directory: %w", err)
	}
	c := config.Dev(dir, anywhere, app.Parts())
	if err := c.Apply(append([]string{app.BrowserKeySetting + "=" + devBrowserKey}, settings...)); err != nil {
		return nil, err
	}
	if err := ensureMasterKey(filepath.Join(dir, config.DevMasterKey)); err != nil {
		return nil, err
	}
	_, _, err := app.MakeBrowserKey(c)
	return c, err
}

// ensureMasterKey makes the file of the master key if it is missing.
func ensureMasterKey(file string) error {
	key := make([]byte, 32)
	rand.Read(key)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("making the master key: %w", err)
	}
	_, err = fmt.Fprintln(f, hex.EncodeToString(key))
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		os.Remove(file)
	}
	return err
}

// Description is dev.json: what clients, scripts and people need to know of a server started with
// --dev. Paths are relative to its directory.
type Description struct {
	BaseURL      string        `json:"base_url"`
	IDPURL       string        `json:"idp_url"`
	DocumentsURL string        `json:"document_store_url"`
	SVSURL       string        `json:"svs_url"`
	TokenURL     string        `json:"token_url"`
	TSPURL       string        `json:"tsp_url"`
	OCSPURL      string        `json:"ocsp_url"`
	CRLURL       string        `json:"crl_url"`
	CapturedURL  string        `json:"captured_messages_url,omitempty"`
	Resource     string        `json:"resource"`
	ClientID     string        `json:"client_id"`
	MobileSystem string        `json:"mobile_system_id"`
	DevicesURL   string        `json:"devices_url"`
	CAPEM        string        `json:"ca_pem"`
	Operator     User          `json:"operator"`
	User         User          `json:"user"`
	Certificates []Certificate `json:"certificates"`
	// StartURL is the address for a person who looks around: its page has buttons to sign in. The
	// address has a secret that each start draws. It is empty if others can reach the server.
	StartURL string `json:"start_url,omitempty"`

	trial *pages.Trial
}

// User is a user with the password that the first start drew.
type User struct {
	ID       string `json:"id"`
	Login    string `json:"login"`
	Password string `json:"password"`
}

// Certificate is a certificate of the user demo. PIN is empty if its key has none.
type Certificate struct {
	ID      int64  `json:"id"`
	Suite   string `json:"suite"`
	Default bool   `json:"default"`
	PIN     string `json:"pin"`
	PEM     string `json:"pem"`

	Encryption bool `json:"encryption"` // it is for encryption, too
}

// secrets are the passwords and the PIN that a first start draws. They are written to disk before
// the database, so that an interrupted start can be repeated.
type secrets struct {
	Operator string `json:"operator_password"`
	User     string `json:"user_password"`
	PIN      string `json:"pin"`
}

// Furnish makes what is missing of the group, the operator, the user demo, the certificates and the
// files of serve --dev. It always writes dev.json, since the address may have changed.
func Furnish(ctx context.Context, s *app.Services, dir string) (*Description, error) {
	drawn, first, err := devSecretsOf(dir, s.Config.PIN.MinLength)
	if err != nil {
		return nil, err
	}
	if err := s.Authority.Bootstrap(ctx); err != nil {
		return nil, err
	}
	_, err = s.Users.AddGroup(ctx, devGroup, "")
	if err != nil && !fault.Is(err, fault.InvalidObjectState) {
		return nil, err
	}
	operator, err := furnishUser(ctx, s, user.Account{Login: "operator", Group: devGroup, Operator: true, Groups: []string{devGroup}}, drawn.Operator, first)
	if err != nil {
		return nil, err
	}
	if pages := &s.Config.Pages; len(pages.Administrators) == 0 {
		pages.Administrators = []string{operator.ID} // before a server is made of the configuration
	}
	demo, err := furnishUser(ctx, s, user.Account{Login: "demo", DisplayName: "Demo User", Group: devGroup}, drawn.User, first)
	if err != nil {
		return nil, err
	}
	certificates, err := furnishCertificates(ctx, s, dir, demo.ID, drawn.PIN)
	if err != nil {
		return nil, err
	}
	if err := writeAuthorities(ctx, s, filepath.Join(dir, "ca.pem")); err != nil {
		return nil, err
	}
	base := s.Config.BaseURL()
	d := &Description{
		BaseURL:      base + s.Config.SignServer,
		IDPURL:       base + s.Config.IDP,
		DocumentsURL: base + s.Config.DocumentStore,
		SVSURL:       base + s.Config.SVS,
		TokenURL:     base + s.Config.IDP + "/oauth/token",
		TSPURL:       base + authority.TSPPath(),
		OCSPURL:      base + authority.OCSPPath(),
		CRLURL:       base + authority.CRLPath("gost"),
		Resource:     s.Config.Resource,
		ClientID:     config.DevClient,
		MobileSystem: s.Config.Devices.Settings(base, "").Systems[0].ID,
		DevicesURL:   base + s.Config.Devices.Path,
		CAPEM:        "ca.pem",
		Operator:     User{operator.ID, operator.Login, drawn.Operator},
		User:         User{demo.ID, demo.Login, drawn.User},
		Certificates: certificates,
	}
	if s.Captured != nil {
		d.CapturedURL = base + webconsole.MessagesPath
	}
	if s.Config.Pages.Enabled && s.Config.OnLoopback() {
		d.trial = &pages.Trial{Token: rand.Text(), Accounts: []pages.TrialAccount{
			{Login: d.User.Login, Password: d.User.Password}, {Login: d.Operator.Login, Password: d.Operator.Password},
		}}
		d.StartURL = base + "/?try=" + d.trial.Token
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := files.Replace(filepath.Join(dir, devFile), append(text, '\n'), 0o600); err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(dir, devSecrets)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return d, nil
}

// devSecretsOf returns the passwords and the PIN of a directory. A new PIN has at least length
// digits. first reports whether the first start is not complete.
func devSecretsOf(dir string, length int) (s secrets, first bool, err error) {
	d, err := Read(dir)
	if err == nil {
		s = secrets{Operator: d.Operator.Password, User: d.User.Password}
		for _, c := range d.Certificates {
			if c.PIN != "" {
				s.PIN = c.PIN
			}
		}
		return s, false, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return s, false, err
	}
	file := filepath.Join(dir, devSecrets)
	data, err := os.ReadFile(file)
	if err == nil {
		return s, true, json.Unmarshal(data, &s)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return s, true, err
	}
	s = secrets{Operator: rand.Text(), User: rand.Text(), PIN: randomPIN(length)}
	if data, err = json.Marshal(s); err != nil {
		return s, true, err
	}
	return s, true, files.Replace(file, data, 0o600)
}

// randomPIN draws at least eight decimal digits that are not a simple PIN.
func randomPIN(length int) string {
	for {
		var pin strings.Builder
		for pin.Len() < max(8, length) {
			var b [1]byte
			rand.Read(b[:])
			if b[0] < 250 { // every digit is equally likely
				pin.WriteByte('0' + b[0]%10)
			}
		}
		if !keys.SimplePIN(pin.String()) {
			return pin.String()
		}
	}
}

// furnishUser registers a user if it is missing. It sets the password of a new user, and on a first
// start.
func furnishUser(ctx context.Context, s *app.Services, r user.Account, password string, first bool) (user.User, error) {
	u, err := s.Users.ByLogin(ctx, r.Login)
	if fault.Is(err, fault.UserNotFound) {
		u, err = s.Users.Add(ctx, r)
		first = true
	}
	if err != nil || !first {
		return u, err
	}
	return u, s.Identity.SetPassword(ctx, u.ID, password)
}

// devKeys are the keys of the user demo: one of each suite without a PIN, one with a PIN, and one that is also
// for encryption.
var devKeys = []struct {
	suite                     *suite.Suite
	pin, standard, encryption bool
}{
	{suite: suite.GOST2012x256, standard: true},
	{suite: suite.GOST2012x512},
	{suite: suite.GOST2001},
	{suite: suite.ECDSAP256},
	{suite: suite.RSASHA256},
	{suite: suite.GOST2012x256, pin: true},
	{suite: suite.GOST2012x256, encryption: true},
}

// furnishCertificates issues the missing certificates of demo and writes all of them to files.
func furnishCertificates(ctx context.Context, s *app.Services, dir, userID, pin string) ([]Certificate, error) {
	if err := os.MkdirAll(filepath.Join(dir, "certs"), 0o700); err != nil {
		return nil, err
	}
	have, err := s.Keys.List(ctx, userID)
	if err != nil {
		return nil, err
	}
	subject, err := x509gost.BuildName([]x509gost.Attribute{
		{OID: x509gost.OIDCountry, Value: "RU"},
		{OID: x509gost.OIDCommonName, Value: "Demo User"},
	})
	if err != nil {
		return nil, err
	}
	var described []Certificate
	for _, want := range devKeys {
		var c *keys.Certificate
		for _, h := range have {
			if c == nil && h.X509.Suite == want.suite && h.HasPIN == want.pin && h.ForEncryption() == want.encryption && h.Status == keys.Active {
				c = h
			}
		}
		if c == nil {
			order := keys.IssueOrder{UserID: userID, Suite: want.suite, Subject: subject, Default: want.standard, Encryption: &want.encryption}
			if want.pin {
				order.PIN = pin
			}
			if c, err = s.Keys.Issue(ctx, order); err != nil {
				return nil, err
			}
		}
		d := Certificate{ID: c.ID, Suite: want.suite.Name, Default: c.Default, Encryption: want.encryption, PEM: fmt.Sprintf("certs/%d.pem", c.ID)}
		if want.pin {
			d.PIN = pin
		}
		described = append(described, d)
		if err := files.Replace(filepath.Join(dir, d.PEM), files.PEM(c.X509), 0o644); err != nil {
			return nil, err
		}
	}
	return described, nil
}

// writeAuthorities writes the root and issuing authorities as PEM. With them a program can build the
// path of every certificate.
func writeAuthorities(ctx context.Context, s *app.Services, file string) error {
	roots, err := s.Authority.Roots(ctx)
	if err != nil {
		return err
	}
	issuing, err := s.Authority.Issuing(ctx)
	if err != nil {
		return err
	}
	var text []byte
	for _, c := range append(roots, issuing...) {
		text = append(text, files.PEM(c)...)
	}
	return files.Replace(file, text, 0o644)
}

// Trial returns what the front page needs to sign people in by a button, who try the program out at
// this machine. It is nil if others can reach the server.
func (d *Description) Trial() *pages.Trial { return d.trial }

// Explain prints the addresses of the server and commands to paste. program is the command that
// starts this program. say puts a text with its values into the language of the reader.
func (d *Description) Explain(w io.Writer, dir, program string, say func(format string, values ...any) string) {
	messages := say("are sent as configured")
	if d.CapturedURL != "" {
		messages = say("%s (stored there, not sent)", d.CapturedURL)
	}
	pages := say("not served")
	if d.StartURL != "" {
		pages = d.StartURL
	}
	fmt.Fprint(w, say(`Tamga runs in development mode, not for production. Its files are in %[1]s; %[2]s describes them.

  in a browser       %[3]s
  signing service    %[4]s
  identity provider  %[5]s
  user               %[6]s, password in %[2]s
  operator           %[7]s, password in %[2]s
  e-mails and SMS    %[8]s
  authority          %[9]s, revocation list %[10]s

`, dir, devFile, pages, d.BaseURL, d.IDPURL, d.User.Login, d.Operator.Login, messages, filepath.Join(dir, d.CAPEM), d.CRLURL))
	fmt.Fprintf(w, `%[1]s

  echo 'Hello' > hello.txt
  %[2]s sign hello.txt --data %[3]s
  %[2]s verify hello.txt.sig --ca %[4]s

`, say("Sign a file and check it:"), program, dir, filepath.Join(dir, d.CAPEM))
	fmt.Fprintf(w, `%[1]s

  PASSWORD=$(sed -n '/"user"/,/}/s/.*"password": "\(.*\)".*/\1/p' %[2]s/%[3]s)
  TOKEN=$(curl -s %[4]s -d grant_type=password -d username=%[5]s -d password=$PASSWORD \
    -d client_id=%[6]s -d resource=%[7]s | sed 's/.*"access_token":"\([^"]*\)".*/\1/')
  curl -s %[8]s/api/documents -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json; charset=utf-8' \
    -d '{"Content":"SGVsbG8K","Signature":{"Type":"CAdES","Parameters":{"Hash":"False","CADESType":"BES","IsDetached":"True"},"CertificateId":0,"PinCode":""}}'

`, say("The same with curl:"), dir, devFile, d.TokenURL, d.User.Login, d.ClientID, d.Resource, d.BaseURL)
}

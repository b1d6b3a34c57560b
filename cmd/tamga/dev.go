package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
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
	webconsole "tamga/internal/web/console"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Names inside the directory of serve --dev.
const (
	devFile    = "dev.json"
	devSecrets = "dev-secrets.json" // there only while the first start is under way
	devGroup   = "Default"
)

// devConfig is the configuration of serve --dev over dir.
func devConfig(dir string, settings []string, anywhere bool) (*config.Config, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the data directory: %w", err)
	}
	c := config.Dev(dir, anywhere, app.Parts())
	if err := c.Apply(settings); err != nil {
		return nil, err
	}
	return c, ensureMasterKey(filepath.Join(dir, config.DevMasterKey))
}

// ensureMasterKey makes the master key of a new directory.
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

// devDescription is dev.json: everything a client, a script or a person needs to
// know of a server started with --dev. Paths are relative to its directory.
type devDescription struct {
	BaseURL      string           `json:"base_url"`
	IDPURL       string           `json:"idp_url"`
	DocumentsURL string           `json:"document_store_url"`
	SVSURL       string           `json:"svs_url"`
	TokenURL     string           `json:"token_url"`
	TSPURL       string           `json:"tsp_url"`
	OCSPURL      string           `json:"ocsp_url"`
	CRLURL       string           `json:"crl_url"`
	CapturedURL  string           `json:"captured_messages_url,omitempty"`
	Resource     string           `json:"resource"`
	ClientID     string           `json:"client_id"`
	MobileSystem string           `json:"mobile_system_id"`
	DevicesURL   string           `json:"devices_url"`
	CAPEM        string           `json:"ca_pem"`
	Operator     devUser          `json:"operator"`
	User         devUser          `json:"user"`
	Certificates []devCertificate `json:"certificates"`
}

type devUser struct {
	ID       string `json:"id"`
	Login    string `json:"login"`
	Password string `json:"password"`
}

type devCertificate struct {
	ID      int64  `json:"id"`
	Suite   string `json:"suite"`
	Default bool   `json:"default"`
	PIN     string `json:"pin"`
	PEM     string `json:"pem"`
}

// secrets are what a first start draws. They are on disk before the database
// knows them, so that a start that was interrupted goes on where it was.
type secrets struct {
	Operator string `json:"operator_password"`
	User     string `json:"user_password"`
	PIN      string `json:"pin"`
}

// furnish makes what serve --dev promises, unless it is there: group, operator,
// user, certificates, files. It writes dev.json anew, since the address may be
// another one.
func furnish(ctx context.Context, h *house, dir string) (*devDescription, error) {
	drawn, first, err := devSecretsOf(dir, h.config.PIN.MinLength)
	if err != nil {
		return nil, err
	}
	if err := h.authority.Bootstrap(ctx); err != nil {
		return nil, err
	}
	_, err = h.users.AddGroup(ctx, devGroup, "")
	if err != nil && !fault.Is(err, fault.InvalidObjectState) {
		return nil, err
	}
	operator, err := furnishUser(ctx, h, user.Account{Login: "operator", Group: devGroup, Operator: true, Groups: []string{devGroup}}, drawn.Operator, first)
	if err != nil {
		return nil, err
	}
	demo, err := furnishUser(ctx, h, user.Account{Login: "demo", DisplayName: "Demo User", Group: devGroup}, drawn.User, first)
	if err != nil {
		return nil, err
	}
	certificates, err := furnishCertificates(ctx, h, dir, demo.ID, drawn.PIN)
	if err != nil {
		return nil, err
	}
	if err := writeAuthorities(ctx, h, filepath.Join(dir, "ca.pem")); err != nil {
		return nil, err
	}
	base := h.config.BaseURL()
	d := &devDescription{
		BaseURL:      base + h.config.SignServer,
		IDPURL:       base + h.config.IDP,
		DocumentsURL: base + h.config.DocumentStore,
		SVSURL:       base + h.config.SVS,
		TokenURL:     base + h.config.IDP + "/oauth/token",
		TSPURL:       base + authority.TSPPath(),
		OCSPURL:      base + authority.OCSPPath(),
		CRLURL:       base + authority.CRLPath("gost"),
		Resource:     h.config.Resource,
		ClientID:     config.DevClient,
		MobileSystem: h.config.Devices.Settings(base, "").Systems[0].ID,
		DevicesURL:   base + h.config.Devices.Path,
		CAPEM:        "ca.pem",
		Operator:     devUser{operator.ID, operator.Login, drawn.Operator},
		User:         devUser{demo.ID, demo.Login, drawn.User},
		Certificates: certificates,
	}
	if h.captured != nil {
		d.CapturedURL = base + webconsole.MessagesPath
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := replaceFile(filepath.Join(dir, devFile), append(text, '\n'), 0o600); err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(dir, devSecrets)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return d, nil
}

// devSecretsOf returns the passwords and the PIN of a directory, a new PIN of at least
// length digits; first tells that
// its first start is not complete.
func devSecretsOf(dir string, length int) (s secrets, first bool, err error) {
	d, err := readDev(dir)
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
	return s, true, replaceFile(file, data, 0o600)
}

// randomPIN draws decimal digits, eight at least.
func randomPIN(length int) string {
	for {
		var pin strings.Builder
		for pin.Len() < max(8, length) {
			var b [1]byte
			rand.Read(b[:])
			if b[0] < 250 { // each digit as likely as the others
				pin.WriteByte('0' + b[0]%10)
			}
		}
		if !keys.SimplePIN(pin.String()) {
			return pin.String()
		}
	}
}

// furnishUser registers a user unless known; on a first start the password is set.
func furnishUser(ctx context.Context, h *house, r user.Account, password string, first bool) (user.User, error) {
	u, err := h.users.ByLogin(ctx, r.Login)
	if fault.Is(err, fault.UserNotFound) {
		u, err = h.users.Add(ctx, r)
		first = true
	}
	if err != nil || !first {
		return u, err
	}
	identity, err := h.auth(ctx)
	if err != nil {
		return u, err
	}
	return u, identity.SetPassword(ctx, u.ID, password)
}

// devKeys are the keys of the user demo: one of each suite without a PIN and one
// with.
var devKeys = []struct {
	suite         *suite.Suite
	pin, standard bool
}{
	{suite: suite.GOST2012x256, standard: true},
	{suite: suite.GOST2012x512},
	{suite: suite.GOST2001},
	{suite: suite.ECDSAP256},
	{suite: suite.RSASHA256},
	{suite: suite.GOST2012x256, pin: true},
}

// furnishCertificates issues the certificates of demo that are missing and
// writes all of them to files.
func furnishCertificates(ctx context.Context, h *house, dir, userID, pin string) ([]devCertificate, error) {
	if err := os.MkdirAll(filepath.Join(dir, "certs"), 0o700); err != nil {
		return nil, err
	}
	have, err := h.keys.List(ctx, userID)
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
	var described []devCertificate
	for _, want := range devKeys {
		var c *keys.Certificate
		for _, h := range have {
			if c == nil && h.X509.Suite == want.suite && h.HasPIN == want.pin && h.Status == keys.Active {
				c = h
			}
		}
		if c == nil {
			order := keys.IssueOrder{UserID: userID, Suite: want.suite, Subject: subject, Default: want.standard}
			if want.pin {
				order.PIN = pin
			}
			if c, err = h.keys.Issue(ctx, order); err != nil {
				return nil, err
			}
		}
		d := devCertificate{ID: c.ID, Suite: want.suite.Name, Default: c.Default, PEM: fmt.Sprintf("certs/%d.pem", c.ID)}
		if want.pin {
			d.PIN = pin
		}
		described = append(described, d)
		if err := replaceFile(filepath.Join(dir, d.PEM), pemOf(c.X509), 0o644); err != nil {
			return nil, err
		}
	}
	return described, nil
}

// writeAuthorities writes the roots and issuing authorities as PEM: what a
// program needs to build the path of every certificate.
func writeAuthorities(ctx context.Context, h *house, file string) error {
	roots, err := h.authority.Roots(ctx)
	if err != nil {
		return err
	}
	issuing, err := h.authority.Issuing(ctx)
	if err != nil {
		return err
	}
	var text []byte
	for _, c := range append(roots, issuing...) {
		text = append(text, pemOf(c)...)
	}
	return replaceFile(file, text, 0o644)
}

func pemOf(c *x509gost.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// replaceFile writes a file beside the one it is to become, so that a reader
// sees the old one or the new one, whole.
func replaceFile(file string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// explain prints where things are and what to paste first, in a program started as
// program.
func (d *devDescription) explain(w io.Writer, dir, program string) {
	messages := "are sent as configured"
	if d.CapturedURL != "" {
		messages = d.CapturedURL + " (kept there, not sent)"
	}
	fmt.Fprintf(w, `Tamga serves for trying out. Everything it made lies in %[1]s; %[2]s there names it.

  signing service    %[3]s
  identity provider  %[4]s
  user               %[5]s, password in %[2]s
  operator           %[11]s, password in %[2]s
  e-mails and SMS    %[12]s
  authority          %[6]s, revocation list %[7]s

Sign a file and check it:

  echo 'Hello' > hello.txt
  %[13]s sign hello.txt --data %[1]s
  %[13]s verify hello.txt.sig --ca %[6]s

The same with curl:

  PASSWORD=$(sed -n '/"user"/,/}/s/.*"password": "\(.*\)".*/\1/p' %[1]s/%[2]s)
  TOKEN=$(curl -s %[8]s -d grant_type=password -d username=%[5]s -d password=$PASSWORD \
    -d client_id=%[9]s -d resource=%[10]s | sed 's/.*"access_token":"\([^"]*\)".*/\1/')
  curl -s %[3]s/api/documents -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json; charset=utf-8' \
    -d '{"Content":"SGVsbG8K","Signature":{"Type":"CAdES","Parameters":{"Hash":"False","CADESType":"BES","IsDetached":"True"},"CertificateId":0,"PinCode":""}}'

`, dir, devFile, d.BaseURL, d.IDPURL, d.User.Login, filepath.Join(dir, d.CAPEM), d.CRLURL, d.TokenURL, d.ClientID, d.Resource, d.Operator.Login, messages, program)
}

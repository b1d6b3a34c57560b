package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"tamga/internal/domain/keys"
	"tamga/pki/pfx"
	"tamga/pki/x509gost"
)

// enrolment reads who certifies keys.
func (h *house) enrolment() (keys.Enrolment, error) {
	c := h.config.Certificates
	e := keys.Enrolment{FixedNames: c.FixedNames, Life: c.LongestLife, Naming: h.users.Naming.Components()}
	if c.BuiltIn {
		e.Authorities = append(e.Authorities, keys.Authority{ID: keys.BuiltIn, Name: c.Name, Operator: c.Approval == "operator"})
	}
	for _, a := range c.Authorities {
		one := keys.Authority{ID: a.ID, Name: a.Name, Outside: true}
		data, err := os.ReadFile(h.config.Path(a.CertificatesFile))
		if err != nil {
			return e, fmt.Errorf("certificates.authorities: %s: %w", a.Name, err)
		}
		list, err := x509gost.ParseCertificates(data)
		if err != nil {
			return e, fmt.Errorf("certificates.authorities: %s: %w", a.Name, err)
		}
		for _, cert := range list {
			switch {
			case !cert.IsCA:
				return e, fmt.Errorf("certificates.authorities: %s: %s is no authority's certificate", a.Name, cert.Subject)
			case cert.IsSelfIssued():
				one.Roots = append(one.Roots, cert)
			default:
				one.Intermediates = append(one.Intermediates, cert)
			}
		}
		e.Authorities = append(e.Authorities, one)
	}
	return e, nil
}

// profiles tell what users are registered as; see keys.Profiles.
type profiles struct{ *house }

// oidCommonName is what users are called by who have no other name.
const oidCommonName = "2.5.4.3"

func (p profiles) ProfileOf(ctx context.Context, userID string) (map[string]string, error) {
	values, err := p.users.NameStore.NameOf(ctx, userID)
	if err != nil {
		return nil, err
	}
	if values == nil {
		values = map[string]string{}
	}
	if values[oidCommonName] == "" {
		u, err := p.users.Get(ctx, userID)
		if err != nil {
			return nil, err
		}
		for _, name := range []string{u.DisplayName, u.Login, u.ID} {
			if name != "" {
				values[oidCommonName] = name
				break
			}
		}
	}
	return values, nil
}

// revocations ask outside authorities about their certificates; see keys.Evidence.
type revocations struct{ *house }

func (r revocations) Revocation(ctx context.Context, cert, issuer *x509gost.Certificate) (answer, list []byte, err error) {
	if r.network == nil {
		return nil, nil, errors.New("nobody is asked about certificates here: a running server does")
	}
	proof, err := r.network.Revocation(ctx, cert, issuer, time.Time{})
	return proof.OCSP, proof.CRL, err
}

type keyCommand struct {
	Import keyImportCommand `cmd:"" help:"Take a key with its certificate over from a PKCS #12 file."`
	Export keyExportCommand `cmd:"" help:"Write a key with its certificate into a PKCS #12 file, where the configuration allows it."`
	Rotate keyRotateCommand `cmd:"" name:"rotate-tokens" help:"Make a new key for signing access tokens; the old one is accepted until nothing it signed is alive."`
}

type keyImportCommand struct {
	onUser       `embed:""`
	File         string `arg:"" help:"PKCS #12 file (RFC 9548, or PBES2 with AES)."`
	PasswordFile string `placeholder:"FILE" help:"File with the password of the PKCS #12 file; without it the password is asked for."`
	PINFile      string `name:"pin-file" placeholder:"FILE" help:"File with the PIN the key is to have here; without it it has none."`
	Name         string `help:"Friendly name of the certificate; otherwise that of the file."`
	Default      bool   `help:"Make it the user's default certificate."`
}

func (i *keyImportCommand) Run(c *console) error {
	file, err := os.Open(i.File)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, pfx.MaxSize+1))
	if err != nil {
		return err
	}
	defer clear(data)
	password, err := secretOf(c, i.PasswordFile, "--password-file", "Password of "+printable(i.File)+": ")
	if err != nil {
		return err
	}
	pin := ""
	if i.PINFile != "" {
		if pin, err = ownSecret(i.PINFile, "--pin-file"); err != nil {
			return err
		}
	}
	return administer(c, &i.From, "ImportKey", i.Login, func(ctx context.Context, h *house) error {
		u, err := i.find(ctx, h)
		if err != nil {
			return err
		}
		if err := h.authority.Bootstrap(ctx); err != nil {
			return err
		}
		cert, err := h.keys.Import(ctx, keys.ImportOrder{UserID: u.ID, File: data, Password: password, PIN: pin, Default: i.Default, FriendlyName: i.Name})
		if err != nil {
			return err
		}
		return i.From.answer(c, certificateLine(cert), "Certificate %d, %s, is imported.\n", cert.ID, printable(cert.X509.Subject.String()))
	})
}

// secretOf takes a secret from a file or asks for it.
func secretOf(c *console, file, flag, prompt string) (string, error) {
	if file != "" {
		return ownSecret(file, flag)
	}
	return askSecret(c.ctx, prompt, flag)
}

type keyExportCommand struct {
	ID           int64      `arg:"" help:"Number of the certificate."`
	Out          string     `short:"o" required:"" placeholder:"FILE" help:"File to write."`
	Force        bool       `help:"Overwrite the file."`
	Cipher       string     `default:"auto" enum:"auto,kuznyechik,magma,gost28147,aes" help:"kuznyechik, magma, gost28147 or aes; auto takes kuznyechik for GOST keys and aes for others."`
	PasswordFile string     `placeholder:"FILE" help:"File with the password the PKCS #12 file is to have; without it the password is asked for."`
	PINFile      string     `name:"pin-file" placeholder:"FILE" help:"File with the PIN of the key, where it has one."`
	From         configFrom `embed:""`
}

// exportCiphers are the ciphers by the names of the command line.
var exportCiphers = map[string]pfx.Cipher{
	"kuznyechik": pfx.Kuznyechik, "magma": pfx.Magma, "gost28147": pfx.GOST28147, "aes": pfx.AES256,
}

func (e *keyExportCommand) Run(c *console) error {
	if err := checkTarget(e.Out, e.Force); err != nil {
		return err
	}
	password, err := secretOf(c, e.PasswordFile, "--password-file", "Password of "+printable(e.Out)+": ")
	if err != nil {
		return err
	}
	pin := ""
	if e.PINFile != "" {
		if pin, err = ownSecret(e.PINFile, "--pin-file"); err != nil {
			return err
		}
	}
	return administer(c, &e.From, "ExportKey", fmt.Sprint("certificate ", e.ID), func(ctx context.Context, h *house) error {
		order := keys.ExportOrder{ID: e.ID, PIN: pin, Password: password}
		cipher, named := exportCiphers[e.Cipher]
		order.Options.Cipher = cipher
		order.Auto = !named
		file, err := h.keys.Export(ctx, order)
		if err != nil {
			return err
		}
		out, err := createOutfile(e.Out, e.Force)
		if err != nil {
			return err
		}
		defer out.discard()
		if _, err := io.Copy(out, bytes.NewReader(file)); err != nil {
			return err
		}
		if err := out.commit(); err != nil {
			return err
		}
		if err := os.Chmod(e.Out, 0o600); err != nil {
			return err
		}
		return e.From.answer(c, map[string]any{"exported": e.ID, "file": e.Out}, "Certificate %d and its key are in %s.\n", e.ID, e.Out)
	})
}

type requestCommand struct {
	List    requestListCommand    `cmd:"" help:"List requests of users that wait for an operator or for a certificate."`
	Approve requestApproveCommand `cmd:"" help:"Have the built-in authority do what a request asks for."`
	Reject  requestRejectCommand  `cmd:"" help:"Refuse what a request asks for."`
}

type requestListCommand struct {
	From configFrom `embed:""`
}

// requestJSON is a waiting request for programs.
type requestJSON struct {
	ID        int64     `json:"id"`
	UserID    string    `json:"user_id"`
	Type      string    `json:"type"`
	Status    string    `json:"status"`
	Authority string    `json:"authority"`
	Subject   string    `json:"subject"`
	CreatedAt time.Time `json:"created_at"`
	Request   []byte    `json:"request"` // PKCS #10
	// Certificate is the one that was issued, or is to be revoked.
	Certificate int64 `json:"certificate"`
}

func requestLine(q *keys.Request) requestJSON {
	return requestJSON{q.ID, q.UserID, q.Type.String(), q.Status.String(), q.AuthorityName, q.Subject, q.CreatedAt, q.DER, q.CertificateID}
}

func (l *requestListCommand) Run(c *console) error {
	return administer(c, &l.From, "ListRequests", "", func(ctx context.Context, h *house) error {
		list, err := h.keys.Waiting(ctx)
		if err != nil {
			return err
		}
		lines := []requestJSON{}
		var text strings.Builder
		table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		for _, q := range list {
			lines = append(lines, requestLine(q))
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", q.ID, q.Type, printable(q.AuthorityName), q.CreatedAt.Format(time.DateOnly), q.UserID, printable(q.Subject))
		}
		table.Flush()
		return l.From.answer(c, lines, "%s", text.String())
	})
}

type requestApproveCommand struct {
	ID   int64      `arg:"" help:"Number of the request."`
	From configFrom `embed:""`
}

func (a *requestApproveCommand) Run(c *console) error {
	return administer(c, &a.From, "ApproveRequest", fmt.Sprint("request ", a.ID), func(ctx context.Context, h *house) error {
		if err := h.authority.Bootstrap(ctx); err != nil {
			return err
		}
		q, err := h.keys.Approve(ctx, a.ID)
		if err != nil {
			return err
		}
		return a.From.answer(c, requestLine(q), "Request %d is approved: certificate %d.\n", q.ID, q.CertificateID)
	})
}

type requestRejectCommand struct {
	ID   int64      `arg:"" help:"Number of the request."`
	From configFrom `embed:""`
}

func (r *requestRejectCommand) Run(c *console) error {
	return administer(c, &r.From, "RejectRequest", fmt.Sprint("request ", r.ID), func(ctx context.Context, h *house) error {
		q, err := h.keys.Reject(ctx, r.ID)
		if err != nil {
			return err
		}
		return r.From.answer(c, requestLine(q), "Request %d is rejected.\n", q.ID)
	})
}

type certUnholdCommand struct {
	ID   int64      `arg:"" help:"Number of the certificate."`
	From configFrom `embed:""`
}

func (u *certUnholdCommand) Run(c *console) error {
	return administer(c, &u.From, "UnholdCertificate", fmt.Sprint(u.ID), func(ctx context.Context, h *house) error {
		if err := h.keys.Unhold(ctx, u.ID); err != nil {
			return err
		}
		return u.From.answer(c, map[string]int64{"unheld": u.ID}, "Certificate %d is good again.\n", u.ID)
	})
}

// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/user"
)

type certificateCommand struct {
	Add    certificateAddCommand    `cmd:"" help:"Add a certificate to sign in with."`
	List   certificateListCommand   `cmd:"" help:"List the certificates to sign in with."`
	Remove certificateRemoveCommand `cmd:"" help:"Remove a certificate to sign in with. Revokes all tokens of the user."`
}

type certificateAddCommand struct {
	onUser `embed:""`
	File   string `arg:"" help:"File with the certificate, PEM or DER."`
}

func (a *certificateAddCommand) Run(c *cli.Console) error {
	der, err := certificateFile(a.File)
	if err != nil {
		return err
	}
	return cli.Administer(c, &a.From, "AddSignInCertificate", a.Login, func(ctx context.Context, s *app.Services) error {
		x, err := a.find(ctx, s)
		if err != nil {
			return err
		}
		added, err := s.Identity.AddCertificate(ctx, x.ID, der)
		if err != nil {
			return err
		}
		return a.From.Answer(c, signInLine(added), "%s signs in with the certificate %x (%s).\n", a.Login, added.Thumbprint, cli.Printable(added.Subject))
	})
}

// certificateFile returns the DER of the one certificate in a file, PEM or DER.
func certificateFile(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(data)
	if block == nil {
		return data, nil
	}
	if block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s: the PEM block is %q, want CERTIFICATE", name, block.Type)
	}
	if next, _ := pem.Decode(rest); next != nil {
		return nil, fmt.Errorf("%s: more than one PEM block, want one certificate", name)
	}
	return block.Bytes, nil
}

// signInJSON is a certificate to sign in with as --json prints it.
type signInJSON struct {
	Thumbprint string    `json:"thumbprint"` // SHA-256 of the certificate
	Subject    string    `json:"subject"`
	Issuer     string    `json:"issuer"`
	Serial     string    `json:"serial"`
	NotAfter   time.Time `json:"not_after"`
}

func signInLine(s signin.SignInCertificate) signInJSON {
	return signInJSON{hex.EncodeToString(s.Thumbprint[:]), s.Subject, s.Issuer, s.Serial, s.NotAfter}
}

type certificateListCommand struct {
	onUser `embed:""`
}

func (l *certificateListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &l.From, "ListSignInCertificates", l.Login, func(ctx context.Context, services *app.Services) error {
		x, err := l.find(ctx, services)
		if err != nil {
			return err
		}
		list, err := services.Identity.Certificates(ctx, x.ID)
		if err != nil {
			return err
		}
		lines := []signInJSON{}
		var text strings.Builder
		for _, s := range list {
			line := signInLine(s)
			lines = append(lines, line)
			text.WriteString(c.Text("%s  until %s  %s\n", line.Thumbprint, line.NotAfter.Format(time.DateOnly), cli.Printable(line.Subject)))
		}
		return l.From.Answer(c, lines, "%s", text.String())
	})
}

type certificateRemoveCommand struct {
	onUser     `embed:""`
	Thumbprint string `arg:"" help:"SHA-256 of the certificate in hexadecimal, as the list prints it."`
}

func (r *certificateRemoveCommand) Run(c *cli.Console) error {
	var thumbprint [32]byte
	raw, err := hex.DecodeString(strings.ReplaceAll(r.Thumbprint, ":", ""))
	if err != nil || len(raw) != len(thumbprint) {
		return errors.New("thumbprint: want 64 hexadecimal digits, as the list prints them")
	}
	copy(thumbprint[:], raw)
	return r.do(c, "RemoveSignInCertificate", cli.Say("%s does not sign in with this certificate any more.\n", r.name()), func(ctx context.Context, s *app.Services, x user.User) error {
		return s.Identity.RemoveCertificate(ctx, x.ID, thumbprint)
	})
}

// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/user"
	"tamga/internal/files"
	"tamga/pki/suite"
)

// Cert is the sub-command cert.
type Cert struct {
	Issue   certIssueCommand   `cmd:"" help:"Make a key for a user and certify it with the built-in authority."`
	List    certListCommand    `cmd:"" help:"List the certificates of a user."`
	Default certDefaultCommand `cmd:"" help:"Make a certificate the default one of a user."`
	Revoke  certRevokeCommand  `cmd:"" help:"Revoke a certificate and renew the revocation list at once."`
	Unhold  certUnholdCommand  `cmd:"" help:"Lift the hold of a certificate."`
}

type certIssueCommand struct {
	onUser  `embed:""`
	Suite   string   `default:"gost2012-256" help:"Algorithms of the key: gost2001, gost2012-256, gost2012-512, ecdsa-p256 or rsa-2048."`
	Subject []string `placeholder:"NAME=VALUE" sep:"none" help:"Part of the subject, for instance INN=007700000000. Names: CN, C, O, OU, L, S, T, SN, G, E, INN, INNLE, SNILS, OGRN, OGRNIP. May be repeated. Default: CN with the display name of the user."`
	PINFile string   `name:"pin-file" placeholder:"FILE" help:"File with the PIN for the new key. Default: the key has no PIN."`
	Default bool     `help:"Make the certificate the default one of the user."`

	Encryption bool `help:"Make the key for encryption, too: others encrypt documents for the certificate. Default: as certificates.encryption_groups says."`
}

func (i *certIssueCommand) Run(c *cli.Console) error {
	su, ok := suite.ByName(i.Suite)
	if !ok {
		return fmt.Errorf("--suite %s: want gost2001, gost2012-256, gost2012-512, ecdsa-p256 or rsa-2048", i.Suite)
	}
	pin := ""
	if i.PINFile != "" {
		var err error
		if pin, err = files.OwnSecret(i.PINFile, "--pin-file"); err != nil {
			return err
		}
	}
	return cli.Administer(c, &i.From, "IssueCertificate", i.Login, func(ctx context.Context, s *app.Services) error {
		u, err := s.Users.ByLogin(ctx, i.Login)
		if err != nil {
			return err
		}
		subject, err := cli.SubjectOf(i.Subject, u.DisplayName)
		if err != nil {
			return err
		}
		if err := s.Authority.Bootstrap(ctx); err != nil {
			return err
		}
		order := keys.IssueOrder{UserID: u.ID, Suite: su, Subject: subject, PIN: pin, Default: i.Default}
		if i.Encryption {
			order.Encryption = &i.Encryption
		}
		cert, err := s.Keys.Issue(ctx, order)
		if err != nil {
			return err
		}
		if err := showDifferences(ctx, c, s, u.ID, cert); err != nil {
			return err
		}
		return i.From.Answer(c, certificateLine(cert), "Certificate %d of %s, %s, is issued until %s.\n", cert.ID, u.Login, su.Name, cert.X509.NotAfter.Format(time.DateOnly))
	})
}

// showDifferences shows an administrator which parts of the name in a certificate differ from the record of
// its user.
func showDifferences(ctx context.Context, c *cli.Console, s *app.Services, userID string, cert *keys.Certificate) error {
	differs, err := s.Keys.Differences(ctx, userID, cert.X509.Subject)
	if err == nil {
		fmt.Fprint(c.Stderr, differenceText(c, differs))
	}
	return err
}

// CertificateJSON is a certificate as --json prints it.
type CertificateJSON struct {
	ID       int64     `json:"id"`
	Suite    string    `json:"suite"`
	Subject  string    `json:"subject"`
	Status   string    `json:"status"`
	Default  bool      `json:"default"`
	HasPIN   bool      `json:"has_pin"`
	NotAfter time.Time `json:"not_after"`
}

func certificateLine(c *keys.Certificate) CertificateJSON {
	return CertificateJSON{c.ID, c.X509.Suite.Name, c.X509.Subject.String(), c.Status.String(), c.Default, c.HasPIN, c.X509.NotAfter}
}

type certListCommand struct {
	onUser `embed:""`
}

func (l *certListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &l.From, "ListCertificates", l.Login, func(ctx context.Context, s *app.Services) error {
		u, err := l.find(ctx, s)
		if err != nil {
			return err
		}
		list, err := s.Keys.List(ctx, u.ID)
		if err != nil {
			return err
		}
		lines := []CertificateJSON{}
		var text strings.Builder
		table := c.NewTable(&text, "ID", "SUITE", "STATUS", "VALID", "SUBJECT", "NOTE")
		for _, x := range list {
			line := certificateLine(x)
			lines = append(lines, line)
			mark := ""
			if line.Default {
				mark = c.Text("default")
			}
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", line.ID, line.Suite, line.Status, c.Text("until %s", line.NotAfter.Format(time.DateOnly)), cli.Printable(line.Subject), mark)
		}
		table.Flush()
		return l.From.Answer(c, lines, "%s", text.String())
	})
}

type certDefaultCommand struct {
	onUser `embed:""`
	ID     int64 `arg:"" help:"Number of the certificate."`
}

func (d *certDefaultCommand) Run(c *cli.Console) error {
	return d.do(c, "SetDefaultCertificate", cli.Say("%s signs with certificate %d by default.\n", d.name(), d.ID), func(ctx context.Context, s *app.Services, u user.User) error {
		return s.Keys.SetDefault(ctx, u.ID, d.ID)
	})
}

type certRevokeCommand struct {
	ID     int64            `arg:"" help:"Number of the certificate."`
	Reason int              `help:"CRLReason of RFC 5280: 0 unspecified, 1 key compromise, 3 affiliation changed, 4 superseded, 5 cessation of operation, 6 hold, 9 privilege withdrawn."`
	From   cli.Installation `embed:""`
}

func (r *certRevokeCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &r.From, "RevokeCertificate", fmt.Sprint(r.ID), func(ctx context.Context, s *app.Services) error {
		if err := s.Keys.Revoke(ctx, r.ID, r.Reason); err != nil {
			return err
		}
		if r.Reason == keys.ReasonHold {
			return r.From.Answer(c, map[string]int64{"held": r.ID}, "Certificate %d is on hold.\n", r.ID)
		}
		return r.From.Answer(c, map[string]int64{"revoked": r.ID}, "Certificate %d is revoked.\n", r.ID)
	})
}

type certUnholdCommand struct {
	ID   int64            `arg:"" help:"Number of the certificate."`
	From cli.Installation `embed:""`
}

func (u *certUnholdCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &u.From, "UnholdCertificate", fmt.Sprint(u.ID), func(ctx context.Context, s *app.Services) error {
		if err := s.Keys.Unhold(ctx, u.ID); err != nil {
			return err
		}
		return u.From.Answer(c, map[string]int64{"unheld": u.ID}, "Certificate %d is not on hold any more.\n", u.ID)
	})
}

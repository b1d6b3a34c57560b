// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/authority"
	"tamga/internal/files"
	"tamga/pki/x509gost"
)

// CA is the sub-command ca: the built-in authority.
type CA struct {
	List     caListCommand     `cmd:"" help:"List the certificates of the built-in authority."`
	Export   caExportCommand   `cmd:"" help:"Write the root certificates as PEM, for those who verify signatures."`
	Renew    caRenewCommand    `cmd:"" help:"Give an authority a new certificate for the key that it has."`
	Rollover caRolloverCommand `cmd:"" help:"Make new keys for a hierarchy, and cross certificates of its roots."`
	Request  caRequestCommand  `cmd:"" help:"Write a request by which an outside authority certifies an issuing authority."`
	Install  caInstallCommand  `cmd:"" help:"Install the certificate of an outside authority for an issuing authority."`
}

// authorityJSON is an authority as --json prints it.
type authorityJSON struct {
	Name     string    `json:"name"`
	Root     bool      `json:"root"`
	Current  bool      `json:"current"`
	Outside  bool      `json:"outside"`
	Subject  string    `json:"subject"`
	NotAfter time.Time `json:"not_after"`
	SHA256   string    `json:"sha256"`
	PEM      string    `json:"pem"`
}

func authorityLine(d authority.Described) authorityJSON {
	return authorityJSON{
		d.Name, d.Root, d.Current, d.Outside, d.Certificate.Subject.String(), d.Certificate.NotAfter,
		fmt.Sprintf("%x", sha256.Sum256(d.Certificate.Raw)), string(files.PEM(d.Certificate)),
	}
}

type caListCommand struct {
	From cli.Installation `embed:""`
}

func (l *caListCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &l.From, "ListAuthorities", "", func(ctx context.Context, s *app.Services) error {
		list, err := s.Authority.All(ctx)
		if err != nil {
			return err
		}
		crosses, err := s.Authority.Crosses(ctx)
		if err != nil {
			return err
		}
		lines := []authorityJSON{}
		var text strings.Builder
		table := c.NewTable(&text, "NAME", "VALID UNTIL", "SHA-256", "SUBJECT", "NOTE")
		for _, d := range list {
			line := authorityLine(d)
			lines = append(lines, line)
			note := c.Text("revocation lists and answers only")
			switch {
			case d.Current && d.Outside:
				note = c.Text("current, certified by %s", cli.Printable(d.Certificate.Issuer.String()))
			case d.Current:
				note = c.Text("current")
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", d.Name, d.Certificate.NotAfter.Format(time.DateOnly), line.SHA256[:16], cli.Printable(line.Subject), note)
		}
		table.Flush()
		names := []string{}
		for _, x := range crosses {
			names = append(names, x.Name)
			text.WriteString(c.Text("cross certificate %s\n", x.Name))
		}
		return l.From.Answer(c, map[string]any{"authorities": lines, "crosses": names}, "%s", text.String())
	})
}

type caExportCommand struct {
	Out   string           `short:"o" placeholder:"FILE" help:"File to write. Default: standard output."`
	Force bool             `help:"Overwrite the output file."`
	All   bool             `help:"Add the issuing authorities, so that programs can build paths without the network."`
	Cross bool             `help:"Add the cross certificates, for programs that trust an older root only."`
	From  cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (caExportCommand) Help() string {
	return `Give the roots over a way that others cannot change, and compare the SHA-256 that "tamga ca list --json" prints. Cross certificates are no roots: programs get them as untrusted intermediates.`
}

func (x *caExportCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &x.From, "ExportAuthorities", "", func(ctx context.Context, s *app.Services) error {
		if err := s.Authority.Bootstrap(ctx); err != nil {
			return err
		}
		list, err := s.Authority.All(ctx)
		if err != nil {
			return err
		}
		var text strings.Builder
		exported := []authorityJSON{}
		for _, d := range list {
			if d.Root || x.All {
				line := authorityLine(d)
				exported = append(exported, line)
				fmt.Fprintf(&text, "# %s, %s, valid until %s\n# SHA-256 %s\n%s", d.Name, cli.Printable(line.Subject), line.NotAfter.UTC().Format(time.DateOnly), line.SHA256, line.PEM)
			}
		}
		if x.Cross {
			crosses, err := s.Authority.Crosses(ctx)
			if err != nil {
				return err
			}
			for _, cross := range crosses {
				cert, err := x509gost.ParseCertificate(cross.Certificate)
				if err != nil {
					return err
				}
				line := authorityLine(authority.Described{Name: cross.Name, Certificate: cert})
				exported = append(exported, line)
				fmt.Fprintf(&text, "# %s, a cross certificate\n%s", cross.Name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cross.Certificate}))
			}
		}
		if x.Out != "" {
			out, err := cli.CreateOutfile(x.Out, x.Force)
			if err != nil {
				return err
			}
			defer out.Discard()
			if _, err := io.WriteString(out, text.String()); err != nil {
				return err
			}
			if err := out.Commit(); err != nil {
				return err
			}
			return x.From.Answer(c, exported, "%d certificates are in %s.\n", len(exported), x.Out)
		}
		return x.From.Answer(c, exported, "%s", text.String())
	})
}

type caRenewCommand struct {
	Name string           `arg:"" help:"Name of the authority, as ca list prints it, such as gost or gost-root."`
	From cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (caRenewCommand) Help() string {
	return `The key stays, so everything that the authority issued is valid under both certificates. Programs that trust a root need its new certificate before the old one ends. Issued certificates never end after their authority: renew it in good time, or make new keys with "tamga ca rollover".`
}

func (r *caRenewCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &r.From, "RenewAuthority", r.Name, func(ctx context.Context, s *app.Services) error {
		cert, err := s.Authority.Renew(ctx, r.Name)
		if err != nil {
			return unknownAuthority(r.Name, err)
		}
		line := authorityLine(authority.Described{Name: r.Name, Certificate: cert, Current: true})
		return r.From.Answer(c, line, "%s has a certificate until %s. Servers use it within a minute.\n", r.Name, cert.NotAfter.Format(time.DateOnly))
	})
}

func unknownAuthority(name string, err error) error {
	if errors.Is(err, authority.ErrOutside) {
		return fmt.Errorf("an outside authority certified %s: make a request with tamga ca request %s, and install the new certificate with tamga ca install", name, name)
	}
	if errors.Is(err, authority.ErrNoAuthority) {
		return fmt.Errorf("there is no authority %s; tamga ca list prints the names", cli.Printable(name))
	}
	return err
}

type caRolloverCommand struct {
	Hierarchy   string           `arg:"" enum:"gost,ecdsa" help:"Hierarchy: gost or ecdsa."`
	IssuingOnly bool             `help:"Make a new issuing authority under the present root."`
	Yes         bool             `help:"Make the keys. Without it, only print what would be made."`
	From        cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (caRolloverCommand) Help() string {
	return `New certificates are issued under the new keys from now on. The authorities before go on with their revocation lists, OCSP answers and certificates at the same addresses, so what they issued stays valid until it ends.

Two cross certificates connect the roots. A program that trusts only the old root verifies new certificates with NEW-by-OLD, and one that trusts only the new root verifies old ones with OLD-by-NEW. "tamga ca export --cross" writes them.`
}

func (r *caRolloverCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &r.From, "RollOverAuthority", r.Hierarchy, func(ctx context.Context, s *app.Services) error {
		if err := s.Authority.Bootstrap(ctx); err != nil {
			return err
		}
		if !r.Yes {
			plan, err := r.plan(ctx, c, s)
			if err == nil {
				fmt.Fprint(c.Stderr, c.Program.AsStarted(plan))
				err = errors.New("nothing was made: read the plan, then repeat with --yes")
			}
			return err
		}
		made, err := s.Authority.Rollover(ctx, r.Hierarchy, !r.IssuingOnly)
		if err != nil {
			return err
		}
		return r.From.Answer(c, map[string]any{"made": made}, "Made: %s.\nGive the roots and cross certificates to those who verify signatures: tamga ca export --all --cross\n", strings.Join(made, ", "))
	})
}

// plan says what a rollover would make, and what stays.
func (r *caRolloverCommand) plan(ctx context.Context, c *cli.Console, s *app.Services) (string, error) {
	list, err := s.Authority.All(ctx)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if r.IssuingOnly {
		text.WriteString(c.Text("A new issuing authority of %s would be made under the present root.\n", r.Hierarchy))
	} else {
		text.WriteString(c.Text("A new root and a new issuing authority of %s would be made, and two cross certificates. Programs that verify signatures need the new root.\n", r.Hierarchy))
	}
	for _, d := range list {
		if d.Current && (d.Name == r.Hierarchy || strings.HasPrefix(d.Name, r.Hierarchy+"-")) && !(r.IssuingOnly && d.Root) {
			text.WriteString(c.Text("%s issues nothing any more, and goes on with revocation lists and answers until %s.\n", d.Name, d.Certificate.NotAfter.Format(time.DateOnly)))
		}
	}
	text.WriteString(c.Text("It cannot be undone.\n"))
	return text.String(), nil
}

type caRequestCommand struct {
	Name    string           `arg:"" help:"Name of the issuing authority, as ca list prints it, such as gost."`
	Subject []string         `placeholder:"NAME=VALUE" sep:"none" help:"Part of the name, for instance OGRN=1027700132195. Names as for \"tamga cert issue\". May be repeated. Default: the present name."`
	Out     string           `short:"o" placeholder:"FILE" help:"File to write. Default: standard output."`
	Force   bool             `help:"Overwrite the output file."`
	From    cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (caRequestCommand) Help() string {
	return `The request (PKCS #10) is for the key that the issuing authority has. Send it to the outside authority, and install the certificate that comes back with "tamga ca install". Another name than the present one is possible only before the first certificate of a user is issued.`
}

func (r *caRequestCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &r.From, "RequestAuthority", r.Name, func(ctx context.Context, s *app.Services) error {
		text, err := cli.AuthorityRequest(ctx, s, r.Name, r.Subject)
		if err != nil {
			return unknownAuthority(r.Name, err)
		}
		answer := map[string]any{"name": r.Name, "request": string(text)}
		if r.Out == "" {
			return r.From.Answer(c, answer, "%s", text)
		}
		out, err := cli.CreateOutfile(r.Out, r.Force)
		if err != nil {
			return err
		}
		defer out.Discard()
		if _, err := out.Write(text); err != nil {
			return err
		}
		if err := out.Commit(); err != nil {
			return err
		}
		return r.From.Answer(c, answer, "The request is in %s. Install the certificate that comes back: tamga ca install %s FILE\n", r.Out, r.Name)
	})
}

type caInstallCommand struct {
	Name        string           `arg:"" help:"Name of the issuing authority, as ca list prints it, such as gost."`
	Certificate string           `arg:"" placeholder:"FILE" help:"Certificate of the outside authority: PEM, DER or PKCS #7. Further certificates in the file help to check its path."`
	From        cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (caInstallCommand) Help() string {
	return `The certificate must be for the key of the issuing authority, allow to sign certificates and revocation lists, and lead to a root in evidence.root_files. What was issued before stays valid. Running servers use the certificate within a minute, and at once after SIGHUP.`
}

func (i *caInstallCommand) Run(c *cli.Console) error {
	list, err := files.Certificates(i.Certificate)
	if err != nil {
		return err
	}
	return cli.Administer(c, &i.From, "InstallAuthority", i.Name, func(ctx context.Context, s *app.Services) error {
		report, err := s.KeyReport(ctx)
		if err != nil {
			return err
		}
		roots, others := s.EvidenceFiles()
		cert, err := s.Authority.Install(ctx, authority.Installation{
			Name: i.Name, Certificates: list, Roots: roots, Others: others, Stopped: len(report.Processes) == 0,
		})
		if err != nil {
			return unknownAuthority(i.Name, err)
		}
		line := authorityLine(authority.Described{Name: i.Name, Certificate: cert, Current: true, Outside: true})
		issuer, end := cli.Printable(cert.Issuer.String()), cert.NotAfter.Format(time.DateOnly)
		if len(report.Processes) > 0 {
			return i.From.Answer(c, line, "%s has a certificate of %s until %s. Running servers use it within a minute, and at once after SIGHUP.\n", i.Name, issuer, end)
		}
		return i.From.Answer(c, line, "%s has a certificate of %s until %s.\n", i.Name, issuer, end)
	})
}

package main

import (
	"context"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"tamga/internal/domain/auth"
	"tamga/internal/domain/user"
)

type operatorListCommand struct {
	From configFrom `embed:""`
}

func (o *operatorListCommand) Run(c *console) error {
	return administer(c, &o.From, "ListOperators", "", func(ctx context.Context, h *house) error {
		type line struct {
			ID     string   `json:"id"`
			Login  string   `json:"login"`
			Groups []string `json:"groups"`
			Locked bool     `json:"locked"`
		}
		lines := []line{}
		for after := ""; ; {
			page, err := h.users.Page(ctx, user.Query{After: after, Limit: user.MaxPage})
			if err != nil {
				return err
			}
			for _, x := range page {
				if !x.Operator {
					continue
				}
				groups, err := h.users.OperatorGroups(ctx, x.ID)
				if err != nil {
					return err
				}
				lines = append(lines, line{x.ID, x.Login, groups, x.Barred(time.Now())})
			}
			if len(page) < user.MaxPage {
				break
			}
			after = page[len(page)-1].Key()
		}
		var text strings.Builder
		table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		for _, l := range lines {
			mark := ""
			if l.Locked {
				mark = "locked"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", l.Login, strings.Join(l.Groups, ", "), l.ID, mark)
		}
		table.Flush()
		return o.From.answer(c, lines, "%s", text.String())
	})
}

type operatorGroupsCommand struct {
	onUser `embed:""`
	Group  []string `required:"" help:"Group whose users the operator acts on; may be repeated. Others are taken away."`
}

func (o *operatorGroupsCommand) Run(c *console) error {
	return o.do(c, "SetOperatorGroups", "acts on "+strings.Join(o.Group, ", "), func(ctx context.Context, h *house, x user.User) error {
		return h.users.SetOperatorGroups(ctx, x.ID, o.Group)
	})
}

type userDeleteCommand struct {
	onUser `embed:""`
	Yes    bool `required:"" help:"Say that it is meant: nothing brings the user back."`
}

func (u *userDeleteCommand) Run(c *console) error {
	return u.do(c, "DeleteUser", "is deleted", func(ctx context.Context, h *house, x user.User) error {
		return h.users.Remove(ctx, x.ID)
	})
}

type methodCommand struct {
	List   methodListCommand   `cmd:"" help:"List the authentication methods of a user."`
	Add    methodAddCommand    `cmd:"" help:"Give a user an authentication method."`
	Remove methodRemoveCommand `cmd:"" help:"Take an authentication method from a user; every token ends."`
}

type methodListCommand struct {
	onUser `embed:""`
}

func (m *methodListCommand) Run(c *console) error {
	return administer(c, &m.From, "ListMethods", m.Login, func(ctx context.Context, h *house) error {
		x, err := m.find(ctx, h)
		if err != nil {
			return err
		}
		identity, err := h.auth(ctx)
		if err != nil {
			return err
		}
		list, err := identity.SchemeOf(ctx, x.ID)
		if err != nil {
			return err
		}
		type line struct {
			Method string `json:"method"`
			URI    string `json:"uri"`
			Level  int    `json:"level"`
		}
		lines := []line{}
		var text strings.Builder
		for _, i := range list {
			method, _ := auth.MethodNamed(i.MethodURI)
			lines = append(lines, line{method.Route, i.MethodURI, i.Level})
			fmt.Fprintf(&text, "%s (level %d)\n", method.Route, i.Level)
		}
		return m.From.answer(c, lines, "%s", text.String())
	})
}

type methodAddCommand struct {
	onUser `embed:""`
	Method string `arg:"" help:"idonly, password, cert, external, otpviasms, otpviaemail, oath or mydss."`
}

func (m *methodAddCommand) Run(c *console) error {
	return m.do(c, "SetMethod", "signs in with "+printable(m.Method), func(ctx context.Context, h *house, x user.User) error {
		identity, err := h.auth(ctx)
		if err != nil {
			return err
		}
		return identity.GrantMethod(ctx, x.ID, m.Method)
	})
}

type methodRemoveCommand struct {
	onUser `embed:""`
	Method string `arg:"" help:"Name of the method."`
}

func (m *methodRemoveCommand) Run(c *console) error {
	return m.do(c, "DeleteMethod", "signs in without "+printable(m.Method), func(ctx context.Context, h *house, x user.User) error {
		identity, err := h.auth(ctx)
		if err != nil {
			return err
		}
		return identity.WithdrawMethod(ctx, x.ID, m.Method)
	})
}

type certificateCommand struct {
	Add    certificateAddCommand    `cmd:"" help:"Let somebody sign in with a certificate."`
	List   certificateListCommand   `cmd:"" help:"List the certificates somebody signs in with."`
	Remove certificateRemoveCommand `cmd:"" help:"Take a certificate from somebody; every token ends."`
}

type certificateAddCommand struct {
	onUser `embed:""`
	File   string `arg:"" help:"The certificate, PEM or DER."`
}

func (a *certificateAddCommand) Run(c *console) error {
	der, err := certificateFile(a.File)
	if err != nil {
		return err
	}
	return administer(c, &a.From, "AddSignInCertificate", a.Login, func(ctx context.Context, h *house) error {
		x, err := a.find(ctx, h)
		if err != nil {
			return err
		}
		identity, err := h.auth(ctx)
		if err != nil {
			return err
		}
		added, err := identity.AddCertificate(ctx, x.ID, der)
		if err != nil {
			return err
		}
		return a.From.answer(c, signInLine(added), "%s signs in with the certificate %x (%s).\n", a.Login, added.Thumbprint, printable(added.Subject))
	})
}

// certificateFile reads one certificate, PEM or DER.
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
		return nil, fmt.Errorf("%s: it begins with %q, want one certificate", name, block.Type)
	}
	if next, _ := pem.Decode(rest); next != nil {
		return nil, fmt.Errorf("%s: it holds more than one PEM block, want one certificate", name)
	}
	return block.Bytes, nil
}

type signInJSON struct {
	Thumbprint string    `json:"thumbprint"` // SHA-256 of the certificate
	Subject    string    `json:"subject"`
	Issuer     string    `json:"issuer"`
	Serial     string    `json:"serial"`
	NotAfter   time.Time `json:"not_after"`
}

func signInLine(s auth.SignInCertificate) signInJSON {
	return signInJSON{hex.EncodeToString(s.Thumbprint[:]), s.Subject, s.Issuer, s.Serial, s.NotAfter}
}

type certificateListCommand struct {
	onUser `embed:""`
}

func (l *certificateListCommand) Run(c *console) error {
	return administer(c, &l.From, "ListSignInCertificates", l.Login, func(ctx context.Context, h *house) error {
		x, err := l.find(ctx, h)
		if err != nil {
			return err
		}
		identity, err := h.auth(ctx)
		if err != nil {
			return err
		}
		list, err := identity.Certificates(ctx, x.ID)
		if err != nil {
			return err
		}
		lines := []signInJSON{}
		var text strings.Builder
		for _, s := range list {
			line := signInLine(s)
			lines = append(lines, line)
			fmt.Fprintf(&text, "%s  until %s  %s\n", line.Thumbprint, line.NotAfter.Format(time.DateOnly), printable(line.Subject))
		}
		return l.From.answer(c, lines, "%s", text.String())
	})
}

type certificateRemoveCommand struct {
	onUser     `embed:""`
	Thumbprint string `arg:"" help:"SHA-256 of the certificate in hexadecimal, as the list shows it."`
}

func (r *certificateRemoveCommand) Run(c *console) error {
	var thumbprint [32]byte
	raw, err := hex.DecodeString(strings.ReplaceAll(r.Thumbprint, ":", ""))
	if err != nil || len(raw) != len(thumbprint) {
		return errors.New("the thumbprint: want 64 hexadecimal digits, as the list shows them")
	}
	copy(thumbprint[:], raw)
	return r.do(c, "RemoveSignInCertificate", "signs in with that certificate no more", func(ctx context.Context, h *house, x user.User) error {
		identity, err := h.auth(ctx)
		if err != nil {
			return err
		}
		return identity.RemoveCertificate(ctx, x.ID, thumbprint)
	})
}

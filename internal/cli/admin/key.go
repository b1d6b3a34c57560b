package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/auth"
	"tamga/internal/domain/keys"
	"tamga/internal/files"
	"tamga/pki/pfx"
)

type Key struct {
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

func (i *keyImportCommand) Run(c *cli.Console) error {
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
	password, err := secretOf(c, i.PasswordFile, "--password-file", "Password of "+cli.Printable(i.File)+": ")
	if err != nil {
		return err
	}
	pin := ""
	if i.PINFile != "" {
		if pin, err = files.OwnSecret(i.PINFile, "--pin-file"); err != nil {
			return err
		}
	}
	return cli.Administer(c, &i.From, "ImportKey", i.Login, func(ctx context.Context, h *app.Rooms) error {
		u, err := i.find(ctx, h)
		if err != nil {
			return err
		}
		if err := h.Authority.Bootstrap(ctx); err != nil {
			return err
		}
		cert, err := h.Keys.Import(ctx, keys.ImportOrder{UserID: u.ID, File: data, Password: password, PIN: pin, Default: i.Default, FriendlyName: i.Name})
		if err != nil {
			return err
		}
		return i.From.Answer(c, certificateLine(cert), "Certificate %d, %s, is imported.\n", cert.ID, cli.Printable(cert.X509.Subject.String()))
	})
}

// secretOf takes a secret from a file or asks for it.
func secretOf(c *cli.Console, file, flag, prompt string) (string, error) {
	if file != "" {
		return files.OwnSecret(file, flag)
	}
	return cli.AskSecret(c.Context, prompt, flag)
}

type keyExportCommand struct {
	ID           int64            `arg:"" help:"Number of the certificate."`
	Out          string           `short:"o" required:"" placeholder:"FILE" help:"File to write."`
	Force        bool             `help:"Overwrite the file."`
	Cipher       string           `default:"auto" enum:"auto,kuznyechik,magma,gost28147,aes" help:"kuznyechik, magma, gost28147 or aes; auto takes kuznyechik for GOST keys and aes for others."`
	PasswordFile string           `placeholder:"FILE" help:"File with the password the PKCS #12 file is to have; without it the password is asked for."`
	PINFile      string           `name:"pin-file" placeholder:"FILE" help:"File with the PIN of the key, where it has one."`
	From         cli.Installation `embed:""`
}

// exportCiphers are the ciphers by the names of the command line.
var exportCiphers = map[string]pfx.Cipher{
	"kuznyechik": pfx.Kuznyechik, "magma": pfx.Magma, "gost28147": pfx.GOST28147, "aes": pfx.AES256,
}

func (e *keyExportCommand) Run(c *cli.Console) error {
	if err := cli.CheckTarget(e.Out, e.Force); err != nil {
		return err
	}
	password, err := secretOf(c, e.PasswordFile, "--password-file", "Password of "+cli.Printable(e.Out)+": ")
	if err != nil {
		return err
	}
	pin := ""
	if e.PINFile != "" {
		if pin, err = files.OwnSecret(e.PINFile, "--pin-file"); err != nil {
			return err
		}
	}
	return cli.Administer(c, &e.From, "ExportKey", fmt.Sprint("certificate ", e.ID), func(ctx context.Context, h *app.Rooms) error {
		order := keys.ExportOrder{ID: e.ID, PIN: pin, Password: password}
		cipher, named := exportCiphers[e.Cipher]
		order.Options.Cipher = cipher
		order.Auto = !named
		file, err := h.Keys.Export(ctx, order)
		if err != nil {
			return err
		}
		out, err := cli.CreateOutfile(e.Out, e.Force)
		if err != nil {
			return err
		}
		defer out.Discard()
		if _, err := io.Copy(out, bytes.NewReader(file)); err != nil {
			return err
		}
		if err := out.Commit(); err != nil {
			return err
		}
		if err := os.Chmod(e.Out, 0o600); err != nil {
			return err
		}
		return e.From.Answer(c, map[string]any{"exported": e.ID, "file": e.Out}, "Certificate %d and its key are in %s.\n", e.ID, e.Out)
	})
}

type keyRotateCommand struct {
	AtOnce bool             `help:"Take the other keys away now, for a key that somebody has come to know: whoever is signed in has to do it again."`
	From   cli.Installation `embed:""`
}

// Run makes a new key for signing tokens.
func (k *keyRotateCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &k.From, "RotateTokenKey", "", func(ctx context.Context, h *app.Rooms) error {
		made, err := auth.RotateSigningKey(ctx, store.Tokens{DB: h.DB}, k.AtOnce, h.NewTokenKey)
		if err != nil {
			return err
		}
		from := h.TokenKeyOverlap().From(made).UTC()
		if k.AtOnce {
			from = made.CreatedAt.UTC() // there is no other
		}
		if k.From.JSON {
			return json.NewEncoder(c.Stdout).Encode(struct {
				ID   string    `json:"id"`
				From time.Time `json:"signs_from"`
			}{made.ID, from})
		}
		fmt.Fprintf(c.Stdout, "token signing key %s is published; it signs from %s\n", made.ID, from.Format(time.DateTime+" MST"))
		return nil
	})
}

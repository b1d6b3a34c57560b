// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/token"
	"tamga/internal/files"
	"tamga/pki/pfx"
	"tamga/pki/suite"
)

// Key is the sub-command key.
type Key struct {
	Status  keyStatusCommand       `cmd:"" help:"Show the master keys: which processes have them, and what is sealed under each."`
	Master  masterKeyRotateCommand `cmd:"" name:"rotate" help:"Replace the master key: make a new one, make it the active one, reseal everything under it."`
	Reseal  keyResealCommand       `cmd:"" help:"Seal everything under the active master key. May be stopped and repeated at any time."`
	Split   keySplitCommand        `cmd:"" help:"Make shares of a master key, some of which recover it."`
	Recover keyRecoverCommand      `cmd:"" help:"Make the file of a master key from shares."`
	Import  keyImportCommand       `cmd:"" help:"Import a key with its certificate from a PKCS #12 file."`
	Export  keyExportCommand       `cmd:"" help:"Export a key with its certificate to a PKCS #12 file, if the configuration allows it."`
	Rotate  keyRotateCommand       `cmd:"" name:"rotate-tokens" help:"Make a new key that signs access tokens. The old key is accepted until its last token expires."`
	Devices keyDevicesCommand      `cmd:"" name:"rotate-devices" help:"Make a new key by which mobile devices know the service. The old key introduces it to them."`
}

type keyImportCommand struct {
	onUser       `embed:""`
	File         string `arg:"" help:"PKCS #12 file (RFC 9548, or PBES2 with AES)."`
	PasswordFile string `placeholder:"FILE" help:"File with the password of the PKCS #12 file. Default: ask at the terminal."`
	PINFile      string `name:"pin-file" placeholder:"FILE" help:"File with the PIN for the imported key. Default: the key has no PIN."`
	Name         string `help:"Friendly name of the certificate. Default: the one in the PKCS #12 file."`
	Default      bool   `help:"Make the certificate the default one of the user."`
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
	password, err := secretOf(c, i.PasswordFile, "--password-file", c.Text("Password of %s: ", cli.Printable(i.File)))
	if err != nil {
		return err
	}
	pin := ""
	if i.PINFile != "" {
		if pin, err = files.OwnSecret(i.PINFile, "--pin-file"); err != nil {
			return err
		}
	}
	return cli.Administer(c, &i.From, "ImportKey", i.Login, func(ctx context.Context, s *app.Services) error {
		u, err := i.find(ctx, s)
		if err != nil {
			return err
		}
		if err := s.Authority.Bootstrap(ctx); err != nil {
			return err
		}
		cert, err := s.Keys.Import(ctx, keys.ImportOrder{UserID: u.ID, File: data, Password: password, PIN: pin, Default: i.Default, FriendlyName: i.Name})
		if err != nil {
			return err
		}
		if err := showDifferences(ctx, c, s, u.ID, cert); err != nil {
			return err
		}
		return i.From.Answer(c, certificateLine(cert), "Certificate %d, %s, is imported.\n", cert.ID, cli.Printable(cert.X509.Subject.String()))
	})
}

// secretOf reads a secret from a file or asks for it at the terminal.
func secretOf(c *cli.Console, file, flag, prompt string) (string, error) {
	if file != "" {
		return files.OwnSecret(file, flag)
	}
	return c.AskSecret(prompt, flag)
}

type keyExportCommand struct {
	ID           int64            `arg:"" help:"Number of the certificate."`
	Out          string           `short:"o" required:"" placeholder:"FILE" help:"File to write."`
	Force        bool             `help:"Overwrite the output file."`
	Cipher       string           `default:"auto" enum:"auto,kuznyechik,magma,gost28147,aes" help:"Cipher of the PKCS #12 file: kuznyechik, magma, gost28147 or aes. Default: auto, which is kuznyechik for GOST keys and aes for others."`
	PasswordFile string           `placeholder:"FILE" help:"File with the password for the PKCS #12 file. Default: ask at the terminal."`
	PINFile      string           `name:"pin-file" placeholder:"FILE" help:"File with the PIN of the key, if the key has one."`
	From         cli.Installation `embed:""`
}

// exportCiphers are the ciphers by their names in --cipher.
var exportCiphers = map[string]pfx.Cipher{
	"kuznyechik": pfx.Kuznyechik, "magma": pfx.Magma, "gost28147": pfx.GOST28147, "aes": pfx.AES256,
}

func (e *keyExportCommand) Run(c *cli.Console) error {
	if err := cli.CheckTarget(e.Out, e.Force); err != nil {
		return err
	}
	password, err := secretOf(c, e.PasswordFile, "--password-file", c.Text("Password of %s: ", cli.Printable(e.Out)))
	if err != nil {
		return err
	}
	pin := ""
	if e.PINFile != "" {
		if pin, err = files.OwnSecret(e.PINFile, "--pin-file"); err != nil {
			return err
		}
	}
	return cli.Administer(c, &e.From, "ExportKey", fmt.Sprint("certificate ", e.ID), func(ctx context.Context, s *app.Services) error {
		order := keys.ExportOrder{ID: e.ID, PIN: pin, Password: password}
		cipher, named := exportCiphers[e.Cipher]
		order.Options.Cipher = cipher
		order.Auto = !named
		file, err := s.Keys.Export(ctx, order)
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
	AtOnce bool             `help:"Delete the other keys now, for instance because one was stolen. All users must sign in again."`
	From   cli.Installation `embed:""`
}

// Run makes a new token signing key.
func (k *keyRotateCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &k.From, "RotateTokenKey", "", func(ctx context.Context, s *app.Services) error {
		made, err := token.RotateSigningKey(ctx, store.TokenKeys{DB: s.DB}, k.AtOnce, s.NewTokenKey)
		if err != nil {
			return err
		}
		from := s.TokenKeyOverlap().From(made).UTC()
		if k.AtOnce {
			from = made.CreatedAt.UTC() // the new key is the only one
		}
		return k.From.Answer(c, struct {
			ID   string    `json:"id"`
			From time.Time `json:"signs_from"`
		}{made.ID, from}, "token signing key %s is published; it signs from %s\n", made.ID, from.Format(time.DateTime+" MST"))
	})
}

type keyDevicesCommand struct {
	Suite   string           `default:"gost2012-256" enum:"gost2012-256,ecdsa-p256" help:"Devices with keys of this kind: gost2012-256 or ecdsa-p256. Default: gost2012-256."`
	Overlap time.Duration    `default:"2160h" help:"How long the old key is valid for devices that do not know the new one, 1h to 9600h. Default: 2160h, 90 days."`
	AtOnce  bool             `help:"End the old key now, for instance because it was stolen. Devices must register again to confirm without a network."`
	From    cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (keyDevicesCommand) Help() string {
	return `A device learns the new key when it polls. A device that does not poll until the old key ends must register again to confirm without a network. Confirmations over the network go on in any case.`
}

// Run makes a new key of the service for mobile devices.
func (k *keyDevicesCommand) Run(c *cli.Console) error {
	kind, known := suite.ByName(k.Suite)
	if !known {
		return fmt.Errorf("--suite: %q is unknown", k.Suite)
	}
	overlap := k.Overlap
	switch {
	case k.AtOnce:
		overlap = 0
	case overlap <= 0:
		return errors.New("--overlap: want 1h to 9600h; or end the old key with --at-once")
	}
	return cli.Administer(c, &k.From, "RotateDeviceKey", k.Suite, func(ctx context.Context, s *app.Services) error {
		until, err := s.Devices.RotateServiceKey(ctx, kind, overlap)
		if err != nil {
			return err
		}
		if k.AtOnce {
			return k.From.Answer(c, map[string]any{"suite": k.Suite, "old_until": until}, "Devices with keys of %s must register again to confirm without a network.\n", k.Suite)
		}
		return k.From.Answer(c, map[string]any{"suite": k.Suite, "old_until": until}, "Devices with keys of %s learn the new key when they poll. The old one ends at %s.\n", k.Suite, until.UTC().Format(time.DateTime+" MST"))
	})
}

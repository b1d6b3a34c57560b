// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/domain/vault"
	"tamga/internal/files"
)

type keySplitCommand struct {
	Shares    int              `default:"5" help:"Number of shares."`
	Threshold int              `default:"3" help:"Number of shares that recover the key."`
	ID        string           `placeholder:"NAME" help:"Name of the master key. Default: the active one."`
	Out       string           `short:"o" required:"" placeholder:"DIR" help:"Directory for the shares, one file for each. It is made if it is missing."`
	From      cli.Installation `embed:""`
}

// Help returns the text above the flags.
func (keySplitCommand) Help() string {
	return `Shares are for recovery only: the service starts with the file of the key. Print each file, give it to one person, and delete the files. Fewer shares than the threshold say nothing about the key. A new master key needs new shares.`
}

func (s *keySplitCommand) Run(c *cli.Console) error {
	return cli.Administer(c, &s.From, "SplitMasterKey", s.ID, func(_ context.Context, services *app.Services) error {
		id := s.ID
		if id == "" {
			id = services.Config.MasterKeys.Active
		}
		key, err := services.MasterKey(id)
		if err != nil {
			return err
		}
		defer clear(key)
		shares, err := vault.Split(rand.Reader, id, key, s.Shares, s.Threshold)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(s.Out, 0o700); err != nil {
			return err
		}
		names := []string{}
		for i, share := range shares {
			file := filepath.Join(s.Out, fmt.Sprintf("master-%s-share-%d.txt", id, i+1))
			text := c.Text("Share %d of %d of master key %s of a Tamga service. Any %d shares recover the key:\n  tamga key recover -o FILE SHARE...\n\n%s\n", i+1, len(shares), id, s.Threshold, share)
			made, err := files.Create(file, []byte(text), 0o600)
			if err != nil {
				return err
			}
			if !made {
				return fmt.Errorf("%s exists; name another directory with -o", file)
			}
			names = append(names, file)
		}
		return s.From.Answer(c, map[string]any{"key": id, "threshold": s.Threshold, "files": names},
			"%d shares of master key %s are in %s; any %d of them recover it. Print them, give each to one person, and delete the files.\n", len(names), id, s.Out, s.Threshold)
	})
}

type keyRecoverCommand struct {
	Share []string `arg:"" optional:"" placeholder:"FILE" help:"Files with shares, one or more in each; - is standard input. Default: ask at the terminal."`
	Out   string   `short:"o" required:"" placeholder:"FILE" help:"File of the master key to make."`
	JSON  bool     `help:"Print JSON instead of text."`
}

// Help returns the text above the flags.
func (keyRecoverCommand) Help() string {
	return `Needs neither a configuration nor a database. Name the file in master_keys.files under the name that the command prints; "tamga doctor" says whether it opens the vault.`
}

// maxShareFile is the largest file with shares, in bytes.
const maxShareFile = 64 << 10

func (r *keyRecoverCommand) Run(c *cli.Console) error {
	if err := files.KeepMemoryPrivate(); err != nil {
		return err
	}
	if _, err := os.Lstat(r.Out); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists already; a master key is never overwritten", r.Out)
	}
	shares, err := r.read(c)
	if err != nil {
		return err
	}
	id, key, err := vault.Join(shares)
	if err != nil {
		return err
	}
	defer clear(key)
	text := append(hex.AppendEncode(nil, key), '\n')
	defer clear(text)
	made, err := files.Create(r.Out, text, 0o600)
	if err != nil {
		return err
	}
	if !made {
		return fmt.Errorf("%s exists already; a master key is never overwritten", r.Out)
	}
	from := cli.Installation{JSON: r.JSON}
	return from.Answer(c, map[string]string{"key": id, "file": r.Out}, "Master key %s is in %s. Name it in master_keys.files as %q, and check it: tamga doctor\n", id, r.Out, id)
}

// read reads shares from files or asks for them until there are enough.
func (r *keyRecoverCommand) read(c *cli.Console) (list []*vault.Share, err error) {
	for _, file := range r.Share {
		in := io.Reader(c.Stdin)
		if file != "-" {
			f, err := os.Open(file)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			in = f
		}
		found, err := sharesOf(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cli.Printable(file), err)
		}
		list = append(list, found...)
	}
	if len(r.Share) > 0 {
		return list, nil
	}
	for len(list) == 0 || len(list) < list[0].Threshold {
		text, err := c.AskSecretBytes(c.Text("Share number %d: ", len(list)+1), "files with shares")
		if err != nil {
			return nil, err
		}
		s, err := vault.ParseShare(string(text))
		clear(text)
		if err != nil {
			fmt.Fprint(c.Stderr, c.Text("%v; type it again\n", err))
			continue
		}
		list = append(list, s)
	}
	return list, nil
}

// sharesOf returns the shares of a text: lines that begin as a share does. Other lines are for people.
func sharesOf(in io.Reader) (list []*vault.Share, err error) {
	lines := bufio.NewScanner(io.LimitReader(in, maxShareFile))
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if !strings.HasPrefix(strings.ToUpper(string(line)), "TAMGA1") {
			continue
		}
		s, err := vault.ParseShare(string(line))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		list = append(list, s)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("no share in it")
	}
	return list, nil
}

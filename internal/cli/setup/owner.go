// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"tamga/internal/cli"
	"tamga/internal/config"
)

// own gives the data to the system user of --user, and the configuration to the group of that user. Links
// are not followed.
func (i *Init) own(conf *config.Config, result *report) error {
	if i.User == "" {
		return nil
	}
	u, err := user.Lookup(i.User)
	if err != nil {
		return fmt.Errorf("--user: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return fmt.Errorf("--user: this system has no numbers of users: %w", err)
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return fmt.Errorf("--user: %w", err)
	}
	if err := os.Lchown(i.Config, os.Geteuid(), gid); err != nil {
		return err
	}
	dirs := []string{conf.Path(conf.SpoolDir), conf.Path(conf.BlobDir)}
	if file, ok := strings.CutPrefix(conf.Database, "sqlite:"); ok {
		dirs = append(dirs, filepath.Dir(conf.Path(file)))
	}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(name, uid, gid)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	result.add(cli.Say("owner of the data"), i.User, false)
	return nil
}

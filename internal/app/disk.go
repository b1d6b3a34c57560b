// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"path/filepath"
	"strings"

	"tamga/internal/config"
)

// Disks returns the directories that a service writes to, by the setting that names them.
func Disks(c *config.Config) map[string]string {
	dirs := map[string]string{"spool_dir": c.Path(c.SpoolDir)}
	if c.Bucket.Endpoint == "" {
		dirs["blob_dir"] = c.Path(c.BlobDir)
	}
	if file, ok := strings.CutPrefix(c.Database, "sqlite:"); ok {
		dirs["database"] = filepath.Dir(c.Path(file))
	}
	return dirs
}

// Nearest returns a directory, or the nearest one above it that exists.
func Nearest(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

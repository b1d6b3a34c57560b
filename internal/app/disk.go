// SPDX-License-Identifier: Apache-2.0

package app

import (
	"path/filepath"
	"strings"

	"tamga/internal/config"
)

// disks returns the directories that a service writes to, by the setting that names them.
func disks(c *config.Config) map[string]string {
	dirs := map[string]string{"spool_dir": nearest(c.Path(c.SpoolDir))}
	if c.Bucket.Endpoint == "" {
		dirs["blob_dir"] = nearest(c.Path(c.BlobDir))
	}
	if file, ok := strings.CutPrefix(c.Database, "sqlite:"); ok {
		dirs["database"] = nearest(filepath.Dir(c.Path(file)))
	}
	return dirs
}

// Disks is [Base.Disks] for a configuration whose installation is not open.
func Disks(c *config.Config) map[string]string { return disks(c) }

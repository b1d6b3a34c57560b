// SPDX-License-Identifier: Apache-2.0

package store

import (
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// peer is a user of the system as whom root connects to a Unix socket. PostgreSQL asks the system who connects
// (peer authentication), and root has no role there.
type peer struct {
	uid, gid uint32
	home     string
}

// rootsRole returns the user of the system that has the name of the role, if this process is root and connects to
// a socket. Otherwise it returns nil: the process connects as itself.
func rootsRole(cfg *pgx.ConnConfig) *peer {
	if os.Geteuid() != 0 || !strings.HasPrefix(cfg.Host, "/") {
		return nil
	}
	u, err := user.Lookup(cfg.User)
	if err != nil {
		return nil
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil || uid == 0 {
		return nil
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil
	}
	return &peer{uint32(uid), uint32(gid), u.HomeDir}
}

// homeOf returns the home directory for a program of PostgreSQL: of the user as whom it runs. HOME may be root's,
// where the certificates of libpq must not even be looked for. "" means unknown.
func homeOf(p *peer) string {
	if p != nil {
		return p.home
	}
	if u, err := user.Current(); err == nil {
		return u.HomeDir
	}
	return ""
}

// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"tamga/internal/config"
	"tamga/internal/files"
)

// FrontEndUID returns the number of the user that the TLS front end runs as
// (gost_tls.front_end_user): the user of this process if none is configured.
func FrontEndUID(c *config.Config) (int, error) {
	name := c.GOSTTLS.FrontEndUser
	if name == "" {
		return os.Getuid(), nil
	}
	if uid, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(uid), nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, fmt.Errorf("gost_tls.front_end_user: %w", err)
	}
	return strconv.Atoi(u.Uid)
}

// FrontEndMayEnter walks the path of the socket as the user of the front end. It returns the directory that this user
// may not enter, and an error that says so. Access control lists are not known here.
func FrontEndMayEnter(c *config.Config) (dir string, err error) {
	uid, err := FrontEndUID(c)
	if err != nil || uid == 0 {
		return "", err
	}
	groups := map[int]bool{}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		if ids, err := u.GroupIds(); err == nil {
			for _, id := range ids {
				if n, err := strconv.Atoi(id); err == nil {
					groups[n] = true
				}
			}
		}
	}
	path, err := filepath.Abs(c.Path(c.GOSTTLS.Socket))
	if err != nil {
		return "", err
	}
	for dir = filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err == nil && !files.MayEnter(info, uid, groups) {
			return dir, fmt.Errorf("the user %s of the front end may not enter %s (%s)", c.GOSTTLS.FrontEndUser, dir, info.Mode())
		}
		if filepath.Dir(dir) == dir {
			return "", nil
		}
	}
}

// ListenFrontEnd opens the socket of the TLS front end. The service trusts the client
// certificates in headers that arrive there, so the listener closes connections of any user but
// FrontEndUID.
func ListenFrontEnd(c *config.Config, log *slog.Logger) (net.Listener, error) {
	uid, err := FrontEndUID(c)
	if err != nil {
		return nil, err
	}
	file := c.Path(c.GOSTTLS.Socket)
	if err := removeStale(file); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", file)
	if err != nil {
		return nil, fmt.Errorf("gost_tls.socket: %w", err)
	}
	mode := fs.FileMode(0o600)
	if uid != os.Getuid() {
		// The kernel names the user of each connection. The mode must only let the user in.
		mode = 0o666
	}
	if err := os.Chmod(file, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("gost_tls.socket: %w", err), l.Close())
	}
	return &frontEndListener{l.(*net.UnixListener), uid, log}, nil
}

// removeStale removes a socket whose process has ended.
func removeStale(file string) error {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("gost_tls.socket: %w", err)
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("gost_tls.socket: %s exists and is not a socket; remove it or name another path", file)
	}
	if conn, err := net.Dial("unix", file); err == nil {
		conn.Close()
		return fmt.Errorf("gost_tls.socket: another process listens at %s; name a different path for each process", file)
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("gost_tls.socket: %w", err)
	}
	return nil
}

// frontEndListener accepts connections of one user only.
type frontEndListener struct {
	*net.UnixListener
	uid int
	log *slog.Logger
}

// Accept implements net.Listener. It closes connections of other users and waits for the next.
func (l *frontEndListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := peerUID(conn)
		if err == nil && uid == l.uid {
			return conn, nil
		}
		l.log.Warn("gost_tls: a connection of a user who is not the front end was closed", "uid", uid, "front_end_uid", l.uid, "error", err)
		conn.Close()
	}
}

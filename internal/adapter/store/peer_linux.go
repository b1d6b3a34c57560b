// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"syscall"
)

// dial connects as the user. The effective user of one thread changes for the call of connect, when the system notes
// who connects; the raw system call leaves the other threads alone.
func (p *peer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	runtime.LockOSThread()
	if err := effective(p.uid); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("connecting as user %d: %w", p.uid, err)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if back := effective(0); back != nil {
		// The thread ends with this goroutine, because it stays locked. It must not run anything else.
		if conn != nil {
			conn.Close()
		}
		return nil, fmt.Errorf("connecting as user %d: %w", p.uid, back)
	}
	runtime.UnlockOSThread()
	return conn, err
}

// effective sets the effective user of the thread.
func effective(uid uint32) error {
	const keep = ^uintptr(0)
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, keep, uintptr(uid), keep); e != 0 {
		return e
	}
	return nil
}

// as makes a program run as the user.
func (p *peer) as(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: p.uid, Gid: p.gid}}
}

// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
)

// firstSocket is the number of the first file that a service manager passes (sd_listen_fds).
const firstSocket = 3

// listen returns the listening socket that a service manager passed to this process, or listens at an
// address.
func listen(address string) (net.Listener, error) {
	passed, err := passedSockets()
	if err != nil {
		return nil, err
	}
	if passed == 0 {
		return net.Listen("tcp", address)
	}
	f := os.NewFile(firstSocket, "socket of the service manager")
	l, err := net.FileListener(f) // has a copy of the file
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("the socket of the service manager: %w", err)
	}
	if _, is := l.Addr().(*net.TCPAddr); !is {
		return nil, errors.Join(errors.New("the socket of the service manager is not a TCP socket: set ListenStream to a port"), l.Close())
	}
	return l, nil
}

// passedSockets returns the number of sockets that are meant for this process, 0 or 1. Child processes
// must not take them for theirs.
func passedSockets() (int, error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	if pid != strconv.Itoa(os.Getpid()) {
		return 0, nil
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > 1 {
		return 0, fmt.Errorf("the service manager passed %q sockets, want one", count)
	}
	return n, nil
}

// notifyManager tells the service manager a state, such as READY=1 (sd_notify). Without a manager that wants to know it
// does nothing.
func notifyManager(state string) error {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"}) // Go knows names that begin with @
	if err != nil {
		return fmt.Errorf("telling the service manager: %w", err)
	}
	_, err = conn.Write([]byte(state))
	return errors.Join(err, conn.Close())
}

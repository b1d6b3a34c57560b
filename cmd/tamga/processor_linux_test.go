// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"tamga/internal/tamgatest"
)

// onOwnProcessor starts a server on a processor of its own and keeps this process, the client,
// away from it until the benchmark ends: threads of a client that take turns with those
// of a server on one processor cost it time that is none of the server's.
func onOwnProcessor(b *testing.B, start func() *tamgatest.Server) *tamgatest.Server {
	b.Helper()
	var all, server, client unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		b.Fatal(err)
	}
	if all.Count() < 2 {
		b.Log("there is one processor only: client and server share it")
		return start()
	}
	for cpu := range len(all) * 64 {
		switch {
		case !all.IsSet(cpu):
		case server.Count() == 0:
			server.Set(cpu)
		default:
			client.Set(cpu)
		}
	}
	// The server inherits the processors of the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, &server); err != nil {
		b.Fatal(err)
	}
	p := start()
	everyThread(b, &client)
	b.Cleanup(func() { everyThread(b, &all) })
	return p
}

// everyThread moves the threads of this process. Those to come inherit the processors
// of one that is there.
func everyThread(b *testing.B, to *unix.CPUSet) {
	b.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		b.Fatal(err)
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			// A thread that has ended meanwhile needs no processor.
			if err := unix.SchedSetaffinity(id, to); err != nil && err != unix.ESRCH {
				b.Fatal(err)
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build profile

package main

import (
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
)

// init lets a benchmark take processor profiles. SIGUSR1 begins a profile and SIGUSR2 ends it
// and writes the file named by TAMGA_PROFILE. No release is built with the tag profile.
func init() {
	path := os.Getenv("TAMGA_PROFILE")
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		var out *os.File
		for s := range asked {
			var err error
			switch {
			case s == syscall.SIGUSR1 && out == nil:
				if out, err = os.Create(path + ".part"); err == nil {
					err = pprof.StartCPUProfile(out)
				}
			case s == syscall.SIGUSR2 && out != nil:
				pprof.StopCPUProfile()
				if err = out.Close(); err == nil {
					err = os.Rename(out.Name(), path)
				}
				out = nil
			}
			if err != nil {
				panic(err)
			}
		}
	}()
}

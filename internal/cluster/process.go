// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a program that the cluster started. It writes to a log file. It ends when the
// harness ends, even if the harness is killed.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended
}

// start starts a command whose output is appended to logs/NAME.
func (c *Cluster) start(name string, cmd *exec.Cmd) (*process, error) {
	log, err := os.OpenFile(c.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// log is the path of a log file.
func (c *Cluster) log(name string) string { return filepath.Join(c.dir, "logs", name) }

func (p *process) pid() int { return p.cmd.Process.Pid }

// running reports whether the process has not ended.
func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal sends a signal to a process that may have ended.
func (p *process) signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// kill ends a process the hard way and waits for its end.
func (p *process) kill() {
	if p.running() {
		p.signal(syscall.SIGKILL)
		<-p.done
	}
}

// stop ends a process with a signal that it can handle.
func (p *process) stop(ctx context.Context, s syscall.Signal) error {
	p.signal(s)
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fmt.Errorf("%s did not end: %w", p.name, ctx.Err())
	}
}

// startTime bounds the start of a program.
const startTime = 5 * time.Minute

// until calls ready until it reports true, the process ends or ctx ends. Programs of others
// have no other way to say that they are ready.
func (p *process) until(ctx context.Context, ready func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("it took longer than %v", startTime))
	defer cancel()
	for !ready() {
		select {
		case <-p.done:
			return fmt.Errorf("%s ended: %w", p.name, errors.Join(p.err, errors.New("see its log")))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", p.name, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// accepts reports whether a program accepts connections at an address.
func accepts(address string) func() bool {
	return func() bool {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
}

// family lists a process and the processes below it.
func family(pid int) []int {
	list := []int{pid}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return list // it has ended
	}
	for _, f := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(f); err == nil {
			list = append(list, family(child)...)
		}
	}
	return list
}

// processorTime is the processor time of a process and of the processes below it, those
// that have ended included. The kernel counts steps of 10 ms.
func processorTime(pid int) time.Duration {
	var ticks int64
	for i, member := range family(pid) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", member))
		if err != nil {
			continue // it has ended, and its parent counts it
		}
		_, rest, _ := strings.Cut(string(text), ") ") // the name may hold spaces
		fields := strings.Fields(rest)
		if len(fields) < 15 {
			continue
		}
		last := 13 // utime and stime
		if i == 0 {
			last = 15 // cutime and cstime
		}
		for _, f := range fields[11:last] {
			n, _ := strconv.ParseInt(f, 10, 64) // the kernel writes numbers
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Fault breaks something in a cluster under load and mends it. hold is how long it stays
// broken. round counts the repetitions of a fault from 0, so that it can break another part
// each time.
type Fault struct {
	Name string
	Do   func(ctx context.Context, c *Cluster, round int, hold time.Duration) (Damage, error)
}

// Damage is what a fault did.
type Damage struct {
	Nodes    []int     // processes that were broken. The others are the survivors.
	From, To time.Time // when something was broken
}

// The faults.
var (
	// FreezeProcess stops a process, as a paused virtual machine or a partition does, and
	// lets it go on.
	FreezeProcess = Fault{"process frozen", func(ctx context.Context, c *Cluster, round int, hold time.Duration) (Damage, error) {
		n := c.victim(round)
		return during(ctx, hold, []int{n.number}, func() { n.signal(syscall.SIGSTOP) }, func() error {
			n.signal(syscall.SIGCONT)
			return nil
		})
	}}
	// KillProcess ends a process with kill -9 and starts it again.
	KillProcess = Fault{"process killed", func(ctx context.Context, c *Cluster, round int, hold time.Duration) (Damage, error) {
		n := c.victim(round)
		return during(ctx, hold, []int{n.number}, n.kill, func() error { return n.up(ctx) })
	}}
	// FreezeDatabase stops PostgreSQL with all its sessions.
	FreezeDatabase = Fault{"database frozen", func(ctx context.Context, c *Cluster, _ int, hold time.Duration) (Damage, error) {
		return during(ctx, hold, nil, c.primary.freeze, func() error {
			c.primary.thaw()
			return nil
		})
	}}
	// KillDatabase ends PostgreSQL with kill -9 and starts it again.
	KillDatabase = Fault{"database killed", func(ctx context.Context, c *Cluster, _ int, hold time.Duration) (Damage, error) {
		return during(ctx, hold, nil, c.primary.crash, func() error { return c.primary.up(ctx) })
	}}
	// FreezeBucket stops the bucket.
	FreezeBucket = Fault{"bucket frozen", func(ctx context.Context, c *Cluster, _ int, hold time.Duration) (Damage, error) {
		return during(ctx, hold, nil, func() { c.bucket.signal(syscall.SIGSTOP) }, func() error {
			c.bucket.signal(syscall.SIGCONT)
			return nil
		})
	}}
	// FailOver kills the primary and promotes its synchronous standby. Then it makes a new
	// standby for the next time.
	FailOver = Fault{"failover", func(ctx context.Context, c *Cluster, _ int, hold time.Duration) (Damage, error) {
		d := Damage{From: time.Now()}
		if err := c.failOver(ctx); err != nil {
			return d, err
		}
		d.To = time.Now()
		return d, errors.Join(wait(ctx, hold), c.addStandby(ctx))
	}}
	// FillDisk fills the disk of PostgreSQL and empties it again. A server that ended is
	// started, as a service manager does.
	FillDisk = Fault{"disk full", func(ctx context.Context, c *Cluster, _ int, hold time.Duration) (Damage, error) {
		if c.disk == "" {
			return Damage{}, errors.New("the database has no small disk")
		}
		ballast := filepath.Join(c.disk, "ballast")
		var filled error
		d, err := during(ctx, hold, nil, func() { filled = fill(ballast) }, func() error {
			if err := os.Remove(ballast); err != nil {
				return err
			}
			select {
			case <-c.primary.done:
				return c.primary.up(ctx)
			case <-time.After(time.Second): // it ends soon, or not at all
				return nil
			}
		})
		return d, errors.Join(filled, err)
	}}
	// RestartProcesses stops one process after the other with SIGTERM and starts it again.
	RestartProcesses = Fault{"rolling restart", func(ctx context.Context, c *Cluster, _ int, hold time.Duration) (Damage, error) {
		return c.roll(ctx, hold, func(n *node) {})
	}}
	// Upgrade migrates the database and replaces the older program by the present one, a
	// process after the other. The next round goes back, without the migration.
	Upgrade = Fault{"rolling upgrade", func(ctx context.Context, c *Cluster, round int, hold time.Duration) (Damage, error) {
		program := c.Programs.Current
		if round%2 == 1 {
			program = c.Programs.Older
		}
		if round == 0 {
			migrating := node{cluster: c, number: 0, program: program}
			if _, err := migrating.run(ctx, "migrate"); err != nil {
				return Damage{}, err
			}
		}
		return c.roll(ctx, hold, func(n *node) { n.program = program })
	}}
	// SkewClock restarts a process with a wall clock that is ten minutes ahead, and in every
	// second round ten minutes behind.
	SkewClock = Fault{"clock off by ten minutes", func(ctx context.Context, c *Cluster, round int, hold time.Duration) (Damage, error) {
		n := c.victim(round)
		set := func(offset time.Duration) error {
			n.kill()
			n.offset, n.program = offset, c.Programs.Skewed
			if err := n.up(ctx); err != nil || offset == 0 {
				return err
			}
			// Balancers must not send requests to it. Clients of the scenario do.
			if status, body := probe(ctx, n.url()+"/readyz"); status != 503 || !strings.Contains(string(body), "clock") {
				return fmt.Errorf("the process with a wrong clock says %d %s", status, body)
			}
			return nil
		}
		var started error
		offset := 10 * time.Minute
		if round%2 == 1 {
			offset = -offset
		}
		d, err := during(ctx, hold, []int{n.number}, func() { started = set(offset) }, func() error { return set(0) })
		return d, errors.Join(started, err)
	}}
)

// victim is the process of a round.
func (c *Cluster) victim(round int) *node { return c.nodes[(round+len(c.nodes)-1)%len(c.nodes)] }

// during breaks something, waits, and mends it.
func during(ctx context.Context, hold time.Duration, nodes []int, breaks func(), mend func() error) (Damage, error) {
	d := Damage{Nodes: nodes, From: time.Now()}
	breaks()
	err := wait(ctx, hold)
	err = errors.Join(err, mend())
	d.To = time.Now()
	return d, err
}

// roll restarts one process after the other. HAProxy sees that one is ready within hold.
func (c *Cluster) roll(ctx context.Context, hold time.Duration, change func(*node)) (Damage, error) {
	d := Damage{From: time.Now()}
	for _, n := range c.nodes {
		if err := n.stop(ctx, syscall.SIGTERM); err != nil {
			return d, fmt.Errorf("stopping process %d: %w", n.number, err)
		}
		change(n)
		if err := n.up(ctx); err != nil {
			return d, err
		}
		if err := wait(ctx, hold); err != nil {
			return d, err
		}
	}
	d.To = time.Now()
	return d, nil
}

// fill writes a file until no space is left.
func fill(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	zeros := make([]byte, 1<<16)
	for {
		switch _, err := f.Write(zeros); {
		case errors.Is(err, syscall.ENOSPC) && len(zeros) > 1:
			zeros = zeros[:len(zeros)/2]
		case errors.Is(err, syscall.ENOSPC):
			return nil
		case err != nil:
			return errors.Join(err, io.ErrShortWrite)
		}
	}
}

// wait waits, or reports that ctx ended.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

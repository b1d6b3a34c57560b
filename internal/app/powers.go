// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"tamga/internal/adapter/evidence"
	"tamga/internal/config"
	"tamga/internal/domain/signing"
	"tamga/internal/files"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/power"
)

// Limits of the files of powers, in bytes.
const (
	maxPowerFile = 64 << 20
	maxWithdrawn = 64 << 20
)

// powers returns the judge of powers of attorney for documents that come with a signature request, and for verifications, where
// evidence may be nil.
func (s *Services) powers(formats sig.Formats) (*signing.Powers, error) {
	c, verification := &s.Config.Powers, &s.Config.Verification
	ends, err := suite.ParseEnds(verification.AlgorithmEnds)
	if err != nil {
		return nil, err
	}
	p := &signing.Powers{
		Formats: formats, Now: s.DB.Now, Trust: s.trust, Evidence: s.network, Ends: ends, LivingStamps: !verification.EndedTimeStamps,
	}
	stored, err := powerFiles(s.Config)
	if err != nil {
		return nil, err
	}
	p.Stored = stored
	if c.WithdrawnFile != "" {
		list := &withdrawnFile{path: s.Config.Path(c.WithdrawnFile)}
		if _, err := list.read(); err != nil {
			return nil, fmt.Errorf("powers.withdrawn_file: %w", err)
		}
		p.Statuses = append(p.Statuses, list)
	}
	if c.RegistryURL != "" {
		p.Statuses = append(p.Statuses, &evidence.PowerRegistry{Source: s.network, Address: c.RegistryURL, Timeout: c.RegistryTimeout, Fresh: c.RegistryFresh})
	}
	if len(c.Rules) > 0 {
		p.Needed = powerRules{c.Rules, groupsOf{s.Users}}.needed
	}
	return p, nil
}

// withoutRegisters returns the sources that ask nothing over the network.
func withoutRegisters(list []power.Statuses) []power.Statuses {
	return slices.DeleteFunc(slices.Clone(list), func(s power.Statuses) bool { _, asks := s.(*evidence.PowerRegistry); return asks })
}

// trust returns what certificates of other people are verified against.
func (s *Services) trust(ctx context.Context) (t signing.Trust, err error) {
	states, err := s.Authority.States(ctx) // one statement for all of it
	if err != nil {
		return t, err
	}
	if t.Roots, t.Intermediates, err = s.anchors.at(ctx, states); err != nil {
		return t, err
	}
	t.CRLs, err = s.Authority.CRLsAt(ctx, states)
	return t, err
}

// powerFiles reads the files of powers.files.
func powerFiles(c *config.Config) (list []sig.File, err error) {
	for _, name := range c.Powers.Files {
		data, err := files.Bounded(c.Path(name), maxPowerFile)
		if err != nil {
			return nil, fmt.Errorf("powers.files: %w", err)
		}
		list = append(list, sig.File{Name: name, Document: bytes.NewReader(data)})
	}
	return list, nil
}

// powerRules say which users need which powers.
type powerRules struct {
	rules  []config.PowerRule
	groups groupsOf
}

func (r powerRules) needed(ctx context.Context, userID string) (codes []string, needed bool, err error) {
	group, known := "", false
	for _, rule := range r.rules {
		if len(rule.Groups) > 0 && !known {
			if group, err = r.groups.GroupOf(ctx, userID); err != nil {
				return nil, false, err
			}
			known = true
		}
		if len(rule.Groups) == 0 || slices.Contains(rule.Groups, group) {
			codes, needed = append(codes, rule.Codes...), true
		}
	}
	return codes, needed, nil
}

// withdrawnFile is a list of withdrawn powers in a file, which is read again when it changes.
type withdrawnFile struct {
	path string

	mu   sync.Mutex
	list power.Withdrawn
	at   time.Time // of the last change of the file
	size int64
}

// Status implements power.Statuses. A list that cannot be read says nothing about any power.
func (f *withdrawnFile) Status(ctx context.Context, p *power.Power) (power.Status, error) {
	list, err := f.read()
	if err != nil {
		return power.Status{}, fmt.Errorf("powers.withdrawn_file: %w", err)
	}
	return list.Status(ctx, p)
}

func (f *withdrawnFile) read() (power.Withdrawn, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.list != nil && info.ModTime().Equal(f.at) && info.Size() == f.size {
		return f.list, nil
	}
	text, err := files.Bounded(f.path, maxWithdrawn)
	if err != nil {
		return nil, err
	}
	list, err := power.ReadWithdrawn(bytes.NewReader(text))
	if err == nil {
		f.list, f.at, f.size = list, info.ModTime(), info.Size()
	}
	return list, err
}

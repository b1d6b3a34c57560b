// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/pki/x509gost"
)

// An authority gets a new certificate for its key by Renew. Rollover makes the next generation of a
// hierarchy, with new keys. The first generation of an authority has its plain name, such as
// "gost-root", the next ones end in a number: "gost-root-2". The newest generation issues. The others
// go on with revocation lists and OCSP answers for what they issued.
//
// All generations of a root have the same subject, so that their cross certificates are self-issued and
// do not count in path lengths (RFC 5280, 6.1.4 (l)). Their key identifiers differ. An issuing authority
// has its number in its subject.

var (
	errAbsent = errors.New("authority: the authority does not exist yet: start the service, which creates it")

	// ErrNoAuthority reports that there is no authority or hierarchy of a name.
	ErrNoAuthority = errors.New("authority: there is no authority of this name")
)

// crossInfix is in the names of cross certificates and of nothing else.
const crossInfix = "-by-"

// Cross is a certificate of a root's key by another generation of this root.
type Cross struct {
	Name        string // SUBJECT-by-ISSUER
	Certificate []byte // DER
	CreatedAt   time.Time
}

// splitName returns the name of the first generation of an authority and the number of the generation.
func splitName(name string) (base string, generation int64, ok bool) {
	for _, h := range hierarchies {
		for _, base := range []string{h.root, h.issuing} {
			if name == base {
				return base, 1, true
			}
			text, has := strings.CutPrefix(name, base+"-")
			n, err := strconv.ParseInt(text, 10, 32)
			if has && err == nil && n > 1 && text == strconv.FormatInt(n, 10) {
				return base, n, true
			}
		}
	}
	return "", 0, false
}

func generationName(base string, generation int64) string {
	if generation == 1 {
		return base
	}
	return base + "-" + strconv.FormatInt(generation, 10)
}

// generations returns all generations of an authority, the newest first. There is at least one.
func (s *Service) generations(ctx context.Context, base string) ([]*authority, error) {
	of, err := s.allGenerations(ctx)
	if err != nil {
		return nil, err
	}
	return of(base)
}

// allGenerations is generations for callers that need several authorities: the store is asked
// once.
func (s *Service) allGenerations(ctx context.Context) (func(base string) ([]*authority, error), error) {
	states, err := s.store.States(ctx)
	if err != nil {
		return nil, err
	}
	return s.generationsOf(ctx, states), nil
}

// generationsOf is allGenerations for states that the caller has read.
func (s *Service) generationsOf(ctx context.Context, states []State) func(base string) ([]*authority, error) {
	return func(base string) ([]*authority, error) { return s.generationsIn(ctx, states, base) }
}

// generationsIn returns the generations of an authority among states, the newest first. The
// caller must not change the list, which serves all calls with the same authorities.
func (s *Service) generationsIn(ctx context.Context, states []State, base string) (list []*authority, err error) {
	s.mu.Lock()
	if !s.grouped.hasNamesOf(states) {
		s.grouped = newGrouped(states)
	}
	of := s.grouped.of
	list = of[base]
	s.mu.Unlock()
	if list != nil {
		return list, nil
	}
	var numbers []int64
	for _, st := range states {
		if b, n, ok := splitName(st.Name); ok && b == base {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for _, n := range slices.Backward(numbers) {
		a, err := s.authority(ctx, generationName(base, n))
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: %s", errAbsent, base)
	}
	s.mu.Lock()
	of[base] = list // in no use any more if others are asked for now, or after Forget
	s.mu.Unlock()
	return list, nil
}

// grouped has generations by the name of the first one, for one list of authorities.
type grouped struct {
	names []string
	of    map[string][]*authority
}

func newGrouped(states []State) grouped {
	g := grouped{of: map[string][]*authority{}}
	for _, st := range states {
		g.names = append(g.names, st.Name)
	}
	return g
}

// hasNamesOf reports whether states are of the authorities of g.
func (g *grouped) hasNamesOf(states []State) bool {
	return g.of != nil && slices.EqualFunc(g.names, states, func(name string, st State) bool { return name == st.Name })
}

// Described is an authority with its certificate.
type Described struct {
	Name        string
	Root        bool
	Current     bool // it issues
	Outside     bool // an outside authority certified it
	Certificate *x509gost.Certificate
}

// All returns all authorities: GOST first, roots first, the newest generation first.
func (s *Service) All(ctx context.Context) (list []Described, err error) {
	of, err := s.allGenerations(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range hierarchies {
		var roots []*x509gost.Certificate
		for _, base := range []string{h.root, h.issuing} {
			generations, err := of(base)
			if err != nil {
				return nil, err
			}
			for i, a := range generations {
				root := base == h.root
				if root {
					roots = append(roots, a.certificate)
				}
				list = append(list, Described{a.name, root, i == 0, !root && isOutside(a.certificate, roots), a.certificate})
			}
		}
	}
	return list, nil
}

// Crosses returns the cross certificates of the roots.
func (s *Service) Crosses(ctx context.Context) ([]Cross, error) {
	if s.config.Generations == nil {
		return nil, nil
	}
	return s.config.Generations.Crosses(ctx)
}

// crossCertificate returns one of them, for its address.
func (s *Service) crossCertificate(ctx context.Context, name string) ([]byte, error) {
	list, err := s.Crosses(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if c.Name == name {
			return c.Certificate, nil
		}
	}
	return nil, unknownAuthority()
}

// Renew gives an authority a new certificate for the key that it has, with a full life. Certificates that
// it issued are valid under both. An issuing authority is certified by the newest root.
func (s *Service) Renew(ctx context.Context, name string) (*x509gost.Certificate, error) {
	base, _, ok := splitName(name)
	if !ok {
		return nil, ErrNoAuthority
	}
	var made *x509gost.Certificate
	err := s.store.Atomic(ctx, func(ctx context.Context) error {
		r, found, err := s.store.Authority(ctx, name)
		if err == nil && !found {
			err = ErrNoAuthority
		}
		if err != nil {
			return err
		}
		a, err := load(r)
		if err != nil {
			return err
		}
		var issuer *authority
		for _, h := range hierarchies {
			if base == h.issuing {
				roots, err := s.generations(ctx, h.root)
				if err != nil {
					return err
				}
				issuer = roots[0]
				if !slices.ContainsFunc(roots, func(root *authority) bool { return certifiedBy(a.certificate, root.certificate) }) {
					return ErrOutside
				}
			}
		}
		t, err := s.authorityTemplate(a.certificate.Subject, issuer)
		if err != nil {
			return err
		}
		signer := a
		var parent *x509gost.Certificate
		if issuer != nil {
			signer, parent = issuer, issuer.certificate
		}
		der, err := x509gost.CreateCertificate(t, parent, a.certificate.PublicKey, a.key.Suite, signer.key.Suite, s.sign(ctx, signer.key))
		if err != nil {
			return err
		}
		if made, err = x509gost.ParseCertificate(der); err != nil {
			return err
		}
		replaced, err := s.config.Generations.ReplaceCertificate(ctx, name, r.Certificate, der)
		if err == nil && !replaced {
			err = fmt.Errorf("authority: another command renewed %s at the same time", name)
		}
		if err != nil || issuer == nil {
			return err
		}
		return s.note(ctx, Issued{Serial: t.SerialNumber, Authority: issuer.name, NotAfter: made.NotAfter, IssuedAt: s.now()})
	})
	if err != nil {
		return nil, err
	}
	s.Forget()
	return made, nil
}

// Rollover makes the next generation of a hierarchy, which its issuing authority names ("gost" or
// "ecdsa"): a new issuing authority, and with root a new root with cross certificates before it. It
// returns the names of what was made.
func (s *Service) Rollover(ctx context.Context, issuing string, root bool) (made []string, err error) {
	i := slices.IndexFunc(hierarchies, func(h hierarchy) bool { return h.issuing == issuing })
	if i < 0 {
		return nil, ErrNoAuthority
	}
	h := hierarchies[i]
	err = s.store.Atomic(ctx, func(ctx context.Context) error {
		made = nil
		roots, err := s.generations(ctx, h.root)
		if err != nil {
			return err
		}
		current := roots[0]
		if root {
			name := nextName(current.name)
			next, err := s.create(ctx, name, current.certificate.Subject, h.suite, nil)
			if err != nil {
				return err
			}
			made = append(made, name)
			for _, pair := range [][2]*authority{{next, current}, {current, next}} {
				cross, err := s.cross(ctx, pair[0], pair[1])
				if err != nil {
					return err
				}
				made = append(made, cross)
			}
			current = next
		}
		issuers, err := s.generations(ctx, h.issuing)
		if err != nil {
			return err
		}
		name := nextName(issuers[0].name)
		_, number, _ := splitName(name)
		made = append(made, name)
		_, err = s.ensure(ctx, name, s.config.Name+" "+h.title+" Issuing CA "+strconv.FormatInt(number, 10), h.suite, current)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("authority: rolling over %s: %w", issuing, err)
	}
	s.Forget()
	// Responders and the stamper exist before anything is issued that names them.
	return made, s.Bootstrap(ctx)
}

func nextName(name string) string {
	base, generation, _ := splitName(name)
	return generationName(base, generation+1)
}

// cross certifies the key of one root by another one, inside a transaction, and returns the name of the
// certificate.
func (s *Service) cross(ctx context.Context, subject, issuer *authority) (string, error) {
	t, err := s.authorityTemplate(subject.certificate.Subject, issuer)
	if err != nil {
		return "", err
	}
	t.MaxPathLen = 1
	t.NotAfter = earlier(subject.certificate.NotAfter, issuer.certificate.NotAfter)
	der, err := x509gost.CreateCertificate(t, issuer.certificate, subject.certificate.PublicKey, subject.key.Suite, issuer.key.Suite, s.sign(ctx, issuer.key))
	if err != nil {
		return "", err
	}
	name, now := subject.name+crossInfix+issuer.name, s.now()
	if !s.now().Before(t.NotAfter) {
		return "", fmt.Errorf("authority: %s has ended and cannot certify %s", issuer.name, subject.name)
	}
	if err := s.config.Generations.AddCross(ctx, Cross{name, der, now}); err != nil {
		return "", err
	}
	return name, s.note(ctx, Issued{Serial: t.SerialNumber, Authority: issuer.name, NotAfter: t.NotAfter, IssuedAt: now})
}

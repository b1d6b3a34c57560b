// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"

	"tamga/internal/config"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/signin"
	"tamga/pki/chain"
	"tamga/pki/x509gost"
)

// Reloading is how a server reads its configuration again on SIGHUP.
type Reloading struct {
	// Load reads and checks the configuration. It opens nothing that the configuration names.
	Load func() (*config.Config, error)
	// Level is that of the log of the process.
	Level *slog.LevelVar
	// Notify tells the service manager a state, such as READY=1; nil: there is none.
	Notify func(state string)
}

// anchorFiles are the certificates of evidence.root_files and evidence.authority_files.
type anchorFiles struct{ roots, others []*x509gost.Certificate }

// anchors are the trusted roots and the other known certificates: those of the built-in authority and
// those of the configuration, which a reload replaces.
type anchors struct {
	authority *authority.Service
	files     atomic.Pointer[anchorFiles]
}

func readAnchors(c *config.Config) (*anchorFiles, error) {
	roots, err := certificatesOf(c, c.Evidence.RootFiles, "evidence.root_files")
	if err != nil {
		return nil, err
	}
	others, err := certificatesOf(c, c.Evidence.AuthorityFiles, "evidence.authority_files")
	return &anchorFiles{roots, others}, err
}

func newAnchors(c *config.Config, authority *authority.Service) (*anchors, error) {
	files, err := readAnchors(c)
	if err != nil {
		return nil, err
	}
	a := &anchors{authority: authority}
	a.files.Store(files)
	return a, nil
}

// all returns the roots and the other certificates.
func (a *anchors) all(ctx context.Context) (roots, others []*x509gost.Certificate, err error) {
	states, err := a.authority.States(ctx)
	if err != nil {
		return nil, nil, err
	}
	return a.at(ctx, states)
}

// at is all for states of the built-in authority that the caller has read.
func (a *anchors) at(ctx context.Context, states []authority.State) (roots, others []*x509gost.Certificate, err error) {
	ownRoots, issuing, err := a.authority.AnchorsAt(ctx, states)
	if err != nil {
		return nil, nil, err
	}
	f := a.files.Load()
	return slices.Concat(ownRoots, f.roots), slices.Concat(issuing, f.others), nil
}

// EvidenceFiles returns the certificates of evidence.root_files and of evidence.authority_files.
func (b *Base) EvidenceFiles() (roots, others []*x509gost.Certificate) {
	f := b.anchors.files.Load()
	return f.roots, f.others
}

// AuthorityPath returns the certificates from the authority that issues for keys of GOST to its root: our
// own one, or the one of an outside authority.
func (b *Base) AuthorityPath(ctx context.Context) ([]*x509gost.Certificate, error) {
	issuing, err := b.Authority.Issuing(ctx)
	if err != nil {
		return nil, err
	}
	roots, others, err := b.anchors.all(ctx)
	if err != nil {
		return nil, err
	}
	first := issuing[0] // the newest one of GOST
	v, err := chain.Build(first, chain.Options{Roots: roots, Intermediates: others, At: b.DB.Now()})
	if err != nil {
		return nil, fmt.Errorf("no path from %s to a trusted root: name the root of its authority in evidence.root_files, and authorities between them in evidence.authority_files: %w", first.Subject, err)
	}
	return v.Chain, nil
}

// readCertificate reads the certificate and the key of TLS.
func readCertificate(c *config.Config) (*tls.Certificate, error) {
	cert, err := keyPair(c, "tls", c.TLS.CertificateFile, c.TLS.KeyFile)
	if err != nil {
		return nil, err
	}
	return &cert, nil
}

// withReloaded returns c with the settings that a reload reads, taken from another configuration.
func withReloaded(c, from *config.Config) *config.Config {
	merged := *c
	merged.Log.Level = from.Log.Level
	merged.Clients = from.Clients
	merged.Evidence.RootFiles, merged.Evidence.AuthorityFiles = from.Evidence.RootFiles, from.Evidence.AuthorityFiles
	if c.TLS.CertificateFile != "" && from.TLS.CertificateFile != "" {
		merged.TLS.CertificateFile, merged.TLS.KeyFile = from.TLS.CertificateFile, from.TLS.KeyFile
	}
	return &merged
}

// reload reads the certificate of TLS, the level of the log, the roots of evidence and the clients
// again. All of them are replaced, or none if one is invalid. Then it reads the certificates of the
// built-in authority in the database.
func (s *Server) reload(ctx context.Context, r Reloading) error {
	fresh, err := r.Load()
	if err != nil {
		return err
	}
	b := s.services.Base
	next := withReloaded(b.Config, fresh)
	var level slog.Level
	if err := level.UnmarshalText([]byte(next.Log.Level)); err != nil {
		return err
	}
	files, err := readAnchors(next)
	if err != nil {
		return err
	}
	list, err := b.clientsOf(next)
	if err != nil {
		return err
	}
	var cert *tls.Certificate
	if next.TLS.CertificateFile != "" {
		if cert, err = readCertificate(next); err != nil {
			return err
		}
		b.certificate.Store(cert)
	}
	r.Level.Set(level)
	b.anchors.files.Store(files)
	s.clients.Replace(list)

	if err := b.Authority.Reread(ctx); err != nil {
		s.services.log.Warn("reading the certificates of the built-in authority again; it is tried again within a minute", "error", err)
	}

	attributes := []any{"level", level.String(), "clients", len(next.Clients), "roots", len(files.roots)}
	if cert != nil {
		attributes = append(attributes, "tls_not_after", cert.Leaf.NotAfter)
	}
	s.services.log.Info("read the configuration again", attributes...)
	var now, would bytes.Buffer
	if err := errors.Join(next.Print(&now), fresh.Print(&would)); err != nil {
		return err
	}
	if !bytes.Equal(now.Bytes(), would.Bytes()) {
		s.services.log.Warn("other settings of the configuration have changed: they need a restart")
	}
	return nil
}

// reloadOnSignal reloads at each SIGHUP until ctx ends.
func (s *Server) reloadOnSignal(ctx context.Context, r Reloading) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		if err := s.reload(ctx, r); err != nil {
			s.services.log.Error("the new configuration is invalid: the previous one stays", "error", err)
		}
	}
}

// clientsOf returns the OAuth clients of a configuration.
func (b *Base) clientsOf(c *config.Config) (*signin.Clients, error) {
	other := *b
	other.Config = c
	return other.clients()
}

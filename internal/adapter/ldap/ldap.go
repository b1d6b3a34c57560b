// SPDX-License-Identifier: Apache-2.0

// Package ldap reads directories by LDAP (OpenLDAP, Active Directory) and checks passwords there. It implements
// directory.Source and signin.Directory.
//
// Begin with New. Each call has a connection of its own, to the first server that answers. Referrals are not followed:
// they would send passwords to servers that the configuration does not name.
package ldap

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/go-ldap/ldap/v3"

	"tamga/internal/domain/directory"
	"tamga/internal/domain/fault"
)

// mostMessage bounds a message of a server, in bytes. An entry of a person has some kilobytes, a group of 100,000 members ten million.
const mostMessage = 32 << 20

func init() { ber.MaxPacketLengthBytes = mostMessage }

// Membership says where it is written which people belong to a group.
type Membership string

// The places.
const (
	MemberOf Membership = "member_of" // in the attribute memberOf of the entry of the person
	Member   Membership = "member"    // in the attribute member of the group
)

// Group maps a group of the directory, with the groups inside of it, to a group of users.
type Group struct{ DN, Group string }

// Config is a directory.
type Config struct {
	Name      string
	Servers   []string // ldaps://HOST[:PORT] or ldap://HOST[:PORT], in the order of preference
	Plain     bool     // ldap:// without StartTLS
	Roots     *x509.CertPool
	BindDN    string // of the service; "" reads anonymously
	Password  string
	Base      string // below it are the people
	Filter    string // of people
	ID        string // attributes
	Login     string
	Title     string // the display name
	Email     string
	Phone     string
	Disabled  string // "": no entry is disabled
	Component map[string]string

	Groups       []Group
	GroupBase    string // below it are groups inside of groups; "" is Base
	Membership   Membership
	DefaultGroup string // of people of no group above; "": they are no users

	Connect time.Duration // for one server; 0 is 4 s
	Timeout time.Duration // for one request; 0 is 30 s
}

// Directory is a directory that is read by LDAP.
type Directory struct {
	config  Config
	servers []*url.URL
	last    atomic.Int64 // index of the server that answered last
}

var _ directory.Source = (*Directory)(nil)

// New checks the configuration. It opens no connection.
func New(c Config) (*Directory, error) {
	d := &Directory{config: c}
	if len(c.Servers) == 0 {
		return nil, errors.New("servers: want at least one, such as ldaps://dc1.example.org")
	}
	for _, text := range c.Servers {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "ldap" && u.Scheme != "ldaps" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("servers: %q: want ldaps://HOST or ldap://HOST, with a port or without", text)
		}
		d.servers = append(d.servers, u)
	}
	if _, err := ldap.CompileFilter(c.Filter); err != nil {
		return nil, fmt.Errorf("filter: %w", err)
	}
	for _, dn := range slices.Concat([]string{c.BindDN, c.Base, c.GroupBase}, dnsOf(c.Groups)) {
		if _, err := ldap.ParseDN(dn); err != nil {
			return nil, fmt.Errorf("%q is no distinguished name: %w", dn, err)
		}
	}
	if c.BindDN != "" && c.Password == "" {
		return nil, errors.New("bind_password_file: want a password: a bind without one proves nothing")
	}
	if d.config.Connect == 0 {
		d.config.Connect = 4 * time.Second
	}
	if d.config.Timeout == 0 {
		d.config.Timeout = 30 * time.Second
	}
	return d, nil
}

func dnsOf(groups []Group) (list []string) {
	for _, g := range groups {
		list = append(list, g.DN)
	}
	return list
}

// Name returns the name of the directory in the configuration.
func (d *Directory) Name() string { return d.config.Name }

// Probe connects to a server and binds as the service.
func (d *Directory) Probe(ctx context.Context) error {
	conn, err := d.bound(ctx)
	if err != nil {
		return err
	}
	conn.Close()
	return nil
}

// connection is a connection that ends with a context.
type connection struct {
	*ldap.Conn
	stop func() bool
}

func (c *connection) Close() {
	c.stop()
	c.Conn.Close()
}

// open connects to the server that answered last, otherwise to the next one that accepts. The error is a *fault.Outage.
func (d *Directory) open(ctx context.Context) (*connection, error) {
	first := int(d.last.Load())
	var failed []error
	for i := range d.servers {
		n := (first + i) % len(d.servers)
		conn, err := d.dial(ctx, d.servers[n])
		if err == nil {
			d.last.Store(int64(n))
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		failed = append(failed, fmt.Errorf("%s: %w", d.servers[n].Host, err))
	}
	return nil, d.outage(errors.Join(failed...))
}

// outage is the error of a directory that does not answer.
func (d *Directory) outage(err error) error {
	return &fault.Outage{Message: "the directory of the organization does not answer: try again later", Part: "directory", Err: fmt.Errorf("ldap: directory %s: %w", d.config.Name, err)}
}

func (d *Directory) dial(ctx context.Context, u *url.URL) (*connection, error) {
	within, cancel := context.WithTimeout(ctx, d.config.Connect)
	defer cancel()
	port := u.Port()
	if port == "" {
		port = map[string]string{"ldap": "389", "ldaps": "636"}[u.Scheme]
	}
	plain, err := new(net.Dialer).DialContext(within, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, err
	}
	secure := &tls.Config{ServerName: u.Hostname(), RootCAs: d.config.Roots, MinVersion: tls.VersionTLS12}
	if u.Scheme == "ldaps" {
		over := tls.Client(plain, secure)
		if err := over.HandshakeContext(within); err != nil {
			plain.Close()
			return nil, err
		}
		plain = over
	}
	conn := ldap.NewConn(plain, u.Scheme == "ldaps")
	conn.SetTimeout(d.config.Timeout)
	conn.Start()
	if u.Scheme == "ldap" && !d.config.Plain {
		ending := context.AfterFunc(within, func() { plain.Close() })
		err := conn.StartTLS(secure)
		if !ending() && err == nil {
			err = within.Err()
		}
		if err != nil {
			conn.Close()
			return nil, fmt.Errorf("StartTLS: %w", err)
		}
	}
	return &connection{conn, context.AfterFunc(ctx, func() { conn.Close() })}, nil
}

// bound returns a connection of the service.
func (d *Directory) bound(ctx context.Context) (*connection, error) {
	conn, err := d.open(ctx)
	if err != nil || d.config.BindDN == "" {
		return conn, err
	}
	if err := conn.Bind(d.config.BindDN, d.config.Password); err != nil {
		conn.Close()
		return nil, d.outage(fmt.Errorf("binding as %s: %w", d.config.BindDN, err))
	}
	return conn, nil
}

// checkTime bounds the check of a password, with all servers that are tried.
const checkTime = 10 * time.Second

// refusals are the results with which servers refuse the password of a person: wrong, or the account may not sign in.
var refusals = []uint16{
	ldap.LDAPResultInvalidCredentials, ldap.LDAPResultNoSuchObject, ldap.LDAPResultInvalidDNSyntax, ldap.LDAPResultInappropriateAuthentication,
	ldap.LDAPResultConstraintViolation, ldap.LDAPResultUnwillingToPerform, ldap.LDAPResultInsufficientAccessRights, ldap.LDAPResultReferral,
}

// isRefusal reports whether an error is about the person or the entry, and not about the directory.
func isRefusal(err error) bool {
	return slices.ContainsFunc(refusals, func(code uint16) bool { return ldap.IsErrorWithCode(err, code) })
}

// Check reports whether the directory accepts the password of a person, who is the entry at dn. Another entry may have got
// that name since. The error is a *fault.Outage if no server answers, or none accepts the service.
//
// Requests of the service come first, and the password of the person last. Otherwise a fault of the service would have another answer for
// a right password than for a wrong one.
func (d *Directory) Check(ctx context.Context, dn, entry, password string) (bool, error) {
	if dn == "" || password == "" {
		return false, nil // a bind without a password is anonymous, and succeeds (RFC 4513, 5.1.2)
	}
	within, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	conn, err := d.bound(within)
	same := false
	if err == nil {
		defer conn.Close()
		same, err = d.isEntry(within, conn, dn, entry)
	}
	if err == nil {
		err = conn.Bind(dn, password) // also for another entry: the time of the answer does not say that
	}
	var outage *fault.Outage
	switch {
	case err == nil:
		return same, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.As(err, &outage):
		return false, err
	case isRefusal(err):
		return false, nil
	}
	return false, d.outage(fmt.Errorf("checking a password: %w", err))
}

// isEntry reports whether the entry at dn is the one with an identifier. It asks as the service: people may not be able to
// read their own entries. An entry that the service cannot read is another one.
func (d *Directory) isEntry(ctx context.Context, conn *connection, dn, entry string) (same bool, err error) {
	err = d.search(ctx, conn, dn, ldap.ScopeBaseObject, "(objectClass=*)", []string{d.config.ID}, func(e *ldap.Entry) error {
		same = entry != "" && d.identifier(e) == entry
		return nil
	})
	if isRefusal(err) {
		return false, nil
	}
	return same, err
}

// Decoy does the work of Check for a person who does not exist. No password of a person is sent.
func (d *Directory) Decoy(ctx context.Context) error {
	var random [24]byte
	rand.Read(random[:])
	text := hex.EncodeToString(random[:])
	_, err := d.Check(ctx, "cn="+text[:16]+","+d.config.Base, "", text[16:])
	return err
}

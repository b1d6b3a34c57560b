// SPDX-License-Identifier: Apache-2.0

// Package guard decides which external addresses requests from this program may reach. It is the
// one package that adapters share: every adapter that sends HTTP requests to addresses chosen by
// others connects through it. Begin with New, then use Guard.Parse for an address and Guard.Dial for
// the connection. It does not send requests.
package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/net/idna"
)

// Addresses come from requests, certificates and answers, so an attacker may choose them. The rules:
//
//   - The scheme is http or https, and the address has no user name.
//   - The port is 80, 443 or above 1023. Lower ports belong to mail, name and file services, which
//     requests from here must not reach.
//   - The addresses of a name are checked, and the connection goes to the address that was checked.
//     A name that resolves to another address the next time gains nothing. With a proxy, the proxy
//     resolves names. Then only hosts that are an address or the machine itself, in any spelling,
//     are checked.
//   - The address is global unicast and does not carry an IPv4 address inside (6to4, Teredo, NAT64),
//     which could lead anywhere.
//
// Exceptions lift the last rule, and with a port also the second one, for networks and hosts that
// the installation names.

// Refused is the error for an address that must not be reached. It is not an outage, so callers do
// not try again.
type Refused struct {
	Text   string // for clients; it reveals nothing about our own network
	Detail string // for the log; may be empty
}

func (e *Refused) Error() string { return e.Text }

// Exception is a network or a host that may be reached although it is not on the public internet.
type Exception struct {
	Network netip.Prefix // or
	Host    string       // a name in lower case, with any address
	Port    uint16       // 0: every port
}

// ParseException reads "10.1.0.0/16", "10.1.2.3", "127.0.0.1:8080",
// "[fd00::1]:318", "tsp.example.org" or "tsp.example.org:318".
func ParseException(text string) (Exception, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return Exception{Network: p.Masked()}, nil
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return Exception{Network: netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())}, nil
	}
	if ap, err := netip.ParseAddrPort(text); err == nil && ap.Port() != 0 && ap.Addr().Zone() == "" {
		a := ap.Addr().Unmap()
		return Exception{Network: netip.PrefixFrom(a, a.BitLen()), Port: ap.Port()}, nil
	}
	host, portText, hasPort := strings.Cut(strings.ToLower(text), ":")
	port, err := uint64(0), error(nil)
	if hasPort {
		port, err = strconv.ParseUint(portText, 10, 16)
	}
	if err == nil && (port != 0 || !hasPort) && isHostName(host) {
		return Exception{Host: host, Port: uint16(port)}, nil
	}
	return Exception{}, fmt.Errorf("exception %q: want a network such as 10.1.0.0/16, or an address or a host name with or without a port", text)
}

// ParseExceptions reads a list of exceptions in the form of ParseException.
func ParseExceptions(texts []string) (list []Exception, err error) {
	for _, text := range texts {
		x, err := ParseException(text)
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}

// ExceptionFor returns the exception for the service at an address, and for no other port of its host.
func ExceptionFor(u *url.URL) (Exception, error) {
	host, _, err := readHost(u.Hostname())
	if err != nil {
		return Exception{}, fmt.Errorf("host %q: %w", u.Hostname(), err)
	}
	return ParseException(net.JoinHostPort(host, Port(u)))
}

// isHostName reports whether s is a name and not a misspelled number: its last part must begin with
// a letter.
func isHostName(s string) bool {
	last := s[strings.LastIndexByte(s, '.')+1:]
	return len(s) <= 253 && last != "" && last[0] >= 'a' && last[0] <= 'z' && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("-._", r))
	})
}

// allows reports whether the exception covers an address.
func (e Exception) allows(a netip.AddrPort) bool {
	return e.Host == "" && (e.Port == 0 || e.Port == a.Port()) && e.Network.Contains(a.Addr())
}

// names reports whether the exception covers a host by its name.
func (e Exception) names(host string, port uint16) bool {
	return e.Host != "" && (e.Port == 0 || e.Port == port) && strings.EqualFold(e.Host, host)
}

// Resolver resolves a name to addresses. *net.Resolver implements it. network is "ip".
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// special has networks that are not on the public internet, or that carry another address inside.
// They come from the IANA registries of special purpose addresses (RFC 6890). For IPv6, addresses
// outside 2000::/3 are not global unicast at all.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

var globalUnicast = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, t := range texts {
		list = append(list, netip.MustParsePrefix(t))
	}
	return list
}

// isPublic reports whether a is an address of the public internet. a must not be an IPv4-mapped
// IPv6 address.
func isPublic(a netip.Addr) bool {
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return a.Is4() || globalUnicast.Contains(a) && a.Zone() == ""
}

// Guard decides which addresses may be reached, and connects to them.
type Guard struct {
	exceptions []Exception
	resolver   Resolver
	proxy      string // HOST:PORT of the configured proxy
	over       *url.URL

	// Connect connects to a checked address and checks it once more. Trusted connects to
	// any address that the installation names. Tests replace both by a network of their
	// own.
	Connect, Trusted func(ctx context.Context, network, address string) (net.Conn, error)
}

// ConnectTimeout is the time limit for one connection, so that a name with many dead addresses does
// not use up the time of the whole request.
const ConnectTimeout = 3 * time.Second

// maxAddresses is how many addresses of one name are tried.
const maxAddresses = 4

// Config has what a Guard allows besides the public internet. The zero value allows nothing else.
type Config struct {
	Exceptions []Exception
	Resolver   Resolver // nil: the system's
	Proxy      *url.URL // nil: no proxy; the address of a proxy is always allowed
}

// New returns a Guard.
func New(c Config) *Guard {
	g := &Guard{exceptions: c.Exceptions, resolver: c.Resolver}
	if g.resolver == nil {
		g.resolver = net.DefaultResolver
	}
	if c.Proxy != nil {
		g.over = c.Proxy
		g.proxy = net.JoinHostPort(strings.ToLower(c.Proxy.Hostname()), Port(c.Proxy))
	}
	plain := net.Dialer{Timeout: ConnectTimeout, KeepAlive: 30 * time.Second}
	careful := plain
	// The last check, of the address to which the kernel will connect.
	careful.Control = func(_, address string, _ syscall.RawConn) error {
		a, err := netip.ParseAddrPort(address)
		if err != nil {
			return &Refused{Text: "the address to connect to is not an IP address"}
		}
		return g.check(a)
	}
	g.Connect, g.Trusted = careful.DialContext, plain.DialContext
	return g
}

// Port returns the port of an http or https address.
func Port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// check returns a *Refused if the address must not be reached.
func (g *Guard) check(a netip.AddrPort) error {
	a = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	if g.excepted(a) || isPublic(a.Addr()) {
		return nil
	}
	return &Refused{
		Text:   "it is not an address of the public internet, and no exception is configured for it",
		Detail: a.String(),
	}
}

func (g *Guard) excepted(a netip.AddrPort) bool {
	for _, e := range g.exceptions {
		if e.allows(a) {
			return true
		}
	}
	return false
}

func (g *Guard) named(host string, port uint16) bool {
	for _, e := range g.exceptions {
		if e.names(host, port) {
			return true
		}
	}
	return false
}

// Parse reads the address of a service and refuses what can be refused without resolving it. The
// error is a *Refused.
func (g *Guard) Parse(text string) (*url.URL, error) { return g.parse(text, false) }

// ParseRegistered is Parse without the rule on ports, for addresses that an operator registered.
func (g *Guard) ParseRegistered(text string) (*url.URL, error) { return g.parse(text, true) }

// unprintable reports whether people do not see a character, or see others in another order
// because of it.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }

func (g *Guard) parse(text string, registered bool) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > 2048 || strings.ContainsFunc(text, unprintable) || u.Opaque != "" || u.Hostname() == "":
		return nil, &Refused{Text: "the address is malformed"}
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, &Refused{Text: fmt.Sprintf("the address has the scheme %.20q; want http or https", u.Scheme)}
	case u.User != nil:
		return nil, &Refused{Text: "the address has a user name; remove it"}
	}
	u.Fragment, u.RawFragment = "", ""
	host, literal, err := readHost(u.Hostname())
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(Port(u), 10, 16)
	if err != nil || port == 0 {
		return nil, &Refused{Text: "the port must be a number from 1 to 65535"}
	}
	at := netip.AddrPortFrom(literal, uint16(port))
	switch named := g.named(host, uint16(port)); {
	case literal.IsValid():
		err = g.check(at)
	case isLocalhost(host) && !named:
		// A proxy would resolve it to its own machine.
		if err = g.check(netip.AddrPortFrom(loopback4, uint16(port))); err != nil {
			err = g.check(netip.AddrPortFrom(netip.IPv6Loopback(), uint16(port)))
		}
	}
	if err != nil {
		return nil, err
	}
	if port < 1024 && port != 80 && port != 443 && !registered && !g.excepted(at) && !g.named(host, uint16(port)) {
		return nil, &Refused{Text: fmt.Sprintf("port %d is not allowed; want 80, 443 or one above 1023", port)}
	}
	if literal.IsValid() {
		host = literal.String()
	}
	if host != u.Hostname() { // return exactly the host that was checked
		explicit := u.Port()
		if u.Host = host; strings.Contains(host, ":") {
			u.Host = "[" + host + "]"
		}
		if explicit != "" {
			u.Host += ":" + explicit
		}
	}
	return u, nil
}

var loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// readHost reads a host as resolvers and proxies do, so that no spelling of an address is treated as
// a name: 2130706433, 0x7f000001, 0177.0.0.1, 127.1 and 127.0.0.1. are all 127.0.0.1. Digits of other
// scripts count as digits. readHost returns the name in ASCII without a dot at its end, or the
// address.
func readHost(text string) (host string, literal netip.Addr, err error) {
	malformed := &Refused{Text: "the host of the address is malformed"}
	if a, err := netip.ParseAddr(text); err == nil {
		return text, a.Unmap(), nil
	}
	host = text
	if strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }) {
		if host, err = idna.Lookup.ToASCII(host); err != nil {
			return "", literal, malformed
		}
	}
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if host == "" || strings.HasSuffix(host, ".") || strings.Contains(host, ":") {
		return "", literal, malformed
	}
	if _, isNumber := hostNumber(last); !isNumber {
		return host, literal, nil
	}
	if literal, err = readIPv4(host); err != nil {
		return "", literal, malformed
	}
	return host, literal, nil
}

// readIPv4 reads an address of one to four numbers as inet_aton does: the last number fills the
// remaining bytes.
func readIPv4(text string) (netip.Addr, error) {
	parts := strings.Split(text, ".")
	if len(parts) > 4 {
		return netip.Addr{}, errors.New("guard: more than four numbers")
	}
	var value uint64
	for i, part := range parts {
		n, isNumber := hostNumber(part)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (4 - i)
		}
		if !isNumber || n>>bits != 0 {
			return netip.Addr{}, fmt.Errorf("guard: %q is not a part of an address", part)
		}
		value = value<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), nil
}

// tooLarge is larger than any part of an address.
const tooLarge = 1 << 40

// hostNumber reads a decimal, octal (0...) or hexadecimal (0x...) number. A text that looks like a
// number but is invalid or too large gives tooLarge.
func hostNumber(text string) (n uint64, isNumber bool) {
	digits, base := strings.ToLower(text), 10
	if hex, ok := strings.CutPrefix(digits, "0x"); ok {
		digits, base = hex, 16
		if digits == "" {
			return 0, true
		}
		if strings.Trim(digits, "0123456789abcdef") != "" {
			return 0, false
		}
	} else if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	} else if digits[0] == '0' {
		base = 8
	}
	n, err := strconv.ParseUint(digits, base, 40)
	if err != nil {
		return tooLarge, true
	}
	return n, true
}

// isLocalhost reports whether a name means the machine itself (RFC 6761, 6.3, and the names that
// systems have in /etc/hosts).
func isLocalhost(host string) bool {
	host = strings.ToLower(host)
	return strings.HasSuffix("."+host, ".localhost") || strings.HasSuffix("."+host, ".localhost.localdomain") ||
		host == "localhost4" || host == "localhost6" || host == "ip6-localhost" || host == "ip6-loopback" ||
		strings.HasSuffix(host, ".localdomain4") || strings.HasSuffix(host, ".localdomain6")
}

// Dial resolves HOST:PORT, and connects to the first allowed address that accepts.
func (g *Guard) Dial(ctx context.Context, network, hostPort string) (net.Conn, error) {
	if g.proxy != "" && strings.EqualFold(hostPort, g.proxy) {
		return g.Trusted(ctx, network, g.proxy)
	}
	host, portText, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = []netip.Addr{a}
	} else if addrs, err = g.resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, err
	}
	if len(addrs) > maxAddresses {
		addrs = addrs[:maxAddresses]
	}
	connect, trusted := g.Connect, g.named(host, uint16(port))
	if trusted {
		connect = g.Trusted
	}
	var refused, failed error
	for _, a := range addrs {
		at := netip.AddrPortFrom(a.Unmap(), uint16(port))
		if err := g.check(at); err != nil && !trusted {
			refused = err
			continue
		}
		conn, err := connect(ctx, "tcp", at.String())
		if err == nil {
			return conn, nil
		}
		if failed = err; ctx.Err() != nil {
			break
		}
	}
	switch {
	case failed != nil:
		return nil, failed
	case refused != nil:
		return nil, refused
	}
	return nil, errors.New("the name has no address")
}

// WithoutURL returns the cause of an error of net/http without the method and the address
// in front of it. An address may hold a secret.
func WithoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

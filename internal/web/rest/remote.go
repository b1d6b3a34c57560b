// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies is the list of addresses that are trusted to report the address of a client: load
// balancers and reverse proxies in front of the service. The zero value trusts no address.
type Proxies struct{ prefixes []netip.Prefix }

// ParseProxies reads addresses (192.0.2.7, 2001:db8::7) and networks in CIDR notation
// (10.0.0.0/8). A network of all addresses is refused, since it would let every
// client choose its own address.
func ParseProxies(list []string) (Proxies, error) {
	var p Proxies
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, addrErr := netip.ParseAddr(text)
			if addrErr != nil || addr.Zone() != "" {
				return Proxies{}, fmt.Errorf("%q is not an address or a network; write 192.0.2.7, 2001:db8::7 or 10.0.0.0/8", text)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		if addr := prefix.Addr(); addr.Is4In6() && prefix.Bits() >= 96 {
			prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
		}
		if prefix.Bits() == 0 {
			return Proxies{}, fmt.Errorf("%q holds every address, so every client could choose its own; name the addresses of your proxies", text)
		}
		p.prefixes = append(p.prefixes, prefix.Masked())
	}
	return p, nil
}

// Trusts reports whether addr is one of the proxies.
func (p Proxies) Trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p.prefixes, func(prefix netip.Prefix) bool { return prefix.Contains(addr) })
}

type proxiesKey struct{}

// ConnContext marks a connection as one on which p is trusted about addresses of clients.
// It is the ConnContext of a server that these proxies connect to. It does not affect
// certificates: see [FrontEnd].
func (p Proxies) ConnContext(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, proxiesKey{}, p)
}

// The headers that carry addresses of clients.
const (
	forwardedFor = "X-Forwarded-For"
	forwarded    = "Forwarded" // RFC 7239
)

// clientAddress returns the address of the client that sends r, without port. Audit log,
// log and all limits by address use it.
//
// It is the peer of the connection unless the peer is a trusted proxy. Then it is the
// rightmost address of the chain that is not a trusted proxy, because each proxy appends
// the address it was called from. The walk ends at the first entry that is malformed,
// hidden or unknown. The result is then the last address that a trusted proxy vouched for.
//
// X-Forwarded-For wins over Forwarded. Nearly every proxy writes the first, and most
// forward the Forwarded of the client as it came.
func clientAddress(r *http.Request) string {
	ctx := r.Context()
	if frontEnd, _ := ctx.Value(frontEndKey{}).(bool); frontEnd {
		// The front end writes exactly one value. More values come from a client.
		if values := r.Header.Values(forwardedFor); len(values) == 1 {
			if addr, ok := hostOf(values[0]); ok {
				return addr.String()
			}
		}
		return "front end"
	}
	peer, ok := peerAddress(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	if p, _ := ctx.Value(proxiesKey{}).(Proxies); p.Trusts(peer) {
		peer = p.walk(peer, r.Header)
	}
	return peer.String()
}

// peerAddress returns the address in HOST:PORT.
func peerAddress(remote string) (netip.Addr, bool) {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(host)
	return addr.Unmap().WithZone(""), err == nil
}

// walk goes back from a trusted proxy along the chain of the header.
func (p Proxies) walk(from netip.Addr, h http.Header) netip.Addr {
	lines, split, read := h.Values(forwardedFor), splitPlain, hostOf
	if len(lines) == 0 {
		lines, split, read = h.Values(forwarded), splitQuoted, forOf
	}
	vouched := from
	for _, line := range slices.Backward(lines) {
		for rest, more := line, true; more; {
			var element string
			if rest, element, more = split(rest); element == "" {
				continue // RFC 9110, 5.6.1.2: empty elements do not count
			}
			addr, ok := read(element)
			if !ok {
				return vouched
			}
			if vouched = addr; !p.Trusts(addr) {
				return addr
			}
		}
	}
	return vouched
}

// splitPlain removes the last element of a list separated by commas.
func splitPlain(list string) (rest, element string, more bool) {
	i := strings.LastIndexByte(list, ',')
	return list[:max(i, 0)], strings.Trim(list[i+1:], " \t"), i >= 0
}

// splitQuoted is splitPlain for elements with quoted strings. It reads from the right,
// because a trusted proxy appended there: a quotation mark that the client left open
// on the left cannot swallow what the proxy added.
func splitQuoted(list string) (rest, element string, more bool) {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch c := list[i]; {
		case c == '"' && !escaped(list, i):
			quoted = !quoted
		case c == ',' && !quoted:
			return list[:i], strings.Trim(list[i+1:], " \t"), true
		}
	}
	return "", strings.Trim(list, " \t"), false
}

// escaped reports whether an odd number of backslashes is before position i.
func escaped(s string, i int) bool {
	before := s[:i]
	return (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1
}

// forOf reads the parameter "for" of a forwarded-element (RFC 7239, section 4).
func forOf(element string) (addr netip.Addr, ok bool) {
	found := false
	for rest := element; ; {
		name, after, equals := strings.Cut(rest, "=")
		if !equals || !isToken(name) {
			return netip.Addr{}, false
		}
		value, after, valid := valueOf(after)
		if !valid {
			return netip.Addr{}, false
		}
		if strings.EqualFold(name, "for") {
			if found {
				return netip.Addr{}, false // a parameter must not occur twice
			}
			if addr, found = hostOf(value); !found {
				return netip.Addr{}, false
			}
		}
		if after == "" {
			return addr, found
		}
		if after[0] != ';' {
			return netip.Addr{}, false
		}
		rest = after[1:]
	}
}

// valueOf reads a token or a quoted string at the beginning of s.
func valueOf(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexByte(s, ';')
		if i < 0 {
			i = len(s)
		}
		return s[:i], s[i:], isToken(s[:i])
	}
	var text strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return text.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		text.WriteByte(s[i])
	}
	return "", "", false
}

// isToken reports whether s is a token (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// hostOf reads the address of a node with or without a port: 192.0.2.7,
// 192.0.2.7:80, 2001:db8::7, [2001:db8::7], [2001:db8::7]:80. The port may be
// hidden (RFC 7239, section 6.2). A hidden or unknown address is not an address.
func hostOf(node string) (netip.Addr, bool) {
	host, port, hasPort := node, "", false
	if inside, bracketed := strings.CutPrefix(node, "["); bracketed {
		var after string
		var closed bool
		if host, after, closed = strings.Cut(inside, "]"); !closed || !strings.Contains(host, ":") {
			return netip.Addr{}, false
		}
		if port, hasPort = strings.CutPrefix(after, ":"); !hasPort && after != "" {
			return netip.Addr{}, false
		}
	} else if strings.Count(node, ":") == 1 {
		host, port, hasPort = strings.Cut(node, ":")
	}
	if hasPort && !isPort(port) {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// isPort reports whether s is a port or a hidden one, which begins with "_".
func isPort(s string) bool {
	hidden, isHidden := strings.CutPrefix(s, "_")
	if isHidden {
		return isToken(hidden)
	}
	return s != "" && len(s) <= 5 && strings.Trim(s, "0123456789") == ""
}

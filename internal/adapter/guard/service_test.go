// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/netip"
	"net/url"
	"testing"
)

// The exception for a service is for its port alone, with every form of a host.
func TestExceptionFor(t *testing.T) {
	for address, want := range map[string]Exception{
		"http://10.0.0.5/tsp":      {Network: netip.MustParsePrefix("10.0.0.5/32"), Port: 80},
		"https://10.0.0.5:318/tsp": {Network: netip.MustParsePrefix("10.0.0.5/32"), Port: 318},
		"https://[fd00::1]/":       {Network: netip.MustParsePrefix("fd00::1/128"), Port: 443},
		"http://[fd00::1]:318/":    {Network: netip.MustParsePrefix("fd00::1/128"), Port: 318},
		"http://tsp.example.org/":  {Host: "tsp.example.org", Port: 80},
		"https://штамп.рф/":        {Host: "xn--80ayjj3a.xn--p1ai", Port: 443},
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ExceptionFor(u); err != nil || got != want {
			t.Errorf("%s: %+v %v, want %+v", address, got, err, want)
		}
	}
}

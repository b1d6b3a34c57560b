// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// xmlsecPlace returns the folder where xmlsec-gost.sh, which is next to this file, puts
// its builds.
func xmlsecPlace() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "tamga-judges", "xmlsec1-1.2.37"), err
}

// XMLSecGOST is XMLSec with an xmlsec1 built with GOST support by gost-engine. For GOST R
// 34.10-2001 it knows only the older names, those of
// "http://www.w3.org/2001/04/xmldsig-more#".
func XMLSecGOST(t testing.TB) *XMLTools {
	t.Helper()
	tools := XMLSec(t)
	place, err := xmlsecPlace()
	tools.xmlsec = filepath.Join(place, "xmlsec1")
	if err == nil {
		_, err = os.Stat(tools.xmlsec)
	}
	if err != nil {
		missing(t, "xmlsec1 with GOST is not built (internal/judge/xmlsec-gost.sh builds it)")
	}
	engine := findEngine()
	if engine == "" {
		missing(t, "gost-engine is not installed")
	}
	tools.env = append(tools.env, "OPENSSL_CONF="+tools.Write("openssl.cnf", fmt.Appendf(nil, config, engine)))
	return tools
}

// XMLSecVectors returns the directory of the test signatures in the source of xmlsec1,
// among them those of the interoperability rounds of the W3C: merlin, phaos, XML
// Signature 1.1 and Canonical XML 1.1.
func XMLSecVectors(t testing.TB) string {
	t.Helper()
	place, err := xmlsecPlace()
	dir := filepath.Join(place, "tests")
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		missing(t, "the test data of xmlsec1 is not there (internal/judge/xmlsec-gost.sh brings it)")
	}
	return dir
}

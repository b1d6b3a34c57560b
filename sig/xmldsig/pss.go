// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"strconv"
	"strings"

	"tamga/pki/suite"
	"tamga/sig/xmltree"
)

// RSA-PSS with parameters (RFC 9231, 2.3.9).
const (
	nsMore2007 = "http://www.w3.org/2007/05/xmldsig-more#"
	algPSS     = nsMore2007 + "rsa-pss"
	algMGF1    = nsMore2007 + "MGF1"
)

// readPSS reads the content of a SignatureMethod of RSA-PSS, one RSAPSSParams element.
// Defaults for absent elements: SHA-256, MGF1 with SHA-256, a salt as long as the message
// digest, trailer 1.
func readPSS(t *xmltree.Tree, method xmltree.Node, inside []xmltree.Node) (*suite.Scheme, error) {
	h, mgf := suite.SHA256, suite.SHA256
	salt, trailer := -1, 1
	if len(inside) > 1 || len(inside) == 1 && !t.Is(inside[0], nsMore2007, "RSAPSSParams") {
		return nil, flawAt(t, method, codeAlgorithm, "SignatureMethod of RSA-PSS must have one RSAPSSParams and nothing else")
	}
	var params []xmltree.Node
	var err error
	if len(inside) == 1 {
		if params, err = elements(t, inside[0]); err != nil {
			return nil, err
		}
	}
	take := func(namespace, local string) xmltree.Node {
		if len(params) == 0 || !t.Is(params[0], namespace, local) {
			return xmltree.None
		}
		n := params[0]
		params = params[1:]
		return n
	}
	if n := take(nsDS, "DigestMethod"); n != xmltree.None {
		if h, err = pssHash(t, n); err != nil {
			return nil, err
		}
	}
	if n := take(nsMore2007, "MaskGenerationFunction"); n != xmltree.None {
		children, err := elements(t, n)
		if err != nil {
			return nil, err
		}
		if a, _ := t.Get(n, "Algorithm"); a != algMGF1 || len(children) > 1 || len(children) == 1 && !t.Is(children[0], nsDS, "DigestMethod") {
			return nil, flawAt(t, n, codeAlgorithm, "MaskGenerationFunction of RSA-PSS must be %s with one DigestMethod", algMGF1)
		}
		if len(children) == 1 {
			if mgf, err = pssHash(t, children[0]); err != nil {
				return nil, err
			}
		}
	}
	if n := take(nsMore2007, "SaltLength"); n != xmltree.None {
		if salt, err = pssNumber(t, n); err != nil {
			return nil, err
		}
	}
	if n := take(nsMore2007, "TrailerField"); n != xmltree.None {
		if trailer, err = pssNumber(t, n); err != nil {
			return nil, err
		}
	}
	if len(params) > 0 {
		return nil, flawAt(t, params[0], codeAlgorithm, "%s is out of place in RSAPSSParams; DigestMethod, MaskGenerationFunction, SaltLength, TrailerField expected in this order", t.Name(params[0]))
	}
	if trailer != 1 {
		return nil, flawAt(t, method, codeAlgorithm, "TrailerField of RSA-PSS is %d; 1 expected", trailer)
	}
	if salt < 0 {
		salt = h.Size
	}
	p, err := suite.NewPSS(h, mgf, salt)
	if err != nil {
		return nil, flawAt(t, method, codeAlgorithm, "%s", err)
	}
	return p.Scheme(), nil
}

func pssHash(t *xmltree.Tree, n xmltree.Node) (*suite.Hash, error) {
	algorithm, _ := t.Get(n, "Algorithm")
	h, ok := suite.HashByXML(algorithm)
	if !ok {
		return nil, flawAt(t, n, codeAlgorithm, "algorithm not supported: DigestMethod %s", quote(algorithm))
	}
	return h, nil
}

// pssNumber reads a number of at most four digits.
func pssNumber(t *xmltree.Tree, n xmltree.Node) (int, error) {
	text := strings.TrimSpace(t.StringValue(n))
	v, err := strconv.ParseUint(text, 10, 16)
	if err != nil || len(text) > 4 {
		return 0, flawAt(t, n, codeAlgorithm, "%s of RSA-PSS is %s; a small number expected", t.Name(n), quote(text))
	}
	return int(v), nil
}

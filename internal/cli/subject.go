// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tamga/internal/app"
	"tamga/pki/x509gost"
)

// SubjectOf returns the name that parts such as "INN=007700000000" make. Without a CN it gets commonName.
func SubjectOf(parts []string, commonName string) (x509gost.Name, error) {
	var attributes []x509gost.Attribute
	named := false
	for _, p := range parts {
		name, value, ok := strings.Cut(p, "=")
		oid, known := x509gost.AttributeByName(name)
		if !ok || !known {
			return x509gost.Name{}, fmt.Errorf("--subject %s: want NAME=VALUE, for instance INN=007700000000, with a NAME that --help lists", p)
		}
		named = named || oid.Equal(x509gost.OIDCommonName)
		attributes = append(attributes, x509gost.Attribute{OID: oid, Value: value})
	}
	if !named {
		attributes = append(attributes, x509gost.Attribute{OID: x509gost.OIDCommonName, Value: commonName})
	}
	return x509gost.BuildName(attributes)
}

// AuthorityRequest returns a request (PEM) for an issuing authority. Without a subject it has the present
// name.
func AuthorityRequest(ctx context.Context, s *app.Services, name string, subject []string) ([]byte, error) {
	if err := s.Authority.Bootstrap(ctx); err != nil {
		return nil, err
	}
	var parts x509gost.Name
	if len(subject) > 0 {
		var err error
		if parts, err = nameOf(subject); err != nil {
			return nil, err
		}
	}
	der, err := s.Authority.RequestFor(ctx, name, parts)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// nameOf returns a name of exactly these parts.
func nameOf(parts []string) (x509gost.Name, error) {
	if !slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(p, "CN=") }) {
		return x509gost.Name{}, errors.New("--subject: want a CN, for instance --subject 'CN=Example Signing CA'")
	}
	return SubjectOf(parts, "")
}

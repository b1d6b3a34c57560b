// Package pkiapi owns the public door of the built-in authority: its
// certificates and revocation lists, at the addresses that issued certificates
// name (CRL distribution point and caIssuers, RFC 5280, 4.2.1.13 and 4.2.2.1).
package pkiapi

import (
	"bytes"
	"context"
	"strings"

	"tamga/internal/domain/fault"
	"tamga/internal/web/rest"
)

// Authority is what the door offers.
type Authority interface {
	// CRL returns the current revocation list of an authority (DER), or the fault
	// object_not_found.
	CRL(ctx context.Context, name string) ([]byte, error)
	// Certificate returns the certificate of an authority (DER), or the same fault.
	Certificate(ctx context.Context, name string) ([]byte, error)
}

// API serves an authority.
type API struct{ authority Authority }

// New returns the API of an authority.
func New(a Authority) *API { return &API{authority: a} }

// Routes are the operations of this door.
func (a *API) Routes() []rest.Route {
	return []rest.Route{
		rest.Handle("GET /pki/{file}", "GetAuthorityFile", rest.Anyone, a.file),
	}
}

// kinds are the files there are, by the end of their names.
var kinds = []struct {
	suffix, mediaType string
	read              func(Authority, context.Context, string) ([]byte, error)
}{
	{".crl", "application/pkix-crl", Authority.CRL},
	{".crt", "application/pkix-cert", Authority.Certificate},
}

func (a *API) file(ctx context.Context, r struct {
	File string `path:"file"`
}) (rest.File, error) {
	for _, k := range kinds {
		name, ok := strings.CutSuffix(r.File, k.suffix)
		if !ok {
			continue
		}
		der, err := k.read(a.authority, ctx, name)
		if err != nil {
			return rest.File{}, err
		}
		return rest.File{Content: bytes.NewReader(der), Name: r.File, Type: k.mediaType}, nil
	}
	return rest.File{}, fault.New(fault.NotFound, "there is no such file: want the name of an authority with .crl or .crt")
}
